"""Where bars are, how ends are written, and where tiers begin: against fractions and counting."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.service.page.fake import ranked
from thresholdout.service.page.views import axis_around, decimals_for, relation, tiers, written_high, written_low
from thresholdout.service.standings import Standing

NUMBERS = st.floats(-50.0, 50.0, allow_nan=False)


@given(NUMBERS, st.integers(0, 6))
def test_ends_are_written_outwards_and_close(value: float, decimals: int) -> None:
    low, high = (Fraction(text(value, decimals).replace("−", "-")) for text in (written_low, written_high))
    as_said = Fraction(repr(value))  # other outputs of the same number write it so
    assert low <= as_said <= high
    assert as_said - low < Fraction(1, 10**decimals)
    assert high - as_said < Fraction(1, 10**decimals)


def test_numbers_that_are_written_exactly_stay_as_they_are() -> None:
    assert (written_low(0.874, 3), written_high(0.874, 3)) == ("0.874", "0.874")
    assert (written_low(-0.0, 2), written_high(-1e-9, 2), written_low(-0.5, 1)) == ("0.00", "0.00", "−0.5")


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)).map(sorted), min_size=1, max_size=6))
def test_bars_reach_at_least_over_their_intervals(pairs: list[list[float]]) -> None:
    intervals = [(low, high) for low, high in pairs]
    axis = axis_around(intervals, 0.0, 1.0)
    assert 0.0 <= axis.low < axis.high <= 1.0
    for low, high in intervals:
        assert axis.low <= low <= high <= axis.high
        width = Fraction(axis.high) - Fraction(axis.low)
        assert 0.0 <= axis.left(low) <= float((Fraction(low) - Fraction(axis.low)) / width * 100) + 1e-9
        assert 100.0 >= axis.right(high) >= float((Fraction(high) - Fraction(axis.low)) / width * 100) - 1e-9
    assert all(axis.low - 1e-9 <= tick <= axis.high + 1e-9 for tick in axis.ticks)
    assert 3 <= len(axis.ticks) <= 12
    assert len({text for _, text in axis.marks}) == len(axis.ticks)
    for tick, (_, text) in zip(axis.ticks, axis.marks, strict=True):
        assert float(text) == pytest.approx(tick, abs=1e-9)


@for_each(("width", "decimals"), [(0.5, 2), (0.024, 3), (0.0091, 4), (1e-12, 6)])
def test_two_digits_of_the_narrowest_interval_are_shown(width: float, decimals: int) -> None:
    assert decimals_for([1.0, width, 0.0]) == decimals


@for_each("greater", [True, False])
def test_a_tier_begins_where_all_above_are_better_than_all_below(greater: bool) -> None:
    random = np.random.default_rng(5)
    for _ in range(300):
        count = int(random.integers(1, 9))
        ends = np.sort(random.integers(0, 14, (count, 2)) / 14.0, axis=1)
        rows = ranked([(f"t{i}", low, high, 1) for i, (low, high) in enumerate(ends)], greater_is_better=greater)
        found = tiers(rows)
        assert [row for tier in found for row in tier.rows] == rows

        def better(one: Standing, other: Standing) -> bool:
            return one.low > other.high if greater else one.high < other.low

        cuts = {
            place
            for place in range(1, count)
            if all(better(above, below) for above, below in product(rows[:place], rows[place:]))
        }
        starts = np.cumsum([len(tier.rows) for tier in found])[:-1]
        assert set(starts.tolist()) == cuts
        for tier in found:
            overlaps = [not better(a, b) and not better(b, a) for a, b in product(tier.rows, tier.rows)]
            assert tier.tied == all(overlaps)
        for one, other in product(rows, rows):
            said = relation(one, other, greater_is_better=greater)
            if one is other:
                assert said == "self"
            else:
                assert (said == "better", said == "worse") == (better(one, other), better(other, one))
