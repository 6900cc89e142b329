"""The exact optimal composition: the smallest delta at an epsilon, the smallest epsilon at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from thresholdout.accounting.arguments import Steps, open_unit, positive, steps
from thresholdout.accounting.equal_steps import EqualSteps
from thresholdout.accounting.lattice import Lattice, chernoff_epsilon
from thresholdout.accounting.rounding import any_of, down, up
from thresholdout.accounting.sums import MOST_SUMS, EverySum
from thresholdout.errors import InputError

__all__ = ["compose_optimal_delta", "compose_optimal_epsilon", "optimal_delta_bounds", "optimal_epsilon_bounds"]

_MOST_GROUPS = 1000
_FINE_GROUPS = 64  # more than that are computed on a coarser lattice
_FINE, _MIDDLE, _COARSE = 2**20, 2**18, 2**16


class _Divergence(Protocol):
    """What the engines have in common."""

    @property
    def largest(self) -> float: ...

    def bounds(self, e: float) -> tuple[float, float]: ...


class _Nothing:
    """The divergence of steps without an epsilon."""

    largest = 0.0

    def bounds(self, e: float) -> tuple[float, float]:
        return 0.0, 0.0


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
            e = _smallest(lambda x: coarse.bounds(x)[1] <= delta, coarse.largest)
        return Lattice(eps, counts, e, cells)

    return near


def _smallest(holds: Callable[[float], bool], top: float) -> float:
    """Return about the smallest number in [0, top] at which an upward closed condition holds; it holds at top."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, top
    while high - low > 4e-16 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _total(leak: float, divergence: float) -> float:
    """Return ``1 - (1 - leak)(1 - divergence)``."""
    return leak + (1.0 - leak) * divergence


def _total_up(leak: float, divergence: float) -> float:
    return min(1.0, up(_total(leak, divergence))) if divergence > 0 else leak


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
    low, high = _engine(found)(eps_total, 1.0).bounds(eps_total)
    return down(_total(down(leak, 4e-14), low)), _total_up(leak, high)


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
    found, delta_total = steps(eps, delta, T), open_unit(delta_total, "delta_total")
    leak = any_of(found)
    if delta_total < leak:
        raise InputError("delta_total", repr(delta_total), f"at least {leak}, with which some step fails outright")
    wanted = (delta_total - leak) / (1.0 - leak)
    divergence = _engine(found)(None, min(max(wanted, 1e-290), 0.999))
    top, lost = divergence.largest, down(leak, 4e-14)
    high = _smallest(lambda e: _total_up(leak, divergence.bounds(e)[1]) <= delta_total, top)
    low = _smallest(lambda e: down(_total(lost, divergence.bounds(e)[0])) <= delta_total, high)
    return down(low) if low > 0 else 0.0, high


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
    return optimal_epsilon_bounds(eps, delta, delta_total, T)[1]
