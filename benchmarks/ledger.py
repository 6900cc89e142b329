"""What a query costs in the ledger, beside a bare durable commit of a row of the same size.

Run as ``python -m benchmarks.ledger``, in a folder on the disk to measure. The bare commit is one ``INSERT``
into a table without any index, through Python's `sqlite3`, with a write-ahead log that is synchronised at each
commit. It asks nothing, and knows no key, no state and no order; a ledger can't be cheaper. All rows of a
table are measured in turn, query by query, so that the disk's moods hit them alike, and after both logs
have reached the length from which on SQLite writes them from the front again: growing a file costs extra.

Threads and processes are measured with a mechanism that costs next to nothing, with this disk and with one whose
commits take 5 ms longer: then the commits' number decides, and queries per commit are what threads save.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np

from thresholdout import Claims, Thresholdout
from thresholdout.ledger import Ledger, MemoryLedger, SQLLedger
from thresholdout.ledger.entry import Entry, fresh_key

GUARD = "f" * 64
STATE = "2:-123456789012345:10:1000"
QUERIES = 3000
LOG_PAGES = 1000
"""Length of a log when SQLite starts it again; the bare commit writes one page, a query at least three."""


class Enough(Exception):
    """Ends a check."""


class Query:
    """A mechanism that costs next to nothing, with its answers prepared; calling it asks the next one."""

    def __init__(self, ledger: Ledger, count: int, number: int = 0) -> None:
        self.ledger = ledger
        self.number = number
        self.keys = [fresh_key() for _ in range(count)]
        self.entries = [
            Entry(number + 1 + i, key, "accuracy", 0.8125, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)
            for i, key in enumerate(self.keys)
        ]
        self.asked = 0
        ledger.create(GUARD, {}, STATE)

    def compute(self, state: str) -> tuple[str, Entry]:
        """Return the next prepared answer, and a new state: SQLite would not write the same one again."""
        return f"{STATE}:{self.asked}", self.entries[self.asked]

    def __call__(self) -> None:
        """Ask the next query."""
        self.ledger.ask(GUARD, self.keys[self.asked], 0.8125, "accuracy", self.compute)
        self.asked += 1

    def again(self) -> None:
        """Ask the first query again."""
        self.ledger.ask(GUARD, self.keys[0], 0.8125, "accuracy", self.compute)


def bare_connection(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE answers (guard INTEGER, number INTEGER, key TEXT, name TEXT, train REAL, value REAL, "
        "low REAL, high REAL, source TEXT, remaining INTEGER, lower REAL, upper REAL, state TEXT)"
    )
    return connection


def bare_commit(connection: sqlite3.Connection) -> Callable[[], None]:
    """Return the commit to compare with, after enough of them to fill the log once."""
    row = (1, 1000, fresh_key(), "accuracy", 0.8125, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0, STATE)

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")

    repeat(commit, LOG_PAGES + 1)
    return commit


def repeat(action: Callable[[], object], times: int) -> None:
    for _ in range(times):
        action()


def microseconds(actions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, np.ndarray]:
    """Time actions in turn."""
    times = {name: np.empty(repeats) for name in actions}
    for i in range(repeats):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            times[name][i] = time.perf_counter() - start
    return {name: 1e6 * measured for name, measured in times.items()}


def queries(folder: Path) -> None:
    """One thread: a query in each kind of ledger, new and repeated."""
    with closing(bare_connection(folder / "bare.db")) as bare, SQLLedger(folder / "guard.db") as file:
        in_file = Query(file, LOG_PAGES // 3 + QUERIES)
        repeat(in_file, LOG_PAGES // 3)
        in_memory = Query(MemoryLedger(), QUERIES)
        values = np.arange(1000) % 5 > 0
        guards = [
            Thresholdout(
                np.arange(1000.0), queries=2 * QUERIES, mechanism=Claims(holdout_answers=QUERIES), ledger=place
            )
            for place in (folder / "thresholdout.db", None)
        ]
        repeat(partial(guards[0].ask, 0.8125, values), LOG_PAGES // 3)
        times = microseconds(
            {
                "bare durable commit": bare_commit(bare),
                "SQLLedger.ask": in_file,
                "SQLLedger.ask, repeated key": in_file.again,
                "MemoryLedger.ask": in_memory,
                "MemoryLedger.ask, repeated key": in_memory.again,
                "Thresholdout.ask, file": partial(guards[0].ask, 0.8125, values),
                "Thresholdout.ask, memory": partial(guards[1].ask, 0.8125, values),
            },
            QUERIES,
        )
    base = times["bare durable commit"]
    print(f"{'':34}{'median us':>10}{'ratio':>8}{'mean us':>10}{'ratio':>8}")
    for name, measured in times.items():
        median, mean = np.median(measured), measured.mean()
        print(f"{name:34}{median:10.1f}{median / np.median(base):8.2f}{mean:10.1f}{mean / base.mean():8.2f}")


def histories(folder: Path, sizes: tuple[int, ...] = (1_000, 100_000, 1_000_000)) -> None:
    """How opening, a query's cost and verifying depend on the length of the history."""
    print(f"\n{'answers before':34}{'open ms':>10}{'ask us':>10}{'ratio':>8}{'verify s':>10}{'peak MB':>10}")
    for size in sizes:
        file = folder / f"{size}.db"
        with SQLLedger(file) as ledger:
            ledger.restore(GUARD, {}, STATE, {}, (entry(number) for number in range(1, size + 1)))
        start = time.perf_counter()
        ledger = SQLLedger(file)
        ledger.state(GUARD)
        opened = time.perf_counter() - start
        with ledger, closing(bare_connection(folder / f"bare{size}.db")) as bare:
            query = Query(ledger, LOG_PAGES // 3 + 1000, size)
            repeat(query, LOG_PAGES // 3)
            times = microseconds({"bare": bare_commit(bare), "ask": query}, 1000)
            start = time.perf_counter()
            ledger.verify(GUARD, ledger.checkpoint(GUARD))
            verified = time.perf_counter() - start
            tracemalloc.start()  # slow, hence a second time, and not of all that is long
            with suppress(Enough):
                ledger.verify(GUARD, progress=stop_after(100_000))
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
        median = np.median(times["ask"])
        ratio = median / np.median(times["bare"])
        print(f"{size:<34,}{1e3 * opened:10.1f}{median:10.1f}{ratio:8.2f}{verified:10.2f}{peak:10.1f}")


def stop_after(count: int) -> Callable[[int], None]:
    """Return what ends a check after so many entries."""

    def progress(checked: int) -> None:
        if checked >= count:
            raise Enough

    return progress


def entry(number: int) -> Entry:
    """Return a query's answer, with a key as long as those that are made."""
    return Entry(number, f"{number:032x}", "accuracy", 0.8125, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)


def next_answer(state: str) -> tuple[str, Entry]:
    """Answer from a state that is the number of queries so far."""
    asked = int(state) + 1
    return str(asked), entry(asked)


def slow_commits(connection: sqlite3.Connection, seconds: float) -> list[None]:
    """Let each commit take longer by the time that a slower disk needs to synchronise; return a list of them."""
    commits: list[None] = []

    def trace(statement: str) -> None:
        if statement == "COMMIT":
            commits.append(None)
            time.sleep(seconds)  # the transaction is under way, and others can compute: as while a disk is busy

    connection.set_trace_callback(trace)
    return commits


def ask_many(ledger: SQLLedger, share: int) -> None:
    for _ in range(share):
        ledger.ask(GUARD, None, 0.8125, "accuracy", next_answer)


def threads(
    folder: Path, delays: tuple[float, ...] = (0.0, 0.005), counts: tuple[int, ...] = (1, 2, 8), rounds: int = 5
) -> None:
    """Measure queries a second from several threads on one ledger, with this disk and with a slower one."""
    print(f"\n{'threads':34}{'queries/s':>12}{'ratio':>8}{'queries per commit':>22}")
    for delay in delays:
        what = f", commit + {1e3 * delay:g} ms" if delay else ""
        share = (40 if delay else QUERIES) // rounds
        with closing(bare_connection(folder / f"bare{delay}.db")) as bare, ExitStack() as stack:
            commit = bare_commit(bare)
            slow_commits(bare, delay)
            seconds = dict.fromkeys((0, *counts), 0.0)
            ledgers, commits = {}, {}
            for count in counts:
                ledgers[count] = stack.enter_context(SQLLedger(folder / f"threads{count}-{delay}.db"))
                ledgers[count].create(GUARD, {}, "0")
                ask_many(ledgers[count], LOG_PAGES // 3)
                cursor = ledgers[count].database.transact(lambda cursor: cursor)
                assert isinstance(cursor, sqlite3.Cursor)
                commits[count] = slow_commits(cursor.connection, delay)
            for _ in range(rounds):  # in turn, since the disk has moods
                seconds[0] += timed(partial(repeat, commit, share))
                for count in counts:
                    workers = [threading.Thread(target=ask_many, args=(ledgers[count], share)) for _ in range(count)]
                    seconds[count] += timed(partial(run, workers))
        base = rounds * share / seconds[0]
        print(f"{'bare commits, 1 thread' + what:34}{base:12.0f}{1:8.2f}{1:22.1f}")
        for count in counts:
            asked = rounds * share * count
            rate = asked / seconds[count]
            print(f"{f'{count}{what}':34}{rate:12.0f}{rate / base:8.2f}{asked / len(commits[count]):22.1f}")


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run(workers: Sequence[threading.Thread | BaseProcess]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def process(file: Path, count: int, share: int, ready: Barrier, done: Barrier) -> None:
    """Ask from several threads of one process."""
    with SQLLedger(file) as ledger:
        workers = [threading.Thread(target=ask_many, args=(ledger, share)) for _ in range(count)]
        ready.wait()
        run(workers)
        done.wait()


def processes(folder: Path) -> None:
    """Measure queries a second from several processes on one file."""
    context = multiprocessing.get_context("spawn")
    print(f"\n{'processes x threads':34}{'queries/s':>12}")
    for processes, count in ((1, 1), (4, 1), (1, 8), (4, 8)):
        file = folder / f"processes{processes}-{count}.db"
        with SQLLedger(file) as ledger:
            ledger.create(GUARD, {}, "0")
        share = 2 * QUERIES // (processes * count)
        ready, done = context.Barrier(processes + 1), context.Barrier(processes + 1)
        workers = [context.Process(target=process, args=(file, count, share, ready, done)) for _ in range(processes)]
        for worker in workers:
            worker.start()
        ready.wait()
        rate = share * count * processes / timed(done.wait)
        for worker in workers:
            worker.join()
        print(f"{f'{processes} x {count}':34}{rate:12.0f}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        queries(folder)
        threads(folder)
        processes(folder)
        histories(folder)


if __name__ == "__main__":
    main()
