"""The largest of k absolute standard normals: quantiles and superquantiles, rounded up."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "anytime_superquantile",
    "largest_normal_quantile",
    "largest_normal_quantiles",
    "largest_normal_superquantile",
]

Floats = NDArray[np.float64]

_UP = 1.0 + 1e-12  # erfc and its inverse are accurate to some units in the last place
_POINTS = 4096
_CONVEX = math.exp(-1.0)  # beyond a quantile of at most this probability the tail is convex


def largest_normal_quantile(count: int, probability: float) -> float:
    """Return a number that the largest of k absolute standard normals exceeds with at most this probability.

    Parameters
    ----------
    count : int
        k, at least 1.
    probability : float
        In (0, 1).

    Returns
    -------
    float
        z(k, b), with ``1 - (1 - erfc(z/sqrt 2))^k = b`` up to a relative 1e-12.

    Examples
    --------
    >>> round(largest_normal_quantile(1000, 0.04), 8)
    4.10278213
    """
    return float(largest_normal_quantiles(count, np.array(probability)))


def largest_normal_quantiles(count: float, probabilities: Floats) -> Floats:
    """Return `largest_normal_quantile` for many probabilities; nan where they are not in (0, 1)."""
    from scipy.special import erfcinv

    single = -np.expm1(np.log1p(-probabilities) / count)
    quantiles: Floats = math.sqrt(2.0) * erfcinv(single * (1.0 - 1e-12)) * _UP
    return quantiles


@lru_cache(maxsize=65536)
def largest_normal_superquantile(count: int, probability: float) -> float:
    """Return an upper bound on the mean of the largest of k absolute standard normals over its worst cases.

    Parameters
    ----------
    count : int
        k, at least 1.
    probability : float
        b, total probability of the worst cases, in (0, 1).

    Returns
    -------
    float
        c(k, b), above the exact value by a relative 1e-6 or so.

    Notes
    -----
    ``CVaR_b(M) = u + E(M - u)^+ / b`` at ``u = VaR_b(M)``, and at most that for every other u. The law of M has a
    log-concave density, hence its mode is exceeded with probability at least 1/e, and beyond the mode the tail is
    convex: there the trapezoidal rule is an upper bound on its integral. Larger b use the u of b = 1/e.

    Examples
    --------
    >>> round(largest_normal_superquantile(1000, 0.04), 5)
    4.32589
    """
    from scipy.integrate import trapezoid
    from scipy.special import erfc

    start = largest_normal_quantile(count, min(probability, _CONVEX))
    stop = max(largest_normal_quantile(count, probability * 1e-13), start + 1.0)
    points = start + (stop - start) * np.linspace(0.0, 1.0, _POINTS) ** 2
    tail = -np.expm1(count * np.log1p(-erfc(points / math.sqrt(2.0))))
    within = float(trapezoid(tail, points))
    beyond = 2.0 * count * math.exp(-(stop**2) / 2.0) / math.sqrt(2.0 * math.pi) / stop**2
    return (start + (within + beyond) * (1.0 + 1e-9) / probability) * _UP


def anytime_superquantile(answer: int, probability: float) -> float:
    """Return numbers of which no answer ever exceeds its own in the sense of a superquantile, without a last answer.

    Parameters
    ----------
    answer : int
        Number of the answer, from 1.
    probability : float
        Total over all answers, in (0, 1).

    Returns
    -------
    float
        ``c(2^l, 6 b / (pi (l+1))^2)`` for answers ``2^l, ..., 2^(l+1) - 1``.

    Examples
    --------
    >>> round(anytime_superquantile(1, 0.04), 3), round(anytime_superquantile(1000, 0.04), 3)
    (2.598, 5.221)
    """
    level = answer.bit_length() - 1
    return largest_normal_superquantile(1 << level, 6.0 * probability / (math.pi * (level + 1)) ** 2)
