"""Blankets, influences and quilts of every model against their definitions, by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import (
    ArgumentError,
    BayesianNetwork,
    DependenceModel,
    FactorGraph,
    Groups,
    HiddenMarkov,
    Independent,
    MarkovChain,
    MarkovField,
    MovingWindow,
    Panel,
)
from graphs.leakage import network_quilts
from graphs.leakage.network_quilts import BallQuilts, NetworkQuilts
from graphs.models.bayesian_network import moralise
from graphs.structure.separators import Effort
from tests.cases import for_each
from tests.graphs.random_networks import random_bayesian_network, random_factor_graph
from tests.sizes import sizes


def log_ratios(law: np.ndarray, quilt: tuple[int, ...], record: int, given: tuple[int, ...]) -> tuple[float, float]:
    """Return the largest ln P(x_Q | x_i, x_L) / P(x_Q | x_i', x_L), and the largest range of it over x_Q."""
    kept = (*given, record, *quilt)
    table = law.sum(axis=tuple(k for k in range(law.ndim) if k not in kept))
    order = sorted(kept)
    table = table.transpose([order.index(k) for k in kept])
    rows = table.reshape(-1, law.shape[record], int(np.prod([law.shape[k] for k in quilt], dtype=int)))
    influence, spread = 0.0, 0.0
    for part in rows:
        for a, b in itertools.permutations(np.flatnonzero(part.sum(axis=1) > 0), 2):
            first, second = part[a] / part[a].sum(), part[b] / part[b].sum()
            if ((first > 0) != (second > 0)).any():
                return np.inf, np.inf
            logs = np.log(first[first > 0] / second[first > 0])
            influence, spread = max(influence, float(logs.max())), max(spread, float(np.ptp(logs)))
    return influence, spread


def worst_ratios(law: np.ndarray, quilt: tuple[int, ...], record: int, near: tuple[int, ...]) -> tuple[float, float]:
    """Return the same for the worst known part of the near records."""
    subsets = [part for size in range(len(near) + 1) for part in itertools.combinations(near, size)]
    found = [log_ratios(law, quilt, record, part) for part in subsets]
    return max(influence for influence, _ in found), max(spread for _, spread in found)


def models() -> list[DependenceModel]:
    rng = np.random.default_rng(0)
    return [
        MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=6),
        MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=6, initial=[0.3, 0.7]),
        MarkovChain([[0.5, 0.4, 0.1], [0.2, 0.2, 0.6], [0.3, 0.3, 0.4]], n=5),
        HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5, emission=[[0.8, 0.2], [0.3, 0.7]]),
        MarkovField.ising(nx.cycle_graph(5), 0.4, field=rng.normal(0, 0.5, 5)),
        random_factor_graph(rng, 5, 2),
        random_bayesian_network(rng, 6, 2),
        Independent(4),
    ]


@for_each("model", models(), ids=lambda model: type(model).__name__)
def test_influences_are_those_of_the_definition(model: DependenceModel) -> None:
    if isinstance(model, Independent):
        assert model.max_influence([1, 2], 0) == 0.0
        return
    law, rng = model.joint(), np.random.default_rng(1)
    for _ in range(12):
        order = rng.permutation(model.n).tolist()
        record, quilt, given = (
            order[0],
            tuple(order[1 : int(rng.integers(2, 4))]),
            tuple(order[3 : int(rng.integers(3, 5))]),
        )
        expected = log_ratios(law, quilt, record, given)[0]
        assert model.max_influence(quilt, record, given=given) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@for_each("model", models()[:3], ids=["stationary", "started", "three states"])
def test_quilts_of_chains(model: MarkovChain) -> None:
    law = model.joint()
    for record in range(model.n):
        table = model.quilts(record)
        assert table["quilt"].is_unique
        assert table["nearby"][0] == ()
        assert set(table["quilt"][0]) == set(model.markov_blanket(record))
        rows: list[Any] = list(table.itertuples())
        for row in rows:
            influence, spread = worst_ratios(law, row.quilt, record, row.nearby)
            assert influence <= row.influence + 1e-9
            assert spread <= row.spread + 1e-9
            if model.is_stationary:
                assert row.influence == pytest.approx(log_ratios(law, row.quilt, record, ())[0], abs=1e-9)


@pytest.mark.slow
@for_each("small", [200, 0])
def test_quilts_of_networks(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With influences computed, and bounded by messages from the quilt."""
    monkeypatch.setattr(network_quilts, "MOST_NODES", small)
    for seed in range(10):
        rng = np.random.default_rng([2, seed])
        model = random_factor_graph(rng, 5, 2) if seed % 2 else random_bayesian_network(rng, 5, 2)
        law, record = model.joint(), int(rng.integers(5))
        if model._potentials.sizes[record] == 1:
            continue
        rows: list[Any] = list(model.quilts(record).itertuples())
        for row in rows:
            influence, spread = worst_ratios(law, row.quilt, record, row.nearby)
            assert influence <= row.influence + 1e-9
            assert spread <= row.spread + 1e-9


def spheres(graph: nx.Graph[int], node: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the nodes near a node and the sphere behind them, for each radius."""
    distances = nx.single_source_shortest_path_length(graph, node)
    return [
        (
            tuple(v for v, d in distances.items() if 0 < d <= radius),
            tuple(v for v, d in distances.items() if d == radius + 1),
        )
        for radius in range(max(distances.values()))
    ]


@sizes("seeds", 5, 12)
def test_spheres_bound_influences_and_half_of_them_do_not(seeds: int) -> None:
    refuted = 0
    for seed in range(seeds):
        rng = np.random.default_rng([3, seed])
        graph = nx.connected_watts_strogatz_graph(6, 2 + 2 * (seed % 2), 0.4, seed=seed)
        strength = rng.normal(0, 0.5, graph.number_of_edges())
        model = MarkovField.ising(graph, strength, rng.normal(0, 2.0, 6))
        law, balls = model.joint(), BallQuilts(model._incidence)
        for node in range(6):
            for radius, (near, sphere) in enumerate(spheres(graph, node)):
                influence = worst_ratios(law, sphere, node, near)[0]
                assert influence <= balls.influences[radius][node] + 1e-9
                refuted += influence > 0.5 * balls.influences[radius][node] + 1e-9
    assert refuted > 5


def test_spheres_of_factor_graphs_bound_leakages_of_quilts() -> None:
    """A factor of three is a step of its own: behind it are its other members."""
    for seed in range(8):
        rng = np.random.default_rng([4, seed])
        model = random_factor_graph(rng, 5, 2)
        p, law = model._potentials, model.joint()
        balls = BallQuilts(p.incidence)
        shells = [shell.toarray() for shell in balls._shells]
        for node in range(5):
            near = np.zeros(5, dtype=bool)
            for shell, influence in zip(shells, balls.influences, strict=True):
                near |= shell[node] > 0
                inside = tuple(v for v in np.flatnonzero(near).tolist() if v != node)
                beyond = tuple(np.flatnonzero(~near).tolist())
                if beyond:
                    assert worst_ratios(law, beyond, node, inside)[0] <= influence[node] + 1e-9


@pytest.mark.slow
def test_long_paths_have_the_budgets_of_chains() -> None:
    transition = np.array([[0.9, 0.1], [0.1, 0.9]])
    chain, path = MarkovChain(transition, n=700), MarkovField(nx.path_graph(700), transition)
    assert path.budget(0.5, "quilt") == pytest.approx(chain.budget(0.5, "quilt"), rel=1e-6)
    assert path.budget(0.5, "quilt") > 10 * path.budget(0.5, "group")
    cycle = MarkovField(nx.cycle_graph(700), transition)
    assert cycle.budget(0.5, "quilt") == pytest.approx(chain.budget(0.5, "quilt"), rel=1e-6)


@pytest.mark.slow
def test_quilts_of_one_record_of_a_large_network_are_found_around_it() -> None:
    tree = nx.balanced_tree(2, 10)
    model = MarkovField(tree, [[1.5, 1.0], [1.0, 1.5]])
    table = model.quilts(50)
    assert set(table["quilt"][0]) == set(tree[50])
    assert np.isfinite(table["influence"]).all()
    assert table["influence"].min() < 0.1 < table["influence"][0]
    assert max(map(len, table["nearby"])) > 30
    found = NetworkQuilts(model.as_factor_graph()._potentials, Effort.of_size(60), [50])
    assert len(found) < 60


def test_blankets_and_moral_graphs() -> None:
    graph = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d")])
    rng = np.random.default_rng(5)
    laws = {"a": [0.4, 0.6], "b": [0.3, 0.7], "c": rng.dirichlet([1, 1], (2, 2)), "d": rng.dirichlet([1, 1], 2)}
    network = BayesianNetwork(graph, laws)
    assert set(network.markov_blanket("a")) == {"b", "c"}
    assert nx.utils.graphs_equal(nx.Graph(network.moralise()), nx.Graph(moralise(graph)))
    field = MarkovField.ising(nx.path_graph(["x", "y", "z"]), 0.3, latent=["y"])
    assert field.markov_blanket("x") == ("y",)
    assert set(field.moralise().edges) == {("x", "y"), ("y", "z")}
    assert FactorGraph([2, 2, 2], [((0, 1), [[1, 2], [2, 1]])]).markov_blanket(2) == ()
    assert Groups(["a", "b", "a"]).markov_blanket(0) == (2,)
    assert list(Groups(["a", "b", "a"]).moralise().edges) == [(0, 2)]
    assert MovingWindow(4, 1).quilts(1)["nearby"][0] == (0, 2, 3)
    assert list(MarkovChain([[0.5, 0.5], [0.1, 0.9]], n=3).moralise().edges) == [(0, 1), (1, 2)]


@for_each(("others", "record", "given"), [([0], 0, []), ([1], 0, [1]), ([9], 0, []), ([1, 1], 0, [])])
def test_records_that_do_not_exist_or_repeat(others: Any, record: Any, given: Any) -> None:
    with pytest.raises(ArgumentError):
        MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5).max_influence(others, record, given=given)


def test_models_without_a_law_say_so() -> None:
    with pytest.raises(ArgumentError, match="whose law is not stated"):
        Groups([0, 0, 1]).max_influence([1], 0)
    assert Groups([0, 0, 1]).max_influence([2], 0) == 0.0
    with pytest.raises(ArgumentError, match="a table of 2"):
        MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=50).max_influence(range(1, 40), 0)


def test_chains_of_graphs() -> None:
    walk: nx.Graph[str] = nx.Graph()
    walk.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", 1.0), ("c", "a", 1.0)])
    chain = MarkovChain.from_graph(walk, n=10)
    expected = np.array([[0, 2 / 3, 1 / 3], [2 / 3, 0, 1 / 3], [0.5, 0.5, 0]])
    np.testing.assert_allclose(chain.transition, expected, rtol=1e-12)
    np.testing.assert_allclose(chain.stationary, [3 / 8, 3 / 8, 2 / 8], rtol=1e-12)  # in proportion to weights
    assert chain.states == ("a", "b", "c")
    assert chain.is_reversible
    assert HiddenMarkov([[0.9, 0.1], [0.2, 0.8]], 5, emission=np.eye(2)).spectral_gap == pytest.approx(0.3)
    path = MarkovChain.from_graph(nx.path_graph(12), transition=[[0.9, 0.1], [0.2, 0.8]])
    assert path.fingerprint() == MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=12).fingerprint()


@for_each(
    ("graph", "options", "words"),
    [
        (nx.cycle_graph(4), {"transition": [[0.9, 0.1], [0.2, 0.8]]}, "that is no path"),
        (nx.star_graph(3), {"transition": [[0.9, 0.1], [0.2, 0.8]]}, "that is no path"),
        (nx.path_graph(4), {"transition": [[0.9, 0.1], [0.2, 0.8]], "n": 5}, r"nodes of the path \(4\)"),
        (nx.Graph([("b", "a"), ("b", "c")]), {"transition": [[0.9, 0.1], [0.2, 0.8]]}, "'c' after 'a'"),
        (nx.DiGraph([(0, 1)]), {"n": 5}, "without a step out of it"),
        (nx.DiGraph([(0, 1, {"weight": -1.0}), (1, 0, {})]), {"n": 5}, "negative"),
        (3, {"n": 5}, "an int"),
    ],
)
def test_graphs_that_are_no_chains(graph: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        MarkovChain.from_graph(graph, **options)


def test_records_of_panels_have_what_is_around_them_in_their_units() -> None:
    transition = [[0.9, 0.1], [0.2, 0.8]]
    panel = Panel(lambda n: MarkovChain(transition, n=n), [3, 4])
    assert panel.markov_blanket(4) == (3, 5)
    table, alone = panel.quilts(4), MarkovChain(transition, n=4).quilts(1)
    assert table["quilt"].tolist() == [tuple(3 + k for k in quilt) for quilt in alone["quilt"]]
    assert table["influence"].tolist() == alone["influence"].tolist()
    expected = log_ratios(panel.joint(), (1, 5), 4, (0,))[0]
    assert panel.max_influence([1, 5], 4, given=[0]) == pytest.approx(expected, rel=1e-9)
    assert panel.max_influence([0, 1], 4) == 0.0
    named = Panel(MarkovField.ising(nx.path_graph(["a", "b", "c"]), 0.3), 2)
    assert named.markov_blanket((1, "a")) == ((1, "b"),)


def test_known_records_leave_blankets_of_their_parts() -> None:
    rest = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=5).given([2])
    assert rest.markov_blanket(0) == (1,)
    assert rest.quilts(3)["nearby"][0] == (2,)
    assert rest.max_influence([3], 0) == 0.0
