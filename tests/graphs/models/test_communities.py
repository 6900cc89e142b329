"""Communities whose states another model describes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphs import Communities, MarkovField
from tests.cases import for_each
from tests.oracles.moments import worst_of_bounded_differences


def test_states_without_names_are_numbers_of_the_emission() -> None:
    """Records of two communities in equal states, each with its state for certain."""
    between = MarkovField.ising(nx.path_graph(2), 20.0)
    model = Communities(["a", "a", "b"], between, [[1.0, 0.0], [0.0, 1.0]])
    drawn = np.array([model.sample(np.random.default_rng(seed)) for seed in range(20)])
    assert set(map(tuple, drawn.tolist())) == {(0, 0, 0), (1, 1, 1)}


@pytest.mark.slow
@for_each("seed", range(6))
def test_states_on_a_network_move_each_as_many_records_as_it_has(seed: int) -> None:
    """Against statistics with bounded differences that are chosen to vary much, also with a record known."""
    rng = np.random.default_rng(seed)
    between = MarkovField.ising(nx.path_graph(3), rng.normal(0, 1.0, 2), rng.normal(0, 0.3, 3))
    law = rng.dirichlet(np.ones(2), size=2)
    model = Communities(["a", "a", "b", "c"], between, law)
    table = model.joint()
    found = worst_of_bounded_differences(table, rng, starts=1)
    assert found <= model.variance_inflation("emission", bounded_differences=True) <= 4
    given = model.given({3: 0})
    left = worst_of_bounded_differences(table[..., 0] / table[..., 0].sum(), rng, starts=1)
    assert left <= given.variance_inflation("emission", bounded_differences=True) <= 3


def test_a_large_community_does_not_cost_the_others_its_size() -> None:
    between = MarkovField.ising(nx.path_graph(40), 0.2)
    sizes = [30] + [1] * 39
    model = Communities(np.repeat(np.arange(40), sizes).tolist(), between, [[0.8, 0.2], [0.2, 0.8]])
    share, spread = np.tanh(0.2), 0.6
    after = 30 + share / (1 - share)  # the large one first, then from its neighbour on: at most 1 / (1 - share) each
    squares = after**2 + 39 / (1 - share) ** 2
    assert model.variance_inflation("emission", bounded_differences=True) <= 1 + spread**2 * squares / model.n
    assert model.variance_inflation("emission") >= 1 + spread**2 * 30**2 / model.n
