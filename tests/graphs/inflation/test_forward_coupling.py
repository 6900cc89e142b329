"""Changes followed from parents to children: closed forms, exact worst cases, and what known records leave."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphs import BayesianNetwork, FactorGraph, MarkovChain, Panel
from graphs.errors import RouteUnavailable
from graphs.inflation import forward_coupling
from graphs.inflation.forward_coupling import ForwardCoupling
from tests.graphs.random_networks import random_bayesian_network
from tests.oracles.adversarial import outcomes
from tests.oracles.moments import worst_inflation, worst_of_bounded_differences
from tests.sizes import sizes


def two_parents(n: int, seed: int, base: float = 0.3, step: float = 0.2, window: int = 10) -> BayesianNetwork:
    """Return a network in which each record follows from two earlier ones: P(1) = base + step * (sum of both)."""
    rng = np.random.default_rng(seed)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(n))
    laws: dict[int, Any] = {}
    for node in range(n):
        first = max(0, node - window)
        above = rng.choice(np.arange(first, node), min(2, node), replace=False).tolist() if node else []
        graph.add_edges_from((parent, node) for parent in above)
        ones = base + step * (2 if len(above) == 1 else 1) * np.indices((2,) * len(above)).sum(axis=0)
        ones = np.full((), 0.5) if not above else ones
        laws[node] = (tuple(above), np.stack([1 - ones, ones], axis=-1))
    return BayesianNetwork(graph, laws)


def largest_for_means(law: np.ndarray) -> float:
    return worst_inflation(*outcomes(law), np.random.default_rng(0))


def largest_for_statistics(law: np.ndarray) -> float:
    return worst_of_bounded_differences(law, np.random.default_rng(0), starts=1)


@sizes("seeds", 6, 150)
def test_no_statistic_has_larger_moments(seeds: int) -> None:
    for seed in range(seeds):
        rng = np.random.default_rng([3, seed])
        model = random_bayesian_network(rng, int(rng.integers(3, 6)), 2, int(rng.integers(0, 2)))
        law = model.joint()
        bound = model.variance_inflation("forward", bounded_differences=True)
        assert largest_for_means(law) <= bound * (1 + 1e-9)
        if seed % 5 == 0:
            assert largest_for_statistics(law) <= bound * (1 + 1e-9)


@sizes("seeds", 15, 90)
def test_known_records_without_unknown_parents_leave_it(seeds: int) -> None:
    applied = 0
    for seed in range(seeds):
        rng = np.random.default_rng([4, seed])
        model = random_bayesian_network(rng, 5, 2)
        known = {0: int(model.marginal([0])[1] > 0.5), 1: 0}
        try:
            law = model.given(known).joint()
        except ValueError:
            continue
        given = model.given(known)
        try:
            bound = given.variance_inflation("forward", bounded_differences=True)
        except RouteUnavailable:
            continue
        applied += 1
        assert largest_for_means(law) <= bound * (1 + 1e-9)
    assert applied > seeds / 3


def test_a_known_child_ties_its_parents() -> None:
    """Two coins and their sum modulo 2: once it is known, one coin copies the other."""
    graph = nx.DiGraph([("a", "sum"), ("b", "sum"), ("c", "d")])
    parity = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    coin, copy = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
    model = BayesianNetwork(graph, {"a": coin, "b": coin, "c": coin, "d": copy, "sum": parity})
    with pytest.raises(RouteUnavailable):
        model.given(["sum"]).variance_inflation("forward")
    assert model.given(["sum"]).variance_inflation("parts") == pytest.approx(2.0, rel=1e-9)
    assert model.given(["a", "b"]).variance_inflation("forward") == pytest.approx((1 + 4 + 1) / 3, rel=1e-9)


def test_chains_have_the_numbers_of_dobrushin_coefficients() -> None:
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    graph = nx.DiGraph((k, k + 1) for k in range(9))
    laws = {0: [0.6, 0.4]} | dict.fromkeys(range(1, 10), transition)
    model = BayesianNetwork(graph, laws)
    widths = [(1 - 0.5 ** (10 - k)) / (1 - 0.5) for k in range(10)]
    assert model.variance_inflation("forward") == pytest.approx(np.square(widths).sum() / 10, rel=1e-9)
    chain = MarkovChain(transition, n=10)
    assert model.variance_inflation("forward") == pytest.approx(chain.variance_inflation("coupling"), rel=1e-9)


def test_copies_attain_it_and_five_per_cent_less_is_refuted() -> None:
    star = BayesianNetwork(
        nx.DiGraph([(0, 1), (0, 2), (0, 3)]), {0: [0.5, 0.5], 1: np.eye(2), 2: np.eye(2), 3: np.eye(2)}, latent=[0]
    )
    bound = star.variance_inflation("forward", bounded_differences=True)
    found = largest_for_statistics(star.joint())
    assert bound == pytest.approx(3.0, rel=1e-9)
    assert 0.95 * bound < found <= bound * (1 + 1e-9)


def test_following_walks_backwards_leaves_out_the_caps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    parents, children = np.array([[0, 1], [0, 2], [1, 3], [2, 3], [3, 4]]).T
    shares, weights = rng.uniform(0.05, 0.4, 5), np.array([1.0, 0.0, 2.0, 1.0, 1.0])
    coupling = ForwardCoupling(np.arange(5), parents, children, shares, np.ones(5), np.zeros(5, dtype=bool))
    onward = np.zeros((5, 5))
    onward[parents, children] = shares
    expected = np.linalg.inv(np.eye(5) - onward) @ weights
    np.testing.assert_allclose(coupling.widths(weights), expected, rtol=1e-12)
    monkeypatch.setattr(forward_coupling, "MOST_FORWARD", 4)
    np.testing.assert_allclose(coupling.widths(weights), expected, rtol=1e-12)


def test_blocks_of_sources_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = two_parents(60, 1).variance_inflation("forward")
    monkeypatch.setattr(forward_coupling, "AT_ONCE", 7)
    assert two_parents(60, 1).variance_inflation("forward") == pytest.approx(whole, rel=1e-12)


@pytest.mark.slow
def test_two_parents_a_record_are_no_longer_vacuous() -> None:
    """Means are linear in the parents, so covariances follow from record to record."""
    model = two_parents(300, 1)
    covariances = np.eye(300) / 4
    for node in range(1, 300):
        above, table = model._laws[node]
        row = covariances[list(above), :node].sum(axis=0) * float(np.ptp(table[..., 1])) / len(above)
        covariances[node, :node] = covariances[:node, node] = row
    truth = covariances.sum() / (300 / 4)
    assert 2.5 < truth < model.variance_inflation() < 1.25 * truth
    assert model.variance_inflation(bounded_differences=True) < 3.5
    assert model.budget(0.5) > 0.05


def test_panels_of_networks_keep_it() -> None:
    model = two_parents(8, 2)
    panel = Panel(model, 3)
    assert panel.variance_inflation() == pytest.approx(model.variance_inflation(), rel=1e-9)
    given = panel.given([(1, 0), (1, 1)])
    alone = model.given([0, 1]).variance_inflation()
    expected = (2 * 8 * model.variance_inflation() + 6 * alone) / 22
    assert given.variance_inflation() == pytest.approx(expected, rel=1e-6)


def test_factors_that_are_products_of_pairs_count_as_pairs() -> None:
    rng = np.random.default_rng(6)
    pairs = [np.exp(0.3 * rng.standard_normal((2, 2))) for _ in range(3)]
    whole = np.einsum("ab,bc,ac->abc", *pairs)
    triple = FactorGraph([2, 2, 2], [((0, 1, 2), whole)])
    apart = FactorGraph([2, 2, 2], [((0, 1), pairs[0]), ((1, 2), pairs[1]), ((0, 2), pairs[2])])
    np.testing.assert_allclose(triple.leakage(0.1, "messages"), apart.leakage(0.1, "messages"), rtol=1e-9)
    np.testing.assert_allclose(triple.variance_inflation("influences"), apart.variance_inflation("influences"))


def test_factors_without_pairs_stay_whole() -> None:
    even = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    incidence = FactorGraph([2, 2, 2], [((0, 1, 2), even)])._potentials.incidence
    assert incidence.n_factors == 1
    np.testing.assert_allclose(incidence.diameters, 2 * np.log(9.0) * np.ones(3), rtol=1e-9)
