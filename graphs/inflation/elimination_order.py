"""Variance inflation of statistics with bounded differences over a dependency graph, by an order of its records.

Proof: `graphs/PROOFS.md`, section on elimination orders.
"""

from __future__ import annotations

import heapq

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["elimination_inflation"]

#: Pairs of neighbours that are joined at most, about a second; what is left of a component then is one block.
MOST_JOINED = 3_000_000


def elimination_inflation(edges: IntArray, component: IntArray) -> float:
    """Return the variance inflation of statistics with bounded differences, rounded up.

    Parameters
    ----------
    edges : ndarray of shape (E, 2)
        The two records of each edge.
    component : ndarray of shape (n,)
        Number of the connected component of each record.

    Examples
    --------
    A tree: every record with the one above it, and the root by itself.

    >>> path = np.array([[0, 1], [1, 2], [2, 3]])
    >>> round(elimination_inflation(path, np.zeros(4, dtype=int)), 9)
    3.0
    """
    widths, _ = joined_blocks(*eliminated(edges, component))
    squares: FloatArray = widths.astype(np.float64) ** 2
    whole = np.bincount(component).astype(np.float64) ** 2
    blocks = np.bincount(component, weights=squares, minlength=len(whole))
    return float(up(np.minimum(blocks, whole).sum() / len(component), len(component) + 4))


def eliminated(edges: IntArray, component: IntArray) -> tuple[list[int], IntArray, IntArray, IntArray]:
    """Return the order, the parent in the elimination tree, the number of later neighbours and the block of records.

    Records are eliminated by their number of neighbours at the time (minimum degree), and their neighbours are joined.
    The last records of a component, once all of them are neighbours or too many, are one block, which stands in the
    order at one of them. Every other block is one record. Roots are their own parents.
    """
    n = len(component)
    near: list[set[int]] = [set() for _ in range(n)]
    for first, second in edges.tolist():
        near[first].add(second)
        near[second].add(first)
    parts = component.tolist()
    left: list[set[int]] = [set() for _ in range(max(parts) + 1)]
    for node, part in enumerate(parts):
        left[part].add(node)
    fronts, homes = np.zeros(n, dtype=np.int64), list(range(n))
    order: list[int] = []
    heap = [(len(others), node) for node, others in enumerate(near)]
    heapq.heapify(heap)
    budget = MOST_JOINED
    while heap:
        degree, node = heapq.heappop(heap)
        rest = left[parts[node]]
        if node not in rest or degree != len(near[node]):
            continue
        order.append(node)
        budget -= degree**2
        if degree + 1 == len(rest) or budget < 0:
            for other in rest:
                homes[other] = node
            rest.clear()
            continue
        rest.remove(node)
        fronts[node] = degree
        for other in near[node]:
            near[other] |= near[node]
            near[other] -= {other, node}
            heapq.heappush(heap, (len(near[other]), other))
    place = {node: turn for turn, node in enumerate(order)}
    parents = np.arange(n)
    for node in order:
        if fronts[node]:
            parents[node] = min((homes[other] for other in near[node]), key=place.__getitem__)
    return order, parents, fronts, np.array(homes, dtype=np.int64)


def joined_blocks(order: list[int], parents: IntArray, fronts: IntArray, homes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the widths of blocks, 0 for records at which none stands, and the block of each record.

    From the leaves upwards a block joins that of its parent where the square of one width is less than two.
    """
    counts, above = np.bincount(homes, minlength=len(parents)).tolist(), parents.tolist()
    widths, joins = np.zeros(len(parents), dtype=np.int64), np.arange(len(parents))
    for node in order:
        parent = above[node]
        width = counts[node] + int(fronts[node])
        if parent != node:
            apart = width**2 + (counts[parent] + int(fronts[parent])) ** 2
            if (counts[node] + counts[parent] + int(fronts[parent])) ** 2 < apart:
                counts[parent] += counts[node]
                joins[node], width = parent, 0
        widths[node] = width
    for node in reversed(order):
        joins[node] = joins[joins[node]]
    return widths, joins[homes]
