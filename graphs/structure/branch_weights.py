"""How much hangs behind each link of a graph: the weight of every branch when one vertex is deleted.

The blocks (biconnected parts) are found as in [TV85]_ from an arbitrary spanning forest, without a depth-first search:
an auxiliary graph on the tree edges, whose components are the blocks.

References
----------
.. [TV85] R. Tarjan, U. Vishkin, "An efficient parallel biconnectivity algorithm", SIAM J. Comput. 14, 1985.
"""

from __future__ import annotations

import numpy as np

from graphs.numerics.arguments import IntArray
from graphs.structure.spanning_forest import Rooted

__all__ = ["Branches"]


class Branches:
    """The branches at every vertex of a graph.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        All links in one direction, then all in the other, in the same order.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.

    Examples
    --------
    A triangle with a tail: 0 - 1 - 2 - 0, 2 - 3.

    >>> edges = np.array([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> both = np.concatenate([edges, edges[:, ::-1]])
    >>> branches = Branches(both[:, 0], both[:, 1], np.zeros(4, dtype=int))
    >>> branches.weights(np.array([1, 10, 100, 1000]))
    array([1101,   11, 1110,  111, 1110, 1101,   11, 1000])
    """

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
        cross = np.flatnonzero((over[first] != second) & (over[second] != first))
        low, high = preorder.copy(), preorder.copy()
        ends = tree.position[first[cross]], tree.position[second[cross]]
        for near, far in (ends, ends[::-1]):
            np.minimum.at(low, near, preorder[far])
            np.maximum.at(high, near, preorder[far])
        low, high = tree.gather(low, np.minimum), tree.gather(high, np.maximum)
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
        """Return, for each link, the weight of the component of its source when its target is deleted.

        Parameters
        ----------
        amounts : ndarray of shape (n,)
            Weight of each vertex, an integer that is not negative; the total is below 2**63.

        Returns
        -------
        ndarray of shape (2E,)
        """
        walk = np.zeros(len(amounts) + 2, dtype=np.int64)
        walk[self._begin + 1] = amounts
        sums = np.cumsum(walk)
        subtree = sums[self._end] - sums[self._begin]
        hanging = np.zeros(len(self._top), dtype=np.int64)
        np.add.at(hanging, self._head_labels, subtree[self._heads])
        under = np.zeros(len(amounts) + 1, dtype=np.int64)
        np.add.at(under, self._top, hanging)
        totals = np.zeros(int(self._component.max()) + 1, dtype=np.int64)
        np.add.at(totals, self._component, amounts)
        outside = totals[self._component] - under[:-1] - amounts
        below = self._top[self._block] == self._targets
        found: IntArray = np.where(below, hanging[self._block], outside[self._targets])
        return found
