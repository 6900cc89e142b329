"""Conservative rounding, against exact fractions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.numerics.rounding import (
    ULP,
    UNIT,
    Form,
    charges,
    down,
    down_relative,
    fitting_decimals,
    formula_up,
    shown_above,
    shown_answer,
    shown_around,
    shown_below,
    shown_interval,
    up,
    up_relative,
    upward_sum,
)

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


NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=False)
FORMS: st.SearchStrategy[Form] = st.sampled_from(["g", "+g", "f", "+f"])


def contained(words: str, value: float, low: float, high: float) -> bool:
    """Whether the interval that is written contains both the real one and the one of equal sides, by exact fractions.

    The bounds are the decimal numbers that their floats are written as.
    """
    middle, width = map(Fraction, words.split(" ± "))
    exact, least, most = (Fraction(repr(number)) for number in (value, low, high))
    side = max(exact - least, most - exact)
    return middle - width <= exact - side <= least and most <= exact + side <= middle + width


def nearest(value: float, low: float, high: float, digits: int, form: Form) -> str:
    """Return the same in words as they were: both numbers rounded to the nearest."""
    width = max(value - low, high - value)
    return f"{value:{form[:-1]}.{digits}{form[-1]}} ± {width:{form[:-1]}.{digits}{form[-1]}}"


class TestWords:
    @given(NUMBERS, st.integers(1, 8), FORMS)
    def test_bounds_in_words_are_bounds(self, number: float, digits: int, form: Form) -> None:
        exact = Fraction(repr(number))
        above, below = (Fraction(shown(number, digits, form)) for shown in (shown_above, shown_below))
        size = 0 if number == 0.0 else Decimal(repr(number)).adjusted()
        step = Fraction(10) ** -digits if "f" in form else Fraction(10) ** (size - digits + 1)
        assert exact <= above < exact + step
        assert exact - step < below <= exact

    @pytest.mark.slow
    @given(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), st.integers(1, 8), FORMS)
    def test_a_shown_interval_contains_the_real_one(self, ends: list[float], digits: int, form: Form) -> None:
        low, value, high = ends
        assert contained(shown_around(value, low, high, digits, digits, form), value, low, high)

    @pytest.mark.slow
    @given(st.lists(st.integers(0, 10**6), min_size=3, max_size=3).map(sorted))
    def test_shares_are_shown_no_wider_than_it_takes(self, millionths: list[int]) -> None:
        """With four digits after the point, the width grows by half a unit for the value, and by less than one."""
        low, value, high = (count / 1e6 for count in millionths)
        words = shown_around(value, low, high, 4, 4, "f")
        assert contained(words, value, low, high)
        side = Fraction(max(millionths[1] - millionths[0], millionths[2] - millionths[1]), 10**6)
        assert Fraction(words.split(" ± ")[1]) < side + Fraction(3, 2 * 10**4)

    @given(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), NUMBERS, st.booleans())
    def test_answers_contain_their_intervals_and_no_number_apart(
        self, ends: list[float], apart: float, signed: bool
    ) -> None:
        low, value, high = ends
        assert contained(shown_answer(value, low, high, signed=signed), value, low, high)
        _, below, above = shown_interval(value, low, high, signed=signed, apart=apart)
        assert Fraction(below) <= Fraction(repr(low))
        assert Fraction(above) >= Fraction(repr(high))
        if max(abs(low), abs(high)) < 1e7 and (apart < low - 1e-9 or apart > high + 1e-9):
            assert not Fraction(below) <= Fraction(repr(apart)) <= Fraction(above)

    def test_answers_have_the_decimals_of_their_half_width(self) -> None:
        assert shown_answer(0.97, 0.952, 0.988) == "0.970 ± 0.018"
        assert shown_answer(0.81734, 0.755, 0.8797) == "0.817 ± 0.063"  # .06236, and .00034 for the rounded value
        assert shown_answer(2e9, 1e9, 3e9) == "2e+09 ± 1e+09"
        assert shown_interval(0.07, 0.003825, 0.1362, signed=True, apart=0.0) == ("+0.070", "+0.003", "+0.137")
        assert shown_interval(0.07, 0.0004, 0.1396, signed=True, apart=0.0) == ("+0.0700", "+0.0004", "+0.1396")
        assert shown_interval(-0.07, -0.1396, -0.0004, apart=0.0) == ("-0.0700", "-0.1396", "-0.0004")

    def test_nearest_rounding_is_caught(self) -> None:
        assert not contained(nearest(0.84, 0.7151, 0.9649, 2, "g"), 0.84, 0.7151, 0.9649)
        assert shown_around(0.84, 0.7151, 0.9649) == "0.84 ± 0.13"
        # the width alone is rounded up, and the value moved away from its lower end
        assert not contained("0.9216 ± 0.0500", 0.92155, 0.87155, 0.95)
        assert shown_around(0.92155, 0.87155, 0.95, 4, 4, "f") == "0.9216 ± 0.0501"

    def test_half_widths_have_two_digits(self) -> None:
        """The wider side decides; finite limits may be further apart than the largest number."""
        for side, decimals in ((0.1, 2), (0.099, 3), (0.00123, 4), (12.0, 0), (1e-30, 12), (0.0, 6), (1.7e308, 0)):
            assert fitting_decimals(0.0, -side, side / 2) == decimals
        assert fitting_decimals(1.7e308, -1.7e308, 1.7e308) == 0

    def test_what_is_no_number_and_what_has_no_end(self) -> None:
        assert shown_around(0.5, -math.inf, math.inf) == "0.5 ± inf"
        assert shown_above(math.inf, 4, "f") == "inf"
        assert shown_below(-math.inf) == "-inf"
        assert shown_above(math.nan) == "nan"
        assert shown_around(0.5, 0.4, math.nan) == "0.5 ± nan"
        for value, low, high in ((math.nan, 0.0, 1.0), (9999999.0, math.nan, 9999999.5), (0.5, 0.4, math.nan)):
            assert shown_answer(value, low, high).endswith(" ± nan")
            assert "nan" in shown_interval(value, low, high, apart=0.0)
