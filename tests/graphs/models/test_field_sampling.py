"""Draws from fields: frequencies against exact marginals, and broken samplers that must fail."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chi2

from graphs import ArgumentError, MarkovField
from graphs.models.field_sampling import FieldSampler, _compare
from tests.sizes import corners

#: Error rate of each statistical test.
RATE = 1e-9


def statistic(model: MarkovField, law: np.ndarray, draws: int, seed: int) -> tuple[float, float]:
    """Return the chi-squared statistic of the joint states of many draws, and what it exceeds with probability RATE."""
    return compared(frequencies(model, law.shape, draws, seed), law)


def frequencies(model: MarkovField, shape: tuple[int, ...], draws: int, seed: int) -> np.ndarray:
    """Count the joint states of many draws."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(shape)
    for _ in range(draws):
        counts[tuple(model.sample(rng))] += 1
    return counts


def compared(counts: np.ndarray, law: np.ndarray) -> tuple[float, float]:
    """Return the chi-squared statistic of counts of joint states, and its limit."""
    draws = counts.sum()
    used = law > 0
    assert counts[~used].sum() == 0
    value = float(((counts - draws * law)[used] ** 2 / (draws * law[used])).sum())
    return value, float(chi2.isf(RATE, int(used.sum()) - 1))


def forest() -> MarkovField:
    """Seven nodes in two trees, one node latent, some states impossible."""
    graph: nx.Graph[Any] = nx.Graph([(0, 1), (1, 2), (1, 3), (4, 5)])
    graph.add_node(6)
    rng = np.random.default_rng(0)
    tables = {edge: rng.uniform(0.1, 1, (2, 2)) for edge in graph.edges}
    tables[0, 1][0, 1] = 0
    return MarkovField(graph, tables, rng.uniform(0.1, 1, (7, 2)), latent=[1])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("model", "method"),
    corners(
        [
            (forest(), "exact"),
            (MarkovField.ising(nx.cycle_graph(4), 0.2, [0.5, -0.3, 0.1, 0]), "perfect"),
            (MarkovField.ising(nx.complete_graph(4), 0.12, 0.2), "perfect"),
            (MarkovField.ising(nx.cycle_graph(3), -0.2, 0.2), "gibbs"),
            (MarkovField.potts(nx.cycle_graph(3), 0.4, 3, [0.1, 0, 0.4]), "gibbs"),
        ],
        0,
        3,
        4,
    ),
    ids=["forest", "ring", "clique", "antiferromagnet", "potts"],
)
def test_joint_frequencies(model: MarkovField, method: str) -> None:
    assert model.sampling_plan().method == method
    value, limit = statistic(model, model.joint(), 2500, 1)
    assert value < limit


@pytest.mark.statistical
def test_a_wrong_law_is_noticed() -> None:
    """The same test rejects a coupling that is a third too large, and a field that is left out."""
    model = MarkovField.ising(nx.cycle_graph(4), 0.2, 0.3)
    counts = frequencies(model, model.joint().shape, 4000, 2)
    for other in (MarkovField.ising(nx.cycle_graph(4), 0.27, 0.3), MarkovField.ising(nx.cycle_graph(4), 0.2, 0.2)):
        value, limit = compared(counts, other.joint())
        assert value > limit


@pytest.mark.statistical
def test_without_a_burn_in_it_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MarkovField.ising(nx.cycle_graph(3), -0.2, 0.6)
    from graphs.models.field_sampling import Plan

    monkeypatch.setattr(FieldSampler, "plan", Plan("gibbs", 0, None))
    value, limit = statistic(model, model.joint(), 4000, 3)
    assert value > limit


def test_zeros_and_loops_are_drawn_exactly() -> None:
    """A proper colouring of a triangle with three colours: six states, all possible."""
    model = MarkovField(nx.complete_graph(3), 1 - np.eye(3))
    rng = np.random.default_rng(4)
    drawn = {tuple(model.sample(rng).tolist()) for _ in range(200)}
    assert len(drawn) == 6
    assert all(len(set(states)) == 3 for states in drawn)
    with pytest.raises(ArgumentError, match="zeros"):
        model.sampling_diagnostics(rng)


def test_reproducible_by_seed() -> None:
    for model in (forest(), MarkovField.ising(nx.cycle_graph(6), 0.2), MarkovField.ising(nx.cycle_graph(6), 2.0)):
        first, again, other = (model.sample(np.random.default_rng(seed)) for seed in (5, 5, 6))
        assert (first == again).all()
        assert first.shape == other.shape == (model.n,)


def test_plans() -> None:
    grid = nx.grid_2d_graph(10, 10)
    assert MarkovField.ising(grid, 0.1).sampling_plan().distance == 0
    disagree = MarkovField.ising(grid, -0.1).sampling_plan()
    assert disagree.method == "gibbs"
    assert disagree.distance == 1e-6
    strong = MarkovField.ising(grid, 1.0).sampling_plan()
    assert (strong.method, strong.sweeps, strong.distance) == ("gibbs", 1000, None)
    assert MarkovField.ising(nx.path_graph(5), 3.0).sampling_plan().method == "exact"


def test_mixed_trees_and_loops() -> None:
    graph = nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(3))
    rng = np.random.default_rng(7)
    for sign in (1, -1):
        model = MarkovField.ising(graph, sign * 0.2, [9, 9, 9, -9, -9, -9])
        assert model.sample(rng).tolist() == [1, 1, 1, 0, 0, 0]


def test_diagnostics_tell_a_sampler_that_is_stuck() -> None:
    rng = np.random.default_rng(8)
    good = MarkovField.ising(nx.cycle_graph(20), 0.2).sampling_diagnostics(rng, sweeps=400)
    assert good.r_hat < 1.02
    assert good.effective_draws > 100
    walk = np.cumsum(rng.standard_normal((4, 400)), axis=1)
    stuck = _compare(walk)
    assert stuck.r_hat > 1.2
    assert stuck.effective_draws < 100
    assert _compare(np.ones((2, 8))).r_hat == 1
    assert _compare(np.repeat([[0.0], [1.0]], 8, axis=1)).r_hat == np.inf
    independent = _compare(rng.standard_normal((4, 1000)))
    assert independent.effective_draws == pytest.approx(4000, rel=0.25)
    with pytest.raises(ArgumentError, match="no loops"):
        MarkovField.ising(nx.path_graph(3), 0.2).sampling_diagnostics(rng)
