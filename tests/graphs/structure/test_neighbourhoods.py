"""Nodes that are alike: quilts of classes are the quilts of every node by itself, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from graphs import FactorGraph, MarkovField
from graphs.leakage.network_quilts import NetworkQuilts
from graphs.numerics.arguments import FloatArray
from graphs.structure.neighbourhoods import Neighbourhoods
from graphs.structure.separators import Effort
from tests.cases import for_each

LEAST = Effort.of_size(100_000)


def grid(rows: int, columns: int) -> nx.Graph[int]:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))


def shuffled() -> MarkovField:
    order = np.random.default_rng(3).permutation(64)
    return MarkovField.ising((order[np.array(grid(8, 8).edges)], 64), 0.3)


def two_kinds() -> MarkovField:
    graph = grid(9, 10)
    return MarkovField.ising((list(graph.edges), 90), np.where(np.arange(graph.size()) % 3, 0.2, 0.7))


def hidden() -> MarkovField:
    return MarkovField.ising(grid(8, 9), 0.3, field=0.1, latent=range(0, 72, 5))


def some_fields() -> MarkovField:
    return MarkovField.ising(nx.cycle_graph(60), 0.4, field=np.where(np.arange(60) % 7, 0.0, 0.5))


def hubs() -> MarkovField:
    graph = nx.disjoint_union_all([nx.star_graph(12), grid(6, 6), *[nx.path_graph(4)] * 5, *[nx.path_graph(7)] * 6])
    return MarkovField.potts(graph, 0.5, 3)


def random() -> MarkovField:
    return MarkovField.ising(nx.gnp_random_graph(120, 0.02, seed=4), 0.2)


def sizes() -> FactorGraph:
    rng = np.random.default_rng(2)
    three, two = rng.uniform(0.5, 1, (2, 3)), rng.uniform(0.5, 1, (3, 2))
    pairs = [((k, (k + 1) % 60), three if k % 2 == 0 else two) for k in range(60)]
    return FactorGraph([2, 3] * 30, pairs)


NETWORKS: list[Callable[[], FactorGraph | MarkovField]] = [
    shuffled,
    two_kinds,
    hidden,
    some_fields,
    hubs,
    random,
    sizes,
]


def found(model: FactorGraph | MarkovField) -> list[FloatArray]:
    """Return leakages by the quilts of the least effort."""
    network = model if isinstance(model, FactorGraph) else model.as_factor_graph()
    p = network._potentials
    quilts = NetworkQuilts(p, LEAST)
    budgets = p.spread(np.random.default_rng(0).uniform(0.01, 0.02, model.n))
    ends = np.random.default_rng(1).uniform(0.1, 0.2, p.n_nodes)
    ways = [quilts.ranges("any"), quilts.ranges("none"), quilts.contracted("any", ends)]
    return [np.array([len(quilts)]), *(quilts.leakages(budgets, way) for way in ways)]


def differs(model: FactorGraph | MarkovField, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether quilts of classes are other ones than those of the nodes one by one."""
    together = found(model)
    with monkeypatch.context() as patch:
        patch.setattr(NetworkQuilts, "_alike", lambda self, rows: ())
        patch.setattr(NetworkQuilts, "_kinds", np.arange(100_000))
        alone = found(model)
    return any(not np.array_equal(a, b) for a, b in zip(together, alone, strict=True))


@for_each("network", NETWORKS)
def test_quilts_of_classes_are_those_of_every_node(
    monkeypatch: pytest.MonkeyPatch, network: Callable[[], FactorGraph | MarkovField]
) -> None:
    assert not differs(network(), monkeypatch)


def test_most_nodes_of_a_grid_are_alike() -> None:
    potentials = MarkovField.ising(grid(30, 30), 0.2).as_factor_graph()._potentials
    classes = list(Neighbourhoods(potentials).classes(potentials.records, LEAST.exact))
    inner = [k for k in range(900) if 2 <= k % 30 < 28 and 2 <= k // 30 < 28]
    assert max((sorted(each.rows.tolist()) for each in classes), key=len) == inner
    rows = np.concatenate([each.rows for each in classes])
    assert len(rows) == len(set(rows.tolist())) > 880


def test_tables_that_are_taken_for_equal_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkQuilts, "_kinds", np.zeros(100_000, dtype=np.int64))
    model = two_kinds()
    together = found(model)
    monkeypatch.setattr(NetworkQuilts, "_kinds", np.arange(100_000))
    assert not np.array_equal(found(model)[1], together[1])


@pytest.mark.parametrize("columns", ["ranks", "tables"])
def test_structures_that_are_taken_for_equal_are_noticed(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    whole = Neighbourhoods._codes
    cut = {"ranks": slice(4 * 4 + 4 + 1, None), "tables": slice(0, -3)}[columns]
    monkeypatch.setattr(Neighbourhoods, "_codes", lambda *given: np.ascontiguousarray(whole(*given)[:, cut]))
    model = shuffled() if columns == "ranks" else some_fields()
    try:
        noticed = differs(model, monkeypatch)
    except (ValueError, IndexError):  # a node of one class has no such neighbour
        noticed = True
    assert noticed
