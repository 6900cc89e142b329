"""Any interleaving of queries, repeats, crashes and reopenings keeps the guard's promises."""

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.oracles.noise_doubles import LaplaceOnly
from thresholdout import Answer, BudgetExhausted, SparseVector, Thresholdout
from thresholdout.ledger import Ledger, open_ledger

N, BUDGET, QUERIES = 200, 3, 12
HOLDOUT = np.arange(float(N))


class PowerCut(BaseException):
    """The process dies here."""


class FailingNoise(LaplaceOnly):
    """Noise that fails at a chosen draw, as a process that dies in the middle of a query."""

    for_release = True

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.fail_at: int | None = None

    def laplace(self, scale: Fraction) -> int:
        if self.fail_at is not None:
            self.fail_at -= 1
            if self.fail_at < 0:
                self.fail_at = None
                raise PowerCut
        return round(self._rng.laplace(scale=float(scale)))


class GuardMachine(RuleBasedStateMachine):
    """A guard in a file, and what an honest bookkeeper remembers of it."""

    ledger: Ledger
    guard: Thresholdout

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.noise = FailingNoise(seed)
        self.answers: dict[str, Answer] = {}
        self.remaining = BUDGET
        self.count = 0
        self.reopen()

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
            shutil.rmtree(self.folder)

    @rule()
    def reopen(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()
        self.ledger = open_ledger(self.folder / "guard.db")
        self.guard = Thresholdout(
            HOLDOUT,
            queries=QUERIES,
            mechanism=SparseVector(0.1, 0.02, budget=BUDGET),
            ledger=self.ledger,
            random_state=self.noise,
        )

    @rule(key=st.sampled_from("abcdefghijklmnopqrstuvw"), train=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    def ask(self, key: str, train: float) -> None:
        known = self.answers.get(key)
        if known is not None:
            train = 0.5 if known.name == "half" else float(known.name)
        name = "half" if train == 0.5 else str(train)
        try:
            answer = self.guard.ask(train, HOLDOUT < 100, key=key, name=name)
        except BudgetExhausted:
            assert known is None
            assert self.remaining == 0 or self.count == QUERIES
            return
        if known is not None:
            assert answer.repeated
            assert (answer.value, answer.source, answer.query) == (known.value, known.source, known.query)
            return
        self.count += 1
        self.remaining -= answer.source == "holdout"
        assert answer.query == self.count
        assert answer.remaining == self.remaining
        self.answers[key] = answer

    @rule(draw=st.integers(0, 2), train=st.sampled_from([0.0, 0.5]))
    def die_before_commit(self, draw: int, train: float) -> None:
        self.noise.fail_at = draw
        try:
            answer = self.guard.ask(train, HOLDOUT < 100, key=f"lost {self.count} {train}", name=str(train))
        except PowerCut:
            self.reopen()
        except BudgetExhausted:
            self.noise.fail_at = None
        else:  # the query needed fewer draws: it was answered
            self.noise.fail_at = None
            if not answer.repeated:
                self.count += 1
                self.remaining -= answer.source == "holdout"
                self.answers[f"lost {self.count - 1} {train}"] = answer

    @precondition(lambda self: self.remaining > 0 and self.count < QUERIES)
    @rule()
    def die_after_commit(self) -> None:
        key = f"unseen {self.count}"
        self.guard.ask(0.0, HOLDOUT < 100, key=key, name="0.0")  # the answer gets lost
        self.reopen()
        answer = self.guard.ask(0.0, HOLDOUT < 100, key=key, name="0.0")
        assert answer.repeated
        self.count += 1
        self.remaining -= answer.source == "holdout"
        assert answer.query == self.count
        self.answers[key] = answer

    @invariant()
    def the_ledger_agrees_with_the_bookkeeper(self) -> None:
        if not hasattr(self, "guard"):
            return
        assert self.guard.status.answers_left == self.remaining >= 0
        history = self.guard.history
        assert len(history) == self.count == len(self.answers)
        values = dict(zip(history["key"], history["value"], strict=True))
        assert values == {key: answer.value for key, answer in self.answers.items()}
        assert int((history["source"] == "holdout").sum()) == BUDGET - self.remaining


class LongGuardMachine(GuardMachine):
    """The same, with more and longer interleavings."""


GuardMachine.TestCase.settings = settings(max_examples=2, stateful_step_count=10, deadline=None)
TestGuard = GuardMachine.TestCase
LongGuardMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestGuardForLong = pytest.mark.slow(LongGuardMachine.TestCase)
