"""Predictable bets in a random order: limits for the mean of independent values in [0, 1] of one law.

Each bet is fixed by the values before it, and the largest wealth on the way counts. Proof: PROOFS.md of this package,
"Bets in a random order". Source: I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by
betting", JRSS B 86, 2024.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from graphs.numerics.bisection import bisect

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ordered_lower"]

# All but the first cost width at most: any bets that the values before them fix are valid.
_SLACK: Final = 1e-9  # nats, and distance of a bet from the largest one
_BOLDEST: Final = 0.8  # of the largest bet against the expected mean: one value of 0 then costs ln 5 at most
_PRIOR: Final = 0.1  # of the records, that the expected variance counts for
_FAR: Final = 5.0  # standard deviations by which the mean may exceed the expected one, before bets lose their limit
_HALVINGS: Final = 50  # of [0, 1]: to 1e-15


def ordered_lower(
    values: NDArray[np.float64], expected: float, variance: float, log_level: float, *, mirrored: bool = False
) -> float:
    """Return a lower limit for the expectation of values of one law.

    `expected` and `variance` of a value are public numbers. Wrong ones cost width and nothing else.
    """
    x, mean = (1.0 - values, 1.0 - expected) if mirrored else (values, expected)
    n = x.size
    squares = (x - mean) ** 2
    prior = _PRIOR * n + 1.0
    before = np.concatenate(([0.0], np.cumsum(squares)[:-1]))
    likely = (prior * variance + before) / (prior + np.arange(n))
    most = _BOLDEST / min(1.0, max(1.0 / n, mean + _FAR * math.sqrt(variance / n)))
    # the bet that would be best for normal increments of the estimated variance; any predictable bet is valid
    bets = np.minimum(most, np.sqrt(-2.0 * log_level / (n * np.maximum(likely, 1e-12))))

    def refuted(against: float) -> bool:
        terms = np.log1p(bets * (x - against))
        wealth = np.cumsum(terms)
        # four units in the last place of the largest sum and of the largest term, for each step
        rounding = _SLACK + 2.0**-51 * n * (float(np.abs(wealth).max()) + float(np.abs(terms).max()))
        return float(wealth.max()) - rounding >= -log_level

    if not refuted(0.0):
        return 0.0
    return bisect(refuted, min(1.0, (1.0 - _SLACK) / float(bets.max())), 0.0, halvings=_HALVINGS)
