"""Who a part is whose records are never in memory, and whether two such parts share records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from thresholdout.data.identity import RecordSums
from thresholdout.data.parts.engines import collected
from thresholdout.data.row_hashes import hash_blocks
from thresholdout.errors import EngineFailed, InputError, OverlapError

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.dtypes import DType

    from thresholdout.data.parts.lazy_part import LazyPart

__all__ = ["check_parts_disjoint", "part_identity"]

_FIRST: Final = 10_000
_MOST: Final = 0.9
"""In a column that tells records apart, so many of so many first records have different values."""


def part_identity(part: LazyPart) -> str:
    """Return who a part is: 64 hexadecimal digits that depend on its records, not on their order.

    A table in memory has the same identity, whatever holds it (`thresholdout.data.identity.content_of`), and so has
    the same table in another engine, or in other files. The records are read once, a batch at a time, and two sums
    are kept; the workers of a cluster send these sums, and no record.

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
    """Refuse two parts that share records: equal in every column. The engine joins them, and only counts come back.

    Numbers are equal by value, missing values and NaN are equal to each other, as in memory. Copies that went through
    another precision are not looked for: cast the columns of one part, and they are found.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> parts = [LazyPart(pl.LazyFrame({"x": x, "y": [0, 1]}), "part") for x in ([None, 2.0], [5.0, 2.0])]
    >>> check_parts_disjoint(*parts)
    Traceback (most recent call last):
    thresholdout.errors.OverlapError: train must be a part without records of the holdout; got 1 of 2 ...
    """
    _check_engines(train, holdout)
    types = {name: _compared(name, train.schema[name], dtype) for name, dtype in holdout.schema.items()}
    missing = [_missing(part) for part in (train, holdout)]
    # Where one part has no missing value, records with one are not shared: engines never join them.
    both = [name for name in types if all(found[name] for found in missing)]
    telling = _telling(holdout)
    if telling and not _shared(train, holdout, {name: types[name] for name in telling}, both):
        return
    found = _shared(train, holdout, types, both)
    if found:
        raise OverlapError(
            "train",
            f"{found} of {holdout.n} holdout records",
            "a part without records of the holdout",
            "Drop these records from one part or, if equal rows are different records here, pass "
            "allow_duplicates=True.",
        )


def _check_engines(train: LazyPart, holdout: LazyPart) -> None:
    first, second = (part.frame.implementation for part in (train, holdout))
    if first is not second:
        seen = f"a frame of {first} beside a holdout of {second}"
        raise InputError("train", seen, "frames of one engine, which can join them")


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
    raise InputError("train", seen, "columns of the same types in both parts; cast one of them")


def _missing(part: LazyPart) -> dict[str, bool]:
    """Return which columns have missing values, or NaN."""
    import narwhals as nw

    counts = {name: _absent(name, dtype).cast(nw.Int64).sum() for name, dtype in part.schema.items()}
    return {name: bool(count) for name, count in _row(part, part.frame.select(**counts)).items()}


def _absent(name: str, dtype: DType) -> nw.Expr:
    import narwhals as nw

    column = nw.col(name)
    return column.is_null() | column.is_nan().fill_null(value=False) if dtype.is_float() else column.is_null()


def _telling(part: LazyPart) -> list[str]:
    """Return a column in which nearly all of the first records differ: it alone settles most, and is joined faster."""
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
    """Return how many records of the holdout are in the training part, as far as some columns tell."""
    import narwhals as nw

    sides = [part.frame.select(**_keys(types, both, part)) for part in (holdout, train)]
    try:
        shared = sides[0].join(sides[1], on=sides[0].collect_schema().names(), how="semi")
    except Exception as error:  # nothing was read
        seen = f"a frame that cannot be joined with the holdout ({type(error).__name__})"
        raise InputError("train", seen, "frames of one engine, and of one connection to it") from error
    return int(_row(holdout, shared.select(nw.len().alias("n")))["n"])


def _keys(types: dict[str, DType | None], both: list[str], part: LazyPart) -> dict[str, nw.Expr]:
    """Return what records are joined by: their columns, and where values may be missing in both parts, whether."""
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
