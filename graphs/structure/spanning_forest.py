"""A rooted spanning forest, and sums along it: upwards over subtrees, downwards from the root."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable

import numpy as np

from graphs.numerics.arguments import IntArray

__all__ = ["NARROW", "Branches", "Rooted", "grouped"]


class Branches:
    """The branches at every vertex of a graph; links come first all in one direction, then all in the other."""

    def __init__(self, sources: IntArray, targets: IntArray, component: IntArray) -> None:
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        tree = Rooted(sources, targets, component)
        size = len(tree.order)
        self._component = component
        self._targets = targets
        preorder, below = tree.preorder()
        self._begin = preorder[tree.position[:-1]]
        self._end = self._begin + below[tree.position[:-1]]
        parent = tree.order[tree.parent]
        over = np.empty(size, dtype=np.int64)
        over[tree.order] = parent
        half = len(sources) // 2
        first, second = sources[:half], targets[:half]
        # biconnected blocks by [Tarjan, Vishkin 1985]: components of an auxiliary graph on tree edges
        cross = np.flatnonzero((over[first] != second) & (over[second] != first))
        low, high = preorder.copy(), preorder.copy()
        ends = tree.position[first[cross]], tree.position[second[cross]]
        for near, far in (ends, ends[::-1]):
            np.minimum.at(low, near, preorder[far])
            np.maximum.at(high, near, preorder[far])
        low, high = tree.gather(low, np.minimum), tree.gather(high, np.maximum)
        # a subtree with a link outside its parent's subtree shares a block with the parent's own tree edge
        leaves_parent = (low < preorder[tree.parent]) | (high >= (preorder + below)[tree.parent])
        joined = np.flatnonzero(leaves_parent & (tree.parent > 0))
        start = np.concatenate([first[cross], tree.order[joined]])
        end = np.concatenate([second[cross], parent[joined]])
        auxiliary = sparse.coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(size, size))
        count, labels = connected_components(auxiliary, directed=False)
        depth = np.repeat(np.arange(len(tree.levels) - 1), np.diff(tree.levels))[tree.position]
        shallowest = np.full(count, size, dtype=np.int64)
        np.minimum.at(shallowest, labels[:-1], depth[:-1])
        self._heads = np.flatnonzero(depth[:-1] == shallowest[labels[:-1]])
        self._head_labels = labels[self._heads]
        self._top = np.full(count, size - 1, dtype=np.int64)
        self._top[self._head_labels] = over[self._heads]
        deeper = np.where(depth[first] > depth[second], first, second)
        self._block = np.tile(labels[deeper], 2)

    def weights(self, amounts: IntArray) -> IntArray:
        """Return, for each link, the weight of the component of its source when its target is deleted."""
        walk = np.zeros(len(amounts) + 2, dtype=np.int64)
        walk[self._begin + 1] = amounts
        sums = np.cumsum(walk)
        subtree = sums[self._end] - sums[self._begin]  # integers, so differences are exact
        hanging = np.zeros(len(self._top), dtype=np.int64)
        np.add.at(hanging, self._head_labels, subtree[self._heads])
        under = np.zeros(len(amounts) + 1, dtype=np.int64)
        np.add.at(under, self._top, hanging)
        totals = np.zeros(int(self._component.max()) + 1, dtype=np.int64)
        np.add.at(totals, self._component, amounts)
        outside = totals[self._component] - under[:-1] - amounts
        # if the target is the block's top, the source keeps the subtrees below; otherwise all but those it cuts off
        below = self._top[self._block] == self._targets
        found: IntArray = np.where(below, hanging[self._block], outside[self._targets])
        return found


#: Mean number of vertices in a level below which visiting vertices one by one is faster than level by level.
NARROW = 24


class Rooted:
    """A breadth-first spanning forest of a graph, all trees under one extra vertex.

    Everything is in the order of discovery: position 0 is the extra vertex n, parents come before children, levels and
    siblings are contiguous. `parent` holds positions, `levels` the position at which each level starts, and n + 1.
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
        """Combine the values of each position with those of all positions below it."""
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
        """Return when a depth-first walk meets each position, and the size of its subtree."""
        sizes = self.gather(np.ones(len(self.order), dtype=np.int64), np.add)
        before = np.cumsum(sizes) - sizes
        # siblings are contiguous: each starts where the subtrees of its earlier siblings end, relative to the parent
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
