"""Sums of products of tables against brute force and pgmpy."""

import math
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import FactorGraph, TooWide
from graphs.errors import ArgumentError
from graphs.structure.elimination import SMALLEST, Table, eliminate, elimination_order
from tests.cases import for_each
from tests.graphs.random_networks import joint_by_brute_force, random_bayesian_network, random_factor_graph


@for_each("seed", range(60))
def test_marginals_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    make = random_bayesian_network if seed % 2 else random_factor_graph
    model = make(rng, int(rng.integers(1, 8)), 3, 0)
    joint = joint_by_brute_force(model)
    nodes = rng.permutation(model.n)[: int(rng.integers(1, model.n + 1))].tolist()
    others = tuple(v for v in range(model.n) if v not in nodes)
    expected = np.moveaxis(joint.sum(axis=others), np.argsort(np.argsort(nodes)), range(len(nodes)))
    np.testing.assert_allclose(model.marginal(nodes), expected, rtol=1e-12, atol=0)
    if others:
        state = np.unravel_index(rng.choice(joint.size, p=joint.ravel()), joint.shape)
        known = {v: int(state[v]) for v in others}
        part: Any = joint[tuple(slice(None) if v in nodes else state[v] for v in range(model.n))]
        part = np.moveaxis(part, np.argsort(np.argsort(nodes)), range(len(nodes)))
        np.testing.assert_allclose(model.marginal(nodes, known), part / part.sum(), rtol=1e-12, atol=0)


@pytest.mark.slow
@for_each("seed", range(12))
def test_marginals_are_those_of_pgmpy(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteMarkovNetwork

        rng = np.random.default_rng([12, seed])
        graph = nx.gnm_random_graph(14, 20, seed=seed)
        factors = [(edge, np.exp(rng.standard_normal((2, 2)))) for edge in graph.edges]
        peer = DiscreteMarkovNetwork()
        peer.add_nodes_from(sorted({v for edge in graph.edges for v in edge}))
        peer.add_edges_from(graph.edges)
        peer.add_factors(*[DiscreteFactor(edge, [2, 2], table) for edge, table in factors])
        used = sorted(peer.nodes)
        asked, known = used[:3], {used[5]: 1, used[7]: 0}
        answer = VariableElimination(peer).query(asked, evidence=known, show_progress=False)
        expected = answer.values.transpose([answer.variables.index(v) for v in asked])
    found = FactorGraph([2] * 14, factors).marginal(asked, known)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@for_each("seed", range(6))
def test_bayesian_networks_answer_as_pgmpy_does(seed: int) -> None:
    model = random_bayesian_network(np.random.default_rng([15, seed]), 9, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork

        peer = DiscreteBayesianNetwork()
        peer.add_nodes_from(model.nodes)
        sizes = model.cardinalities
        for factor in model._factors:
            *above, node = factor.members
            peer.add_edges_from((parent, node) for parent in above)
            values = np.moveaxis(factor.values, -1, 0).reshape(sizes[node], -1)
            peer.add_cpds(TabularCPD(node, sizes[node], values, above or None, [sizes[v] for v in above] or None))
        answer = VariableElimination(peer).query([8, 0, 4], show_progress=False)
        expected = answer.values.transpose([answer.variables.index(v) for v in [8, 0, 4]])
    np.testing.assert_allclose(model.marginal([8, 0, 4]), expected, rtol=1e-12, atol=1e-15)


def test_scales_far_beyond_floats_are_kept() -> None:
    """A product of 400 tables with entries around 1e-10: its total is 1e-4000 and known in closed form."""
    step = np.array([[3e-10, 1e-10], [1e-10, 3e-10]])
    found = eliminate([Table.of((k, k + 1), step) for k in range(400)], (), [2] * 401)
    assert found.log_total() == pytest.approx(math.log(2) + 400 * math.log(4e-10), rel=1e-12)
    assert eliminate([Table.of((0,), np.zeros(2))], (), [2]).log_total() == -math.inf


def test_the_error_that_is_counted_covers_the_error_made() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(3)
    for _ in range(20):
        first, second = rng.random((2, 7, 7))
        found = eliminate([Table.of((0, 1), first), Table.of((1, 2), second)], (0, 2), [7, 7, 7])
        exact = [
            [sum(Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)) for column in second.T.tolist()]
            for row in first.tolist()
        ]
        scaled = np.ldexp(found.values, found.exponent)
        errors = [abs(Fraction(float(scaled[i, j])) / exact[i][j] - 1) * 2**53 for i in range(7) for j in range(7)]
        assert 0 < max(errors) <= found.roundings


def test_too_wide_a_network_says_how_wide() -> None:
    grid = nx.convert_node_labels_to_integers(nx.complete_graph(12))
    model = FactorGraph([2] * 12, [(edge, [[2, 1], [1, 2]]) for edge in grid.edges])
    with pytest.raises(TooWide, match=r"2\^12") as caught:
        model.marginal([0], limit=2**11)
    assert caught.value.width == 12
    assert caught.value.limit == 2**11


def test_entries_that_cannot_be_told_from_zero_are_refused() -> None:
    small = np.array([[1.0, SMALLEST], [SMALLEST, 1.0]])
    with pytest.raises(ArgumentError, match="fall below"):
        eliminate([Table.of((0, 1), small), Table.of((1, 2), small), Table.of((0, 2), small)], (0, 1, 2), [2, 2, 2])
    far = np.array([[1.0, 1e-200], [1e-200, 1.0]])
    found = eliminate([Table.of((0, 1), far), Table.of((1, 2), far)], (0, 2), [2, 2, 2])
    np.testing.assert_allclose(found.values * 2.0**found.exponent, [[1, 2e-200], [2e-200, 1]], rtol=1e-14)


def test_a_forest_is_eliminated_without_growing() -> None:
    tree = nx.random_labeled_tree(500, seed=1)
    order, largest = elimination_order(tree.edges, [3] * 500)
    assert largest == 9
    assert sorted(order) == list(range(500))


def test_a_hub_with_many_leaves() -> None:
    step = np.array([[3.0, 1.0], [1.0, 3.0]])
    model = FactorGraph([2] * 300, [((0, k), step) for k in range(1, 300)])
    np.testing.assert_allclose(model.marginal([0, 7]), [[0.375, 0.125], [0.125, 0.375]], rtol=1e-12)
