"""Searches that keep messages find what searches that start afresh find."""

from collections.abc import Iterator
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest

from graphs import MarkovField
from graphs.leakage import largest_budget
from graphs.leakage.largest_budget import keep, kept, searching
from graphs.leakage.network_messages import Propagation
from graphs.structure.incidence import Incidence
from tests.cases import for_each


@contextmanager
def for_all_sizes(patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as changed:
        changed.setattr(largest_budget, "FEWEST", 0)
        yield


FIELDS = [
    MarkovField.ising(nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6)), 0.25),
    MarkovField.ising(nx.karate_club_graph(), 0.1),
    MarkovField.ising(nx.random_regular_graph(3, 16, seed=1), 0.5, 0.2),
]


@pytest.mark.slow
@for_each("method", ["messages", "self-avoiding"])
@for_each("field", FIELDS)
def test_the_same_budget_with_kept_messages(field: MarkovField, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    afresh = [field.budget(target, method) for target in (0.05, 2.0)]
    with for_all_sizes(monkeypatch):
        found = [field.budget(target, method) for target in (0.05, 2.0)]
        assert found == [field.budget(target, method) for target in (0.05, 2.0)]
    np.testing.assert_allclose(found, afresh, rtol=1e-9)
    for budget, target in zip(found, (0.05, 2.0), strict=True):
        assert field.leakage(budget, method).max() <= target * (1 + 1e-11)


def test_nothing_is_kept_beyond_a_search_or_for_other_records(monkeypatch: pytest.MonkeyPatch) -> None:
    field = FIELDS[0]
    before = field.leakage(0.1, "messages")
    with for_all_sizes(monkeypatch):
        field.budget(0.3, "messages")
        assert (field.leakage(0.1, "messages") == before).all()
        keep("solver", np.ones(2), np.ones(4))
        assert kept("solver", np.ones(2)) is None
        with searching():
            keep("solver", np.array([1.0, 0.0]), np.ones(4))
            assert kept("another", np.ones(2)) is None
            assert kept("solver", np.array([1.0, 0.1])) is None
            smaller = kept("solver", np.array([0.5, 0.0]))
            assert smaller is not None
            assert (smaller == 1).all()


def test_messages_for_smaller_budgets_dominate_when_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started from c times what was found at a c-th of the budgets, messages fall to the same values from above."""
    rng = np.random.default_rng(0)
    graph = nx.gnm_random_graph(30, 60, seed=2)
    incidence = Incidence.pairwise(np.array(graph.edges), rng.uniform(0.2, 1.5, 60), 30)
    epsilon = rng.uniform(0.01, 0.2, 30)
    afresh = Propagation(incidence).leakages(epsilon)
    with for_all_sizes(monkeypatch), searching():
        propagation = Propagation(incidence)
        for factor in (0.1, 3.0, 0.3):
            propagation.leakages(factor * epsilon)
        np.testing.assert_allclose(propagation.leakages(epsilon), afresh, rtol=1e-10)
        few = propagation.leakages(2 * epsilon, rounds=1)
    assert (few >= Propagation(incidence).leakages(2 * epsilon) * (1 - 1e-12)).all()
