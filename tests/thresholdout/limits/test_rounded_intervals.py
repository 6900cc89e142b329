"""Ends of intervals are rounded outwards, and half-widths upwards; exact fractions say how far."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from thresholdout.limits.rounded_intervals import interval_around, larger_side

numbers = st.floats(-1e6, 1e6)
widths = st.floats(0.0, 1e6)


@given(numbers, widths)
def test_ends_are_outside_and_at_most_one_step_further(value: float, half_width: float) -> None:
    low, high = interval_around(value, half_width, -math.inf, math.inf)
    assert Fraction(low) <= Fraction(value) - Fraction(half_width) <= Fraction(math.nextafter(low, math.inf))
    assert Fraction(math.nextafter(high, -math.inf)) <= Fraction(value) + Fraction(half_width) <= Fraction(high)


@given(numbers, numbers, widths)
def test_the_larger_side_reaches_both_ends(value: float, low: float, width: float) -> None:
    high = low + width
    side = Fraction(larger_side(value, low, high))
    exact = max(Fraction(high) - Fraction(value), Fraction(value) - Fraction(low))
    assert exact <= side
    assert math.nextafter(float(side), -math.inf) < exact


@given(st.floats(0.0, 1.0), st.floats(0.0, allow_nan=False))
def test_an_interval_stays_in_its_range(value: float, half_width: float) -> None:
    low, high = interval_around(value, half_width, 0.0, 1.0)
    assert 0.0 <= low <= value <= high <= 1.0
    if half_width >= 1.0:
        assert (low, high) == (0.0, 1.0)


def test_sums_that_are_exact_stay_as_they_are() -> None:
    assert interval_around(0.5, 0.25, 0.0, 1.0) == (0.25, 0.75)
    assert larger_side(0.5, 0.25, 0.625) == 0.25
