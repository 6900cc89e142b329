"""The sparse vector as a state machine; its privacy is tested in tests/statistical/test_mechanism_privacy.py."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from tests.oracles.noise_doubles import LaplaceOnly
from thresholdout.data.values import BLOCK
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import (
    DWORK_RATIOS,
    Mechanism,
    NoiseRatios,
    SparseVectorMechanism,
    SparseVectorParameters,
    SparseVectorState,
    interaction_epsilon,
    mean_error,
    noise_slack,
)
from thresholdout.noise.sources import SeededNoise


class Scripted(LaplaceOnly):
    """Noise that is given in advance, and the scales that were asked for."""

    for_release = False

    def __init__(self, draws: list[int]) -> None:
        self.draws = iter(draws)
        self.scales: list[Fraction] = []

    def laplace(self, scale: Fraction) -> int:
        self.scales.append(scale)
        return next(self.draws)


def parameters(**changes: Any) -> SparseVectorParameters:
    values: dict[str, Any] = {
        "threshold": 0.25,
        "noise_scale": 2**-10,
        "budget": 3,
        "queries": 20,
        "grid": None,
    }
    return SparseVectorParameters(**values | changes)


units = st.floats(0, 1)
ONE = 2**50  # of noise scale 2**-10


class TestParameters:
    @for_each("value", [0.0, -0.1, math.inf, -math.inf, math.nan, 2e6, "0.1", True])
    @for_each("name", ["threshold", "noise_scale"])
    def test_scales_are_positive_and_sane(self, name: str, value: object) -> None:
        with pytest.raises(InputError, match=f"^{name} must be a.*; got {value!r}"):
            parameters(**{name: value})

    @for_each("name", ["threshold", "noise_scale", "grid"])
    @for_each("value", [[0.1], 1j, object()])
    def test_types(self, name: str, value: object) -> None:
        with pytest.raises(InputTypeError, match=name):
            parameters(**{name: value})

    def test_the_smallest_and_the_largest_noise(self) -> None:
        assert parameters(noise_scale=1e-12).noise_scale == 1e-12
        assert parameters(noise_scale=1e6).noise_scale == 1e6
        with pytest.raises(InputError, match="noise_scale"):
            parameters(noise_scale=9.99e-13)

    @for_each("name", ["budget", "queries"])
    def test_counts(self, name: str) -> None:
        for value in (0, -3):
            with pytest.raises(InputError, match=f"{name} must be .*; got {value}"):
                parameters(**{name: value})
        for other in (2.5, "2", True):
            with pytest.raises(InputTypeError, match=name):
                parameters(**{name: other})
        assert getattr(parameters(**{name: None}), name) is None

    @for_each("levels", [2, 3, 4, 8, 50, 101, 1001, 10**6, 2**30 + 1])
    def test_grids(self, levels: int) -> None:
        assert parameters(grid=1 / (levels - 1)).levels == levels
        assert parameters(grid=float(f"{1 / (levels - 1):.12g}")).grid == 1 / (levels - 1)

    @for_each("grid", [0.0, -0.5, 0.3, 0.7, 2.0, 1e-12, 5e-324, math.nan, math.inf, True])
    def test_grids_that_are_none(self, grid: float) -> None:
        with pytest.raises(InputError, match="grid"):
            parameters(grid=grid)

    @for_each("ratio", [0.0, -1.0, 65.0, 0.01, math.nan])
    def test_ratios(self, ratio: float) -> None:
        with pytest.raises(InputError, match="ratios"):
            parameters(ratios=NoiseRatios(1, ratio, 4))

    def test_they_are_values(self) -> None:
        assert parameters(grid=0.01) == parameters(grid=0.01)
        assert hash(parameters(budget=np.int64(3))) == hash(parameters())
        with pytest.raises(AttributeError):
            parameters().budget = 4  # type: ignore[misc]


class TestScales:
    @for_each("scale", [1e-12, 0.001, 0.0099999, 2**-10, 0.3, 1.0, 1e6])
    def test_resolution_is_a_power_of_two_far_below_the_scale(self, scale: float) -> None:
        resolution = SparseVectorMechanism(parameters(noise_scale=scale)).resolution
        assert math.frexp(resolution)[0] == 0.5
        assert 2**40 <= Fraction(scale) / Fraction(resolution) < 2**41

    def test_each_noise_has_its_scale(self) -> None:
        """Threshold 1, test 2, answer 4 times sigma, in the order test, answer, new threshold."""
        mechanism = SparseVectorMechanism(parameters(noise_scale=0.001, threshold=0.1))
        sigma = Fraction(0.001) / Fraction(mechanism.resolution)
        noise = Scripted([0] * 5)
        state = mechanism.start(noise)
        state, _ = mechanism.step(state, 0.5, 0.5, noise)
        mechanism.step(state, 0.5, 0.9, noise)
        assert noise.scales == [sigma, 2 * sigma, 2 * sigma, 4 * sigma, sigma]

    def test_other_ratios(self) -> None:
        mechanism = SparseVectorMechanism(parameters(noise_scale=2**-10, ratios=NoiseRatios(2, 4, 1)))
        noise = Scripted([0] * 4)
        mechanism.step(mechanism.start(noise), 0.5, 0.9, noise)
        assert noise.scales == [2**41, 2**42, 2**40, 2**41]


class TestStep:
    def test_a_gap_above_the_noisy_threshold_is_answered_from_the_holdout(self) -> None:
        """gap 0.25, T = 0.25: |h - t| + gamma > T + delta iff gamma > delta, to the last integer."""
        mechanism = SparseVectorMechanism(parameters())
        for gamma, source in ((6, "train"), (7, "train"), (8, "holdout")):
            noise = Scripted([7, gamma, 0, 0])
            _, outcome = mechanism.step(mechanism.start(noise), 0.5, 0.75, noise)
            assert outcome.source == source
            assert outcome.value == (0.5 if source == "train" else 0.75)

    @for_each("train", [0.0, 0.1, 1 / 3, 1.0])
    def test_a_train_answer_is_the_train_value_and_leaves_the_threshold(self, train: float) -> None:
        mechanism = SparseVectorMechanism(parameters())
        noise = Scripted([123, 0])
        before = mechanism.start(noise)
        after, outcome = mechanism.step(before, train, train, noise)
        assert (outcome.value, outcome.source, outcome.hits, outcome.asked) == (train, "train", 0, 1)
        assert after == SparseVectorState(before.threshold, 0, 1)

    def test_a_holdout_answer_redraws_the_threshold_and_counts(self) -> None:
        mechanism = SparseVectorMechanism(parameters())
        noise = Scripted([123, 0, 2**40, -99])
        after, outcome = mechanism.step(mechanism.start(noise), 0.0, 0.5, noise)
        assert (outcome.value, outcome.source, outcome.hits, outcome.asked) == (0.5 + 2**-10, "holdout", 0, 1)
        assert after == SparseVectorState(ONE // 4 - 99, 1, 1)

    @for_each(("noise", "value"), [(ONE, 1.0), (-ONE, 0.0), (ONE // 4, 0.75), (1 - ONE // 2, 2**-50)])
    def test_answers_are_clipped(self, noise: int, value: float) -> None:
        mechanism = SparseVectorMechanism(parameters())
        script = Scripted([0, 0, noise, 0])
        assert mechanism.step(mechanism.start(script), 0.0, 0.5, script)[1].value == value

    @given(st.integers(2, 200), st.integers(-2 * ONE, 2 * ONE), units)
    def test_answers_lie_on_the_grid_and_no_nearer_point_exists(self, levels: int, xi: int, holdout: float) -> None:
        mechanism = SparseVectorMechanism(parameters(grid=1 / (levels - 1), threshold=1e-6))
        script = Scripted([-ONE, 0, xi, 0])
        _, outcome = mechanism.step(mechanism.start(script), 0.0, holdout, script)
        assert outcome.source == "holdout"
        points = [k / (levels - 1) for k in range(levels)]
        noisy = min(max(Fraction(round(Fraction(holdout) * ONE) + xi, ONE), Fraction(0)), Fraction(1))
        nearest = min(abs(noisy - Fraction(k, levels - 1)) for k in range(levels))
        k = points.index(outcome.value)
        assert abs(noisy - Fraction(k, levels - 1)) == nearest

    def test_no_more_values_than_declared(self) -> None:
        """The transcript certificate counts them."""
        mechanism = SparseVectorMechanism(
            parameters(grid=0.1, threshold=1e-6, budget=None, queries=None, noise_scale=1.0)
        )
        noise = SeededNoise(3)
        state, values = mechanism.start(noise), set()
        for _ in range(3000):
            state, outcome = mechanism.step(state, 0.0, 0.7, noise)
            if outcome.source == "holdout":
                values.add(outcome.value)
        assert values == {k / 10 for k in range(11)}

    @for_each("scale", [1e-12, 1e6])
    def test_the_extremes_of_the_noise_work(self, scale: float) -> None:
        mechanism = SparseVectorMechanism(parameters(noise_scale=scale))
        noise = SeededNoise(1)
        state = mechanism.start(noise)
        for holdout in (0.0, 1.0, 0.1):
            state, outcome = mechanism.step(state, 1 / 3, holdout, noise)
            assert 0 <= outcome.value <= 1


class TestLimits:
    def test_budget(self) -> None:
        mechanism = SparseVectorMechanism(parameters(budget=1))
        noise = Scripted([0] * 4)
        state, _ = mechanism.step(mechanism.start(noise), 0.0, 1.0, noise)
        for train in (0.0, 1.0):
            with pytest.raises(BudgetExhausted) as caught:
                mechanism.step(state, train, 1.0, noise)
            assert (caught.value.what, caught.value.spent, caught.value.limit) == ("budget", 1, 1)
        assert len(noise.scales) == 4

    def test_queries(self) -> None:
        mechanism = SparseVectorMechanism(parameters(queries=1))
        noise = Scripted([0] * 2)
        state, _ = mechanism.step(mechanism.start(noise), 1.0, 1.0, noise)
        with pytest.raises(BudgetExhausted) as caught:
            mechanism.step(state, 1.0, 1.0, noise)
        assert (caught.value.what, caught.value.spent, caught.value.limit) == ("queries", 1, 1)
        assert len(noise.scales) == 2

    @for_each("value", [-1e-9, 1.0000001, math.nan, math.inf])
    def test_values_out_of_range_touch_no_noise(self, value: float) -> None:
        mechanism = SparseVectorMechanism(parameters())
        noise = Scripted([0])
        state = mechanism.start(noise)
        with pytest.raises(InputError, match=r"^train must be a number in \[0, 1\]"):
            mechanism.step(state, value, 0.5, noise)
        with pytest.raises(InputError, match=r"^holdout") as caught:
            mechanism.step(state, 0.5, value, noise)
        assert str(value) not in str(caught.value)
        assert len(noise.scales) == 1


class TestState:
    @given(st.integers(-(2**90), 2**90), st.integers(0, 10**9), st.integers(0, 10**9))
    def test_text_round_trip(self, threshold: int, hits: int, more: int) -> None:
        state = SparseVectorState(threshold, hits, hits + more)
        assert SparseVectorState.from_text(state.to_text()) == state
        assert SparseVectorMechanism(parameters()).restore(state.to_text()) == state

    @for_each(
        "text",
        ["", "x", "sparse-vector/1 731 0",
         "sparse-vector/2 731 0 0", "sparse-vector/1 731 2 1", "sparse-vector/1 731 -1 1",
         "sparse-vector/1 731 0 0 0", "sparse-vector/1 7.31 0 0"],
    )  # fmt: skip
    def test_other_texts_are_refused_and_not_shown(self, text: str) -> None:
        with pytest.raises(InputError, match="state") as caught:
            SparseVectorState.from_text(text)
        assert "731" not in str(caught.value)

    def test_the_threshold_is_not_shown(self) -> None:
        assert "731" not in repr(SparseVectorState(731, 0, 0)) + str(SparseVectorState(731, 0, 0))


class TestProperties:
    @given(
        st.integers(0, 2**32),
        st.lists(st.tuples(units, units), max_size=25),
        st.integers(1, 4),
        st.integers(1, 15),
        st.sampled_from([None, 0.01, 0.5]),
        st.sampled_from([2**-10, 0.05, 1.0]),
    )
    def test_any_interaction(
        self,
        seed: int,
        queries: list[tuple[float, float]],
        budget: int,
        limit: int,
        grid: float | None,
        scale: float,
    ) -> None:
        """Steps are pure, the budget never grows, train answers leave the threshold, states survive their text."""
        mechanism = SparseVectorMechanism(parameters(budget=budget, queries=limit, grid=grid, noise_scale=scale))
        noise, again = SeededNoise(seed), SeededNoise(seed)
        state, twin = mechanism.start(noise), mechanism.start(again)
        for train, holdout in queries:
            before = state.to_text()
            try:
                state, outcome = mechanism.step(state, train, holdout, noise)
            except BudgetExhausted:
                assert state.hits == budget or state.asked == limit
                assert state.to_text() == before
                continue
            old = mechanism.restore(before)
            assert state.asked == old.asked + 1 == outcome.asked <= limit
            assert old.hits == outcome.hits < budget
            if outcome.source == "train":
                assert (outcome.value, state.hits, state.threshold) == (train, old.hits, old.threshold)
            else:
                assert state.hits == old.hits + 1
                assert 0 <= outcome.value <= 1
            twin, same = mechanism.step(mechanism.restore(twin.to_text()), train, holdout, again)
            assert (twin, same) == (state, outcome)

    @given(units, units, st.integers(-ONE, ONE), st.integers(-ONE, ONE), st.integers(-ONE, ONE))
    def test_errors_stay_within_the_formulas_and_the_slack(
        self, train: float, holdout: float, delta: int, gamma: int, xi: int
    ) -> None:
        """With the drawn integers as noises, less than the slack is left for the coupling with continuous ones."""
        chosen = parameters(grid=0.01)
        mechanism = SparseVectorMechanism(chosen)
        script = Scripted([delta, gamma, xi, 0])
        _, outcome = mechanism.step(mechanism.start(script), train, holdout, script)
        error = abs(Fraction(outcome.value) - Fraction(holdout))
        step = Fraction(mechanism.resolution)
        if outcome.source == "train":
            bound = Fraction(0.25) + step * (delta - gamma)
            coupling = 2 * step
        else:
            bound = abs(xi) * step + Fraction(1, 200)
            coupling = step / 2
        assert error <= bound + Fraction(mechanism.noise_slack(1000)) - coupling - mean_error(1000)


class TestEpsilon:
    @for_each("n", [1, 10, 10_000, 10**6, 10**8])
    @for_each("scale", [0.3, 0.01, 0.0001])
    @for_each("budget", [1, 10])
    def test_just_above_the_formula(self, n: int, scale: float, budget: int) -> None:
        """9 B / (4 n sigma) of [Z17, Algorithm 1], plus what arithmetic costs."""
        claim = interaction_epsilon(n, scale, budget)
        formula = Fraction(9 * budget) / (4 * n * Fraction(scale))
        arithmetic = 2 * n * (min(n, BLOCK) + 3) * Fraction(1, 2**53) + n * Fraction(scale) / 2**40
        assert formula < Fraction(claim) <= formula * (1 + arithmetic) * (1 + Fraction(1, 2**52))

    def test_worked(self) -> None:
        """sigma = 2**-10, n = 4: 2**50/4 + tiny error of the mean + rounding = 2**48 + 2 steps of 2**-50."""
        moved = 2**48 + 1 + math.floor(2 * Fraction(4 + 3, 2**53) * 2**50)
        exact = 5 * moved * (Fraction(1, 2**40) + Fraction(2, 2**41) + Fraction(1, 2**42))
        assert interaction_epsilon(4, 2**-10, 5) == float(exact)

    def test_ratios(self) -> None:
        """[D15]: 2, 4, 1 cost 1/2 + 2/4 + 1 = 2 instead of 9/4."""
        assert NoiseRatios(2, 4, 1) == DWORK_RATIOS
        ratio = interaction_epsilon(100, 0.01, 3, DWORK_RATIOS) / interaction_epsilon(100, 0.01, 3)
        assert ratio == pytest.approx(8 / 9, rel=1e-12)

    def test_method_and_function_agree(self) -> None:
        mechanism: Mechanism[SparseVectorState, float] = SparseVectorMechanism(parameters())
        assert mechanism.epsilon(77) == interaction_epsilon(77, 2**-10, 3)
        assert mechanism.noise_slack(77) == noise_slack(77, 2**-10)

    def test_without_a_budget_there_is_no_bound(self) -> None:
        assert SparseVectorMechanism(parameters(budget=None)).epsilon(100) == math.inf

    @for_each(
        ("arguments", "name"),
        [
            ((0, 0.1, 1), "n"),
            ((1, 0.0, 1), "noise_scale"),
            ((1, math.nan, None), "noise_scale"),
            ((1, 0.1, 0), "budget"),
        ],
    )
    def test_refuses(self, arguments: tuple[int, float, int | None], name: str) -> None:
        with pytest.raises(InputError, match=f"^{name} must be"):
            interaction_epsilon(*arguments)


def test_noise_slack_is_four_steps_and_the_mean_error() -> None:
    exact = Fraction(4, 2**50) + Fraction(1003, 2**53) + Fraction(1, 2**52)
    assert noise_slack(1000, 2**-10) == float(exact)


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_draws_per_step_depend_on_the_source_alone(hits: list[bool]) -> None:
    """How much noise is used tells nothing beyond what is released: one draw, and two more for a hit."""
    mechanism = SparseVectorMechanism(parameters(budget=None))
    noise = Scripted([0] * 40)
    state = mechanism.start(noise)
    used = [len(noise.scales)]
    for hit in hits:
        state, _ = mechanism.step(state, 0.0, 1.0 if hit else 0.0, noise)
        used.append(len(noise.scales))
    assert [b - a for a, b in itertools.pairwise(used)] == [3 if hit else 1 for hit in hits]
