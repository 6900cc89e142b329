"""The engines of lazy frames: which frames are lazy, and what is computed of their records, a batch at a time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thresholdout.errors import InputTypeError, ThresholdoutError

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
"""Records in a batch, where that can be chosen."""

_EXPECTED: Final = "a polars.LazyFrame, a DuckDB relation, a Dask or Spark DataFrame, or a narwhals.LazyFrame"


def is_lazy(frame: object) -> bool:
    """Return whether a frame is lazy: its records come from files, a data base or a cluster. Nothing is imported.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"y": [0, 1]})
    >>> is_lazy(frame), is_lazy(frame.lazy())
    (False, True)
    """
    return any((kind.__module__.split(".")[0], kind.__name__) in _LAZY for kind in type(frame).__mro__)


def as_lazy(frame: object, argument: str) -> nw.LazyFrame[Any]:
    """Return a lazy frame as narwhals has it."""
    if not is_lazy(frame):
        raise InputTypeError(argument, f"a {type(frame).__name__}", _EXPECTED)
    try:
        import narwhals as nw
    except ImportError:
        needs = "data that stay in files, data bases or clusters need narwhals: pip install 'thresholdout[big]'"
        raise ThresholdoutError(needs) from None
    found: nw.LazyFrame[Any] = nw.from_native(nw.to_native(frame, pass_through=True))
    return found


def knows_missing(frame: nw.LazyFrame[Any]) -> bool:
    """Return whether columns of all types have missing values, and comparisons and sums of them are missing.

    Dask's comparisons are false there, and its integers become floats that are no numbers.
    """
    import narwhals as nw

    return frame.implementation is not nw.Implementation.DASK


def adds_booleans(frame: nw.LazyFrame[Any]) -> bool:
    """Return whether the engine adds up what is true or false as it is, and quicker than integers: Polars does."""
    import narwhals as nw

    return frame.implementation is nw.Implementation.POLARS


def collected(frame: nw.LazyFrame[Any]) -> dict[str, Any]:
    """Let the engine compute the only row of a frame; it never has all records of its source in memory."""
    import narwhals as nw

    streams = frame.implementation is nw.Implementation.POLARS
    found = frame.collect(engine="streaming") if streams else frame.collect()
    return found.rows(named=True)[0]


def map_batches(
    frame: nw.LazyFrame[Any], columns: Sequence[str], function: Callable[[pa.RecordBatch], Result]
) -> Iterator[Result]:
    """Yield a function of each Arrow batch of some columns, in any order.

    The workers of Dask and Spark apply it, so that only its results reach this process; they import the function.
    Other engines hand over a batch at a time. Missing floats of Dask, which has no others, come as missing values.
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
        yield from _of_dask(native, function)
    elif kind.is_spark_like():
        yield from _of_spark(native, function)
    else:
        raise InputTypeError("frame", f"an engine {kind}", _EXPECTED)


def _of_dask(frame: Any, function: Callable[[pa.RecordBatch], Result]) -> Iterator[Result]:
    """Yield the results of a Dask frame, whose workers read a partition each."""
    import dask

    def results(partition: Any) -> list[Result]:
        import pyarrow as pa

        table = pa.Table.from_pandas(partition, preserve_index=False)
        return [function(batch) for batch in table.to_batches(max_chunksize=_BATCH)]

    for found in dask.compute(*(dask.delayed(results)(partition) for partition in frame.to_delayed())):
        yield from found


def _of_spark(frame: Any, function: Callable[[pa.RecordBatch], Result]) -> Iterator[Result]:
    """Yield the results of a Spark frame; each comes pickled."""

    def results(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(function(batch))], pa.binary())], ["result"])

    for row in frame.mapInArrow(results, "result binary").collect():
        yield pickle.loads(row["result"])
