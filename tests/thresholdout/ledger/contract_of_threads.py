"""The part of the contract of a ledger that is about threads and interrupts; `LedgerContract` has it."""

from __future__ import annotations

import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import pytest

from tests.patience import PATIENCE
from tests.sizes import sizes
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.errors import (
    InputError,
    LedgerClosed,
    LedgerError,
    LedgerMismatch,
)
from thresholdout.ledger import Ledger
from thresholdout.ledger.entry import Entry

OTHER = "another guard"


class ThreadsContract:
    """Subclasses have a fixture ``ledger``, with one guard in it."""

    def test_queries_from_threads_come_one_at_a_time(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        self.in_threads(8, lambda _: [ledger.ask(GUARD, None, 0.5, "accuracy", mechanism) for _ in range(25)])
        assert len(ledger.entries(GUARD)) == 200
        assert len(set(mechanism.states)) == 200
        assert_consistent(ledger)

    def test_a_key_asked_by_many_threads_is_charged_once(self, ledger: Ledger) -> None:
        mechanism = Mechanism()
        answers = []
        self.in_threads(8, lambda _: answers.append(ledger.ask(GUARD, "a", 0.5, "accuracy", mechanism)))
        assert len({entry for entry, _ in answers}) == 1
        assert sorted(repeated for _, repeated in answers) == [False] + [True] * 7
        assert len(mechanism.states) == 1

    def in_threads(self, count: int, work: Callable[[int], object]) -> None:
        errors: list[BaseException] = []

        def run(number: int) -> None:
            try:
                work(number)
            except BaseException as error:
                errors.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        finally:
            sys.setswitchinterval(interval)
        assert errors == []

    def test_a_query_that_fails_harms_no_other_in_its_transaction(self, ledger: Ledger) -> None:
        """Half of the threads are refused in all ways that there are; the others get what they asked for."""

        def failing(state: str) -> tuple[str, Entry]:
            raise KeyboardInterrupt("on purpose")

        def misnumbering(state: str) -> tuple[str, Entry]:
            state, entry = Mechanism()(state)
            return state, replace(entry, query=entry.query + 1)

        def asking(state: str) -> tuple[str, Entry]:
            ledger.ask(GUARD, None, 0.5, "inner", Mechanism())
            return Mechanism()(state)

        ledger.create(OTHER, {}, FIRST)
        ledger.close_guard(OTHER, "for the test")
        known, _ = ledger.ask(GUARD, "known", 0.5, "accuracy", Mechanism())
        answers: list[Entry] = []

        def work(number: int) -> None:
            for _ in range(10):
                if number == 0:
                    with pytest.raises(KeyboardInterrupt, match="on purpose"):
                        ledger.ask(GUARD, None, 0.5, "accuracy", failing)
                elif number == 1:
                    with pytest.raises(LedgerError, match="numbered query"):
                        ledger.ask(GUARD, None, 0.5, "accuracy", misnumbering)
                elif number == 2:
                    with pytest.raises(LedgerError, match="The mechanism used the ledger"):
                        ledger.ask(GUARD, None, 0.5, "accuracy", asking)
                elif number == 3:
                    with pytest.raises(InputError, match="was asked with train value"):
                        ledger.ask(GUARD, "known", 0.25, "accuracy", Mechanism())
                elif number == 4:
                    with pytest.raises(LedgerClosed):
                        ledger.ask(OTHER, None, 0.5, "accuracy", Mechanism())
                    with pytest.raises(LedgerMismatch):
                        ledger.ask("nobody", None, 0.5, "accuracy", Mechanism())
                else:
                    answers.append(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0])

        self.in_threads(8, work)
        assert len(answers) == 30
        assert ledger.entries(GUARD) == [known, *sorted(answers, key=lambda entry: entry.query)]
        assert_consistent(ledger)
        assert ledger.verify(GUARD) == 31

    @sizes("times", 20, 60)
    def test_an_interrupt_of_the_main_thread_stops_no_other(self, ledger: Ledger, times: int) -> None:
        class Interrupt(BaseException):
            pass

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise Interrupt

        answers: list[list[Entry]] = [[] for _ in range(4)]
        end = threading.Event()

        def work(number: int) -> None:
            while not end.is_set():
                answers[number].append(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        moments = random.Random(0)
        interrupts = 0
        handler = signal.signal(signal.SIGALRM, interrupt)
        gc.disable()  # an interrupt in a callback of the collector would be swallowed
        try:
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + PATIENCE
            while interrupts < times or (not all(answers) and time.monotonic() < deadline):
                try:
                    # Again after a moment, should somebody between here and the query swallow the first interrupt.
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 5e-3) * (1 + interrupts // times), 0.2)
                    answers[3].extend(ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0] for _ in range(10_000))
                except Interrupt:
                    interrupts += 1
        finally:
            gc.enable()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            end.set()
            for thread in threads:
                thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads)
        assert interrupts >= times
        got = [entry for list_ in answers for entry in list_]
        stored = ledger.entries(GUARD)
        assert set(got) <= set(stored)
        assert len(got) <= len(stored) <= len(got) + interrupts
        assert all(len(list_) > 0 for list_ in answers)
        assert_consistent(ledger)
