"""Colourings of a graph, and the variance inflation that follows from them.

A colouring splits the records into sets without an edge inside. If sets of records without an edge between them are
independent, each colour is a set of independent records [Janson 2004]. Proofs: `graphs/PROOFS.md`, section on
colourings.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["colouring_inflation", "colours_needed", "fractional_chromatic_number", "greedy_colouring"]

#: Components with at most so many nodes and maximal independent sets get a fractional colouring (a linear program).
SMALL = 30
MOST_SETS = 5_000


def greedy_colouring(edges: IntArray, n_nodes: int) -> IntArray:
    """Colour a graph so that neighbours differ, nodes of highest degree first."""
    both = np.concatenate([edges, edges[:, ::-1]])
    degrees = np.bincount(both[:, 0], minlength=n_nodes)
    order = np.argsort(both[:, 0], kind="stable")
    stops = np.r_[0, np.cumsum(degrees)].tolist()
    neighbours = both[order, 1].tolist()
    colours = [-1] * n_nodes
    for node in np.argsort(-degrees, kind="stable").tolist():
        used = {colours[other] for other in neighbours[stops[node] : stops[node + 1]]}
        colours[node] = next(colour for colour in itertools.count() if colour not in used)
    return np.array(colours, dtype=np.int64)


def colouring_inflation(edges: IntArray, component: IntArray) -> float:
    """Return the variance inflation of means over a dependency graph."""
    n = len(component)
    colours = greedy_colouring(edges, n)
    width = int(colours.max()) + 1
    keys, sizes = np.unique(component * width + colours, return_counts=True)
    roots = np.bincount(keys // width, weights=np.sqrt(sizes)).astype(np.float64)
    members = np.bincount(component)
    degrees = np.bincount(edges.ravel(), minlength=n)
    crowded = np.bincount(component, weights=degrees + 1.0)
    variances = np.minimum(up(roots, 2 * width) ** 2, crowded)
    for small in np.flatnonzero((members > 2) & (members <= SMALL) & (variances > members)).tolist():
        inside = np.flatnonzero(component == small)
        local = edges[component[edges[:, 0]] == small]
        number = fractional_chromatic_number(np.searchsorted(inside, local), len(inside))
        variances[small] = min(float(variances[small]), up(number * len(inside), 1))
    return min(up(float(variances.sum()) / n, len(variances) + 4), float(degrees.max()) + 1)


def colours_needed(edges: IntArray, component: IntArray) -> float:
    """Return the largest number of colours that any component needs, fractional in small ones.

    A ring of five beside a pair:

    >>> edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [5, 6]])
    >>> round(colours_needed(edges, np.array([0, 0, 0, 0, 0, 1, 1])), 9)
    2.5
    """
    counts = np.zeros(int(component.max()) + 1)
    np.maximum.at(counts, component, greedy_colouring(edges, len(component)) + 1.0)
    sizes, refined = np.bincount(component), set()
    while (worst := int(np.argmax(counts))) not in refined and 2 < counts[worst] < sizes[worst] <= SMALL:
        refined.add(worst)
        inside = np.flatnonzero(component == worst)
        local = np.searchsorted(inside, edges[component[edges[:, 0]] == worst])
        counts[worst] = min(float(counts[worst]), fractional_chromatic_number(local, len(inside)))
    return float(counts.max())


def fractional_chromatic_number(edges: IntArray, n_nodes: int) -> float:
    """Return an upper bound on the fractional chromatic number of a small graph, exact up to rounding."""
    return _fractional(np.ascontiguousarray(edges, dtype=np.int64).tobytes(), n_nodes)


@lru_cache(maxsize=1024)
def _fractional(edge_bytes: bytes, n_nodes: int) -> float:
    """Solve the linear program, unless a clique shows that the greedy colouring is best."""
    import networkx as nx
    from scipy.optimize import linprog

    edges: IntArray = np.frombuffer(edge_bytes, dtype=np.int64).reshape(-1, 2)
    greedy = float(greedy_colouring(edges, n_nodes).max() + 1)
    if _clique_found(edges, n_nodes) == greedy:
        return greedy
    graph: nx.Graph[int] = nx.empty_graph(n_nodes)
    graph.add_edges_from(edges.tolist())
    found = list(itertools.islice(nx.find_cliques(nx.complement(graph)), MOST_SETS + 1))
    if len(found) > MOST_SETS:
        return greedy
    cover: FloatArray = np.zeros((n_nodes, len(found)))
    for k, members in enumerate(found):
        cover[members, k] = 1.0
    result = linprog(np.ones(len(found)), A_ub=-cover, b_ub=-np.ones(n_nodes), method="highs")
    if result.status != 0 or result.x is None:
        return greedy
    weights: FloatArray = np.maximum(result.x, 0.0)
    # the solver's cover may miss 1 by its tolerance; dividing by the least cover makes it a cover
    least = float((cover @ weights).min()) * (1 - 2.0**-40)
    return min(up(float(weights.sum()) / least, len(weights) + 4), greedy)


def _clique_found(edges: IntArray, n_nodes: int) -> int:
    """Return the size of a clique, grown from each node by neighbours of high degree."""
    joined = np.zeros((n_nodes, n_nodes), dtype=np.bool_)
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = True
    largest = 0
    for node in range(n_nodes):
        size, left = 1, joined[node].copy()
        while left.any():
            inside = np.where(left, joined[:, left].sum(axis=1), -1)
            left &= joined[int(inside.argmax())]
            size += 1
        largest = max(largest, size)
    return largest
