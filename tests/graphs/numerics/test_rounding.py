"""Rounding to the safe side, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphs.numerics.rounding import ULP, UNIT, charges, down, down_relative, formula_up, up, up_relative, upward_sum

EXACT_UNIT = Fraction(1, 2**53)
RELATIVE = Fraction(1, 10**14)
NORMAL = st.floats(1e-290, 1e300)


def test_units() -> None:
    assert Fraction(UNIT) == EXACT_UNIT
    assert math.nextafter(1.0, 2.0) - 1.0 == ULP == 2 * UNIT == math.ulp(1.0)


@given(NORMAL, st.integers(0, 10**6))
def test_counted_roundings_are_covered(value: float, operations: int) -> None:
    """Rounded the same way k times, a value is off by a factor in [1 - k u, 1/(1 - k u)]: (1 + u)^k <= 1/(1 - k u)."""
    exact, error = Fraction(value), (operations + 1) * EXACT_UNIT
    raised, lowered = Fraction(up(value, operations)), Fraction(float(down(np.array(value), operations)))
    assert exact / (1 - error) <= raised <= exact * (1 + 2 * (operations + 4) * EXACT_UNIT)
    assert exact * (1 - 2 * (operations + 4) * EXACT_UNIT) <= lowered <= exact * (1 - error)


@given(NORMAL)
def test_a_formula_gets_the_fortieth_power(value: float) -> None:
    assert formula_up(value) == value * (1.0 + 2.0**-40)
    assert Fraction(formula_up(value)) > Fraction(value) / (1 - 4000 * EXACT_UNIT)


@given(st.lists(st.floats(0.0, 1e280), min_size=1, max_size=50))
def test_sums_are_not_below_the_exact_ones(values: list[float]) -> None:
    counts = np.arange(1, len(values) + 1)
    assert Fraction(upward_sum(np.array(values))) >= sum(map(Fraction, values)) * (1 - Fraction(1, 10**300))
    exact = sum(int(count) * Fraction(value) for count, value in zip(counts, values, strict=True))
    assert Fraction(upward_sum(np.array(values), counts)) >= exact * (1 - Fraction(1, 10**300))


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=50).filter(any))
def test_charges_are_integers_that_are_not_below(epsilon: list[float]) -> None:
    amounts, unit = charges(np.array(epsilon))
    assert sum(map(int, amounts)) < 2**62
    assert math.frexp(unit)[0] == 0.5
    assert all(int(amount) * Fraction(unit) >= Fraction(one) for amount, one in zip(amounts, epsilon, strict=True))


class TestUpAndDown:
    @given(st.floats(1e-290, 1e300))
    def test_they_move_by_a_hundred_trillionth_and_a_spacing_at_most(self, value: float) -> None:
        exact = Fraction(value)
        assert exact * (1 + RELATIVE) <= Fraction(up_relative(value)) <= exact * (1 + RELATIVE + 4 * EXACT_UNIT)
        assert exact * (1 - RELATIVE - 4 * EXACT_UNIT) <= Fraction(down_relative(value)) <= exact * (1 - RELATIVE)

    def test_without_a_relative_error_they_are_the_neighbours(self) -> None:
        assert up_relative(1.0, 0.0) == 1.0 + 2.0**-52
        assert down_relative(1.0, 0.0) == 1.0 - 2.0**-53

    def test_at_the_ends(self) -> None:
        assert up_relative(0.0) == 5e-324
        assert down_relative(0.0) == down_relative(5e-324) == 0.0
        assert up_relative(math.inf) == math.inf
