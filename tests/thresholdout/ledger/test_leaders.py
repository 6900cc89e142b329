"""Exceptions that are thrown into a thread from outside, at every line of a query: nobody waits for ever.

Lines at which Python throws none are left out: on the way out of a `with`, into a `finally` that calls nothing, and at
a `try` alone, there is no call after which it could.

A thread that works for others is their leader. It is stopped once at each of its lines, those of the code that tidies
up included; whoever waits must get an answer, and the history must hold each query once.
"""

from __future__ import annotations

import ctypes
import dis
import itertools
import linecache
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import thresholdout.ledger
from tests.patience import PATIENCE, wait_until
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry

SOURCE = str(Path(thresholdout.ledger.__file__).parent)


class Stop(BaseException):
    """Is thrown into a thread from outside."""


def throws_nothing(frame: FrameType) -> bool:
    """Whether the next thing is the call of an ``__exit__``, the store that ends a call of `transact`, or a ``try``."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    into = dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "PUSH_NULL")
    return (line.startswith("with ") and not into) or line.endswith(".holder = None") or line == "try:"


class Stopping:
    """Stops the thread that traces with it at one of the lines of the ledger, counted from 1."""

    def __init__(self, line: int) -> None:
        self.left = line
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line" and not throws_nothing(frame):
            self.lines += 1
            self.left -= 1
            if self.left == 0:
                raise Stop
        return self


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SQLLedger]:
    where: str | Path = tmp_path / "guard.db"
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("server")
        where = server.emptied_database()
        request.getfixturevalue("server_key")
    with SQLLedger(where, timeout=PATIENCE) as ledger:
        yield ledger


def asked_by_three(ledger: SQLLedger, guard: str, line: int) -> tuple[int, list[object]]:
    """Have one that leads two others and is stopped at a line; return its lines, and what became of all three.

    A fourth one holds all of them up until they wait. What a thread raised is kept, as a future or an interpreter keeps
    it, and with it all frames that it went through.
    """
    outcomes: list[object] = [None, None, None, None]
    begun, go = threading.Event(), threading.Event()
    stopping = Stopping(line)

    def ask(number: int, compute: Callable[[str], tuple[str, Entry]]) -> None:
        try:
            if number == 0:
                sys.settrace(stopping)
            try:
                outcomes[number] = ledger.ask(guard, None, 0.5, f"thread {number}", compute)[0]
            finally:
                sys.settrace(None)
        except BaseException as error:
            outcomes[number] = error

    def held(state: str) -> tuple[str, Entry]:
        begun.set()
        assert go.wait(PATIENCE)
        return Mechanism()(state)

    threads = [threading.Thread(target=ask, args=(number, Mechanism()), daemon=True) for number in range(3)]
    threads.append(threading.Thread(target=ask, args=(3, held), daemon=True))
    threads[3].start()
    assert begun.wait(PATIENCE)
    (queue,) = [queue for queue in ledger._queries._queues.values() if queue.waiting]
    for count, thread in enumerate(threads[:3], 1):
        thread.start()
        wait_until(lambda: len(queue.waiting) >= 1 + count - (not threads[0].is_alive()))  # noqa: B023
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads), f"somebody waits for ever after a stop at line {line}"
    return stopping.lines, outcomes


def led_by_the_first(ledger: SQLLedger, name: str, line: int) -> tuple[int, str, list[object]]:
    """As `asked_by_three`, until the scheduler lets the first one lead; return its lines, the guard and what became."""
    for attempt in itertools.count():
        guard = f"{name}, attempt {attempt}"
        ledger.create(guard, {}, FIRST)
        lines, outcomes = asked_by_three(ledger, guard, line)
        if lines > 300 or isinstance(outcomes[0], Stop):
            return lines, guard, outcomes
    raise AssertionError


@pytest.mark.slow
def test_a_leader_that_is_stopped_at_any_line_leaves_nobody_waiting(ledger: SQLLedger) -> None:
    lines, *_ = led_by_the_first(ledger, "count", 10**9)
    stopped, told, answered = [0, 0, 0, 0], 0, 0
    step = 3 if ledger.database.on_server else 1
    for line in range(1, lines + 1, step):
        guard, outcomes = led_by_the_first(ledger, f"guard {line}", line)[1:]
        assert all(isinstance(outcome, Entry | Stop) for outcome in outcomes), (line, outcomes)
        for number, outcome in enumerate(outcomes):
            stopped[number] += isinstance(outcome, Stop)
        stored = ledger.entries(guard)
        names = [entry.name for entry in stored]
        assert len(set(names)) == len(names), f"charged twice after a stop at line {line}"
        got = {outcome for outcome in outcomes if isinstance(outcome, Entry)}
        assert got <= set(stored)
        told += len(got)
        answered += len(stored)
        assert_consistent(ledger, guard)
        ledger.verify(guard)
        ledger.ask(guard, None, 0.5, "after", Mechanism())
    assert stopped[0] > 300 // step - 1
    assert stopped[3] == 0
    assert sum(stopped[1:]) <= 12  # two at the six lines at most that are between the ledger and their mechanisms
    assert told < answered < told + stopped[0]  # some were stopped when all was stored


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_exceptions_thrown_at_any_moment_stop_their_threads_only(ledger: SQLLedger) -> None:
    """As a library for time limits throws them; whoever is hit asks again.

    A moment can be one in which a thread runs a finalizer, of garbage of other tests too: Python reports the exception
    and goes on, and the thread is not hit.
    """
    ledger.create(GUARD, {}, FIRST)
    end = threading.Event()
    answers: list[Entry] = []
    kept: list[BaseException] = []

    def ask() -> None:
        while not end.is_set():
            try:
                while not end.is_set():
                    answers.append(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0])
            except (Stop, LedgerUnusable) as error:
                kept.append(error)

    def ask_whatever_comes() -> None:
        while not end.is_set():
            try:
                ask()
            except Stop as error:  # a second one, while the first was being kept
                kept.extend((error, error))

    threads = [threading.Thread(target=ask_whatever_comes, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    moments = random.Random(0)
    thrown = 0
    until = time.monotonic() + PATIENCE
    while (thrown < 150 or len(kept) <= 20) and time.monotonic() < until:
        time.sleep(moments.uniform(0.0, 0.01))
        target = moments.choice(threads)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target.ident or 0), ctypes.py_object(Stop))
        thrown += 1
    count = len(answers)
    try:
        wait_until(lambda: len(answers) >= count + 20)
    finally:
        end.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert sum(isinstance(error, Stop) for error in kept) > 20
    stored = ledger.entries(GUARD)
    assert set(answers) <= set(stored)
    assert len(stored) <= len(answers) + len(kept)
    assert_consistent(ledger)
    ledger.verify(GUARD)


@pytest.mark.slow
def test_a_child_forked_in_the_middle_of_a_query_stores_nothing(ledger: SQLLedger) -> None:
    """It comes back from the mechanism too, with its parent's connection in its hands."""
    ledger.create(GUARD, {}, FIRST)
    parent = os.getpid()
    children: list[int] = []

    def compute(state: str) -> tuple[str, Entry]:
        child = os.fork()
        if child:
            children.append(child)
            assert os.waitpid(child, 0)[1] == 0
        return Mechanism()(state)

    try:
        entry, _ = ledger.ask(GUARD, None, 0.5, "accuracy", compute)
    except LedgerUnusable:
        if os.getpid() != parent:
            os._exit(0)
        raise
    finally:
        if os.getpid() != parent:
            os._exit(1)
    assert len(children) == 1
    assert ledger.entries(GUARD) == [entry]
    assert_consistent(ledger)
    ledger.verify(GUARD)
