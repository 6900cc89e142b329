"""Guess and check: its histories are told by a code, and its answers are what they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import (
    GaussianParameters,
    GuessAndCheck,
    GuessAndCheckParameters,
    GuessAndCheckState,
    ThresholdoutParameters,
)
from thresholdout.noise import SeededNoise

UNIT = (0.0, 1.0)
GUESSES = ["noisy", "train", GaussianParameters(0.05), ThresholdoutParameters(0.1, 0.01, None, None)]


def made(n: int = 1000, labels: Any = None, **changes: Any) -> GuessAndCheck:
    chosen: dict[str, Any] = {"tolerance": 0.2, "guess": "noisy"} | changes
    return GuessAndCheck(GuessAndCheckParameters(**chosen), n, labels)


class TestParameters:
    @pytest.mark.parametrize(
        "changes",
        [
            {"tolerance": 0.0},
            {"tolerance": 0.6},
            {"confidence": 0.0},
            {"confidence": 1.0},
            {"share": 0.0},
            {"share": 1.0},
            {"queries": 0},
            {"grid": 0.3},
            {"inflation": 0.5},
            {"inflation": 2.0},
            {"guess": "holdout"},
        ],
    )
    def test_out_of_range(self, changes: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=next(iter(changes))):
            made(**changes)

    def test_types(self) -> None:
        with pytest.raises(InputTypeError, match="guess"):
            made(guess=None)

    def test_a_tolerance_that_cannot_be_reached(self) -> None:
        with pytest.raises(InputError, match=r"tolerance: 0.05; expected: more than 0.0\d+, what 500 checking records"):
            made(tolerance=0.05)

    def test_too_few_records(self) -> None:
        with pytest.raises(InputError, match="at least two records"):
            made(n=1)
        with pytest.raises(InputError, match="labels"):
            made(n=10, labels=[1, 2, 3])


class TestCode:
    @given(st.floats(0, 1), st.floats(0, 100))
    def test_answers_after_a_failed_check_have_a_code(self, guess: float, nats: float) -> None:
        mechanism = made(n=2000)
        steps = mechanism._intervals
        centre = round(guess * steps)
        lengths = [mechanism._level_nats(level, centre, nats) for level in range(steps + 1)]
        assert math.fsum(math.exp(-length) for length in lengths) <= 1.0 + 1e-12
        assert min(lengths) >= 0.0

    @pytest.mark.parametrize("guess", [0.1, 0.5])
    def test_all_questions_together_cost_no_more_than_beta(self, guess: float) -> None:
        """Every history of up to five rounds: the weights of the questions that may follow sum to at most 1."""
        mechanism = made(n=2000, grid=0.25)
        steps = mechanism._intervals
        weights: list[float] = []

        def follow(state: GuessAndCheckState, depth: int) -> None:
            nats = mechanism._nats(state)
            weights.append(math.exp(-nats))
            if depth == 0:
                return
            follow(GuessAndCheckState(state.asked + 1, state.failures, state.nats, ""), depth - 1)
            for level in range(steps + 1):
                told = state.nats + mechanism._level_nats(level, round(guess * steps), nats)
                follow(GuessAndCheckState(state.asked + 1, state.failures + 1, told, ""), depth - 1)

        follow(GuessAndCheckState(0, 0, 0.0, ""), 5)
        assert len(weights) == sum(6**depth for depth in range(6))
        assert 0.2 < math.fsum(weights) <= 1.0


class TestSteps:
    def test_a_good_guess_is_the_answer(self) -> None:
        mechanism, noise = made(guess=GaussianParameters(0.01)), SeededNoise(1)
        values = mechanism.read([0.3] * 1000, 1000, UNIT, "v")
        state, outcome = mechanism.step(mechanism.start(noise), 0.9, values, noise)
        assert outcome.value != 0.3
        assert abs(outcome.value - 0.3) < 0.06
        assert (outcome.half_width, outcome.source, state.failures, state.nats) == (0.2, "holdout", 0, 0.0)

    def test_a_bad_guess_is_replaced_by_the_mean_of_the_checking_part(self) -> None:
        mechanism, noise = made(guess="train"), SeededNoise(1)
        values = mechanism.read([1.0] * 309 + [0.0] * 691, 1000, UNIT, "v")
        state, outcome = mechanism.step(mechanism.start(noise), 0.9, values, noise)
        assert outcome.value == 25 / 80  # the grid is 1/80
        assert outcome.source == "holdout"
        assert outcome.half_width is not None
        assert outcome.half_width < 0.07
        assert state.failures == 1
        _, passed = mechanism.step(state, 0.31, values, noise)
        assert (passed.value, passed.source, passed.half_width) == (0.31, "train", 0.2)

    def test_the_guessing_part_does_not_check(self) -> None:
        """Moving the guessing part moves guesses, and nothing else."""
        mechanism = made(guess=GaussianParameters(1e-9))
        assert mechanism._guessers is not None
        assert mechanism._checkers is not None
        assert mechanism._guessers.size == mechanism.checking == 500
        assert np.array_equal(np.sort(np.r_[mechanism._guessers, mechanism._checkers]), np.arange(1000))
        array = np.full(1000, 0.25)
        array[mechanism._guessers] = 0.75
        noise = SeededNoise(1)
        outcome = mechanism.step(mechanism.start(noise), 0.5, mechanism.read(array, 1000, UNIT, "v"), noise)[1]
        assert outcome.value == 0.25
        array[mechanism._checkers] = 0.74
        outcome = mechanism.step(mechanism.start(noise), 0.5, mechanism.read(array, 1000, UNIT, "v"), noise)[1]
        assert outcome.value == pytest.approx(0.75, abs=1e-7)
        assert outcome.half_width == 0.2

    @pytest.mark.parametrize("guess", GUESSES)
    def test_it_stops_before_a_half_width_exceeds_the_tolerance(self, guess: Any) -> None:
        mechanism, noise = made(guess=guess), SeededNoise(2)
        assert mechanism._checkers is not None or guess == "train"
        state, rounds = mechanism.start(noise), 0
        least = mechanism.remaining(state)
        assert least is not None
        array = np.ones(1000)
        if mechanism._checkers is not None:
            array[mechanism._checkers] = 0.0  # every guess is wrong
        values = mechanism.read(array, 1000, UNIT, "v")
        while mechanism.remaining(state):
            state, outcome = mechanism.step(state, 0.0, values, noise)
            rounds += 1
            assert outcome.half_width is not None
            assert outcome.half_width <= 0.2
        with pytest.raises(BudgetExhausted, match="answers from the holdout"):
            mechanism.step(state, 0.0, values, noise)
        assert 2 <= state.failures == rounds <= least

    @pytest.mark.parametrize("queries", [None, 3, 1000])
    def test_what_remains_counts_cheapest_failures(self, queries: int | None) -> None:
        mechanism = made(guess="train", queries=queries)
        state, count = GuessAndCheckState(5, 2, 8.0, ""), 0 if queries is None or queries > 5 else -3
        expected = mechanism.remaining(state)
        least = min(mechanism._level_nats(level, 0, 40.0) for level in range(mechanism._intervals + 1))
        while count >= 0 and mechanism._affordable(mechanism._nats(state)):
            state = GuessAndCheckState(state.asked + 1, state.failures + 1, state.nats + least, "")
            count += 1
        assert expected == max(count, 0)

    def test_declared_questions(self) -> None:
        mechanism, noise = made(queries=2), SeededNoise(1)
        values = mechanism.read([0.5] * 1000, 1000, UNIT, "v")
        state = mechanism.start(noise)
        for _ in range(2):
            state, _ = mechanism.step(state, 0.5, values, noise)
        with pytest.raises(BudgetExhausted, match="all 2 questions"):
            mechanism.step(state, 0.5, values, noise)

    def test_noise_shrinks_as_the_check_gets_stricter(self) -> None:
        mechanism = made(n=20_000, tolerance=0.1)
        noises = [mechanism._affordable_noise(nats) for nats in (0.0, 20.0, 60.0, 150.0)]
        assert noises == sorted(noises, reverse=True)
        room = (0.1 - mechanism._bounds.radius(20.0)) / 4
        assert noises[1] == pytest.approx(math.sqrt(room**2 - 0.25 / 10_000 - 0.25 / 10_000))
        assert noises[-1] == 0.001


class TestGroups:
    def test_groups_stay_whole(self) -> None:
        labels = np.repeat(np.arange(100), 20)
        mechanism = made(n=2000, labels=labels, tolerance=0.4)
        assert mechanism._guessers is not None
        assert mechanism._checkers is not None
        assert not set(labels[mechanism._guessers]) & set(labels[mechanism._checkers])
        assert mechanism._bounds.inflation == pytest.approx(20.0)
        assert not mechanism._bounds.independent

    def test_unequal_groups_count_by_their_squares(self) -> None:
        labels = ["a"] * 90 + [str(k) for k in range(910)]
        mechanism = made(n=1000, labels=labels, guess="train", tolerance=0.4)
        assert mechanism._bounds.inflation == pytest.approx((90**2 + 910) / 1000)

    def test_names_do_not_matter(self) -> None:
        names = made(n=1000, labels=[f"x{k % 70}" for k in range(1000)], tolerance=0.5, guess="train")
        numbers = made(n=1000, labels=[-(k % 70) for k in range(1000)], tolerance=0.5, guess="train")
        assert names._bounds.inflation == numbers._bounds.inflation
