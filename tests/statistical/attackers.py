"""Attackers that every mechanism behind a guard has to survive.

Each attacker plays one session against a guard that it has opened by the call that it is given, on records whose law it
knows: so it knows the truth of every query, and says whether some answer was off by more than its half-width. Where
a guard does not serve, its refusal is left to whoever plays.

A new mechanism is attacked by adding it to a table; a new attack, by adding it to `ATTACKERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from graphs import DependenceModel, Groups
from thresholdout import Answer, BudgetExhausted
from thresholdout.mechanisms import (
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.service.prediction_guard import PredictionGuard

__all__ = ["ATTACKERS", "CONFIDENCE", "Attacker", "Guard", "Open", "Session", "Unaccounted"]

CONFIDENCE = 0.9
RECORDS = 300
ATTRIBUTES = 120
CLAIMS = 20
KEPT = 2  # answers from the holdout that are left for the claims


class Guard(Protocol):
    """What attackers need of a guard."""

    @property
    def parameters(self) -> Any:
        """The mechanism's public parameters."""

    def ask(self, train_values: float, holdout_values: Any) -> Answer:
        """Ask one query."""


class Open(Protocol):
    """How attackers open a guard."""

    def __call__(
        self,
        holdout: Any,
        *,
        queries: int,
        seed: int,
        train: Any = None,
        dependence: DependenceModel | None = None,
    ) -> Any:
        """Return a new guard."""

    def serve(self, train: pd.DataFrame, holdout: pd.DataFrame, *, queries: int) -> PredictionGuard:
        """Return a new guard that is asked by id, the label in column ``y``."""


Attacker = Callable[[Open, int], "Session"]


@dataclass
class Session:
    """What happened: how many answers there were, and which of them had an interval without the truth."""

    answers: int = 0
    wrong: list[tuple[float, float, float]] = field(default_factory=list)
    best: float = -np.inf

    @property
    def broken(self) -> bool:
        """Whether some answer was off by more than it said."""
        return bool(self.wrong)

    def ask(self, guard: Guard, train: float, values: NDArray[Any], truth: float) -> Answer | None:
        """Ask, and compare with the truth; ``None`` when the guard answers no more."""
        try:
            answer = guard.ask(float(train), values)
        except BudgetExhausted:
            return None
        self.judge(answer, truth)
        return answer

    def judge(self, answer: Answer, truth: float) -> None:
        """Compare an answer with the truth; that of a ladder with the best truth so far."""
        self.best = max(self.best, truth)
        told = self.best if answer.about == "best" else truth
        self.answers += 1
        if not answer.interval[0] <= told <= answer.interval[1]:
            self.wrong.append((answer.value, answer.half_width, told))

    def count(self, value: float, half_width: float, truth: float) -> None:
        """Compare a value that was told with the truth."""
        self.answers += 1
        if abs(value - truth) > half_width:
            self.wrong.append((value, half_width, truth))


class Unaccounted:
    """A guard as one would make it who forgets that queries depend on answers. Every attacker of answers breaks it.

    It answers with the training value while that is within a threshold of the holdout mean, else with the mean, and
    says half-widths that hold for queries which are fixed in advance.
    """

    def __init__(self, n: int, queries: int) -> None:
        self._radius = float(np.sqrt(np.log(2 * queries / (1 - CONFIDENCE)) / (2 * n)))
        self._threshold = self._radius / 4
        self.parameters = SparseVectorParameters(self._threshold, 1e-6, None, queries)
        self._asked = 0

    def ask(self, train_values: float, holdout_values: Any) -> Answer:
        """Answer."""
        mean, self._asked = float(np.mean(holdout_values)), self._asked + 1
        if abs(mean - train_values) <= self._threshold:
            return self._answer(train_values, self._threshold + self._radius, "train")
        return self._answer(mean, self._radius, "holdout")

    def _answer(self, value: float, half_width: float, source: Literal["train", "holdout"]) -> Answer:
        return Answer(value, (value - half_width, value + half_width), source, self._asked, None)


def group_sizes(open_guard: Open, seed: int) -> Session:
    """Ask whether a record is of a group of odd size, where groups have the sizes 20, ..., 79.

    Dealt out by size, as groups can only be when they are unequal, the groups of odd size make up one of two parts.
    """
    sizes = np.arange(20, 80)
    labels = np.repeat(np.arange(sizes.size), sizes)
    odd = np.repeat(sizes % 2 == 1, sizes)
    guard = open_guard(np.arange(labels.size, dtype=float), queries=2, seed=seed, dependence=Groups(labels))
    session = Session()
    for values in (odd, ~odd):
        session.ask(guard, float(values.mean()), values, float(values.mean()))
    return session


def searched_candidates(open_guard: Open, seed: int) -> Session:
    """Search among good and constant classifiers: every candidate's score is told as that candidate's."""
    rng = np.random.default_rng([seed, 4])
    y = rng.random(2 * RECORDS) < 0.5
    X = np.stack([np.where(rng.random(y.size) < 0.95, y, ~y), rng.random(y.size)], axis=1).astype(float)
    guard = open_guard((X[RECORDS:], y[RECORDS:]), train=(X[:RECORDS], y[:RECORDS]), queries=3, seed=seed)
    stump = DecisionTreeClassifier(max_depth=1)
    constants = [DummyClassifier(strategy="constant", constant=c) for c in (False, True)]
    search = GridSearchCV(Pipeline([("model", stump)]), {"model": [stump, *constants]}, cv=2)
    found, session = GuardedSearchCV(search, guard, report="all").fit(X[:RECORDS], y[:RECORDS]), Session()
    told = zip(found.cv_results_["guarded_score"], found.cv_results_["guarded_half_width"], strict=True)
    for (value, half_width), truth in zip(told, (0.95, 0.5, 0.5), strict=True):
        if not np.isnan(value):
            session.count(float(value), float(half_width), truth)
    return session


def lucky_answers(open_guard: Open, seed: int) -> Session:
    """Name training values that only a lucky attribute agrees with, and let the lucky ones vote.

    Every attribute is right about half of the records in truth. The training values lie above that by as much as an
    agreement allows: where the guard agrees all the same, or tells a larger value, the attribute fits these records.
    The votes of the lucky ones are asked about until the end, each time with the largest training value that may pass.
    """
    signs = _signs(seed)
    guard, session = open_guard(np.arange(RECORDS, dtype=float), queries=ATTRIBUTES + CLAIMS, seed=seed), Session()
    reach = _reach(guard)
    votes: list[NDArray[np.bool_]] = []
    for number, attribute in enumerate(signs):
        answer = session.ask(guard, min(1.0, 0.5 + reach * (1.0 - number % 4 / 8)), attribute, 0.5)
        if answer is None:
            break
        if answer.source == "train" or answer.value > 0.5:
            votes.append(attribute)
        if answer.remaining is not None and answer.remaining <= KEPT:
            break
    _claim_majority(session, guard, votes, reach)
    return session


def harvested_failures(open_guard: Open, seed: int) -> Session:
    """Collect disagreements, which are free of doubt about their side, and ask for their majority at the end."""
    signs = _signs(seed)
    guard, session = open_guard(np.arange(RECORDS, dtype=float), queries=ATTRIBUTES + CLAIMS, seed=seed), Session()
    reach = _reach(guard)
    votes: list[NDArray[np.bool_]] = []
    for number, attribute in enumerate(signs):
        # honest training values at first; then such as disagree about every second time, on either side in turn
        train = 0.5 if number < ATTRIBUTES // 4 else 0.5 + (reach if number % 2 else -reach)
        answer = session.ask(guard, min(1.0, max(0.0, train)), attribute, 0.5)
        if answer is None:
            break
        if answer.source == "holdout":
            votes.append(attribute if answer.value > 0.5 else ~attribute)
        if answer.remaining is not None and answer.remaining <= KEPT:
            break
    _claim_majority(session, guard, votes, reach)
    return session


def _signs(seed: int) -> NDArray[np.bool_]:
    """Draw fair attributes: one row for each, one column for each record."""
    drawn: NDArray[np.bool_] = np.random.default_rng([seed, 5]).random((ATTRIBUTES, RECORDS)) < 0.5
    return drawn


def _reach(guard: Guard) -> float:
    """Return about how far a training value may be from the holdout mean to pass: a public number of the mechanism."""
    parameters = guard.parameters
    if isinstance(parameters, LadderParameters):
        return 0.0
    return float(getattr(parameters, "threshold", None) or 0.0)


def _claim_majority(session: Session, guard: Guard, votes: list[NDArray[np.bool_]], reach: float) -> None:
    """Ask for the majority vote, with training values from an honest one to the highest that may pass."""
    if not votes:
        return
    majority = np.mean(votes[1 - len(votes) % 2 :], axis=0) > 0.5  # of an odd number, so that none is tied
    gain = float(np.mean(majority)) - 0.5  # she could not know it; an attacker who does is the stronger one
    for train in np.linspace(0.5, min(1.0, 0.5 + gain + reach), CLAIMS):
        if session.ask(guard, float(train), majority, 0.5) is None:
            return


ATTACKERS: dict[str, Attacker] = {
    "group sizes": group_sizes,
    "searched candidates": searched_candidates,
    "lucky answers": lucky_answers,
    "harvested failures": harvested_failures,
}
