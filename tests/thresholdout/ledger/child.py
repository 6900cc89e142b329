"""Processes that the tests start, and kill.

Run as ``python -m tests.thresholdout.ledger.child command file [argument]``. Answers are printed one a line,
as the query's key and the answer's value.
"""

from __future__ import annotations

import itertools
import os
import random
import select
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, cast

from tests.thresholdout.ledger import power_loss
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.sql import SQLLedger


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def show(entry: Entry) -> None:
    os.write(1, f"{entry.key} {entry.value!r}\n".encode())


def ask_three(ledger: SQLLedger) -> None:
    for key in "abc":
        show(ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism())[0])


def killed_while_computing(file: str) -> None:
    ledger = SQLLedger(file)
    ask_three(ledger)

    def compute(state: str) -> tuple[str, Entry]:
        answer = Mechanism()(state)
        die()
        return answer

    show(ledger.ask(GUARD, "d", 0.5, "accuracy", compute)[0])


def killed_at_commit(file: str) -> None:
    ledger = SQLLedger(file)
    ask_three(ledger)
    connection = cast(sqlite3.Cursor, ledger.database.transact(lambda cursor: cursor)).connection
    connection.set_trace_callback(lambda statement: die() if statement == "COMMIT" else None)
    show(ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())[0])


def killed_after_commit(file: str) -> None:
    ledger = SQLLedger(file)
    ask_three(ledger)
    entry, _ = ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())
    die()
    show(entry)


def _ask_until_killed(where: str, guard: str, prefix: str, threads: int) -> tuple[int, IO[str]]:
    """Fork a process that asks from some threads; return its number, and where its answers can be read."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, os.fdopen(reader)
    os.dup2(writer, 1)
    ledger = SQLLedger(where)

    def ask(thread: int) -> None:
        for query in itertools.count():
            show(ledger.ask(guard, f"{prefix}{thread}-{query}", 0.5, "accuracy", Mechanism())[0])

    for thread in range(1, threads):
        threading.Thread(target=ask, args=(thread,)).start()
    ask(0)
    os._exit(1)


def killed_at_every_line(where: str, step: str = "1") -> None:
    """Fork processes that are killed at later and later lines of a query, until one is left alive.

    Prints how many were killed, and how many of them before their answer was stored.
    """
    kills, lines, status = -1, 0, signal.SIGKILL.value
    known: dict[str, str] = {}
    before = 0
    while status == signal.SIGKILL:
        kills += 1
        lines += int(step)
        key = f"line {lines}"
        process = os.fork()
        if process == 0:
            with SQLLedger(where) as ledger:
                left = lines

                def count(frame: FrameType, event: str, argument: object) -> Any:
                    nonlocal left
                    if "thresholdout/ledger" not in frame.f_code.co_filename:
                        return None
                    left -= event == "line"
                    if left == 0:
                        die()
                    return count

                sys.settrace(count)
                ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism())
                sys.settrace(None)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        with SQLLedger(where, must_exist=True) as ledger:
            assert_consistent(ledger)
            stored = {entry.key: repr(entry.value) for entry in ledger.entries(GUARD)}
            assert known.items() <= stored.items()
            mechanism = Mechanism()
            entry, repeated = ledger.ask(GUARD, key, 0.5, "accuracy", mechanism)
            assert repeated == (key in stored) == (not mechanism.states)
            before += not repeated
            known = stored | {key: repr(entry.value)}
            assert known[key] == repr(entry.value) == stored.get(key, repr(entry.value))
    assert status == 0, status
    print(kills, before)


def killed_at_random(where: str, kills: str) -> None:
    """Fork four processes at a time that ask until they are killed, and check the ledger after all four."""
    random.seed(0)
    count = 0
    for number in range(int(kills) // 4):
        guard = f"guard {number // 25}"  # its history stays short enough to be checked often
        if number % 25 == 0:
            answers: dict[str, str] = {}
            with SQLLedger(where) as ledger:
                ledger.create(guard, {}, FIRST)
        forked = [_ask_until_killed(where, guard, f"{number}-{process}-", process % 2 + 1) for process in range(4)]
        select.select([output for _, output in forked], [], [])  # until one of them is asking
        time.sleep(random.uniform(0, 0.015))
        random.shuffle(forked)
        for process, _ in forked:
            time.sleep(random.choice([0, 0, 0.001]))
            os.kill(process, signal.SIGKILL)
        lines: list[str] = []
        for process, output in forked:
            os.waitpid(process, 0)
            with output:
                lines += [line for line in output if line.endswith("\n")]
        new = dict(line.split() for line in lines)
        answers |= new
        count += len(new)
        with SQLLedger(where, must_exist=True) as ledger:
            assert_consistent(ledger, guard)
            stored = {entry.key: repr(entry.value) for entry in ledger.entries(guard)}
        assert answers.items() <= stored.items()
        assert len(stored) <= len(answers) + 6 * (number % 25 + 1)  # one answer for each thread may not have left
    print(count, "answers")


def asks(file: str, count: str) -> None:
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
        for _ in range(int(count)):
            show(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0])
        ledger.ask(GUARD, "shared", 0.5, "accuracy", Mechanism())


def asks_when_told(file: str, name: str, go: str) -> None:
    """Wait until a file is there, and ask a hundred times."""
    with SQLLedger(file) as ledger:
        ledger.find(GUARD, "nothing")
        Path(go).with_name(f"ready {name}").touch()
        while not Path(go).exists():
            time.sleep(0.001)
        for _ in range(100):
            ledger.ask(GUARD, None, 0.5, name, Mechanism())


def asks_stubbornly(file: str, prefix: str) -> None:
    """Ask until told to stop, and again with the same key whenever that fails."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    number = 0
    while True:
        with suppress(LedgerUnusable):
            ledger = SQLLedger(file)
            break
    with ledger:
        while not told:
            number += 1
            while True:
                try:
                    show(ledger.ask(GUARD, f"{prefix}{number}", 0.5, "accuracy", Mechanism())[0])
                    break
                except LedgerUnusable:
                    time.sleep(0.01)


def asks_with_marks(file: str, prefix: str, count: str, synchronous: str) -> None:
    """Ask from two threads, and log each moment of `power_loss`; synchronise as told instead of at each commit."""

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            return super().execute(sql.replace("synchronous = FULL", f"synchronous = {synchronous}"), *arguments)

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = original(*arguments, **options, factory=Connection)
        if "mode=rw" in arguments[0]:
            connection.execute("PRAGMA wal_autocheckpoint = 20")
        return connection

    def ask(thread: str) -> None:
        for number in range(int(count)):
            key = f"{prefix}{thread}{number}"
            power_loss.mark(f"asks {key}")
            entry, _ = ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism())
            power_loss.mark(f"answer {key} {entry.value!r}")

    original, sqlite3.connect = sqlite3.connect, connect  # type: ignore[assignment]
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
        power_loss.mark("created")
        threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def asks_until_killed(file: str) -> None:
    """Fork processes that are killed at their first, second, third... step on the disk, until one is left alive."""
    step, status = 0, signal.SIGKILL.value
    while status == signal.SIGKILL:
        step += 1
        process = os.fork()
        if process == 0:
            power_loss.kill_at(step)
            with SQLLedger(file) as ledger:
                ledger.create(GUARD, {}, FIRST)
                power_loss.mark("created")
                for number in range(2):
                    key = f"{step}-{number}"
                    power_loss.mark(f"asks {key}")
                    entry, _ = ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism())
                    power_loss.mark(f"answer {key} {entry.value!r}")
            os._exit(0)
        _, status = os.waitpid(process, 0)
    assert status == 0, status
    power_loss.mark(f"kills {step - 1}")


def forks(file: str) -> None:
    """Ask before a fork, and after it on both sides at once."""
    ledger = SQLLedger(file)
    other = SQLLedger(file)
    ledger.create(GUARD, {}, FIRST)
    ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    other.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    children = []
    for _ in range(3):
        child = os.fork()
        for _ in range(10):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
            other.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        if child == 0:
            os._exit(0)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    assert_consistent(ledger)
    print(codes, len(ledger.entries(GUARD)))


def forks_inside(file: str) -> None:
    """Fork while a query is under way; the child must not touch the parent's connection."""
    ledger = SQLLedger(file)
    ledger.create(GUARD, {}, FIRST)

    def compute(state: str) -> tuple[str, Entry]:
        child = os.fork()
        if child == 0:
            try:
                ledger.state(GUARD)
            except Exception as error:
                os.write(1, f"{type(error).__name__}: {error}\n".encode())
            ledger.close()
            os._exit(0)
        os.waitpid(child, 0)
        return Mechanism()(state)

    ledger.ask(GUARD, "a", 0.5, "accuracy", compute)
    ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
    assert_consistent(ledger)
    print(len(ledger.entries(GUARD)))


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command
    for command in (
        killed_while_computing,
        killed_at_commit,
        killed_after_commit,
        killed_at_every_line,
        killed_at_random,
        asks,
        asks_when_told,
        asks_stubbornly,
        asks_with_marks,
        asks_until_killed,
        forks,
        forks_inside,
    )
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
