"""Processes that the tests start, and kill.

Run as ``python -m tests.thresholdout.ledger.child command file [argument]``. Answers are printed one a line,
as the question's key and the answer's value.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.thresholdout.ledger import power_loss
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.ledger import Entry
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
    with ledger._database.reading() as cursor:
        cursor.connection.set_trace_callback(lambda statement: die() if statement == "COMMIT" else None)
    show(ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())[0])


def killed_after_commit(file: str) -> None:
    ledger = SQLLedger(file)
    ask_three(ledger)
    entry, _ = ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())
    die()
    show(entry)


def killed_at_random(file: str, kills: str) -> None:
    """Fork processes that ask until they are killed, and check the ledger after each."""
    random.seed(0)
    answers: dict[str, str] = {}
    for number in range(int(kills)):
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            os.dup2(writer, 1)
            ledger = SQLLedger(file)
            question = 0
            while True:
                question += 1
                show(ledger.ask(GUARD, f"{number}-{question}", 0.5, "accuracy", Mechanism())[0])
        os.close(writer)
        with os.fdopen(reader) as lines:
            seen = [lines.readline() for _ in range(random.randrange(1, 20))]
            time.sleep(random.uniform(0, 0.001))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            seen += [line for line in lines if line.endswith("\n")]
        for line in seen:
            key, value = line.split()
            answers[key] = value
        with SQLLedger(file, must_exist=True) as ledger:
            assert_consistent(ledger)
            stored = {entry.key: repr(entry.value) for entry in ledger.entries(GUARD)}
        assert answers.items() <= stored.items()
        assert len(stored) <= len(answers) + number + 1  # at most one answer was lost on its way each time
    print(len(answers), "answers")


def asks(file: str, count: str) -> None:
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
        for _ in range(int(count)):
            show(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0])
        ledger.ask(GUARD, "shared", 0.5, "accuracy", Mechanism())


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
    """Fork while a question is under way; the child must not touch the parent's connection."""
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
        killed_at_random,
        asks,
        asks_with_marks,
        asks_until_killed,
        forks,
        forks_inside,
    )
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
