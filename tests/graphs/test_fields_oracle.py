"""No mechanism leaks more than the routes of fields say: exact linear programs over all known sets."""

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import MarkovField, exact_leakage
from graphs.errors import RouteUnavailable
from graphs.leakage.network_messages import propagate
from graphs.structure.incidence import Incidence
from tests.sizes import corners

#: The linear programs are solved to about 1e-8.
SOLVED = 1e-7


def worst(model: MarkovField, epsilon: np.ndarray, record: int) -> tuple[float, float]:
    """Return the exact leakage for the worst known set, and for none."""
    joint = model.joint()
    others = [j for j in range(model.n) if j != record]
    exact = [
        exact_leakage(joint, epsilon, record, known)
        for size in range(len(others) + 1)
        for known in combinations(others, size)
    ]
    return max(exact), exact[0]


def random_field(seed: int, most: int = 4) -> tuple[MarkovField, np.ndarray, np.random.Generator]:
    """Return an Ising, Potts or general field with loops, latent nodes, zeros and unequal budgets in turn."""
    rng = np.random.default_rng([11, seed])
    nodes = int(rng.integers(2, most + 1))
    graph: nx.Graph[Any] = nx.gnp_random_graph(nodes, float(rng.uniform(0.4, 1.0)), seed=seed)
    latent = [int(rng.integers(nodes))] if nodes > 2 and seed % 3 == 0 else []
    edges = graph.number_of_edges()
    if seed % 4 == 0:
        coupling, field = rng.normal(0, 1, edges), rng.normal(0, 1, nodes)
        nx.set_edge_attributes(graph, dict(zip(graph.edges, coupling.tolist(), strict=True)), "strength")
        nx.set_node_attributes(graph, dict(zip(graph.nodes, field.tolist(), strict=True)), "bias")
        model = MarkovField.ising(graph, "strength", "bias", latent=latent)
    elif seed % 4 == 1:
        model = MarkovField.potts(graph, rng.normal(0, 1, edges), 3 if nodes < 4 else 2, latent=latent)
    else:
        sizes = rng.integers(2, 4 if nodes < 4 else 3, nodes)
        zeros = 0.2 if seed % 8 == 2 else 0.0
        while True:
            tables = {}
            for i, j in graph.edges:
                table = np.exp(rng.uniform(0.3, 2) * rng.standard_normal((sizes[i], sizes[j])))
                table[rng.random(table.shape) < zeros] = 0
                tables[i, j] = table
            weights = {v: rng.uniform(0.1, 1, sizes[v]) for v in graph}
            try:
                model = MarkovField(graph, tables, weights, latent=latent)
                break
            except ValueError:
                continue
    epsilon = rng.uniform(0.02, 1.0, model.n) if seed % 5 else np.full(model.n, 0.3)
    return model, epsilon, rng


def check(model: MarkovField, epsilon: np.ndarray, records: list[int]) -> None:
    found: dict[tuple[str, str], np.ndarray] = {}
    for method in ("best", "group", "messages", "self-avoiding", "quilt", "quilt-contracted"):
        for adversary in ("informed", "uninformed"):
            try:
                found[method, adversary] = model.leakage(epsilon, method, adversary)
            except RouteUnavailable:
                assert method in ("quilt-contracted", "self-avoiding")
    for record in records:
        most, nothing_known = worst(model, epsilon, record)
        for (method, adversary), leakage in found.items():
            exact = most if adversary == "informed" else nothing_known
            assert exact <= leakage[record] + SOLVED, (method, adversary)


@pytest.mark.parametrize("block", corners(range(44), 0))
def test_no_mechanism_leaks_more(block: int) -> None:
    for seed in range(5 * block, 5 * block + 5):
        model, epsilon, rng = random_field(seed)
        check(model, epsilon, [int(rng.integers(model.n))] if model.n > 3 else list(range(model.n)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(4), 1))
def test_no_mechanism_leaks_more_with_six_binary_records(seed: int) -> None:
    rng = np.random.default_rng([12, seed])
    graph: nx.Graph[Any] = nx.gnm_random_graph(6, 8, seed=seed)
    model = MarkovField.ising(graph, rng.normal(0, 0.8, 8), rng.normal(0, 1, 6))
    check(model, rng.uniform(0.05, 0.5, 6), [int(rng.integers(6))])


def test_a_weakened_bound_is_caught() -> None:
    """Messages with diameters a tenth too small are below what some mechanism leaks."""
    violations = 0
    for seed in range(40):
        model, epsilon, _ = random_field(seed, 3)
        budgets = np.zeros(model._layout.size)
        budgets[model._layout.records] = epsilon
        weak = Incidence.pairwise(model._layout.edges, 0.9 * model.diameters, model._layout.size)
        leakage = propagate(weak, budgets)[model._layout.records]
        violations += any(worst(model, epsilon, record)[0] > leakage[record] + SOLVED for record in range(model.n))
        if violations:
            break
    assert violations


def test_messages_are_attained_by_two_fair_coins() -> None:
    """With weights that make both states equally likely the bound of one edge is the exact answer."""
    model = MarkovField.ising(([[0, 1]], 2), coupling=0.7)
    exact, _ = worst(model, np.array([0.2, 0.3]), 0)
    assert exact == pytest.approx(model.leakage([0.2, 0.3])[0], abs=1e-3)
