"""By how much a threshold has to exceed the quiet margin, so that no honest question spends budget.

With sigma = 1, m questions and B answers from the holdout, let ``A = max of m draws of Lap(2)`` (the noise of the
tests) and ``D = max of B draws of Lap(1)`` (that of the thresholds). A question within the quiet margin spends budget
only if its test noise less the noise of the threshold exceeds the rest of the threshold, and the largest such
difference is at most ``G = A + D``, by symmetry. Its tail is bounded from above, so its quantiles are too, by about
0.02 % of their value; PROOFS.md, "The quiet margin", says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["QuietLaw", "quiet_law"]

Floats = NDArray[np.float64]

_THRESHOLD, _TEST = 1.0, 2.0  # scales of the noises, in units of sigma
_CELL = _TEST / 64
_OFFSETS = 8  # points of the table per cell of the convolution
_PARTS = 16  # parts of a cell from which its mean is bounded
_PROBABILITY = 1.0 + 1e-9  # covers the rounding of sums of probabilities
_LENGTH = 1e-12  # covers the rounding of quantiles, relatively


@dataclass(frozen=True, eq=False)
class QuietLaw:
    """Upper bounds on the tail of G = A + D, for sigma = 1; made by `quiet_law`.

    Attributes
    ----------
    surprises : ndarray of shape (k,)
        Increasing values v.
    tail : ndarray of shape (k,)
        Upper bounds on ``P(G > v)``, not increasing.
    """

    surprises: Floats
    tail: Floats

    def quantile(self, probability: float) -> float:
        """Return a number that G exceeds with at most this probability.

        Parameters
        ----------
        probability : float
            In (0, 1), at least a thousandth of the one that the table was made for.

        Examples
        --------
        >>> round(quiet_law(1000, 1, 0.05).quantile(0.05), 2)
        18.86
        """
        value = float(self.surprises[np.argmax(self.tail <= probability)])
        return value + _LENGTH * abs(value)


def quiet_law(queries: int, budget: int, beta: float) -> QuietLaw:
    """Bound the law of G for sigma = 1; cached.

    Parameters
    ----------
    queries, budget : int
        m and B, at least 1.
    beta : float
        In (0, 1). The table resolves probabilities down to a thousandth of it.

    Returns
    -------
    QuietLaw
    """
    return _table(queries, budget, math.floor(math.log10(beta)) - 3)


@lru_cache(maxsize=64)
def _table(queries: int, budget: int, decade: int) -> QuietLaw:
    floor = 10.0**decade
    low_a, high_a = _reach(queries, _TEST, floor)
    low_d, high_d = _reach(budget, _THRESHOLD, floor)
    start, stop = low_a + low_d, high_a + high_d
    rows, cells = math.ceil((stop - start) / _CELL), math.ceil((high_d - low_d) / _CELL)

    masses, beyond = _spread(budget, _THRESHOLD, low_d, _CELL, cells)
    step = _CELL / _OFFSETS
    first = start - low_d - cells * _CELL
    tail = np.empty((rows + 1, _OFFSETS), dtype=np.float64)
    for offset in range(_OFFSETS):
        arguments = _points(first + offset * step, _CELL, rows + cells + 1)
        tail[:, offset] = np.convolve(_convex_tail(arguments, queries, _TEST), masses, "valid")
    bounded = np.minimum(1.0, np.minimum.accumulate((tail.ravel() + beyond) * _PROBABILITY))
    surprises = _points(start, step, bounded.size)
    surprises.flags.writeable = bounded.flags.writeable = False
    return QuietLaw(surprises, bounded)


def _reach(count: int, scale: float, floor: float) -> tuple[float, float]:
    """Range outside which the largest of ``count`` Laplace draws lies with small probability.

    Below with at most 1e-4, above with at most ``floor / 100``.
    """
    lower = -math.expm1(math.log(1e-4) / count)  # a single draw lies above the lower end with this probability
    low = -scale * math.log(2 * lower) if lower <= 0.5 else scale * math.log(2 * (1 - lower))
    return low, scale * math.log(count / (0.02 * floor))


def _spread(count: int, scale: float, low: float, cell: float, cells: int) -> tuple[Floats, float]:
    """Move the law of the largest draw to points ``low + k cell``, so that means of convex functions of -x grow.

    The mass of a cell goes to its two ends so that its mean does not fall; all below the first point goes there.
    Returns the masses and the probability beyond the last point.
    """
    tail = _tail(_points(low, cell / _PARTS, cells * _PARTS + 1), count, scale)
    parts = np.maximum(tail[:-1] - tail[1:], 0.0).reshape(cells, _PARTS)
    mass = parts.sum(axis=1)
    upper = np.minimum(mass, parts @ (np.arange(1, _PARTS + 1) / _PARTS))
    masses = np.zeros(cells + 1)
    masses[:-1] += mass - upper
    masses[1:] += upper
    masses[0] += 1.0 - tail[0]
    return masses, float(tail[-1])


def _points(first: float, step: float, count: int) -> Floats:
    """Equidistant numbers."""
    return first + step * np.arange(count, dtype=np.float64)


def _tail(x: Floats, count: int, scale: float) -> Floats:
    """``P(max of count draws of Lap(scale) > x)``, with small relative error."""
    positive = np.log1p(-0.5 * np.exp(-np.maximum(x, 0.0) / scale))
    negative = np.minimum(x, 0.0) / scale - math.log(2.0)
    tail: Floats = -np.expm1(count * np.where(x >= 0, positive, negative))
    return tail


def _convex_tail(x: Floats, count: int, scale: float) -> Floats:
    """Return a convex decreasing majorant of `_tail`: the tail beyond the mode of its density, the tangent before."""
    mode = scale * math.log(max(count, 2) / 2)
    single = 0.5 * math.exp(-mode / scale)
    density = count * math.exp((count - 1) * math.log1p(-single)) * single / scale
    return _tail(np.maximum(x, mode), count, scale) + density * np.maximum(mode - x, 0.0)
