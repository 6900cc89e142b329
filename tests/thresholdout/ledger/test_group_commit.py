"""Threads share transactions: how many there are, who fails with whom, and what a fork leaves behind."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE, wait_until
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry

OTHER = "another guard"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SQLLedger]:
    with SQLLedger(tmp_path / "guard.db") as ledger:
        ledger.create(GUARD, {}, FIRST)
        ledger.create(OTHER, {}, FIRST)
        yield ledger


def statements(ledger: SQLLedger) -> list[str]:
    """Return a list that fills with the statements to come."""
    seen: list[str] = []
    cursor = ledger.database.transact(lambda cursor: cursor)
    assert isinstance(cursor, sqlite3.Cursor)
    cursor.connection.set_trace_callback(lambda statement: seen.append(statement.split()[0]))
    return seen


class Held:
    """A thread that is in the middle of a query until it is let go, and others that queue up meanwhile."""

    def __init__(self, ledger: SQLLedger) -> None:
        self.ledger = ledger
        self.begun = threading.Event()
        self.go = threading.Event()
        self.outcomes: dict[int, Entry | BaseException] = {}
        self.threads: list[threading.Thread] = []
        self.start(self.ask_slowly)
        assert self.begun.wait(PATIENCE)

    def ask_slowly(self) -> Entry:
        def compute(state: str) -> tuple[str, Entry]:
            self.begun.set()
            assert self.go.wait(PATIENCE)
            return Mechanism()(state)

        return self.ledger.ask(GUARD, None, 0.5, "accuracy", compute)[0]

    def start(self, work: Callable[[], Entry]) -> None:
        number = len(self.threads)

        def run() -> None:
            try:
                self.outcomes[number] = work()
            except BaseException as error:
                self.outcomes[number] = error

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def queue(self, *works: Callable[[], Entry]) -> None:
        """Start threads, and return when all of them wait."""
        for work in works:
            self.start(work)
            wait_until(lambda: len(self.ledger._queries._queues[""].waiting) >= len(self.threads))

    def end(self) -> list[Entry | BaseException]:
        self.go.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)
        return [self.outcomes[number] for number in range(len(self.threads))]


def asking(ledger: SQLLedger, guard: str = GUARD, key: str | None = None) -> Callable[[], Entry]:
    return lambda: ledger.ask(guard, key, 0.5, "accuracy", Mechanism())[0]


def test_those_who_wait_share_one_commit(ledger: SQLLedger) -> None:
    seen = statements(ledger)
    held = Held(ledger)
    held.queue(*[asking(ledger) for _ in range(6)], *[asking(ledger, OTHER) for _ in range(3)])
    outcomes = held.end()
    assert all(isinstance(outcome, Entry) for outcome in outcomes)
    assert seen.count("COMMIT") == 2
    assert seen.count("UPDATE") == 3  # a state for each guard in each transaction
    for guard, count in ((GUARD, 7), (OTHER, 3)):
        assert_consistent(ledger, guard)
        assert ledger.verify(guard) == count
    assert [e.query for e in outcomes[:7] if isinstance(e, Entry)] == [1, 2, 3, 4, 5, 6, 7]  # first come, first served


def test_a_lone_thread_has_a_commit_of_its_own(ledger: SQLLedger) -> None:
    seen = statements(ledger)
    for _ in range(3):
        asking(ledger)()
    thread = threading.Thread(target=asking(ledger))
    thread.start()
    thread.join()
    assert seen.count("COMMIT") == 4


def test_a_key_in_one_transaction_twice_is_charged_once(ledger: SQLLedger) -> None:
    held = Held(ledger)
    held.queue(*[asking(ledger, key="same") for _ in range(4)])
    _, *same = held.end()
    assert len(set(same)) == 1
    assert len(ledger.entries(GUARD)) == 2
    assert_consistent(ledger)


def test_a_transaction_that_cannot_be_stored_fails_all_in_it(ledger: SQLLedger) -> None:
    before = asking(ledger)()
    held = Held(ledger)
    with sqlite3.connect(ledger.location) as other:  # not through the ledger: it is in use
        (pages,) = other.execute("PRAGMA page_count").fetchone()
    other.close()

    def limiting() -> Entry:
        def compute(state: str) -> tuple[str, Entry]:
            # As the batch's transaction is under way: from here on there is no room in the file.
            database = ledger.database
            database._writer.cursor.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
            state, entry = Mechanism()(state)
            return f"{state}{'x' * 100_000}", entry

        return ledger.ask(GUARD, None, 0.5, "accuracy", compute)[0]

    held.queue(asking(ledger), asking(ledger, OTHER), asking(ledger), limiting)
    first, *others = held.end()
    assert isinstance(first, Entry)
    for error in others:
        assert isinstance(error, LedgerUnusable)
        assert "The disk is full" in str(error)
        assert SECRET not in str(error)
    assert len({id(error) for error in others}) == 4
    assert ledger.entries(GUARD) == [before, first]
    assert ledger.entries(OTHER) == []
    asking(ledger)()
    assert_consistent(ledger)
    assert ledger.verify(GUARD) == 3


def test_an_error_that_is_not_the_ledgers_hits_one_and_the_others_are_asked_again(
    ledger: SQLLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    encrypt = ledger._encrypt
    calls: list[str] = []

    def short_of_memory(text: str, *about: str) -> str:
        calls.append(text)
        if len(calls) == 2:  # the first is for the query that is held, the second for all that wait
            raise MemoryError
        return encrypt(text, *about)

    held = Held(ledger)
    monkeypatch.setattr(ledger, "_encrypt", short_of_memory)
    held.queue(*[asking(ledger) for _ in range(4)])
    outcomes = held.end()
    assert sum(isinstance(outcome, MemoryError) for outcome in outcomes[1:]) == 1
    stored = [outcome for outcome in outcomes if isinstance(outcome, Entry)]
    assert len(stored) == 4
    assert ledger.entries(GUARD) == sorted(stored, key=lambda entry: entry.query)
    assert_consistent(ledger)
    assert ledger.verify(GUARD) == 4


def test_closing_ends_those_who_wait(ledger: SQLLedger) -> None:
    held = Held(ledger)
    held.queue(asking(ledger), asking(ledger))
    closing = threading.Thread(target=ledger.close)
    held.go.set()
    closing.start()
    closing.join(PATIENCE)
    outcomes = held.end()
    assert isinstance(outcomes[0], Entry)
    for outcome in outcomes[1:]:  # either was in time
        assert isinstance(outcome, Entry) or "was closed" in str(outcome)


FORKS = """
import os, sys, threading, time
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.ledger import SQLLedger

ledger = SQLLedger(sys.argv[1])
ledger.create(GUARD, {}, FIRST)
end = threading.Event()

def ask():
    while not end.is_set():
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())

threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads:
    thread.start()
codes = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        threads = [threading.Thread(target=lambda: ledger.ask(GUARD, None, 0.5, "child", Mechanism())) for _ in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        os._exit(any(thread.is_alive() for thread in threads))
    codes.append(os.waitpid(child, 0)[1])
end.set()
for thread in threads:
    thread.join(600)
assert_consistent(ledger)
print(codes == [0] * 8, sum(entry.name == "child" for entry in ledger.entries(GUARD)))
"""


@pytest.mark.slow
def test_a_fork_amid_busy_threads_leaves_both_sides_usable(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, tmp_path / "guard.db"],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout.split() == ["True", "16"], done.stderr
