"""Limits for means of independent groups from each group's own size: Chernoff's bound, for any laws.

Groups have the sizes s_g, n values in all, in [0, 1]. With p_g the mean expectation in group g and ``c_g = e^(u s_g) -
1``, the chord of the exponential over [0, s_g] gives ``E exp(u sum_g) <= 1 + p_g c_g``. So

    P(sum x >= n y) <= exp(M(u, p) - u n y),   M(u, p) = max of sum_g ln(1 + p_g c_g) where sum s_g p_g = n p,

and by Lagrange's dual, for every mu > 0, ``M(u, p) <= D(u, mu) + mu n p`` with

    D(u, mu) = sum_g max over 0 <= p_g <= 1 of ln(1 + p_g c_g) - mu s_g p_g,   p_g = clip(1/(mu s_g) - 1/c_g, 0, 1).

So ``p = (u n y - ln(1/d) - D(u, mu)) / (mu n)`` is a lower limit at level d for every fixed pair u and mu, and the
search takes the best pair. One common p for all groups is no bound. Proof and comparisons: PROOFS.md of this package,
"Own sizes".
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.limits.binomial import log_laplace_moment, noisy_entropy_lower, noisy_hoeffding_lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.limits.group_sums import GroupSizes

__all__ = ["own_sizes_lower"]

# The next four govern the search for u and mu; any pair of them is valid.
_STEEPEST: Final = 600.0  # u s_g: its exponential is finite
_POINTS: Final = 13  # slopes that are tried at a time
_ZOOMS: Final = 3  # of the range of ln u, each to a sixth; the last points are 0.04 apart, where the limit is flat
_HALVINGS: Final = 34  # of the range of ln mu
_SLACK: Final = 1e-9  # relative, of the required nats and of the limit; rounding is near 1e-12


@lru_cache(maxsize=512)
def own_sizes_lower(mean: float, sizes: GroupSizes, log_level: float, scales: tuple[float, ...], steps: float) -> float:
    """Return a lower limit for the expectation of a mean, given only ``q >= mean + nu / steps``."""
    if mean <= 0.0:
        return 0.0
    n, squares = float(sizes.n), float(sizes.squares)
    plain = noisy_entropy_lower(mean, n / sizes.largest, log_level, scales, steps)
    if len(sizes.counts) == 1:
        return plain
    plain = max(plain, noisy_hoeffding_lower(mean, n * n / squares * (1.0 - _SLACK), log_level, scales, steps))
    steepest = _STEEPEST / sizes.largest
    if scales:
        steepest = min(steepest, 0.999 * steps / (max(scales) * n))
    low, high = math.log(steepest) - 16.0, math.log(steepest)
    best = 0.0
    for _ in range(_ZOOMS):
        slopes = np.exp(np.linspace(low, high, _POINTS))
        noise = np.array([sum(log_laplace_moment(u * n, scale / steps) for scale in scales) for u in slopes.tolist()])
        found = _limits(slopes, slopes * n * mean * (1.0 - 2.0**-50) - (noise - log_level) * (1.0 + _SLACK), sizes)
        place = int(np.argmax(found))
        best = max(best, float(found[place]))
        width = (high - low) / (_POINTS - 1)
        low, high = math.log(slopes[place]) - width, min(math.log(slopes[place]) + width, high)
    return min(1.0, max(0.0, plain, best * (1.0 - _SLACK)))


def _limits(slopes: NDArray[np.float64], room: NDArray[np.float64], sizes: GroupSizes) -> NDArray[np.float64]:
    """Return for each u the limit at a mu near the best; `room` is u n y less the required nats."""
    s, number = sizes.sizes, sizes.numbers
    grown = np.expm1(slopes[:, None] * s)
    low = np.log(np.min(grown / (1.0 + grown) / s, axis=1)) - 1.0
    high = np.log(np.max(grown / s, axis=1))

    def shares(log_mu: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip(1.0 / (np.exp(log_mu)[:, None] * s) - 1.0 / grown, 0.0, 1.0)

    for _ in range(_HALVINGS):  # the best mu has sum ln(1 + p_g c_g) = room
        middle = 0.5 * (low + high)
        over = np.log1p(shares(middle) * grown) @ number > room
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    mu, p = np.exp(high), shares(high)
    gained = np.log1p(p * grown) @ number
    dual = gained - mu * (p @ (number * s))
    # the rounding of the dual is below 1e-12 of its terms
    found = (room - dual - _SLACK * (1.0 + gained)) / (mu * sizes.n)
    return np.where(room > 0.0, found, 0.0)
