"""What a question costs in the ledger, beside a bare durable commit of a row of the same size.

Run as ``python -m benchmarks.ledger``, in a folder on the disk to measure. The bare commit is one ``INSERT``
into a table without any index, through Python's `sqlite3`, with a write-ahead log that is synchronised at each
commit. It asks nothing, and knows no key, no state and no order; a ledger can't be cheaper. All rows of a
table are measured in turn, question by question, so that the disk's moods hit them alike, and after both logs
have reached the length from which on SQLite writes them from the front again: growing a file costs extra.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from thresholdout.ledger import Entry, Ledger, MemoryLedger, SQLLedger, fresh_key

GUARD = "f" * 64
STATE = "2:-123456789012345:10:1000"
QUESTIONS = 3000
LOG_PAGES = 1000
"""Length of a log when SQLite starts it again; the bare commit writes one page, a question at least three."""


class Question:
    """A mechanism that costs next to nothing, with its answers prepared; calling it asks the next one."""

    def __init__(self, ledger: Ledger, count: int, number: int = 0) -> None:
        self.ledger = ledger
        self.number = number
        self.keys = [fresh_key() for _ in range(count)]
        self.entries = [
            Entry(number + 1 + i, key, "accuracy", 0.8125, 0.79, 0.05, "holdout", 9, 0.0, 1.0)
            for i, key in enumerate(self.keys)
        ]
        self.asked = 0
        ledger.create(GUARD, {}, STATE)

    def compute(self, state: str) -> tuple[str, Entry]:
        """Return the next prepared answer."""
        return state, self.entries[self.asked]

    def __call__(self) -> None:
        """Ask the next question."""
        self.ledger.ask(GUARD, self.keys[self.asked], 0.8125, "accuracy", self.compute)
        self.asked += 1

    def again(self) -> None:
        """Ask the first question again."""
        self.ledger.ask(GUARD, self.keys[0], 0.8125, "accuracy", self.compute)


def bare_connection(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE answers (guard INTEGER, number INTEGER, key TEXT, name TEXT, train REAL, value REAL, "
        "half_width REAL, source TEXT, remaining INTEGER, lower REAL, upper REAL, state TEXT)"
    )
    return connection


def bare_commit(connection: sqlite3.Connection) -> Callable[[], None]:
    """Return the commit to compare with, after enough of them to fill the log once."""
    row = (1, 1000, fresh_key(), "accuracy", 0.8125, 0.79, 0.05, "holdout", 9, 0.0, 1.0, STATE)

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.execute("COMMIT")

    repeat(commit, LOG_PAGES + 1)
    return commit


def repeat(action: Callable[[], None], times: int) -> None:
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


def questions(folder: Path) -> None:
    """One thread: a question in each kind of ledger, new and repeated."""
    with closing(bare_connection(folder / "bare.db")) as bare, SQLLedger(folder / "guard.db") as file:
        in_file = Question(file, LOG_PAGES // 3 + QUESTIONS)
        repeat(in_file, LOG_PAGES // 3)
        in_memory = Question(MemoryLedger(), QUESTIONS)
        times = microseconds(
            {
                "bare durable commit": bare_commit(bare),
                "SQLLedger.ask": in_file,
                "SQLLedger.ask, repeated key": in_file.again,
                "MemoryLedger.ask": in_memory,
                "MemoryLedger.ask, repeated key": in_memory.again,
            },
            QUESTIONS,
        )
    base = times["bare durable commit"]
    print(f"{'':34}{'median us':>10}{'ratio':>8}{'mean us':>10}{'ratio':>8}")
    for name, measured in times.items():
        median, mean = np.median(measured), measured.mean()
        print(f"{name:34}{median:10.1f}{median / np.median(base):8.2f}{mean:10.1f}{mean / base.mean():8.2f}")


def histories(folder: Path, sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """How a question's cost, and opening, depend on the length of the history."""
    print(f"\n{'answers before':34}{'median us':>10}{'ratio':>8}{'open ms':>10}")
    for size in sizes:
        file = folder / f"{size}.db"
        with SQLLedger(file) as ledger:
            written = Question(ledger, size)
            with ledger._database.reading() as cursor:
                cursor.execute("PRAGMA synchronous = OFF")
            repeat(written, size)
        start = time.perf_counter()
        ledger = SQLLedger(file)
        ledger.state(GUARD)
        opened = time.perf_counter() - start
        with ledger, closing(bare_connection(folder / f"bare{size}.db")) as bare:
            question = Question(ledger, LOG_PAGES // 3 + 1000, size)
            repeat(question, LOG_PAGES // 3)
            times = microseconds({"bare": bare_commit(bare), "ask": question}, 1000)
        median = np.median(times["ask"])
        print(f"{size:<34,}{median:10.1f}{median / np.median(times['bare']):8.2f}{1e3 * opened:10.1f}")


def threads(folder: Path, counts: tuple[int, ...] = (1, 2, 8)) -> None:
    """Questions a second from several threads on one ledger."""
    print(f"\n{'threads':34}{'questions/s':>12}")
    for count in counts:
        with SQLLedger(folder / f"threads{count}.db") as ledger:
            question = Question(ledger, QUESTIONS)

            def compute(state: str, question: Question = question) -> tuple[str, Entry]:
                question.asked += 1
                return state, question.entries[question.asked - 1]

            def work(share: int, ledger: SQLLedger = ledger, compute: object = compute) -> None:
                for _ in range(share):
                    ledger.ask(GUARD, None, 0.8125, "accuracy", compute)  # type: ignore[arg-type]

            workers = [threading.Thread(target=work, args=(QUESTIONS // count,)) for _ in range(count)]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            print(f"{count:<34}{QUESTIONS // count * count / (time.perf_counter() - start):12.0f}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        questions(folder)
        histories(folder)
        threads(folder)


if __name__ == "__main__":
    main()
