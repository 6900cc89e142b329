"""Correlation matrices stored whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, real_array
from graphs.numerics.bisection import BoolArray
from graphs.numerics.definite import dominates, largest_eigenvalue, least_lift, smallest_eigenvalue
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.interface import MOST_GIVEN, ConditionalBounds, Correlation

__all__ = [
    "DenseCorrelation",
    "check_correlation",
    "dominating_diagonal",
    "given_values",
    "given_variances",
    "refuse_indefinite",
]

#: Values with a smaller conditional variance count as determined by the known ones, without a bound.
LEAST_VARIANCE = 1e-6


def given_values(matrix: FloatArray, known: BoolArray, off: float = 0.0) -> ConditionalBounds | None:
    """Return bounds for the unknown values, given the others exactly; None where they are not proved.

    The conditional covariance matrix is ``S = R_LL - R_LK R_KK^-1 R_KL``. For every matrix Y the covariance T of
    ``Z_L - Y' Z_K`` is at least S, and ``T - S = F' R_KK^-1 F`` with ``F = R_KL - R_KK Y``. So T is above S, and
    ``T_ii - |F_i|^2/m`` is below S_ii when m is below the least eigenvalue of R_KK. With d_i that bound, a diagonal
    above ``d^-1/2 T d^-1/2`` is above the conditional correlations too.

    >>> series = 0.5 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> given_values(series, np.array([False, True, False])).diagonal.round(9)
    array([1., 1.])
    """
    found = _conditional(matrix, known, off)
    if found is None:
        return None
    covariance, variances, room = found
    root = 1.0 / np.sqrt(variances)
    scaled: FloatArray = 0.5 * (covariance + covariance.T) * np.outer(root, root)
    # an error of at most `room` in every entry moves quadratic forms by at most n times that
    lift = len(scaled) * up(room * float(root.max()) ** 2, 64)
    return ConditionalBounds(up(dominating_diagonal(scaled) + lift, 4), up(largest_eigenvalue(scaled) + lift, 4))


def given_variances(matrix: FloatArray, known: BoolArray, off: float = 0.0) -> FloatArray | None:
    """Return lower bounds on the variances of the unknown values, given the others exactly.

    >>> series = 0.5 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> given_variances(series, np.array([False, True, False])).round(9)
    array([0.75, 0.75])
    """
    found = _conditional(matrix, known, off)
    return None if found is None else found[1]


def _conditional(matrix: FloatArray, known: BoolArray, off: float) -> tuple[FloatArray, FloatArray, float] | None:
    """Return T, lower bounds on the diagonal of S, and a bound on the error of an entry of T."""
    inner, across = matrix[np.ix_(known, known)], matrix[np.ix_(known, ~known)]
    count = len(inner)
    # half of a computed eigenvalue is a candidate that the factorisation can prove
    least = 0.5 * float(np.linalg.eigvalsh(inner)[0])
    if not least > 0.0 or not dominates(np.full(count, -least), -inner):
        return None
    least -= 2.0 * count * off
    weights = np.linalg.solve(inner, across)
    product = inner @ weights
    covariance = matrix[np.ix_(~known, ~known)] - weights.T @ across - across.T @ weights + weights.T @ product
    sizes = np.abs(weights)
    reach = up(1.0 + sizes.sum(axis=0), count)
    most = up(float((sizes.T @ (2.0 * np.abs(across) + np.abs(inner) @ sizes)).max()) + 1.0, 4.0 * count)
    error = up(4.0 * (count + 8) * UNIT * most + off * float(reach.max()) ** 2, 8)
    rounding = 2.0 * (count + 8) * UNIT * (np.linalg.norm(np.abs(inner) @ sizes, axis=0) + count) + count * off * reach
    residual = np.linalg.norm(across - product, axis=0) + rounding
    if not least > 0.0:
        return None
    variances = np.diagonal(covariance) - error - up(residual**2 / least, 64)
    if not (variances > LEAST_VARIANCE).all():
        return None
    return covariance, variances, error + 8.0 * UNIT * most


#: Passes of the search for a diagonal of small trace, and its momentum (share of the last move); affect the trace only.
PASSES = 60
MOMENTUM = 0.8

#: First lift of such a diagonal, relative to its mean.
LEAST_LIFT = 1e-6


def dominating_diagonal(matrix: FloatArray) -> FloatArray:
    """Return the diagonal of a matrix P of small trace for which P - R is proved to be positive semidefinite.

    The row sums of absolute values suffice (diagonal dominance). Where no entry is negative, or only the signs of some
    values differ, no trace is smaller: the trace is at least ``sum R_ij v_i v_j`` for signs v. Elsewhere the dual
    problem, the largest ``sum R_ij <v_i, v_j>`` over unit vectors, is climbed: each pass turns v_i towards ``sum_j R_ij
    v_j``, whose length becomes p_i. Then p is lifted until a factorisation proves it.

    >>> dominating_diagonal(np.array([[1.0, 0.5], [0.5, 1.0]])).round(9)
    array([1.5, 1.5])
    """
    n = len(matrix)
    rows: FloatArray = up(np.abs(matrix).sum(axis=1), n)
    if (matrix >= 0.0).all():
        return rows
    largest = largest_eigenvalue(matrix)
    best = rows if float(rows.sum()) <= largest * n else np.full(n, largest)
    lengths = _climbed(matrix)
    mean = float(lengths.mean())
    if mean * n >= float(best.sum()):
        return best
    lift = least_lift(lambda more: dominates(lengths + more, matrix), LEAST_LIFT * mean, largest)
    if lift is None:
        return best
    found = np.maximum(lengths + lift, 1.0)
    return found if float(found.sum()) < float(best.sum()) else best


def _climbed(matrix: FloatArray) -> FloatArray:
    """Return the lengths of ``sum_j R_ij v_j`` for unit vectors v whose sum of products is large."""
    n = len(matrix)
    vectors: FloatArray = np.random.default_rng(0).standard_normal((n, min(n, math.isqrt(2 * n) + 2)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    before = vectors
    for _ in range(PASSES):
        moved = matrix @ (vectors + MOMENTUM * (vectors - before))
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        before, vectors = vectors, moved / np.maximum(lengths, np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.norm(matrix @ vectors, axis=1), dtype=np.float64)


#: Tolerance for the diagonal (1), for symmetry, and for negative eigenvalues: rounded correlations of typed data.
TOLERANCE = 1e-8


class DenseCorrelation(Correlation):
    """A correlation matrix as an array, as `check_correlation` returns it.

    `origin` replaces the rounded entries in the model's fingerprint, where they were computed from exact inputs.
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
        """Draw the values by the symmetric root of the matrix, which may be singular."""
        values, vectors = self._spectrum
        drawn: FloatArray = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(self.n))
        return drawn

    def content(self) -> Mapping[str, Any]:
        """Return the matrix, or its origin."""
        return self._origin

    def describe(self) -> str:
        """Return a few words."""
        return "a correlation matrix"

    def dense(self) -> FloatArray:
        """Return the matrix."""
        return self._matrix

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values of a component."""
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

    With an eigenvalue of -e the model's matrix is (R + e I)/(1 + e), which is a correlation matrix. A diagonal P with
    P >= R and entries of at least 1 is above it too.
    """
    matrix = real_array(argument, value, "a square matrix of correlations")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ArgumentError(argument, f"an array of shape {matrix.shape}", "a square matrix of correlations")
    _refuse(argument, ~np.isfinite(matrix), matrix, "a matrix of finite numbers")
    _refuse(argument, np.abs(matrix) > 1.0 + TOLERANCE, matrix, "a matrix of numbers from -1 to 1")
    _refuse(argument, np.abs(matrix - matrix.T) > TOLERANCE, matrix, "a symmetric matrix")
    ones = np.eye(len(matrix), dtype=np.bool_)
    _refuse(argument, ones & (np.abs(matrix - 1.0) > TOLERANCE), matrix, "a matrix with ones on its diagonal")
    result: FloatArray = np.clip(0.5 * (matrix + matrix.T), -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    refuse_indefinite(argument, result)
    return result


def refuse_indefinite(argument: str, matrix: FloatArray) -> None:
    """Refuse a symmetric matrix with an eigenvalue below ``-TOLERANCE``."""
    if dominates(np.full(len(matrix), TOLERANCE), -matrix):
        return
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -TOLERANCE:
        seen = f"a matrix with the eigenvalue {least:.6g}"
        raise ArgumentError(
            argument, seen, "a positive semidefinite matrix", "No Gaussian values have these correlations."
        )


def _refuse(argument: str, bad: Any, matrix: FloatArray, expected: str) -> None:
    if bad.any():
        row, column = (int(k) for k in np.argwhere(bad)[0])
        raise ArgumentError(argument, f"entry ({row}, {column}), which is {matrix[row, column]:.10g}", expected)
