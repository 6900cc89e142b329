"""Any interleaving of queries, repeats, failures, crashes and reopening leaves every answer as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.errors import BudgetExhausted, InputError, LedgerClosed, LedgerUnusable
from thresholdout.ledger import Ledger, MemoryLedger, SQLLedger
from thresholdout.ledger.entry import Entry

BUDGET = 6
keys = st.sampled_from("abcdefgh")
trains = st.sampled_from([0.25, 0.5])


class Crash(BaseException):
    """The process ends here."""


class MemoryMachine(RuleBasedStateMachine):
    """A ledger beside the list of the answers that it gave."""

    @initialize()
    def start(self) -> None:
        self.answers: dict[str, Entry] = {}
        self.checkpoints: list[str] = []
        self.closed = False
        self.ledger = self.open()
        self.create()

    def open(self) -> Ledger:
        return MemoryLedger()

    @rule()
    def create(self) -> None:
        self.ledger.create(GUARD, {"budget": BUDGET}, FIRST)

    @rule(key=keys, train=trains)
    def ask(self, key: str, train: float) -> None:
        stored = self.answers.get(key)
        mechanism = Mechanism(BUDGET)
        if self.closed:
            with pytest.raises(LedgerClosed):
                self.ledger.ask(GUARD, key, train, "accuracy", mechanism)
        elif stored is not None and stored.train != train:
            with pytest.raises(InputError):
                self.ledger.ask(GUARD, key, train, "accuracy", mechanism)
        elif stored is not None:
            assert self.ledger.ask(GUARD, key, train, "accuracy", mechanism) == (stored, True)
        elif len(self.answers) == BUDGET:
            with pytest.raises(BudgetExhausted):
                self.ledger.ask(GUARD, key, train, "accuracy", mechanism)
        else:
            entry, repeated = self.ledger.ask(GUARD, key, train, "accuracy", mechanism)
            assert not repeated
            assert entry.remaining == BUDGET - len(self.answers) - 1
            self.answers[key] = entry
            return
        assert mechanism.states == []

    @rule(key=keys)
    def crash_before_the_commit(self, key: str) -> None:
        def compute(state: str) -> tuple[str, Entry]:
            Mechanism()(state)
            raise Crash

        if key not in self.answers and not self.closed:
            with pytest.raises(Crash):
                self.ledger.ask(GUARD, key, 0.5, "accuracy", compute)

    @precondition(lambda self: len(self.answers) > BUDGET // 2)
    @rule()
    def close(self) -> None:
        self.ledger.close_guard(GUARD, "for the test")
        self.closed = True

    @rule(key=keys)
    def find(self, key: str) -> None:
        assert self.ledger.find(GUARD, key) == self.answers.get(key)

    @rule()
    def keep_the_checkpoint(self) -> None:
        self.checkpoints.append(self.ledger.checkpoint(GUARD))

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert self.ledger.entries(GUARD) == list(self.answers.values())
        assert_consistent(self.ledger)
        for checkpoint in (None, *self.checkpoints[-2:]):
            assert self.ledger.verify(GUARD, checkpoint) == len(self.answers)

    def teardown(self) -> None:
        self.ledger.close()


class FileMachine(MemoryMachine):
    """The same with a file, which outlives its ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def open(self) -> Ledger:
        return SQLLedger(Path(self.folder.name, "guard.db"), timeout=0.01)

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = self.open()

    @rule()
    def open_beside(self) -> None:
        self.ledger = self.open()

    @rule(key=keys)
    def lose_the_answer_after_the_commit(self, key: str) -> None:
        """The process ends with the answer stored and not read; asking again must give the stored one."""
        if key not in self.answers and len(self.answers) < BUDGET and not self.closed:
            with self.open() as process:
                process.ask(GUARD, key, 0.5, "accuracy", Mechanism(BUDGET))
            entry, repeated = self.ledger.ask(GUARD, key, 0.5, "accuracy", Mechanism(BUDGET))
            assert repeated
            self.answers[key] = entry

    @rule(key=keys)
    def lock_another_process_out(self, key: str) -> None:
        def compute(state: str) -> tuple[str, Entry]:
            self.open()
            raise Crash

        if key not in self.answers and not self.closed:
            with pytest.raises(LedgerUnusable):
                self.ledger.ask(GUARD, key, 0.5, "accuracy", compute)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("machine", [MemoryMachine, FileMachine])
def test_any_interleaving(machine: type[MemoryMachine]) -> None:
    machine.TestCase.settings = settings(
        max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    machine.TestCase("runTest").runTest()
