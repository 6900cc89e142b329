"""Bayesian networks, moral graphs and pedigrees."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import ArgumentError, BayesianNetwork, FactorGraph, MarkovChain, pedigree
from graphs.models.bayesian_network import moralise
from tests.cases import for_each
from tests.graphs.random_networks import joint_by_brute_force, random_bayesian_network

PAIR: nx.DiGraph[str] = nx.DiGraph([("a", "b")])


@for_each(
    ("digraph", "cpds", "words"),
    [
        (nx.Graph([("a", "b")]), {}, "networkx.DiGraph"),
        (nx.DiGraph(), {}, "without nodes"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), {"a": [[1], [1]], "b": [[1], [1]]}, "cycle"),
        (nx.DiGraph([("a", "a")]), {"a": [[0.5, 0.5], [0.5, 0.5]]}, "cycle"),
        (nx.MultiDiGraph([("a", "b"), ("a", "b")]), {}, "parallel"),
        (PAIR, {"a": [0.5, 0.5]}, "no table for 'b'"),
        (PAIR, {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]], "c": [1]}, "table for 'c'"),
        (PAIR, {"a": [0.5, 0.5], "b": [0.5, 0.5]}, "axes for the parents"),
        (PAIR, {"a": [0.5, 0.5], "b": [[1, 0], [0, 1], [1, 0]]}, r"shape \(2, 2\)"),
        (PAIR, {"a": [0.5, 0.5], "b": [[1, 0], [0.5, 0.4]]}, "sum to 0.9"),
        (PAIR, {"a": [1.5, -0.5], "b": [[1, 0], [0, 1]]}, "negative"),
        (PAIR, {"a": [0.5, np.nan], "b": [[1, 0], [0, 1]]}, "missing"),
        (PAIR, {"a": [0.5, 0.5], "b": (("c",), [[1, 0], [0, 1]])}, "the parents of the graph"),
    ],
)
def test_refusals(digraph: Any, cpds: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        BayesianNetwork(digraph, cpds)


def test_a_long_cycle_is_refused() -> None:
    ring = nx.DiGraph([(0, 1), (1, 2), (2, 0)])
    with pytest.raises(ArgumentError, match="cycle"):
        BayesianNetwork(ring, {k: [[0.5, 0.5], [0.5, 0.5]] for k in range(3)})
    with pytest.raises(ArgumentError, match="cycle"):
        moralise(ring)


def test_axes_are_parents_in_order_then_the_node() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph([("u", "w"), ("v", "w")])
    table = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3))
    laws: dict[str, list[float]] = {"u": [0.3, 0.7], "v": [0.2, 0.3, 0.5]}
    model = BayesianNetwork(graph, {**laws, "w": table})
    turned = BayesianNetwork(graph, {**laws, "w": (("v", "u"), table.transpose(1, 0, 2))})
    for u, v, w in product(range(2), range(3), range(4)):
        expected = laws["u"][u] * laws["v"][v] * table[u, v, w]
        assert model.joint()[u, w, v] == pytest.approx(expected)
    np.testing.assert_allclose(model.joint(), turned.joint(), rtol=1e-14)
    pair = BayesianNetwork(PAIR, {"a": (0.5, 0.5), "b": ((0.9, 0.1), (0.2, 0.8))})
    assert pair.joint()[1, 0] == pytest.approx(0.1)


def test_a_chain_is_a_bayesian_network() -> None:
    step = [[0.9, 0.1], [0.2, 0.8]]
    graph = nx.path_graph(5, create_using=nx.DiGraph)
    model = BayesianNetwork(graph, {0: [2 / 3, 1 / 3], **dict.fromkeys(range(1, 5), step)})
    chain = MarkovChain(step, 5)
    np.testing.assert_allclose(model.joint(), chain.joint(), rtol=1e-12)
    for method in ("messages", "group", "quilt-published", "blanket-published"):
        np.testing.assert_allclose(model.leakage(0.1, method), chain.leakage(0.1, method), rtol=1e-9)
    for epsilon in (0.01, 0.1, 1.0):
        assert (model.leakage(epsilon, "quilt") <= chain.leakage(epsilon, "quilt") * (1 + 1e-9)).all()
        lone = model.leakage(epsilon, "quilt", "uninformed")
        assert (lone <= chain.leakage(epsilon, "quilt", "uninformed") * (1 + 1e-9)).all()


@for_each("seed", range(20))
def test_joint_law_sums_to_one_without_normalising(seed: int) -> None:
    model = random_bayesian_network(np.random.default_rng([31, seed]), 5, 3)
    product_of_tables = np.ones(tuple(model.cardinalities.values()))
    for factor in model._factors:
        shape = [size if v in factor.members else 1 for v, size in enumerate(product_of_tables.shape)]
        product_of_tables = product_of_tables * factor.values.transpose(np.argsort(factor.members)).reshape(shape)
    assert product_of_tables.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(model.joint(), joint_by_brute_force(model), rtol=1e-12, atol=0)


@for_each("seed", range(10))
def test_moral_graphs_are_those_of_networkx(seed: int) -> None:
    random = nx.gnp_random_graph(8, 0.3, seed=seed, directed=True)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(8))
    graph.add_edges_from((u, v) for u, v in random.edges if u < v)
    assert set(map(frozenset, moralise(graph).edges)) == set(map(frozenset, nx.moral_graph(graph).edges))
    assert list(moralise(graph)) == list(graph)


def test_separation_in_the_moral_graph_is_what_quilts_use() -> None:
    """Two parents of one child are in each other's blanket."""
    coin = [0.5, 0.5]
    child = [[[0.8, 0.2], [0.4, 0.6]], [[0.3, 0.7], [0.1, 0.9]]]
    model = BayesianNetwork(nx.DiGraph([("f", "c"), ("m", "c")]), {"f": coin, "m": coin, "c": child})
    assert set(model.quilts("f").quilt[0]) == {"c", "m"}


def test_pedigree_transmits_as_mendel_says() -> None:
    family = pedigree({"child": ("father", "mother")}, 0.3)
    order = [family.records.index(name) for name in ("father", "mother", "child")]
    joint = family.joint().transpose(order)
    founder = [0.7**2, 2 * 0.3 * 0.7, 0.3**2]
    for father, mother in product(range(3), repeat=2):
        law = np.zeros(3)
        for one, other in product(range(2), repeat=2):
            share = (father / 2 if one else 1 - father / 2) * (mother / 2 if other else 1 - mother / 2)
            law[one + other] += share
        np.testing.assert_allclose(joint[father, mother], founder[father] * founder[mother] * law, atol=1e-15)
    np.testing.assert_allclose(family.marginal(["child"]), founder, rtol=1e-12)


def test_unknown_parents_are_summed_out() -> None:
    """A child of an unknown father is the child of a latent founder."""
    unknown = pedigree({"c": (None, "m"), "d": (None, "m")}, 0.2, mutation=0.01)
    spelled = pedigree({"c": ("x", "m"), "d": ("y", "m")}, 0.2, mutation=0.01, latent=["x", "y"])
    given = {"c": 2, "d": 0}
    np.testing.assert_allclose(unknown.marginal(["m"], given), spelled.marginal(["m"], given), rtol=1e-12)
    assert unknown.n == spelled.n == 3
    alone = pedigree({"c": (None, None)}, 0.2)
    np.testing.assert_allclose(alone.joint(), [0.64, 0.32, 0.04], rtol=1e-12)


def test_mutation_makes_every_genotype_possible() -> None:
    trios = {"c": ("f", "m")}
    assert pedigree(trios, 0.1).marginal(["c"], {"f": 0, "m": 0})[2] == 0
    assert pedigree(trios, 0.1, mutation=1e-3).marginal(["c"], {"f": 0, "m": 0})[2] == pytest.approx(1e-6)
    sharp, blurred = pedigree(trios, 0.1), pedigree(trios, 0.1, mutation=0.1)
    np.testing.assert_allclose(sharp.leakage(0.1), 0.3)
    assert (blurred.leakage(0.1) < 0.3).all()


@for_each(
    ("trios", "options", "words"),
    [
        ({}, {}, "mapping"),
        ([("c", "f", "m")], {}, "mapping"),
        ({"c": ("f",)}, {}, "pair"),
        ({"c": ("f", "f")}, {}, "two different people"),
        ({"c": ("c", "m")}, {}, "cycle"),
        ({"a": ("b", "m"), "b": ("a", "m")}, {}, "cycle"),
        ({"c": ("f", "m")}, {"frequency": 0.0}, "strictly between"),
        ({"c": ("f", "m")}, {"frequency": 1.2}, "from 0 to 1"),
        ({"c": ("f", "m")}, {"mutation": 0.7}, "from 0 to 0.5"),
        ({"c": ("f", "m")}, {"latent": ["q"]}, "names of nodes"),
    ],
)
def test_pedigree_refusals(trios: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        pedigree(trios, **{"frequency": 0.1, **options})


def test_words() -> None:
    model = BayesianNetwork(PAIR, {"a": [0.5, 0.5], "b": [[1, 0], [0, 1]]}, latent=["a"])
    assert model.describe() == "Bayesian network of 1 records and 1 latent nodes with 1 edges"
    assert model.fingerprint() != FactorGraph([2, 2], [((0,), [0.5, 0.5]), ((0, 1), [[1, 0], [0, 1]])]).fingerprint()


@pytest.mark.slow
def test_tables_of_pgmpy_are_turned() -> None:
    """The node comes first there; with two parents of different sizes every wrong order has another shape."""
    pgmpy = pytest.importorskip("pgmpy.factors.discrete")
    models = pytest.importorskip("pgmpy.models")
    inference = pytest.importorskip("pgmpy.inference")
    rng = np.random.default_rng(0)
    network = models.DiscreteBayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    tables = [
        pgmpy.TabularCPD("a", 2, rng.dirichlet(np.ones(2), 1).T),
        pgmpy.TabularCPD("b", 3, rng.dirichlet(np.ones(3), 1).T),
        pgmpy.TabularCPD("c", 4, rng.dirichlet(np.ones(4), 6).T, ["b", "a"], [3, 2]),
        pgmpy.TabularCPD("d", 2, rng.dirichlet(np.ones(2), 4).T, ["c"], [4]),
    ]
    network.add_cpds(*tables)
    exact = inference.VariableElimination(network)
    for model in (BayesianNetwork(network), BayesianNetwork(nx.DiGraph(network.edges), tables)):
        for given in ({}, {"a": 1, "d": 0}):
            expected = exact.query(["c"], evidence=given, show_progress=False).values
            np.testing.assert_allclose(model.marginal(["c"], given=given), expected, rtol=1e-9)


def test_tables_of_pgmpy_have_one_order_of_states_and_one_table_a_node() -> None:
    """Pgmpy itself refuses states in two orders; without their names the tables would be multiplied crosswise."""
    pgmpy = pytest.importorskip("pgmpy.factors.discrete")
    first = pgmpy.TabularCPD("a", 2, [[0.9], [0.1]], state_names={"a": ["no", "yes"]})
    turned = {"b": [0, 1], "a": ["yes", "no"]}
    child = pgmpy.TabularCPD("b", 2, [[0.99, 0.2], [0.01, 0.8]], ["a"], [2], state_names=turned)
    for tables in ([first, child], {"a": first, "b": child}):
        with pytest.raises(ArgumentError, match="the states of 'a' as"):
            BayesianNetwork(PAIR, tables)
    with pytest.raises(ArgumentError, match="two tables for 'a'"):
        BayesianNetwork(PAIR, [first, child, pgmpy.TabularCPD("a", 2, [[0.5], [0.5]])])


def test_a_raw_table_with_the_node_first_is_named() -> None:
    graph = nx.DiGraph([("a", "c"), ("b", "c")])
    flat = [[0.9, 0.8, 0.7, 0.4], [0.1, 0.2, 0.3, 0.6]]
    with pytest.raises(ArgumentError, match="with the node first as in pgmpy"):
        BayesianNetwork(graph, {"a": [0.5, 0.5], "b": [0.5, 0.5], "c": flat})
    with pytest.raises(ArgumentError, match="with the node first as in pgmpy"):
        BayesianNetwork(nx.DiGraph([(0, 1)]), {0: [0.5, 0.5], 1: [[0.9, 0.4], [0.1, 0.6]]})
    with pytest.raises(ArgumentError, match="Only a pgmpy network has tables of its own"):
        BayesianNetwork(graph)
    with pytest.raises(ArgumentError, match=r"list of pgmpy\.TabularCPD"):
        BayesianNetwork(graph, [1, 2, 3])


def test_tables_may_be_attributes_of_nodes() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("a", cpd=[0.3, 0.7])
    graph.add_node("b", cpd=[[0.9, 0.1], [0.2, 0.8]])
    graph.add_edge("a", "b")
    np.testing.assert_allclose(BayesianNetwork(graph, "cpd").joint(), [[0.27, 0.03], [0.14, 0.56]])
    with pytest.raises(ArgumentError, match="no table for 'a'"):
        BayesianNetwork(graph, "law")


def test_tables_of_single_precision() -> None:
    """Sums are one up to the rounding of the entries; the law has the rows divided by their sums, as for chains."""
    table = np.array([[0.9, 0.1], [0.3, 0.7]], dtype=np.float32)
    model = BayesianNetwork(PAIR, {"a": np.array([0.4, 0.6], dtype=np.float32), "b": table})
    rows = table.astype(np.float64)
    expected = np.array([[0.4], [0.6]]) * rows / rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.joint(), expected, atol=1e-7)
    np.testing.assert_allclose(model.joint().sum(), 1.0, rtol=1e-12)
    with pytest.raises(ArgumentError, match="entries that sum to"):
        BayesianNetwork(PAIR, {"a": [0.4, 0.6], "b": rows})
