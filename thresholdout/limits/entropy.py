"""Limits from relative entropy: for means of values in [0, 1] of any laws.

For q(X), a mean of values in [0, 1] with expectation p, and an *effective sample size* N,

    P(q(X) >= p and N kl(q(X), p) >= a) <= exp(-a),    and the same below,

kl the relative entropy of two coins. N is the number of records when they are independent (Hoeffding 1963, Theorem 1,
which needs no common law: the logarithm is concave), and `graphs.DependenceModel.effective_records` otherwise. A limit
is where this probability is the level.

Levels are given by their natural logarithm, so that they may be far below the smallest float. Every limit is rounded
conservatively, by more than the arithmetic can be off.
"""

from __future__ import annotations

import math
from typing import Final

__all__ = ["coin_divergence", "entropy_lower", "entropy_upper"]

_SLACK: Final = 1.0 + 1e-9  # of the required divergence; its own rounding errors are near 1e-15
_TINY: Final = 1e-300  # ends a bisection towards 0, where relative tolerances never do
_NEWTON: Final = 12  # steps; from Bernstein's radius about 5 are enough
_CLOSE: Final = 4e-12  # of the truth or its complement: a few halvings above the end of the bisection


def coin_divergence(x: float, p: float) -> float:
    """Return the relative entropy of a coin with mean x with respect to one with mean p, nats."""
    if x == p:
        return 0.0
    if p <= 0.0 or p >= 1.0:
        return math.inf
    # x ln(x/p) + (1-x) ln((1-x)/(1-p)), each as x ln1p((x-p)/p): exact differences of near numbers keep their digits
    d = x - p
    first = 0.0 if x <= 0.0 else x * (math.log1p(d / p) if abs(d) < 0.5 * p else math.log(x / p))
    y, q = 1.0 - x, 1.0 - p
    second = 0.0 if y <= 0.0 else y * (math.log1p(-d / q) if abs(d) < 0.5 * q else math.log(y / q))
    if abs(d) < 1e-4 * min(p, q):  # both terms nearly cancel: d^2/(2pq) (1 + ...), the series to the fourth power
        pq = p * q
        ratio = d / pq
        total = 0.5 * d * ratio - (q * q - p * p) * d * ratio * ratio / 6.0 + (p**3 + q**3) * d * ratio**3 / 12.0
        return max(0.0, total)
    return max(0.0, first + second)


def entropy_upper(mean: float, effective: float, log_level: float) -> float:
    """Return the upper limit for the expectation of a mean: the largest p with ``N kl(mean, p) <= -log_level``."""
    if mean >= 1.0:
        return 1.0
    needed = -log_level * _SLACK / effective
    if mean <= 0.0:
        return min(1.0, -math.expm1(-needed) * _SLACK)
    # Bernstein's radius: the limit is mostly within it, and the comparison decides
    step = math.sqrt(2.0 * needed * mean * (1.0 - mean)) + 2.0 * needed
    if mean + step < 1.0 and coin_divergence(mean, mean + step) > needed:
        return _halved(mean, needed, mean + step, mean + step)
    # -ln(1 - p) alone, with the rest at its least
    return _halved(mean, needed, 1.0, 1.0 - (1.0 - mean) * math.exp((mean * math.log(mean) - needed) / (1.0 - mean)))


def entropy_lower(mean: float, effective: float, log_level: float) -> float:
    """Return the lower limit for the expectation of a mean, at a one-sided level; the mirror of `entropy_upper`."""
    if mean <= 0.0:
        return 0.0
    needed = -log_level * _SLACK / effective
    if mean >= 1.0:
        return max(0.0, math.exp(-needed) * (1.0 - 2.0**-50))
    step = math.sqrt(2.0 * needed * mean * (1.0 - mean)) + 2.0 * needed
    if mean - step > 0.0 and coin_divergence(mean, mean - step) > needed:
        return _halved(mean, needed, mean - step, mean - step)
    return _halved(mean, needed, 0.0, mean * math.exp(((1.0 - mean) * math.log1p(-mean) - needed) / mean))


def _halved(mean: float, needed: float, far: float, start: float) -> float:
    """Return a truth between the mean and the far end whose divergence exceeds the needed one, by halving.

    The divergence grows away from the mean, so it is computed only between two truths, close to each other, on whose
    sides it is known.
    """
    above, near = far > mean, mean
    fails, holds = _around(mean, needed, start) or (mean, far)
    while abs(far - near) > 1e-12 * (1.0 - near if above else near) + _TINY:
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        if middle <= fails if above else middle >= fails:
            near = middle
        elif (middle >= holds if above else middle <= holds) or coin_divergence(mean, middle) > needed:
            far = middle
        else:
            near = middle
    return far


def _around(mean: float, needed: float, start: float) -> tuple[float, float] | None:
    """Return two close truths whose divergence does not exceed the needed one and does, by Newton's steps.

    The divergence is convex in the truth, so steps from where it exceeds the needed one do not pass the root.
    """
    truth, step = start, 1.0
    for _ in range(_NEWTON):
        if not 0.0 < truth < 1.0 or (truth > mean) != (start > mean) or truth == mean:
            return None
        if abs(step) < _CLOSE * min(truth, 1.0 - truth):
            break
        step = (coin_divergence(mean, truth) - needed) * truth * (1.0 - truth) / (truth - mean)
        truth -= step
    margin = math.copysign(_CLOSE * min(truth, 1.0 - truth), start - mean)
    fails, holds = truth - margin, truth + margin
    if coin_divergence(mean, fails) > needed or not coin_divergence(mean, holds) > needed:
        return None
    return fails, holds
