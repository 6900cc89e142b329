"""The privacy loss of unequal randomised responses, all sums of losses one by one where they are few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP, down_relative, up_relative
from thresholdout.privacy.accounting.binomial_probabilities import logistic, window
from thresholdout.privacy.accounting.parameter_sums import TINY, sum_up, tail_slack

__all__ = ["MOST_SUMS", "EverySum"]

Floats = NDArray[np.float64]

MOST_SUMS = 2**20


class EverySum:
    """Hockey-stick divergence of groups of equal randomised responses, by enumeration.

    Parameters
    ----------
    eps : ndarray, shape (groups,)
        Above 0, all different.
    counts : ndarray of int, shape (groups,)
        Responses in each group; the product of all ``count + 1`` must be at most `MOST_SUMS`.
    """

    def __init__(self, eps: Floats, counts: NDArray[np.int64]) -> None:
        losses, masses = np.zeros(1), np.ones(1)
        relative = 0.0
        for value, trials in zip(eps.tolist(), counts.tolist(), strict=True):
            first, chances, _ = window(trials, *logistic(value))
            each = (2.0 * (first + np.arange(chances.size)) - trials) * value
            losses = np.add.outer(losses, each).ravel()
            with np.errstate(under="ignore"):
                masses = np.multiply.outer(masses, chances).ravel()
            relative += tail_slack(trials)
        order = np.argsort(-losses)
        self._below, self._masses = -losses[order], masses[order]
        self._relative = relative + 1e-14
        self.largest = sum_up(eps.tolist(), counts.tolist())
        self._shift = (eps.size + 4) * ULP * self.largest  # at least the rounding error of a sum of losses

    def _divergence(self, e: float) -> float:
        seen = int(np.searchsorted(self._below, -e))
        with np.errstate(under="ignore"):
            return float((self._masses[:seen] * -np.expm1(e + self._below[:seen])).sum())

    def lower(self, e: float) -> float:
        """Return a lower bound on the divergence at e."""
        return down_relative(self._divergence(e + self._shift + abs(e) * ULP), self._relative)

    def upper(self, e: float) -> float:
        """Return an upper bound on the divergence at e."""
        if e >= self.largest:
            return 0.0
        return min(1.0, up_relative(self._divergence(e - self._shift - abs(e) * ULP), self._relative) + TINY)
