"""Newton steps of messages: they end where plain updates end, and a step that is not a bound is not kept."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs import MarkovField
from graphs.leakage import loopy_messages
from graphs.leakage.loopy_messages import Contraction, Map, Rounds, Shrinkage
from graphs.leakage.network_messages import Propagation
from graphs.structure.incidence import Incidence
from tests.cases import for_each


def network(seed: int) -> tuple[Incidence, np.ndarray]:
    """Return a network with loops, latent nodes, factors of three, and diameters of all kinds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 30))
    pairs = np.array(nx.gnm_random_graph(n, int(rng.integers(n, 3 * n)), seed=seed).edges)
    triples = np.array([rng.choice(n, 3, replace=False) for _ in range(int(rng.integers(1, 4)))])
    strength = 10.0 ** rng.uniform(-2, 1)
    diameters = strength * rng.uniform(0.1, 1, 2 * len(pairs) + 3 * len(triples))
    if seed % 5 == 0:
        diameters[rng.random(len(diameters)) < 0.1] = np.inf
    nodes = np.concatenate([pairs.ravel(), triples.ravel()])
    factors = np.r_[np.repeat(np.arange(len(pairs)), 2), len(pairs) + np.repeat(np.arange(len(triples)), 3)]
    epsilon = 10.0 ** rng.uniform(-6, 1) * rng.uniform(0.1, 1, n) * (rng.random(n) < rng.choice([0.7, 1.0]))
    return Incidence(nodes, factors, diameters, n, len(pairs) + len(triples)), epsilon


@for_each("passed", [Contraction, Shrinkage])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
def test_newton_steps_end_where_updates_end(monkeypatch: pytest.MonkeyPatch, seed: int, passed: type[Map]) -> None:
    incidence, epsilon = network(seed)
    plain = Propagation(incidence, passed).messages(epsilon, rounds=2000)
    with monkeypatch.context() as patch:
        patch.setattr(loopy_messages, "FEWEST", 0)
        found = Propagation(incidence, passed).messages(epsilon, rounds=2000)
    # updates stop at a relative change of 1e-12, above the fixed point by up to 1e-12 / (1 - rate)
    assert (found >= plain * (1 - 1e-8)).all()
    assert (found <= plain * (1 + 1e-10)).all()


def test_newton_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    whole = Rounds._updated
    monkeypatch.setattr(loopy_messages, "FEWEST", 0)

    def counted(*given: Any) -> Any:
        taken.append(1)
        return whole(*given)

    monkeypatch.setattr(Rounds, "_updated", counted)
    field = MarkovField.ising(nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12)), 0.24)
    field.leakage(0.01, "messages")
    assert len(taken) < 12  # updates alone take more than 50


@for_each("share", [0.5, 1 - 1e-9])
def test_a_step_that_goes_too_far_is_not_kept(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """A step below the fixed point is found out; without the check it would be the answer."""
    incidence, epsilon = network(7)
    plain = Propagation(incidence).messages(epsilon, rounds=2000)
    monkeypatch.setattr(loopy_messages, "FEWEST", 0)
    leap = Rounds._leap
    refused = []

    def too_far(self: Rounds, messages: np.ndarray, change: np.ndarray, slopes: np.ndarray, largest: float) -> object:
        guess = leap(self, messages, change, slopes, largest)
        refused.append(largest)
        return None if guess is None else share * plain[self._order]

    monkeypatch.setattr(Rounds, "_leap", too_far)
    found = Propagation(incidence).messages(epsilon, rounds=2000)
    assert refused
    np.testing.assert_allclose(found, plain, rtol=1e-10)


def test_wrong_slopes_cost_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    incidence, epsilon = network(8)
    plain = Propagation(incidence).messages(epsilon, rounds=2000)
    monkeypatch.setattr(loopy_messages, "FEWEST", 0)
    slopes = Contraction.slopes
    monkeypatch.setattr(Contraction, "slopes", lambda *given: np.minimum(1.5 * slopes(*given), 0.99))
    found = Propagation(incidence).messages(epsilon, rounds=2000)
    assert (found >= plain * (1 - 1e-10)).all()
    np.testing.assert_allclose(found, plain, rtol=1e-6)


@for_each("passed", [Contraction, Shrinkage])
def test_slopes_are_derivatives(passed: type[Map]) -> None:
    values = np.geomspace(1e-3, 20, 40)
    given = passed(np.full(40, 1.7))
    step = 1e-5 * values
    difference = (given.apply(values + step) - given.apply(values - step)) / (2 * step)
    np.testing.assert_allclose(given.slopes(values), difference, rtol=1e-4, atol=1e-7)
