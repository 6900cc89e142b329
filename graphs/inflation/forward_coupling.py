"""Variance inflation of a Bayesian network by coupling changes from parents to children.

Proof: `graphs/PROOFS.md`, section on forward couplings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up

__all__ = ["ForwardCoupling", "total_variations"]

#: Above so many nodes changes are followed backwards: linear in the edges, but without the caps.
MOST_FORWARD = 3_000

#: Nodes whose changes are followed at a time, so that the arrays fit into the processor's cache.
AT_ONCE = 500


@dataclass(frozen=True)
class ForwardCoupling:
    """A directed network with bounds on the total variation by which a parent moves its child's law."""

    order: IntArray  # shape (m,): nodes, parents before children
    parents: IntArray  # shape (E,): start of each edge
    children: IntArray  # shape (E,): end of each edge
    # shape (E,): largest total variation distance between two laws of the child whose parents differ in this one
    # alone
    shares: FloatArray
    caps: FloatArray  # shape (m,): largest total variation distance between any two laws of a node given its parents
    unfit: npt.NDArray[np.bool_]  # shape (m,): nodes whose law given known nodes does not factor along the edges

    def without(self, known: npt.NDArray[np.bool_]) -> ForwardCoupling:
        """Return the network without known nodes; the unknown parents of a known node are unfit."""
        unfit = self.unfit & ~known
        unfit[self.parents[known[self.children]]] = True
        kept = ~known[self.parents] & ~known[self.children]
        return replace(
            self,
            parents=self.parents[kept],
            children=self.children[kept],
            shares=self.shares[kept],
            unfit=unfit & ~known,
        )

    def repeated(self, copies: int) -> ForwardCoupling:
        """Return independent copies of the network."""
        apart = len(self.order) * np.arange(copies)[:, None]
        return ForwardCoupling(
            (self.order + apart).ravel(),
            (self.parents + apart).ravel(),
            (self.children + apart).ravel(),
            np.tile(self.shares, copies),
            np.tile(self.caps, copies),
            np.tile(self.unfit, copies),
        )

    def squares(self, weights: FloatArray, part: IntArray) -> FloatArray:
        """Return the sum of squared widths of each part, rounded up; infinite for parts with an unfit node."""
        count = int(part.max()) + 1
        widths = self.widths(weights)
        found: FloatArray = np.bincount(part, weights=widths**2, minlength=count).astype(np.float64)
        found = up(found, len(part) + 4)
        found[part[self.unfit]] = np.inf
        return found

    def widths(self, weights: FloatArray) -> FloatArray:
        """Return for each node a bound on the expected weight that changes with it, given the earlier nodes."""
        m = len(self.order)
        degree = int(np.bincount(self.children, minlength=m).max(initial=0))
        steps = float((degree + 4) * m)
        if m > MOST_FORWARD:  # the weight of all nodes is a bound in any case
            return up(np.minimum(self._backward(weights), float(weights.sum())), steps)
        rank = np.empty(m, dtype=np.int64)
        rank[self.order] = np.arange(m)
        # edges sorted by their children, so that the parents of a node are a slice
        by_child = np.lexsort((self.parents, rank[self.children]))
        parents, shares = rank[self.parents[by_child]], self.shares[by_child]
        starts = np.searchsorted(rank[self.children[by_child]], np.arange(m + 1)).tolist()
        of_rank, caps = weights[self.order], self.caps[self.order].tolist()
        found = np.empty(m)
        for first in range(0, m, AT_ONCE):
            last = min(first + AT_ONCE, m)
            changed = np.zeros((m, last - first))
            total = np.zeros(last - first)
            for node in range(first, m):
                above = slice(starts[node], starts[node + 1])
                row = changed[node]
                if starts[node + 1] > starts[node]:
                    of_parents = changed[parents[above]]
                    np.minimum(shares[above] @ of_parents, caps[node] * np.minimum(of_parents.sum(axis=0), 1), out=row)
                if node < last:
                    row[node - first] = 1.0
                if of_rank[node]:
                    total += of_rank[node] * row
            found[first:last] = total
        widths = np.empty(m)
        widths[self.order] = found
        return up(widths, steps)

    def _backward(self, weights: FloatArray) -> FloatArray:
        """Return the sums over all directed walks, from the last node to the first."""
        by_parent = np.argsort(self.parents, kind="stable")
        children, shares = self.children[by_parent].tolist(), self.shares[by_parent].tolist()
        starts = np.searchsorted(self.parents[by_parent], np.arange(len(self.order) + 1)).tolist()
        found = weights.tolist()
        for node in reversed(self.order.tolist()):
            for edge in range(starts[node], starts[node + 1]):
                found[node] += shares[edge] * found[children[edge]]
        return np.array(found)


def total_variations(stack: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of the parents of many nodes, shape (F, p), and their caps, shape (F,), rounded up.

    >>> shares, caps = total_variations(np.array([[[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.5, 0.5]]]]))
    >>> shares.round(9), caps.round(9)
    (array([[0.2, 0.3]]), array([0.4]))
    """
    shares = [_largest(np.moveaxis(stack, axis, 1)) for axis in range(1, stack.ndim - 1)]
    caps = _largest(stack.reshape(len(stack), -1, 1, stack.shape[-1]))
    return np.stack(shares, axis=1) if shares else np.zeros((len(stack), 0)), caps


def _largest(laws: FloatArray) -> FloatArray:
    """Return the largest distances between laws that differ in the second axis alone."""
    found = np.zeros(len(laws))
    for k in range(laws.shape[1] - 1):
        apart = np.abs(laws[:, k + 1 :] - laws[:, k : k + 1]).sum(axis=-1)
        np.maximum(found, apart.reshape(len(laws), -1).max(axis=1) / 2, out=found)
    # an entry is off by 3 roundings of a number below 1, a sum of k of them by k more
    return np.where(found > 0, np.minimum(found + 8 * laws.shape[-1] * UNIT, 1.0), 0.0)
