"""An exact upper confidence limit for the range of an exponential covariance function.

Proof: `graphs/PROOFS.md`, section on fitted families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.estimation.fitted_values import aligned_values, check_failure, ratio_tail
from graphs.numerics.arguments import FloatArray, real_array

__all__ = ["range_limit"]

#: Largest number of records: each tested point takes the eigenvalues of a dense matrix.
_MOST_RECORDS = 2000

#: Ranges beyond this multiple of the largest distance are tested as one interval up to infinity.
_BEYOND = 8.0

#: Halving stops at intervals whose ends have at most this ratio: the limit is at most 1 % too large.
_CLOSE = 1.01

#: Relative error charged to eigenvalues and quadratic forms, and the smallest inverse condition number for it.
_SPECTRUM, _CONDITION = 1e-5, 1e-8

#: Tolerance of a tail bound, relative to the probability of failure. The bound errs upwards, so it stays valid.
_LOOSE = 1e-3


def range_limit(values: Any, coordinates: Any, failure: float = 0.01) -> float:
    """Compute an exact upper confidence limit for the range of an exponential covariance function.

    The range l is the distance at which the correlation ``exp(-d/l)`` of two records has fallen to 1/e. `fit_kernel`
    builds the dependence model at the limit.

    Parameters
    ----------
    values : sequence of length n
        One number for each record, for at most 2,000 records.
    coordinates : array_like of shape (n,) or (n, d)
        Coordinates of each record, no two at one place. Distances are Euclidean. Times are allowed too.
    failure : float, default 0.01
        Probability with which the limit may lie below the range, between 0 and 1.

    Returns
    -------
    float
        Number l that exceeds the range with probability at least 1 - failure: the correlation of two records at the
        distance d is at most ``exp(-d/l)``. Infinite if the values do not exclude any range.

    Raises
    ------
    ArgumentError
        If values or coordinates cannot be used, or there are more than 2,000 records.

    Notes
    -----
    The values are assumed to be jointly normal with one unknown mean, one unknown variance and correlations
    ``exp(-d/l)``. Contrasts of the values
    have the covariance ``V(l) = l (exp(-d/l) - 1)`` up to a factor. V grows with l up to -d, in the order of positive
    semidefinite matrices and in any number of dimensions. The test statistic is the ratio of the quadratic forms of the
    inverses of V at a smaller range and at l. At the true l its distribution is that of a weighted mean of squares, and
    its values at the ends of an interval of l bound it on the interval. The limit is the largest range that no such
    bound rejects. Other distributions, such as independent noise at each place, have no guarantee.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> places = rng.random((120, 2))
    >>> distances = np.hypot(*(places[:, None] - places).T)
    >>> values = np.linalg.cholesky(np.exp(-distances / 0.03)) @ rng.standard_normal(120)
    >>> 0.03 < range_limit(values, places) < 0.12
    True
    """
    share = check_failure(failure)
    columns, _ = aligned_values(values, 4)
    contrasts = _Contrasts.of(columns, _places(coordinates, len(columns)))
    beyond = _BEYOND * contrasts.farthest
    if not contrasts.rejects(beyond, math.inf, share):
        return math.inf
    least = contrasts.nearest / 64.0  # neighbours correlate with exp(-64) at most
    found = contrasts.largest(least, beyond, share)
    return least if found is None else found


@dataclass(frozen=True, slots=True)
class _Contrasts:
    """Contrasts of the values in an orthonormal basis, and the distances of the records."""

    values: FloatArray  # shape (n-1,): contrasts of the values
    basis: FloatArray  # shape (n, n-1): orthonormal, orthogonal to the vector of ones
    distances: FloatArray  # shape (n, n): of the records
    nearest: float  # smallest positive distance
    farthest: float  # largest distance

    @classmethod
    def of(cls, values: FloatArray, places: FloatArray) -> _Contrasts:
        """Return the contrasts of values at some places."""
        from scipy.spatial.distance import cdist

        count = len(values)
        distances = cdist(places, places)
        others = distances[~np.eye(count, dtype=np.bool_)]
        if not others.min() > 0.0:
            raise ArgumentError("coordinates", "two records at one place", "places that differ")
        if not others.max() < math.sqrt(np.finfo(np.float64).max):
            seen = f"a distance of {others.max():.3g}"
            raise ArgumentError("coordinates", seen, "places at smaller distances", "Use other units.")
        steps = np.arange(1.0, count)
        basis = np.triu(np.ones((count, count - 1))) - np.eye(count, count - 1, -1) * steps  # Helmert's contrasts
        basis /= np.sqrt(steps * (steps + 1.0))
        return cls(basis.T @ values, basis, distances, float(others.min()), float(others.max()))

    def largest(self, low: float, high: float, share: float) -> float | None:
        """Return the upper end of the highest interval that is not rejected, or None."""
        if self.rejects(low, high, share):
            return None
        if high <= low * _CLOSE:
            return high
        middle = math.sqrt(low * high)
        found = self.largest(middle, high, share)
        return self.largest(low, middle, share) if found is None else found

    def rejects(self, low: float, high: float, share: float) -> bool:
        """Return whether all ranges of an interval are rejected."""
        from scipy.linalg import eigvalsh

        smaller = self._covariance(self._against(low, share))
        self._check_condition(smaller)
        mean = self._form(smaller) / self._form(self._covariance(high))
        weights = np.maximum(eigvalsh(self._covariance(low), smaller), 0.0)
        at = mean * (1.0 + 2.0 * _SPECTRUM)
        return ratio_tail(weights * (1.0 - _SPECTRUM), np.ones(len(weights)), at, _LOOSE * share, share) <= share

    def _against(self, length: float, share: float) -> float:
        """Return the smaller range to test against: the nearest one that a series of this extent can distinguish."""
        from scipy.special import ndtri

        deviations = -float(ndtri(min(share, 0.4)))
        squares = deviations**2 / self.farthest
        return 1.0 / (1.0 / length + math.sqrt(2.0 * squares / length) + squares)

    def _covariance(self, length: float) -> FloatArray:
        """Return V(l)."""
        kernel = -self.distances if length == math.inf else length * np.expm1(-self.distances / length)
        whole: FloatArray = self.basis.T @ kernel @ self.basis
        return 0.5 * (whole + whole.T)

    def _check_condition(self, covariance: FloatArray) -> None:
        spectrum = np.linalg.eigvalsh(covariance)
        if not spectrum[0] > _CONDITION * spectrum[-1]:
            seen = f"distances from {self.nearest:.3g} to {self.farthest:.3g}, too unequal for exact eigenvalues"
            raise ArgumentError("coordinates", seen, "places that are not almost the same", "Keep one record of each.")

    def _form(self, covariance: FloatArray) -> float:
        from scipy.linalg import solve

        return float(self.values @ solve(covariance, self.values, assume_a="pos"))


def _places(coordinates: Any, count: int) -> FloatArray:
    expected = f"{count} places, one for each value: a number or d finite numbers each"
    places = real_array("coordinates", coordinates, expected)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or len(places) != count or not places.shape[1]:
        raise ArgumentError("coordinates", f"an array of shape {places.shape}", expected)
    if not np.isfinite(places).all():
        raise ArgumentError("coordinates", "a missing or infinite number", expected)
    if count > _MOST_RECORDS:
        expected = f"at most {_MOST_RECORDS:,} places"
        raise ArgumentError("coordinates", f"{count:,} places", expected, "Fit some of the records.")
    return places
