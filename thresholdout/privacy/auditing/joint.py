"""A joint confidence set for the two error rates of an attack."""

from __future__ import annotations

import heapq
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from graphs.numerics.bisection import bisect_each_integer
from thresholdout.privacy.auditing.audit_goals import Goal
from thresholdout.privacy.auditing.probability_limits import approximate_limits

__all__ = ["joint_value"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_SPLITS = 1000
_TOLERANCE = 5e-4  # in nats or, for delta, relative: how much the search may lose
_LEFT_OUT = 1e-9  # share of alpha that tails left out of sums may have


@lru_cache(maxsize=16)
def _log_ways(n: int) -> Floats:
    """Return logarithms of binomial coefficients."""
    k = np.arange(n + 1, dtype=np.float64)
    found: Floats = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    found.setflags(write=False)
    return found


class _Extreme:
    """Outcomes at least as extreme as the one seen, ordered by the limits of Clopper and Pearson.

    With ``x`` false positives there may be up to ``frontier[x]`` false negatives; -1 where no outcome is as extreme.
    The frontier never rises.
    """

    def __init__(self, goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, alpha: float) -> None:
        first, second = approximate_limits(n_fp, alpha / 2.0), approximate_limits(n_fn, alpha / 2.0)
        seen = goal.order(first[[fp]], second[[fn]])[0]
        frontier = bisect_each_integer(
            lambda negatives: goal.order(first, second[negatives]) >= seen,
            np.full(n_fp + 1, n_fn + 1),
            np.full(n_fp + 1, -1),
        )
        self.most = int(np.flatnonzero(frontier >= 0)[-1])
        self.frontier = frontier[: self.most + 1]
        self.n_fp, self.n_fn, self.alpha = n_fp, n_fn, alpha
        self._ways = [_log_ways(n) for n in (n_fp, n_fn)]
        size = max(n_fp, n_fn)
        self._slack = 1e-9 + 2.0**-47 * size * math.log(size + 1.0)
        self._reach = math.log(4.0 / (_LEFT_OUT * alpha))

    def _window(self, which: int, n: int, rate: float) -> tuple[int, Floats]:
        """Return the probabilities of the numbers of events that matter, and the first of these numbers."""
        mean, third = n * rate, self._reach / 3.0
        reach = third + math.sqrt(third**2 + 2.0 * self._reach * mean * (1.0 - rate))  # Bernstein
        first, last = max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach))
        k = np.arange(first, last + 1, dtype=np.float64)
        logs = special.xlogy(k, rate) + special.xlog1py(n - k, -rate)
        with np.errstate(under="ignore"):
            return first, np.exp(self._ways[which][first : last + 1] + logs)

    def masses(self, fp_rate: float) -> tuple[Counts, Floats]:
        """Return how many false negatives are extreme beside each number of false positives that matters, and its mass.

        Parameters
        ----------
        fp_rate : float
            Of false positives.
        """
        first, masses = self._window(0, self.n_fp, fp_rate)
        frontier = self.frontier[first : first + masses.size]
        return frontier, masses[: frontier.size]

    def probability(self, at: tuple[Counts, Floats], fn_rate: float) -> float:
        """Return an upper bound on the probability of these outcomes."""
        frontier, masses = at
        first, others = self._window(1, self.n_fn, fn_rate)
        below = np.concatenate([[0.0], np.cumsum(others)])
        below[-1] = 1.0
        found = masses @ below[np.clip(frontier - first + 1, 0, others.size)]
        return float(found) * (1.0 + self._slack) + _LEFT_OUT * self.alpha

    def largest_fn_rate(self, fp_rate: float, low: float, high: float) -> float | None:
        """Return a bound on the false-negative rates in the confidence set beside a false-positive rate.

        None when there is none. `low` and `high` are guesses, and `high` is a valid bound.
        """
        at = self.masses(fp_rate)

        def excess(rate: float) -> float:
            return math.log(self.probability(at, rate) / self.alpha)

        if excess(0.0) <= 0.0:
            return None
        if excess(high) > 0.0:
            return high
        start = low if excess(low) > 0.0 else 0.0
        found = float(optimize.brentq(excess, start, high, xtol=1e-300, rtol=1e-4))
        move = 1e-4
        while found < high and excess(found) > 0.0:
            found = min(high, found * (1.0 + move))
            move *= 2.0
        return found


def joint_value(goal: Goal, fp: int, n_fp: int, fn: int, n_fn: int, alpha: float) -> float:
    """Return the smallest value of a goal in the joint confidence set of level ``1 - alpha``, rounded down.

    Parameters
    ----------
    goal : Goal
        What is measured.
    fp, n_fp, fn, n_fn : int
        Errors and trials; the two groups of trials are independent.
    alpha : float
        In (0, 1).

    Notes
    -----
    The set holds the pairs of rates under which an outcome as extreme as the one seen, or more, has probability above
    alpha. Outcomes are ordered by the bound that Clopper and Pearson's limits give; so this bound is never below that
    one, and no other bound that respects the order is above [Buehler, JASA 52 (1957); PROOFS.md, L3]. The border of the
    set is searched by rectangles, each valued at the corner that counts least.
    """
    ends = [approximate_limits(n, alpha / 2.0)[k] for k, n in ((fp, n_fp), (fn, n_fn))]
    if goal.order(np.array([ends[0]]), np.array([ends[1]]))[0] <= 0.0:
        return 0.0
    extreme = _Extreme(goal, fp, n_fp, fn, n_fn, alpha)

    def value(fp_rate: float, fn_rate: float) -> float:
        return goal.value(float(goal.order(np.array([fp_rate]), np.array([fn_rate]))[0]))

    # A rectangle: the rates of false positives from `left` to `right`, and how large false-negative rates are there.
    top = extreme.largest_fn_rate(0.0, 0.0, 1.0) or 0.0
    bottom = extreme.largest_fn_rate(1.0, 0.0, top) or 0.0
    waiting = [(value(1.0, top), 0.0, 1.0, top, bottom)]
    best = math.inf
    for _ in range(_SPLITS):
        lowest, left, right, top, bottom = waiting[0]
        if lowest >= best - _TOLERANCE * (1.0 if goal.measured == "epsilon" else best):
            break
        middle = _between(left, right, n_fp)
        found = extreme.largest_fn_rate(middle, bottom, top)
        heapq.heapreplace(waiting, (value(middle, top), left, middle, top, found or 0.0))
        if found is not None:
            best = min(best, value(middle, found))
            heapq.heappush(waiting, (value(right, found), middle, right, found, bottom))
    return waiting[0][0]


def _between(left: float, right: float, n: int) -> float:
    """Return where to split: between them by ratio, and by difference close to 0 and 1."""
    least = 0.01 / n
    if right > 0.5:
        return 1.0 - _between(1.0 - right, 1.0 - left, n) if left >= 0.5 else 0.5
    return math.sqrt(max(left, least) * right) if right > 2.0 * least else 0.5 * (left + right)
