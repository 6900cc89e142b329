"""How far the analyst's expectation of an answer can be from the truth, on the scale of log-odds.

Whatever depends on record i and is a number in [0, 1], the analyst's expectation of it has log-odds within alpha_i of
those of its truth, alpha_i the leakage about record i. So means near 0 or 1 move by less than means near 1/2.
PROOFS.md, "Posterior certificate".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bracket
from graphs.numerics.rounding import ULP

__all__ = ["LogOdds"]

Floats = NDArray[np.float64]

_CLASSES = 512  # of equal leakage, when there are more different ones
_STEPS = 30  # the bound is flat near the best slope: an error there counts by its square
_WIDE = 600.0
_DOWN = 1.0 - 1e-12
_SLACK = 1e-13  # above the rounding errors of a mean of numbers in [0, 1]


class LogOdds:
    """Truths that are possible given what the analyst may expect of a mean.

    Parameters
    ----------
    leakage : ndarray
        alpha_i in nats, one for each record or one for all; ``inf`` for records about which anything may be known.

    Notes
    -----
    Given the truth p of a mean, the largest expectation is at most ``s p + (1/n) sum_i k_i(s)`` for every s > 0,
    ``k_i(s)`` the largest value of ``G_i(x) - s x`` on [0, 1] and ``G_i(x) = x/(x + (1-x) exp(-alpha_i))``. So an
    expectation of c or more needs ``p >= (c - (1/n) sum_i k_i(s))/s``: true for every s, and best at the s that is
    found by bisection. Equal leakage gives ``c/(c + (1-c) exp(alpha))``.

    Examples
    --------
    >>> beliefs = LogOdds(np.array([0.5]))
    >>> round(beliefs.lowest(0.9), 6), round(beliefs.highest(0.9), 6)
    (0.845172, 0.936863)
    >>> round(LogOdds(np.array([0.25, 0.75])).lowest(0.9), 6)
    0.826958
    """

    def __init__(self, leakage: Floats) -> None:
        values, counts = np.unique(np.asarray(leakage, dtype=np.float64), return_counts=True)
        if len(values) > _CLASSES:  # up to the largest of each class: more leakage allows more
            parts = np.array_split(np.arange(len(values)), _CLASSES)
            counts = np.array([counts[part].sum() for part in parts])
            values = np.array([values[part[-1]] for part in parts])
        self._leakage: Floats = values
        self._shares: Floats = counts / counts.sum()
        self._lost: Floats = np.where(values > 0.0, -np.expm1(-values), 1.0)

    def lowest(self, expected: float) -> float:
        """Return the smallest truth of a mean of which the analyst may expect this or more, rounded down.

        Parameters
        ----------
        expected : float
            c; below 0 counts as 0, above 1 as 1.
        """
        c = min(max(expected, 0.0), 1.0)
        reach = float(self._leakage[-1])
        if c == 0.0 or (c == 1.0 and reach < math.inf):
            return c
        if len(self._leakage) == 1:
            return c / (c + (1.0 - c) * math.exp(reach)) * _DOWN if reach < _WIDE else 0.0
        far = min(reach, _WIDE)
        slopes = bracket(lambda slope: self._most(slope)[0] > c, far, -far, halvings=_STEPS)
        best = max((c - self._most(slope)[1] - _SLACK) * math.exp(-slope) for slope in slopes)
        return max(0.0, best * _DOWN)

    def highest(self, expected: float) -> float:
        """Return the largest truth of a mean of which the analyst may expect this or less, rounded up."""
        return min(1.0, (1.0 - self.lowest(1.0 - expected)) * (1.0 + ULP))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogOdds):
            return NotImplemented
        return np.array_equal(self._leakage, other._leakage) and np.array_equal(self._shares, other._shares)

    def __hash__(self) -> int:
        return hash((self._leakage.tobytes(), self._shares.tobytes()))

    def _most(self, log_slope: float) -> tuple[float, float]:
        """Return the mean of ``G_i`` where ``G_i(x) - s x`` is largest, and the mean of these largest values."""
        a = self._leakage
        part = -np.expm1(np.minimum(log_slope - a, 0.0) / 2.0)
        # x = 1 where s <= exp(-alpha), and 0 where s >= exp(alpha); without leakage there is nothing between
        everything, nothing = log_slope <= -a, log_slope >= a
        inside = np.where(everything, 1.0, np.where(nothing, 0.0, part / self._lost))
        gain = np.where(everything, -math.expm1(log_slope), np.where(nothing, 0.0, part * part / self._lost))
        return float(self._shares @ inside), float(self._shares @ gain)
