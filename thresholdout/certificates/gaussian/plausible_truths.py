"""Truths that are possible given what the analyst expects of a mean, after Gaussian answers.

For a dilation a > 1 and the *gap* ``kl(p', p) - kl(p + (p' - p)/a, p)`` between expectation p' and truth p of a mean of
numbers in [0, 1], N times the gap is bounded by what the answers gave away. PROOFS.md, "Gaussian answers and entropy".
"""

from __future__ import annotations

import math

from graphs.numerics.bisection import bisect
from thresholdout.limits.entropy import coin_divergence

__all__ = ["entropy_gap", "farthest", "largest_spread", "lowest_truth", "spread"]

_SLACK = 1.0 + 1e-9
_ABSOLUTE = 1e-14  # more than the rounding errors of a difference of two divergences, for gaps below 1
_ROUNDS = 8
_CLOSE = 1e-3


def entropy_gap(expected: float, truth: float, dilation: float) -> float:
    """Return ``kl(p', p) - kl(p + (p' - p)/a, p)``, at least 0; convex in each of p' and p, and 0 where they are equal.

    Parameters
    ----------
    expected, truth : float
        p' and p, in [0, 1].
    dilation : float
        a, above 1.

    Examples
    --------
    >>> round(entropy_gap(0.9, 0.85, 1.2), 6), entropy_gap(0.9, 0.9, 1.2), entropy_gap(0.0, 1.0, 1.2)
    (0.003479, 0.0, inf)
    """
    whole = coin_divergence(expected, truth)
    if math.isinf(whole):
        return math.inf
    return max(0.0, whole - coin_divergence(truth + (expected - truth) / dilation, truth))


def lowest_truth(expected: float, dilation: float, allowed: float) -> float:
    """Return the smallest truth whose gap to an expectation, or to a larger one, is within a bound; rounded down.

    Parameters
    ----------
    expected : float
        p', in [0, 1]. The highest truth is 1 less the lowest one for ``1 - p'``.
    dilation : float
        a, above 1.
    allowed : float
        Bound on the gap, 0 or more; ``inf`` for none.

    Examples
    --------
    >>> round(lowest_truth(0.9, 1.2, 0.003479), 4)
    0.85
    """
    bound = allowed * _SLACK + _ABSOLUTE
    if expected == 0.0 or not bound < math.inf:
        return 0.0
    return bisect(
        lambda truth: entropy_gap(expected, truth, dilation) > bound,
        expected,
        0.0,
        close=lambda low, high: high - low <= 1e-9 * expected,
    )


def spread(low: float, high: float) -> float:
    """Return the largest ``p (1 - p)`` for p in an interval within [0, 1].

    Examples
    --------
    >>> spread(0.25, 0.75), spread(0.875, 1.0)
    (0.25, 0.109375)
    """
    middle = min(max(0.5, low), high)
    return middle * (1.0 - middle)


def farthest(low: float, high: float, dilation: float, allowed: float) -> float:
    """Bound how far a truth can be from an expectation in an interval, in closed form.

    Parameters
    ----------
    low, high : float
        What the expectation may be, in [0, 1].
    dilation, allowed : float
        As for `lowest_truth`.

    Returns
    -------
    float
        d with ``(1 - a^-2) d^2 <= 2 h allowed`` for the largest ``h = p (1 - p)`` within d of the interval: found from
        h = 1/4 downwards, and every step is a bound.

    Examples
    --------
    >>> farthest(0.9, 0.9, 1.2, 0.003221) > 0.05
    True
    """
    unit = 2.0 * allowed * _SLACK / ((dilation - 1.0) * (dilation + 1.0) / (dilation * dilation))
    if not unit < math.inf:
        return 1.0
    largest = 0.25
    far = math.sqrt(unit * largest)
    for _ in range(_ROUNDS):
        largest = spread(max(0.0, low - far), min(1.0, high + far))
        nearer = math.sqrt(unit * largest) * _SLACK
        if nearer > far * (1.0 - _CLOSE):
            break
        far = nearer
    return min(1.0, far)


def largest_spread(low: float, high: float, dilation: float, allowed: float) -> float:
    """Bound what one answer gives away, by what the truth can be.

    Parameters
    ----------
    low, high : float
        What the analyst's expectation of the answered mean may be, now and later, in [0, 1].
    dilation, allowed : float
        As for `lowest_truth`, at the time of the answer.

    Returns
    -------
    float
        ``(2 h_m + (a-1) h_p)/(a+1)``: h_p the largest ``p (1-p)`` for a possible truth p, h_m for the midpoint of a
        possible truth and a possible expectation. At most 1/4.

    Examples
    --------
    >>> largest_spread(0.0, 1.0, 1.2, 0.01), largest_spread(0.9, 0.94, 1.2, 0.0005) < 0.1
    (0.25, True)
    """
    far = farthest(low, high, dilation, allowed)
    start, stop = max(0.0, low - far), min(1.0, high + far)
    middle, truth = spread((start + low) / 2.0, (stop + high) / 2.0), spread(start, stop)
    return min(0.25, (2.0 * middle + (dilation - 1.0) * truth) / (dilation + 1.0) * _SLACK)
