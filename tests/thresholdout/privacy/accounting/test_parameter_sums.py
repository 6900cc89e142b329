"""Sums and products of privacy parameters: against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.privacy.accounting.bound_arguments import TINY, any_of, steps, sum_up, tail_slack

RELATIVE = Fraction(1, 10**14)
EXACT_UNIT = Fraction(1, 2**53)
numbers = st.floats(0.0, 1e300)


def test_constants() -> None:
    assert 0.0 < TINY <= 1e-300


class TestSumUp:
    @pytest.mark.slow
    @given(st.lists(st.tuples(numbers, st.integers(0, 10**6)), max_size=8))
    def test_it_is_the_smallest_float_that_is_not_below(self, terms: list[tuple[float, int]]) -> None:
        exact = sum((Fraction(value) * count for value, count in terms), Fraction(0))
        found = sum_up([value for value, _ in terms], [count for _, count in terms])
        assert Fraction(found) >= exact
        assert found == 0.0 or Fraction(math.nextafter(found, -math.inf)) < exact

    def test_of_the_smallest_floats(self) -> None:
        assert sum_up([5e-324, 2.0**-1022], [3, 1]) == 2.0**-1022 + 3 * 5e-324

    def test_a_count_for_each_value_is_needed(self) -> None:
        with pytest.raises(ValueError, match="shorter"):
            sum_up([0.5, 0.5], [1])


class TestAnyOf:
    @pytest.mark.slow
    @given(
        st.lists(st.tuples(st.floats(0.0, 0.5), st.integers(1, 40)), min_size=1, max_size=4),
        st.lists(st.floats(0.0, 0.9), max_size=3),
    )
    def test_it_is_above_the_probability_of_any_and_close(
        self, terms: list[tuple[float, int]], extra: list[float]
    ) -> None:
        none = math.prod((1 - Fraction(delta)) ** count for delta, count in terms)
        exact = 1 - none * math.prod(1 - Fraction(delta) for delta in extra)
        found = any_of(steps(0.1, [delta for delta, count in terms for _ in range(count)]), *extra)
        assert exact <= Fraction(found) <= min(Fraction(1), exact * (1 + 2 * RELATIVE) + Fraction(1, 2**1070))

    def test_it_is_no_more_than_one_and_than_the_sum(self) -> None:
        assert any_of(steps(0.1, 0.9, 100), 0.5) == 1.0
        assert any_of(steps(0.1, 0.0, 3), 0.25) == 0.25
        assert any_of(steps(0.1, 1e-18, 2)) == 2e-18


@for_each(("trials", "slack"), [(0, 1e-12), (10_000, 3e-12), (25 * 10**8, 1.001e-9)])
def test_tail_slack_has_a_constant_part_and_one_that_grows_with_the_root(trials: int, slack: float) -> None:
    assert tail_slack(trials) == pytest.approx(slack, rel=1e-12)
