"""Weights of a pairwise network, stacked: every distinct weight once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.numerics.arguments import FloatArray, IntArray, real_array
from graphs.numerics.rounding import FUNCTION_ULPS, UNIT
from graphs.structure.labelled_values import has_labels
from graphs.structure.layout import Layout
from graphs.structure.potentials import log_ratio_ranges

__all__ = ["Interactions", "ising", "potts", "stacked"]

#: Largest range of logarithms of weights in one table: exp(-600) is 1e-261, far from underflow.
WIDEST = 600.0

#: Matrices whose diameters are computed at a time, to bound memory.
CHUNK = 100_000


@dataclass(frozen=True)
class Interactions:
    """Log-weights of nodes and edges."""

    edges: IntArray  # shape (E, 2): nodes of each edge; rows of its matrix belong to the first
    kinds: IntArray  # shape (E,): which matrix each edge has
    # shape (K, s, s): logarithms of the distinct matrices, minus infinity for zeros and for states that a node does
    # not have
    logs: FloatArray
    node_kinds: IntArray  # shape (m,): which vector each node has
    # shape (M, s): logarithms of the distinct node weights, minus infinity for states that a node does not have
    node_logs: FloatArray
    sizes: IntArray  # shape (m,): number of states of each node, at most s
    # shape (K, s, s): the given logarithms, or the given weights (0 for states that a node does not have)
    given: FloatArray
    node_given: FloatArray  # shape (M, s): the same for nodes
    exact: bool  # whether logarithms were given, so that the weights are rounded, or the other way round

    @cached_property
    def diameters(self) -> FloatArray:
        """Projective diameter of each edge, shape (E,), rounded up."""
        found = np.zeros(len(self.logs))
        for start in range(0, len(self.logs), CHUNK):
            part = slice(start, start + CHUNK)
            error = np.full(len(found[part]), 0.0 if self.exact else FUNCTION_ULPS * UNIT)
            found[part] = log_ratio_ranges(self.logs[part], error).max(axis=-1, initial=0.0)
        return found[self.kinds]

    @cached_property
    def has_zeros(self) -> bool:
        """Whether a possible state of a node, or a pair of such states, has weight zero."""
        have = np.arange(self.logs.shape[-1]) < self.sizes[:, None]
        if (np.isinf(self.node_logs[self.node_kinds]) & have).any():
            return True
        if not np.isinf(self.logs).any():
            return False
        states = np.zeros((2, len(self.logs)), dtype=np.int64)
        for end in (0, 1):
            np.maximum.at(states[end], self.kinds, self.sizes[self.edges[:, end]])
        index = np.arange(self.logs.shape[-1])
        inside = (index[:, None] < states[0][:, None, None]) & (index < states[1][:, None, None])
        return bool((np.isinf(self.logs) & inside).any())

    @cached_property
    def attractive(self) -> bool:
        """Whether all nodes have two states, no edge favours unequal ones, and no weight is zero."""
        if self.has_zeros or not (self.sizes == 2).all() or self.logs.shape[-1] != 2:
            return False
        found = self.logs[:, 0, 0] + self.logs[:, 1, 1] >= self.logs[:, 0, 1] + self.logs[:, 1, 0]
        return bool(found.all())

    @cached_property
    def too_wide(self) -> bool:
        """Whether weights given by their logarithms could not be distinguished from zeros in a table."""
        if not self.exact:
            return False
        return any(_spread(logs) > WIDEST for logs in (self.logs, self.node_logs))

    @cached_property
    def tables(self) -> tuple[FloatArray, FloatArray, float]:
        """Weights of edges and of nodes, up to a factor, and their relative error in units of 2**-53."""
        if not self.exact:
            return self.given, self.node_given, 0.0
        if self.too_wide:
            seen = "weights that differ by a factor above exp(600)"
            raise ArgumentError("potentials", seen, "weights that differ less, for a route that needs tables")
        largest = max(float(np.abs(logs).max(initial=0.0)) for logs in (self.logs, self.node_logs))
        weights = np.exp(self.logs - self.logs.max(axis=(1, 2), keepdims=True))
        node_weights = np.exp(self.node_logs - self.node_logs.max(axis=1, keepdims=True))
        return weights, node_weights, 2 * FUNCTION_ULPS + 4 * largest


def _spread(logs: FloatArray) -> float:
    return float(np.ptp(logs.reshape(len(logs), -1), axis=1).max())


def ising(layout: Layout, coupling: Any, field: Any) -> Interactions:
    """Return the weights exp(coupling s_i s_j) and exp(field s_i), s = -1 for state 0 and +1 for state 1."""
    distinct, kinds = _distinct(layout.edge_numbers("coupling", coupling), len(layout.edges))
    own, node_kinds = _distinct(layout.node_numbers("field", field), layout.size)
    logs = distinct[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    node_logs = own[:, None] * np.array([-1.0, 1.0])
    sizes = np.full(layout.size, 2)
    return Interactions(layout.edges, kinds, logs, node_kinds, node_logs, sizes, logs, node_logs, True)


def potts(layout: Layout, coupling: Any, states: int, field: Any) -> Interactions:
    """Return the weights exp(coupling [x_i = x_j]) and exp(field_x)."""
    distinct, kinds = _distinct(layout.edge_numbers("coupling", coupling), len(layout.edges))
    own, node_kinds = _node_vectors(layout, "field", field, states)
    logs = distinct[:, None, None] * np.eye(states)
    sizes = np.full(layout.size, states)
    return Interactions(layout.edges, kinds, logs, node_kinds, own, sizes, logs, own, True)


def _distinct(values: FloatArray, count: int) -> tuple[FloatArray, IntArray]:
    if values.ndim == 0:
        return values.reshape(1), np.zeros(count, dtype=np.int64)
    found, kinds = np.unique(values, return_inverse=True)
    return (found if len(found) else np.zeros(1)), kinds.astype(np.int64)


def _node_vectors(layout: Layout, argument: str, value: Any, states: int) -> tuple[FloatArray, IntArray]:
    """Return distinct vectors of log-weights, and the one of each node."""
    expected = f"0, {states} finite numbers, ({layout.size}, {states}) of them, or the name of a node attribute"
    given = layout.node_attribute(argument, value) if isinstance(value, str) else layout.by_node(argument, value)
    array = real_array(argument, given, expected)
    if array.ndim == 0 and array == 0:
        array = np.zeros(states)
    if array.shape == (states,) and not isinstance(value, str) and not has_labels(value):
        array = array[None, :]
    if array.shape not in ((1, states), (layout.size, states)) or not np.isfinite(array).all():
        raise ArgumentError(argument, f"an array of shape {array.shape} with missing or infinite numbers", expected)
    kinds = np.arange(layout.size) if len(array) == layout.size else np.zeros(layout.size, dtype=np.int64)
    return array, kinds


def stacked(layout: Layout, potentials: Any, node_potentials: Any, states: int | None) -> Interactions:
    """Return the weights given as matrices and vectors."""
    matrices, kinds = _matrices(layout, potentials)
    vectors, node_kinds = _vectors(layout, node_potentials)
    sizes = _sizes(layout, matrices, kinds, vectors, node_kinds, states)
    width = int(sizes.max())
    given = np.zeros((max(len(matrices), 1), width, width))
    for k, matrix in enumerate(matrices):
        given[k, : matrix.shape[0], : matrix.shape[1]] = matrix
    if node_kinds is None:
        kept, node_kinds = np.unique(sizes, return_inverse=True)
        vectors = [np.ones(size) for size in kept.tolist()]
    node_given = np.zeros((len(vectors), width))
    for k, vector in enumerate(vectors):
        node_given[k, : len(vector)] = vector
    with np.errstate(divide="ignore"):
        logs, node_logs = np.log(given), np.log(node_given)
    kinds_of_nodes = node_kinds.astype(np.int64)
    return Interactions(layout.edges, kinds, logs, kinds_of_nodes, node_logs, sizes, given, node_given, False)


def _matrices(layout: Layout, potentials: Any) -> tuple[list[FloatArray], IntArray]:
    """Return the distinct matrices and the one of each edge, rows for the edge's first node."""
    count = len(layout.edges)
    if isinstance(potentials, str):
        return _shared(layout.edge_attribute("potentials", potentials), np.zeros(count, dtype=np.bool_))
    if isinstance(potentials, Mapping):
        return _shared(*_of_mapping(layout, potentials))
    expected = "a matrix, a matrix for each edge, or the name of an edge attribute"
    array = real_array("potentials", potentials, expected)
    if array.ndim == 2:
        return [_checked("potentials", array, 2)], np.zeros(count, dtype=np.int64)
    if array.ndim != 3 or len(array) != count:
        raise ArgumentError("potentials", f"an array of shape {array.shape} for {count} edges", expected)
    return _shared(list(array), layout.flipped)


def _of_mapping(layout: Layout, potentials: Mapping[Any, Any]) -> tuple[list[Any], Any]:
    """Return a matrix for each edge, and whether its rows belong to the edge's second node."""
    expected = "one matrix for each edge"
    found, turned = [], []
    for first, second in layout.edges.tolist():
        names = layout.labels[first], layout.labels[second]
        keys = [key for key in (names, names[::-1]) if key in potentials]
        if len(keys) != 1:
            seen = f"{'both orders' if keys else 'nothing'} for the edge {names!r}"
            raise ArgumentError("potentials", seen, expected)
        found.append(potentials[keys[0]])
        turned.append(keys[0] != names)
    if len(potentials) > len({frozenset(edge) for edge in layout.edges.tolist()}):
        raise ArgumentError("potentials", f"{len(potentials)} matrices for {len(layout.edges)} edges", expected)
    return found, np.array(turned, dtype=np.bool_)


def _shared(values: list[Any], turned: Any) -> tuple[list[FloatArray], IntArray]:
    """Return the distinct matrices among many, transposed where requested, and the one of each edge."""
    seen: dict[tuple[bytes, tuple[int, ...]], int] = {}
    matrices: list[FloatArray] = []
    by_identity: dict[tuple[int, bool], int] = {}
    kinds = np.zeros(len(values), dtype=np.int64)
    for edge, (value, turn) in enumerate(zip(values, turned.tolist(), strict=True)):
        kind = by_identity.get((id(value), turn))
        if kind is None:
            matrix = _checked("potentials", real_array("potentials", value, "a matrix for each edge"), 2)
            matrix = np.ascontiguousarray(matrix.T if turn else matrix)
            kind = seen.setdefault((matrix.tobytes(), matrix.shape), len(matrices))
            if kind == len(matrices):
                matrices.append(matrix)
            by_identity[id(value), turn] = kind
        kinds[edge] = kind
    return matrices, kinds


def _vectors(layout: Layout, value: Any) -> tuple[list[FloatArray], IntArray | None]:
    """Return the distinct vectors of node weights and the one of each node; None for no weights at all."""
    expected = "a vector, a vector for each node, or the name of a node attribute"
    if value is None:
        return [], None
    if has_labels(value):
        given = layout.by_node("node_potentials", value)
    elif isinstance(value, str):
        given = layout.node_attribute("node_potentials", value)
    else:
        array = real_array("node_potentials", layout.by_node("node_potentials", value), expected)
        if array.ndim == 1:
            return [_checked("node_potentials", array, 1)], np.zeros(layout.size, dtype=np.int64)
        if array.ndim != 2 or len(array) != layout.size:
            raise ArgumentError("node_potentials", f"an array of shape {array.shape}", expected)
        given = list(array)
    vectors = [_checked("node_potentials", real_array("node_potentials", v, expected), 1) for v in given]
    return vectors, np.arange(len(vectors))


def _checked(argument: str, array: FloatArray, ndim: int) -> FloatArray:
    expected = f"{'a matrix' if ndim == 2 else 'a vector'} of finite numbers, not negative, with a positive total"
    if array.ndim != ndim or array.size == 0:
        raise ArgumentError(argument, f"an array of shape {array.shape}", expected)
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        raise ArgumentError(argument, f"the entry {float(array[bad].flat[0]):.6g}", expected)
    if not array.any():
        raise ArgumentError(argument, "weights that are zero throughout", expected)
    return array


def _sizes(
    layout: Layout,
    matrices: list[FloatArray],
    kinds: IntArray,
    vectors: list[FloatArray],
    node_kinds: IntArray | None,
    states: int | None,
) -> IntArray:
    """Return the number of states of each node, on which all its potentials have to agree."""
    sizes = np.zeros(layout.size, dtype=np.int64)
    claims = [(layout.edges[:, end], np.array([m.shape[end] for m in matrices] or [0])[kinds]) for end in (0, 1)]
    if node_kinds is not None:
        claims.append((np.arange(layout.size), np.array([len(v) for v in vectors])[node_kinds]))
    for nodes, numbers in claims:
        sizes[nodes] = numbers
    for nodes, numbers in claims:
        wrong = np.flatnonzero(sizes[nodes] != numbers)
        if len(wrong):
            node = int(nodes[wrong[0]])
            seen = f"{numbers[wrong[0]]} and {sizes[node]} states for the node {layout.labels[node]!r}"
            raise ArgumentError("potentials", seen, "tables with the same number of states of a node")
    known = sizes[sizes > 0]
    if (sizes == 0).any():
        common = states if states is not None else int(known[0]) if len(known) and np.ptp(known) == 0 else None
        if common is None:
            where = layout.labels[int(np.argmin(sizes))]
            seen = f"None for the node {where!r} without an edge"
            raise ArgumentError("states", seen, "the number of states of a node without an edge")
        sizes[sizes == 0] = common
    return sizes
