"""Rounding to the safe side: against exact arithmetic, and to the last unit where numbers are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.numerics.rounding import FUNCTION_ULPS, UNIT, charges, down, up, upward_sum

EXACT_UNIT = Fraction(1, 2**53)
sizes = st.floats(1e-300, 1e300)


def test_a_unit_is_half_the_spacing_above_one_and_functions_are_off_by_four_spacings() -> None:
    assert Fraction(UNIT) == EXACT_UNIT == Fraction(float(np.spacing(1.0))) / 2
    assert 4 * np.spacing(1.0) == FUNCTION_ULPS * UNIT


class TestUpAndDown:
    @given(sizes, st.integers(0, 1000))
    def test_as_many_roundings_stay_on_the_safe_side(self, value: float, operations: int) -> None:
        """A value that came out too small, and one that came out too large, by a unit in each of the operations."""
        assert Fraction(up(value, operations)) * (1 - EXACT_UNIT) ** operations >= Fraction(value)
        reduced = Fraction(float(down(np.array(value), operations)))
        assert 0 < reduced * (1 + EXACT_UNIT) ** operations <= Fraction(value)

    @pytest.mark.parametrize(("operations", "units"), [(0, 4), (1, 6), (6, 16), (98, 200)])
    def test_they_move_by_two_units_for_each_operation_and_four(self, operations: int, units: int) -> None:
        assert Fraction(up(1.0, operations)) == 1 + units * EXACT_UNIT
        assert Fraction(float(down(np.array(1.0), operations))) == 1 - units * EXACT_UNIT

    def test_one_call_of_a_function_is_expected(self) -> None:
        assert up(1.0) == 1.0 + 20 * 2.0**-53
        assert down(np.array(1.0)) == 1.0 - 20 * 2.0**-53

    def test_arrays_are_rounded_number_by_number(self) -> None:
        assert up(np.array([1.0, 4.0]), 2).tolist() == [1.0 + 8 * 2.0**-53, 4.0 + 32 * 2.0**-53]


class TestUpwardSum:
    @given(st.lists(st.tuples(sizes.map(lambda value: min(value, 1e290)), st.integers(0, 2**20)), min_size=1))
    def test_it_is_above_the_exact_sum(self, terms: list[tuple[float, int]]) -> None:
        values, counts = (np.array(column) for column in zip(*terms, strict=True))
        assert Fraction(upward_sum(values)) >= sum(map(Fraction, values.tolist()))
        exact = sum(Fraction(value) * count for value, count in terms)
        assert exact <= Fraction(upward_sum(values, counts)) <= exact * (1 + (4 * len(terms) + 10) * EXACT_UNIT)

    @pytest.mark.parametrize(("size", "units"), [(1, 10), (4, 16), (64, 136)])
    def test_it_counts_the_terms_and_two(self, size: int, units: int) -> None:
        """Each count is enlarged as by `up`."""
        assert upward_sum(np.ones(size)) == size * (1 + units * 2.0**-53)
        assert upward_sum(np.full(size, 0.25), np.full(size, 8)) == 2 * size * (1 + units * 2.0**-53)


class TestCharges:
    @given(st.lists(st.floats(0.0, 1e300), min_size=1).filter(any))
    def test_whole_amounts_are_not_below_the_budgets_and_below_the_next_unit(self, budgets: list[float]) -> None:
        epsilon = np.array(budgets)
        amounts, unit = charges(epsilon)
        for amount, exact in zip(amounts.tolist(), map(Fraction, budgets), strict=True):
            assert exact <= amount * Fraction(unit) < exact + Fraction(unit)
        assert sum(amounts.tolist()) < 2**62

    @pytest.mark.parametrize("largest", [1e-200, 0.3, 1.0, 1e5, 1e200])
    @pytest.mark.parametrize("size", [1, 2, 3, 1000])
    def test_as_many_of_the_largest_are_sixty_bits(self, largest: float, size: int) -> None:
        amounts, unit = charges(np.array([largest] + [0.0] * (size - 1)))
        assert 2**59 <= Fraction(largest) * size / Fraction(unit) < 2**60
        assert Fraction(unit).numerator == 1 or Fraction(unit).denominator == 1
        assert amounts[1:].tolist() == [0] * (size - 1)

    def test_units_are_normal_numbers_of_which_the_smallest_budget_takes_one(self) -> None:
        amounts, unit = charges(np.array([5e-324, 0.0]))
        assert unit == 2.0**-1000
        assert amounts.tolist() == [1, 0]
