"""The exact privacy loss of equal randomised responses, a scaled binomial."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from graphs.numerics.rounding import down_relative, up_relative
from thresholdout.privacy.accounting.binomial_probabilities import logistic, window
from thresholdout.privacy.accounting.parameter_sums import TINY, tail_slack

__all__ = ["EqualSteps"]


class EqualSteps:
    """Hockey-stick divergence of T equal randomised responses.

    Parameters
    ----------
    eps : float
        Of each, above 0.
    T : int
        At least 1.

    Notes
    -----
    The loss is ``(2 K - T) eps`` with K binomial of T trials and ``e^eps/(1+e^eps)``, so the divergence is the sum of
    ``P(K = k) (1 - exp(e - loss))`` over positive gaps between loss and e. Gaps are taken exactly, by fractions, and
    every term is positive: nothing cancels.
    """

    def __init__(self, eps: float, T: int) -> None:
        self._eps = Fraction(eps)
        self._T = T
        success, failure = logistic(eps)
        self._first, self._masses, complete = window(T, success, failure)
        self._left_out = 0.0 if complete else TINY
        self._relative = tail_slack(T)

    @property
    def largest(self) -> float:
        """The largest loss, ``T eps``, rounded up."""
        exact = self._eps * self._T
        nearest = float(exact)
        return math.nextafter(nearest, math.inf) if nearest < exact else nearest

    def _divergence(self, e: float) -> float | None:
        """Return the divergence at e, computed; None where no loss is above e."""
        start = math.floor((Fraction(e) / self._eps + self._T) / 2) + 1  # the first with a positive gap
        if start > self._T:
            return None
        start = max(start, self._first)
        gap = float((2 * start - self._T) * self._eps - Fraction(e))
        masses = self._masses[start - self._first :]
        with np.errstate(under="ignore"):
            terms = masses * -np.expm1(-(gap + 2.0 * float(self._eps) * np.arange(masses.size)))
        return float(terms.sum())

    def lower(self, e: float) -> float:
        """Return a lower bound on the divergence at e."""
        found = self._divergence(e)
        return 0.0 if found is None else down_relative(found, self._relative)

    def upper(self, e: float) -> float:
        """Return an upper bound on the divergence at e."""
        found = self._divergence(e)
        return 0.0 if found is None else min(1.0, up_relative(found, self._relative) + self._left_out + TINY)
