"""A replace-one bound that is a finite sum at integer orders, and meets the lower bound at order 2."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats
from thresholdout.privacy.accounting.minibatches.moments import Moments
from thresholdout.privacy.accounting.minibatches.quadrature import log_sum

__all__ = ["binomial_moments", "choose", "interpolate", "neighbours"]


def interpolate(alpha: Floats, cumulants: dict[int, float]) -> Floats:
    """Return Renyi bounds from cumulant bounds at the integers around the orders, which are convex in the order.

    Parameters
    ----------
    alpha : ndarray
        Orders above 1; below 2 the value at 2 is taken.
    cumulants : dict
        ``(n - 1)`` times the bound at n, for floor and ceiling (2 at least) of each order.
    """
    low, high = np.maximum(np.floor(alpha), 2.0), np.maximum(np.ceil(alpha), 2.0)
    below, above = (np.array([cumulants[int(n)] for n in side]) for side in (low, high))
    share = np.clip(alpha - low, 0.0, 1.0)
    value: Floats = ((1 - share) * below + share * above) / np.where(alpha < 2, 1.0, alpha - 1)
    return value * (1 + 16 * ULP)


def neighbours(alpha: Floats) -> list[int]:
    """Return the integers that `interpolate` needs."""
    return sorted({max(2, int(n)) for side in (np.floor(alpha), np.ceil(alpha)) for n in side})


def choose(n: int) -> Floats:
    """Return the logarithms of the binomial coefficients of n over 0, ..., n.

    Examples
    --------
    >>> np.exp(choose(4)).round(9)
    array([1., 4., 6., 4., 1.])
    """
    j = np.arange(n + 1)
    return Moments.falling(n, j) - Moments.log_factorial(j)


def binomial_moments(alpha: Floats, sigma: float, q: float) -> Floats:
    """Return a bound of the replace-one Renyi divergence of a step without replacement, rounded up.

    Parameters
    ----------
    alpha : ndarray
        Orders above 1.
    sigma, q : float
        As in `rdp_fswor`.

    Notes
    -----
    At an integer n, ``E[(P/Q)**n] = 1 + sum_j C(n, j) E_Q[(P/Q - 1)**j]``, of which the second moment is at most
    ``q**2 (exp(4 / sigma**2) - 1)`` and the others at most ``q**j`` times the smaller of ``exp(2 j (j-1) / sigma**2)``,
    twice that for even j, and 3 times the moment bound, 4 times for even j (PROOFS.md, F9). It has no remainder, and
    does not blow up at small noise.

    Examples
    --------
    >>> f"{binomial_moments(np.array([2.0]), 6, 0.0024)[0]:.6e}"  # what is attained
    '6.769096e-07'
    """
    return interpolate(alpha, {n: _cumulant(n, sigma, q) for n in neighbours(alpha)})


@lru_cache(maxsize=1 << 13)  # schedules ask for the same integers again and again
def _cumulant(n: int, sigma: float, q: float) -> float:
    moments = Moments(sigma)
    j = np.arange(2, n + 1)
    squares = moments.shift**2 / 2 * j * (j - 1.0)
    even = j % 2 == 0
    plain = squares + np.where(even, math.log(2), 0.0)
    least = np.minimum(plain, moments.log_bounds(n)[2:] + np.where(even, math.log(4), math.log(3)))
    least[0] = moments.log_bounds(2)[2]
    logs = choose(n)[2:] + j * math.log(q) + least
    slack = ULP * (16 * math.lgamma(n + 2) + 16 * np.abs(logs) + 8 * j * abs(math.log(q)) + 8)
    return float(np.logaddexp(0.0, log_sum(logs + slack))) * (1 + 8 * ULP)
