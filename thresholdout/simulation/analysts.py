"""Analysts: they ask questions, and choose the next one from the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AggregationAnalyst", "Ask"]

Ask = Callable[["NDArray[np.bool_]", "NDArray[np.bool_]"], float]
"""Whoever answers: from per-record values of the training part and of the holdout to one number."""


@dataclass(frozen=True)
class AggregationAnalyst:
    """Scores many weak rules, turns each to the side that scores better, and lets them vote.

    The attack of Blum and Hardt on a leaderboard, and what anyone does who keeps the variants that did well on the
    holdout: each rule is hardly better than chance, but their errors have been chosen to agree with the holdout, so the
    vote fits it far better than it fits the world.

    Parameters
    ----------
    rules : ndarray of bool, shape (n_rules, n_records)
        Each rule's prediction for every record of every part.
    labels : ndarray of bool, shape (n_records,)
        The truth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> analyst = AggregationAnalyst(rng.random((400, 2000)) < 0.5, rng.random(2000) < 0.5)
    >>> train, holdout, fresh = slice(0, 500), slice(500, 1000), slice(1000, 2000)
    >>> vote = analyst.run(lambda train_values, holdout_values: holdout_values.mean(), train, holdout)
    >>> correct = vote == analyst.labels
    >>> bool(correct[holdout].mean() > 0.8), bool(abs(correct[fresh].mean() - 0.5) < 0.06)
    (True, True)

    References
    ----------
    A. Blum, M. Hardt, "The Ladder: a reliable leaderboard for machine learning competitions", ICML 2015.
    """

    rules: NDArray[np.bool_]
    labels: NDArray[np.bool_]

    def run(self, ask: Ask, train: slice, holdout: slice) -> NDArray[np.bool_]:
        """Ask for the accuracy of every rule, and return the vote for every record."""
        votes = np.zeros(self.labels.size)
        for rule in self.rules:
            correct = rule == self.labels
            weight = 1.0 if ask(correct[train], correct[holdout]) >= 0.5 else -1.0
            votes += np.where(rule, weight, -weight)
        vote: NDArray[np.bool_] = votes > 0
        return vote
