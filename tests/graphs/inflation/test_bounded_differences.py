"""Statistics with bounded differences over dependency graphs and Gaussian fields: exact worst cases, closed forms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from graphs import DependencyGraph, GaussianField
from graphs.errors import RouteUnavailable
from graphs.fitted_limits import FittedLimits
from graphs.models import dependency_graph
from graphs.models.dependency_graph import eliminated, joined_blocks
from graphs.numerics.definite import smallest_eigenvalue
from tests.cases import for_each
from tests.oracles.moments import worst_of_bounded_differences
from tests.sizes import sizes


def law_of_edges(graph: nx.Graph[int], rng: np.random.Generator) -> np.ndarray:
    """Return the law of binary records, each a random function of fair coins on its edges and of one of its own."""
    edges = [frozenset(edge) for edge in graph.edges]
    coins = list(itertools.product((0, 1), repeat=len(edges) + len(graph)))
    law = np.zeros((2,) * len(graph))
    tables = [rng.integers(0, 2, (2,) * (graph.degree[v] + 1)) for v in range(len(graph))]
    for values in coins:
        state = tuple(
            int(tables[v][(*(values[k] for k, edge in enumerate(edges) if v in edge), values[len(edges) + v])])
            for v in range(len(graph))
        )
        law[state] += 1 / len(coins)
    return law


@sizes("seeds", 2, 80)
def test_no_statistic_of_a_dependency_graph_has_larger_moments(seeds: int) -> None:
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        graph = nx.gnm_random_graph(5, int(rng.integers(2, 7)), seed=seed)
        bound = DependencyGraph(graph).variance_inflation("elimination", bounded_differences=True)
        found = worst_of_bounded_differences(law_of_edges(graph, rng), rng, starts=1)
        assert found <= bound * (1 + 1e-9)


def by_definition(graph: nx.Graph[int], blocks: list[list[int]]) -> int:
    """Return the sum of squared widths: a block, and later neighbours of all earlier records that are connected."""
    total, revealed = 0, set[int]()
    for block in blocks:
        revealed |= set(block)
        inside = graph.subgraph(revealed)
        together = set().union(*(nx.node_connected_component(inside, v) for v in block))
        total += (len(block) + len({u for v in together for u in graph[v]} - revealed)) ** 2
    return total


@for_each("most", [3_000_000, 25])
def test_widths_are_those_of_the_definition(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependency_graph, "MOST_JOINED", most)
    for seed in range(60):
        graph = nx.gnp_random_graph(int(np.random.default_rng(seed).integers(1, 16)), 0.25, seed=seed)
        model = DependencyGraph(graph)
        order, parents, fronts, homes = eliminated(model._edges, model._component)
        widths, homes = joined_blocks(order, parents, fronts, homes)
        blocks: dict[int, list[int]] = {}
        for node in range(len(graph)):
            blocks.setdefault(int(homes[node]), []).append(node)
        listed = [blocks[node] for node in order if node in blocks]
        assert sum(len(block) for block in listed) == len(graph)
        assert by_definition(graph, listed) == int((widths**2).sum())


def test_trees_count_every_edge_once() -> None:
    """Each record with the one above it [Zhang, Liu, Wang, Wang 2019], and one by itself."""
    for seed in range(5):
        tree = nx.random_labeled_tree(40, seed=seed)
        bound = DependencyGraph(tree).variance_inflation("elimination")
        assert bound <= (39 * 4 + 1) / 40 + 1e-9
    complete = DependencyGraph(nx.complete_graph(7))
    assert complete.variance_inflation("elimination") == pytest.approx(7, rel=1e-9)
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    assert DependencyGraph(grid).variance_inflation(bounded_differences=True) < 50 < 4 * 20  # rows: 4 * 20


def test_copies_along_an_edge_attain_it() -> None:
    model = DependencyGraph(nx.path_graph(2))
    law = np.diag([0.5, 0.5])
    bound = model.variance_inflation(bounded_differences=True)
    found = worst_of_bounded_differences(law, np.random.default_rng(0), starts=1)
    assert 0.95 * bound < found <= bound * (1 + 1e-9)


def orthant_law(correlation: np.ndarray, cuts: list[np.ndarray]) -> np.ndarray:
    """Return the law of three Gaussian values that are cut into bins, from their distribution function."""
    ends = [np.r_[-np.inf, cut, np.inf] for cut in cuts]
    normal: Any = stats.multivariate_normal(np.zeros(3), correlation, allow_singular=True)

    def below(point: tuple[float, ...]) -> float:
        clipped = np.clip(point, -9, 9)
        return 0.0 if min(point) == -np.inf else float(normal.cdf(clipped))

    table = np.array([[[below((a, b, c)) for c in ends[2]] for b in ends[1]] for a in ends[0]])
    return np.maximum(np.diff(np.diff(np.diff(table, axis=0), axis=1), axis=2), 0.0)


@for_each("seed", range(4))
def test_no_statistic_of_a_gaussian_field_has_larger_moments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi = rng.uniform(-0.7, 0.7)
    model = GaussianField.ar(phi, 3)
    law = orthant_law(model._correlation.dense(), [rng.normal(0, 0.7, int(rng.integers(1, 3))) for _ in range(3)])
    found = worst_of_bounded_differences(law / law.sum(), rng, starts=1)
    assert found <= model.variance_inflation(bounded_differences=True) * (1 + 1e-6)


def test_smoothing_is_one_for_independent_values_and_follows_the_spectrum() -> None:
    assert GaussianField(np.eye(4)).variance_inflation("smoothing") == pytest.approx(1.0, rel=1e-7)
    series = GaussianField.ar(0.5, 1000)
    expected = 1 + 2 / math.pi * (series.variance_inflation("copula") - 1 / 3) * 3
    assert series.variance_inflation("smoothing") == pytest.approx(expected, rel=1e-6)
    assert expected < 6.1 < series.variance_inflation("components")


@for_each(
    "model",
    [
        GaussianField.ar([0.5, -0.3], 60),
        GaussianField.car(nx.grid_2d_graph(6, 6), 0.6),
        GaussianField.car(nx.cycle_graph(9), -0.4),
        GaussianField.components({"u": np.arange(40) // 8}, {"u": 0.3}, series="u", coefficients=0.4, noise=0.2),
        GaussianField.components({"u": np.arange(40) // 8, "v": np.arange(40) % 8}, {"u": 0.3, "v": 0.2}),
        GaussianField.kernel(np.arange(20.0), lambda d: np.exp(-d)),
        GaussianField.kernel(np.arange(20.0), lambda d: np.maximum(1 - d / 1.3, 0), support=1.3),
    ],
)
def test_least_eigenvalues_are_bounds(model: GaussianField) -> None:
    exact = float(np.linalg.eigvalsh(model._correlation.dense())[0])
    assert 0 < model._correlation.least() <= exact * (1 + 1e-9)


def test_smallest_eigenvalues_of_arrays_are_sharp() -> None:
    matrix = np.array([[1.0, 0.6, 0.2], [0.6, 1.0, 0.3], [0.2, 0.3, 1.0]])
    exact = float(np.linalg.eigvalsh(matrix)[0])
    assert exact * (1 - 1e-6) < smallest_eigenvalue(matrix) <= exact
    assert smallest_eigenvalue(np.ones((3, 3))) == 0.0


def test_singular_and_fitted_fields_refuse_it() -> None:
    for model in (
        GaussianField(np.ones((3, 3))),
        GaussianField.ar(0.5, 9).fitted(FittedLimits("series", 50, 0.01)),
        GaussianField.ar(0.5, 9).fitted(FittedLimits("series", 50, 0.01)).within_limits(),
    ):
        with pytest.raises(RouteUnavailable):
            model.variance_inflation("smoothing")


def test_gaussian_neighbours_leak_the_whole_group_budget() -> None:
    """A mechanism that answers by signs: two far values of one record decide all the others."""
    phi, n, epsilon = 0.5, 6, 0.1
    model = GaussianField.ar(phi, n)
    for value, least in ((2.0**6, 0.1 * 0.55), (2.0**9, 0.1 * 5.9)):
        means, deviations = value * phi ** np.arange(1, n), np.sqrt(1 - phi ** (2 * np.arange(1, n)))
        # log-likelihood ratio of product of coins: signs of all records, each epsilon-DP; lower bound by union
        missed = stats.norm.cdf(-means / deviations).sum()
        ratio = ((1 - missed) * math.exp(n * epsilon / 2) + missed * math.exp(-n * epsilon / 2)) / (
            (1 - missed) * math.exp(-n * epsilon / 2) + missed * math.exp(n * epsilon / 2)
        )
        assert least < math.log(ratio) <= float(model.leakage(epsilon).max()) * (1 + 1e-12)
