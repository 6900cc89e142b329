"""A spanning forest hung up at its roots, and sums along it: upwards over subtrees, downwards from the root."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable

import numpy as np

from graphs.numerics.arguments import IntArray

__all__ = ["NARROW", "Rooted", "grouped"]

#: Mean number of vertices in a level below which vertices are visited one by one instead of level by level.
NARROW = 24


class Rooted:
    """A breadth-first spanning forest of a graph, all trees hung from one extra vertex.

    Everything is in the order of discovery: position 0 is the extra vertex, parents come before children, levels and
    siblings are contiguous.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        Both directions of every link, in any order.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex; one tree for each.

    Attributes
    ----------
    order : ndarray of shape (n + 1,)
        Vertex at each position; n is the extra vertex.
    position : ndarray of shape (n + 1,)
        Position of each vertex.
    parent : ndarray of shape (n + 1,)
        Position of the parent of each position; 0 for position 0.
    levels : list of int
        Position at which each level starts, and n + 1.
    """

    def __init__(self, sources: IntArray, targets: IntArray, component: IntArray) -> None:
        from scipy import sparse
        from scipy.sparse.csgraph import breadth_first_order

        n = len(component)
        roots = np.zeros(int(component.max()) + 1, dtype=np.int64)
        roots[component[::-1]] = np.arange(n)[::-1]
        start = np.concatenate([sources, np.full(len(roots), n)])
        end = np.concatenate([targets, roots])
        links = sparse.csr_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(n + 1, n + 1))
        order, before = breadth_first_order(links, n, directed=True, return_predecessors=True)
        self.order: IntArray = order.astype(np.int64)
        self.position: IntArray = np.empty(n + 1, dtype=np.int64)
        self.position[self.order] = np.arange(n + 1)
        self.parent: IntArray = np.zeros(n + 1, dtype=np.int64)
        self.parent[1:] = self.position[before[self.order[1:]]]
        self.levels = _levels(self.parent)
        children = self.parent[1:]
        self._starts: IntArray = 1 + np.flatnonzero(np.r_[True, children[1:] != children[:-1]])
        self._parents: IntArray = self.parent[self._starts]

    @property
    def narrow(self) -> bool:
        """Whether the forest is so deep that going level by level does not pay."""
        return len(self.levels) * NARROW > len(self.order)

    def families(self, level: int) -> tuple[slice, IntArray, IntArray]:
        """Return the positions of a level, where its families of siblings start in it, and their parents."""
        low, high = self.levels[level], self.levels[level + 1]
        first, last = np.searchsorted(self._starts, [low, high])
        return slice(low, high), self._starts[first:last] - low, self._parents[first:last]

    def gather(self, values: IntArray, combine: np.ufunc) -> IntArray:
        """Combine the values of each position with those of all positions below it.

        Parameters
        ----------
        values : ndarray of shape (n + 1,)
            One integer per position.
        combine : numpy.add, numpy.minimum or numpy.maximum
            How.

        Returns
        -------
        ndarray of shape (n + 1,)
        """
        if self.narrow:
            scalars: dict[str, Callable[[int, int], int]] = {"add": operator.add, "minimum": min, "maximum": max}
            scalar = scalars[combine.__name__]
            items, parents = values.tolist(), self.parent.tolist()
            for p in range(len(items) - 1, 0, -1):
                items[parents[p]] = scalar(items[parents[p]], items[p])
            return np.array(items, dtype=np.int64)
        result = values.copy()
        for level in range(len(self.levels) - 2, 0, -1):
            members, starts, parents_here = self.families(level)
            result[parents_here] = combine(result[parents_here], combine.reduceat(result[members], starts))
        return result

    def preorder(self) -> tuple[IntArray, IntArray]:
        """Return when a depth-first walk meets each position, and how many hang below it, itself included."""
        sizes = self.gather(np.ones(len(self.order), dtype=np.int64), np.add)
        before = np.cumsum(sizes) - sizes
        offsets = before + 1
        lengths = np.diff(np.r_[self._starts, len(self.order)])
        offsets[1:] -= np.repeat(before[self._starts], lengths)
        offsets[0] = 0
        if self.narrow:
            items, parents = offsets.tolist(), self.parent.tolist()
            for p in range(1, len(items)):
                items[p] += items[parents[p]]
            return np.array(items, dtype=np.int64), sizes
        for low, high in zip(self.levels[1:], self.levels[2:], strict=False):
            offsets[low:high] += offsets[self.parent[low:high]]
        return offsets, sizes


def _levels(parent: IntArray) -> list[int]:
    """Return the first position of each level, and the number of positions."""
    parents = parent.tolist()
    starts, high = [0], 1
    while high < len(parents):
        starts.append(high)
        high = bisect.bisect_left(parents, high, high)
    return [*starts, len(parents)]


def grouped(keys: IntArray, count: int) -> IntArray:
    """Return an order that sorts `keys`, integers from 0 to count - 1, in linear time."""
    from scipy import sparse

    rows = np.arange(len(keys))
    table = sparse.csr_array((np.ones(len(keys), dtype=np.int8), (keys, rows)), shape=(count, max(len(keys), 1)))
    return table.indices.astype(np.int64)
