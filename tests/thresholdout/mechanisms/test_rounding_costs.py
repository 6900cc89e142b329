"""What floating point and grids are charged for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.data.values import BLOCK, unit_mean
from thresholdout.errors import InputError
from thresholdout.mechanisms import mean_error
from thresholdout.mechanisms.rounding_costs import integer_sensitivity, round_up

fractions = st.fractions(min_value=0, max_value=1, max_denominator=10**9)


class TestMeanError:
    @pytest.mark.slow
    @for_each("n", [1, 2, 3, 1000, BLOCK, BLOCK + 1, 8 * BLOCK + 1])
    @for_each("kind", ["uniform", "near one", "tiny and large"])
    def test_computed_means_stay_within(self, n: int, kind: str) -> None:
        """Against the exact sum, in integers."""
        rng = np.random.default_rng(n)
        values = {
            "uniform": rng.random(n),
            "near one": 1 - rng.random(n) * 1e-3,
            "tiny and large": rng.random(n) ** 40,
        }[kind]
        exact = Fraction(sum(int(v) for v in np.ldexp(values, 53).astype(np.int64)), n << 53)
        truncated = Fraction(1, 1 << 53)  # of the conversion to integers, at most
        assert abs(Fraction(unit_mean(values, n, (0.0, 1.0), "values")) - exact) <= mean_error(n) + truncated
        if n <= BLOCK:
            assert abs(Fraction(float(values.mean())) - exact) <= mean_error(n) + truncated

    def test_it_covers_the_worst_order(self) -> None:
        """One by one, each addition rounding by up to half a unit: the worst order of a block is covered."""
        n = 4096
        values = np.full(n, 0.1)
        total = 0.0
        for value in values.tolist():
            total += value
        assert abs(Fraction(total / n) - Fraction(0.1)) <= mean_error(n)

    @for_each(("n", "blocks"), [(1, 1), (1000, 1000), (BLOCK, BLOCK), (BLOCK + 1, BLOCK), (10**9, BLOCK)])
    def test_value(self, n: int, blocks: int) -> None:
        assert mean_error(n) == Fraction(blocks + 3, 2**53)

    def test_refuses(self) -> None:
        with pytest.raises(InputError, match=r"n must be .*; got 0"):
            mean_error(0)


class TestIntegerSensitivity:
    def test_errors_of_both_values_are_counted(self) -> None:
        """By 5 steps and one more on either side; rounding adds less than one, and the difference is an integer."""
        assert integer_sensitivity(Fraction(5, 8), Fraction(1, 8), Fraction(1, 8)) == 8

    @pytest.mark.slow
    @given(fractions, fractions, st.integers(1, 60))
    def test_two_rounded_values_are_never_further_apart(self, a: Fraction, b: Fraction, bits: int) -> None:
        step = Fraction(1, 1 << bits)
        assert abs(round(a / step) - round(b / step)) <= integer_sensitivity(abs(a - b), Fraction(0), step)

    @pytest.mark.slow
    @given(fractions, fractions, fractions, fractions, st.integers(1, 60))
    def test_with_an_error_on_both_sides(self, a: Fraction, b: Fraction, x: Fraction, y: Fraction, bits: int) -> None:
        step = Fraction(1, 1 << bits)
        moved = integer_sensitivity(abs(a - b), max(x, y), step)
        assert abs(round((a + x) / step) - round((b - y) / step)) <= moved

    def test_the_extra_step_is_needed(self) -> None:
        """1/2 rounds down to 0, 3/2 up to 2."""
        assert round(Fraction(3, 2)) - round(Fraction(1, 2)) == 2
        assert integer_sensitivity(Fraction(1), Fraction(0), Fraction(1)) == 2


@given(st.fractions(min_value=0, max_value=10**6))
def test_round_up_is_the_next_float(exact: Fraction) -> None:
    up = round_up(exact)
    assert Fraction(up) >= exact
    assert up == 0 or Fraction(math.nextafter(up, -math.inf)) < exact
