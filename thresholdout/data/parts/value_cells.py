"""Numbers of records in cells of their values: one for each of some values, and one between two of them.

The values come from the training part, so which cell a record is in is a function of this record alone. They are all
values that training records have, or 65,536 of more, of all columns of a query; one is the likelier among them the more
records have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.hashed_entries import mixed
from thresholdout.data.parts.engines import map_batches
from thresholdout.data.parts.lazy_part import PANIC
from thresholdout.errors import EngineFailed

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from numpy.typing import NDArray

    from thresholdout.data.parts.lazy_part import LazyPart

__all__ = ["cell_counts", "common_values"]

_MOST: Final = 1 << 16
"""Values that have a cell, at most: two numbers of this and of the cell before it come back from each worker."""


def common_values(
    part: LazyPart, value: nw.Expr, truth: nw.Expr, sizes: tuple[int, int], columns: int = 1
) -> NDArray[np.float64]:
    """Return the values that records have, in order; of too many a sample, the same in every engine.

    A value has the weight w of its records, and the word u of its bits, which is like a uniform number: those of
    least u/w are kept. So each is the likelier in the sample the more records have it.
    ``sizes`` are the numbers of records of the classes 0 and 1, which weigh the same. Several ``columns``
    of a query share the number of values that are kept.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.LazyFrame({"p": [0.5, 0.25, 0.5], "y": [0.0, 1.0, 1.0]}), "train")
    >>> common_values(part, nw.col("p"), nw.col("y"), (1, 2)).tolist()
    [0.25, 0.5]
    """
    import narwhals as nw

    def values() -> nw.LazyFrame[Any]:
        groups = part.frame.select(value=value, truth=truth).group_by("value")
        return groups.agg(nw.len().alias("records"), nw.col("truth").sum())

    limit = _MOST // columns
    kept = np.zeros((2, 0))
    for some in _mapped(part, values, partial(_ranked, sizes=sizes)):
        kept = np.concatenate([kept, some], axis=1)
        if kept.shape[1] > limit:
            kept = kept[:, np.argpartition(kept[1], limit)[:limit]]
    return np.unique(kept[0][kept[0] == kept[0]])


def cell_counts(
    part: LazyPart, values: Sequence[nw.Expr], truth: nw.Expr, cells: Sequence[NDArray[np.float64]], classes: int
) -> list[NDArray[np.int64]]:
    """Count the records of classes 0, 1, ... in each cell of some values, in one pass.

    The cells of a value are numbers in order. Each row, of a class, has the records below the first number, equal to
    it, between it and the second, and so on; and last those without a value.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.LazyFrame({"p": [0.5, 0.25, 0.6, None], "y": [0.0, 1.0, 1.0, 1.0]}), "holdout")
    >>> cell_counts(part, [nw.col("p")], nw.col("y"), [np.array([0.5, 0.75])], 2)[0].tolist()
    [[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 1]]
    """
    ends = np.cumsum([2 * one.size + 2 for one in cells])
    counts = np.zeros((classes, int(ends[-1])), dtype=np.int64)
    named = {f"value {place}": one for place, one in enumerate(values)}
    records = lambda: part.frame.select(**named, truth=truth)  # noqa: E731
    for some in _mapped(part, records, partial(_counted, cells=cells, classes=classes), np.add):
        counts += some
    found = np.split(counts, ends[:-1], axis=1)
    for one in found:
        if one.sum() != part.n:
            raise EngineFailed(part.name, f"{one.sum()} records where there were {part.n}")
    return found


def _mapped(
    part: LazyPart,
    plan: Callable[[], nw.LazyFrame[Any]],
    function: Callable[[pa.RecordBatch], NDArray[Any]],
    merge: Callable[[Any, Any], Any] | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield a function of the batches of a frame that is made of a part."""
    try:
        frame = plan()
        yield from map_batches(frame, frame.collect_schema().names(), function, merge)
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == PANIC:
            raise EngineFailed(part.name, f"{type(error).__name__} while its values were counted") from error
        raise


def _floats(batch: pa.RecordBatch) -> list[NDArray[np.float64]]:
    """Return the columns of a batch; missing values are NaN."""
    return [column.to_numpy(zero_copy_only=False).astype(np.float64) for column in batch.columns]


def _ranked(batch: pa.RecordBatch, sizes: tuple[int, int]) -> NDArray[np.float64]:
    """Return different values, and the ranks by which they are kept."""
    values, records, ones = _floats(batch)
    values += 0.0  # no negative zeros
    words = values.view(np.uint64).copy()
    shares = (records - ones) / max(1, sizes[0]) + ones / max(1, sizes[1])
    return np.stack([values, mixed(words, np.empty_like(words)) / shares])


def _counted(batch: pa.RecordBatch, cells: Sequence[NDArray[np.float64]], classes: int) -> NDArray[np.int64]:
    """Return the numbers of records of a batch in each cell, of one value after the other."""
    *values, truth = _floats(batch)
    of_class = [truth == kind for kind in range(classes)]
    found = []
    for own, numbers in zip(values, cells, strict=True):
        counts = np.zeros((classes, 2 * numbers.size + 2), dtype=np.int64)
        for row, chosen in zip(counts, of_class, strict=True):
            some = np.sort(own[chosen])  # sorted values are found three times faster; NaN is last
            place = numbers.searchsorted(some)
            cell = 2 * place + (numbers[np.minimum(place, numbers.size - 1)] == some)
            cell[np.isnan(some)] = row.size - 1
            row += np.bincount(cell, minlength=row.size)
        found.append(counts)
    return np.concatenate(found, axis=1)
