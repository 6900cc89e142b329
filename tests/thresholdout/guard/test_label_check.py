"""Training labels beyond the declared dependence: exact signs, dependent records that are seen, and clean ones."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from graphs import DependencyGraph, Groups, MarkovChain, MarkovField
from tests.cases import for_each
from thresholdout import Thresholdout, TimeOrder
from thresholdout.errors import LikelyMistakeWarning
from thresholdout.guard.label_check import Neighbours, neighbours_in_order, neighbours_on_graph, sign_bound

N = 4000


def chain(gap: float) -> MarkovChain:
    return MarkovChain([[1 - gap / 2, gap / 2], [gap / 2, 1 - gap / 2]], n=N)


def made(model: Any, labels: Any, held: Any, **given: Any) -> list[str]:
    """Return what a guard of two parts warns of about labels."""
    rng = np.random.default_rng(3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Thresholdout(
            (rng.normal(size=(N, 1)), held), train=(rng.normal(size=(N, 1)), labels), dependence=model, **given
        )
    return [str(one.message) for one in seen if issubclass(one.category, LikelyMistakeWarning)]


def test_signs_are_exact() -> None:
    """All orders of the labels of two pairs: the bound is at least the share of orders with as large a sum."""
    near = [np.array([4]), np.array([5]), np.array([6]), np.array([7])]
    neighbours = Neighbours(np.arange(4), near)
    values = np.array([0.3, 1.0, 0.1, 0.7, 0.9, 0.2, 0.6, 0.4])
    sums, bounds = [], []
    for first, second in itertools.product((False, True), repeat=2):
        order = values.copy()
        if first:
            order[[0, 2]] = order[[2, 0]]
        if second:
            order[[1, 3]] = order[[3, 1]]
        v, u = order[:4], order[4:]
        products = (v[:2] - v[2:]) * (u[:2] - u[2:])
        sums.append(abs(products.sum()))
        bounds.append(sign_bound(order, neighbours)[0])
        t = products.sum() / math.sqrt((products**2).sum())
        assert bounds[-1] == pytest.approx(min(1.0, 2 * math.exp(-t * t / 2)))
    for total, bound in zip(sums, bounds, strict=True):
        assert bound >= np.mean([other >= total - 1e-12 for other in sums])


def test_neighbours_are_independent_by_the_declaration() -> None:
    rng = np.random.default_rng(0)
    graph = nx.gnm_random_graph(300, 500, seed=1)
    model = DependencyGraph(graph)
    found = neighbours_on_graph(model, np.sort(rng.permutation(300)[:200]))
    used = set(found.moved.tolist()) | {int(one) for near in found.near for one in near}
    assert len(found.moved) > 20
    assert not any(a in used and b in used for a, b in graph.edges)
    moved = set(found.moved.tolist())
    for node, near in zip(found.moved.tolist(), found.near, strict=True):
        assert not moved & set(near.tolist())
        assert all(nx.shortest_path_length(graph, node, other) == 2 for other in near.tolist())
    order = neighbours_in_order(np.arange(0, 30, 3))
    assert all(abs(one - place) == 3 for place, near in zip(order.moved, order.near, strict=True) for one in near)


DEPENDENT: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "path of a chain": (lambda: chain(0.1), lambda: DependencyGraph(nx.path_graph(N)), {}, "MarkovField.ising"),
    "tree": (
        lambda: MarkovField.ising(nx.random_labeled_tree(N, seed=1), 0.8),
        lambda: DependencyGraph(nx.random_labeled_tree(N, seed=1)),
        {},
        "MarkovField.ising",
    ),
    "tree with hubs": (
        lambda: MarkovField.ising(nx.barabasi_albert_graph(N, 1, seed=1), 0.7),
        lambda: DependencyGraph(nx.barabasi_albert_graph(N, 1, seed=1)),
        {},
        "MarkovField.ising",
    ),
    "window of a chain": (lambda: chain(0.1), lambda: TimeOrder(None, window=1), {}, "MarkovChain"),
}


@pytest.mark.slow
@for_each("name", DEPENDENT)
def test_dependence_that_passes_on_is_seen(name: str) -> None:
    law, declared, given, fits = DEPENDENT[name]
    rng = np.random.default_rng(1)
    model = law()
    said = made(declared(), model.sample(rng), model.sample(rng), **given)
    assert len(said) == 1
    assert fits in said[0]
    assert "correlation of about 0." in said[0]
    assert "is at most 1e-09" in said[0]


@pytest.mark.slow
@for_each("name", DEPENDENT)
def test_labels_of_the_holdout_play_no_part(name: str) -> None:
    """The same training labels say the same; a dependent holdout beside clean training labels says nothing."""
    law, declared, given, _ = DEPENDENT[name]
    rng = np.random.default_rng(2)
    model, coins = law(), np.random.default_rng(5).integers(0, 2, N)
    train = model.sample(rng)
    assert made(declared(), train, model.sample(rng), **given) == made(declared(), train, coins, **given)
    assert made(declared(), coins, train, **given) == []


def test_groups_that_follow_each_other() -> None:
    rng = np.random.default_rng(4)
    labels = np.repeat(MarkovChain([[0.95, 0.05], [0.05, 0.95]], n=N // 2).sample(rng), 2)
    groups = np.arange(N) // 2

    def said(labels: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            holdout = rng.normal(size=(N, 1)), rng.integers(0, 2, N), groups + N
            Thresholdout(holdout, train=(rng.normal(size=(N, 1)), labels, groups))
        return [str(one.message) for one in seen if issubclass(one.category, LikelyMistakeWarning)]

    assert "groups that follow each other" in said(labels)[0]
    assert said(np.repeat(rng.integers(0, 2, N // 2), 2)) == []


@pytest.mark.slow
def test_records_that_depend_as_declared_raise_no_alarm() -> None:
    """2,000 draws: the bound is above 1e-9 in each, and at most its level as often as its level says."""
    rng = np.random.default_rng(6)
    neighbours, chances = neighbours_in_order(np.arange(0, 400, 2)), []
    for _ in range(2000):
        coins = rng.integers(0, 2, 401).astype(float)
        window = coins[:-1] + coins[1:]  # depends on the record beside it, and on none further off
        chances.append(sign_bound(window, neighbours)[0])
    assert min(chances) > 1e-9
    assert np.mean(np.array(chances) <= 0.05) <= 0.05 + 6 * math.sqrt(0.05 / 2000)
    broken = [
        sign_bound((c := rng.integers(0, 2, 402).astype(float))[:-2] + c[1:-1] + c[2:], neighbours)[0]
        for _ in range(50)
    ]
    assert np.mean(np.array(broken) <= 0.05) > 0.5  # a window of two records


def test_models_of_a_law_are_not_checked() -> None:
    rng = np.random.default_rng(7)
    model = chain(0.02)
    assert made(model, model.sample(rng), model.sample(rng)) == []
    assert made(Groups(np.arange(N)), rng.integers(0, 2, N), rng.integers(0, 2, N)) == []


def in_time(train: Any, labels: Any, times: Any, window: Any) -> list[str]:
    """Return what a guard of two parts with times warns of about labels."""
    rng = np.random.default_rng(9)

    def part(at: Any) -> pd.DataFrame:
        return pd.DataFrame({"x": rng.normal(size=len(at)), "t": at})

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        held = rng.integers(0, 2, len(times))
        Thresholdout((part(times), held), train=(part(train), labels), dependence=TimeOrder("t", window=window))
    return [str(one.message) for one in seen if issubclass(one.category, LikelyMistakeWarning)]


def test_a_window_of_time_is_that_of_the_training_times() -> None:
    """Hourly training records and a daily holdout; then bursts, of which half of the widest window is no window."""
    rng = np.random.default_rng(1)
    days = np.repeat(np.arange(400.0), 24) + np.tile(np.arange(24) / 24, 400)
    coins = rng.integers(0, 2, 400)
    assert in_time(days, np.repeat(coins, 24), np.arange(3000.0) + 410, 7.0) == []
    bursts = np.repeat(np.arange(400) * 30.0, 10) + np.tile(np.arange(10) / 24, 400)
    assert in_time(bursts, np.repeat(coins, 10), bursts + 20_000, 7.0) == []
    pairs = np.repeat(np.arange(2000) * 30.0, 2) + np.tile([0.0, 0.1], 2000)
    passed = np.repeat(MarkovChain([[0.95, 0.05], [0.05, 0.95]], n=2000).sample(rng), 2)
    assert "further apart than the window" in in_time(pairs, passed, pairs + 100_000, 7.0)[0]


def test_a_window_may_be_longer_than_half_of_the_holdout() -> None:
    """Labels that are equal on 90 rows depend within a window of 90, also where the holdout has 100 records."""
    rng = np.random.default_rng(2)
    train = rng.normal(size=(18_000, 1)), np.repeat(rng.integers(0, 2, 200), 90)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Thresholdout((rng.normal(size=(100, 1)), np.arange(100) % 2), train=train, dependence=TimeOrder(window=90))
    assert not [one for one in seen if "correlation" in str(one.message)]


@pytest.mark.slow
def test_squares_that_vanish_raise_no_alarm() -> None:
    neighbours = neighbours_in_order(np.arange(2001))
    for seed in range(40):
        coins = np.random.default_rng(seed).normal(size=2001)
        assert sign_bound(coins * 5e-82, neighbours)[0] == pytest.approx(sign_bound(coins, neighbours)[0], rel=1e-6)
    assert sign_bound(coins * 1e300, neighbours) == (1.0, 0.0)
