"""The identity of a part in a lazy frame, and whether two such parts share records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from thresholdout.data.identity import RecordSums
from thresholdout.data.overlap import refuse_copies
from thresholdout.data.parts.engines import collected
from thresholdout.data.row_hashes import hash_blocks
from thresholdout.errors import EngineFailed, InputError

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.dtypes import DType

    from thresholdout.data.parts.lazy_part import LazyPart

__all__ = ["check_parts_disjoint", "part_identity"]

_FIRST: Final = 10_000  # records that are counted, so that a large part is not read for it
_MOST: Final = 0.9
"""A column identifies records if this share of its first records has different values; it only saves time."""


def part_identity(part: LazyPart) -> str:
    """Return the identity of a part: 64 hexadecimal digits that do not depend on the order of its records.

    The same table in memory has the same identity in every container (`thresholdout.data.identity.content_of`), and so
    has the same table in another engine or in other files. Records are read once in batches, and two sums are kept; the
    workers of a cluster send these sums and no record.

    Examples
    --------
    >>> import pandas as pd, polars as pl
    >>> from thresholdout.data.identity import content_of
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> part = LazyPart(pl.LazyFrame({"x": [3, 1], "y": ["b", "a"]}), "holdout")
    >>> part_identity(part) == content_of((pd.DataFrame({"x": [1, 3], "y": ["a", "b"]}),)).identity
    True
    """
    sums = RecordSums()
    try:
        for some in part.map_batches(_sums):
            sums.merge(some)
    except Exception as error:
        raise EngineFailed(part.name, f"{type(error).__name__} while its records were read") from error
    return sums.identity()


def _sums(batch: pa.RecordBatch) -> RecordSums:
    """Return the sums of a batch."""
    sums = RecordSums()
    for hashes in hash_blocks((batch,)):
        sums.add(hashes)
    return sums


def check_parts_disjoint(train: LazyPart, holdout: LazyPart) -> None:
    """Refuse two parts that share records: equal in every column. The engine joins them and returns only counts.

    Numbers are equal by value, and missing values and NaN are equal to each other, as in memory. Copies in another
    precision are not found unless the columns of one part are cast.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> parts = [LazyPart(pl.LazyFrame({"x": x, "y": [0, 1]}), "part") for x in ([None, 2.0], [5.0, 2.0])]
    >>> check_parts_disjoint(*parts)
    Traceback (most recent call last):
    thresholdout.errors.OverlapError: train must be free of holdout records; got 1 of 2 ...
    """
    _check_engines(train, holdout)
    types = {name: _compared(name, train.schema[name], dtype) for name, dtype in holdout.schema.items()}
    missing = [_missing(part) for part in (train, holdout)]
    # If one part has no missing value, records with one are not shared: engines never join them.
    both = [name for name in types if all(found[name] for found in missing)]
    telling = _telling(holdout)
    if telling and not _shared(train, holdout, {name: types[name] for name in telling}, both):
        return
    found = _shared(train, holdout, types, both)
    if found:
        refuse_copies(found, holdout.n)


def _check_engines(train: LazyPart, holdout: LazyPart) -> None:
    first, second = (part.frame.implementation for part in (train, holdout))
    if first is not second:
        seen = f"a frame of {first} beside a holdout of {second}"
        raise InputError("train", seen, "a frame of the holdout's engine")


def _compared(name: str, train: DType, holdout: DType) -> DType | None:
    """Return the type in which a column is compared, ``None`` for its own."""
    import narwhals as nw

    if train == holdout:
        return nw.String() if isinstance(holdout, (nw.Categorical, nw.Enum)) else None
    if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in (train, holdout)):
        return nw.Float64()
    if all(isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)) for dtype in (train, holdout)):
        return nw.String()
    seen = f"column {name!r} of type {train}, beside {holdout} in the holdout"
    raise InputError("train", seen, "columns of the same types as in the holdout", "Cast one of the two columns.")


def _missing(part: LazyPart) -> dict[str, bool]:
    """Return which columns have missing values or NaN."""
    import narwhals as nw

    counts = {name: _absent(name, dtype).cast(nw.Int64).sum() for name, dtype in part.schema.items()}
    return {name: bool(count) for name, count in _row(part, part.frame.select(**counts)).items()}


def _absent(name: str, dtype: DType) -> nw.Expr:
    import narwhals as nw

    column = nw.col(name)
    return column.is_null() | column.is_nan().fill_null(value=False) if dtype.is_float() else column.is_null()


def _telling(part: LazyPart) -> list[str]:
    """Return a column in which nearly all first records differ: it alone decides most cases, and is joined faster."""
    import narwhals as nw

    first = part.frame.head(_FIRST)
    counts = _row(
        part,
        first.select(nw.len().alias("n"), **{f"c{k}": nw.col(name).n_unique() for k, name in enumerate(part.columns)}),
    )
    different = [counts[f"c{k}"] for k in range(len(part.columns))]
    most = max(different)
    return [part.columns[different.index(most)]] if most > _MOST * counts["n"] and len(different) > 1 else []


def _shared(train: LazyPart, holdout: LazyPart, types: dict[str, DType | None], both: list[str]) -> int:
    """Return how many records of the holdout are in the training part, judged by some columns."""
    import narwhals as nw

    sides = [part.frame.select(**_keys(types, both, part)) for part in (holdout, train)]
    try:
        shared = sides[0].join(sides[1], on=sides[0].collect_schema().names(), how="semi")
    except Exception as error:  # no record was read yet, so the cause is safe to show
        seen = f"a frame that cannot be joined with the holdout ({type(error).__name__})"
        raise InputError("train", seen, "a frame of the holdout's engine and connection") from error
    return int(_row(holdout, shared.select(nw.len().alias("n")))["n"])


def _keys(types: dict[str, DType | None], both: list[str], part: LazyPart) -> dict[str, nw.Expr]:
    """Return the join keys: the columns, and whether they are missing if both parts may have missing values."""
    import narwhals as nw

    found: dict[str, nw.Expr] = {}
    for place, (name, compared) in enumerate(types.items()):
        dtype = part.schema[name] if compared is None else compared
        column = nw.col(name) if compared is None else nw.col(name).cast(compared)
        if name in both:
            absent = _absent(name, part.schema[name])
            found[f"missing{place}"] = absent
            if isinstance(dtype, nw.Decimal):
                column, dtype = column.cast(nw.Float64), nw.Float64()
            elif not (dtype.is_numeric() or dtype in (nw.Boolean, nw.String)):
                column, dtype = column.cast(nw.String), nw.String()
            nothing: Any = "" if dtype == nw.String else False if dtype == nw.Boolean else 0
            column = nw.when(absent).then(nw.lit(nothing, dtype)).otherwise(column)
        found[f"column{place}"] = column
    return found


def _row(part: LazyPart, frame: nw.LazyFrame[Any]) -> Mapping[str, Any]:
    """Let the engine compute one row."""
    try:
        return collected(frame)
    except Exception as error:
        raise EngineFailed(part.name, f"{type(error).__name__} while records of both parts were compared") from error
