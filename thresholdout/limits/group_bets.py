"""Constant bets on sums of groups: for the mean of values in [0, 1] whose groups are independent, of any laws.

With sizes s_g, S at least the largest of them, n the number of values and l fixed before, ``0 <= l m <= 1``,

    W_l(m) = prod_g (1 + (l/S) sum_{i in g} (x_i - m))

has a mean of at most 1 where the mean of the expectations is at most m. Proof: PROOFS.md of this package, "Bets on
group sums".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["difference_bets", "log_difference_wealth", "log_group_wealth"]

_SLACK: Final = 1e-9  # nats
_BOLDEST: Final = 0.9  # of the largest bet: a group that loses all it can then costs ln 10 at most
_USUAL_EVIDENCE: Final = 3.0  # nats; a level of .05
_USUAL_VARIANCE: Final = 0.15  # of a difference of two answers; a wrong one costs width and nothing else


def log_group_wealth(
    sums: NDArray[np.float64], sizes: NDArray[np.float64], largest: float, bet: float, mean: float
) -> float:
    """Return ``ln W_l(m)``, rounded down."""
    terms = np.log1p((bet / largest) * (sums - sizes * mean))
    largest_term = float(np.abs(terms).max(initial=0.0))
    return float(terms.sum()) - _SLACK - 2.0**-48 * sums.size * largest_term


def log_difference_wealth(totals: NDArray[np.float64], sizes: NDArray[np.float64], margin: float = 0.0) -> float:
    """Return ln of the wealth against "the mean difference is at most -margin", rounded down.

    The bets are halved from the largest one down to about one over the root of the number of groups. Those that are
    best for usual differences weigh most, and the others about a tenth of them or more.
    """
    largest = float(sizes.max(initial=1.0))
    mean = 0.5 * (1.0 - margin)  # (z + 1) / 2 has mean 1/2 where z has 0
    bets, weights = difference_bets(totals.size, largest, float(sizes.sum()), mean)
    half = 0.5 * (totals + sizes)
    logs = np.array([log_group_wealth(half, sizes, largest, float(bet), mean) for bet in bets])
    return float(np.logaddexp.reduce(logs + np.log(weights))) - _SLACK


def difference_bets(
    groups: int, largest: float, n: float, mean: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bets against means of at most `mean` and their weights, from public numbers."""
    halvings = math.ceil(0.5 * math.log2(max(2, groups)) + 0.5 * math.log2(max(2.0, largest)))
    bets = np.ldexp(_BOLDEST / mean, -np.arange(halvings + 1))
    # a bet of l on (z + 1) / 2 is one of l/2 on z
    likely = 2.0 * largest * math.sqrt(2.0 * _USUAL_EVIDENCE / (max(1.0, n) * _USUAL_VARIANCE))
    weights: NDArray[np.float64] = 1.0 / (1.0 + np.log2(bets / min(likely, float(bets[0]))) ** 2)
    return bets, weights / float(weights.sum())
