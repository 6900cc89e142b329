"""The theorems behind the posterior certificate and the walk, on interactions that are enumerated completely."""

import math
from collections import defaultdict

import numpy as np
import pytest

from tests.cases import for_each
from tests.oracles.interactions import History, Law, Round, SmallGuard, overfitter
from thresholdout.certificates.drift_bound import belief_drift

NOISY = (Law.discrete_laplace(1.0, 12), Law.discrete_laplace(2.0, 24), Law.discrete_laplace(4.0, 48))


def guard(noises: tuple[Law, Law, Law], **changes: int) -> SmallGuard:
    parameters = {"n": 8, "threshold": 2, "budget": 2, "rounds": 4, "levels": 5} | changes
    return SmallGuard(noises=noises, **parameters)


def step_privacy(scale: float) -> float:
    """Per bit and threshold: gaps move by 2 in units in which the threshold noise counts double, sums by 1."""
    first, second, third = scale, 2 * scale, 4 * scale
    return 1 / first + 2 * 2 / second + 1 / third


def rounds_of(small: SmallGuard) -> list[Round]:
    return list(small.play(overfitter(small)))


def test_enumeration_is_complete() -> None:
    """Histories of every length have total probability one in every state, if those that had ended are counted."""
    small = guard(NOISY)
    ended = np.zeros(len(small.states))
    for played in rounds_of(small):
        history = (*played.history, played.answer)
        hits = sum(answer is not None for answer in history)
        if len(history) == small.rounds or hits == small.budget:
            ended += played.likelihood
    assert ended == pytest.approx(np.ones_like(ended), abs=1e-12)


@for_each("group", [1, 2])
def test_beliefs_about_every_record_stay_within_the_posterior_bound(group: int) -> None:
    """After every round of every interaction: TV(posterior, prior) <= tanh(alpha/4), the bound of any mean too."""
    small = guard(NOISY, group=group)
    epsilon = small.budget * step_privacy(1.0)
    bound = math.tanh(group * epsilon / 4)
    largest = 0.0
    for played in rounds_of(small):
        posterior = played.likelihood / played.likelihood.sum()
        moved = np.abs(small.states.T @ posterior - 0.5)
        largest = max(largest, float(moved.max()))
        assert moved.max() <= bound
    assert largest > 0.1 * bound


def test_beliefs_after_one_hit_need_their_share_of_the_bound() -> None:
    """A guard that claimed a twentieth of its privacy loss would be refuted."""
    small = guard(NOISY, budget=1, n=2, threshold=0, levels=3)
    bound = math.tanh(step_privacy(1.0) / 20 / 4)
    moved = [np.abs(small.states.T @ (r.likelihood / r.likelihood.sum()) - 0.5).max() for r in rounds_of(small)]
    assert max(moved) > bound


@pytest.mark.slow
def test_expected_error_rarely_exceeds_the_superquantile() -> None:
    """Lemma C2, exactly: how likely |answer - E[query | answers]| ever exceeds the CVaR of the largest error."""
    small = guard(NOISY, threshold=1)
    weight = 1 / len(small.states)
    beta = 0.2
    errors: dict[float, float] = defaultdict(float)
    played_rounds = rounds_of(small)
    broken: dict[float, float] = {}
    for level in np.linspace(0.05, 0.6, 56):
        failing: set[History] = set()
        total = 0.0
        for played in played_rounds:
            if any(played.history[:length] in failing for length in range(1, len(played.history) + 1)):
                continue
            value = 0.5 if played.answer is None else played.answer / (small.levels - 1)
            posterior = played.likelihood / played.likelihood.sum()
            expected = float(small.sums(played.mask) @ posterior) / small.n
            if abs(value - expected) > level:
                failing.add((*played.history, played.answer))
                total += weight * float(played.likelihood.sum())
        broken[float(level)] = total
    for state in range(len(small.states)):
        for worst, probability in worst_errors(small, played_rounds, state).items():
            errors[worst] += weight * probability
    values = np.array(sorted(errors))
    law = np.array([errors[value] for value in values])
    superquantile = min(float(u + (np.maximum(values - u, 0) @ law) / beta) for u in np.linspace(0, 1, 201))
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert all(total <= beta for level, total in broken.items() if level >= superquantile)
    assert any(total > beta for level, total in broken.items() if level < superquantile / 2)


def worst_errors(small: SmallGuard, played_rounds: list[Round], state: int) -> dict[float, float]:
    """Law of the largest |answer - value in the sample| of a whole interaction, given the state."""
    so_far: dict[History, float] = {(): 0.0}
    law: dict[float, float] = defaultdict(float)
    for played in played_rounds:
        value = 0.5 if played.answer is None else played.answer / (small.levels - 1)
        error = abs(value - small.sums(played.mask)[state] / small.n)
        history = (*played.history, played.answer)
        so_far[history] = max(so_far[played.history], float(error))
        hits = sum(answer is not None for answer in history)
        if len(history) == small.rounds or hits == small.budget:
            law[round(so_far[history], 12)] += float(played.likelihood[state])
    return law


def test_beliefs_of_a_whole_interaction_stay_within_the_walk() -> None:
    """The mean variation over the records exceeds the walk's drift at b2 with probability at most b2, exactly."""
    small = guard(NOISY, n=6, budget=3, rounds=3, threshold=0)
    weight, failure = 1 / len(small.states), 0.1
    drift = belief_drift(step_privacy(1.0), small.budget, failure)
    exceeded: dict[float, float] = {}
    for factor in (1.0, 0.1):
        failing: set[History] = set()
        total = 0.0
        for played in rounds_of(small):
            if any(played.history[:length] in failing for length in range(1, len(played.history) + 1)):
                continue
            posterior = played.likelihood / played.likelihood.sum()
            if float(np.mean(np.abs(small.states.T @ posterior - 0.5))) >= factor * drift:
                failing.add((*played.history, played.answer))
                total += weight * float(played.likelihood.sum())
        exceeded[factor] = total
    assert exceeded[1.0] <= failure < exceeded[0.1]
