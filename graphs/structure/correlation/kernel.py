"""Correlations that depend on the distance of places only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.structure.correlation.dense import TOLERANCE, DenseCorrelation, refuse_indefinite
from graphs.structure.correlation.interface import Correlation
from graphs.structure.correlation.sparse import SparseCorrelation, check_sparse

__all__ = ["Function", "KernelInBlocks", "kernel_correlation"]

#: A function of distances, applied to arrays.
Function = Callable[[FloatArray], FloatArray]

#: Most places with a stored matrix (128 MB), and most places where every two are correlated.
MOST_KEPT = 4096
MOST_PLACES = 50_000

#: Number of distances at which the values of a function enter the fingerprint.
PROBES = 101

#: Distances computed at a time (32 MB).
BLOCK = 4_000_000


class KernelInBlocks(Correlation):
    """Correlations of many places, computed block by block; only sums are stored."""

    def __init__(self, coordinates: FloatArray, function: Function) -> None:
        super().__init__(len(coordinates))
        chosen = np.random.default_rng(0).choice(self.n, 1024, replace=False)
        refuse_indefinite("function", correlations(coordinates[chosen], coordinates[chosen], function))
        self._coordinates, self._origin = coordinates, origin_of(coordinates, function)
        self._row_sums = self._sums(function, np.ones(self.n))
        moved = self._sums(function, self._row_sums)
        self._radius = min(float(up(moved / self._row_sums, 4).max()), float(self._row_sums.max()))

    def dominating(self) -> FloatArray:
        """Return the row sums of absolute correlations."""
        return self._row_sums

    def radius(self) -> float:
        """Return the bound of the row sums, as a vector [Collatz, Wielandt]."""
        return self._radius

    def component(self) -> IntArray:
        """Return one component: all places count as dependent."""
        return np.zeros(self.n, dtype=np.int64)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Refuse: a factorisation of so large a matrix is not stored."""
        return self.dense()

    def content(self) -> Mapping[str, Any]:
        """Return the places and the function."""
        return self._origin

    def describe(self) -> str:
        """Return a few words."""
        return f"correlations by distance in {self._coordinates.shape[1]} dimensions"

    def dense(self) -> FloatArray:
        """Refuse."""
        seen = f"a kernel over {self.n} places"
        expected = f"a kernel with a support, or over at most {MOST_KEPT} places, for sampling"
        raise ArgumentError("model", seen, expected)

    def _sums(self, function: Function, vector: FloatArray) -> FloatArray:
        """Return absolute correlations times a positive vector, rounded up."""
        rows = max(1, BLOCK // self.n)
        found = np.empty(self.n)
        for start in range(0, self.n, rows):
            block = np.abs(correlations(self._coordinates[start : start + rows], self._coordinates, function))
            at = np.arange(len(block))
            block[at, start + at] = 1.0
            found[start : start + rows] = block @ vector
        return up(found, self.n)


def kernel_correlation(coordinates: FloatArray, function: Function, support: float | None) -> Correlation:
    """Return the correlations of places: whole, sparse up to their support, or in blocks."""
    n = len(coordinates)
    if support is not None:
        ended = check_sparse("function", _within(coordinates, function, support))
        return SparseCorrelation(ended, {**origin_of(coordinates, function), "support": support})
    if n > MOST_PLACES:
        advice = "Pass support= for a function that is zero from some distance on."
        raise ArgumentError("coordinates", f"{n} places", f"at most {MOST_PLACES} places", advice)
    if n > MOST_KEPT:
        return KernelInBlocks(coordinates, function)
    matrix = correlations(coordinates, coordinates, function)
    matrix = 0.5 * (matrix + matrix.T)
    np.fill_diagonal(matrix, 1.0)
    refuse_indefinite("function", matrix)
    return DenseCorrelation(matrix, origin_of(coordinates, function))


def origin_of(coordinates: FloatArray, function: Function) -> dict[str, Any]:
    """Return the inputs of a kernel's matrix: places, and the function at some distances.

    Values of the function are rounded to 9 digits, since platforms differ in the last ones.
    """
    extent = float(np.linalg.norm(coordinates.max(axis=0) - coordinates.min(axis=0)))
    found = checked(function, np.linspace(0.0, extent, PROBES))
    return {"coordinates": coordinates, "correlations": np.round(found, 9) + 0.0}


def correlations(first: FloatArray, second: FloatArray, function: Function) -> FloatArray:
    """Return the checked function of the distances between places of two lists."""
    from scipy.spatial.distance import cdist

    return checked(function, cdist(first, second))


def checked(function: Function, distances: FloatArray) -> FloatArray:
    """Return the checked function of distances."""
    expected = "a correlation from -1 to 1 for each distance, with 1 at the distance 0"
    try:
        found = np.array(function(distances), dtype=np.float64)
        at_zero = float(np.asarray(function(np.zeros(1)), dtype=np.float64).ravel()[0])
    except (TypeError, ValueError) as error:
        raise ArgumentError("function", f"a function that fails on an array of distances ({error})", expected) from None
    if found.shape != distances.shape:
        raise ArgumentError("function", f"values of shape {found.shape} at {distances.shape}", expected)
    if not abs(at_zero - 1.0) <= TOLERANCE:
        raise ArgumentError("function", f"{at_zero:.10g} at the distance 0", expected)
    bad = ~(np.abs(found) <= 1.0 + TOLERANCE)
    if bad.any():
        where = distances[bad].flat[0]
        raise ArgumentError("function", f"{found[bad].flat[0]:.6g} at the distance {where:.6g}", expected)
    return np.clip(found, -1.0, 1.0)


def _within(coordinates: FloatArray, function: Function, support: float) -> Any:
    """Return the sparse matrix of correlations at distances up to `support`."""
    from scipy.sparse import coo_array, eye_array
    from scipy.spatial import cKDTree

    n = len(coordinates)
    pairs = cKDTree(coordinates).query_pairs(support, output_type="ndarray")
    first, second = pairs.T
    distances = np.linalg.norm(coordinates[first] - coordinates[second], axis=1)
    beyond = checked(function, np.linspace(support, 10.0 * support, 1001)[1:])
    if beyond.any():
        seen = f"correlations beyond the distance {support:.6g}"
        raise ArgumentError("support", seen, "a distance from which on the function is zero")
    values = checked(function, distances)
    matrix: Any = coo_array((values, (first, second)), shape=(n, n))
    return matrix + matrix.T + eye_array(n)
