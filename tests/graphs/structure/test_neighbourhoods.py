"""Quilts on arrays: they are those of every node by itself, and their ranges are those of the whole law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from graphs import FactorGraph, MarkovField
from graphs.errors import ArgumentError
from graphs.leakage.network_quilts import NetworkQuilts
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.structure.neighbourhoods import Alike, Neighbourhoods
from graphs.structure.separators import Effort
from tests.cases import for_each
from tests.graphs.random_networks import joint_by_brute_force, random_table

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


#: Nodes of a quilt come in another order on arrays, so products and sums round differently.
ROUNDING = 1e-13


def differs(model: FactorGraph | MarkovField, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether quilts on arrays are other ones than those of the nodes one by one."""
    together = found(model)
    with monkeypatch.context() as patch:
        patch.setattr(NetworkQuilts, "_is_simple", False)
        patch.setattr(NetworkQuilts, "_kinds", np.arange(100_000))
        alone = found(model)
    return any(not np.allclose(a, b, rtol=ROUNDING, atol=0) for a, b in zip(together, alone, strict=True))


@for_each("network", NETWORKS)
def test_quilts_on_arrays_are_those_of_every_node(
    monkeypatch: pytest.MonkeyPatch, network: Callable[[], FactorGraph | MarkovField]
) -> None:
    assert not differs(network(), monkeypatch)


def any_pairwise(seed: int, nodes: int = 24, most: int = 3) -> FactorGraph:
    """Return a sparse network of pairs with tables that are not symmetric, single tables, and a few zeros."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, most + 1, nodes)
    graph = nx.gnp_random_graph(nodes, rng.uniform(2, 6) / nodes, seed=seed)
    shapes = product(range(2, most + 1), repeat=2)
    shared = {shape: [random_table(rng, shape, 0.0) for _ in range(2)] for shape in shapes}
    factors = []
    for edge in graph.edges:
        ends = rng.permutation(edge)
        shape = tuple(sizes[ends].tolist())
        own = rng.random() < 0.5
        factors.append((ends.tolist(), random_table(rng, shape, 0.01) if own else shared[shape][rng.integers(2)]))
    factors += [([v], random_table(rng, (sizes[v],), 0.0)) for v in range(nodes) if rng.random() < 0.3]
    latent = np.flatnonzero(rng.random(nodes) < rng.choice([0.0, 0.1])).tolist()
    return FactorGraph(sizes.tolist(), factors, latent=latent)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1))
def test_quilts_of_random_networks_are_those_of_every_node(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    try:
        model = any_pairwise(seed)
    except ArgumentError:  # zeros that rule out every state
        reject()
    assert not differs(model, monkeypatch)


def exact_range(law: FloatArray, node: int, near: list[int], edge: list[int]) -> float:
    """Return the range of ln P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L), the largest over L, x_L, x_i and x_i'."""
    largest = 0.0
    for known in chain.from_iterable(combinations(near, count) for count in range(len(near) + 1)):
        kept = [node, *known, *edge]
        table = np.transpose(
            law.sum(axis=tuple(v for v in range(law.ndim) if v not in kept)), np.argsort(np.argsort(kept))
        )
        logs = np.log(table.reshape(table.shape[0], -1, int(np.prod([law.shape[v] for v in edge]))))
        for a, b in combinations(range(len(logs)), 2):
            largest = max(largest, float(np.ptp(logs[a] - logs[b], axis=1).max()))
    return largest


@for_each("seed", range(12))
def test_ranges_are_those_of_the_whole_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(8, 9, seed=seed)
    sizes = rng.integers(2, 4 if seed % 3 == 0 else 3, 8)
    factors = [(list(edge), random_table(rng, tuple(sizes[list(edge)].tolist()), 0.0)) for edge in graph.edges]
    model = FactorGraph(sizes.tolist(), [*factors, ([0], random_table(rng, (sizes[0],), 0.0))])
    quilts, law = NetworkQuilts(model._potentials, LEAST), joint_by_brute_force(model)
    assert quilts._is_simple
    ranges, start = quilts.ranges("any"), 0
    for group in quilts._groups:
        for nodes in group.nodes.tolist():
            exact = exact_range(law, nodes[0], nodes[1 : group.inside], nodes[group.inside :])
            assert exact * (1 - 1e-12) <= ranges[start] <= exact * (1 + 1e-9) + 1e-12
            start += 1
    assert start == len(quilts) > 0


def test_most_quilts_of_a_grid_have_few_structures() -> None:
    order = np.random.default_rng(0).permutation(900)
    potentials = MarkovField.ising((order[np.array(grid(30, 30).edges)], 900), 0.2).as_factor_graph()._potentials
    around = Neighbourhoods(potentials)
    assert len(around.fit(potentials.records, LEAST)) == 900
    classes = list(around.classes(potentials.records, LEAST))
    inner = sorted(order[k] for k in range(900) if 0 < k % 30 < 29 and 0 < k // 30 < 29)
    assert inner in [np.sort(each.rows).tolist() for each in classes if each.nodes.shape[1] == 5]
    assert len(classes) < 20


def test_tables_that_are_taken_for_equal_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkQuilts, "_kinds", np.zeros(100_000, dtype=np.int64))
    model = two_kinds()
    together = found(model)
    monkeypatch.setattr(NetworkQuilts, "_kinds", np.arange(100_000))
    assert not np.allclose(found(model)[1], together[1])


def uneven() -> FactorGraph:
    """Return a cycle whose tables are not symmetric, half of them the other way round."""
    step = np.array([[3.0, 1.0], [0.5, 2.0]])
    place = np.random.default_rng(5).permutation(60).tolist()
    return FactorGraph([2] * 60, [((place[k], place[(k + 1) % 60]), step) for k in range(60)])


@pytest.mark.parametrize("broken", ["turned", "own", "adjacency"])
def test_structures_that_are_taken_for_equal_are_noticed(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    whole = Neighbourhoods._alike

    def alike(self: Neighbourhoods, rows: IntArray, inside: IntArray, effort: Effort) -> Iterator[Alike]:
        if broken == "turned":
            self._symmetric[:] = True
        elif broken == "own":
            self._own[:] = -1
        else:
            self._edges[:, 0] = -1
        return whole(self, rows, inside, effort)

    monkeypatch.setattr(Neighbourhoods, "_alike", alike)
    assert differs(some_fields() if broken == "own" else uneven(), monkeypatch)
