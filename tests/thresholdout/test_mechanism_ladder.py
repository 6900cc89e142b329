"""The Ladder: its code, its steps, and the two-sided claim about the best truth."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs import Independent
from thresholdout.certificates.any_mechanism import certify_parameters
from thresholdout.errors import BudgetExhausted, InputError
from thresholdout.mechanisms import Ladder, LadderParameters, LadderState, Outcome
from thresholdout.noise import SeededNoise

N = 2500


def play(mechanism: Ladder, means: list[float]) -> list[Outcome]:
    noise = SeededNoise(0)
    state, seen = mechanism.start(noise), []
    for mean in means:
        values = mechanism.read(np.full(N, mean), N, (0.0, 1.0), "v")
        state, outcome = mechanism.step(state, 0.5, values, noise)
        seen.append(outcome)
    return seen


@pytest.mark.parametrize("changes", [{"confidence": 1.0}, {"direction": "up"}, {"queries": 0}, {"inflation": 0.9}])
def test_parameters_out_of_range(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        LadderParameters(**changes)


def test_the_grid_is_half_a_standard_deviation() -> None:
    assert Ladder(LadderParameters(), 10_000).intervals == 200
    assert Ladder(LadderParameters(), 10_001).intervals == 201
    assert Ladder(LadderParameters(), 1).intervals == 2


def test_only_clear_improvements_are_shown() -> None:
    outcomes = play(Ladder(LadderParameters(), N), [0.5, 0.505, 0.4, 0.9, 0.91])
    assert [outcome.value for outcome in outcomes] == [0.5, 0.5, 0.5, 0.9, 0.9]
    assert [outcome.hits for outcome in outcomes] == [0, 1, 1, 1, 2]
    assert all(outcome.about == "best" for outcome in outcomes)


def test_losses_are_turned() -> None:
    down = play(Ladder(LadderParameters(direction="minimize"), N), [0.5, 0.6, 0.1, 0.12])
    up = play(Ladder(LadderParameters(), N), [0.5, 0.4, 0.9, 0.88])
    assert [outcome.value for outcome in down] == pytest.approx([1 - outcome.value for outcome in up])
    assert [outcome.half_width for outcome in down] == [outcome.half_width for outcome in up]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-1, 1)), min_size=1, max_size=25), st.booleans())
def test_the_claim_holds_whenever_no_mean_is_off_by_more_than_its_radius(
    rounds: list[tuple[float, float]], maximize: bool
) -> None:
    mechanism = Ladder(LadderParameters(direction="maximize" if maximize else "minimize"), N)
    noise = SeededNoise(0)
    state, truths = mechanism.start(noise), []
    for truth, error in rounds:
        mean = min(max(truth + error * mechanism._radius(state), 0.0), 1.0)
        truths.append(truth)
        values = mechanism.read(np.full(N, mean), N, (0.0, 1.0), "v")
        state, outcome = mechanism.step(state, 0.5, values, noise)
        best = max(truths) if maximize else min(truths)
        assert outcome.half_width is not None
        assert abs(outcome.value - best) <= outcome.half_width


def test_the_claim_is_nearly_attained() -> None:
    """A best score that is too low by its step, and a question that is too low by its radius."""
    mechanism = Ladder(LadderParameters(), N)
    state = LadderState(1, 1, round(0.5 * mechanism.intervals), 0.0)
    radius = mechanism._radius(state)
    values = mechanism.read(np.full(N, 0.5 + 0.999 * radius), N, (0.0, 1.0), "v")
    _, outcome = mechanism.step(state, 0.5, values, SeededNoise(0))
    assert outcome.value == 0.5
    assert outcome.half_width is not None
    assert 1.999 * radius <= outcome.half_width <= 2.0 * radius + 1e-9


def test_all_questions_together_cost_no_more_than_beta() -> None:
    """Every history of up to eight rounds on a grid of five scores: which rounds showed scores, and which scores."""
    mechanism = Ladder(LadderParameters(), 4)
    assert mechanism.intervals == 4
    total = 0.0
    for asked in range(9):
        for releases in range(min(1, asked), min(asked, 5) + 1):
            words = sum(1 for _ in itertools.combinations(range(asked), releases))
            scores = sum(1 for _ in itertools.combinations(range(5), releases))
            radius = mechanism._radius(LadderState(asked, releases, 0, 0.0))
            nats = 2 * 4 * radius**2 - math.log(2 / (0.05 * 15 / 16))
            total += words * scores * math.exp(-nats)
    assert 0.2 < total <= 1.0 + 1e-9


def test_scores_increase_and_are_few() -> None:
    """An analyst who is always told that she is better: steps grow, so few scores are shown."""
    mechanism, noise = Ladder(LadderParameters(), N), SeededNoise(0)
    state, shown = mechanism.start(noise), [0.0]
    for k in range(1001):
        state, outcome = mechanism.step(state, 0.5, mechanism.read(np.full(N, k / 1000), N, (0.0, 1.0), "v"), noise)
        shown.append(outcome.value)
    steps = sorted(set(shown))
    assert shown == sorted(shown)
    assert state.releases <= 12
    assert min(b - a for a, b in itertools.pairwise(steps)) >= 1 / mechanism.intervals - 1e-12


def test_limits_and_lengths() -> None:
    mechanism, noise = Ladder(LadderParameters(queries=1), N), SeededNoise(0)
    values = mechanism.read(np.full(N, 0.5), N, (0.0, 1.0), "v")
    state, _ = mechanism.step(mechanism.start(noise), 0.5, values, noise)
    assert mechanism.remaining(state) == 0
    with pytest.raises(BudgetExhausted):
        mechanism.step(state, 0.5, values, noise)
    with pytest.raises(InputError, match="records"):
        mechanism.step(mechanism.start(noise), 0.5, mechanism.read(np.zeros(5), 5, (0.0, 1.0), "v"), noise)


def _widest(mechanism: Ladder, queries: int) -> float:
    """Return the largest half-width of any session, by trying every score in every round."""
    n, noise = mechanism._n, SeededNoise(0)
    states, widest = {mechanism.start(noise)}, 0.0
    for _ in range(queries):
        steps = [
            mechanism.step(state, 0.5, mechanism.read(np.arange(n) < right, n, (0.0, 1.0), "v"), noise)
            for state in states
            for right in range(n + 1)
        ]
        widest = max(widest, *(outcome.half_width or 0.0 for _, outcome in steps))
        states = {after for after, _ in steps}
    return widest


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize(("n", "queries", "confidence"), [(60, 6, 0.5), (60, 1, 0.95), (150, 3, 0.9), (30, 9, 0.05)])
def test_the_tolerance_is_the_largest_half_width_of_any_session(
    n: int, queries: int, confidence: float, direction: Literal["maximize", "minimize"]
) -> None:
    parameters = LadderParameters(confidence, direction, queries)
    found = _widest(Ladder(parameters, n), queries)
    tolerance = certify_parameters(Independent(n), parameters, confidence).tolerance
    assert found <= tolerance <= min(1.0, found * 1.12)


@pytest.mark.parametrize("queries", [1, 10, 1000, 10**6, None])
def test_the_tolerance_is_finite_and_grows_with_the_questions(queries: int | None) -> None:
    parameters = LadderParameters(queries=queries)
    certificate = certify_parameters(Independent(10_000), parameters)
    assert certificate.route == "ladder"
    assert 0.0 < certificate.tolerance <= 1.0
    assert certificate.half_width(1, 0, "holdout") == certificate.tolerance
    if queries is not None:
        more = certify_parameters(Independent(10_000), LadderParameters(queries=2 * queries)).tolerance
        assert certificate.tolerance < more < 1.0
    else:
        assert certificate.tolerance == 1.0  # half-widths grow with the questions, up to the whole range
