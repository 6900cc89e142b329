"""Draws from networks have the marginals that variable elimination computes.

Each test compares frequencies of pairs of records with exact probabilities and rejects a correct sampler with
probability at most 1e-9 (Hoeffding's inequality for every entry, summed over all entries).
"""

import math

import numpy as np
import pytest

import graphs.models.factor_graph
from graphs import FactorGraph
from tests.graphs.random_networks import random_bayesian_network, random_factor_graph
from tests.sizes import corners

pytestmark = pytest.mark.statistical

ERROR_RATE = 1e-9


def largest_gap(model: FactorGraph, law: FactorGraph, draws: int) -> tuple[float, float]:
    """Return the largest gap between frequency and probability, and what chance allows."""
    rng = np.random.default_rng(2024)
    sampled = np.array([model.sample(rng) for _ in range(draws)])
    sizes = [law.cardinalities[name] for name in law.records]
    gap, entries = 0.0, 0
    for a in range(law.n):
        for b in range(a + 1, law.n):
            exact = law.marginal([law.records[a], law.records[b]])
            counts = np.bincount(sampled[:, a] * sizes[b] + sampled[:, b], minlength=exact.size)
            gap = max(gap, float(np.abs(counts / draws - exact.ravel()).max()))
            entries += exact.size
    return gap, math.sqrt(math.log(2 * entries / ERROR_RATE) / (2 * draws))


@pytest.mark.parametrize("seed", corners(range(3), 1))
def test_factor_graphs_are_sampled_exactly(seed: int) -> None:
    model = random_factor_graph(np.random.default_rng([41, seed]), 5, 3, latent=1)
    gap, allowed = largest_gap(model, model, 8000)
    assert gap <= allowed


@pytest.mark.parametrize("seed", range(3))
def test_bayesian_networks_are_sampled_exactly(seed: int) -> None:
    model = random_bayesian_network(np.random.default_rng([42, seed]), 5, 3, latent=1)
    gap, allowed = largest_gap(model, model, 8000)
    assert gap <= allowed


def test_a_sampler_of_another_law_is_caught() -> None:
    step = np.array([[3.0, 1.0], [1.0, 3.0]])
    law = FactorGraph([2] * 3, [((0, 1), step), ((1, 2), step)])
    wrong = FactorGraph([2] * 3, [((0, 1), step + 1.5 * np.eye(2)), ((1, 2), step)])
    gap, allowed = largest_gap(wrong, law, 20_000)
    assert gap > allowed


def test_gibbs_draws_are_close_to_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """With weak couplings a few sweeps bring the sampler within 1e-6 of its law."""
    monkeypatch.setattr(graphs.models.factor_graph, "EXACT", 2)
    monkeypatch.setattr(graphs.models.factor_graph, "SWEEPS", 12)
    rng = np.random.default_rng(3)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    factors = [(pair, np.exp(0.15 * rng.standard_normal((2, 2)))) for pair in pairs]
    model = FactorGraph([2] * 4, [*factors, ((0,), [1, 3])])
    gap, allowed = largest_gap(model, model, 3000)
    assert gap <= allowed
