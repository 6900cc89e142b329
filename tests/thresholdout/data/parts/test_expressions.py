"""Expressions mean in every engine what plain Python makes of one record after the other."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.sizes import corners, sizes
from tests.thresholdout.data.parts.frames import ENGINES
from thresholdout.data.parts.lazy_part import LazyPart, Wanted
from thresholdout.errors import EngineFailed, InputError, InputTypeError

engines = pytest.mark.parametrize("engine", ENGINES)
c = nw.col
Row = dict[str, Any]

COLUMNS: Final = {
    "b": pl.Boolean,
    "d": pl.Boolean,
    "i": pl.Int8,
    "j": pl.Int64,
    "x": pl.Float64,
    "z": pl.Float32,
    "s": pl.String,
    "k": pl.Categorical,
}
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "b": st.booleans(),
    "d": st.booleans(),
    "i": st.integers(-128, 127),
    "j": st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    "x": st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e308, -1e308])),
    "z": st.one_of(st.floats(width=32), st.sampled_from([0.0, 0.5, 1.0])),
    "s": st.sampled_from(["", "a", "B", "é", "aa"]),
    "k": st.sampled_from(["a", "B"]),
}


@dataclass(frozen=True)
class Tree:
    """An expression, what it is of one record, and the columns in which a missing value makes it missing."""

    expression: Any
    of: Callable[[Row], Any]
    needed: frozenset[str]


def column(name: str) -> Tree:
    return Tree(c(name), lambda row: row[name], frozenset([name]))


def number(x: float) -> Tree:
    return Tree(nw.lit(x), lambda _: x, frozenset())


def both(make: Callable[[Any, Any], Any], of: Callable[[Any, Any], Any], a: Tree, b: Tree) -> Tree:
    return Tree(make(a.expression, b.expression), lambda row: of(a.of(row), b.of(row)), a.needed | b.needed)


COMPARISONS: Final[list[Callable[[Any, Any], Any]]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]
LOGIC: Final[list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]]] = [
    (lambda a, b: a & b, lambda a, b: a and b),
    (lambda a, b: a | b, lambda a, b: a or b),
]
ARITHMETIC: Final[list[Callable[[Any, Any], Any]]] = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b]


def as_floats(make: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: make(float(a), float(b))


def clipped(a: float) -> float:
    return 0.25 if a < 0.25 else 0.75 if a > 0.75 else a


@st.composite
def numbers(draw: st.DrawFn, depth: int) -> Tree:
    """Return a number made of columns."""
    kind = draw(st.integers(0, 7 if depth else 1))
    if kind == 0:
        return column(draw(st.sampled_from(["i", "x", "z"])))
    if kind == 1:
        return number(draw(st.sampled_from([0.0, 0.5, -2.0, 1e300])))
    a = draw(numbers(depth - 1))
    if kind == 2:
        make = draw(st.sampled_from(ARITHMETIC))
        return both(make, as_floats(make), a, draw(numbers(depth - 1)))
    if kind == 3:
        return Tree(a.expression.abs(), lambda row: abs(float(a.of(row))), a.needed)
    if kind == 4:
        return Tree(a.expression / 3, lambda row: float(a.of(row)) / 3, a.needed)
    if kind == 5:
        return Tree(a.expression**2, lambda row: float(a.of(row)) * float(a.of(row)), a.needed)
    if kind == 6:
        return Tree(a.expression.clip(0.25, 0.75), lambda row: clipped(float(a.of(row))), a.needed)
    condition, b = draw(conditions(depth - 1)), draw(numbers(depth - 1))
    return Tree(
        nw.when(condition.expression).then(a.expression).otherwise(b.expression),
        lambda row: float(a.of(row)) if condition.of(row) else float(b.of(row)),
        a.needed | b.needed | condition.needed,
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> Tree:
    """Return a condition on columns."""
    kind = draw(st.integers(0, 8 if depth else 3))
    if kind == 0:
        return column(draw(st.sampled_from("bd")))
    if kind == 1:
        name = draw(st.sampled_from("bixsk"))
        return Tree(c(name).is_null(), lambda row: _absent(row[name]), frozenset())
    if kind == 2:
        return Tree(c("i").fill_null(3) == 3, lambda row: row["i"] in (None, 3), frozenset())
    if kind == 3:
        names = draw(st.lists(st.sampled_from("sk"), min_size=1, max_size=2, unique=True))
        make = draw(st.sampled_from(COMPARISONS[:2] if "k" in names else COMPARISONS))
        return both(make, make, column(names[0]), column(names[-1]))
    if kind in (4, 5):
        make = draw(st.sampled_from(COMPARISONS))
        return both(make, as_floats(make), draw(numbers(depth - 1)), draw(numbers(depth - 1)))
    a = draw(conditions(depth - 1))
    if kind == 6:
        make, of = draw(st.sampled_from(LOGIC))
        return both(make, of, a, draw(conditions(depth - 1)))
    if kind == 7:
        return Tree(~a.expression, lambda row: not a.of(row), a.needed)
    return Tree(c("i").is_in([3, -7, 100]), lambda row: row["i"] in (3, -7, 100), frozenset("i"))


@sizes("size", 2, 60)
@engines
def test_conditions_are_those_of_plain_python(engine: str, size: int) -> None:
    @given(data=st.data())
    @settings(max_examples=size, deadline=None)
    def agree(data: st.DataObject) -> None:
        check(engine, data)

    agree()


def check(engine: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    table = {
        name: data.draw(st.lists(st.one_of(st.none(), values), min_size=n, max_size=n))
        for name, values in VALUES.items()
    }
    trees = [data.draw(conditions(3)) for _ in range(6)]
    frame = pl.DataFrame(table, schema=COLUMNS)
    part = LazyPart(ENGINES[engine](frame), "holdout")
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    trees = [tree for tree in trees if part.compiled(tree.expression).columns]
    for tree, found in zip(trees, part.totals_of([Wanted(tree.expression) for tree in trees]), strict=True):
        there = [row for row in rows if not any(_absent(row[name]) for name in tree.needed)]
        assert found.missing == n - len(there)
        assert found.total >> found.bits == sum(bool(tree.of(row)) for row in there)


def _absent(value: object) -> bool:
    return value is None or value != value


def part_of(engine: str, frame: pl.DataFrame | dict[str, Any]) -> LazyPart:
    return LazyPart(ENGINES[engine](frame), "holdout")


TYPES: Final = pl.DataFrame(
    {
        "b": [True, False],
        "i": [1, 2],
        "x": [0.5, 1.0],
        "s": ["a", "b"],
        "day": [date(2024, 1, 1), date(2024, 1, 2)],
        "at": [datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))] * 2,
        "then": [datetime(2024, 1, 1)] * 2,
        "cents": [Decimal("0.25"), Decimal("1.00")],
        "bytes": [b"a", b"b"],
        "list": [[1], [2]],
        "big": [2**63, 2**64 - 1],
    },
    schema_overrides={"big": pl.UInt64},
)
REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "no column": (c("none") == 1, "one of at, b.*; got .*no column 'none'"),
    "a type that engines add up differently": (c("cents"), r"booleans.*; got .*column 'cents' of type Decimal.*"),
    "beside others": (c("cents") == 0.25, "column 'cents' of type Decimal"),
    "integers without a sign that floats do not hold": (c("big") == 1, "column 'big' of type UInt64"),
    "bytes": (c("bytes") == c("bytes"), "column 'bytes' of type Binary"),
    "nested": (c("list"), "column 'list' of type List"),
    "text": (c("s"), "numbers or booleans.*; got .*a text"),
    "time": (c("day"), "numbers or booleans.*; got .*a time"),
    "no column at all": (nw.lit(1.0), r"an expression that reads a column.*; got .*1\.0"),
    "types that differ": (c("i") == c("s"), "values of one type.*; got .*an integer and col\\('s'\\), a text"),
    "a boolean and a number": (c("b") == 1, "values of one type"),
    "times of two types": (c("at") == c("then"), "values of one type"),
    "day and time": (c("at") == c("day"), "values of one type"),
    "arithmetic of booleans": (c("b") + c("b"), "a number there.*; got .*col\\('b'\\), which is a boolean"),
    "order of booleans": (c("b") < c("b"), "< of booleans"),
    "logic of numbers": (c("i") & c("b"), "& of col\\('i'\\), which is an integer"),
    "not of a number": (~c("i"), "~ of col\\('i'\\)"),
    "division by a column": (c("x") / c("i"), "division by a number that is not 0.*; got .*/ col\\('i'\\)"),
    "division by zero": (c("x") / 0, "; got .*/ 0"),
    "one over": (1 / c("x"), "the operation '__rtruediv__'"),
    "powers": (c("x") ** 0.5, "division by a number that is not 0, and \\*\\* 2"),
    "roots": (c("x").sqrt(), "the operation 'sqrt'"),
    "a cast that may fail": (c("s").cast(nw.Int64), "a cast to Int64"),
    "a cast of a text": (c("s").cast(nw.Float64), "cast of col\\('s'\\), which is a text"),
    "another record": (c("x").shift(1), "the operation 'shift'"),
    "sums": (c("x").sum(), "the operation 'sum'"),
    "logarithms": (c("x").log(), "the logarithm of col\\('x'\\)"),
    "logarithms of what may be zero": (c("x").clip(0.0, 1.0).log(), "the logarithm of clip"),
    "other logarithms": (c("x").clip(0.1, 1.0).log(2.0), "the logarithm of clip"),
    "ranks": (c("x").rank(), "the operation 'rank'"),
    "windows": (c("x").mean().over("s"), "the operation 'mean'"),
    "neighbours": (c("x").fill_null(strategy="forward"), "fill_null by neighbours"),
    "filled by a column": (c("x").fill_null(c("i")), "fill_null by a column"),
    "filled later": ((c("x") + 1).fill_null(0), "fill_null of \\(col\\('x'\\) \\+ 1\\)"),
    "functions": (c("x").map_batches(lambda s: s), "the operation 'map_batches'"),
    "several columns": (c("x", "i"), "an expression that starts with 'col'"),
    "all columns": (nw.all(), "an expression that starts with 'all'"),
    "rows": (nw.len(), "an expression that starts with 'len'"),
    "no otherwise": (nw.when(c("b")).then(1.0), "when/then without otherwise"),
    "no number": (c("x") < math.nan, "the number nan"),
    "infinity": (c("x").clip(0, math.inf), "the number inf"),
    "integers that floats do not hold": (c("i") == 2**53 + 1, "the number 9007199254740993"),
    "a long list": (c("i").is_in(list(range(101))), "is_in of something else"),
    "an empty list": (c("i").is_in([]), "is_in of something else"),
}


@engines
def test_what_engines_do_differently_or_may_fail_at_is_refused(engine: str) -> None:
    part = part_of(engine, TYPES)
    for expression, said in REFUSED.values():
        with pytest.raises(InputError, match=f"(?s)query must be .*{said}"):
            part.totals(expression)


@for_each("value", [pl.col("x") > 0.5, None, [0.5, 1.0], np.array([0.5, 1.0]), lambda X: X])
def test_what_is_no_expression_is_refused(value: Any) -> None:
    with pytest.raises(InputTypeError, match="query must be an expression of narwhals"):
        part_of("polars", TYPES).totals(value)


def test_expressions_are_refused_before_data_are_touched() -> None:
    part = LazyPart(pl.scan_parquet("missing.parquet", schema={"x": pl.Float64, "i": pl.Int64}), "holdout")
    with pytest.raises(InputError, match="the logarithm of col"):
        part.totals(c("x").log())
    with pytest.raises(InputError, match=r"bounds must be ends below 2\*\*53 for integers"):
        part.totals("i", (0.0, 2.0**53))
    with pytest.raises(
        EngineFailed, match=r"holdout: FileNotFoundError while its records were counted. Nothing was released"
    ):
        part.totals("x")


def test_an_expression_may_not_be_longer_than_engines_take() -> None:
    long = c("x")
    for _ in range(400):
        long = long + 1
    with pytest.raises(InputError, match="an expression of more than 200 operations"):
        part_of("polars", TYPES).totals(long)


@for_each(
    ("one", "other"),
    [
        (c("i") == 1, 1 == c("i")),  # noqa: SIM300
        (c("x") > 0.5, c("x").alias("y") > 0.5),
        (c("i").is_in([1, 2]), (c("i") == 1) | (c("i") == 2)),
        (c("x").is_between(0, 1), (c("x") >= 0) & (c("x") <= 1)),
        (
            nw.when(c("b"), c("i") > 1).then(1.0).otherwise(c("x")),
            nw.when(c("b") & (c("i") > 1)).then(1.0).otherwise(c("x")),
        ),
    ],
)
def test_equal_queries_have_equal_contents(one: Any, other: Any) -> None:
    part = part_of("polars", TYPES)
    assert part.compiled(one).text == part.compiled(other).text


def test_different_queries_have_different_contents() -> None:
    part = part_of("polars", {"a": [1], "b": [1], "a') == col('b": [True], "1": ["1"], "x": [0.5]})
    some = [
        c("a") == c("b"), c("b") == c("a"), c("a") != c("b"), c("a') == col('b"), c("a") == 1, c("1") == "1",
        c("x") == 1.0, c("x") == 1, (c("x") + 1) * 2 > 1, c("x") + 2 > 1, c("x") - 1 > c("x"), 1 - c("x") > c("x"),
        ~(c("x") > 1), c("x").clip(0, 1) > 0, c("x").clip(0) > 0, c("x").clip(upper_bound=0) > 0,
        c("x").abs() > 1, -c("x") > 1, c("x").is_null(), c("x").fill_null(1) > 1, c("x").fill_null(0) > 1,
        c("x") / 2 > 1, c("x") ** 2 > 1, c("x").is_between(0, 1), c("x").is_between(0, 1, closed="left"),
        nw.when(c("a") == 1).then(c("x")).otherwise(0.0) > 0, nw.when(c("a") == 1).then(0.0).otherwise(c("x")) > 0,
        (c("a") == 1) & (c("b") == 1), (c("a") == 1) | (c("b") == 1), (c("a") == 1) ^ (c("b") == 1),
        (c("a") == 1).cast(nw.Float64), c("a").cast(nw.Float64) == c("b"), c("a").cast(nw.Float64) == 1,
    ]  # fmt: skip
    texts = [part.compiled(one).text for one in some]
    assert len(set(texts)) == len(some)


@engines
def test_times_texts_and_dictionaries_are_compared(engine: str) -> None:
    berlin = [datetime(2024, 3, 31, hour, tzinfo=ZoneInfo("Europe/Berlin")) for hour in (1, 4, 5)]
    frame = pl.DataFrame({"a": berlin, "b": [berlin[0], berlin[2], None], "s": ["x", "y", "z"], "k": ["x", "z", "z"]})
    frame = frame.with_columns(pl.col("k").cast(pl.Categorical), e=pl.col("s").cast(pl.Enum(["z", "y", "x"])))
    part = part_of(engine, frame)
    assert part.totals(c("a") == c("b")).mean.mean() == pytest.approx(1 / 3)
    assert part.totals(c("a") < c("b")).missing == 1
    assert part.totals(c("k") == c("s")).total >> 40 == 2
    assert part.totals(c("k") == "z").total >> 40 == 2
    assert part.totals(c("e") < "y").total >> 40 == 1  # by its text, not by its place in the dictionary


@engines
def test_integers_are_compared_as_they_are_and_added_as_floats(engine: str) -> None:
    part = part_of(engine, {"a": [2**53, 2**63 - 1, 5], "b": [2**53 + 1, 2**63 - 1, -5]})
    assert part.totals(c("a") == c("b")).total >> 40 == 1
    assert part.totals(c("a") - c("b") == 0).total >> 40 == 2  # 2**53 + 1 is no float
    assert part.totals(c("a") + c("a") > 2.0**63).total >> 40 == 1  # and nothing overflows
    assert part.totals("a", (0.0, 10.0)).above == 2


def divisors() -> list[float]:
    rng = np.random.default_rng(5)
    some = [49.0, -49.0, 10.0, 3.0, 0.1, 2.0, -0.25, 1.0, 1e308, 2.0**1023, 2.0**-1022, 2.0**-1030, 5e-324, -3e-310]
    return [*some, *(rng.uniform(-100.0, 100.0, 6)).tolist(), *(10.0 ** rng.uniform(-300, 300, 6)).tolist()]


@engines
@pytest.mark.parametrize("n", corners([1, 2, 3, 17, 3000], 1, 4))
def test_equal_records_are_divided_alike_in_every_position(engine: str, n: int) -> None:
    """Polars multiplies some of them by the rounded reciprocal of a literal divisor, and others not."""
    part = part_of(engine, {"x": [0.625] * n, "i": [7] * n})
    queries = [(c("x") / 49.0 >= 0.625 / 49.0), (c("x") / 49 == 0.625 / 49.0), ((c("x") + c("i")) / 49 == 7.625 / 49)]
    queries += [c("i") / 49.0 == 7 / 49.0, nw.lit(0.625) / 49.0 + c("i") * 0 == 0.625 / 49.0]
    assert [found.mean.mean() for found in part.totals_of([Wanted(query) for query in queries])] == [1.0] * 5


@pytest.mark.parametrize(
    ("engine", "step"), [("polars", 1), ("duckdb", 6), pytest.param("duckdb", 1, marks=pytest.mark.slow)]
)
def test_quotients_are_those_of_arrays(engine: str, step: int) -> None:
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.normal(size=300), 10.0 ** rng.uniform(-300, 300, 100), np.repeat(0.625, 33)])
    x[:6] = [math.inf, -math.inf, 0.0, -0.0, 1.7e308, 5e-324]
    i = rng.integers(-(2**62), 2**62, x.size)
    for divisor in divisors()[::step]:
        with np.errstate(all="ignore"):
            table = {"x": x, "q": x / divisor, "i": i, "k": i / divisor, "bool": i > 0, "b": (i > 0) / divisor}
        part = part_of(engine, table)
        queries = [c("x") / divisor == c("q"), c("i") / divisor == c("k")]
        queries.append(c("bool").cast(nw.Float64) / divisor == c("b"))
        totals = part.totals_of([Wanted(query) for query in queries])
        assert [found.mean.mean() for found in totals] == [1.0] * 3, divisor
        assert [found.missing for found in totals] == [0] * 3


@engines
def test_missing_values_are_divided_as_before(engine: str) -> None:
    values = [None, math.nan, math.inf, -math.inf, 0.625, 0.625]
    part = part_of(engine, pl.DataFrame({"x": values, "s": [None, "a", "a", "a", None, "a"]}))
    found = part.totals(c("x") / 49.0 == 0.625 / 49.0)
    assert (found.missing, found.total >> found.bits) == (2, 2)
    found = part.totals((c("x") / 49.0).clip(-1.0, 1.0).abs() == 1.0)
    assert (found.missing, found.total >> found.bits) == (2, 2)
    found = part.totals(c("x").fill_null(0.625) / 49.0 == 0.625 / 49.0)
    assert (found.missing, found.total >> found.bits) == (0, 4)  # the divisor is there where the value is not
    found = part.totals(nw.when(c("s").is_null()).then(0.625).otherwise(1.0) / 49.0 == 0.625 / 49.0)
    assert (found.missing, found.total >> found.bits) == (0, 2)


def test_constant_columns_of_polars_are_divided_as_others() -> None:
    frame = pl.LazyFrame({"i": [0] * 5}).with_columns(x=pl.lit(0.625), one=pl.lit(1))
    part = LazyPart(frame, "holdout")
    for value in (c("x"), c("x") + c("i"), c("x") * c("one"), nw.lit(0.625).abs() + c("i")):
        assert part.totals(value / 49.0 == 0.625 / 49.0).mean.mean() == 1.0


@engines
def test_quotients_of_quotients_stay_short(engine: str) -> None:
    value, wanted = c("x"), 0.625
    for _ in range(40):
        value, wanted = value / 1.1, wanted / 1.1
    assert part_of(engine, {"x": [0.625] * 9}).totals(value == wanted).mean.mean() == 1.0


def test_a_version_of_narwhals_that_hides_its_operations_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of("polars", {"a": [1, 2, 3]})
    expression = c("a") > 1
    monkeypatch.delattr(expression, "_nodes")
    with pytest.raises(InputError, match=r"narwhals 2.29.*; got an expression of narwhals 2.29.0"):
        part.totals(expression)
