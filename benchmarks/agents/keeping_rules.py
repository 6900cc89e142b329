"""Rules for what an agent keeps, each with a look at one slice of records, and what they report at the end.

Published numbers are used where there are some: T = 0.04 and sigma = 0.01. The variant that a public test called
"thresholdout" is read as: the training score is the score on the records that a pipeline was fitted to; the holdout's
score is told, as it is, if both differ by more than T and Laplace noise of scale sigma, else the training score; there
is no budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.agents.pipeline_edits import Fitted, Labels
from benchmarks.agents.small_tasks import Task
from thresholdout import Thresholdout
from thresholdout.mechanisms import DWORK_RATIOS, SparseVectorMechanism, SparseVectorParameters
from thresholdout.noise.sources import SeededNoise

__all__ = ["RULES", "Record", "Recorded", "Report", "Rule"]

THRESHOLD: Final = 0.04
SIGMA: Final = 0.01


class Recorded:
    """A fitted model whose predictions are known: records are their numbers."""

    def __init__(self, predictions: Labels) -> None:
        self.predictions = predictions

    def fit(self, X: object, y: object) -> Recorded:
        return self

    def predict(self, X: Any) -> Labels:
        return self.predictions[np.asarray(X)[:, 0].astype(np.intp)]


class Record(NamedTuple):
    """One slice of a task's records, and all that was fitted.

    Attributes
    ----------
    task : Task
    members : list of Fitted
    part : ndarray
        Numbers of the records in the slice.
    proposals : int
        How many there will be.
    seed : int
        Of the noise.
    """

    task: Task
    members: list[Fitted]
    part: NDArray[np.intp]
    proposals: int
    seed: int

    def refitted(self, member: int) -> float:
        """Return the score on the records that the pipeline was fitted to."""
        return float(np.mean(self.members[member].refitted == self.task.y[: self.task.train]))

    def cross_validated(self, member: int) -> float:
        """Return the cross-validated score on the training part."""
        return self._right(member, np.arange(self.task.train))

    def holdout(self, member: int) -> float:
        """Return the score on the slice."""
        return self._right(member, self.part)

    def _right(self, member: int, rows: NDArray[np.intp]) -> float:
        return float(np.mean(self.members[member].predictions[rows] == self.task.y[rows]))

    def guard(self) -> Thresholdout:
        """Return a guard of the slice, whose last query is a final check."""
        rows = np.arange(self.task.train)
        return Thresholdout(
            (self.part[:, None], self.task.y[self.part]),
            train=(rows[:, None], self.task.y[rows]),
            queries=self.proposals + 1,
            sampling="iid",
            final_check=True,
            random_state=self.seed,
        )

    def model(self, member: int) -> Recorded:
        """Return what a guard takes for a fitted model."""
        return Recorded(self.members[member].predictions)


class Report(NamedTuple):
    """What is said of the model at the end: its score, the half-width if there is one, and certificates on the way."""

    score: float
    half_width: float = math.nan
    certified: tuple[tuple[int, int], ...] = ()


class Rule(Protocol):
    """Keeps or rejects proposals; member 0 is what there was."""

    def keep(self, member: int) -> bool:
        """Say whether a proposal becomes the champion."""
        ...

    def report(self) -> Report:
        """Say how good the champion is."""
        ...


class Highest:
    """Keep what has a higher score than the champion, by more than a margin.

    Parameters
    ----------
    score : callable
        What is told of a member.
    margin : callable, optional
        By how much more a proposal must score, given the champion's score.
    """

    def __init__(self, score: Callable[[int], float], margin: Callable[[float], float] = lambda score: 0.0) -> None:
        self._score, self._margin = score, margin
        self._best = score(0)

    def keep(self, member: int) -> bool:
        score = self._score(member)
        if score <= self._best + self._margin(self._best):
            return False
        self._best = score
        return True

    def report(self) -> Report:
        return Report(self._best)


def holdout(record: Record) -> Rule:
    """Keep what is better on the slice."""
    return Highest(record.holdout)


def one_sigma(record: Record) -> Rule:
    """Keep what is better on the slice by one standard error of the champion's score."""
    n = len(record.part)
    return Highest(record.holdout, lambda score: math.sqrt(score * (1.0 - score) / n))


def variant(record: Record) -> Rule:
    """Keep by the scores that a public test's variant tells."""
    rng = np.random.default_rng([record.seed, 1])  # another stream than the proposer's

    def told(member: int) -> float:
        train, held = record.refitted(member), record.holdout(member)
        return held if abs(train - held) > THRESHOLD + rng.laplace(scale=SIGMA) else train

    return Highest(told)


def algorithm_1(train: Callable[[Record, int], float]) -> Callable[[Record], Rule]:
    """Keep by the scores that Algorithm 1 tells, with published threshold, noise and noise ratios, without a budget."""

    def make(record: Record) -> Rule:
        noise = SeededNoise(record.seed)
        mechanism = SparseVectorMechanism(SparseVectorParameters(THRESHOLD, SIGMA, None, None, None, DWORK_RATIOS))
        state = mechanism.start(noise)

        def told(member: int) -> float:
            nonlocal state
            state, answered = mechanism.step(state, train(record, member), record.holdout(member), noise)
            return answered.value

        return Highest(told)

    return make


class CrossValidation(Highest):
    """Keep what cross-validation prefers; look at the slice once, at the end, or never."""

    def __init__(self, record: Record, check: bool) -> None:
        super().__init__(record.cross_validated)
        self._record, self._check, self._kept = record, check, 0

    def keep(self, member: int) -> bool:
        kept = super().keep(member)
        self._kept = member if kept else self._kept
        return kept

    def report(self) -> Report:
        if not self._check:
            return super().report()
        answer = self._record.guard().final_check(self._record.model(self._kept), cv="training")
        return Report(answer.value, answer.half_width)


class Scores:
    """Keep what a guard's answer calls better."""

    def __init__(self, record: Record) -> None:
        self._record, self._guard = record, record.guard()
        self._best = self._answer(0)
        self._kept = 0

    def _answer(self, member: int) -> Any:
        return self._guard.score(self._record.model(member), cv="training")

    def keep(self, member: int) -> bool:
        answer = self._answer(member)
        if answer.value <= self._best.value:
            return False
        self._best, self._kept = answer, member
        return True

    def report(self) -> Report:
        answer = self._guard.final_check(self._record.model(self._kept), cv="training")
        return Report(answer.value, answer.half_width)


class Gated:
    """Keep what a gate of a guard keeps, and end with a final check."""

    def __init__(self, record: Record, certify: Any) -> None:
        self._record, self._guard = record, record.guard()
        self._gate = self._guard.gate(record.model(0), certify=certify)
        self._kept = self._certified = 0
        self._claims: list[tuple[int, int]] = []

    def keep(self, member: int) -> bool:
        decision = self._gate.propose(self._record.model(member), cv="training")
        if decision:
            self._kept = member
        if decision.certified:
            self._claims.append((self._certified, member))
            self._certified = member
        return bool(decision)

    def report(self) -> Report:
        answer = self._guard.final_check(self._gate.champion, cv="training")
        return Report(answer.value, answer.half_width, tuple(self._claims))


RULES: Final[dict[str, Callable[[Record], Rule]]] = {
    "none": holdout,
    "one sigma": one_sigma,
    "the test's variant": variant,
    "Algorithm 1, training scores": algorithm_1(Record.refitted),
    "Algorithm 1, cross-validated": algorithm_1(Record.cross_validated),
    "cross-validation": lambda record: CrossValidation(record, check=False),
    "cross-validation, final check": lambda record: CrossValidation(record, check=True),
    "guard, scores": Scores,
    "guard, gate": lambda record: Gated(record, "each"),
    "guard, milestones": lambda record: Gated(record, "milestones"),
}
"""All rules, by name."""
