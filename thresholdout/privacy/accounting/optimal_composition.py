"""The exact optimal composition: the smallest delta at an epsilon, the smallest epsilon at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP, down_relative, up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.binomial_probabilities import logistic, window
from thresholdout.privacy.accounting.bound_arguments import (
    TINY,
    Steps,
    any_of,
    open_unit,
    positive,
    steps,
    sum_up,
    tail_slack,
)

__all__ = ["compose_optimal_delta", "compose_optimal_epsilon", "optimal_delta_bounds", "optimal_epsilon_bounds"]

Floats = NDArray[np.float64]
_MOST_SUMS = 2**20  # sums of losses that are listed: 16 MB


class _Divergence(Protocol):
    """The interface that the engines below share."""

    @property
    def largest(self) -> float:
        """The sum of all epsilons, from which on the divergence is zero."""

    def lower(self, e: float) -> float:
        """Return a number that is at most the divergence at e."""

    def upper(self, e: float) -> float:
        """Return a number that is at least the divergence at e."""


class _Nothing:
    """The divergence of steps without an epsilon."""

    largest = 0.0

    def lower(self, e: float) -> float:
        """Return 0."""
        return 0.0

    def upper(self, e: float) -> float:
        """Return 0."""
        return 0.0


class EqualSteps:
    """Hockey-stick divergence of T equal randomised responses.

    The loss is ``(2 K - T) eps`` with K binomial of T trials and ``e^eps/(1+e^eps)``, so the divergence is the sum of
    ``P(K = k) (1 - exp(e - loss))`` over positive gaps between loss and e. Gaps are exact fractions and every term is
    positive: nothing cancels.
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
        """Compute the divergence at e; None if no loss is above e."""
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


class EverySum:
    """Hockey-stick divergence of groups of equal randomised responses, by enumeration of at most `_MOST_SUMS` sums."""

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
        self._relative = relative + 1e-14  # products and the sum of up to `_MOST_SUMS` terms
        self.largest = sum_up(eps.tolist(), counts.tolist())
        self._shift = (eps.size + 4) * ULP * self.largest  # at least the rounding error of a sum of losses

    def _divergence(self, e: float) -> float:
        seen = int(np.searchsorted(self._below, -e))
        with np.errstate(under="ignore"):
            return float((self._masses[:seen] * -np.expm1(e + self._below[:seen])).sum())

    def lower(self, e: float) -> float:
        """Return a lower bound on the divergence at e."""
        # The divergence falls in e, so a larger e gives a lower bound, a smaller one an upper bound.
        return down_relative(self._divergence(e + self._shift + abs(e) * ULP), self._relative)

    def upper(self, e: float) -> float:
        """Return an upper bound on the divergence at e."""
        if e >= self.largest:
            return 0.0
        return min(1.0, up_relative(self._divergence(e - self._shift - abs(e) * ULP), self._relative) + TINY)


def _divergence_of(found: Steps) -> _Divergence:
    """Return the divergence of the steps that have an epsilon."""
    seen = found.eps > 0
    eps, place = np.unique(found.eps[seen], return_inverse=True)
    counts = np.bincount(place, found.counts[seen], eps.size).astype(np.int64)
    if not eps.size:
        return _Nothing()
    if eps.size == 1:
        return EqualSteps(float(eps[0]), int(counts[0]))
    if math.fsum(np.log1p(counts).tolist()) <= math.log(_MOST_SUMS) + 1e-9:
        return EverySum(eps, counts)
    seen_steps = f"{eps.size} different values in {int(counts.sum())} steps, with more than {_MOST_SUMS} sums of losses"
    advice = "Round epsilons up, or compose BlackBox events in a DistributionAccountant."
    raise InputError("eps", seen_steps, "a list of fewer values", advice)


def _crossing(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return about the point where a falling function, above the target at low and not at high, reaches it."""
    from scipy.optimize import brentq

    # The logarithm is closer to a line; 1e-320 keeps a divergence of 0 finite.
    found, _ = brentq(
        lambda e: math.log(max(value(e), 1e-320) / target), low, high, xtol=1e-300, rtol=1e-13, full_output=True
    )
    return float(found)


def _above(value: Callable[[float], float], target: float, top: float) -> float:
    """Return about the smallest number at which an upper bound is at most the target; the bound is so at `top`."""
    if value(0.0) <= target:
        return 0.0
    found = _crossing(value, target, 0.0, top)
    step = 4e-16 * found  # two units in the last place: the root is close already
    while found < top and value(found) > target:
        found, step = found + step, 2.0 * step
    return min(found, top)


def _below(value: Callable[[float], float], target: float, high: float) -> float:
    """Return about the largest number below `high` at which a lower bound is above the target, or 0."""
    upper, step = high, 1e-13 * high  # the two bounds are about this close
    lower = max(0.0, high - step)
    while lower > 0 and value(lower) <= target:
        upper, step = lower, 4.0 * step
        lower = max(0.0, high - step)
    if value(lower) <= target or value(upper) > target:
        return lower if value(lower) > target else 0.0
    found = _crossing(value, target, lower, upper)
    nearest = [e for e in (found, found * (1 - 1e-12)) if lower <= e and value(e) > target]
    return nearest[0] if nearest else lower


def _total(leak: float, divergence: float) -> float:
    """Return ``1 - (1 - leak)(1 - divergence)``."""
    return leak + (1.0 - leak) * divergence


def _total_up(leak: float, divergence: float) -> float:
    return min(1.0, up_relative(_total(leak, divergence))) if divergence > 0 else leak


def optimal_delta_bounds(eps: Any, delta: Any, eps_total: float, T: int | None = None) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest delta of a composition at a total epsilon."""
    found, eps_total = steps(eps, delta, T), positive(eps_total, "eps_total", zero=True)
    leak = any_of(found)
    divergence = _divergence_of(found)
    low, high = divergence.lower(eps_total), divergence.upper(eps_total)
    return down_relative(_total(down_relative(leak, 4e-14), low)), _total_up(leak, high)


def compose_optimal_delta(eps: Any, delta: Any, eps_total: float, T: int | None = None) -> float:
    """Return the smallest delta of a composition at a total epsilon, rounded up.

    Notes
    -----
    ``1 - prod(1 - delta_i)(1 - E max(0, 1 - exp(eps_total - loss)))`` with the loss of independent randomised responses
    [Kairouz, Oh, Viswanath, Theorem 3.3; Murtagh, Vadhan, Theorem 1.5; PROOFS.md, C1, C5].
    """
    return optimal_delta_bounds(eps, delta, eps_total, T)[1]


def optimal_epsilon_bounds(eps: Any, delta: Any, delta_total: float, T: int | None = None) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest total epsilon of a composition at a delta."""
    found = steps(eps, delta, T)
    high, divergence = _smallest_epsilon(found, delta_total)
    lost = down_relative(any_of(found), 4e-14)  # it is rounded up by less than that
    return _below(lambda e: down_relative(_total(lost, divergence.lower(e))), delta_total, high), high


def _smallest_epsilon(found: Steps, delta_total: float) -> tuple[float, _Divergence]:
    delta_total = open_unit(delta_total, "delta_total")
    leak = any_of(found)  # no epsilon has a smaller delta (PROOFS.md, C2)
    if delta_total < leak:
        raise InputError("delta_total", repr(delta_total), f"at least {leak}, the probability that some step fails")
    divergence = _divergence_of(found)
    high = _above(lambda e: _total_up(leak, divergence.upper(e)), delta_total, divergence.largest)
    return high, divergence


def compose_optimal_epsilon(eps: Any, delta: Any, delta_total: float, T: int | None = None) -> float:
    """Return the smallest total epsilon of a composition at a delta, rounded up."""
    return _smallest_epsilon(steps(eps, delta, T), delta_total)[0]
