"""Correlation matrices with few entries that are not zero: bands, neighbours, kernels that end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.bisection import BoolArray
from graphs.numerics.definite import largest_eigenvalue
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.dense import TOLERANCE, dominating_diagonal, given_values, refuse_indefinite
from graphs.structure.correlation.interface import MOST_GIVEN, ConditionalBounds, Correlation

__all__ = ["SparseCorrelation", "check_sparse"]

#: Largest size and number of the blocks treated as dense matrices.
SMALL = 1024
MOST_BLOCKS = 256

#: Largest work and size of a factorisation in a band.
WIDEST = 4e9
MOST_BAND = 50_000_000

#: Lanczos steps of the search for a negative eigenvalue, and the degree of the polynomial for the square root.
LANCZOS = 80
DEGREE = 200

#: Most power steps for the largest eigenvalue, and the relative gap of its two bounds at which they end.
STEPS = 60
CLOSE = 1e-4


class SparseCorrelation(Correlation):
    """A correlation matrix in compressed rows, as `check_sparse` returns it.

    `origin` replaces the rounded entries in the model's fingerprint, where they were computed from exact inputs.
    """

    def __init__(self, matrix: Any, origin: Mapping[str, Any] | None = None) -> None:
        super().__init__(matrix.shape[0])
        self._origin = origin
        self._matrix = matrix
        self._mixed = bool((matrix.data < 0.0).any())
        self._terms = float(np.diff(matrix.indptr).max()) + 4.0

    def dominating(self) -> FloatArray:
        """Return the row sums of absolute values, or better diagonals in small blocks with mixed signs."""
        found: FloatArray = up(np.asarray(abs(self._matrix).sum(axis=1)).ravel(), self._terms)
        for members in self._small_blocks if self._mixed else []:
            better = dominating_diagonal(self._matrix[members][:, members].toarray())
            if float(better.sum()) < float(found[members].sum()):
                found[members] = better
        return found

    def radius(self) -> float:
        """Return the larger of the eigenvalues of small blocks and the bound of a vector for the others.

        For positive v the largest ``(|R| v)_i / v_i`` is at least the largest eigenvalue [Collatz, Wielandt].
        """
        left = np.ones(self.n, dtype=np.bool_)
        found = 1.0
        for members in self._small_blocks if self._mixed else []:
            found = max(found, largest_eigenvalue(self._matrix[members][:, members].toarray()))
            left[members] = False
        if not left.any():
            return found
        sizes: Any = abs(self._matrix[left][:, left])
        vector, best = np.ones(int(left.sum())), math.inf
        for _ in range(STEPS):
            moved = sizes @ vector
            ratios = moved / vector
            best = min(best, float(up(ratios, self._terms).max()))
            if not best > float(ratios.min()) * (1 + CLOSE):
                break
            # a positive vector is needed; which one affects the sharpness of the bound only
            vector = moved / moved.max() + 1e-9
        return max(found, best)

    def least(self) -> float:
        """Return the diagonal less the row sums of the other absolute values, rounded down."""
        # Gershgorin: 1 - (row sum - 1), as the diagonal is exactly 1
        sums = np.asarray(abs(self._matrix).sum(axis=1)).ravel()
        return max(2.0 - float(up(sums, self.n).max()) - 4 * UNIT, 0.0)

    def component(self) -> IntArray:
        """Return the connected component of each value."""
        return self._component

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the values: exactly in small blocks, with a polynomial for the square root of the matrix in larger ones.

        Correlations of the drawn values are off by about 0.001 then.
        """
        drawn = rng.standard_normal(self.n)
        for members in self._blocks:
            block = self._matrix[members][:, members]
            if len(members) <= SMALL:
                values, vectors = np.linalg.eigh(block.toarray())
                drawn[members] = vectors @ (np.sqrt(np.maximum(values, 0.0)) * drawn[members])
            else:
                most = float(np.asarray(abs(block).sum(axis=1)).max())
                drawn[members] = _root_times(block, drawn[members], most)
        return drawn

    def content(self) -> Mapping[str, Any]:
        """Return the nonzero entries with their positions, or the origin."""
        if self._origin is not None:
            return self._origin
        entries = self._matrix.tocoo()
        return {"n": self.n, "rows": entries.row, "columns": entries.col, "values": entries.data}

    def describe(self) -> str:
        """Return a few words."""
        return f"a correlation matrix of {self._matrix.nnz} entries that are not zero"

    def dense(self) -> FloatArray:
        """Return the matrix as an array."""
        matrix: FloatArray = self._matrix.toarray()
        return matrix

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values of a small component."""
        few = len(members) <= MOST_GIVEN
        return given_values(self._matrix[members][:, members].toarray(), known) if few else None

    @cached_property
    def _component(self) -> IntArray:
        from scipy.sparse.csgraph import connected_components

        labels: IntArray = connected_components(self._matrix, directed=False)[1].astype(np.int64)
        return labels

    @cached_property
    def _blocks(self) -> list[IntArray]:
        """Positions of the blocks of at least two values."""
        order = np.argsort(self._component, kind="stable")
        stops = np.cumsum(np.bincount(self._component))
        return [members for members in np.split(order, stops[:-1]) if len(members) > 1]

    @property
    def _small_blocks(self) -> list[IntArray]:
        """The blocks treated as dense matrices: none where there are too many."""
        small = [members for members in self._blocks if len(members) <= SMALL]
        return small if len(small) <= MOST_BLOCKS else []


def check_sparse(argument: str, value: Any) -> Any:
    """Return a sparse correlation matrix as sorted compressed rows, symmetric, with ones on its diagonal."""
    from scipy.sparse import csr_array, eye_array

    if value.ndim != 2 or value.shape[0] != value.shape[1] or not value.shape[0]:
        raise ArgumentError(argument, f"a matrix of shape {value.shape}", "a square matrix of correlations")
    if value.dtype.kind not in "iuf":
        raise ArgumentError(argument, f"values of type {value.dtype}", "a square matrix of correlations")
    matrix: Any = csr_array(value).astype(np.float64)
    matrix.sum_duplicates()
    data = matrix.data
    if not np.isfinite(data).all():
        raise ArgumentError(argument, repr(float(data[~np.isfinite(data)][0])), "a matrix of finite numbers")
    if (np.abs(data) > 1.0 + TOLERANCE).any():
        beyond = float(data[np.abs(data) > 1.0 + TOLERANCE][0])
        raise ArgumentError(argument, repr(beyond), "a matrix of numbers from -1 to 1")
    off = abs(matrix - matrix.T)
    if off.nnz and off.max() > TOLERANCE:
        row, column = (int(k[int(np.argmax(off.tocoo().data))]) for k in off.tocoo().coords)
        raise ArgumentError(
            argument, f"entries ({row}, {column}) and ({column}, {row}) that differ", "a symmetric matrix"
        )
    diagonal = matrix.diagonal()
    if (np.abs(diagonal - 1.0) > TOLERANCE).any():
        place = int(np.flatnonzero(np.abs(diagonal - 1.0) > TOLERANCE)[0])
        seen = f"entry ({place}, {place}), which is {diagonal[place]:.10g}"
        raise ArgumentError(argument, seen, "a matrix with ones on its diagonal")
    half = 0.5 * (matrix + matrix.T)
    half.setdiag(0.0)
    result: Any = csr_array(half + eye_array(half.shape[0]))
    result.eliminate_zeros()
    result.sort_indices()
    _refuse_indefinite_sparse(argument, result)
    return result


def _refuse_indefinite_sparse(argument: str, matrix: Any) -> None:
    from scipy.linalg import LinAlgError, cholesky_banded
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = matrix.shape[0]
    if np.asarray(abs(matrix).sum(axis=1)).max() <= 2.0:
        return
    if n <= 2 * SMALL:
        refuse_indefinite(argument, matrix.toarray())
        return
    seen = "a matrix with a negative eigenvalue"
    expected, advice = "a positive semidefinite matrix", "No Gaussian values have these correlations."
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    entries = matrix[order][:, order].tocoo()
    width = int(np.abs(entries.row - entries.col).max())
    if n * (width + 1.0) ** 2 <= WIDEST and n * (width + 1) <= MOST_BAND:
        band = np.zeros((width + 1, n))
        lower = entries.row >= entries.col
        band[entries.row[lower] - entries.col[lower], entries.col[lower]] = entries.data[lower]
        band[0] += TOLERANCE
        try:
            cholesky_banded(band, lower=True)
        except LinAlgError:
            raise ArgumentError(argument, seen, expected, advice) from None
        return
    least = _least_seen(matrix)
    # a Lanczos value is at least the least eigenvalue, up to the loss of orthogonality that the tolerance covers
    if least < -1e-6:
        raise ArgumentError(argument, f"a matrix with an eigenvalue of at most {least:.6g}", expected, advice)


def _least_seen(matrix: Any) -> float:
    """Return a number that is not below the least eigenvalue, by Lanczos steps from a random vector."""
    before = np.zeros(matrix.shape[0])
    vector = np.random.default_rng(0).standard_normal(matrix.shape[0])
    vector /= np.linalg.norm(vector)
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(LANCZOS):
        moved = matrix @ vector
        diagonal.append(float(moved @ vector))
        moved -= diagonal[-1] * vector + (beside[-1] * before if beside else 0.0)
        beside.append(float(np.linalg.norm(moved)))
        if beside[-1] < 1e-9:  # the Krylov space is exhausted, and the next vector would be rounding errors
            break
        before, vector = vector, moved / beside[-1]
    off = beside[: len(diagonal) - 1]
    return float(np.linalg.eigvalsh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))[0])


def _root_times(matrix: Any, vector: FloatArray, most: float) -> FloatArray:
    """Return nearly the symmetric square root of a sparse matrix with eigenvalues from 0 to `most` times a vector."""
    angles = (np.arange(DEGREE + 1) + 0.5) * math.pi / (DEGREE + 1)
    at = np.sqrt(most * (np.cos(angles) + 1.0) / 2.0)
    weights = 2.0 / (DEGREE + 1) * np.cos(np.outer(np.arange(DEGREE + 1), angles)) @ at
    weights[0] /= 2.0
    before, here = vector, (2.0 / most) * (matrix @ vector) - vector
    found: FloatArray = weights[0] * before + weights[1] * here
    for weight in weights[2:].tolist():
        before, here = here, 2.0 * ((2.0 / most) * (matrix @ here) - here) - before
        found += weight * here
    return found
