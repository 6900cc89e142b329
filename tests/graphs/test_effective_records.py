"""Effective records: the moments of a mean are at most those of so many coins, by enumeration of small laws."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import DependencyGraph, Groups, Independent, MarkovChain, MovingWindow
from tests.cases import for_each

LEVERS = (-30.0, -6.0, -1.5, -0.2, 0.2, 1.5, 6.0, 30.0)


def excess(values: NDArray[np.float64], effective: float) -> float:
    """Return the largest ln E exp(u q) less the claimed bound, for equally likely rows of per-record values."""
    means = values.mean(axis=1)
    p = means.mean()
    found = [np.log(np.mean(np.exp(u * means))) - effective * np.log1p(p * np.expm1(u / effective)) for u in LEVERS]
    return float(max(found))


def coins(k: int) -> NDArray[np.int64]:
    return np.array(list(itertools.product((0, 1), repeat=k)))


@for_each("seed", range(40))
def test_no_law_of_groups_is_beyond_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=5)
    hidden = coins(6)  # two coins for each group: any function of them is a value of one of its records
    tables = rng.choice([0.0, 1.0, 0.5], size=(5, 4), p=[0.45, 0.45, 0.1])
    state = hidden[:, 0::2] + 2 * hidden[:, 1::2]
    values = np.stack([tables[i][state[:, label]] for i, label in enumerate(labels)], axis=1)
    model = Groups(labels.tolist())
    assert model.effective_records() == 5 / np.bincount(labels).max()
    assert excess(values, model.effective_records() or 0.0) <= 1e-12


def test_groups_of_copies_attain_it() -> None:
    hidden = coins(2)
    values = hidden[:, [0, 0, 1, 1]].astype(float)
    assert abs(excess(values, Groups([0, 0, 1, 1]).effective_records() or 0.0)) <= 1e-12
    assert excess(values, 1.05 * 2.0) > 1e-3  # five per cent more is refuted


@for_each("seed", range(40))
@for_each("reach", [1, 2])
def test_no_moving_average_is_beyond_the_bound(seed: int, reach: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    hidden = coins(n + reach)
    tables = rng.integers(0, 2, size=(n, 2 ** (reach + 1))).astype(float)
    code = np.sum([hidden[:, k : k + n] << k for k in range(reach + 1)], axis=0)
    values = np.stack([tables[i][code[:, i]] for i in range(n)], axis=1)
    model = MovingWindow(n, reach)
    assert model.effective_records() == n / (reach + 1)
    assert excess(values, model.effective_records()) <= 1e-12


@for_each("seed", range(40))
def test_no_law_on_a_dependency_graph_is_beyond_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(5, 5, seed=seed)
    edges = list(graph.edges)
    hidden = coins(len(edges) + 5)
    columns = []
    for record in range(5):
        seen = [k for k, edge in enumerate(edges) if record in edge] + [len(edges) + record]
        table = rng.integers(0, 2, size=2 ** len(seen)).astype(float)
        columns.append(table[hidden[:, seen] @ (1 << np.arange(len(seen)))])
    model = DependencyGraph(graph)
    assert excess(np.stack(columns, axis=1), model.effective_records()) <= 1e-12


def test_rings_of_five_beside_pairs_need_two_colours_and_a_half() -> None:
    """Disjoint unions: the largest fractional chromatic number of a component, not of a colouring of all."""
    graph = nx.disjoint_union_all([nx.cycle_graph(5), nx.cycle_graph(5), nx.path_graph(4), nx.cycle_graph(7)])
    model = DependencyGraph(graph)
    assert model.effective_records() == pytest.approx(21 / 2.5, rel=1e-9)
    assert DependencyGraph(nx.complete_graph(4)).effective_records() == pytest.approx(1)
    # a ring of five pairs of coins, each record the majority of its two and a tie broken by a third, against 3 colours
    hidden = coins(10)
    shared, own = hidden[:, :5], hidden[:, 5:]
    values = ((shared + np.roll(shared, -1, axis=1) + own) >= 2).astype(float)
    ring = DependencyGraph(nx.cycle_graph(5))
    assert ring.effective_records() == pytest.approx(2, rel=1e-9)
    assert excess(values, ring.effective_records()) <= 1e-12


def test_models_without_such_a_number_say_so() -> None:
    assert Independent(7).effective_records() == 7.0
    assert MarkovChain([[0.5, 0.5], [0.0, 1.0]], n=500, initial=[1, 0]).effective_records() is None
