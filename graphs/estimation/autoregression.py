"""An exact upper confidence limit for the coefficient of a first-order autoregression, near a unit root too.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.fitted_values import aligned_values, check_failure, level_numbers, ratio_tail
from graphs.numerics.arguments import FloatArray, IntArray, check_word
from graphs.numerics.bisection import bisect

__all__ = ["Means", "autoregression_limit"]

Means = Literal["common", "own"]

#: Ratio of the ends of a piece of the interval of distances from a unit root. Each piece has weights of its own.
#: Smaller steps are sharper and slower; every choice is valid (PROOFS.md, autoregression).
_STEP = 1.25

#: Number of different weights of one statistic: bounds the number of chi-squares in its law.
_WEIGHTS = 64

#: Tolerance of a tail bound, relative to the probability of failure. The bound errs upwards, so it stays valid.
_LOOSE = 1e-4

#: Largest ratio of the distances from a unit root that the weights compare; affects power only.
_STEEPEST = 3.0

#: Rounding charged to sums of squares, relative to the sum of the absolute terms: more than n units for n < 1e5.
_ROUNDING = 1e-11

#: Relative error charged to roots of quadratic functions. A double root loses half the digits.
_ROOT = 1e-5


def autoregression_limit(values: Any, units: Any = None, failure: float = 0.01, *, means: Means = "common") -> float:
    """Compute an exact upper confidence limit for the absolute coefficient of a normal autoregression of order 1.

    Use it to bound the dependence of consecutive records. The limit is exact near a unit root too. `fit_autoregression`
    builds the dependence model at the limit.

    Parameters
    ----------
    values : sequence of length n
        One number for each record, in order of time (within each unit), at equal distances and without gaps.
    units : sequence of hashable of length n, default None
        Unit of each record. Units are independent series with one coefficient and one variance of the innovations. If
        None, the values are one series.
    failure : float, default 0.01
        Probability with which the limit may lie below the absolute coefficient, between 0 and 1.
    means : {"common", "own"}, default "common"
        Means of the units. "common": all units have one mean. "own": each unit has its own, of any size and
        distribution.

    Returns
    -------
    float
        Number that exceeds the absolute coefficient with probability at least 1 - failure. 1 if the values do not
        exclude a unit root.

    Raises
    ------
    ArgumentError
        If the values cannot be used, or too few remain after the means are removed.

    Notes
    -----
    The model is ``y_t - m = phi (y_{t-1} - m) + e_t`` with independent normal innovations of one variance. A single
    series and units with means of their own may start anywhere. Units with a common mean start in the stationary
    distribution.

    At the true coefficient the differences ``y_t - phi y_{t-1}``, less their means, have a uniform direction. Any
    weighted mean of the squares of their cosine coefficients therefore has a known distribution. The same holds with
    the first values of units with a common mean. The weights are those of the best test against smaller coefficients.
    They depend on the tested coefficient, not on the values. The limit is the largest absolute coefficient that is not
    rejected. It is computed from the roots of quadratic functions, so no monotonicity is needed and the level stays
    exact near 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> series = np.zeros(500)
    >>> for t in range(1, 500):
    ...     series[t] = 0.5 * series[t - 1] + rng.standard_normal()
    >>> 0.5 < autoregression_limit(series) < 0.65
    True
    """
    share = check_failure(failure)
    check_word("means", means, ("common", "own"))
    if units is None:
        columns, _ = aligned_values(values, 4)
        index = np.zeros(len(columns), dtype=np.int64)
    else:
        columns, (labels,) = aligned_values(values, 4, units=units)
        index = level_numbers("units", labels)
    spectrum = _Spectrum.of(columns, index, means)
    return max(spectrum.largest(1.0, share), spectrum.largest(-1.0, share))


@dataclass(frozen=True, slots=True)
class _Spectrum:
    """Cosine coefficients of all units' values, without the means: from the second value on, and one step earlier."""

    later: FloatArray  # shape (N,): of ``y_t``
    earlier: FloatArray  # shape (N,): of ``y_{t-1}``
    frequencies: FloatArray  # shape (N,): from 0 to pi
    starts: float  # sum of the squares of the units' first values about their mean, where the mean is common
    start_count: int  # number of independent squares in `starts`; 0 where the first values are not used

    @classmethod
    def of(cls, values: FloatArray, index: IntArray, means: Means) -> _Spectrum:
        """Return the coefficients of units with at least three records, or two where the mean is common."""
        from scipy.fft import dct

        order = np.argsort(index, kind="stable")
        sizes = np.bincount(index)
        starts = np.r_[0, np.cumsum(sizes)[:-1]]
        parts = []
        levels: list[tuple[FloatArray, FloatArray, int]] = []
        for size in np.unique(sizes[sizes > 1]).tolist():
            series = values[order][starts[sizes == size][:, None] + np.arange(size)]
            later, earlier = (dct(part, norm="ortho", axis=1) for part in (series[:, 1:], series[:, :-1]))
            levels.append((later[:, 0], earlier[:, 0], size - 1))
            angles = np.broadcast_to(math.pi * np.arange(1, size - 1) / (size - 1), (len(series), size - 2))
            parts.append((later[:, 1:].ravel(), earlier[:, 1:].ravel(), angles.ravel()))
        if means == "common" and levels:
            parts.append(_without_mean(levels))
        first = values[order][starts] if means == "common" else np.zeros(1)
        first = first - float(first.mean())
        found = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0)]
        if len(found[0]) < 2:
            seen = f"values with {len(found[0])} differences beside the means"
            raise ArgumentError("values", seen, "longer series", 'Pass longer units, or means="common".')
        return cls(found[0], found[1], found[2], float(first @ first), len(first) - 1)

    def largest(self, sign: float, share: float) -> float:
        """Return the largest absolute value of the coefficients of one sign that are not rejected."""
        sums = self.later - sign * self.earlier
        count = len(sums) + self.start_count
        near = 0.01 / count
        ends = np.r_[0.0, near * _STEP ** np.arange(math.ceil(math.log(1.0 / near) / math.log(_STEP))), 1.0]
        angles = self.frequencies if sign > 0.0 else math.pi - self.frequencies
        for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            weights, start = _weights(angles, math.sqrt(max(low, near / _STEP) * high), share, count)
            test = _Test.of(weights, sums, sign * self.earlier)
            if self.start_count:
                test = test.starting(start, self.starts, self.start_count)
            smallest = test.smallest(low, high, share)
            if smallest is not None:
                return 1.0 - smallest
        return 0.0


def _without_mean(levels: list[tuple[FloatArray, FloatArray, int]]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the coefficients at frequency 0 of all units, projected orthogonally to the direction of a common mean."""
    later, earlier = (np.concatenate([level[which] for level in levels]) for which in (0, 1))
    roots = np.concatenate([np.full(len(level[0]), math.sqrt(level[2])) for level in levels])
    direction = roots / math.sqrt(float(roots @ roots))
    # the reflection that takes the direction of the mean to the first axis, which is left out
    normal = direction.copy()
    normal[0] += 1.0
    scale = 1.0 / normal[0]
    kept = [(part - scale * float(normal @ part) * normal)[1:] for part in (later, earlier)]
    return kept[0], kept[1], np.zeros(len(roots) - 1)


def _weights(angles: FloatArray, distance: float, share: float, count: int) -> tuple[FloatArray, float]:
    """Return weights of squared cosine coefficients, and of first values, for the best test against smaller ones.

    A weight is the ratio of the variances under the tested coefficient and under one farther from a unit root. Weights
    are rounded to a few different values.
    """
    from scipy.special import ndtri

    deviations = -float(ndtri(min(share, 0.4)))
    for _ in range(2):  # weights of a piece at the unit root would rest on the lowest frequencies alone
        further = distance + deviations * math.sqrt(distance * (2.0 - distance) / count) + deviations**2 / count
        further = min(further, 1.8)
        distance = max(distance, further / _STEEPEST)
    turned = 2.0 * (1.0 - np.cos(angles))
    logs = np.log(further**2 + (1.0 - further) * turned) - np.log(distance**2 + (1.0 - distance) * turned)
    step = max(float(logs.max() - logs.min()), 1e-9) / _WEIGHTS
    weights: FloatArray = np.exp(np.round(logs / step) * step)
    start = further * (2.0 - further) / (distance * (2.0 - distance))
    largest = max(float(weights.max()), start)
    return weights / largest, start / largest


@dataclass(frozen=True, slots=True)
class _Test:
    """A weighted mean of squares of ``a + x b`` over all coefficients, x the distance from a unit root."""

    weights: FloatArray  # shape (k,): distinct weights
    counts: FloatArray  # shape (k,): number of coefficients of each weight
    squares: FloatArray  # shape (k,): sums of ``a^2`` over the coefficients of each weight
    products: FloatArray  # shape (k,): sums of ``a b``
    others: FloatArray  # shape (k,): sums of ``b^2``

    @classmethod
    def of(cls, weights: FloatArray, first: FloatArray, second: FloatArray) -> _Test:
        """Return the sums over coefficients of equal weight."""
        values, at = np.unique(weights, return_inverse=True)

        def total(column: FloatArray) -> FloatArray:
            return np.bincount(at, weights=column).astype(np.float64)

        counts = np.bincount(at).astype(np.float64)
        return cls(values, counts, total(first**2), total(first * second), total(second**2))

    def starting(self, weight: float, squares: float, count: int) -> _Test:
        """Return the test with first values, whose squares count ``1 - phi^2 = x (2 - x)`` times."""
        sums = (np.r_[self.squares, 0.0], np.r_[self.products, squares], np.r_[self.others, -squares])
        return _Test(np.r_[self.weights, weight], np.r_[self.counts, float(count)], *sums)

    def smallest(self, low: float, high: float, share: float) -> float | None:
        """Return the smallest distance of an interval that is not rejected, rounded down; None where all are."""

        def rejects(at: float) -> bool:
            return ratio_tail(self.weights, self.counts, at, _LOOSE * share, share) <= share

        likely = max(self._mean(float(x)) for x in np.linspace(low, high, 5))
        likely += 0.01 * math.sqrt(2.0 * float(self.counts @ (self.weights - likely) ** 2)) / float(self.counts.sum())
        if rejects(likely) and self._first(likely, low, high) is None:
            return None
        return self._first(bisect(rejects, 1.0, float(self.weights.min()), halvings=25), low, high)

    def _first(self, at: float, low: float, high: float) -> float | None:
        """Return a distance below all those of an interval at which the weighted mean is at least a number, or None."""
        factors = self.weights - at
        # a bound on the rounding error of the polynomial anywhere in the interval
        sizes = self.squares + 2.0 * high * np.abs(self.products) + high**2 * np.abs(self.others)
        c = float(factors @ self.squares) + _ROUNDING * float(np.abs(factors) @ sizes)
        b, a = float(factors @ self.products), float(factors @ self.others)
        if c + low * (2.0 * b + low * a) >= 0.0:
            return low
        square = b * b - a * c
        if square < -_ROUNDING * b * b:
            return None
        middle = -(b + math.copysign(math.sqrt(max(square, 0.0)), b))
        roots = [part / whole for part, whole in ((middle, a), (c, middle)) if whole != 0.0]
        inside = [root for root in roots if low * (1.0 - _ROOT) < root < high * (1.0 + _ROOT)]
        return max(low, min(inside) * (1.0 - _ROOT)) if inside else None

    def _mean(self, x: float) -> float:
        squares = self.squares + x * (2.0 * self.products + x * self.others)
        whole = float(squares.sum())
        return float(self.weights @ squares) / whole if whole > 0.0 else math.inf
