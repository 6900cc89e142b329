"""Conditional autoregressions on a graph: correlations from a sparse precision matrix, which is never inverted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.bisection import BoolArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.interface import ConditionalBounds, Correlation

__all__ = ["ConditionalAutoregression"]

#: Most lifts of an approximate solution to one that is proved to be above.
LIFTS = 8

#: Graphs with at most so many nodes are inverted whole.
SMALL = 1024

#: Most powers of the matrix of neighbours, and most entries of all powers together.
POWERS = 12
MOST_ENTRIES = 16_000_000

#: Most power steps for the largest eigenvalue, the relative gap of its two bounds at which they end, and the least
#: entry of a vector, which has to stay positive.
STEPS = 12
CLOSE = 1e-4
TINY = 1e-9


class ConditionalAutoregression(Correlation):
    """Gaussian values whose mean given all others is rho times the weighted mean of their neighbours.

    The precision matrix is Q = D - rho W up to a factor: W the weights of edges, D the diagonal matrix of their sums at
    each node (1 at a node without an edge, or `degrees`). The correlation matrix is that of the inverse of Q. The first
    n nodes are the records; the values of the others are not observed.
    """

    def __init__(
        self,
        edges: IntArray,
        weights: FloatArray,
        nodes: int,
        n: int,
        rho: float,
        degrees: FloatArray | None = None,
    ) -> None:
        from scipy.sparse import coo_array

        super().__init__(n)
        self._edges, self._weights, self._nodes, self._rho = edges, weights, nodes, rho
        both = np.concatenate([edges, edges[:, ::-1]])
        entries = np.concatenate([weights, weights])
        self._joined: Any = coo_array((entries, (both[:, 0], both[:, 1])), shape=(nodes, nodes)).tocsr()
        sums = np.asarray(self._joined.sum(axis=1)).ravel()
        self._degrees: FloatArray = np.where(sums > 0.0, sums, 1.0) if degrees is None else degrees
        self._links = int(np.diff(self._joined.indptr).max(initial=0)) + 8

    def dominating(self) -> FloatArray:
        """Return bounds on the row sums of absolute correlations."""
        found: FloatArray = up(self._solution_above(self._of_records(self._root))[: self.n] * self._root[: self.n], 4)
        return np.maximum(found, 1.0)

    def radius(self) -> float:
        """Return a bound on the largest eigenvalue, from a vector near its eigenvector [Collatz, Wielandt]."""
        vector = self._of_records(np.ones(self._nodes))
        best = math.inf
        for _ in range(STEPS):
            moved = self._solution_above(self._root * vector) * self._root
            ratios = moved[: self.n] / vector[: self.n]
            best = min(best, float(up(ratios, 8).max()))
            if not best > float(ratios.min()) * (1 + CLOSE):
                break
            vector = self._of_records(moved / moved.max() + TINY)
        return max(best, 1.0)

    def least(self) -> float:
        """Return (1 - rho) / (1 + rho), rounded down: Q is between 1 - rho and 1 + rho times its diagonal D."""
        return (1.0 - abs(self._rho)) / (1.0 + abs(self._rho)) * (1 - 8 * UNIT)

    def component(self) -> IntArray:
        """Return the connected component of each record in the graph."""
        from scipy.sparse.csgraph import connected_components

        if self._rho == 0.0:
            return np.arange(self.n)
        labels = connected_components(self._joined, directed=False)[1]
        return np.unique(labels[: self.n], return_inverse=True)[1].astype(np.int64)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw the values, which have unit variances as far as `variances` is exact.

        Q = (1 - |rho|) D + |rho| B' W B, B the incidence matrix with the signs of rho. A vector with that covariance is
        drawn from standard normals, and a linear system with Q is solved for it.
        """
        first, second = self._edges.T
        rho = abs(self._rho)
        drawn = np.sqrt((1.0 - rho) * self._degrees) * rng.standard_normal(self._nodes)
        lonely = np.diff(self._joined.indptr) == 0
        drawn[lonely] = rng.standard_normal(int(lonely.sum()))
        along = np.sqrt(rho * self._weights) * rng.standard_normal(len(self._weights))
        np.add.at(drawn, first, along)
        np.add.at(drawn, second, -along if self._rho >= 0.0 else along)
        values = self._solved(drawn, self._rho)
        return (values * self._root)[: self.n]

    def content(self) -> Mapping[str, Any]:
        """Return edges, weights, the numbers of nodes and of records, and rho."""
        return {
            "edges": self._edges,
            "weights": self._weights,
            "nodes": self._nodes,
            "n": self.n,
            "rho": self._rho,
        }

    def describe(self) -> str:
        """Return a few words."""
        count = len(self._weights)
        return f"a conditional autoregression over {count} edge{'s' if count != 1 else ''}, rho = {self._rho:.4g}"

    def dense(self) -> FloatArray:
        """Return the correlation matrix."""
        inverse = np.linalg.inv(self._precision_matrix())[: self.n, : self.n]
        root = 1 / np.sqrt(np.diagonal(inverse))
        matrix: FloatArray = inverse * np.outer(root, root)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def given(self, members: IntArray, known: BoolArray) -> ConditionalBounds | None:
        """Return bounds for the unknown values: their precision matrix is Q without the known rows and columns."""
        if self._rho < 0.0:
            return None
        place = np.full(self._nodes, -1, dtype=np.int64)
        left = members[~known]
        others = np.setdiff1d(np.arange(self._nodes), members, assume_unique=True)
        kept = np.concatenate([left, others])
        place[kept] = np.arange(len(kept))
        edges = place[self._edges]
        inside = (edges >= 0).all(axis=1)
        rest = ConditionalAutoregression(
            edges[inside], self._weights[inside], len(kept), len(left), self._rho, self._degrees[kept]
        )
        rest._links = self._links
        return ConditionalBounds(rest.dominating(), rest.radius())

    def _precision_matrix(self) -> FloatArray:
        matrix: FloatArray = np.diag(self._degrees) - self._rho * self._joined.toarray()
        return matrix

    # Variances ---------------------------------------------------------------------------------------------

    @cached_property
    def _root(self) -> FloatArray:
        """Upper bounds on the inverse standard deviation of each node's value."""
        return up(1.0 / np.sqrt(self.variances), 4)

    @cached_property
    def variances(self) -> FloatArray:
        """Lower bounds on the diagonal of the inverse of Q: for every vector x, ``2 x_i - x' Q x`` is one."""
        found = self._variances_whole() if self._nodes <= SMALL else self._variances_by_walks()
        return np.maximum(found, 1.0 / up(self._degrees, self._links))

    def _variances_whole(self) -> FloatArray:
        matrix = self._precision_matrix()
        inverse = np.linalg.inv(matrix)
        value = 2.0 * np.diagonal(inverse) - np.einsum("ij,ij->j", inverse, matrix @ inverse)
        size = 2.0 * np.abs(np.diagonal(inverse)) + np.einsum(
            "ij,ij->j", np.abs(inverse), np.abs(matrix) @ np.abs(inverse)
        )
        return np.asarray(value - 4.0 * (self._nodes + 8) * UNIT * size, dtype=np.float64)

    def _variances_by_walks(self) -> FloatArray:
        """Take x among the polynomials of A = D^-1/2 W D^-1/2 at node i, for which walks give the entries (A^k)_ii."""
        from scipy.sparse import csr_array, diags_array

        scale = diags_array(1.0 / np.sqrt(self._degrees))
        normal: Any = csr_array(scale @ self._joined @ scale)
        found = np.empty(self._nodes)
        reach = self._powers_that_fit(normal)
        rows = max(1, 2_000_000 // max(1, self._width(normal, reach)))
        for start in range(0, self._nodes, rows):
            stop = min(start + rows, self._nodes)
            found[start:stop] = self._quadratures(normal, start, stop, reach)
        return found / up(self._degrees, self._links)

    @staticmethod
    def _width(normal: Any, reach: int) -> int:
        """Return about how many nodes are within so many steps of a node."""
        rows = normal[np.linspace(0, normal.shape[0] - 1, 64).astype(np.int64)]
        for _ in range(reach - 1):
            rows = rows @ normal
        return int(rows.nnz) // 64 + 1

    def _powers_that_fit(self, normal: Any) -> int:
        reach = 2
        while reach < POWERS and self._width(normal, reach + 1) * self._nodes <= MOST_ENTRIES:
            reach += 1
        return reach

    def _quadratures(self, normal: Any, start: int, stop: int, reach: int) -> FloatArray:
        """Return the bounds for some nodes, in units of 1/D_ii: the largest value over the coefficients of x."""
        count = stop - start
        local = np.arange(start, stop)
        moments = np.zeros((count, 2 * reach + 1))
        moments[:, 0] = 1.0
        before: Any = None
        power = normal[start:stop]
        for k in range(1, reach + 1):
            if before is None:
                moments[:, 1] = np.asarray(power[np.arange(count), local]).ravel()
            else:
                moments[:, 2 * k - 1] = np.asarray(power.multiply(before).sum(axis=1)).ravel()
            moments[:, 2 * k] = np.asarray(power.multiply(power).sum(axis=1)).ravel()
            before, power = power, power @ normal if k < reach else power
        places = np.add.outer(np.arange(reach), np.arange(reach))
        form = moments[:, places] - self._rho * moments[:, places + 1]
        # any coefficients are valid; the ridge keeps nearly singular systems solvable
        chosen = np.linalg.solve(form + 1e-10 * np.eye(reach), moments[:, :reach, None])[:, :, 0]
        value = 2.0 * np.einsum("ik,ik->i", chosen, moments[:, :reach])
        value -= np.einsum("ik,ikl,il->i", chosen, form, chosen)
        sizes = np.abs(chosen).sum(axis=1)
        # moments are at most 1, and sums of products of non-negative numbers, whose relative errors add up
        terms = 2 * reach * (2 * self._links + 16) + int(np.diff(power.indptr).max(initial=0)) + 2 * reach**2 + 64
        error = 4.0 * terms * UNIT * (sizes + sizes**2)
        return np.asarray(value - error, dtype=np.float64)

    # Solutions ---------------------------------------------------------------------------------------------

    def _solution_above(self, right: FloatArray) -> FloatArray:
        """Return y with ``(D - |rho| W) y >= right``, so that y is at least the sums of absolute covariances.

        The inverse of that matrix has no negative entry, and is at least the inverse of Q in absolute value. A solution
        that is short of the right side by at most ``delta (1 - |rho|) D_ii`` in row i is lifted by delta, and more.
        """
        rho = abs(self._rho)
        y = self._solved(right, rho)
        for _ in range(LIFTS):
            own, others = self._degrees * y, rho * (self._joined @ y)
            room = 4.0 * self._links * UNIT * (right + np.abs(own) + np.abs(others))
            lift = float(((right - (own - others) + room) / ((1.0 - rho) * self._degrees)).max())
            if lift <= 0.0:
                return y
            y = y + 2.0 * lift
        return np.full(self._nodes, math.inf)

    def _of_records(self, values: FloatArray) -> FloatArray:
        """Return values of nodes, with 0 at nodes that are no records."""
        found = values.copy()
        found[self.n :] = 0.0
        return found

    def _solved(self, right: FloatArray, rho: float) -> FloatArray:
        from scipy.sparse.linalg import LinearOperator, cg

        def product(x: FloatArray) -> FloatArray:
            found: FloatArray = self._degrees * x - rho * (self._joined @ x)
            return found

        shape = (self._nodes, self._nodes)
        matrix = LinearOperator(shape, matvec=product, dtype=np.float64)
        diagonal = LinearOperator(shape, matvec=lambda x: x / self._degrees, dtype=np.float64)
        # an approximate solution: `_solution_above` lifts it and checks the inequality
        found: FloatArray = cg(matrix, right, rtol=1e-10, atol=0.0, maxiter=5000, M=diagonal)[0]
        return found
