"""Quilts against brute-force separation, influences against brute-force laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, permutations

import mpmath
import networkx as nx
import numpy as np
import pytest

from graphs import FactorGraph
from graphs.leakage.network_quilts import NetworkQuilts
from graphs.structure.separators import Effort, boundary, candidates, connected_sets, nearby
from tests.cases import for_each
from tests.graphs.random_networks import joint_by_brute_force, random_bayesian_network, random_factor_graph
from tests.sizes import corners


def subsets(items: list[int]) -> chain[tuple[int, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def neighbours_of(graph: nx.Graph[int]) -> list[list[int]]:
    return [sorted(graph[v]) for v in range(len(graph))]


@pytest.mark.slow
@for_each("seed", range(30))
def test_every_separator_of_a_small_graph_is_covered(seed: int) -> None:
    """For every set Q: the quilt found with the same nearby set is inside Q, and nothing remote can be reached."""
    graph = nx.gnm_random_graph(7, 4 + seed % 9, seed=seed)
    neighbours = neighbours_of(graph)
    for node in graph:
        component = nx.node_connected_component(graph, node)
        found = {
            inside - {node}: boundary(neighbours, inside)
            for inside in candidates(neighbours, node, len(component), Effort.of_size(7))
        }
        for near, quilt in found.items():
            left = graph.subgraph(set(graph) - quilt)
            assert nx.node_connected_component(left, node) == near | {node}
        for quilt_nodes in subsets([v for v in graph if v != node]):
            left = graph.subgraph(set(graph) - set(quilt_nodes))
            near = frozenset(nx.node_connected_component(left, node) - {node})
            assert near == nearby(neighbours, node, frozenset(quilt_nodes))
            if len(near) + 1 < len(component):
                assert found[near] <= set(quilt_nodes)


def test_connected_sets_are_all_there_once() -> None:
    graph = nx.petersen_graph()
    found = list(connected_sets(neighbours_of(graph), 0, 10))
    expected = [s for s in subsets(list(graph)) if 0 in s and nx.is_connected(graph.subgraph(s))]
    assert len(found) == len(set(found)) == len(expected)
    assert set(found) == {frozenset(s) for s in expected}


def test_smallest_cuts_are_among_the_candidates() -> None:
    """Two cliques joined through one node: that node is the quilt to find."""
    graph = nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6))
    graph.add_edges_from([(0, 12), (12, 6)])
    effort = Effort.of_size(13)
    quilts = {boundary(neighbours_of(graph), s) for s in candidates(neighbours_of(graph), 3, 13, effort)}
    assert {0} in quilts
    assert {12} in quilts


def brute_force(joint: np.ndarray, record: int, quilt: list[int], near: list[int]) -> dict[str, tuple[float, float]]:
    """Return influence and range, the largest over known near records and for none, from the joint law."""
    found = {}
    for known in subsets(near):
        axes = [*known, record, *quilt]
        table = joint.sum(axis=tuple(v for v in range(joint.ndim) if v not in axes))
        table = np.moveaxis(table, np.argsort(np.argsort(axes)), range(len(axes)))
        table = table.reshape(-1, joint.shape[record], int(np.prod([joint.shape[v] for v in quilt])))
        influence = spread = 0.0
        for part in table:
            possible = [row / row.sum() for row in part if row.sum() > 0]
            for first in possible:
                for second in possible:
                    used = (first > 0) | (second > 0)
                    with np.errstate(divide="ignore"):
                        ratio = np.log(first[used]) - np.log(second[used])
                    influence, spread = max(influence, ratio.max()), max(spread, np.ptp(ratio))
        found[known] = (influence, spread)
    worst = np.array(list(found.values())).max(axis=0)
    return {"any": (float(worst[0]), float(worst[1])), "none": found[()]}


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(40), *range(12)))
def test_influences_are_those_of_the_joint_law(seed: int) -> None:
    rng = np.random.default_rng([13, seed])
    make = random_bayesian_network if seed % 2 else random_factor_graph
    model = make(rng, 5, 3, int(rng.integers(0, 2)))
    joint = joint_by_brute_force(model)
    quilts = model._found_quilts
    p = model._potentials
    rows = [(group, row) for group in quilts._groups for row in range(len(group.records))]
    assert len(rows) == len(quilts)
    for j, (group, row) in enumerate(rows):
        nodes = group.nodes[row].tolist()
        node, near, edge = nodes[0], nodes[1 : group.seen], nodes[group.inside :]
        assert p.records[group.records[row]] == node
        exact = brute_force(joint, node, sorted(edge), sorted(near))
        for known in ("any", "none"):
            influence, spread = exact[known]
            assert quilts.influences(known)[j] == pytest.approx(influence, rel=1e-9, abs=1e-12)
            assert quilts.influences(known)[j] >= influence * (1 - 1e-12)
            assert quilts.ranges(known)[j] >= spread * (1 - 1e-12)
            if p.positive_components[p.component[node]]:
                assert quilts.ranges(known)[j] == pytest.approx(spread, rel=1e-9, abs=1e-12)
                assert spread <= 2 * influence + 1e-12


@for_each("seed", range(40))
def test_ranges_and_influences_are_never_below_those_of_exact_arithmetic(seed: int) -> None:
    """A path of three records with floats as weights, in rational arithmetic and 50-digit logarithms."""
    rng = np.random.default_rng([14, seed])
    first, second = np.exp(4 * rng.standard_normal((2, 3, 3)))
    model = FactorGraph([3, 3, 3], [((0, 1), first), ((1, 2), second)])
    row = model.quilts(0).set_index("quilt").loc[[(2,)]]
    left, right = ([[Fraction(w) for w in line] for line in table.tolist()] for table in (first, second))
    exact = [[sum((u[y] * right[y][z] for y in range(3)), Fraction(0)) for z in range(3)] for u in left]
    law = [[weight / sum(weights, Fraction(0)) for weight in weights] for weights in exact]
    with mpmath.workdps(50):
        logs = [[mpmath.log(mpmath.mpf(p.numerator) / p.denominator) for p in row] for row in law]
        pairs = [[a - b for a, b in zip(u, v, strict=True)] for u, v in permutations(logs, 2)]
        influence, spread = max(map(max, pairs)), max(max(pair) - min(pair) for pair in pairs)
        for found, true in [(row.influence.iloc[0], influence), (row.spread.iloc[0], spread)]:
            assert true <= mpmath.mpf(float(found)) <= true * (1 + mpmath.mpf("1e-11")) + mpmath.mpf("1e-12")


def test_separation_is_conditional_independence() -> None:
    model = random_factor_graph(np.random.default_rng(5), 6, 2)
    joint = joint_by_brute_force(model)
    table = model.quilts(0)
    for quilt, near in zip(table.quilt, table.nearby, strict=True):
        rest = [v for v in range(6) if v not in (0, *quilt, *near)]
        together = joint.sum(axis=near, keepdims=True)
        left = together.sum(axis=tuple(rest), keepdims=True)
        right = together.sum(axis=0, keepdims=True)
        edge = right.sum(axis=tuple(rest), keepdims=True)
        np.testing.assert_allclose(together * edge, left * right, atol=1e-14)


def test_worked_influences_of_a_chain() -> None:
    """Chain with rows (0.9, 0.1), (0.2, 0.8) in its stationary law, five records."""
    step = np.array([[0.9, 0.1], [0.2, 0.8]])
    factors = [((k, k + 1), step) for k in range(4)]
    model = FactorGraph([2] * 5, [((0,), [2 / 3, 1 / 3]), *factors])
    ends, inner = 2.0794415416798357, 4.1588830833596715
    np.testing.assert_allclose(model._found_quilts.blankets(), [ends, inner, inner, inner, ends], rtol=1e-12)
    table = model.quilts(2).set_index("quilt")
    assert table.influence[(0, 4)] == pytest.approx(2.7128827959404194, rel=1e-12)
    expected = [0.28471804240822574, 0.3302033113292324, 0.34481413070915923]
    np.testing.assert_allclose(model.leakage(0.1, "messages")[:3], expected, rtol=1e-12)


def test_published_routes_use_four_influences() -> None:
    model = FactorGraph([2, 2, 2], [((0, 1), [[3, 2], [2, 3]]), ((1, 2), [[3, 2], [2, 3]])])
    influence = np.log(1.5)
    np.testing.assert_allclose(model.leakage(0.1, "blanket-published")[[0, 2]], 0.1 + 4 * influence, rtol=1e-9)
    np.testing.assert_allclose(model.leakage(0.1, "blanket-published")[1], 0.1 + 8 * influence, rtol=1e-9)
    assert model.leakage(20.0, "quilt-published")[0] == pytest.approx(20 + 4 * influence)
    assert model.leakage(0.1, "quilt-published")[0] == pytest.approx(0.3)


@pytest.mark.slow
def test_sound_quilts_beat_published_ones_and_messages_beat_both_on_trees() -> None:
    tree = nx.random_labeled_tree(40, seed=3)
    model = FactorGraph([2] * 40, [(edge, [[1.05, 1], [1, 1.05]]) for edge in tree.edges])
    budgets = {name: model.budget(2.0, name) for name in model.methods if name != "self-avoiding"}
    assert budgets["quilt-published"] <= budgets["quilt"] <= budgets["quilt-contracted"] <= budgets["messages"]
    assert budgets["blanket-published"] < budgets["quilt-published"] * (1 + 1e-9)


@pytest.mark.slow
def test_a_large_network_has_quilts_of_few_nodes() -> None:
    graph = nx.gnm_random_graph(2000, 2667, seed=2)
    factors = [(edge, [[1.1, 1.0], [1.0, 1.1]]) for edge in graph.edges]
    model = FactorGraph([2] * 2000, factors)
    epsilon = 0.5
    blanket = epsilon + 2 * np.log(1.1) * np.array([graph.degree[v] for v in range(2000)])
    found = model.leakage(epsilon, "quilt")
    small = np.array([graph.degree[v] for v in range(2000)]) <= 7
    assert (found[small] <= blanket[small] * (1 + 1e-9)).all()
    assert (found >= epsilon).all()


@pytest.mark.slow
def test_a_hub_is_no_quadratic_cost() -> None:
    star = FactorGraph([2] * 20_001, [((0, k), [[1.2, 1], [1, 1.2]]) for k in range(1, 20_001)])
    found = star.leakage(0.5, "quilt")
    assert found[1] == pytest.approx(0.5 + 2 * np.log(1.2))
    assert found[0] == pytest.approx(0.5 + 20_000 * 2 * np.log(1.2))  # its blanket; the group has 10,000


def test_latent_nodes_are_near_without_a_budget() -> None:
    """Record, latent node, record: given nothing else the quilt beyond the latent node costs one budget only."""
    step = [[1.2, 1.0], [1.0, 1.2]]
    model = FactorGraph(
        {"a": 2, "hidden": 2, "b": 2}, [(("a", "hidden"), step), (("hidden", "b"), step)], latent=["hidden"]
    )
    spread = 2 * np.log((1.2**2 + 1) / 2.4)
    assert model.leakage(1.0, "quilt")[0] == pytest.approx(1 + spread)
    assert set(model.quilts("a").quilt) == {("hidden",), ("b",)}


def test_search_can_be_chosen() -> None:
    model = FactorGraph([2] * 3, [((0, 1), [[3, 2], [2, 3]]), ((1, 2), [[3, 2], [2, 3]])])
    few = NetworkQuilts(model._potentials, Effort(1, 1, 0, False, 3, 4))
    assert [group.nodes.tolist() for group in few._groups] == [[[0, 1]], [[2, 1]]]
