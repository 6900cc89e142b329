"""Queries a second on a PostgreSQL server of its own, beside bare transactions of the same size.

Run as ``python -m benchmarks.postgres``, in a folder on the disk to measure. Each connection is a process. The bare
transactions write the same two rows with two statements: the next state of one guard, and an answer. They ask
nothing, and know no key, no order and no chain; "one guard" has all connections change the same row, as queries to
one guard do, and "a guard each" lets the server take the commits of several connections together.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psycopg

from tests.thresholdout.ledger import postgres_server
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry, fresh_key

STATE = "2:-123456789012345:10:1000"
QUERIES = 1200
REPEATS = 2

Work: TypeAlias = Callable[[str, int], Callable[[], None]]
"""Connects a process of a number to an address, and returns what to do many times."""


def guard_of(process: int, one: bool) -> str:
    return f"guard {0 if one else process:058}"


def ask(one: bool) -> Work:
    def connect(address: str, process: int) -> Callable[[], None]:
        ledger = SQLLedger(address, key=postgres_server.KEY)
        guard = guard_of(process, one)
        ledger.create(guard, {}, STATE)

        def compute(state: str) -> tuple[str, Entry]:
            number = int(state.rpartition(":")[2]) - 999
            return f"{STATE[:-4]}{number + 1000}", Entry(
                number, "", "accuracy", 0.8125, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0
            )

        return lambda: void(ledger.ask(guard, fresh_key(), 0.8125, "accuracy", compute))

    return connect


def void(result: object) -> None:
    """Forget a result."""


def bare(one: bool) -> Work:
    def connect(address: str, process: int) -> Callable[[], None]:
        connection = psycopg.connect(address, autocommit=True)
        number = 0 if one else process
        connection.execute("INSERT INTO bare_guards VALUES (%s, %s, 0, '') ON CONFLICT DO NOTHING", (number, STATE))

        def commit() -> None:
            key = fresh_key()
            connection.execute("BEGIN")
            connection.execute(
                "UPDATE bare_guards SET state = %s, asked = asked + 1, checkpoint = %s WHERE id = %s",
                (STATE, 2 * key, number),
            )
            connection.execute(
                "INSERT INTO bare_answers VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (number, 1000, key, "accuracy", 0.8125, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0, 2 * key),
            )
            connection.execute("COMMIT")

        return commit

    return connect


def share(work: Work, address: str, process: int, times: int, barrier: object) -> None:
    act = work(address, process)
    for _ in range(20):
        act()
    barrier.wait()  # type: ignore[attr-defined]
    for _ in range(times):
        act()
    barrier.wait()  # type: ignore[attr-defined]


def per_second(work: Work, address: str, connections: int) -> float:
    """Measure how often all connections together do their work in a second."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(connections + 1)
    times = QUERIES // connections
    processes = [
        context.Process(target=share, args=(work, address, number, times, barrier)) for number in range(connections)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    elapsed = time.perf_counter() - start
    for process in processes:
        process.join()
    return times * connections / elapsed


def main() -> None:
    """Print the table."""
    reason = postgres_server.missing()
    if reason is not None:
        sys.exit(reason)
    tempfile.tempdir = str(Path.cwd())  # the server's data belong on the disk to measure
    server = Server()
    try:
        address = server.new_database()
        with psycopg.connect(address) as connection:
            connection.execute(
                "CREATE TABLE bare_guards (id int PRIMARY KEY, state text, asked bigint, checkpoint text)"
            )
            connection.execute(
                "CREATE TABLE bare_answers (guard int, query bigint, key text, name text, train float8, value float8, "
                "half_width float8, source text, remaining bigint, lower float8, upper float8, digest text)"
            )
        works = {
            "bare transactions, one guard": bare(True),
            "queries, one guard": ask(True),
            "bare transactions, a guard each": bare(False),
            "queries, a guard each": ask(False),
        }
        counts = (1, 8)
        print(f"{'a second, from so many connections':40}" + "".join(f"{count:>8}" for count in counts))
        best = {(name, count): 0.0 for name in works for count in counts}
        for _ in range(REPEATS):
            for name, count in best:
                best[name, count] = max(best[name, count], per_second(works[name], address, count))
        for name in works:
            print(f"{name:40}" + "".join(f"{best[name, count]:8.0f}" for count in counts))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
