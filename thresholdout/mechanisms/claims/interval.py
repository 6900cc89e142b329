"""An interval that is claimed about one mean: how it is tested, and what it says when the test passes.

The holdout's value is an integer K from 0 to ``steps``: the number of ones, or a mean rounded to a grid. The claim has
edges lo and hi; its test has two halves, each with its own noise, on edges that share theirs (delta):

    K + gamma > hi + delta:    *above*
    K - gamma' < lo - delta:   *below* (looked at only if not above)
    otherwise:                 *confirmed*: the truth is between limits(lo) and limits(hi)

If the truth is above the upper limit, the claim is confirmed only if ``K <= hi + (delta - gamma)``; the limit is such
that this has at most the probability w (`thresholdout.limits.noisy`), and the same below. A false claim is false on one
known side, so both limits are one-sided ones at w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from thresholdout.limits.noisy import noisy_binomial_lower, noisy_entropy_lower, noisy_hoeffding_lower

__all__ = ["UNITS", "Letter", "Limits", "Noise", "binomial_limits", "entropy_limits", "hoeffding_limits", "test"]

UNITS: Final = 1 << 40
"""Units of noise in the range of a question."""

Letter = Literal["confirmed", "above", "below"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for the truth from an edge of a claim.

    Attributes
    ----------
    steps : int
        The range of the holdout's value.
    lower : callable
        From a lower edge, the logarithm of the level, and the scales of the noises in steps, to the lower limit.
    """

    steps: int
    lower: Callable[[int, float, tuple[float, ...]], float]

    def interval(self, lo: int, hi: int, log_level: float, scales: tuple[float, ...]) -> tuple[float, float]:
        """Return the interval that a confirmed claim stands for, in units of the range."""
        low = 0.0 if lo <= 0 else self.lower(lo, log_level, scales)
        high = 0.0 if hi >= self.steps else self.lower(self.steps - hi, log_level, scales)
        return low, 1.0 - high if high == 0.0 else min(1.0, _next(1.0 - high))


def binomial_limits(n: int) -> Limits:
    """Return the limits for n independent records that are 0 or 1; K is the number of ones."""
    return Limits(n, lambda lo, level, scales: noisy_binomial_lower(lo, n, level, scales))


def entropy_limits(steps: int, effective: float) -> Limits:
    """Return the limits for a mean with N effective records; K is the mean, rounded to a grid of so many steps."""
    return Limits(
        steps,
        lambda lo, level, scales: noisy_entropy_lower((lo - 0.5) / steps, effective, level, scales, steps),
    )


def hoeffding_limits(steps: int, records: float) -> Limits:
    """Return the limits for a mean of which a variance inflation is known; K as in `entropy_limits`."""
    return Limits(
        steps,
        lambda lo, level, scales: noisy_hoeffding_lower((lo - 0.5) / steps, records, level, scales, steps),
    )


Noise: TypeAlias = "tuple[int, int, int]"
"""Noise of a test in units of the range: delta of the edges, gamma of the upper half, gamma' of the lower one."""


def test(value: int, lo: int, hi: int, steps: int, noise: Noise) -> Letter:
    """Test a claim; exact, in integers.

    Examples
    --------
    >>> test(95, 90, 99, 100, (0, 0, 0)), test(95, 90, 94, 100, (0, 0, 0)), test(95, 96, 99, 100, (0, 0, 0))
    ('confirmed', 'above', 'below')
    >>> test(95, 90, 94, 100, (UNITS // 50, 0, 0))  # an edge that noise has moved by two steps
    'confirmed'
    """
    edge, upper, lower = noise
    if (value - hi) * UNITS > (edge - upper) * steps:
        return "above"
    return "below" if (lo - value) * UNITS > (edge - lower) * steps else "confirmed"


def _next(value: float) -> float:
    return value + 2.0**-53
