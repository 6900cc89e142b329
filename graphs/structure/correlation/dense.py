"""Correlation matrices that are kept whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, real_array
from graphs.numerics.bisection import BoolArray
from graphs.numerics.definite import dominates, largest_eigenvalue, smallest_eigenvalue
from graphs.structure.correlation.conditional import given_values
from graphs.structure.correlation.diagonal import dominating_diagonal
from graphs.structure.correlation.interface import MOST_GIVEN, ConditionalBounds, Correlation

__all__ = ["DenseCorrelation", "check_correlation", "refuse_indefinite"]

#: How far a diagonal may be from 1, entries from their mirror images, and eigenvalues below 0.
TOLERANCE = 1e-8


class DenseCorrelation(Correlation):
    """A correlation matrix as an array.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric, with ones on its diagonal, positive semidefinite; see `check_correlation`.
    origin : mapping, optional
        What the matrix was computed from, where that says more exactly what it is than its rounded entries.
    """

    def __init__(self, matrix: FloatArray, origin: Mapping[str, Any] | None = None) -> None:
        super().__init__(len(matrix))
        self._matrix = matrix
        self._origin = {"correlation": matrix} if origin is None else origin

    def dominating(self) -> FloatArray:
        """Return a diagonal for each block of dependent values, by `dominating_diagonal`."""
        found = np.ones(self.n)
        for members in self._blocks:
            found[members] = dominating_diagonal(self._matrix[np.ix_(members, members)])
        return found

    def radius(self) -> float:
        """Return the largest eigenvalue of the blocks, rounded up."""
        found = [largest_eigenvalue(self._matrix[np.ix_(members, members)]) for members in self._blocks]
        return max([1.0, *found])

    def least(self) -> float:
        """Return the smallest eigenvalue, rounded down."""
        return smallest_eigenvalue(self._matrix)

    def component(self) -> IntArray:
        """Return the connected component of each value where entries that are not 0 join them."""
        return self._component

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the values by the symmetric root of the matrix, so that singular matrices will do."""
        values, vectors = self._spectrum
        drawn: FloatArray = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(self.n))
        return drawn

    def content(self) -> Mapping[str, Any]:
        """Return the matrix, or what it was computed from."""
        return self._origin

    def describe(self) -> str:
        """Return a few words."""
        return "a correlation matrix"

    def dense(self) -> FloatArray:
        """Return the matrix."""
        return self._matrix

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for what is left of a component."""
        few = len(members) <= MOST_GIVEN
        return given_values(self._matrix[np.ix_(members, members)], known) if few else None

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh(self._matrix)
        return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)

    @cached_property
    def _component(self) -> IntArray:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        labels: IntArray = connected_components(csr_array(self._matrix != 0.0), directed=False)[1].astype(np.int64)
        return labels

    @property
    def _blocks(self) -> list[IntArray]:
        """Positions of the blocks of at least two values."""
        order = np.argsort(self._component, kind="stable")
        stops = np.cumsum(np.bincount(self._component))
        return [members for members in np.split(order, stops[:-1]) if len(members) > 1]


def check_correlation(argument: str, value: Any) -> FloatArray:
    """Return an array as a correlation matrix: exactly symmetric, with exactly ones on its diagonal.

    Parameters
    ----------
    argument : str
        Name for the error message.
    value : array_like of shape (n, n)
        Entries may be off their mirror images, the diagonal off 1, and eigenvalues below 0, by 1e-8.

    Raises
    ------
    ArgumentError
        For another shape, missing or infinite entries, a matrix that is not symmetric, a diagonal that is not 1, or a
        negative eigenvalue.

    Notes
    -----
    With an eigenvalue of -e the model's matrix is (R + e I)/(1 + e), which is a correlation matrix. A diagonal P with
    P >= R and entries of at least 1 is above it too.

    Examples
    --------
    >>> check_correlation("correlation", [[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    graphs.errors.ArgumentError: correlation: entry (0, 1) is 2; expected: numbers from -1 to 1
    """
    matrix = real_array(argument, value, "a square matrix of correlations")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ArgumentError(argument, f"an array of shape {matrix.shape}", "a square matrix of correlations")
    _refuse(argument, ~np.isfinite(matrix), matrix, "finite numbers: no correlation is missing")
    _refuse(argument, np.abs(matrix) > 1.0 + TOLERANCE, matrix, "numbers from -1 to 1")
    _refuse(argument, np.abs(matrix - matrix.T) > TOLERANCE, matrix, "a symmetric matrix")
    ones = np.eye(len(matrix), dtype=np.bool_)
    _refuse(argument, ones & (np.abs(matrix - 1.0) > TOLERANCE), matrix, "ones on the diagonal (covariance / sd / sd)")
    result: FloatArray = np.clip(0.5 * (matrix + matrix.T), -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    refuse_indefinite(argument, result)
    return result


def refuse_indefinite(argument: str, matrix: FloatArray) -> None:
    """Refuse a symmetric matrix with an eigenvalue below ``-TOLERANCE``.

    Raises
    ------
    ArgumentError
        With the least eigenvalue.
    """
    if dominates(np.full(len(matrix), TOLERANCE), -matrix):
        return
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -TOLERANCE:
        seen = f"a matrix with the eigenvalue {least:.6g}"
        raise ArgumentError(
            argument, seen, "a positive semidefinite matrix: no Gaussian values have these correlations"
        )


def _refuse(argument: str, bad: Any, matrix: FloatArray, expected: str) -> None:
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        raise ArgumentError(argument, f"entry ({row}, {column}) is {matrix[row, column]:.10g}", expected)
