"""Bisection: the condition holds at what is returned, whatever it is, and fails next to it."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.numerics.bisection import bisect, bisect_each, bisect_each_integer, bisect_integers, bracket, within
from tests.cases import for_each

FINITE = st.floats(-8e307, 8e307, allow_subnormal=True)
ADVERSARIAL = [
    0.0,
    5e-324,
    2.0**-1022,
    math.nextafter(2.0**-1022, 0.0),
    1e-300,
    math.nextafter(1.0, 0.0),
    1.0,
    math.nextafter(1.0, 2.0),
    1e16,
    8e307,
]


@pytest.mark.slow
@given(FINITE, FINITE, FINITE)
@settings(max_examples=100)
def test_finds_the_last_float_at_which_a_condition_holds(one: float, two: float, edge: float) -> None:
    low, edge, high = sorted((one, two, edge))
    found = bisect(lambda x: x <= edge, high, low) if edge < high else high
    assert found == edge
    found = bisect(lambda x: x >= edge, low, high) if edge > low else low
    assert found == edge


@for_each("low", ADVERSARIAL)
@for_each("edge", ADVERSARIAL)
@for_each("sign", [1.0, -1.0])
def test_finds_edges_among_the_smallest_and_the_largest_floats(low: float, edge: float, sign: float) -> None:
    calls: list[float] = []

    def holds(x: float) -> bool:
        calls.append(x)
        return sign * x >= edge

    if low < edge:
        assert bisect(holds, sign * low, sign * 8e307) == sign * edge
        assert len(calls) <= 2200


@pytest.mark.slow
@given(st.integers(0, 2**32), FINITE, FINITE, st.integers(0, 80), st.booleans())
@settings(max_examples=100)
def test_returns_a_point_that_was_tried_for_any_condition(
    seed: int, fails_at: float, holds_at: float, halvings: int, geometric: bool
) -> None:
    """Also for conditions that rounding errors make change sides many times."""
    draws = np.random.default_rng(seed)
    told = {fails_at: False, holds_at: True}
    tried: list[float] = []

    def holds(x: float) -> bool:
        tried.append(x)
        told[x] = told.get(x, bool(draws.random() < 0.5))
        return told[x]

    failing, holding = bracket(holds, fails_at, holds_at, halvings=halvings, geometric=geometric)
    assert len(tried) == halvings
    if fails_at != holds_at:
        assert told[holding]
        assert not told[failing]
    assert all(min(fails_at, holds_at) <= x <= max(fails_at, holds_at) for x in tried)

    failing, holding = bracket(holds, fails_at, holds_at, geometric=geometric)
    if fails_at != holds_at:
        assert told[holding]
        assert not told[failing]
        low, high = sorted((failing, holding))
        assert math.nextafter(low, high) == high or (geometric and math.sqrt(low * high) in (low, high))


def test_the_ends_themselves_are_not_tried() -> None:
    tried: list[float] = []

    def holds(x: float) -> bool:
        tried.append(x)
        return False

    assert bisect(holds, 0.0, 1.0) == 1.0
    assert 0.0 not in tried
    assert 1.0 not in tried
    assert bisect(holds, 1.0, 1.0) == 1.0
    assert bisect(holds, 1.0, math.nextafter(1.0, 2.0)) == math.nextafter(1.0, 2.0)
    assert bisect(holds, 0.0, 1.0, halvings=0) == 1.0


@given(st.floats(5e-324, 8e307), st.floats(5e-324, 8e307), st.floats(0.0, 1.0))
@settings(max_examples=100)
def test_geometric_middles_stay_inside(one: float, two: float, part: float) -> None:
    low, high = sorted((one, two))
    edge = min(max(low, low + part * (high - low)), high)
    calls: list[float] = []

    def holds(x: float) -> bool:
        assert low <= x <= high
        calls.append(x)
        return x <= edge

    failing, holding = bracket(holds, high, low, geometric=True)
    assert holding <= edge or not calls
    assert failing > edge or failing == high
    assert failing <= holding * (1.0 + 2.0**-50) + 5e-324
    assert len(calls) <= 2200


def test_halvings_halve() -> None:
    failing, holding = bracket(lambda x: x >= 1 / 3, 0.0, 1.0, halvings=20)
    assert failing < 1 / 3 <= holding
    assert Fraction(holding) - Fraction(failing) == Fraction(1, 2**20)
    failing, holding = bracket(lambda x: x <= 10.0, 2.0**16, 1.0, halvings=4, geometric=True)
    assert (failing, holding) == (16.0, 8.0)


@for_each("relative", [1e-1, 1e-4, 1e-10])
@for_each("upwards", [True, False])
def test_stops_within_a_share_and_not_much_before(relative: float, upwards: bool) -> None:
    for edge in np.geomspace(1e-8, 0.9, 30).tolist():
        ends = (1e-9, 1.0) if upwards else (1.0, 1e-9)

        def holds(x: float, edge: float = edge) -> bool:
            return x >= edge if upwards else x <= edge

        failing, holding = bracket(holds, *ends, close=within(relative))
        low, high = sorted((failing, holding))
        assert holds(holding)
        assert not holds(failing)
        assert low * (1 + relative / 4) < high <= low * (1 + relative)


def test_a_rule_sees_the_lower_end_first() -> None:
    seen = []

    def close(low: float, high: float) -> bool:
        seen.append((low, high))
        return high - low < 0.1

    assert bisect(lambda x: x <= 0.3, 1.0, 0.0, close=close) == 0.25
    assert all(low < high for low, high in seen)
    assert bisect_integers(lambda k: k <= 300, 1000, 0, close=lambda low, high: close(low / 1e3, high / 1e3)) == 250
    assert all(low < high for low, high in seen)


def test_an_interval_that_shrinks_to_a_failing_end_keeps_its_start() -> None:
    """Halvings beyond the last float between the ends try an end again, and the result still holds."""
    assert bisect(lambda x: x > 1.0, 1.0, 2.0, halvings=200) == math.nextafter(1.0, 2.0)
    assert bisect(lambda x: x < 2.0, 2.0, 1.0, halvings=200) == math.nextafter(2.0, 1.0)


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30), st.integers(0, 10**30))
def test_integers_of_any_size(low: int, width: int, part: int) -> None:
    high, edge = low + width, low + part % width
    assert bisect_integers(lambda k: k <= edge, high, low) == edge
    assert bisect_integers(lambda k: k > edge, low, high) == edge + 1


@given(st.integers(0, 2**32), st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_integers_of_any_condition(seed: int, fails_at: int, holds_at: int) -> None:
    draws = np.random.default_rng(seed)
    told = {fails_at: False, holds_at: True}

    def holds(k: int) -> bool:
        assert k not in told
        told[k] = bool(draws.random() < 0.5)
        return told[k]

    found = bisect_integers(holds, fails_at, holds_at)
    assert told[found]
    if fails_at != holds_at:
        assert told.get(found - 1) is False or told.get(found + 1) is False


def at_most(edge: float, *, rising: bool) -> Callable[[float], bool]:
    """Return the condition of numbers up to an edge, or of those above."""
    return lambda x: (x <= edge) == rising


@given(st.integers(0, 2**32))
def test_arrays_are_bisected_as_numbers_are(seed: int) -> None:
    draws = np.random.default_rng(seed)
    edges, fails_at, holds_at = draws.normal(size=(3, 7))
    found = bisect_each(lambda x: (x <= edges) == (fails_at > holds_at), fails_at, holds_at, halvings=12)
    for k, value in enumerate(found.tolist()):
        failing, holding = float(fails_at[k]), float(holds_at[k])
        holds = at_most(float(edges[k]), rising=failing > holding)
        assert value == bisect(holds, failing, holding, halvings=12)


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50), st.integers(-60, 60)), min_size=1, max_size=9))
def test_arrays_of_integers_are_bisected_as_integers_are(entries: list[tuple[int, int, int]]) -> None:
    fails_at, holds_at, edges = (np.array(column) for column in zip(*entries, strict=True))
    found = bisect_each_integer(lambda k: (k <= edges) == (fails_at > holds_at), fails_at, holds_at)
    for value, (failing, holding, edge) in zip(found.tolist(), entries, strict=True):
        assert value == bisect_integers(at_most(edge, rising=failing > holding), failing, holding)


def test_ends_below_0_have_arithmetic_middles() -> None:
    assert bisect(lambda x: x <= -0.3, -0.1, -0.5, geometric=True) == -0.3
    assert bisect(lambda x: x >= -0.3, -0.5, -0.1, geometric=True) == -0.3


def test_ends_that_are_apart_by_the_share_are_close() -> None:
    close = within(0.5)
    assert close(1.0, 1.5)
    assert not close(1.0, math.nextafter(1.5, 2.0))
