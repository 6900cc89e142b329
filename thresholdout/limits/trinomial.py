"""An exact test of "not worse by a margin" for paired 0/1 scores of one law: a trinomial and its nuisance parameter.

Proof: PROOFS.md of this package, "The trinomial test of a margin".
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["tango_statistic", "trinomial_passes"]

_SLACK: Final = 1e-8  # of a probability: pmf and incomplete beta function are off by 1e-11 at 1e7 records
_TIES: Final = 1e-9  # of the statistic, far above its rounding: outcomes that tie belong to the region
_COARSE: Final = 0.1  # first distance of grid points, in standard deviations of the mean difference
_FINE: Final = 0.004  # smallest distance; the bound between two such points is 1 % above the probability at 1e-4
_MASS: Final = 12.0  # nats below the level to which tails of the wins are cut; the cut tails are added back


def trinomial_passes(wins: int, losses: int, records: int, margin: float, log_level: float) -> bool:
    """Whether the claim "worse by less than the margin" passes at a level.

    Each record is won, lost or tied by the candidate. The statistic is Tango's score at a difference of ``-margin``
    [T98]. The claim passes if no law with that difference, or a smaller one, gives a statistic of this size more
    probability than the level. The search over laws is bounded between its grid points.

    Parameters
    ----------
    wins, losses : int
        Records on which only the candidate is right, and only the baseline.
    records : int
        All of them.
    margin : float
        In (0, 1).
    log_level : float
        Natural logarithm of the level; at most ln(1/4).

    References
    ----------
    .. [T98] T. Tango, "Equivalence test and confidence interval for the difference in proportions for the
       paired-sample design", Statistics in Medicine 17, 1998.

    Examples
    --------
    >>> trinomial_passes(30, 30, 1000, 0.02, math.log(0.05)), trinomial_passes(30, 30, 1000, 0.01, math.log(0.05))
    (True, False)
    """
    if wins - losses + records * margin <= 0.0 or log_level > math.log(0.25):
        return False
    level = math.exp(log_level)
    most = 0.5 * (1.0 - margin)
    statistic = float(tango_statistic(np.array([float(wins)]), np.array([float(losses)]), records, margin)[0])
    region = _region(statistic * (1.0 - _TIES), records, margin)
    points = _grid(records, margin, most)
    for first in (len(points) // 2, 0):  # laws that refuse early
        if _probability(region, points[first], points[first] + margin, log_level) > level:
            return False
    intervals = list(pairwise(points))
    while intervals:
        low, high = intervals.pop()
        if _probability(region, high, min(low + margin, 1.0 - high), log_level) <= level:
            continue
        deviation = math.sqrt((2.0 * low + margin) / records)
        middle = 0.5 * (low + high)
        if high - low < _FINE * deviation or _probability(region, middle, middle + margin, log_level) > level:
            return False
        intervals += [(middle, high), (low, middle)]
    return True


def tango_statistic(
    wins: NDArray[np.float64], losses: NDArray[np.float64], records: int, margin: float
) -> NDArray[np.float64]:
    """Return Tango's statistic; the share of wins is the root of the constrained likelihood equation."""
    b = 2.0 * records * margin - wins * (1.0 - margin) - losses * (1.0 + margin)
    root = np.sqrt(b * b + 8.0 * records * wins * margin * (1.0 - margin))
    share = np.where(
        b > 0.0, 2.0 * wins * margin * (1.0 - margin) / np.maximum(b + root, 1e-300), (root - b) / (4.0 * records)
    )
    variance = 2.0 * share + margin - margin * margin
    return np.asarray((wins - losses + records * margin) / np.sqrt(records * variance))


def _region(statistic: float, records: int, margin: float) -> NDArray[np.int64]:
    """Return for each number of wins the most losses with at least this statistic, or -1; never falling."""
    wins = np.arange(records + 1, dtype=float)
    low, high = np.full(records + 1, -1, dtype=np.int64), records - np.arange(records + 1)  # the statistic falls
    while np.any(low < high):
        middle = (low + high + 1) // 2
        inside = tango_statistic(wins, middle.astype(float), records, margin) >= statistic
        low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
    return np.maximum.accumulate(low)


def _grid(records: int, margin: float, most: float) -> list[float]:
    points = [0.0]
    while points[-1] < most:
        points.append(min(most, points[-1] + _COARSE * math.sqrt((2.0 * points[-1] + margin) / records)))
    return points


def _probability(region: NDArray[np.int64], win: float, loss: float, log_level: float) -> float:
    """Bound the region's probability from above where a record is won and lost with these probabilities."""
    from scipy.special import bdtr, bdtrc, betainc, gammaln

    records = region.size - 1
    reach = math.sqrt(2.0 * (_MASS - log_level))
    spread = reach * math.sqrt(records * win * (1.0 - win)) + reach * reach
    low = max(0, math.floor(records * win - spread))
    high = min(records, math.ceil(records * win + spread))
    k = np.arange(low, high + 1)
    if win <= 0.0:
        mass = (k == 0).astype(float)
    else:
        log_mass = gammaln(records + 1) - gammaln(k + 1) - gammaln(records - k + 1)
        mass = np.exp(log_mass + k * math.log(win) + (records - k) * math.log1p(-win))
    losses, others = np.minimum(region[low : high + 1], records - k), records - k
    tail = np.ones(k.size)
    part = (losses >= 0) & (losses < others)
    share = min(1.0, loss / (1.0 - win))
    tail[losses < 0] = 0.0
    tail[part] = betainc((others - losses)[part], losses[part] + 1.0, 1.0 - share)
    cut = (float(bdtr(low - 1, records, win)) if low > 0 else 0.0) + (
        float(bdtrc(high, records, win)) if high < records else 0.0
    )
    return (float(mass @ tail) + cut) * (1.0 + _SLACK)
