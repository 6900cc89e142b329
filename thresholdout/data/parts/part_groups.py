"""Groups of records in lazy frames: their sizes, and whether two parts share some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thresholdout.errors import EngineFailed, InputError

if TYPE_CHECKING:
    import narwhals as nw

    from thresholdout.data.parts.lazy_part import LazyPart

__all__ = ["distinct_values", "group_sizes", "largest_multiplicity", "shared_groups"]


def group_sizes(part: LazyPart, column: str) -> dict[int, int]:
    """Return the number of groups of each size; the engine counts, and nothing is stored for each group.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> group_sizes(LazyPart(pl.LazyFrame({"patient": ["a", "b", "b", "c"]}), "holdout"), "patient")
    {1: 2, 2: 1}
    """
    import narwhals as nw

    group, missing = nw.col(column), nw.col(column).is_null()
    if part.schema[column].is_float():
        missing = missing | group.is_nan()
    lost = part.row(lambda: part.frame.select(missing.cast(nw.Int64).sum().alias("missing")))["missing"]
    if lost:
        raise InputError(
            "groups", f"{lost} {part.name} records without a value of {column!r}", "a group for each record"
        )
    try:
        groups = part.frame.group_by(column).agg(nw.len().alias("size"))
        rows = groups.group_by("size").agg(nw.len().alias("number")).collect().rows(named=True)
    except Exception as error:
        raise EngineFailed(part.name, f"{type(error).__name__} while its groups were counted") from error
    return dict(sorted((int(row["size"]), int(row["number"])) for row in rows))


def largest_multiplicity(part: LazyPart, column: str) -> int:
    """Return the number of occurrences of a column's most frequent value.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> largest_multiplicity(LazyPart(pl.LazyFrame({"id": [7, 8, 8]}), "predictions"), "id")
    2
    """
    import narwhals as nw

    def times() -> nw.LazyFrame[Any]:
        return part.frame.group_by(column).agg(nw.len().alias("times")).select(nw.col("times").max())

    return int(part.row(times)["times"])


def distinct_values(part: LazyPart, column: str, most: int) -> list[Any]:
    """Return the distinct values of a column in any order, at most ``most`` of them; they are read once.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> sorted(distinct_values(LazyPart(pl.LazyFrame({"y": [2, 1, 2]}), "train"), "y", 10))
    [1, 2]
    """
    if (column, most) in part.distinct:
        return part.distinct[column, most]
    values = part.compiled(column, "label").expression.alias("value")
    try:
        rows = part.frame.select(values).unique(["value"]).head(most).collect().rows(named=True)
    except Exception as error:
        raise EngineFailed(part.name, f"{type(error).__name__} while its classes were read") from error
    return part.distinct.setdefault((column, most), [row["value"] for row in rows])


def shared_groups(train: LazyPart, holdout: LazyPart, column: str) -> int:
    """Return the number of groups in both parts.

    Examples
    --------
    >>> import polars as pl
    >>> from thresholdout.data.parts.lazy_part import LazyPart
    >>> train, holdout = (LazyPart(pl.LazyFrame({"g": groups}), "part") for groups in ([1, 1, 2], [2, 3]))
    >>> shared_groups(train, holdout, "g")
    1
    """
    import narwhals as nw

    def both() -> nw.LazyFrame[Any]:
        here, there = (part.frame.select(column).unique([column]) for part in (holdout, train))
        return here.join(there, on=column, how="semi").select(nw.len().alias("n"))

    return int(holdout.row(both)["n"])
