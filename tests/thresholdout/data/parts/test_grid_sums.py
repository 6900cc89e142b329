"""Sums that engines compute are those of the same integers as arrays', from exact fractions."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import corners, sizes
from tests.thresholdout.data.parts.frames import ENGINES
from thresholdout.data.parts import engines as engine_module
from thresholdout.data.parts import lazy_part
from thresholdout.data.parts.lazy_part import LazyPart, Wanted
from thresholdout.data.values import UnitSums, record_bits
from thresholdout.errors import InputError

engines = pytest.mark.parametrize("engine", ENGINES)


def part_of(engine: str, **columns: object) -> LazyPart:
    return LazyPart(ENGINES[engine](columns), "holdout")


def steps(values: Sequence[float], n: int, bounds: tuple[float, float]) -> list[int]:
    """Return values in range on the grid of n records, by exact arithmetic behind the two float operations."""
    lower, upper = bounds
    units = values if bounds == (0.0, 1.0) else [(value - lower) / (upper - lower) for value in values]
    return [round(Fraction(unit) * 2 ** record_bits(n)) for unit in units]  # of fractions: ties to even


def awkward(n: int) -> list[float]:
    """Return n numbers in [0, 1] beside, below and above the middle between steps, and the smallest ones."""
    bits = record_bits(n)
    rng = np.random.default_rng(n)
    middle = [(2 * int(k) + 1) * 2.0 ** -(bits + 1) for k in rng.integers(0, 1 << 20, n // 4)]
    near = [math.nextafter(x, float(side)) for x in middle for side in (0, 1)]
    ends = [0.0, -0.0, 1.0, 5e-324, 2.3e-308, math.nextafter(1.0, 0.0), 1.0 - 2.0 ** -(bits + 1)]
    some = [*ends, *middle, *near][:n]
    return [*some, *rng.random(n - len(some)).tolist()]


@engines
@pytest.mark.parametrize("n", corners([1, 2, 3, 1000, 4097], 0, 3))
def test_values_are_rounded_like_fractions(engine: str, n: int) -> None:
    values = awkward(n)
    wanted = steps(values, n, (0.0, 1.0))
    found = part_of(engine, p=values).totals("p", squares=True)
    assert (found.mean.total, found.mean.n, found.mean.bits) == (sum(wanted), n, record_bits(n))
    assert found.squares == sum(q * q for q in wanted)
    assert (found.missing, found.outside) == (0, 0)


@engines
@pytest.mark.parametrize("upper", corners([3.0, 7.0, 49.0, 1.5 * 2.0**1023], 2, 3))
def test_numbers_beside_the_middle_of_two_steps_are_divided(engine: str, upper: float) -> None:
    """An engine that multiplies by the rounded reciprocal puts some of them on the other side."""
    middles = [Fraction(2 * k + 1, 2 ** (record_bits(3000) + 1)) for k in range(1, 10**6, 1000)]
    exact = [float(Fraction(upper) * middle) for middle in middles]
    values = [near for value in exact for near in (math.nextafter(value, 0.0), value, math.nextafter(value, upper))]
    found = part_of(engine, p=values).totals("p", (0.0, upper))
    assert found.mean.total == sum(steps(values, 3000, (0.0, upper)))


@engines
@pytest.mark.parametrize("power", corners([-1074, -1030, -1024, -1023, -1022, -1, 0, 1, 1022, 1023], 0, 3, 6, 9))
def test_powers_of_two_are_divided_by_where_their_reciprocals_overflow(engine: str, power: int) -> None:
    upper = math.ldexp(1.0, power)
    values = [0.0, upper, *(upper * share for share in (0.25, 0.5, 0.75))] * 7
    found = part_of(engine, p=values).totals("p", (0.0, upper), squares=True)
    wanted = steps(values, len(values), (0.0, upper))
    assert (found.mean.total, found.squares) == (sum(wanted), sum(q * q for q in wanted))


@engines
@pytest.mark.parametrize(
    "bounds", corners(map(pytest.param, [(-3.0, 0.1), (0.0, 7.0), (1e6, 1e6 + 3.0), (-1.0, 1.0)]), 0, 2)
)
def test_other_ranges_take_the_two_operations_of_arrays(engine: str, bounds: tuple[float, float]) -> None:
    lower, upper = bounds
    values = np.clip(lower + np.random.default_rng(1).random(999) * (upper - lower), lower, upper)
    values[:2] = bounds
    wanted = steps(values.tolist(), 999, bounds)
    found = part_of(engine, p=values).totals("p", bounds, squares=True)
    assert (found.mean.total, found.squares) == (sum(wanted), sum(q * q for q in wanted))
    arrays = UnitSums(values, 999, bounds, "values")
    assert (arrays.mean.total, arrays.mean.bits) == (found.mean.total, found.mean.bits)


@engines
def test_what_is_missing_or_out_of_range_counts_as_stated(engine: str) -> None:
    values = [0.25, None, math.nan, -0.5, -math.inf, 1.5, 7.0, math.inf, 1.0, 0.0]
    found = part_of(engine, p=values).totals("p", missing=0.5, squares=True)
    one = 1 << record_bits(10)
    assert (found.missing, found.below, found.above) == (2, 2, 3)
    assert found.mean.total == one // 4 + 2 * (one // 2) + 3 * one + one  # each counted by hand
    exact = [Fraction(1, 4), *[Fraction(1, 2)] * 2, *[Fraction(1)] * 4, *[Fraction(0)] * 3]
    mean = sum(exact) / 10
    assert found.variance() == float(sum((x - mean) ** 2 for x in exact) / 10)
    assert part_of(engine, p=values).totals("p").mean.total == one // 4 + 4 * one  # the lower end by default


@engines
def test_public_values_that_cannot_be_used_are_refused(engine: str) -> None:
    part = part_of(engine, p=[0.25, None, math.nan, -0.5, 7.0])
    with pytest.raises(InputError, match=r"train must be values in.*; got 2 of 5 values missing, 1 below 0, 1 above 1"):
        part.totals("p").check("train", (0.0, 1.0))
    part_of(engine, p=[0.25, 1.0]).totals("p").check("train", (0.0, 1.0))


@pytest.mark.slow
@engines
@pytest.mark.parametrize(
    ("values", "bounds", "missing", "ends"),
    [
        ([0.0, 1.0, 1.0], (0.0, 1.0), 0.0, True),
        ([0.0, 0.0], (0.0, 1.0), 0.0, True),
        ([0.5, 0.5], (0.0, 1.0), 0.0, False),
        ([0.25, 0.75, 0.0, 1.0], (0.0, 1.0), 0.0, False),  # a whole number in sum
        ([0.0, 1.0, 2.0, -4.0], (0.0, 1.0), 0.0, True),
        ([-3.0, 5.0], (-3.0, 5.0), -3.0, True),
        ([0.0, 1.0, None], (0.0, 1.0), 1.0, True),
        ([0.0, 1.0, None], (0.0, 1.0), 0.5, False),
        ([None, None], (0.0, 1.0), 0.0, True),
        ([1e-300, 1.0], (0.0, 1.0), 0.0, True),  # an end, on the grid
    ],
)
def test_whether_values_are_ends_of_the_range(
    engine: str, values: list[float | None], bounds: tuple[float, float], missing: float, ends: bool
) -> None:
    columns = {"p": np.array([math.nan if value is None else value for value in values])}
    assert part_of(engine, **columns).totals("p", bounds, missing=missing).ends is ends


@pytest.mark.slow
@engines
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 3.0), (0.0, 0.5)])
def test_booleans_are_counted(engine: str, bounds: tuple[float, float]) -> None:
    values = [True, False, None, True, True, False, False]
    part = part_of(engine, b=values)
    found, same = part.totals("b", bounds, missing=0.25, squares=True), part.totals(nw.col("b"), bounds, missing=0.25)
    numbers = [0.25 if value is None else min(max(float(value), bounds[0]), bounds[1]) for value in values]
    wanted = steps(numbers, 7, bounds)
    assert found.mean.total == same.mean.total == sum(wanted)
    assert round(found.variance() * 49 * 4 ** record_bits(7)) == 7 * sum(q * q for q in wanted) - sum(wanted) ** 2
    assert (found.missing, found.above) == (1, 3 if bounds[1] < 1.0 else 0)


@sizes("examples", 2, 80)
def test_one_pass_for_many_queries_and_one_for_each_agree(examples: int) -> None:
    @given(data=st.data(), n=st.integers(1, 40))
    @settings(max_examples=examples, deadline=None)
    def check(data: st.DataObject, n: int) -> None:
        numbers = st.one_of(st.none(), st.floats(), st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0]))
        drawn = {name: data.draw(st.lists(numbers, min_size=n, max_size=n)) for name in "abc"}
        columns = {name: np.array([math.nan if x is None else x for x in column]) for name, column in drawn.items()}
        part = part_of("polars", **columns)
        together = part.totals_of([Wanted(name, missing=1.0, squares=True) for name in "abc"])
        assert together == [part.totals(name, missing=1.0, squares=True) for name in "abc"]
        for name, found in zip("abc", together, strict=True):
            known = np.where(np.isnan(columns[name]), 1.0, np.clip(columns[name], 0.0, 1.0))
            wanted = steps(known.tolist(), n, (0.0, 1.0))
            assert (found.mean.total, found.missing) == (sum(wanted), int(np.isnan(columns[name]).sum()))
            assert found.ends == all(q in (0, 1 << record_bits(n)) for q in wanted)

    check()


@engines
def test_comparisons_count_what_arrays_count(engine: str) -> None:
    rng = np.random.default_rng(5)
    y, b, a = rng.integers(0, 3, 500), rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    part = part_of(engine, y=y, b=b, a=a, p=rng.random(500), q=rng.random(500))
    found = part.joint(nw.col("b") == nw.col("y"), nw.col("a") == nw.col("y"))
    difference = (b == y) * 1.0 - (a == y)
    wanted = steps(difference.tolist(), 500, (-1.0, 1.0))
    assert (found.more, found.less, found.right_or_wrong) == ((difference > 0).sum(), (difference < 0).sum(), True)
    assert (found.difference.mean.total, found.difference.squares) == (sum(wanted), sum(q * q for q in wanted))
    p, q = (np.array(part.frame.collect()[name].to_list()) for name in "pq")
    found = part.joint("p", "q")
    wanted = steps((p - q).tolist(), 500, (-1.0, 1.0))
    assert (found.more, found.less, found.right_or_wrong) == ((p > q).sum(), (p < q).sum(), False)
    assert (found.difference.mean.total, found.difference.squares) == (sum(wanted), sum(q * q for q in wanted))
    assert part.joint(nw.col("b").clip(0, 1), nw.col("a").clip(0, 1)).right_or_wrong


@engines
def test_a_missing_value_is_no_difference(engine: str) -> None:
    part = part_of(engine, b=[1.0, None, 0.0, 1.0], a=[0.0, 1.0, None, 1.0])
    found = part.joint("b", "a")
    assert (found.more, found.less, found.right_or_wrong, found.difference.mean.mean()) == (1, 0, False, 0.625)


@engines
def test_a_second_pass_is_made_only_where_the_first_tells_nothing(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(engine, p=[0.25, 0.5, 0.125], x=[0.25, 2.0, 0.125], y=[0, 1, 1])
    assert part.n == 3
    passes = []

    def collected(frame: nw.LazyFrame[Any]) -> dict[str, Any]:
        passes.append(frame)
        return engine_module.collected(frame)

    monkeypatch.setattr(lazy_part, "collected", collected)
    part.totals("p", squares=True)
    part.totals(nw.col("y") == 1)
    assert len(passes) == 2
    part.totals_of([Wanted("p"), Wanted("x"), Wanted("y")])
    assert len(passes) == 4


@engines
def test_an_engine_that_rounds_otherwise_is_refused(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_part, "to_grid", lambda unit, bits: (unit * 2.0**bits + 0.5).floor() * 2.0**-bits)
    with pytest.raises(InputError, match=r"holdout must be .*; got an engine that rounds otherwise"):
        assert part_of(engine, p=[0.25]).n


@engines
def test_an_engine_whose_logarithm_is_off_is_refused(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = nw.Expr.log
    monkeypatch.setattr(nw.Expr, "log", lambda expr: log(expr) * (1.0 + 2.0**-40))
    with pytest.raises(InputError, match=r"holdout must be .*; got an engine that rounds otherwise"):
        assert part_of(engine, p=[0.25]).n


@engines
def test_what_is_found_is_not_shown(engine: str) -> None:
    part = part_of(engine, p=[0.25, 0.5, 0.125])
    assert repr(part.totals("p", squares=True)) == "<Totals n=3>"
    assert repr(part.joint("p", nw.col("p") * 0.5)) == "<Joint n=3>"


@engines
def test_records_with_the_value_true_are_counted_without_a_mask(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By plain loops, of conjunctions and of all else; the twin takes all expressions for conjunctions."""
    rng, c = np.random.default_rng(4), nw.col
    values = {name: [[0, 1, None][one] for one in rng.integers(0, 3, 200)] for name in "abc"}
    part = part_of(engine, **values)
    one, two, three = c("a") == 1, c("b") != 0, c("c") == 0
    rows = list(zip(*values.values(), strict=True))
    asked: list[tuple[Any, Any, bool]] = [
        (one & two, lambda a, b, d: a == 1 and b != 0, True),
        (one & (two & three), lambda a, b, d: a == 1 and b != 0 and d == 0, True),
        (~one & two, lambda a, b, d: a != 1 and b != 0, True),
        (~(one & two), lambda a, b, d: not (a == 1 and b != 0), False),
        (one | two, lambda a, b, d: a == 1 or b != 0, False),
        (one & (two | three), lambda a, b, d: a == 1 and (b != 0 or d == 0), False),
        (~(~one & two) & three, lambda a, b, d: (a == 1 or b == 0) and d == 0, False),
    ]
    wanted, expected = [Wanted(expression, only_true=True) for expression, _, _ in asked], []
    for expression, meaning, definite in asked:
        compiled = part.compiled(expression)
        assert compiled.definite is definite
        read = ["abc".index(name) for name in compiled.columns]
        expected.append(sum(all(row[place] is not None for place in read) and meaning(*row) for row in rows))
    assert [totals.total >> totals.bits for totals in part.totals_of(wanted)] == expected
    numeric = LazyPart._numeric
    monkeypatch.setattr(LazyPart, "_numeric", lambda own, asked: replace(numeric(own, asked), definite=True))
    twin = [totals.total >> totals.bits for totals in part.totals_of(wanted)]
    assert [found == right for found, right in zip(twin, expected, strict=True)] == [
        definite for _, _, definite in asked
    ]
