"""Analysts, who choose each query from the answers to earlier ones.

All implement `thresholdout.simulation.simulated_session.Analyst`: they see the training part and the answers, never
the holdout. Features and labels are booleans here unless stated otherwise.
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
    """Return the query for the rate at which an attribute agrees with the label."""

    def query(part: Part) -> NDArray[np.bool_]:
        agrees: NDArray[np.bool_] = part.features[:, column] == part.labels
        return agrees

    return query


@dataclass(frozen=True)
class Vote:
    """A weighted vote of attributes; as a query, its accuracy. A negative weight inverts an attribute."""

    columns: NDArray[np.intp]
    weights: NDArray[np.float64]

    def predict(self, features: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the vote for each record; a tie counts as False."""
        chosen = features[:, self.columns].astype(np.float32)  # a product of booleans would not use BLAS
        total = 2.0 * (chosen @ self.weights.astype(np.float32)) - np.float32(self.weights.sum())
        # Sums in single precision may miss a tie by less than this part of the weights.
        vote: NDArray[np.bool_] = total > 1e-5 * float(np.abs(self.weights).sum())
        return vote

    def __call__(self, part: Part) -> NDArray[np.bool_]:
        """Return whether the vote is right for each record."""
        right: NDArray[np.bool_] = self.predict(part.features) == part.labels
        return right


@dataclass(frozen=True)
class AggregationAnalyst:
    """Analyst that overfits the holdout: it scores many weak rules, inverts the bad ones, and lets all of them vote.

    This is the leaderboard attack of Blum and Hardt. It also shows the effect of combining variants that did well on
    the holdout. Each rule is hardly better than chance, but the sides of the rules were chosen to agree with the
    holdout. The vote therefore fits the holdout far better than the population. Pass the analyst to `interview` or
    `simulate`.

    Parameters
    ----------
    rules : int, optional
        Number of attributes to query, each of which is a rule. If None, all attributes.

    References
    ----------
    A. Blum, M. Hardt, "The Ladder: a reliable leaderboard for machine learning competitions", ICML 2015.

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> part = [Part(rng.random((500, 400)) < 0.5, rng.random(500) < 0.5) for _ in range(3)]
    >>> session = interview(AggregationAnalyst(), NaiveReuse(), part[0], part[1], rng, lambda q: q(part[2]).mean())
    >>> bool(session.reported.holdout > 0.7), bool(abs(session.reported.truth - 0.5) < 0.06)
    (True, True)
    """

    rules: int | None = None

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Vote:
        """Query the accuracy of every rule, and then the accuracy of their vote.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with boolean ``features`` and ``labels``.
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        Vote
            The vote of all rules, which can be called as a query.
        """
        count = train.features.shape[1] if self.rules is None else min(self.rules, train.features.shape[1])
        scores = np.array([ask(agreement(column)).value for column in range(count)])
        vote = Vote(np.arange(count), np.where(scores >= 0.5, 1.0, -1.0))
        ask(vote)
        return vote


@dataclass(frozen=True)
class BenignSearch:
    """Analyst that searches honestly: it builds candidates from the training part and chooses one by the answers.

    Candidate j is a vote of the attributes whose agreement with the label differs most from one half on the training
    part. The number of attributes grows with j. Only the choice at the end depends on the answers. Pass the analyst to
    `interview` or `simulate`.

    Parameters
    ----------
    candidates : int, default 20
        Number of candidates. It is smaller if there are fewer attributes.
    validated : bool, default False
        If True, candidates are built from the first half of the training part, and their training value is the accuracy
        on the second half. If False, both use the whole training part. Candidates then look too good on the records
        from which they were built, and a guard spends its budget on such values.

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
        """Query the accuracy of every candidate, and then the best candidate again.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with boolean ``features`` and ``labels``.
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        Vote
            The candidate with the largest answer, which can be called as a query.
        """
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
    """Analyst that queries single attributes and, now and then, a classifier built from all earlier answers.

    This is the analyst of [R20]_. It queries the classifier at every square number of queries. The classifier is a
    vote, in which each attribute has the weight ``ln(a / (1 - a))`` of a naive Bayes classifier for the answer a. Pass
    the analyst to `interview` or `simulate`.

    Parameters
    ----------
    queries : int
        Number of queries.
    claim : float, optional
        Training value that is claimed for each query, such as the true value 1/2. If None, the value on the training
        part.

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
        """Query attributes and classifiers until the number of queries is reached.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with boolean ``features`` and ``labels``.
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        Vote
            The last classifier, which can be called as a query.
        """
        columns: list[int] = []
        weights: list[float] = []
        vote = Vote(np.zeros(0, dtype=np.intp), np.zeros(0))
        for asked in range(1, self.queries + 1):
            if asked > 1 and math.isqrt(asked) ** 2 == asked:
                vote = Vote(np.array(columns, dtype=np.intp), np.array(weights))
                ask(vote, self.claim)
                continue
            column = len(columns) % train.features.shape[1]
            # Keeps the weight finite.
            answer = min(max(ask(agreement(column), self.claim).value, 1e-6), 1 - 1e-6)
            columns.append(column)
            weights.append(math.log(answer / (1 - answer)))
        return vote
