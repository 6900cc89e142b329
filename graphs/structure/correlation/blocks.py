"""Correlations of records with several Gaussian values each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.definite import is_semidefinite, least_lift
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.interface import Correlation

__all__ = ["BlockCorrelation"]

#: Least eigenvalue of the correlations of a record's own values: whitening divides by its root.
LEAST = 1e-6

#: First lift of the search for a provable diagonal, relative.
LEAST_LIFT = 1e-9


class BlockCorrelation(Correlation):
    """Correlations between records with several values each.

    With T the matrix and T_ij its block of the values of records i and j, ``diag(p_i T_ii)`` is above T when p_i is at
    least the sum over j of the norms of the whitened blocks ``T_ii^-1/2 T_ij T_jj^-1/2``. A factorisation proves it
    afterwards.
    """

    def __init__(self, matrix: FloatArray, index: IntArray) -> None:
        super().__init__(int(index.max()) + 1)
        self._matrix, self._index = matrix, index
        self._members = [np.flatnonzero(index == record) for record in range(self.n)]
        self._roots = [self._root(record) for record in range(self.n)]

    def dominating(self) -> FloatArray:
        """Return the sums of the norms of whitened blocks, lifted until a factorisation proves them."""
        found: FloatArray = self._norms.sum(axis=1)
        lift = least_lift(lambda share: self._above(found * (1.0 + share)), LEAST_LIFT, float(self.n))
        return np.full(self.n, float(self.n)) if lift is None else np.maximum(found * (1.0 + lift), 1.0)

    def radius(self) -> float:
        """Return the largest eigenvalue of the whitened matrix, lifted in the same way."""
        whitened = self._roots_matrix @ self._matrix @ self._roots_matrix.T
        near = float(np.linalg.eigvalsh(0.5 * (whitened + whitened.T))[-1])  # a guess, lifted until it is proved
        ones = np.ones(self.n)
        lift = least_lift(lambda share: self._above(near * (1.0 + share) * ones), LEAST_LIFT, float(self.n))
        return float(self.n) if lift is None else max(near * (1.0 + lift), 1.0)

    def component(self) -> IntArray:
        """Return the connected component of each record where entries that are not 0 join them."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        rows, columns = np.nonzero(self._matrix)
        joined = csr_array((np.ones(len(rows)), (self._index[rows], self._index[columns])), shape=(self.n, self.n))
        labels: IntArray = connected_components(joined, directed=False)[1].astype(np.int64)
        return labels

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the values, shape (n, k): a row for each record, its values in their order."""
        counts = np.bincount(self._index)
        if counts.min() < counts.max():
            seen = f"records of {counts.min()} to {counts.max()} values"
            raise ArgumentError("model", seen, "a model with equally many values for each record, for sampling")
        values, vectors = np.linalg.eigh(self._matrix)
        drawn: FloatArray = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        return drawn[np.concatenate(self._members)].reshape(self.n, -1)

    def content(self) -> Mapping[str, Any]:
        """Return matrix and index."""
        return {"correlation": self._matrix, "records": self._index}

    def describe(self) -> str:
        """Return a few words."""
        return f"a correlation matrix of {len(self._index)} values"

    def dense(self) -> FloatArray:
        """Return the matrix of all values."""
        return self._matrix

    def _root(self, record: int) -> FloatArray:
        """Return a whitening matrix of a record's own values."""
        members = self._members[record]
        own = self._matrix[np.ix_(members, members)]
        values, vectors = np.linalg.eigh(own)
        if values[0] < LEAST:
            seen = f"values of record {record} that are functions of each other (eigenvalue {values[0]:.3g})"
            expected = "a matrix in which no value of a record is a function of its others"
            raise ArgumentError("correlation", seen, expected, "Leave out one of them.")
        root: FloatArray = (vectors / np.sqrt(values)).T
        return root

    @cached_property
    def _roots_matrix(self) -> FloatArray:
        from scipy.linalg import block_diag

        order = np.concatenate(self._members)
        found = np.zeros_like(self._matrix)
        found[:, order] = block_diag(*self._roots)
        return found

    @cached_property
    def _norms(self) -> FloatArray:
        """Norms of the whitened blocks, not yet rounded conservatively."""
        whitened = self._roots_matrix @ self._matrix @ self._roots_matrix.T
        stops = np.cumsum([len(members) for members in self._members])[:-1]
        rows = np.split(whitened, stops, axis=0)
        blocks = [np.split(row, stops, axis=1) for row in rows]
        return np.array([[np.linalg.norm(block, 2) for block in row] for row in blocks])

    def _above(self, p: FloatArray) -> bool:
        """Return whether ``diag(p_i T_ii)`` is proved to be above T."""
        own = self._index[:, None] == self._index
        above: FloatArray = np.where(own, (p[self._index] - 1.0)[:, None], -1.0) * self._matrix
        widest = max(len(members) for members in self._members)
        rounding = up(4.0 * UNIT * (float(np.abs(above).sum(axis=1).max()) + widest * float(p.max())), len(above))
        return is_semidefinite(above, rounding)
