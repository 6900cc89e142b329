"""Graphs as users have them: networkx objects, adjacency matrices, lists of edges."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from graphs import ArgumentError, DependencyGraph, MarkovField
from graphs.structure.layout import read_graph
from tests.cases import for_each


def forms() -> list[tuple[str, Any]]:
    """Return the cycle of five nodes in every form, with its nodes in order."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    dense = np.zeros((5, 5), dtype=int)
    for a, b in edges:
        dense[a, b] = dense[b, a] = 1
    return [
        ("networkx", nx.cycle_graph(5)),
        ("edges and a number", (np.array(edges), 5)),
        ("dense", dense),
        ("booleans", dense.astype(bool)),
        ("sparse matrix", sparse.csr_matrix(dense)),
        ("sparse array", sparse.coo_array(dense.astype(float))),
        ("data frame", pd.DataFrame(dense)),
        ("list of edges", edges),
        ("mapping", {a: [b for b in range(5) if dense[a, b]] for a in range(5)}),
    ]


@pytest.mark.slow
@for_each(("form", "graph"), forms(), ids=[name for name, _ in forms()])
def test_every_form_is_the_same_graph(form: str, graph: Any) -> None:
    layout = read_graph(graph)
    assert set(layout.labels) == set(range(5))
    found = {frozenset((layout.labels[a], layout.labels[b])) for a, b in layout.edges.tolist()}
    assert found == {frozenset((k, (k + 1) % 5)) for k in range(5)}
    assert DependencyGraph(graph).variance_inflation() == DependencyGraph(nx.cycle_graph(5)).variance_inflation()
    exact = MarkovField.ising(nx.cycle_graph(5), coupling=0.4)
    np.testing.assert_allclose(MarkovField.ising(graph, coupling=0.4).leakage(0.1), exact.leakage(0.1), rtol=1e-12)


def test_the_names_of_a_data_frame_are_the_labels() -> None:
    table = pd.DataFrame([[0, 1], [1, 0]], index=["ann", "bob"], columns=["ann", "bob"])
    assert list(read_graph(table).labels) == ["ann", "bob"]


@for_each(
    ("graph", "message"),
    [
        (np.array([[0, 1], [0, 0]]), "not symmetric"),
        (sparse.csr_array(np.array([[0, 1], [0, 0]])), "not symmetric"),
        (np.zeros((2, 3)), "square"),
        (np.array([[0, np.nan], [np.nan, 0]]), "finite numbers"),
        (np.array([["a", "b"], ["b", "a"]]), "matrix of type"),
        (pd.DataFrame([[0, 1], [1, 0]], columns=["a", "b"]), "different names"),
        (np.eye(2), "self-loop"),
        ("friends", "a list of edges"),
        (3, "a list of edges"),
        (np.zeros((0, 0)), "without nodes"),
    ],
)
def test_other_matrices_are_refused(graph: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        read_graph(graph)
