"""Factor graphs: what goes in, what is refused, and what comes out."""

from datetime import date
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphs.models.factor_graph
from graphs import ArgumentError, FactorGraph, Groups, RouteUnavailable
from graphs.structure.potentials import Potentials, factor_diameters
from tests.cases import for_each
from tests.graphs.random_networks import joint_by_brute_force, random_factor_graph
from tests.oracles.adversarial import outcomes
from tests.oracles.moments import worst_inflation

EVEN = [[3, 1], [1, 3]]


@for_each(
    ("cardinalities", "factors", "latent", "words"),
    [
        ([], [], [], "is missing"),
        ("ab", [], [], "mapping"),
        ([2, 0], [], [], "at least 1"),
        ([2, 2.5], [], [], "integer"),
        ([2, 2], [((0, 2), EVEN)], [], "member 2"),
        ([2, 2], [((0, 0), EVEN)], [], "none twice"),
        ([2, 2], [((), 1.0)], [], "one or more"),
        ([2, 3], [((0, 1), EVEN)], [], r"shape \(2, 3\)"),
        ([2, 2], [((0, 1), [[1, 1], [1, -1]])], [], "negative"),
        ([2, 2], [((0, 1), [[1, 1], [1, np.nan]])], [], "missing"),
        ([2, 2], [((0, 1), [[1, 1], [1, np.inf]])], [], "infinite"),
        ([2, 2], [((0, 1), [[1, 1], [1, 1j]])], [], "complex"),
        ([2, 2], [((0, 1), [[1, 1], [1]])], [], "different lengths"),
        ([2, 2], [((0, 1), np.zeros((2, 2)))], [], "zero throughout"),
        ([2, 2], [3], [], "pairs of members and a table"),
        ([2], [((0,), [1, 0]), ((0,), [0, 1])], [], "positive weight"),
        ([2, 2], [((0, 1), [[1, 0], [0, 0]]), ((0,), [0, 1])], [], "positive weight"),
        ([2, 2], [], [2], "names of nodes"),
        ([2, 2], [], [0, 1], "at least one node that is a record"),
        ({"a": 2}, [], "a", "a list of names"),
    ],
)
def test_refusals(cardinalities: Any, factors: Any, latent: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        FactorGraph(cardinalities, factors, latent=latent)


def test_a_contradiction_that_no_single_state_shows_is_refused() -> None:
    """An odd ring of inequalities between binary records: every state is possible pair by pair, none jointly."""
    differ = [[0, 1], [1, 0]]
    with pytest.raises(ArgumentError, match="positive weight"):
        FactorGraph([2, 2, 2], [((0, 1), differ), ((1, 2), differ), ((2, 0), differ)])
    even = FactorGraph([2] * 4, [((k, (k + 1) % 4), differ) for k in range(4)])
    assert even.joint()[0, 1, 0, 1] == 0.5


def test_names_of_any_hashable_type_keep_their_order() -> None:
    names = [("x", 1), date(2020, 1, 1), "z", 3.5, frozenset({2})]
    factors = [((names[4], names[0]), EVEN), ((names[2],), [1, 3])]
    model = FactorGraph(dict.fromkeys(names, 2), factors, latent=[names[1]])
    assert model.nodes == tuple(names)
    assert model.records == (names[0], "z", 3.5, names[4])
    np.testing.assert_allclose(model.leakage([0.1, 0.2, 0.3, 0.4])[[1, 2]], [0.2, 0.3])
    np.testing.assert_allclose(model.marginal(["z"]), [0.25, 0.75])
    assert list(model.leakage([0.1, 0.2, 0.3, 0.4], "group")) == pytest.approx([0.5, 0.2, 0.3, 0.5])


def test_isolated_disconnected_and_single_records() -> None:
    one = FactorGraph([3], [])
    assert one.leakage(0.3).tolist() == [0.3]
    assert one.variance_inflation() == 1
    assert one.independent_groups() is not None
    assert one.sample(np.random.default_rng(0)).shape == (1,)
    np.testing.assert_allclose(one.joint(), np.ones(3) / 3)
    for method in set(FactorGraph.methods) - {"self-avoiding"}:
        assert one.leakage(0.3, method) == pytest.approx([0.3])
    apart = FactorGraph([2] * 5, [((0, 1), EVEN), ((2, 3), EVEN)])
    groups = apart.independent_groups()
    assert groups is not None
    assert sorted(groups.tolist()) == [1, 2, 2]
    assert apart.variance_inflation("components") == pytest.approx(9 / 5)
    same = Groups(["a", "a", "b", "b", "c"])
    np.testing.assert_allclose(apart.leakage(0.1, "group"), same.leakage(0.1))
    assert apart.leakage(0.1)[4] == 0.1


def test_a_zero_budget_leaks_nothing() -> None:
    model = FactorGraph([2] * 3, [((0, 1), EVEN), ((1, 2), EVEN)])
    for method in ("best", "group", "messages", "quilt", "quilt-contracted"):
        assert model.leakage(0.0, method).tolist() == [0, 0, 0]


def test_impossible_states_and_constants_do_not_make_a_bound_worse() -> None:
    """State 2 is ruled out by another factor; record 1 then has one state and separates its neighbours."""
    table = np.array([[3.0, 1.0, 0.0], [1.0, 3.0, 5.0]])
    model = FactorGraph([2, 3], [((0, 1), table), ((1,), [1, 1, 0])])
    plain = FactorGraph([2, 2], [((0, 1), EVEN)])
    np.testing.assert_allclose(model.leakage(0.5), plain.leakage(0.5))
    cut = FactorGraph([2, 2, 2], [((0, 1), EVEN), ((1, 2), EVEN), ((1,), [0, 1])])
    assert cut.leakage(0.5).tolist() == [0.5, 0.5, 0.5]
    np.testing.assert_allclose(cut.marginal([0]), [0.25, 0.75])
    with pytest.raises(ArgumentError, match="possible state"):
        cut.marginal([0], given={1: 0})


def test_factors_over_the_same_records_are_multiplied() -> None:
    both = FactorGraph([2, 2], [((0, 1), [[2, 1], [1, 5]]), ((1, 0), [[1, 5], [2, 1]])])
    once = FactorGraph([2, 2], [((0, 1), [[2, 2], [5, 5]])])
    np.testing.assert_allclose(both.joint(), once.joint())
    np.testing.assert_allclose(both.leakage(0.1), [0.1, 0.1], atol=1e-12)


@for_each("seed", range(20))
def test_joint_law_is_the_product_of_the_tables(seed: int) -> None:
    model = random_factor_graph(np.random.default_rng([21, seed]), 5, 3, latent=seed % 2)
    hidden = [k for k, name in enumerate(model.nodes) if name not in model.records]
    np.testing.assert_allclose(model.joint(), joint_by_brute_force(model).sum(axis=tuple(hidden)), rtol=1e-12, atol=0)


def test_diameters_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(4)
    for shape in [(2, 2), (3, 4), (2, 3, 2), (3, 2, 2, 2)]:
        table = rng.random(shape)
        flat = table.reshape(shape[0], -1)
        expected = max(np.ptp(np.log(flat[u]) - np.log(flat[v])) for u in range(shape[0]) for v in range(shape[0]))
        found = factor_diameters(table[None], np.zeros(1))[0]
        assert expected <= found <= expected * (1 + 1e-12)
    assert factor_diameters(np.array([[[1.0, 0], [1, 1]]]), np.zeros(1))[0] == np.inf
    assert factor_diameters(np.array([[[1.0, 0], [2, 0]]]), np.zeros(1))[0] < 1e-12
    assert factor_diameters(np.array([[[0.0, 0], [2, 1]]]), np.zeros(1))[0] == 0


def test_zeros_leave_the_contracted_route_out_where_it_is_not_proved() -> None:
    model = FactorGraph([2] * 3, [((0, 1), [[1, 1], [0, 1]]), ((1, 2), EVEN)])
    with pytest.raises(RouteUnavailable, match="product set"):
        model.leakage(0.1, "quilt-contracted")
    with pytest.raises(RouteUnavailable, match="zeros"):
        model.variance_inflation("interdependence")
    blocks = (2 + 1 / 2) ** 2 + 1  # the two ends of the edge with a zero, then the third record
    assert model.variance_inflation(bounded_differences=True) == pytest.approx(blocks / 3, rel=1e-12)
    inside = 3 + 2 * (1 + 1 / 2 + 1 / 2)  # influences 1 over the edge with a zero, 1/2 over the other and over both
    assert model.variance_inflation() == pytest.approx(inside / 3, rel=1e-12)
    assert worst_inflation(*outcomes(model.joint()), np.random.default_rng(0)) <= inside / 3
    assert "product set" in model.explain(0.5).reason["quilt-contracted"]


def test_inflation_of_a_ring() -> None:
    """C = tanh(Delta/4) = 0.3 on a ring of twelve gives 5 (worked value)."""
    coupling = np.exp(np.arctanh(0.3))
    table = [[coupling, 1 / coupling], [1 / coupling, coupling]]
    model = FactorGraph([2] * 12, [((k, (k + 1) % 12), table) for k in range(12)])
    assert model.variance_inflation("interdependence") == pytest.approx(5)
    assert model.variance_inflation("interdependence", bounded_differences=True) == pytest.approx(5)
    three_way = FactorGraph([2] * 3, [((0, 1, 2), np.arange(1.0, 9).reshape(2, 2, 2))])
    pairs, diameters = three_way._potentials.pairs
    table3 = np.log(np.arange(1.0, 9).reshape(2, 2, 2))
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    slices = np.abs(table3[0, 0] - table3[0, 1] - table3[1, 0] + table3[1, 1])
    assert diameters[0] == pytest.approx(slices.max())
    strong = FactorGraph([2] * 3, [((0, 1), [[9, 1], [1, 9]]), ((1, 2), [[9, 1], [1, 9]]), ((2, 0), [[9, 1], [1, 9]])])
    with pytest.raises(RouteUnavailable, match="spectral radius"):
        strong.variance_inflation("interdependence")


@pytest.mark.slow
def test_published_routes_refuse_large_components() -> None:
    path = FactorGraph([2] * 300, [((k, k + 1), EVEN) for k in range(299)])
    with pytest.raises(RouteUnavailable, match="200 nodes"):
        path.leakage(0.1, "quilt-published")
    assert path.explain(0.5).won["messages"]


def test_fingerprints_tell_models_apart() -> None:
    model = FactorGraph([2, 2], [((0, 1), EVEN)])
    assert model.fingerprint() == FactorGraph({"a": 2, "b": 2}, [("ab", EVEN)]).fingerprint()
    others = [
        FactorGraph([2, 2], [((1, 0), EVEN)]),
        FactorGraph([2, 2], [((0, 1), [[3, 1], [1, 2]])]),
        FactorGraph([2, 2, 2], [((0, 1), EVEN)]),
        FactorGraph([2, 2, 2], [((0, 1), EVEN)], latent=[2]),
    ]
    assert len({model.fingerprint(), *(other.fingerprint() for other in others)}) == 5


def test_words() -> None:
    model = FactorGraph([2, 2, 2], [((0, 1), EVEN)], latent=[2])
    assert repr(model) == "<FactorGraph: factor graph of 2 records and 1 latent nodes with 1 factors>"
    with pytest.raises(ArgumentError, match="latent node"):
        model.quilts(2)
    for arguments in [([0], {0: 1}), ([0, 0], {}), (["q"], {}), ([0], {1: 7})]:
        with pytest.raises(ArgumentError):
            model.marginal(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="joint states"):
        FactorGraph([2] * 21, []).joint()


def test_entries_far_apart_are_refused_where_they_multiply() -> None:
    small = [[1e-200, 1], [1, 1]]
    with pytest.raises(ArgumentError, match="below 1e-280"):
        FactorGraph([2, 2], [((0, 1), small), ((0, 1), small)])


def test_wide_networks_with_zeros_cannot_be_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs.models.factor_graph, "EXACT", 2)
    model = FactorGraph([2] * 3, [((0, 1), [[1, 1], [0, 1]]), ((1, 2), EVEN)])
    with pytest.raises(ArgumentError, match="zeros"):
        model.sample(np.random.default_rng(0))


def test_samples_are_reproducible_and_possible() -> None:
    for seed in range(20):
        model = random_factor_graph(np.random.default_rng([22, seed]), 6, 3)
        drawn = model.sample(np.random.default_rng(seed))
        assert (drawn == model.sample(np.random.default_rng(seed))).all()
        assert joint_by_brute_force(model)[tuple(drawn)] > 0


def test_messages_on_a_network_of_many_shapes_match_a_plain_iteration() -> None:
    """The fixed point, iterated one message at a time in plain Python."""
    model = random_factor_graph(np.random.default_rng(77), 6, 3)
    p: Potentials = model._potentials
    epsilon = 0.2
    rows = list(zip(p.incidence.nodes, p.incidence.factors, p.incidence.diameters, strict=True))
    total = epsilon * 6
    to_node = {(f, v): total for v, f, _ in rows}
    for _ in range(400):
        to_factor = {
            (v, f): min(total, epsilon + sum(m for (g, u), m in to_node.items() if u == v and g != f))
            for v, f, _ in rows
        }
        for v, f, diameter in rows:
            behind = min(total, sum(m for (u, g), m in to_factor.items() if g == f and u != v))
            to_node[f, v] = 4 * np.arctanh(np.tanh(diameter / 4) * np.tanh(behind / 4))
    expected = [epsilon + sum(m for (_, u), m in to_node.items() if u == v) for v in range(6)]
    assert (model.leakage(epsilon, "messages") <= np.array(expected) * (1 + 1e-9)).all()


@pytest.mark.slow
def test_a_grid_is_better_off_with_messages_than_with_published_quilts() -> None:
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5))
    model = FactorGraph([2] * 25, [(edge, [[1.2, 1], [1, 1.2]]) for edge in grid.edges])
    table = model.explain(1.0)
    assert table.budget.idxmax() == "self-avoiding"
    assert table.budget["messages"] > 2 * table.budget["quilt-published"]
