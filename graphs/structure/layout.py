"""Graphs converted once to integers: records, links and attributes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, check_count, check_word, real_array
from graphs.structure.labelled_values import by_label, has_labels, refuse_unordered

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GraphLike", "Layout", "Parallel", "as_networkx", "read_graph"]

#: A networkx graph, an object that networkx converts to one, or the pair (edges, n): an integer array of shape (E, 2)
#: and the number of nodes.
GraphLike: TypeAlias = Any

#: Treatment of several edges between the same two nodes.
Parallel: TypeAlias = Literal["refuse", "multiply"]


@dataclass(frozen=True)
class Layout:
    """An undirected graph in integers."""

    edges: IntArray  # shape (E, 2): the two nodes of each edge, the one that comes first in the graph's order first
    labels: Sequence[Hashable]  # name of each node, in the graph's order
    records: IntArray  # shape (n,): node of each record; nodes that are in no record are latent
    graph: nx.Graph[Any] | None  # where attributes are found; None when the graph was given as arrays
    flipped: Any  # shape (E,): whether an edge was given with its second node first

    @property
    def size(self) -> int:
        """Number of nodes, latent ones included."""
        return len(self.labels)

    def edge_numbers(self, argument: str, value: Any) -> FloatArray:
        """Return one number per edge: from a number, an array of shape (E,), or the name of an edge attribute."""
        if has_labels(value):
            seen = f"a {type(value).__name__}, whose labels do not name edges"
            raise ArgumentError(argument, seen, "numbers in the order of graph.edges", f"Pass {argument}.to_numpy().")
        return self._numbers(argument, value, len(self.edges), "edge", self.edge_attribute)

    def node_numbers(self, argument: str, value: Any) -> FloatArray:
        """Return one number per node: from a number, an array with one entry per node, or the name of an attribute."""
        return self._numbers(argument, self.by_node(argument, value), self.size, "node", self.node_attribute)

    def by_node(self, argument: str, value: Any) -> Any:
        """Return values of nodes in the graph's order: those of a mapping or a Series aligned, others as they are."""
        if has_labels(value):
            return by_label(argument, value, self.labels, "one value for each node")
        if not isinstance(value, str):
            refuse_unordered(argument, value, "one value for each node")
        return value

    def edge_attribute(self, argument: str, name: str) -> list[Any]:
        """Return an attribute of all edges."""
        if self.graph is None:
            raise ArgumentError(argument, repr(name), "numbers", "A graph given as arrays has no attributes.")
        found = [data.get(name) for _, _, data in self.graph.edges(data=True)]
        if any(value is None for value in found):
            where = list(self.graph.edges())[[value is None for value in found].index(True)]
            seen = f"{name!r}, which the edge {where!r} does not have"
            raise ArgumentError(argument, seen, "an attribute of every edge")
        return found

    def node_attribute(self, argument: str, name: str) -> list[Any]:
        """Return an attribute of all nodes."""
        if self.graph is None:
            raise ArgumentError(argument, repr(name), "numbers", "A graph given as arrays has no attributes.")
        found = [data.get(name) for _, data in self.graph.nodes(data=True)]
        if any(value is None for value in found):
            where = self.labels[[value is None for value in found].index(True)]
            seen = f"{name!r}, which the node {where!r} does not have"
            raise ArgumentError(argument, seen, "an attribute of every node")
        return found

    def _numbers(self, argument: str, value: Any, count: int, kind: str, attribute: Any) -> FloatArray:
        expected = f"a finite number, {count} of them (one for each {kind}), or the name of a {kind} attribute"
        array = real_array(argument, attribute(argument, value) if isinstance(value, str) else value, expected)
        if array.ndim and array.shape != (count,):
            raise ArgumentError(argument, f"an array of shape {array.shape}", expected)
        if not np.isfinite(array).all():
            raise ArgumentError(argument, repr(float(array[~np.isfinite(array)].flat[0])), expected)
        return array


def read_graph(
    graph: GraphLike,
    latent: Collection[Hashable] = (),
    records: Iterable[Hashable] | None = None,
    parallel: Parallel = "refuse",
) -> Layout:
    """Read a graph."""
    check_word("parallel", parallel, ("refuse", "multiply"))
    if isinstance(graph, tuple):
        labels, edges, source = *_arrays(graph), None
    else:
        source = as_networkx(graph)
        labels, edges = _from_networkx(source)
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        seen = f"the self-loop at {labels[edges[loops[0], 0]]!r}"
        raise ArgumentError("graph", seen, "a graph without self-loops")
    flipped = edges[:, 0] > edges[:, 1]
    edges = np.where(flipped[:, None], edges[:, ::-1], edges)
    if parallel == "refuse" and len(edges):
        keys = np.sort(edges[:, 0] * len(labels) + edges[:, 1])
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            ends = tuple(labels[int(k)] for k in divmod(int(keys[twice[0]]), len(labels)))
            seen, advice = f"several edges between {ends}", 'Or pass parallel="multiply" to multiply their weights.'
            raise ArgumentError("graph", seen, "a graph with single edges", advice)
    return Layout(edges, labels, _records(labels, latent, records), source, flipped)


def _arrays(graph: tuple[Any, int]) -> tuple[Sequence[Hashable], IntArray]:
    expected = "a networkx.Graph, or the pair (edges, n) with integer edges of shape (E, 2) between 0 and n - 1"
    if len(graph) != 2:
        raise ArgumentError("graph", f"a tuple of {len(graph)}", expected)
    n = check_count("graph", graph[1])
    edges = np.asarray(graph[0])
    if edges.size == 0:
        edges = np.zeros((0, 2), dtype=np.int64)
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or edges.shape[1] != 2:
        raise ArgumentError("graph", f"edges of type {edges.dtype} and shape {edges.shape}", expected)
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        raise ArgumentError("graph", f"edges between {edges.min()} and {edges.max()} for n = {n}", expected)
    return range(n), edges.astype(np.int64)


def as_networkx(graph: Any) -> nx.Graph[Any]:
    """Return a networkx graph of an adjacency matrix, a list of edges or a mapping; graphs stay as they are."""
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return graph  # type: ignore[no-any-return]
    import networkx as nx
    from scipy import sparse

    expected = "an undirected networkx.Graph, an adjacency matrix, a list of edges, or the pair (edges, n)"
    if sparse.issparse(graph) or isinstance(graph, np.ndarray) or hasattr(graph, "columns"):
        matrix: Any = graph
        square = len(graph.shape) == 2 and graph.shape[0] == graph.shape[1]
        if not square:
            raise ArgumentError("graph", f"an array of shape {graph.shape}", expected, "A matrix has to be square.")
        if hasattr(graph, "columns") and list(graph.index) != list(graph.columns):
            seen = "a data frame whose rows and columns have different names"
            raise ArgumentError("graph", seen, "a data frame with the same names in the same order")
        entries = matrix.data if sparse.issparse(graph) else np.asarray(graph)
        if entries.dtype.kind not in "biuf" or not np.isfinite(entries).all():
            expected = "a matrix of finite numbers, 0 for no edge"
            raise ArgumentError("graph", f"a matrix of type {entries.dtype}", expected)
        asymmetric = (matrix != matrix.T).nnz if sparse.issparse(graph) else np.count_nonzero(entries != entries.T)
        if asymmetric:
            expected = "a symmetric matrix, as edges have no direction"
            raise ArgumentError("graph", "a matrix that is not symmetric", expected)
    try:
        return nx.to_networkx_graph(graph, create_using=nx.Graph)
    except (nx.NetworkXError, TypeError, ValueError):
        raise ArgumentError("graph", f"a {type(graph).__name__}", expected) from None


def _from_networkx(graph: nx.Graph[Any]) -> tuple[Sequence[Hashable], IntArray]:
    expected = "an undirected networkx.Graph with at least one node"
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise ArgumentError("graph", f"a {type(graph).__name__}", expected)
    if graph.is_directed():
        raise ArgumentError("graph", "a directed graph", expected, "Use BayesianNetwork for directed graphs.")
    labels = list(graph.nodes)
    if not labels:
        raise ArgumentError("graph", "a graph without nodes", expected)
    number = {label: position for position, label in enumerate(labels)}
    ends = [number[label] for edge in graph.edges() for label in edge[:2]]
    return labels, np.array(ends, dtype=np.int64).reshape(-1, 2)


def _records(labels: Sequence[Hashable], latent: Collection[Hashable], records: Iterable[Hashable] | None) -> IntArray:
    if isinstance(latent, str) or isinstance(records, str):
        argument = "latent" if isinstance(latent, str) else "records"
        raise ArgumentError(argument, "a text", "a collection of node labels")
    if isinstance(records, dict | set | frozenset) or hasattr(records, "columns"):
        refuse_unordered("records", records, "labels of nodes")
    hidden = set(latent)
    if not hidden and records is None:
        return np.arange(len(labels))
    number = {label: position for position, label in enumerate(labels)}
    chosen = [label for label in labels if label not in hidden] if records is None else list(records)
    for argument, names in (("latent", hidden), ("records", chosen)):
        unknown = [label for label in names if label not in number]
        if unknown:
            raise ArgumentError(argument, f"{unknown[0]!r}, which is no node", "labels of nodes of the graph")
    place = [number[label] for label in chosen]
    if len(set(place)) < len(place) or any(label in hidden for label in chosen):
        seen = "a node that is named twice, or is latent too"
        raise ArgumentError("records", seen, "different nodes that are not latent")
    if not place:
        raise ArgumentError("latent", "every node", "fewer than all nodes")
    return np.array(place, dtype=np.int64)
