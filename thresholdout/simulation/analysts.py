"""Analysts: they ask queries, and choose the next one from the answers.

All have one contract, `thresholdout.simulation.simulated_session.Analyst`: they get the training part and the answers,
never the holdout. Features and labels are booleans here unless it is said otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.simulation.simulated_session import Asking, Part, Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AggregationAnalyst", "BenignSearch", "QuadraticAnalyst", "Vote", "agreement"]


def agreement(column: int) -> Query:
    """Return the query how often an attribute agrees with the label.

    Examples
    --------
    >>> agreement(0)(Part(np.array([[True], [False]]), np.array([True, True])))
    array([ True, False])
    """

    def query(part: Part) -> NDArray[np.bool_]:
        agrees: NDArray[np.bool_] = part.features[:, column] == part.labels
        return agrees

    return query


@dataclass(frozen=True)
class Vote:
    """A weighted vote of attributes; as a query, how often it is right.

    Parameters
    ----------
    columns : ndarray of int, shape (k,)
        Which attributes vote.
    weights : ndarray, shape (k,)
        Weight of each; a negative one turns the attribute around.

    Examples
    --------
    >>> part = Part(np.array([[True, False], [False, False]]), np.array([True, True]))
    >>> Vote(np.array([0, 1]), np.array([2.0, -1.0]))(part)
    array([ True, False])
    """

    columns: NDArray[np.intp]
    weights: NDArray[np.float64]

    def predict(self, features: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the vote for each record; a tie counts as False."""
        chosen = features[:, self.columns].astype(np.float32)  # a product of booleans would not use BLAS
        total = 2.0 * (chosen @ self.weights.astype(np.float32)) - np.float32(self.weights.sum())
        vote: NDArray[np.bool_] = total > 1e-5 * float(np.abs(self.weights).sum())
        return vote

    def __call__(self, part: Part) -> NDArray[np.bool_]:
        """Return for each record whether the vote is right."""
        right: NDArray[np.bool_] = self.predict(part.features) == part.labels
        return right


@dataclass(frozen=True)
class AggregationAnalyst:
    """Scores many weak rules, turns each to the side that scores better, and lets them vote.

    The attack of Blum and Hardt on a leaderboard, and what anyone does who keeps the variants that did well on the
    holdout: each rule is hardly better than chance, but their errors have been chosen to agree with the holdout, so the
    vote fits it far better than it fits the world.

    Parameters
    ----------
    rules : int, optional
        How many attributes are asked for; all when left out.

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> part = [Part(rng.random((500, 400)) < 0.5, rng.random(500) < 0.5) for _ in range(3)]
    >>> session = interview(AggregationAnalyst(), NaiveReuse(), part[0], part[1], rng, lambda q: q(part[2]).mean())
    >>> bool(session.reported.holdout > 0.7), bool(abs(session.reported.truth - 0.5) < 0.06)
    (True, True)

    References
    ----------
    A. Blum, M. Hardt, "The Ladder: a reliable leaderboard for machine learning leaderboards", ICML 2015.
    """

    rules: int | None = None

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Vote:
        """Ask for the accuracy of every rule, then for that of the vote."""
        count = train.features.shape[1] if self.rules is None else min(self.rules, train.features.shape[1])
        scores = np.array([ask(agreement(column)).value for column in range(count)])
        vote = Vote(np.arange(count), np.where(scores >= 0.5, 1.0, -1.0))
        ask(vote)
        return vote


@dataclass(frozen=True)
class BenignSearch:
    """An honest search: a few candidates made from the training part, and the best of them by their answers.

    Candidate j lets the attributes vote whose agreement with the label differs most from one half on the training
    part, more of them for every j. Nothing but the choice at the end depends on answers.

    Parameters
    ----------
    candidates : int, default=20
        How many are compared.
    validated : bool, default=False
        Make candidates from the first half of the training part, and claim their accuracy on the second: candidates
        look better than they are on the records that made them, and a guard spends its budget on such values.

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((2, 500)) < 0.5
    >>> noise = rng.random((2, 500, 10)) < 0.4
    >>> train, holdout = (Part(y[:, None] ^ flipped, y) for y, flipped in zip(labels, noise))
    >>> session = interview(BenignSearch(5), NaiveReuse(), train, holdout, rng)
    >>> session.answered, bool(session.reported.holdout > 0.7)
    (6, True)
    """

    candidates: int = 20
    validated: bool = False

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Vote:
        """Ask for the accuracy of every candidate, then for the best one again."""
        half = len(train) // 2 if self.validated else len(train)
        made = Part(train.features[:half], train.labels[:half])
        rest = Part(train.features[half:], train.labels[half:])
        lean = np.mean(made.features == made.labels[:, None], axis=0) - 0.5
        order = np.argsort(-np.abs(lean), kind="stable")
        sizes = np.unique(np.linspace(1, len(order), self.candidates).round().astype(int))
        votes = [Vote(order[:size], np.sign(lean[order[:size]])) for size in sizes]
        claims = [float(vote(rest).mean()) if self.validated else None for vote in votes]
        best = int(np.argmax([ask(vote, claim).value for vote, claim in zip(votes, claims, strict=True)]))
        ask(votes[best], claims[best])
        return votes[best]


@dataclass(frozen=True)
class QuadraticAnalyst:
    """Asks about single attributes, and at every square number for a classifier built from all answers so far.

    The analyst of [R20]_: attributes get the weights ``ln(a / (1 - a))`` of a naive Bayes classifier, a the answer. She
    claims that the truth is 1/2 where she is asked for a training value, or takes that of the training part.

    Parameters
    ----------
    queries : int
        How many are asked.
    claim : float, optional
        What she claims as training value; that of the training part when left out.

    References
    ----------
    .. [R20] R. Rogers et al., "Guaranteed validity for empirical approaches to adaptive data analysis", 2020.

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = (Part(rng.random((500, 100)) < 0.5, rng.random(500) < 0.5) for _ in range(2))
    >>> session = interview(QuadraticAnalyst(100), NaiveReuse(), train, holdout, rng, truth=0.5)
    >>> session.answered, bool(session.history[99].holdout > 0.6)
    (100, True)
    """

    queries: int
    claim: float | None = None

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Vote:
        """Ask, and return the last classifier."""
        columns: list[int] = []
        weights: list[float] = []
        vote = Vote(np.zeros(0, dtype=np.intp), np.zeros(0))
        for asked in range(1, self.queries + 1):
            if asked > 1 and math.isqrt(asked) ** 2 == asked:
                vote = Vote(np.array(columns, dtype=np.intp), np.array(weights))
                ask(vote, self.claim)
                continue
            column = len(columns) % train.features.shape[1]
            answer = min(max(ask(agreement(column), self.claim).value, 1e-6), 1 - 1e-6)
            columns.append(column)
            weights.append(math.log(answer / (1 - answer)))
        return vote
