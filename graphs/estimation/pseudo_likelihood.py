"""Fields on a graph, fitted by pseudo-likelihood [Besag 1975] with logistic regression."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.labelled_values import by_label

if TYPE_CHECKING:
    import networkx as nx

    from graphs.models.markov_field import MarkovField

__all__ = ["fit_ising", "fit_potts", "graph_edges", "node_labels"]

#: Weight of the penalty on squared coefficients: small, to keep couplings finite where all neighbours agree.
RIDGE = 1e-3


def fit_ising(graph: nx.Graph[Any], labels: Any, *, ridge: float = RIDGE) -> MarkovField:
    """Estimate an Ising field from one labelling of a graph by maximum pseudo-likelihood.

    Use it for two labels on a network, such as two parties among friends. `fit_potts` is for more labels.

    Parameters
    ----------
    graph : networkx.Graph
        Graph whose nodes are the records and whose edges join records that may depend on each other directly.
    labels : mapping, Series, name of a node attribute, or sequence
        Label of each node, with two different values. A sequence follows the order of `graph.nodes`. The smaller label
        stands for s = -1, the larger for s = +1.
    ridge : float, default 0.001
        Nonnegative weight of a penalty on squared coefficients.

    Returns
    -------
    MarkovField
        `MarkovField.ising(graph, coupling, field)` with one coupling for all edges and one field for all nodes.

    Raises
    ------
    ArgumentError
        If there are fewer or more than two different labels, labels do not match the nodes, the graph has no edges, or
        `ridge` is negative.

    Notes
    -----
    Given all others, s_i = +1 has log-odds 2 field + 2 coupling (sum of the neighbours' s). The product of these
    conditional probabilities is the likelihood of a logistic regression, and the estimate is consistent. If the labels
    of neighbours hardly ever differ, the penalty determines the coupling. The fitted model is an estimate, and its
    guarantees hold for the fitted distribution only. See `budget_interval`.

    Examples
    --------
    >>> import networkx as nx
    >>> model = fit_ising(nx.karate_club_graph(), "club")
    >>> model.n
    34
    """
    from graphs.models.markov_field import MarkovField

    codes, names = node_labels(graph, labels)
    if len(names) != 2:
        raise ArgumentError("labels", f"{len(names)} of them", "two different labels", "Use fit_potts for more.")
    left, right = graph_edges(graph).T
    spins = 2.0 * codes - 1.0
    around = np.bincount(left, spins[right], len(codes)) + np.bincount(right, spins[left], len(codes))
    features = np.stack([np.full(len(codes), 2.0), 2.0 * around], axis=1)
    field, coupling = _logistic(features, codes, ridge)
    return MarkovField.ising(graph, coupling=coupling, field=field)


def fit_potts(graph: nx.Graph[Any], labels: Any, *, ridge: float = RIDGE) -> MarkovField:
    """Estimate a Potts field from one labelling of a graph by maximum composite likelihood.

    Use it for several labels on a network. `fit_ising` is for two labels and also estimates a field.

    Parameters
    ----------
    graph : networkx.Graph
        Graph whose nodes are the records and whose edges join records that may depend on each other directly.
    labels : mapping, Series, name of a node attribute, or sequence
        Label of each node, with at least two different values. A sequence follows the order of `graph.nodes`.
    ridge : float, default 0.001
        Nonnegative weight of a penalty on squared coefficients.

    Returns
    -------
    MarkovField
        `MarkovField.potts(graph, coupling, states)` with one coupling for all edges, no field, and one state for each
        label.

    Raises
    ------
    ArgumentError
        If there is only one label, labels do not match the nodes, the graph has no edges, or `ridge` is negative.

    Notes
    -----
    Given all others, and that x_i is one of two labels k and l, x_i = k has log-odds coupling (c_k - c_l), with c_k the
    number of neighbours with label k. The product over i and over the labels l other than x_i is a composite
    likelihood, and that of a logistic regression without a constant. For two labels it is the pseudo-likelihood.

    Examples
    --------
    >>> import networkx as nx
    >>> model = fit_potts(nx.karate_club_graph(), "club")
    >>> model.n
    34
    """
    from graphs.models.markov_field import MarkovField

    codes, names = node_labels(graph, labels)
    count = len(names)
    if count < 2:
        raise ArgumentError("labels", "one label for all nodes", "at least two different labels")
    left, right = graph_edges(graph).T
    shown = np.eye(count)[codes]
    around = np.zeros((len(codes), count))
    np.add.at(around, left, shown[right])
    np.add.at(around, right, shown[left])
    differences = []
    for k, other in itertools.permutations(range(count), 2):
        differences.append(around[codes == k][:, k] - around[codes == k][:, other])
    lead = np.concatenate(differences)
    features = np.concatenate([lead, -lead])[:, None]
    chosen = np.repeat([1, 0], len(lead))
    coupling = float(_logistic(features, chosen, 2 * ridge)[0])
    return MarkovField.potts(graph, coupling=coupling, states=count)


def graph_edges(graph: nx.Graph[Any]) -> IntArray:
    """Return the edges as pairs of positions in `graph.nodes`, shape (m, 2)."""
    if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
        raise ArgumentError("graph", repr(graph), "a networkx Graph")
    if graph.is_directed() or graph.is_multigraph():
        kind = "a directed graph" if graph.is_directed() else "a multigraph"
        raise ArgumentError("graph", kind, "a networkx Graph", "Pass networkx.Graph(graph).")
    number = {node: k for k, node in enumerate(graph.nodes)}
    edges = np.array([(number[u], number[v]) for u, v in graph.edges], dtype=np.int64).reshape(-1, 2)
    if not len(edges):
        raise ArgumentError("graph", "a graph without edges", "a graph with at least one edge")
    if (edges[:, 0] == edges[:, 1]).any():
        node = list(graph.nodes)[int(edges[edges[:, 0] == edges[:, 1]][0, 0])]
        raise ArgumentError("graph", f"an edge from {node!r} to itself", "a graph without self-loops")
    return edges


def node_labels(graph: nx.Graph[Any], labels: Any) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Return the labels of all nodes as codes, and the distinct labels, sorted where possible.

    >>> import networkx as nx
    >>> node_labels(nx.path_graph(3), ["red", "blue", "red"])
    (array([1, 0, 1]), ('blue', 'red'))
    """
    if isinstance(labels, str):
        labels = {node: data[labels] for node, data in graph.nodes(data=True) if labels in data}
    expected = "one label for each node, by name or in the order of graph.nodes"
    values = by_label("labels", labels, list(graph.nodes), expected)
    return numbered(values)


def numbered(values: list[Any]) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Return values as codes, and the distinct values, sorted where possible."""
    try:
        seen = dict.fromkeys(values)
    except TypeError:
        raise ArgumentError("labels", "labels that cannot be hashed", "hashable labels") from None
    for value in seen:
        if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
            raise ArgumentError("labels", f"a missing label ({value!r})", "a sequence with one label for each record")
    try:
        names: tuple[Hashable, ...] = tuple(sorted(seen))
    except TypeError:
        names = tuple(seen)
    number = {name: k for k, name in enumerate(names)}
    return np.array([number[value] for value in values], dtype=np.int64), names


def _logistic(features: FloatArray, chosen: IntArray, ridge: float) -> FloatArray:
    """Return the coefficients of a logistic regression without a constant."""
    from sklearn.linear_model import LogisticRegression

    if not (math.isfinite(ridge) and ridge >= 0):
        raise ArgumentError("ridge", repr(ridge), "a finite number that is not negative")
    strength = 1 / ridge if ridge else np.inf
    machine = LogisticRegression(C=strength, fit_intercept=False, tol=1e-9, max_iter=10_000)
    coefficients: FloatArray = machine.fit(features, chosen).coef_[0]
    return coefficients
