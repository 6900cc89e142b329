"""Communities whose states another model describes."""

from __future__ import annotations

import networkx as nx
import numpy as np

from graphs import Communities, MarkovField


def test_states_without_names_are_numbers_of_the_emission() -> None:
    """Records of two communities in equal states, each with its state for certain."""
    between = MarkovField.ising(nx.path_graph(2), 20.0)
    model = Communities(["a", "a", "b"], between, [[1.0, 0.0], [0.0, 1.0]])
    drawn = np.array([model.sample(np.random.default_rng(seed)) for seed in range(20)])
    assert set(map(tuple, drawn.tolist())) == {(0, 0, 0), (1, 1, 1)}
