"""The Gaussian guard as a state machine; its noise is tested in test_gaussian_noise.py."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from thresholdout.data.unit_sums import UnitSums
from thresholdout.data.values import ExactMean, UnitRecords, record_bits, record_rounding, unit_records
from thresholdout.errors import BudgetExhausted, InputError, InputTypeError
from thresholdout.mechanisms import GaussianGuard, GaussianParameters, GaussianState, NoiseSchedule
from thresholdout.noise.sources import SeededNoise

UNIT = (0.0, 1.0)


def mean(values: list[float]) -> Fraction:
    total = Fraction(0)
    for value in values:
        total += Fraction(value)
    return total / len(values)


class Scripted:
    """Noise in standard deviations given in advance, and what was asked for."""

    for_release = False

    def __init__(self, draws: list[Fraction]) -> None:
        self.draws = iter(draws)
        self.asked: list[tuple[Fraction, Fraction]] = []

    def laplace(self, scale: Fraction) -> int:
        raise AssertionError("no Laplace noise here")

    def rounded_gaussian(self, centre: Fraction, scale: Fraction) -> int:
        self.asked.append((centre, scale))
        return (centre + scale * next(self.draws) + Fraction(1, 2)).__floor__()

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        raise AssertionError("no coins here")


class TestSchedules:
    @pytest.mark.parametrize(
        "scales", [0.0, -1.0, float("nan"), float("inf"), 2e6, [0.1, 0.0], [[0.1]], [], True, "0.1"]
    )
    def test_scales_out_of_range(self, scales: object) -> None:
        with pytest.raises(InputError, match=r"^scales:"):
            NoiseSchedule(scales)  # type: ignore[arg-type]

    def test_types(self) -> None:
        with pytest.raises(InputTypeError, match=r"^scales:"):
            NoiseSchedule(object())  # type: ignore[arg-type]

    @given(st.one_of(st.floats(1e-9, 1e6), st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=50)))
    def test_they_survive_a_ledger_to_the_last_bit(self, scales: float | list[float]) -> None:
        schedule = NoiseSchedule(scales)
        again = NoiseSchedule.from_json(json.loads(json.dumps(schedule.to_json())))
        assert again == schedule
        assert hash(again) == hash(schedule)
        assert schedule.scale(1) == (scales[0] if isinstance(scales, list) else scales)

    def test_a_long_schedule_is_small(self) -> None:
        scales = 0.05 / np.sqrt(1 + np.arange(100_000) / 5000)
        stored = json.dumps(NoiseSchedule(scales).to_json())
        assert len(stored) < 250_000
        assert np.array_equal(NoiseSchedule.from_json(json.loads(stored)).scales(100_000), scales)

    @pytest.mark.parametrize(
        "stored", [{}, {"constant": "x"}, {"packed": "?", "answers": 1}, {"packed": "eJw=", "answers": 1}]
    )
    def test_other_texts_are_refused(self, stored: dict[str, object]) -> None:
        with pytest.raises(InputError, match=r"^schedule:"):
            NoiseSchedule.from_json(stored)

    def test_nobody_can_change_them(self) -> None:
        scales = np.array([0.1, 0.2])
        schedule = NoiseSchedule(scales)
        scales[0] = 5.0
        assert schedule.scale(1) == 0.1
        with pytest.raises(ValueError, match="read-only"):
            schedule.scales(2)[0] = 5.0

    def test_words(self) -> None:
        assert repr(NoiseSchedule([0.3, 0.1])) == "<NoiseSchedule of 2 answers, 0.3 to 0.1>"
        assert NoiseSchedule(0.1) != NoiseSchedule([0.1])
        assert NoiseSchedule(0.1).scales(3).tolist() == [0.1] * 3
        assert NoiseSchedule(0.1) != 0.1


class TestParameters:
    def test_the_schedule_limits_the_questions(self) -> None:
        assert GaussianParameters([0.1, 0.1]).queries == 2
        assert GaussianParameters([0.1, 0.1], queries=1).queries == 1
        assert GaussianParameters(0.1).queries is None
        with pytest.raises(InputError, match="queries: 3; expected: at most 2"):
            GaussianParameters([0.1, 0.1], queries=3)

    @pytest.mark.parametrize("changes", [{"threshold": 0.0}, {"grid": 0.3}, {"queries": 0}, {"queries": 1.5}])
    def test_out_of_range(self, changes: dict[str, float]) -> None:
        with pytest.raises(InputError, match=next(iter(changes))):
            GaussianParameters(0.1, **changes)  # type: ignore[arg-type]


class TestSteps:
    def test_what_is_drawn_is_the_rounded_sum(self) -> None:
        """Mean 2/3 of three records, in steps of 1/10, with the scale of each answer in turn."""
        mechanism = GaussianGuard(GaussianParameters([0.5, 0.25], grid=0.1))
        noise = Scripted([Fraction(0), Fraction(1, 3)])
        values = mechanism.read([True, True, False], 3, UNIT, "holdout_values")
        state, first = mechanism.step(mechanism.start(noise), 0.0, values, noise)
        state, second = mechanism.step(state, 0.0, values, noise)
        assert noise.asked == [(Fraction(20, 3), Fraction(5)), (Fraction(20, 3), Fraction(5, 2))]
        assert [first.value, second.value] == [0.7, 0.8]  # 20/3 + 5/6 = 7.5 goes up
        assert state == GaussianState(2, 2)
        with pytest.raises(BudgetExhausted):
            mechanism.step(state, 0.0, values, noise)

    @pytest.mark.parametrize(("draw", "value"), [(100, 1.0), (-100, 0.0)])
    def test_answers_are_clipped(self, draw: int, value: float) -> None:
        mechanism = GaussianGuard(GaussianParameters(0.1))
        noise = Scripted([Fraction(draw)])
        values = mechanism.read([0.5] * 4, 4, UNIT, "holdout_values")
        assert mechanism.step(mechanism.start(noise), 0.0, values, noise)[1].value == value

    @given(st.floats(0, 1), st.integers(-3, 3))
    def test_the_threshold_looks_at_the_noisy_answer_only(self, train: float, draw: int) -> None:
        plain = GaussianGuard(GaussianParameters(0.125, grid=0.01))
        guarded = GaussianGuard(GaussianParameters(0.125, threshold=0.2, grid=0.01))
        values = plain.read([0.25, 0.75], 2, UNIT, "holdout_values")
        shown = plain.step(GaussianState(0, 0), train, values, Scripted([Fraction(draw)]))[1]
        state, outcome = guarded.step(GaussianState(0, 0), train, values, Scripted([Fraction(draw)]))
        passes = abs(shown.value - train) <= 0.2
        assert (outcome.source, outcome.value) == (("train", train) if passes else ("holdout", shown.value))
        assert state == GaussianState(1, 0 if passes else 1)
        assert guarded.remaining(state) is None

    def test_any_number_of_answers_with_one_scale(self) -> None:
        mechanism, noise = GaussianGuard(GaussianParameters(0.01)), SeededNoise(1)
        state, values = mechanism.start(noise), mechanism.read([0.5] * 10, 10, UNIT, "holdout_values")
        for _ in range(50):
            state, outcome = mechanism.step(state, 0.5, values, noise)
            assert abs(outcome.value - 0.5) < 0.1
        assert state.asked == 50


class TestRecords:
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
    def test_sums_are_exact_in_any_order(self, values: list[float]) -> None:
        records, once = unit_records(values, None, UNIT, "v"), UnitSums(values, None, UNIT, "v").mean
        exact = sum(round(Fraction(value) * 2**records.bits) for value in values)
        assert records.exact_mean().total == once.total == exact
        moved = abs(Fraction(exact, len(values) << records.bits) - mean(values))
        assert moved <= Fraction(record_rounding(len(values)))
        assert records.part(slice(None, None, -1)).exact_mean().total == exact

    @pytest.mark.parametrize("n", [1, 2, 3, 8191, 8192, 8193, 10**6, 10**8, 2**43])
    def test_the_grid_leaves_room_for_the_sum(self, n: int) -> None:
        assert n * 2 ** record_bits(n) <= 2**53
        assert record_bits(n) == 40 or n * 2 ** (record_bits(n) + 1) > 2**53

    def test_many_values(self) -> None:
        n = 100_000
        array = np.random.default_rng(1).random(n)
        array[:50_000] = np.nextafter(1.0, 0.0)
        bits = record_bits(n)
        exact = sum(round(value * 2**bits) for value in array.tolist())
        for total in (UnitSums(array, n, UNIT, "v").mean, unit_records(array, n, UNIT, "v").exact_mean()):
            assert (total.total, total.n, total.bits) == (exact, n, bits)

    def test_a_wrong_value_is_named_where_it_is(self) -> None:
        array = np.full(100_000, 0.5)
        array[70_001] = np.nan
        for read in (UnitSums, unit_records):
            with pytest.raises(InputError, match="v: nan at position 70001; expected"):
                read(array, 100_000, UNIT, "v")
        array[70_001] = -0.0
        assert UnitSums(array, None, UNIT, "v").mean.mean() == 0.499995

    @given(st.lists(st.floats(-3, 7), min_size=1, max_size=30))
    def test_other_ranges(self, values: list[float]) -> None:
        total = UnitSums(values, len(values), (-3.0, 7.0), "v").mean
        assert unit_records(values, len(values), (-3.0, 7.0), "v").exact_mean().total == total.total
        moved = abs(Fraction(total.total, len(values) << total.bits) - (mean(values) + 3) / 10)
        assert moved <= Fraction(record_rounding(len(values)))

    def test_booleans_count(self) -> None:
        values = np.array([True, False, True])
        records = unit_records(values, 3, UNIT, "v")
        assert UnitSums(values, 3, UNIT, "v").mean.total == 2 << records.bits
        values[:] = False
        assert records.exact_mean().total == 2 << records.bits
        assert records.exact_mean().mean() == 2 / 3
        assert records.variance() == pytest.approx(1 / 3)
        assert unit_records([0.0, 1.0, 1.0], 3, UNIT, "v").variance() == pytest.approx(1 / 3)

    def test_nothing_is_shown(self) -> None:
        assert repr(UnitRecords(np.array([True]), 40)) == "<UnitRecords n=1>"
        assert repr(ExactMean(123, 1, 40)) == "<ExactMean n=1>"
