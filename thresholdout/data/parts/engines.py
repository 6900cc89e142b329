"""Engines of lazy frames, and computations on their records in batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thresholdout.errors import InputTypeError, ThresholdoutError
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

__all__ = ["adds_booleans", "as_lazy", "collected", "is_lazy", "knows_missing", "map_batches"]

Result = TypeVar("Result")

_LAZY: Final = {
    ("polars", "LazyFrame"),
    ("_duckdb", "DuckDBPyRelation"),
    ("duckdb", "DuckDBPyRelation"),
    ("dask", "DataFrame"),
    ("dask_expr", "DataFrame"),
    ("pyspark", "DataFrame"),
    ("narwhals", "LazyFrame"),
}
"""Package and name of the classes of lazy frames."""

_BATCH: Final = 1 << 16
"""Records in a batch, if the engine accepts a size."""

_EXPECTED: Final = "a polars.LazyFrame, a DuckDB relation, a Dask or Spark DataFrame, or a narwhals.LazyFrame"


def is_lazy(frame: object) -> bool:
    """Whether a frame is lazy: its records are in files, a data base or a cluster. Nothing is imported.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"y": [0, 1]})
    >>> is_lazy(frame), is_lazy(frame.lazy())
    (False, True)
    """
    return any((kind.__module__.split(".")[0], kind.__name__) in _LAZY for kind in type(frame).__mro__)


def as_lazy(frame: object, argument: str) -> nw.LazyFrame[Any]:
    """Return a lazy frame as one of narwhals."""
    if not is_lazy(frame):
        raise InputTypeError(argument, f"a {type(frame).__name__}", _EXPECTED)
    try:
        import narwhals as nw
    except ImportError:
        needs = "data that stay in files, data bases or clusters need narwhals: pip install 'thresholdout[big]'"
        raise ThresholdoutError(needs) from None
    # Of Dask narwhals announces a package of its own. Tests run with the support that narwhals itself has.
    with suppress_warnings(FutureWarning):
        found: nw.LazyFrame[Any] = nw.from_native(nw.to_native(frame, pass_through=True))
    return found


def knows_missing(frame: nw.LazyFrame[Any]) -> bool:
    """Whether columns of all types can have missing values, whose comparisons and sums are missing.

    In Dask such comparisons are false, and integers with missing values become floats with NaN.
    """
    import narwhals as nw

    return frame.implementation is not nw.Implementation.DASK


def adds_booleans(frame: nw.LazyFrame[Any]) -> bool:
    """Whether the engine sums booleans faster than integers, as Polars does."""
    import narwhals as nw

    return frame.implementation is nw.Implementation.POLARS


def collected(frame: nw.LazyFrame[Any]) -> dict[str, Any]:
    """Let the engine compute the only row of a frame, without all records of its source in memory."""
    import narwhals as nw

    streams = frame.implementation is nw.Implementation.POLARS
    found = frame.collect(engine="streaming") if streams else frame.collect()
    return found.rows(named=True)[0]


def map_batches(
    frame: nw.LazyFrame[Any],
    columns: Sequence[str],
    function: Callable[[pa.RecordBatch], Result],
    merge: Callable[[Result, Result], Result] | None = None,
) -> Iterator[Result]:
    """Yield a function of each Arrow batch of some columns, in any order.

    The workers of Dask and Spark import and apply the function, so that only its results reach this process; with
    `merge` one result for each partition. Other engines pass one batch at a time. NaN of Dask, which has no other
    missing floats, is converted to missing values.
    """
    import narwhals as nw

    native: Any = nw.to_native(frame.select(*columns))
    kind = frame.implementation
    if kind is nw.Implementation.POLARS:
        for part in native.collect_batches(chunk_size=_BATCH, maintain_order=False, lazy=True):
            yield from map(function, part.to_arrow().to_batches())
    elif kind is nw.Implementation.DUCKDB:
        reader = native.to_arrow_reader if hasattr(native, "to_arrow_reader") else native.fetch_arrow_reader
        yield from map(function, reader(_BATCH))
    elif kind is nw.Implementation.DASK:
        yield from _of_dask(native, function, merge)
    elif kind.is_spark_like():
        yield from _of_spark(native, function, merge)
    else:
        raise InputTypeError("frame", f"an engine {kind}", _EXPECTED)


def _merged(results: Iterator[Result], merge: Callable[[Result, Result], Result] | None) -> Iterator[Result]:
    """Return one result of a partition, where it is said how."""
    if merge is None:
        return results
    first = next(results, None)
    return iter(() if first is None else (reduce(merge, results, first),))


def _of_dask(
    frame: Any, function: Callable[[pa.RecordBatch], Result], merge: Callable[[Result, Result], Result] | None
) -> Iterator[Result]:
    """Yield the results of a Dask frame, one task for each partition."""
    import dask

    def results(partition: Any) -> list[Result]:
        import pyarrow as pa

        table = pa.Table.from_pandas(partition, preserve_index=False)
        return list(_merged(map(function, table.to_batches(max_chunksize=_BATCH)), merge))

    for found in dask.compute(*(dask.delayed(results)(partition) for partition in frame.to_delayed())):
        yield from found


def _of_spark(
    frame: Any, function: Callable[[pa.RecordBatch], Result], merge: Callable[[Result, Result], Result] | None
) -> Iterator[Result]:
    """Yield the results of a Spark frame, which are pickled."""

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for result in _merged(map(function, batches), merge):
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], ["result"])

    for row in frame.mapInArrow(results, "result binary").collect():
        yield pickle.loads(row["result"])
