"""Check of the training labels for correlation beyond the declared dependence; it does not use the holdout's labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.series_range import seen_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel, DependencyGraph, MovingWindow
    from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["FALSE_ALARM", "Neighbours", "beyond_declared", "neighbours_in_order", "neighbours_on_graph", "sign_bound"]

FALSE_ALARM: Final = 1e-9
"""Probability of a warning if training records are identically distributed and depend on each other as declared."""

_MOST: Final = 200_000  # records that are read: enough to detect a correlation of 0.02
_FEWEST: Final = 40  # pairs below which no correlation is detected at this probability
_SEEN: Final = 0.05  # correlation below which intervals hardly change
_MOST_CLASSES: Final = 50  # integer labels with more values are numbers
_FORESEEN: Final = 0.3  # correlation for which the weights of means of many and of few labels are optimal
_MOST_NEAR: Final = 16  # neighbours by way of one node; all of a hub's would cost its degree squared


@dataclass(frozen=True)
class Neighbours:
    """Records that are independent by the declaration: ``moved`` ones, and for each the ``near`` ones that stay."""

    moved: IntArray
    near: list[IntArray]


def neighbours_in_order(places: IntArray) -> Neighbours:
    """Return every second of some records in order, each with its two neighbours.

    Examples
    --------
    >>> found = neighbours_in_order(np.array([0, 3, 6, 9, 12]))
    >>> found.moved.tolist(), [near.tolist() for near in found.near]
    ([3, 9], [[0, 6], [6, 12]])
    """
    odd = np.arange(1, len(places) - 1, 2)
    return Neighbours(places[odd], [places[[place - 1, place + 1]] for place in odd])


def neighbours_on_graph(graph: DependencyGraph, nodes: IntArray) -> Neighbours:
    """Return records without edges between them, each with others that are two edges away; ``nodes`` are considered.

    Examples
    --------
    >>> import networkx as nx
    >>> from graphs import DependencyGraph
    >>> found = neighbours_on_graph(DependencyGraph(nx.path_graph(9)), np.arange(9))
    >>> found.moved.tolist(), [near.tolist() for near in found.near]
    ([0, 4, 8], [[2], [2, 6], [6]])
    """
    adjacent: list[list[int]] = [[] for _ in range(graph.n)]
    for first, second in graph.edges.tolist():
        adjacent[first].append(second)
        adjacent[second].append(first)
    degrees = np.array([len(near) for near in adjacent])
    apart: set[int] = set()
    blocked: set[int] = set()
    for node in nodes[np.argsort(degrees[nodes], kind="stable")].tolist():  # hubs last: one blocks all its neighbours
        if node not in blocked:
            apart.add(node)
            blocked.update(adjacent[node])
    # Half of the records around each middle are moved, so that a hub's neighbours are not all on one side.
    surplus = [0] * graph.n
    fixed: list[list[int]] = [[] for _ in range(graph.n)]
    chosen: list[int] = []
    for node in sorted(apart):
        moves = sum(surplus[middle] for middle in adjacent[node]) <= 0
        if moves:
            chosen.append(node)
        for middle in adjacent[node]:
            surplus[middle] += 1 if moves else -1
            if not moves and len(fixed[middle]) < _MOST_NEAR:
                fixed[middle].append(node)
    near = {node: sorted({other for middle in adjacent[node] for other in fixed[middle]}) for node in chosen}
    moved = [node for node in chosen if near[node]]
    return Neighbours(np.array(moved, dtype=np.int64), [np.array(near[node], dtype=np.int64) for node in moved])


def sign_bound(values: FloatArray, neighbours: Neighbours) -> tuple[float, float]:
    """Return a bound on the probability of this agreement between neighbours by chance, and their correlation.

    Notes
    -----
    Let the records be i.i.d. Fix the labels that stay and, for each pair (a, b) of moved records, the unordered pair of
    their labels. Both orders are equally likely, independently for all pairs. Let u be the mean label of a record's
    neighbours, which all stay, centred and weighted by their number. Then ``Z = (v_a - v_b)(u_a - u_b)`` has a random
    sign, so ``P(sum Z >= t sqrt(sum Z^2)) <= exp(-t^2/2)`` by Hoeffding's inequality. This holds for any distribution,
    and for any choice of records and pairs that does not depend on labels.
    """
    moved = values[neighbours.moved]
    means = np.array([values[near].mean() for near in neighbours.near])
    counts = np.array([len(near) for near in neighbours.near])
    # Weights of the best linear prediction from means of several equally correlated labels.
    means = (means - means.mean()) * counts / (1.0 + _FORESEEN * (counts - 1))
    half = len(moved) // 2
    # The records of a pair are far apart, since labels of near records are alike and have little power.
    with np.errstate(over="ignore", invalid="ignore"):
        products = (moved[:half] - moved[half : 2 * half]) * (means[:half] - means[half : 2 * half])
    largest = float(np.max(np.abs(products), initial=0.0))
    if not 0.0 < largest < math.inf:
        return 1.0, 0.0
    products /= largest  # otherwise squares of small numbers underflow
    deviations = float(np.sum(products)) / math.sqrt(float(np.sum(products**2)))
    chance = 2.0 * math.exp(-0.5 * deviations * deviations)
    return min(1.0, chance), _correlation(moved, np.array([values[near[0]] for near in neighbours.near]))


def beyond_declared(
    labels: Any,
    declared: object,
    model: DependenceModel,
    groups: NDArray[Any] | None,
    nodes: IntArray | None,
    series: MovingWindow | None,
) -> str:
    """Return a sentence about correlation of training labels beyond the declared dependence, or an empty one.

    ``nodes`` are the training records' nodes in a declared graph. ``series`` is their own window if they are in an
    order, since their times may be closer than the holdout's.
    """
    from graphs import DependencyGraph, Groups

    column = _column(labels)
    if column is None:
        return ""
    values, classes = column
    if isinstance(declared, DependencyGraph):
        if nodes is None:
            return ""
        placed = np.full(declared.n, np.nan)
        placed[nodes[: len(values)]] = values
        return _on_edges(declared, placed, nodes[: len(values)], classes)
    if series is not None:
        places = series.spaced()
        places = places[places < len(values)]
        if series.even:
            return _in_order(values, places, f"{series.m + 1:,} rows apart", "window=", labels)
        return _in_order(values, places, "further apart than the window", "window=", None)
    if isinstance(model, Groups) and groups is not None:
        firsts = np.sort(np.unique(np.asarray(groups)[: len(values)], return_index=True)[1])
        return _in_order(values, firsts, "in groups that follow each other", "groups=", None)
    return ""


def _column(labels: Any) -> tuple[FloatArray, int] | None:
    """Return labels as numbers, or as indicators of the most frequent class with the number of classes."""
    values = np.asarray(labels)[:_MOST]
    if values.ndim != 1 or len(values) < _FEWEST:
        return None
    if values.dtype.kind == "f":
        return (values.astype(np.float64), 0) if np.isfinite(values).all() else None
    try:
        names, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    except TypeError:
        return None
    if not 2 <= len(names) <= _MOST_CLASSES:
        return (values.astype(np.float64), 0) if values.dtype.kind in "iu" else None
    return (codes == int(np.argmax(counts))).astype(np.float64), len(names)


def _in_order(values: FloatArray, places: IntArray, where: str, argument: str, series: Any) -> str:
    neighbours = neighbours_in_order(places.astype(np.int64))
    if len(neighbours.moved) < _FEWEST // 2:
        return ""
    chance, seen = sign_bound(values, neighbours)
    if chance > FALSE_ALARM or abs(seen) < _SEEN:
        return ""
    reach = None if series is None else seen_range(np.asarray(series)[:_MOST])
    wider = "larger groups" if argument == "groups=" else "a longer window"
    fits = f"A model with dependence from one record to the next, or {wider}, would fit"
    if reach is not None and reach[0]:
        fits = (
            f"A window of {reach[0]} rows covers the visible correlations. A MarkovChain or "
            "graphs.estimation.fit_autoregression fits dependence from record to record"
        )
    return f"Labels of training records {where}, which {argument} declares independent, {_words(seen)}. {fits}."


def _correlation(first: FloatArray, second: FloatArray) -> float:
    return float(np.corrcoef(first, second)[0, 1]) if len(first) > 2 and np.ptp(first) and np.ptp(second) else 0.0


def _words(seen: float) -> str:
    return (
        f"have a correlation of about {seen:.2g}, so intervals may be too narrow (the probability of this warning by "
        f"chance is at most {FALSE_ALARM:g})"
    )


def _on_edges(graph: DependencyGraph, placed: FloatArray, nodes: IntArray, classes: int) -> str:
    neighbours = neighbours_on_graph(graph, nodes)
    if len(neighbours.moved) < _FEWEST // 2:
        return ""
    chance, seen = sign_bound(placed, neighbours)
    if chance > FALSE_ALARM or abs(seen) < _SEEN:
        return ""
    edges = graph.edges[np.isfinite(placed[graph.edges]).all(axis=1)]
    along = _correlation(placed[edges[:, 0]], placed[edges[:, 1]])
    fits = "A GaussianField, or another model with dependence along edges, would fit"
    if classes == 2 and abs(along) < 1.0:
        coupling = math.atanh(along)
        fits = f"MarkovField.ising(graph, coupling), with a coupling of about {coupling:.2g} on a tree, would fit"
    return (
        "Labels of training records two edges apart, which the DependencyGraph declares independent, "
        f"{_words(seen)}. {fits}."
    )
