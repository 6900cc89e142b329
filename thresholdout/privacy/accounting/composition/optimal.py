"""The exact optimal composition: the smallest delta at an epsilon, the smallest epsilon at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from graphs.numerics.rounding import down_relative, up_relative
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import Steps, open_unit, positive, steps
from thresholdout.privacy.accounting.composition.equal_responses import EqualSteps
from thresholdout.privacy.accounting.composition.response_lattice import Lattice, chernoff_epsilon
from thresholdout.privacy.accounting.composition.response_sums import MOST_SUMS, EverySum
from thresholdout.privacy.accounting.parameter_sums import any_of

__all__ = ["compose_optimal_delta", "compose_optimal_epsilon", "optimal_delta_bounds", "optimal_epsilon_bounds"]

_MOST_GROUPS = 1000
_FINE_GROUPS = 64  # more than that are computed on a coarser lattice
_FINE, _MIDDLE, _COARSE = 2**20, 2**18, 2**16


class _Divergence(Protocol):
    """What the engines have in common."""

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


def _engine(found: Steps) -> Callable[[float | None, float], _Divergence]:
    """Return what makes the divergence of the steps, near an epsilon or at a delta."""
    seen = found.eps > 0
    eps, place = np.unique(found.eps[seen], return_inverse=True)
    counts = np.bincount(place, found.counts[seen], eps.size).astype(np.int64)
    if not eps.size:
        return lambda e, delta: _Nothing()
    if eps.size == 1:
        equal = EqualSteps(float(eps[0]), int(counts[0]))
        return lambda e, delta: equal
    if math.fsum(np.log1p(counts).tolist()) <= math.log(MOST_SUMS) + 1e-9:
        every = EverySum(eps, counts)
        return lambda e, delta: every
    if eps.size > _MOST_GROUPS:
        expected = f"at most {_MOST_GROUPS}: round the epsilons up to fewer values"
        raise InputError("eps", f"{eps.size} different values", expected)
    cells = _FINE if eps.size <= _FINE_GROUPS else _MIDDLE

    def near(e: float | None, delta: float) -> Lattice:
        if e is None:
            start = chernoff_epsilon(eps, counts, delta)
            coarse = Lattice(eps, counts, start, _COARSE)
            e = _above(coarse.upper, delta, coarse.largest)
        return Lattice(eps, counts, e, cells)

    return near


def _crossing(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return about where a falling function, which is above the target at low and not at high, reaches it."""
    from scipy.optimize import brentq

    found, _ = brentq(
        lambda e: math.log(max(value(e), 1e-320) / target), low, high, xtol=1e-300, rtol=1e-13, full_output=True
    )
    return float(found)


def _above(value: Callable[[float], float], target: float, top: float) -> float:
    """Return a number, about the smallest, at which an upper bound is at most the target; it is at top."""
    if value(0.0) <= target:
        return 0.0
    found = _crossing(value, target, 0.0, top)
    step = 4e-16 * found
    while found < top and value(found) > target:
        found, step = found + step, 2.0 * step
    return min(found, top)


def _below(value: Callable[[float], float], target: float, high: float) -> float:
    """Return a number below high, about the largest, at which a lower bound is above the target, or 0.

    A lower bound from a lattice is good only near where the lattice was made for, so that the search starts at high.
    """
    upper, step = high, 1e-13 * high
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
    """Return a lower and an upper bound on the smallest delta of a composition at a total epsilon.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; eps at least 0, delta in [0, 1).
    eps_total : float
        At least 0.
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    lower, upper : float
        In [0, 1]. They differ by rounding only where the steps are equal, or few enough for all sums of losses to be
        listed (a million); otherwise by what a lattice of a million cells costs, about 1e-5 of the value for 50 groups.

    Raises
    ------
    InputError
        When there are more than a thousand different epsilons, too many to list all sums.

    Examples
    --------
    >>> low, high = optimal_delta_bounds(0.1, 1e-6, 5.756105519335735, 100)
    >>> 0 < high - low < 1e-15
    True
    """
    found, eps_total = steps(eps, delta, T), positive(eps_total, "eps_total", zero=True)
    leak = any_of(found)
    divergence = _engine(found)(eps_total, 1.0)
    low, high = divergence.lower(eps_total), divergence.upper(eps_total)
    return down_relative(_total(down_relative(leak, 4e-14), low)), _total_up(leak, high)


def compose_optimal_delta(eps: Any, delta: Any, eps_total: float, T: int | None = None) -> float:
    """Return the smallest delta of a composition at a total epsilon, rounded up.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; eps at least 0, delta in [0, 1).
    eps_total : float
        At least 0.
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    float
        In [0, 1]; see `optimal_delta_bounds` for how close it is.

    Raises
    ------
    InputError
        As `optimal_delta_bounds` does.

    Notes
    -----
    ``1 - prod(1 - delta_i)(1 - E max(0, 1 - exp(eps_total - loss)))`` with the loss of independent randomised responses
    [Kairouz, Oh, Viswanath, Theorem 3.3; Murtagh, Vadhan, Theorem 1.5; PROOFS.md, C1, C5, C6].

    Examples
    --------
    >>> round(compose_optimal_delta(0.1, 0.0, 5.756105519335735, 100) * 1e9, 9)
    3.808383547
    >>> round(compose_optimal_delta([0.1, 0.2, 0.3], 0.0, 0.35), 9)
    0.043995111
    """
    return optimal_delta_bounds(eps, delta, eps_total, T)[1]


def optimal_epsilon_bounds(eps: Any, delta: Any, delta_total: float, T: int | None = None) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest total epsilon of a composition at a delta.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; eps at least 0, delta in [0, 1).
    delta_total : float
        In (0, 1).
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    lower, upper : float

    Raises
    ------
    InputError
        When `delta_total` is below ``1 - prod(1 - delta_i)``, which no epsilon reaches, or as `optimal_delta_bounds`
        does.

    Examples
    --------
    >>> low, high = optimal_epsilon_bounds(0.1, 0.0, 1e-6, 100)
    >>> 0 < high - low < 1e-10
    True
    """
    found = steps(eps, delta, T)
    high, divergence = _smallest_epsilon(found, delta_total)
    lost = down_relative(any_of(found), 4e-14)
    return _below(lambda e: down_relative(_total(lost, divergence.lower(e))), delta_total, high), high


def _smallest_epsilon(found: Steps, delta_total: float) -> tuple[float, _Divergence]:
    delta_total = open_unit(delta_total, "delta_total")
    leak = any_of(found)
    if delta_total < leak:
        raise InputError("delta_total", repr(delta_total), f"at least {leak}, with which some step fails outright")
    wanted = (delta_total - leak) / (1.0 - leak)
    divergence = _engine(found)(None, min(max(wanted, 1e-290), 0.999))
    high = _above(lambda e: _total_up(leak, divergence.upper(e)), delta_total, divergence.largest)
    return high, divergence


def compose_optimal_epsilon(eps: Any, delta: Any, delta_total: float, T: int | None = None) -> float:
    """Return the smallest total epsilon of a composition at a delta, rounded up.

    Parameters
    ----------
    eps, delta : float or array_like, shape (T,)
        Of each step; eps at least 0, delta in [0, 1).
    delta_total : float
        In (0, 1).
    T : int, optional
        How many steps; needed when both are numbers (1 by default).

    Returns
    -------
    float
        At least 0, and at most the sum of the epsilons (rounded up).

    Raises
    ------
    InputError
        When `delta_total` is below ``1 - prod(1 - delta_i)``, which no epsilon reaches, or as `optimal_delta_bounds`
        does.

    Examples
    --------
    >>> round(compose_optimal_epsilon(0.1, 0.0, 1e-6, T=100), 10)
    4.7745675881
    """
    return _smallest_epsilon(steps(eps, delta, T), delta_total)[0]
