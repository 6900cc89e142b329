"""Dependent records: their law is exactly that of the model, on models small enough to enumerate.

Frequencies of all outcomes are compared with their probabilities; each may be off by 6.5 standard errors and one count,
so a right law fails with probability below 1e-8. Every such test also rejects a weaker dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Groups, Independent, MarkovChain, MarkovField, MovingWindow
from tests.cases import for_each
from thresholdout import InputError
from thresholdout.simulation import DependentRecords
from thresholdout.simulation.simulated_session import Part

DRAWS = 4000
Law = Mapping[tuple[int, ...], float]


def fits(draw: Callable[[np.random.Generator], Any], law: Law, draws: int = DRAWS) -> bool:
    """Whether outcomes come as often as the law says."""
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(law, 0)
    for _ in range(draws):
        outcome = tuple(int(value) for value in draw(rng))
        if outcome not in counts:
            return False
        counts[outcome] += 1
    return all(
        abs(count - draws * law[outcome]) <= 6.5 * np.sqrt(draws * law[outcome] * (1 - law[outcome])) + 1
        for outcome, count in counts.items()
    )


def labels(data: DependentRecords) -> Callable[[np.random.Generator], NDArray[np.bool_]]:
    return lambda rng: data.draw(rng).labels


def everything(data: DependentRecords) -> Callable[[np.random.Generator], NDArray[np.bool_]]:
    """Return labels and attributes of all records, in one row."""

    def draw(rng: np.random.Generator) -> NDArray[np.bool_]:
        part = data.draw(rng)
        return np.column_stack([part.labels, part.features]).ravel()

    return draw


def chain_law(matrix: NDArray[np.float64], n: int) -> Law:
    """Enumerate a stationary chain with uniform stationary law."""
    law = {}
    for states in product(range(len(matrix)), repeat=n):
        steps = [matrix[a, b] for a, b in pairwise(states)]
        law[states] = float(np.prod(steps)) / len(matrix)
    return law


def keeping(states: int, share: float) -> NDArray[np.float64]:
    matrix: NDArray[np.float64] = np.full((states, states), (1 - share) / states) + share * np.eye(states)
    return matrix


@pytest.mark.slow
def test_labels_of_a_chain() -> None:
    law = chain_law(keeping(2, 0.6), 4)
    assert fits(labels(DependentRecords(MarkovChain(keeping(2, 0.6), 4), attributes=1)), law)
    assert not fits(labels(DependentRecords(MarkovChain(keeping(2, 0.4), 4), attributes=1)), law)


@pytest.mark.slow
def test_labels_and_parities_of_a_chain_of_more_states() -> None:
    """With 4 states the label is the first digit, and the attribute the second: together they are the state."""
    data = DependentRecords(MarkovChain(keeping(4, 0.5), 2), attributes=1, states=4)
    law = {
        tuple(bit for state in states for bit in (state & 1, state >> 1)): weight
        for states, weight in chain_law(keeping(4, 0.5), 2).items()
    }
    assert fits(everything(data), law)
    weaker = DependentRecords(MarkovChain(keeping(4, 0.33), 2), attributes=1, states=4)
    assert not fits(everything(weaker), law)


@pytest.mark.slow
def test_labels_of_a_field_with_a_loop() -> None:
    edges = ([[0, 1], [1, 2], [0, 2]], 3)
    weights = {
        states: np.exp(0.5 * sum((2 * states[a] - 1) * (2 * states[b] - 1) for a, b in edges[0]))
        for states in product(range(2), repeat=3)
    }
    law = {states: float(weight / sum(weights.values())) for states, weight in weights.items()}
    draws = 1500  # which take longer here
    assert fits(labels(DependentRecords(MarkovField.ising(edges, 0.5), attributes=1)), law, draws)
    assert not fits(labels(DependentRecords(MarkovField.ising(edges, 0.25), attributes=1)), law, draws)


@pytest.mark.slow
def test_groups_share_labels_and_attributes_and_nothing_across() -> None:
    data = DependentRecords(Groups([0, 0, 1]), attributes=1, draws=2)
    law: Law = {(a, x, a, x, b, y): 1 / 16 for a, x, b, y in product(range(2), repeat=4)}
    assert fits(everything(data), law)
    assert not fits(everything(DependentRecords(Independent(3), attributes=1, draws=2)), law)


@pytest.mark.slow
def test_windows_depend_up_to_their_width() -> None:
    data = DependentRecords(MovingWindow(4, 1), attributes=1)
    rng = np.random.default_rng(1)
    found = 2.0 * np.array([data.draw(rng).labels for _ in range(DRAWS)]) - 1
    correlation = found.T @ found / DRAWS
    allowed = 6.5 / np.sqrt(DRAWS)
    assert correlation[0, 1] > allowed
    assert abs(correlation[0, 2]) < allowed
    assert abs(correlation[0, 3]) < allowed


@for_each("strength", [0.2, 0.6, 1.0])
def test_informative_attributes_know_the_label_as_much_as_told(strength: float) -> None:
    data = DependentRecords(Independent(40_000), attributes=3, informative=2, strength=strength)
    part = data.draw(np.random.default_rng(2))
    allowed = 6.5 * 0.5 / np.sqrt(40_000)
    agrees = (part.features == part.labels[:, None]).mean(axis=0)
    assert np.abs(agrees - [(1 + strength) / 2, (1 + strength) / 2, 0.5]).max() < allowed
    both = ((part.features[:, 0] == part.labels) & (part.features[:, 1] == part.labels)).mean()
    assert abs(both - ((1 + strength) / 2) ** 2) < allowed  # independent given the label
    assert 0.3 * strength / 2 > allowed  # a strength wrong by 30 % is seen


@for_each("noise", [0.0, 0.5, 1.0])
def test_noise_draws_attributes_afresh(noise: float) -> None:
    data = DependentRecords(Groups(np.arange(20_000) // 2), attributes=1, draws=2, noise=noise)
    features = data.draw(np.random.default_rng(3)).features[:, 0]
    same = (features[::2] == features[1::2]).mean()
    assert abs(same - (1 + (1 - noise) ** 2) / 2) < 6.5 * 0.5 / np.sqrt(10_000)


def test_no_function_of_attributes_knows_the_label() -> None:
    """All cells of attributes have the label with probability 1/2: checked by enumerating the states."""
    data = DependentRecords(Independent(8), attributes=5, states=8)
    digits = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(bool)
    features = np.column_stack([data._attribute(k, digits, np.random.default_rng(0)) for k in range(5)])
    for row in np.unique(features, axis=0):
        same = (features == row).all(axis=1)
        assert digits[same, 0].mean() == 0.5


def test_a_seed_draws_the_same_records() -> None:
    data = DependentRecords(MarkovChain(keeping(4, 0.5), 50), attributes=3, states=4, noise=0.3)
    one, other = (data.draw(np.random.default_rng(4)) for _ in range(2))
    assert isinstance(one, Part)
    assert (one.features == other.features).all()
    assert one.features.flags.f_contiguous


@for_each(
    ("change", "argument"),
    [
        ({"attributes": 0}, "attributes"),
        ({"draws": 0}, "draws"),
        ({"states": 3}, "states"),
        ({"states": 1}, "states"),
        ({"informative": 5}, "informative"),
        ({"informative": -1}, "informative"),
        ({"strength": 0.0}, "strength"),
        ({"strength": 1.5}, "strength"),
        ({"noise": -0.1}, "noise"),
        ({"noise": 1.1}, "noise"),
    ],
)
def test_numbers_out_of_range_are_refused(change: dict[str, Any], argument: str) -> None:
    usual: dict[str, Any] = {"model": Independent(4), "attributes": 4}
    with pytest.raises(InputError, match=f"^{argument}"):
        DependentRecords(**usual | change)


def test_two_draws_of_a_chain_are_refused() -> None:
    """Two copies depend on each other more than one: their states together have twice the log-ratios."""
    with pytest.raises(InputError, match="draws must be 1 for a MarkovChain; got 2"):
        DependentRecords(MarkovChain(keeping(2, 0.5), 4), attributes=1, draws=2)


def test_states_beyond_the_declared_ones_are_refused() -> None:
    data = DependentRecords(MarkovChain(keeping(4, 0.5), 400), attributes=1, states=2)
    with pytest.raises(InputError, match=r"states must be .*; got 2, and a state beyond it"):
        data.draw(np.random.default_rng(0))
