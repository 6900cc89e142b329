"""A part of the data that is never in memory: files, a table of a data base, a frame of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from thresholdout.data.parts.engines import as_lazy, record_batches
from thresholdout.data.parts.expressions import Compiled, Schema, compiled
from thresholdout.data.parts.grid_sums import GridSum, totals_of_counts
from thresholdout.data.parts.totals import Joint, Totals
from thresholdout.errors import EngineFailed, InputError

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

__all__ = ["LazyPart", "Wanted"]

_EXACT = float(1 << 53)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question about one part.

    Parameters
    ----------
    value : narwhals.Expr or str
        One value for each record: an expression, or the name of a column.
    bounds : tuple of float, default=(0.0, 1.0)
        The range, checked by `thresholdout.data.values.check_bounds`.
    missing : float, optional
        What a record without a value counts as, in the range; its lower end by default.
    squares : bool, default=False
        Whether the variance is wanted.
    argument : str, default="question"
        How error messages call it.
    """

    value: nw.Expr | str
    bounds: tuple[float, float] = (0.0, 1.0)
    missing: float | None = None
    squares: bool = False
    argument: str = "question"


class LazyPart:
    """A lazy frame whose engine counts and adds up what questions need.

    Parameters
    ----------
    frame : polars.LazyFrame, DuckDB relation, Dask or Spark DataFrame, or narwhals.LazyFrame
        One row for each record.
    name : str
        How error messages call it.

    Attributes
    ----------
    frame : narwhals.LazyFrame
        The same frame.
    name : str
        As given.
    schema : dict of str to narwhals.dtypes.DType
        Types of the columns.

    Raises
    ------
    InputTypeError
        When it is no lazy frame.

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

    def __repr__(self) -> str:
        return f"<LazyPart {self.name} with {len(self.schema)} columns>"

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema)

    @cached_property
    def n(self) -> int:
        """Number of records, counted once.

        Raises
        ------
        InputError
            When there is none.
        """
        import narwhals as nw

        (found,) = self._row(self.frame.select(nw.len().alias("n"))).values()
        if not found:
            raise InputError(self.name, "no records", "at least one")
        return int(found)

    def compiled(self, value: nw.Expr | str, argument: str = "question") -> Compiled:
        """Check an expression against the columns; its ``text`` is its content. No data are touched."""
        return compiled(value, self.schema, argument)

    def totals(
        self,
        value: nw.Expr | str,
        bounds: tuple[float, float] = (0.0, 1.0),
        *,
        missing: float | None = None,
        squares: bool = False,
        argument: str = "question",
    ) -> Totals:
        """Return what a question needs of this part, in one pass; for the arguments see `Wanted`.

        Raises
        ------
        InputError
            When the expression cannot be used; nothing is read then.
        EngineFailed
            When the engine fails, or the frame has another number of records than before.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> part = LazyPart(pl.LazyFrame({"p": [0.25, 0.5, None, 7.0]}), "train")
        >>> found = part.totals("p")
        >>> found.mean.mean(), found.missing, found.above
        (0.4375, 1, 1)
        """
        return self.totals_of([Wanted(value, bounds, missing, squares, argument)])[0]

    def totals_of(self, questions: Sequence[Wanted]) -> list[Totals]:
        """Return what several questions need, in one pass.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> part = LazyPart(pl.LazyFrame({"a": [0.25, 0.5], "b": [True, False]}), "train")
        >>> [found.mean.mean() for found in part.totals_of([Wanted("a"), Wanted("b"), Wanted(nw.col("a") < 0.4)])]
        [0.375, 0.5, 0.5]
        """
        import narwhals as nw

        values = [self._numeric(one) for one in questions]
        asked = [
            GridSum(value, one.bounds, one.bounds[0] if one.missing is None else one.missing, one.squares, self.n, mark)
            for one, value, mark in zip(questions, values, (f"q{place} " for place in range(len(values))), strict=True)
        ]
        frame = self.frame.select(**_merged(one.values(self.schema) for one in asked))
        for layer in zip_longest(*(one.layers() for one in asked), fillvalue={}):
            frame = frame.with_columns(**_merged(layer))
        row = self._row(frame.select(nw.len().alias("records"), **_merged(one.sums() for one in asked)))
        if row["records"] != self.n:
            raise EngineFailed(self.name, f"{row['records']} records where there were {self.n}")
        return [one.totals(row) for one in asked]

    def joint(
        self, b: nw.Expr | str, a: nw.Expr | str, bounds: tuple[float, float] = (0.0, 1.0), *, argument: str = "b"
    ) -> Joint:
        """Compare two models' values record by record, in one pass.

        Parameters
        ----------
        b, a : narwhals.Expr or str
            Values of each record in the range.
        bounds : tuple of float
            The range of both.
        argument : str, default="b"
            How error messages call them.

        Examples
        --------
        >>> import narwhals as nw, polars as pl
        >>> frame = pl.LazyFrame({"b": [1, 1, 0, 1], "a": [0, 1, 1, 0], "y": [1, 1, 1, 1]})
        >>> found = LazyPart(frame, "holdout").joint(nw.col("b") == nw.col("y"), nw.col("a") == nw.col("y"))
        >>> found.more, found.less, found.right_or_wrong, found.difference.mean.mean()
        (2, 1, True, 0.625)
        """
        import narwhals as nw

        first, second = (nw.col(one) if isinstance(one, str) else one for one in (b, a))
        width = bounds[1] - bounds[0]
        sides = [self.compiled(one, argument) for one in (first, second)]
        if all(one.kind == "boolean" for one in sides):
            asked = [Wanted(one, argument=argument) for one in (first & ~second, ~first & second)]
            more, less = self.totals_of(asked)
            counts = {1.0: _ones(more), -1.0: _ones(less), 0.0: self.n - more.missing - _ones(more) - _ones(less)}
            difference = totals_of_counts(self.n, counts, (-width, width), 0.0, squares=True)
            return Joint(_ones(more), _ones(less), True, difference)
        first, second = (one.cast(nw.Float64) for one in (first, second))
        whole = first.is_in([0.0, 1.0]) & second.is_in([0.0, 1.0])
        asked = [Wanted(one, argument=argument) for one in (first > second, first < second, whole)]
        more, less, right, difference = self.totals_of(
            [*asked, Wanted(first - second, (-width, width), 0.0, squares=True, argument=argument)]
        )
        return Joint(_ones(more), _ones(less), _ones(right) == self.n, difference)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the records as Arrow batches, in any order; see `thresholdout.data.parts.engines.record_batches`.

        Examples
        --------
        >>> import polars as pl
        >>> [batch.num_rows for batch in LazyPart(pl.LazyFrame({"a": [1, 2], "b": [3, 4]}), "holdout").batches(["b"])]
        [2]
        """
        return record_batches(self.frame, self.columns if columns is None else columns)

    def _numeric(self, asked: Wanted) -> Compiled:
        """Check what is asked, and that its values are numbers that floats hold."""
        found = self.compiled(asked.value, asked.argument)
        if not found.columns:
            raise InputError(asked.argument, found.text, "an expression that reads a column")
        if found.kind not in ("boolean", "integer", "real"):
            raise InputError(asked.argument, f"{found.text}, a {found.kind}", "numbers or booleans")
        if found.kind == "integer" and max(map(abs, asked.bounds)) >= _EXACT:
            raise InputError(
                "bounds", repr(asked.bounds), "ends below 2**53 for integers: floats hold no others exactly"
            )
        return found

    def _row(self, frame: nw.LazyFrame[Any]) -> Mapping[str, Any]:
        """Let the engine compute one row."""
        try:
            found: Mapping[str, Any] = frame.collect().rows(named=True)[0]
        except Exception as error:
            raise EngineFailed(self.name, f"{type(error).__name__} while its records were counted") from error
        return found


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _ones(totals: Totals) -> int:
    """Return how often something is true."""
    return totals.total >> totals.bits
