"""A part of the data that is never in memory: files, a table of a data base, a frame of a cluster.

A value v in ``[0, 1]`` is rounded to the nearest multiple of ``2**-bits``, ties to even, as in
`thresholdout.data.values`: by adding ``2**(52 - bits)``, from where on neighbouring floats have this distance, and
subtracting it again, which is exact. Sums of n such values are multiples of ``2**-bits`` and at most ``n <= 2**(53 -
bits)``. So every intermediate float is exact, for any order of records and any number of partitions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from thresholdout.data.parts.engines import Result, adds_booleans, as_lazy, collected, knows_missing, map_batches
from thresholdout.data.parts.expressions import Compiled, Schema, compiled, divided, present
from thresholdout.data.parts.totals import GroupTotals, Joint, Totals, grid_steps
from thresholdout.data.values import half_bits, record_bits, square_sum
from thresholdout.errors import EngineFailed, InputError

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from numpy.typing import NDArray

Found = TypeVar("Found", Totals, GroupTotals)

__all__ = ["LOGARITHM", "PANIC", "GridSum", "LazyPart", "Wanted", "counted", "to_grid"]


@dataclass(frozen=True, slots=True)
class GridSum:
    """One query of a pass over a frame: its columns in layers, its sums, and their interpretation.

    A record without a value counts as `missing`, n sets the grid, and names of columns start with `mark`. An engine may
    recognise missing values by itself (`known`), and sum booleans unconverted (`whole`). A `careful` query
    distinguishes values out of range and NaN; otherwise the sums may be unusable, which they show. Of a `plain` boolean
    only the records with the value true are counted.
    """

    value: Compiled
    bounds: tuple[float, float]
    missing: float
    squares: bool
    n: int
    mark: str
    known: bool
    whole: bool
    careful: bool
    plain: bool

    def layers(self, schema: Schema) -> list[dict[str, nw.Expr]]:
        """Return the columns of the records, and then the layers of columns made from them."""
        import narwhals as nw

        own = (self.value if self.counts else self.value.as_real()).expression
        known = self.known or self.plain or not self.value.needed
        here = None if known else present(sorted(self.value.needed), schema)
        if self.counts:
            layers = [{"value": own} if here is None else {"value": here & own, "here": here}]
        else:
            own = own if here is None else nw.when(here).then(own).otherwise(nw.lit(None, nw.Float64))
            layers = [{"value": own}, *(self._checks() if self.careful else []), *self._roundings()]
        return [{self._name(name): one for name, one in layer.items()} for layer in layers]

    def sums(self) -> dict[str, nw.Expr]:
        """Return the sums over all records."""
        import narwhals as nw

        value = self._column("value")
        if self.counts:
            ones = {self._name("ones"): (value if self.whole else value.cast(nw.Int64)).sum()}
            if self.plain:
                return ones
            masked = not self.known and self.value.needed
            here = self._column("here")
            values = (here if self.whole else here.cast(nw.Int64)).sum() if masked else value.count()
            return {self._name("values"): values} | ones
        inside, unit = self._column("inside" if self.careful else "value"), self._column("unit")
        found = {"values": inside.count(), "total": unit.sum()}
        if self.careful:
            found |= {name: self._column(name).cast(nw.Int64).sum() for name in ("ones", "below", "above")}
        else:
            found |= {"least": value.min(), "most": value.max()}
        if self.squares:
            high, low = self._column("high"), self._column("low")
            found |= {"high": (high * high).sum(), "mixed": (high * low).sum(), "low": (low * low).sum()}
        return {self._name(name): one for name, one in found.items()}

    def totals(self, row: Mapping[str, Any]) -> Totals | None:
        """Return the totals from the sums; None if they are unusable and a careful query is needed."""
        found = {name[len(self.mark) :]: sum_ for name, sum_ in row.items() if name.startswith(self.mark)}
        if self.counts:
            ones = int(found["ones"] or 0)
            values = self.n if self.plain else int(found["values"])
            return counted(self.n, {1.0: ones, 0.0: values - ones}, self.bounds, self.missing, self.squares)
        bits = record_bits(self.n)
        top, values = 1 << bits, int(found["values"])
        if values and not self.careful:
            lower, upper = self.bounds
            within = found["least"] >= lower and found["most"] <= upper and math.isfinite(found["total"])
            if not within or _steps(found["total"], bits) % top == 0:  # a whole number: of zeros and ones, perhaps
                return None
        below, above = (int(found.get(name) or 0) for name in ("below", "above"))
        total = _steps(found["total"] or 0.0, bits) + above * top
        squares = None
        if self.squares:
            high, mixed, low = (found[name] or 0.0 for name in ("high", "mixed", "low"))
            squares = square_sum(high + above, mixed, low, bits)
        return Totals(
            self.n,
            bits,
            total,
            coins=total == (int(found.get("ones") or 0) + above) << bits,
            missing=self.n - values - below - above,
            below=below,
            above=above,
            absent=grid_steps(self.missing, bits, self.bounds),
            squares=squares,
        )

    def summands(self) -> dict[str, nw.Expr]:
        """Return the summands of each group: Dask sums only columns there."""
        import narwhals as nw

        value = self._column("value")
        if self.counts:
            masked = not self.known and self.value.needed
            found = {"values": self._column("here") if masked else ~value.is_null(), "ones": value}
        else:
            found = {"values": ~self._column("inside").is_null()}
            found |= {name: self._column(name) for name in ("below", "above")}
        numbers = {self._name(name): one.cast(nw.Int64) for name, one in found.items()}
        return numbers if self.counts else numbers | {self._name("total"): self._column("unit")}

    def group_sums(self, rows: Mapping[str, NDArray[np.float64]], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of groups, of which each has a row of sums: multiples of the grid of at most n."""
        found = {name[len(self.mark) :]: column for name, column in rows.items() if name.startswith(self.mark)}
        bits = record_bits(self.n)
        absent = math.ldexp(grid_steps(self.missing, bits, self.bounds), -bits)
        if self.counts:
            lower, upper = self.bounds
            zero, one = (
                math.ldexp(grid_steps(min(max(value, lower), upper), bits, self.bounds), -bits) for value in (0.0, 1.0)
            )
            ones, values = found["ones"], found["values"]
            return ones * one + (values - ones) * zero + (sizes - values) * absent
        missing = sizes - found["values"] - found["below"] - found["above"]
        return found["total"] + found["above"] + missing * absent

    @property
    def counts(self) -> bool:
        """Whether counts are enough, since values are booleans."""
        return self.value.kind == "boolean"

    def _checks(self) -> list[dict[str, nw.Expr]]:
        """Return the layer that separates values in the range from others."""
        import narwhals as nw

        lower, upper = self.bounds
        value = self._column("value")
        number = ~(value.is_null() | value.is_nan())
        within = number & (value >= lower) & (value <= upper)
        inside = nw.when(within).then(value).otherwise(nw.lit(None, nw.Float64))
        return [{"below": number & (value < lower), "above": number & (value > upper), "inside": inside}]

    def _roundings(self) -> list[dict[str, nw.Expr]]:
        """Return the layers that round values to the grid."""
        name, bits = "inside" if self.careful else "value", record_bits(self.n)
        lower, width = self.bounds[0], self.bounds[1] - self.bounds[0]
        unit = self._column(name)
        if self.bounds != (0.0, 1.0):
            unit = divided(unit - lower, width, [self._name(name)])
        layers = [{"unit": to_grid(unit, bits)}]
        if self.careful:
            layers.append({"ones": self._column("unit") == 1.0})
        if self.squares:
            layers.append({"high": to_grid(self._column("unit"), bits - half_bits(bits))})
            layers.append({"low": self._column("unit") - self._column("high")})  # computed once for two sums
        return layers

    def _name(self, name: str) -> str:
        return f"{self.mark}{name}"

    def _column(self, name: str) -> nw.Expr:
        import narwhals as nw

        return nw.col(self._name(name))


def counted(n: int, counts: Mapping[float, int], bounds: tuple[float, float], missing: float, squares: bool) -> Totals:
    """Return the totals of values of which few are different.

    Examples
    --------
    >>> counted(4, {-1.0: 1, 0.0: 1, 1.0: 2}, (-1.0, 1.0), 0.0, False).mean.mean()
    0.625
    """
    bits = record_bits(n)
    lower, upper = bounds
    steps = {value: grid_steps(min(max(value, lower), upper), bits, bounds) for value in counts}
    return Totals(
        n,
        bits,
        sum(steps[value] * count for value, count in counts.items()),
        coins=all(steps[value] in (0, 1 << bits) for value, count in counts.items() if count),
        missing=n - sum(counts.values()),
        below=sum(count for value, count in counts.items() if value < lower),
        above=sum(count for value, count in counts.items() if value > upper),
        absent=grid_steps(missing, bits, bounds),
        squares=sum(steps[value] ** 2 * count for value, count in counts.items()) if squares else None,
    )


def to_grid(unit: nw.Expr, bits: int) -> nw.Expr:
    """Round numbers in [0, 1] to multiples of ``2**-bits``, ties to even."""
    zero = 2.0 ** (52 - bits)
    return (unit + zero) - zero


def _steps(total: float, bits: int) -> int:
    """Return a sum in steps of ``2**-bits``, of which it is a multiple."""
    return int(total * 2.0**bits)


_EXACT: Final = float(1 << 53)
PANIC: Final = "PanicException"
"""Name of the error of engines written in Rust for faults of their own; it is no Exception."""

_TOGETHER: Final = 256
"""Queries in one pass of a list, at most: engines plan each of their sums."""

_REMEMBERED: Final = 4096
"""Checked expressions that a part remembers, at most; a query checks each of its own several times."""

_BY_GROUP: Final = 32
"""The same of sums by group: a row comes back for each group, with four numbers for each query."""

_FETCHED: ContextVar[Mapping[tuple[Any, ...], Any] | None] = ContextVar("fetched totals", default=None)

_PROBED: Final = 20  # digits of the grid on which engines are tested
_PROBES: Final = [(k * 2.0**-23, round(k / 8) * 2.0**-20) for k in (1, 3, 4, 5, 8, 11, 12, 13, 20)]
"""Numbers with their roundings to a grid of 20 digits: below, at and above the middle between two steps."""

LOGARITHM: Final = 2.0**-40
"""Largest error of an engine's logarithm, in units of the larger of 1 and its absolute value: 2^12 times the error of
libraries of mathematics."""
_OF: Final = (2.0**-1000, math.exp(-5.0), 0.1, 0.5, 0.75, 0.999, 1.0 - 2.0**-20, 1.0)
"""Numbers whose logarithm is tried."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query about one part.

    ``value`` is an expression, or the name of a column, with ``bounds`` checked by
    `thresholdout.data.values.check_bounds`. A record without a value counts as ``missing``, by default the lower end.
    ``squares`` asks for the variance, and ``argument`` is the name in error messages. With ``only_true`` a missing
    value of a boolean counts as false, and nobody needs the number of these.
    """

    value: nw.Expr | str
    bounds: tuple[float, float] = (0.0, 1.0)
    missing: float | None = None
    squares: bool = False
    argument: str = "query"
    only_true: bool = False

    @property
    def absent(self) -> float:
        """Value of records without one."""
        return self.bounds[0] if self.missing is None else self.missing


class LazyPart:
    """A lazy frame whose engine computes the counts and sums of queries.

    ``name`` is the part's name in error messages; ``schema`` has the types of the columns, ``distinct`` the distinct
    values of those that were read and their greatest number (`thresholdout.data.parts.part_groups`).

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> part = LazyPart(pl.LazyFrame({"pred": [0, 1, 1, 1], "y": [0, 1, 0, 1]}), "holdout")
    >>> part.n, part.columns, part.totals(nw.col("pred") == nw.col("y")).mean.mean()
    (4, ('pred', 'y'), 0.75)
    """

    def __init__(self, frame: object, name: str) -> None:
        self.name = name
        self.frame = as_lazy(frame, name)
        self.schema: Schema = dict(self.frame.collect_schema())
        self.distinct: dict[tuple[str, int], list[Any]] = {}
        self._compiled: dict[int, tuple[object, str, Compiled]] = {}

    def __repr__(self) -> str:
        return f"<LazyPart {self.name} with {len(self.schema)} columns>"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema)

    @cached_property
    def n(self) -> int:
        """Number of records, counted once."""
        import narwhals as nw

        zero = nw.col("n").cast(nw.Float64) * 0.0  # unknown before the engine computes it
        probes = {f"probe {place}": to_grid(zero + number, _PROBED) for place, (number, _) in enumerate(_PROBES)}
        logs = {f"log {place}": (zero + number).log() for place, number in enumerate(_OF)}
        row = self.row(lambda: self.frame.select(nw.len().alias("n")).with_columns(**probes, **logs))
        wrong = [row[f"probe {place}"] != wanted for place, (_, wanted) in enumerate(_PROBES)]
        for place, number in enumerate(_OF):
            exact = math.log(number)
            wrong.append(not abs(row[f"log {place}"] - exact) <= 0.25 * LOGARITHM * max(1.0, -exact))
        if any(wrong):
            raise InputError(self.name, "an engine that rounds otherwise", "computed in 64-bit floats of IEEE 754")
        if not row["n"]:
            raise InputError(self.name, "no records", "at least one record")
        return int(row["n"])

    def compiled(self, value: nw.Expr | str, argument: str = "query") -> Compiled:
        """Check an expression against the columns; its ``text`` is its content. No data are touched."""
        known = self._compiled.get(id(value))
        if known is not None and known[0] is value and known[1] == argument:
            return known[2]
        found = compiled(value, self.schema, argument, whole=knows_missing(self.frame))
        if len(self._compiled) >= _REMEMBERED:
            self._compiled.clear()
        self._compiled[id(value)] = value, argument, found  # with the value, so that nothing else gets its id
        return found

    def totals(
        self,
        value: nw.Expr | str,
        bounds: tuple[float, float] = (0.0, 1.0),
        *,
        missing: float | None = None,
        squares: bool = False,
        argument: str = "query",
    ) -> Totals:
        """Return the totals of a query in one pass; for the arguments see `Wanted`.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> part = LazyPart(pl.LazyFrame({"p": [0.25, 0.5, None, 7.0]}), "train")
        >>> found = part.totals("p")
        >>> found.mean.mean(), found.missing, found.above
        (0.4375, 1, 1)
        """
        return self.totals_of([Wanted(value, bounds, missing, squares, argument)])[0]

    def totals_of(self, queries: Sequence[Wanted]) -> list[Totals]:
        """Return the totals of several queries in one pass.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> part = LazyPart(pl.LazyFrame({"a": [0.25, 0.5], "b": [True, False]}), "train")
        >>> [found.mean.mean() for found in part.totals_of([Wanted("a"), Wanted("b"), Wanted(nw.col("a") < 0.4)])]
        [0.375, 0.5, 0.5]
        """
        return self._all(queries, None, self._counted)

    def _all(
        self, queries: Sequence[Wanted], by: str | None, compute: Callable[[list[GridSum]], Sequence[Found]]
    ) -> list[Found]:
        """Return the totals of queries, known ones from the cache and the rest in one pass."""
        told = _FETCHED.get() or {}
        numbers: list[Compiled] = [self._numeric(one) for one in queries]
        keys = [self._key(by, one, value) for one, value in zip(queries, numbers, strict=True)]
        new: dict[tuple[Any, ...], GridSum] = {}
        for key, one, value in zip(keys, queries, numbers, strict=True):
            if key not in told and key not in new:
                new[key] = self._grid_sum(one, value, by, f"{len(new)} ")
        if new:
            told = {**told, **dict(zip(new, compute(list(new.values())), strict=True))}
        return [told[key] for key in keys]

    def _grid_sum(self, one: Wanted, value: Compiled, by: str | None, mark: str) -> GridSum:
        """Return the sums of a query; sums by group are careful ones."""
        careful = by is not None
        knows = knows_missing(self.frame)
        engine = value.strict and knows, adds_booleans(self.frame)
        plain = one.only_true and value.definite and knows and not careful
        squares = one.squares and not careful
        return GridSum(value, one.bounds, one.absent, squares, self.n, mark, *engine, careful, plain)

    def _key(self, by: str | None, one: Wanted, value: Compiled) -> tuple[Any, ...]:
        """Return a query's identity in a pass, of all records or by the groups of a column."""
        return id(self), by, value.text, one.bounds, one.absent, one.squares and by is None, one.only_true

    @contextmanager
    def fetched(self, queries: Sequence[Wanted], by: str | None = None) -> Iterator[None]:
        """Count several queries in one pass, from which `totals_of` or `group_totals` takes them in this context.

        A second pass that fails is left to the query that needs it: such a failure is charged.

        Examples
        --------
        >>> import polars as pl
        >>> part = LazyPart(pl.LazyFrame({"a": [0.25, 0.5]}), "train")
        >>> with part.fetched([Wanted("a")]):
        ...     part.totals("a").mean.mean()
        0.375
        """
        found = dict(_FETCHED.get() or {})
        before = _FETCHED.set(found)
        try:
            step = _TOGETHER if by is None else _BY_GROUP
            for start in range(0, len(queries), step):
                some = queries[start : start + step]
                try:
                    totals = self.totals_of(some) if by is None else self.group_totals_of(some, by)
                except EngineFailed as error:
                    if not error.late:
                        raise
                    continue
                found |= zip([self._key(by, one, self._numeric(one)) for one in some], totals, strict=True)
            yield
        finally:
            _FETCHED.reset(before)

    def _counted(self, asked: Sequence[GridSum]) -> list[Totals]:
        """Compute totals in one pass; repeat unusable ones carefully in a second one."""
        found = self._summed(asked)
        unsettled = [place for place, one in enumerate(found) if one is None]
        if unsettled:
            try:
                again = self._summed([replace(asked[place], careful=True) for place in unsettled])
            except EngineFailed as error:
                raise EngineFailed(error.part, error.reason, late=True) from error.__cause__
            found = [again.pop(0) if one is None else one for one in found]
        return [one for one in found if one is not None]

    def group_totals(self, wanted: Wanted, column: str) -> GroupTotals:
        """Return the sums of values by the groups of a column, in one pass; for each group a row comes back.

        Examples
        --------
        >>> import polars as pl
        >>> part = LazyPart(pl.LazyFrame({"p": [0.5, 7.0, 0.25, None], "g": ["b", "a", "b", "b"]}), "holdout")
        >>> found = part.group_totals(Wanted("p"), "g")
        >>> found, found.sums.tolist(), found.sizes.tolist()
        (<GroupTotals groups=2>, [1.0, 0.75], [1.0, 3.0])
        """
        return self.group_totals_of([wanted], column)[0]

    def group_totals_of(self, queries: Sequence[Wanted], column: str) -> list[GroupTotals]:
        """Return the same of several queries, in one pass."""
        return self._all(queries, column, lambda asked: self._by_group(asked, column))

    def joint_group_totals(self, queries: Sequence[Wanted], column: str) -> list[GroupTotals]:
        """Return the same in an order of groups that all of them share."""
        asked = [self._grid_sum(one, self._numeric(one), column, f"{at} ") for at, one in enumerate(queries)]
        return self._by_group(asked, column, shared=True)

    def _by_group(self, asked: Sequence[GridSum], column: str, *, shared: bool = False) -> list[GroupTotals]:
        """Add up values by group, in one pass."""
        import narwhals as nw

        try:
            frame, summands = self._layered(asked, group=nw.col(column)), _merged(one.summands() for one in asked)
            groups = frame.select(nw.col("group"), **summands).group_by("group")
            table = groups.agg(nw.len().alias("size"), *(nw.col(name).sum() for name in summands)).collect()
            names = "size", *summands
            rows = {name: np.nan_to_num(np.asarray(table[name].to_numpy(), dtype=np.float64)) for name in names}
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == PANIC:
                reason = f"{type(error).__name__} while its groups were added up"
                raise EngineFailed(self.name, reason) from error
            raise
        sizes = rows["size"]
        if sizes.sum() != self.n:
            raise EngineFailed(self.name, f"{sizes.sum():.0f} records where there were {self.n}")
        sums = [one.group_sums(rows, sizes) for one in asked]
        orders = [np.lexsort((one, sizes)) for one in sums]
        if shared:
            orders = [np.lexsort((*sums, sizes))] * len(sums)
        return [GroupTotals(one[at], sizes[at], record_bits(self.n)) for one, at in zip(sums, orders, strict=True)]

    def _layered(self, asked: Sequence[GridSum], **own: nw.Expr) -> nw.LazyFrame[Any]:
        """Return the frame of columns that are added up, of all queries, one layer made of the other."""
        first, *others = zip_longest(*(one.layers(self.schema) for one in asked), fillvalue={})
        frame = self.frame.select(**own, **_merged(first))
        for layer in others:
            frame = frame.with_columns(**_merged(layer))
        return frame

    def joint(
        self, b: nw.Expr | str, a: nw.Expr | str, bounds: tuple[float, float] = (0.0, 1.0), *, argument: str = "b"
    ) -> Joint:
        """Compare two models' values record by record, in one pass.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> frame = pl.LazyFrame({"b": [1, 1, 0, 1], "a": [0, 1, 1, 0], "y": [1, 1, 1, 1]})
        >>> found = LazyPart(frame, "holdout").joint(nw.col("b") == nw.col("y"), nw.col("a") == nw.col("y"))
        >>> found.more, found.less, found.right_or_wrong, found.difference.mean.mean()
        (2, 1, True, 0.625)
        """
        width = bounds[1] - bounds[0]
        found = self.totals_of(self.joint_wanted(b, a, bounds, argument=argument))
        if len(found) == 2:
            more, less = (_count(one) for one in found)
            counts = {1.0: more, -1.0: less, 0.0: self.n - found[0].missing - more - less}
            return Joint(more, less, True, counted(self.n, counts, (-width, width), 0.0, squares=True))
        more, less, right = (_count(one) for one in found[:3])
        return Joint(more, less, right == self.n, found[3])

    def joint_wanted(
        self, b: nw.Expr | str, a: nw.Expr | str, bounds: tuple[float, float] = (0.0, 1.0), *, argument: str = "b"
    ) -> list[Wanted]:
        """Return the queries of `joint`: two counts for booleans, or three and the difference."""
        import narwhals as nw

        first, second = (nw.col(one) if isinstance(one, str) else one for one in (b, a))
        if all(self.compiled(one, argument).kind == "boolean" for one in (first, second)):
            return [Wanted(one, argument=argument) for one in (first & ~second, ~first & second)]
        width = bounds[1] - bounds[0]
        first, second = (one.cast(nw.Float64) for one in (first, second))
        whole = first.is_in([0.0, 1.0]) & second.is_in([0.0, 1.0])
        asked = [Wanted(one, argument=argument) for one in (first > second, first < second, whole)]
        return [*asked, Wanted(first - second, (-width, width), 0.0, squares=True, argument=argument)]

    def map_batches(
        self, function: Callable[[pa.RecordBatch], Result], columns: Sequence[str] | None = None
    ) -> Iterator[Result]:
        """Yield a function of each Arrow batch of the records; see `thresholdout.data.parts.engines.map_batches`.

        Examples
        --------
        >>> import polars as pl
        >>> part = LazyPart(pl.LazyFrame({"a": [1, 2], "b": [3, 4]}), "holdout")
        >>> list(part.map_batches(lambda batch: batch.num_rows, ["b"]))
        [2]
        """
        return map_batches(self.frame, self.columns if columns is None else columns, function)

    def _numeric(self, asked: Wanted) -> Compiled:
        """Check that a query's values are numbers that floats hold."""
        found = self.compiled(asked.value, asked.argument)
        if not found.columns:
            raise InputError(asked.argument, found.text, "an expression that reads a column")
        if found.kind not in ("boolean", "integer", "real"):
            raise InputError(asked.argument, f"{found.text}, a {found.kind}", "numbers or booleans")
        if found.kind == "integer" and max(map(abs, asked.bounds)) >= _EXACT:
            raise InputError(
                "bounds", repr(asked.bounds), "ends below 2**53 for integers", "Floats represent larger ones inexactly."
            )
        return found

    def _summed(self, asked: Sequence[GridSum]) -> list[Totals | None]:
        """Compute sums in one pass."""
        import narwhals as nw

        def plan() -> nw.LazyFrame[Any]:
            frame = self._layered(asked)
            return frame.select(nw.len().alias("records"), **_merged(one.sums() for one in asked))

        row = self.row(plan)
        if row["records"] != self.n:
            raise EngineFailed(self.name, f"{row['records']} records where there were {self.n}")
        return [one.totals(row) for one in asked]

    def row(self, plan: Callable[[], nw.LazyFrame[Any]]) -> Mapping[str, Any]:
        """Let the engine compute one row; some look at their files when it is planned, too."""
        try:
            return collected(plan())
        except BaseException as error:
            if isinstance(error, Exception) or type(error).__name__ == PANIC:
                reason = f"{type(error).__name__} while its records were counted"
                raise EngineFailed(self.name, reason) from error
            raise


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _count(totals: Totals) -> int:
    """Return how often something is true."""
    return totals.total >> totals.bits
