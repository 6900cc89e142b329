"""The law of the largest error that a guard's noise can cause, bounded from above.

With sigma = 1, scales (a, b, c) of the noises in threshold, test and answer (1, 2, 4 by default), m questions and B
answers from the holdout, let

* ``A = max of m draws of Lap(b)``, ``D = max of B draws of Lap(a)``, ``G = A + D``: by how much more than the threshold
  T a train answer can differ from the holdout mean (the noises are symmetric, so the law of ``max(-gamma)`` is that of
  ``max(gamma)``);
* ``X = max of B draws of abs(Lap(c))``: by how much a holdout answer can.

The largest error is ``M = max(T + G, X + grid/2)``. Everything here errs on the safe side: tail probabilities are
upper bounds, so quantiles and superquantiles are too, by about 0.01 % of their value; PROOFS.md, "The law of the
largest error", says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from thresholdout.mechanisms import NoiseRatios

__all__ = ["PUBLISHED_RATIOS", "NoiseExtremes", "answer_quantile", "noise_extremes"]

Floats = NDArray[np.float64]

PUBLISHED_RATIOS = NoiseRatios()
"""Scales of the noises in [Z17, Algorithm 1]."""

_OFFSETS = 8  # points of the table per cell of the convolution
_PARTS = 16  # parts of a cell from which its mean is bounded
_MOST_CELLS = 8192
_PROBABILITY = 1.0 + 1e-9  # covers the rounding of sums of probabilities
_LENGTH = 1e-12  # covers the rounding of quantiles, relatively


@dataclass(frozen=True, eq=False)
class NoiseExtremes:
    """Upper bounds on the tails of G and M, for sigma = 1; made by `noise_extremes`.

    Attributes
    ----------
    queries, budget : int
        m and B.
    ratios : NoiseRatios
        Scales (a, b, c).
    floor : float
        Probabilities below this one are not resolved.
    surprises : ndarray of shape (k,)
        Increasing values v.
    tail : ndarray of shape (k,)
        Upper bounds on ``P(G > v)``, not increasing.
    """

    queries: int
    budget: int
    ratios: NoiseRatios
    floor: float
    surprises: Floats
    tail: Floats

    def quantile(self, probability: float) -> float:
        """Return a number that G exceeds with at most this probability, ``VaR(G)``.

        Parameters
        ----------
        probability : float
            In (0, 1), at least ``floor``.

        Examples
        --------
        >>> extremes = noise_extremes(1000, 1, 0.05)
        >>> round(extremes.quantile(0.05), 2)
        18.86
        """
        return _up(float(self.surprises[np.argmax(self.tail <= probability)]))

    def error_quantile(self, probability: float, threshold: float, grid: float = 0.0) -> float:
        """Return a number that M exceeds with at most this probability, ``VaR(M)``.

        Parameters
        ----------
        probability : float
            In (0, 1), at least ``floor``.
        threshold, grid : float
            T and the step of the answer grid, in units of sigma.
        """
        errors, tail = self._errors(threshold, grid)
        return _up(float(errors[np.argmax(tail <= probability)]))

    def superquantile(self, probability: float, threshold: float, grid: float = 0.0) -> float:
        """Return an upper bound on ``CVaR(M)``, the mean of M over its worst cases of this total probability.

        Parameters
        ----------
        probability : float
            In (0, 1), at least ``floor``.
        threshold, grid : float
            T and the step of the answer grid, in units of sigma.

        Notes
        -----
        ``CVaR_p(M) = min over u of u + E(M - u)^+ / p``; the expectation is the integral of the tail beyond u, bounded
        by the tail at the left end of each interval, and every u gives an upper bound.

        Examples
        --------
        >>> extremes = noise_extremes(1000, 1, 0.05)
        >>> round(extremes.superquantile(0.05, extremes.quantile(0.05)), 1)
        39.8
        """
        errors, tail = self._errors(threshold, grid)
        pieces = np.append(tail[:-1] * np.diff(errors), self._beyond())
        excess = np.cumsum(pieces[::-1])[::-1] * _PROBABILITY
        return _up(float(np.min(errors + excess / probability)))

    def _errors(self, threshold: float, grid: float) -> tuple[Floats, Floats]:
        """Points x where the tail of M can change, and upper bounds on ``P(M > x)`` there."""
        scale = self.ratios.answer
        reach = scale * math.log(self.budget / (0.01 * self.floor))
        above = threshold + self.surprises
        points = np.sort(np.concatenate([above, grid / 2 + np.arange(0.0, reach + scale / 512, scale / 512)]))
        index = np.searchsorted(above, points, side="right") - 1
        surprise = np.where(index < 0, 1.0, self.tail[np.maximum(index, 0)])
        answer = _absolute_tail(points - grid / 2, self.budget, scale)
        return points, np.minimum(1.0, (surprise + answer - surprise * answer) * _PROBABILITY)

    def _beyond(self) -> float:
        """Bound the integral of the tail of M beyond the last point; see `_reach` for the first term."""
        return 0.02 * self.floor * (self.ratios.threshold + self.ratios.test) + 0.01 * self.floor * self.ratios.answer


def noise_extremes(queries: int, budget: int, beta: float, ratios: NoiseRatios = PUBLISHED_RATIOS) -> NoiseExtremes:
    """Bound the law of the largest error for sigma = 1; cached.

    Parameters
    ----------
    queries, budget : int
        m and B, at least 1.
    beta : float
        In (0, 1). The table resolves probabilities down to a thousandth of it.
    ratios : NoiseRatios
        Scales of the noises.

    Returns
    -------
    NoiseExtremes
    """
    return _table(queries, budget, math.floor(math.log10(beta)) - 3, ratios)


def answer_quantile(budget: int, probability: float, scale: float = 4.0) -> float:
    """Return the number that the largest of B absolute Laplace draws exceeds with this probability, rounded up.

    Parameters
    ----------
    budget : int
        B.
    probability : float
        In (0, 1).
    scale : float
        Of each draw.

    Examples
    --------
    >>> import math
    >>> math.isclose(answer_quantile(1, 0.05), 4 * math.log(20))
    True
    """
    single = -math.expm1(math.log1p(-probability) / budget)
    return _up(-scale * math.log(single))


@lru_cache(maxsize=64)
def _table(queries: int, budget: int, decade: int, ratios: NoiseRatios) -> NoiseExtremes:
    floor = 10.0**decade
    # The sum of both maxima is symmetric in them: the one with the smaller scale is moved to points.
    (narrow, few), (wide, many) = sorted([(ratios.threshold, budget), (ratios.test, queries)])
    low_narrow, high_narrow = _reach(few, narrow, floor)
    low_wide, high_wide = _reach(many, wide, floor)
    start, stop = low_wide + low_narrow, high_wide + high_narrow
    cell = max(wide / 64, (stop - start) / _MOST_CELLS)
    rows, cells = math.ceil((stop - start) / cell), math.ceil((high_narrow - low_narrow) / cell)

    masses, beyond = _spread(few, narrow, low_narrow, cell, cells)
    step = cell / _OFFSETS
    first = start - low_narrow - cells * cell
    tail = np.empty((rows + 1, _OFFSETS), dtype=np.float64)
    for offset in range(_OFFSETS):
        arguments = _points(first + offset * step, cell, rows + cells + 1)
        tail[:, offset] = np.convolve(_convex_tail(arguments, many, wide), masses, "valid")
    bounded = np.minimum(1.0, np.minimum.accumulate((tail.ravel() + beyond) * _PROBABILITY))
    surprises = _points(start, step, bounded.size)
    surprises.flags.writeable = bounded.flags.writeable = False
    return NoiseExtremes(queries, budget, ratios, floor, surprises, bounded)


def _reach(count: int, scale: float, floor: float) -> tuple[float, float]:
    """Range outside which the largest of ``count`` Laplace draws lies with small probability.

    Below with at most 1e-4, above with at most ``floor / 100``; beyond the sum h of both upper ends,
    ``P(G > h + s) <= 0.02 * floor * exp(-s / (a + b))``.
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


def _up(length: float) -> float:
    return length + _LENGTH * abs(length)


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


def _absolute_tail(x: Floats, count: int, scale: float) -> Floats:
    """``P(max of count draws of abs(Lap(scale)) > x)``, 1 for x <= 0."""
    single = np.exp(-np.maximum(x, 0.0) / scale)
    with np.errstate(divide="ignore"):
        tail: Floats = -np.expm1(count * np.log1p(-single))
    return tail
