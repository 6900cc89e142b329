"""Fields: what goes in, what is refused, fast paths beside slow ones."""

import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import ArgumentError, FactorGraph, Groups, MarkovField, RouteUnavailable
from tests.cases import for_each


def brute_force(graph: "nx.Graph[Any]", weight: Any, own: Any, states: int) -> np.ndarray:
    nodes = list(graph)
    law = np.empty((states,) * len(nodes))
    for x in np.ndindex(*law.shape):
        state = dict(zip(nodes, x, strict=True))
        law[x] = np.prod([weight(u, v, state[u], state[v]) for u, v in graph.edges])
        law[x] *= np.prod([own(v, state[v]) for v in nodes])
    law /= law.sum()
    return law


def test_ising_is_what_it_says() -> None:
    graph = nx.Graph([("b", "a"), ("c", "b"), ("a", "c")])
    couplings = {("b", "a"): 0.3, ("b", "c"): -0.5, ("a", "c"): 1.1}
    nx.set_edge_attributes(graph, {edge: {"J": couplings[edge]} for edge in graph.edges})
    nx.set_node_attributes(graph, {"a": 0.2, "b": -0.4, "c": 0.7}, "h")
    expected = brute_force(
        graph,
        lambda u, v, x, y: np.exp(graph.edges[u, v]["J"] * (2 * x - 1) * (2 * y - 1)),
        lambda v, x: np.exp(graph.nodes[v]["h"] * (2 * x - 1)),
        2,
    )
    np.testing.assert_allclose(MarkovField.ising(graph, "J", "h").joint(), expected, rtol=1e-12)
    diameters = [4 * abs(graph.edges[edge]["J"]) for edge in graph.edges]
    np.testing.assert_allclose(MarkovField.ising(graph, "J").diameters, diameters, rtol=1e-12)


def test_potts_is_what_it_says() -> None:
    graph = nx.cycle_graph(4)
    fields = np.random.default_rng(0).normal(size=(4, 3))
    expected = brute_force(graph, lambda u, v, x, y: np.exp(0.8 * (x == y)), lambda v, x: np.exp(fields[v, x]), 3)
    np.testing.assert_allclose(MarkovField.potts(graph, 0.8, 3, fields).joint(), expected, rtol=1e-12)


def test_orientation_of_matrices() -> None:
    rng = np.random.default_rng(1)
    table = rng.uniform(0.1, 1, (2, 3))
    graph = nx.Graph([("x", "y")])
    expected = table / table.sum()
    for potentials in ({("x", "y"): table}, {("y", "x"): table.T}, table, table[None]):
        np.testing.assert_allclose(MarkovField(graph, potentials).joint(), expected, rtol=1e-12)
    graph.edges["x", "y"]["weights"] = table
    np.testing.assert_allclose(MarkovField(graph, "weights").joint(), expected, rtol=1e-12)
    turned = MarkovField((np.array([[1, 0]]), 2), table[None])
    np.testing.assert_allclose(turned.joint(), expected.T, rtol=1e-12)


def test_different_numbers_of_states_and_isolated_nodes() -> None:
    graph: nx.Graph[Any] = nx.Graph([(0, 1), (1, 2)])
    graph.add_node(3)
    tables = {(0, 1): np.ones((2, 3)), (1, 2): np.arange(1.0, 13).reshape(3, 4)}
    with pytest.raises(ArgumentError, match=r"states must be .*; got None for the node 3"):
        MarkovField(graph, tables)
    model = MarkovField(graph, tables, states=5)
    assert model.joint().shape == (2, 3, 4, 5)
    np.testing.assert_allclose(model.leakage([0.1, 0.2, 0.3, 0.4])[[0, 3]], [0.1, 0.4], rtol=1e-13)
    groups = model.independent_groups()
    assert groups is not None
    assert sorted(groups.tolist()) == [1, 3]


def test_order_of_records_and_latent_nodes() -> None:
    graph = nx.path_graph(["a", "b", "c"])
    nx.set_node_attributes(graph, {"a": 1.0, "b": 0.5, "c": -0.3}, "h")
    full = MarkovField.ising(graph, 0.7, "h").joint()
    model = MarkovField.ising(graph, 0.7, "h", latent=["b"], records=["c", "a"])
    assert model.n == 2
    assert model.records == ("c", "a")
    np.testing.assert_allclose(model.joint(), full.sum(axis=1).T, rtol=1e-12)
    left = MarkovField.ising(graph, 0.7, "h", latent=["b"]).leakage([0.1, 0.4])
    np.testing.assert_allclose(model.leakage([0.4, 0.1]), left[::-1], rtol=1e-14)
    assert MarkovField.ising(graph, 0.7, records=["a"]).leakage(0.1).tolist() == [0.1]


@pytest.mark.slow
def test_messages_agree_with_the_factor_graph() -> None:
    rng = np.random.default_rng(2)
    for seed in range(20):
        graph: nx.Graph[Any] = nx.gnm_random_graph(12, 16, seed=seed)
        model = MarkovField.potts(graph, rng.normal(0, 1, 16), 3, rng.normal(size=(12, 3)), latent=[0, 5])
        factors = model.as_factor_graph()
        assert isinstance(factors, FactorGraph)
        epsilon = rng.uniform(0, 1, 10)
        np.testing.assert_allclose(model.leakage(epsilon, "messages"), factors.leakage(epsilon, "messages"), rtol=1e-9)
        np.testing.assert_allclose(model.leakage(epsilon, "group"), factors.leakage(epsilon, "group"), rtol=1e-12)


def test_zeros_rule_out_states_before_messages_are_passed() -> None:
    """State 2 of the middle is impossible because of its neighbour; what is left of the other edge is weak."""
    hard = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    weak = np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 0.0]])
    model = MarkovField(nx.path_graph(3), {(0, 1): hard, (1, 2): weak})
    assert model.leakage(0.1, "messages")[0] == pytest.approx(0.1, rel=1e-13)
    assert model.leakage(0.1, "messages")[2] == pytest.approx(
        0.1 + 4 * np.arctanh(np.tanh(np.log(4) / 4) * np.tanh(0.025))
    )


def test_hard_edges_are_groups() -> None:
    same = np.eye(2)
    model = MarkovField(nx.complete_graph(4), same)
    np.testing.assert_allclose(model.leakage(0.1), Groups([0] * 4).leakage(0.1), rtol=1e-14)


def test_parallel_edges_multiply_when_asked() -> None:
    graph: nx.MultiGraph[Any] = nx.MultiGraph([(0, 1), (0, 1)])
    with pytest.raises(ArgumentError, match="parallel"):
        MarkovField.ising(graph, 0.3)
    double = MarkovField.ising(graph, 0.3, parallel="multiply")
    single = MarkovField.ising(nx.path_graph(2), 0.6)
    np.testing.assert_allclose(double.joint(), single.joint(), rtol=1e-12)
    np.testing.assert_allclose(double.leakage(0.1), single.leakage(0.1), rtol=1e-12)
    assert double.variance_inflation("interdependence") == pytest.approx(single.variance_inflation("interdependence"))


def test_strong_couplings_do_not_overflow() -> None:
    model = MarkovField.ising(nx.cycle_graph(4), 2000.0)
    np.testing.assert_allclose(model.leakage(0.1), 0.4, rtol=1e-12)
    with pytest.raises(RouteUnavailable, match="exp"):
        model.leakage(0.1, "quilt")


def test_arrays_and_networkx_say_the_same() -> None:
    graph = nx.gnm_random_graph(30, 50, seed=1)
    arrays = (np.array(list(graph.edges)), 30)
    assert MarkovField.ising(graph, 0.3, 0.1).fingerprint() == MarkovField.ising(arrays, 0.3, 0.1).fingerprint()
    assert MarkovField.ising(graph, 0.3).fingerprint() != MarkovField.ising(graph, 0.31).fingerprint()
    assert pickle.loads(pickle.dumps(MarkovField.ising(arrays, 0.3))).fingerprint()


def test_distinct_matrices_are_kept_once() -> None:
    edges = np.array(list(nx.gnm_random_graph(500, 2000, seed=2).edges))
    model = MarkovField.ising((edges, 500), np.tile([0.1, 0.2], 1000))
    assert len(model._interactions.logs) == 2
    tables = [np.array([[1.0, 2.0], [2.0, 1.0]]) if k % 2 else np.ones((2, 2)) for k in range(2000)]
    assert len(MarkovField((edges, 500), np.array(tables))._interactions.logs) == 2


@pytest.mark.slow
def test_budget_and_explain() -> None:
    model = MarkovField.ising(nx.karate_club_graph(), 0.05)
    budget = model.budget(0.5)
    assert model.leakage(budget).max() <= 0.5 < model.leakage(budget * 1.001).max()
    table = model.explain(0.5)
    assert table["won"].sum() == 1
    assert set(table.index) == set(model.methods)


def test_one_record() -> None:
    graph: nx.Graph[Any] = nx.empty_graph(1)
    model = MarkovField.ising(graph, 1.0, 0.3)
    assert model.leakage(0.1).tolist() == [0.1]
    assert model.variance_inflation() == 1
    assert model.joint() == pytest.approx(np.exp([-0.3, 0.3]) / (2 * np.cosh(0.3)))
    assert model.sample(np.random.default_rng(0)).shape == (1,)


PATH = nx.path_graph(3)


@for_each(
    ("make", "match"),
    [
        (lambda: MarkovField(nx.Graph(), np.ones((2, 2))), "without nodes"),
        (lambda: MarkovField(nx.DiGraph([(0, 1)]), np.ones((2, 2))), "directed"),
        (lambda: MarkovField(nx.Graph([(0, 0)]), np.ones((2, 2))), "self-loop at 0"),
        (lambda: MarkovField(42, np.ones((2, 2))), "an int"),
        (lambda: MarkovField((np.array([[0, 2]]), 2), np.ones((2, 2))), "between 0 and 2 for n = 2"),
        (lambda: MarkovField((np.array([[0.0, 1.0]]), 2), np.ones((2, 2))), "float64"),
        (lambda: MarkovField(([], 0), np.ones((2, 2))), "graph must be .*; got 0"),
        (lambda: MarkovField(([], 2, 3), np.ones((2, 2))), "tuple of 3"),
        (lambda: MarkovField(PATH, [[1, -1], [1, 1]]), "entry -1"),
        (lambda: MarkovField(PATH, [[1, np.nan], [1, 1]]), "entry nan"),
        (lambda: MarkovField(PATH, [[1, np.inf], [1, 1]]), "entry inf"),
        (lambda: MarkovField(PATH, np.zeros((2, 2))), "zero throughout"),
        (lambda: MarkovField(PATH, [[1j, 1], [1, 1]]), "complex"),
        (lambda: MarkovField(PATH, np.ones(2)), r"shape \(2,\)"),
        (lambda: MarkovField(PATH, np.ones((2, 3))), "states for the node 1"),
        (lambda: MarkovField(PATH, {(0, 1): np.ones((2, 2))}), r"nothing for the edge \(1, 2\)"),
        (lambda: MarkovField(PATH, dict.fromkeys([(0, 1), (1, 2), (2, 1)], np.ones((2, 2)))), "both orders"),
        (lambda: MarkovField(PATH, dict.fromkeys([(0, 1), (1, 2), (0, 2)], np.ones((2, 2)))), "3 matrices for 2"),
        (lambda: MarkovField(PATH, "weight"), "an attribute of every edge; got 'weight'"),
        (lambda: MarkovField(([[0, 1]], 2), "weight"), "no attributes"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), [1, 1, 1]), "2 and 3 states|3 and 2 states"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), {0: [1, 1]}), "nothing for the record 1"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), {0: [1, 1], 1: [1, 1], 2: [1, 1], 9: [1, 1]}), "9, which is no"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), "bias"), "an attribute of every node; got 'bias'"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), latent=[7]), "latent must be .*; got 7, which is no node"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), latent=[0, 1, 2]), "every node"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), records=[0, 0]), "named twice"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), records=[0, 8]), "records must be .*; got 8"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), records=[0], latent=[0]), "latent too"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), latent="0"), "a text"),
        (lambda: MarkovField(PATH, np.ones((2, 2)), parallel="merge"), "parallel must be .*; got 'merge'"),  # type: ignore[arg-type]
        (lambda: MarkovField(PATH, [[0, 1], [0, 0]]), "possible state|positive weight"),
        (lambda: MarkovField.ising(PATH, np.ones(3)), r"coupling must be .*; got an array of shape \(3,\)"),
        (lambda: MarkovField.ising(PATH, np.inf), "coupling must be .*; got inf"),
        (lambda: MarkovField.ising(PATH, 0.1, [1, 2]), r"field must be .*; got an array of shape \(2,\)"),
        (lambda: MarkovField.ising(PATH, "J"), "an attribute of every edge; got 'J'"),
        (lambda: MarkovField.potts(PATH, 0.1, 1), "states must be .*; got 1"),
        (lambda: MarkovField.potts(PATH, 0.1, 3, [1, 2]), r"field must be .*; got an array of shape \(2,\)"),
    ],
)
def test_refusals(make: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        make()


def test_refusals_of_calls() -> None:
    model = MarkovField.ising(PATH, 0.1)
    with pytest.raises(ArgumentError, match="epsilon"):
        model.leakage([0.1, 0.2])
    with pytest.raises(ArgumentError, match="epsilon"):
        model.leakage(-1)
    with pytest.raises(RouteUnavailable, match="long-edges"):
        model.leakage(0.1, "long-edges")
    with pytest.raises(ArgumentError, match="joint states"):
        MarkovField.ising(nx.path_graph(25), 0.1).joint()
