"""Columns of a container, and some of their rows at a time, without a copy of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["Column", "block_of", "columns_of", "is_sparse", "number_type", "row_count"]

Column: TypeAlias = "NDArray[Any] | pd.Series[Any]"
"""A one-dimensional array, or a column of a data frame."""


def is_sparse(piece: Any) -> bool:
    """Return whether a container is a sparse matrix."""
    return hasattr(piece, "tocsr")


def row_count(piece: Any) -> int:
    """Return how many records a container has."""
    shape = getattr(piece, "shape", None)
    return int(shape[0]) if shape is not None else len(piece)


def columns_of(piece: Any) -> list[Column]:
    """Split a container that is not sparse into one-dimensional columns: numbers, times, texts, or objects.

    Columns of a data frame stay what they are; `block_of` makes arrays of them.

    Examples
    --------
    >>> columns_of([[1, 2], [3, 4]])
    [array([1, 3]), array([2, 4])]
    """
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        return [piece.iloc[:, k] for k in range(piece.shape[1])]
    if hasattr(piece, "iloc"):
        return [piece]
    if hasattr(piece, "get_columns"):  # of Polars: an array of all would give numbers and dates one type
        return [column.to_numpy() for column in piece.get_columns()]
    if hasattr(piece, "num_rows") and hasattr(piece, "columns"):  # of Arrow
        return [column.to_numpy(zero_copy_only=False) for column in piece.columns]
    if isinstance(piece, list) and any(isinstance(item, np.ndarray | list | tuple) for item in piece[:1]):
        return list(_matrix(piece).T)
    array = piece.to_numpy() if hasattr(piece, "to_numpy") else np.asarray(piece)
    return list(array.reshape(array.shape[0], -1).T) if array.size else []


def block_of(column: Column, first: int, last: int) -> NDArray[Any]:
    """Return some rows of a column as an array; times with a zone in UTC, missing integers as NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> block_of(pd.Series([1, None, 3], dtype="Int64"), 1, 3)
    array([nan,  3.])
    """
    if isinstance(column, np.ndarray):
        return column[first:last]
    part: Any = column.iloc[first:last]
    kind = part.dtype.kind
    if kind == "M" and getattr(part.dtype, "tz", None) is not None:
        part = part.dt.tz_convert("UTC").dt.tz_localize(None)
    elif kind in "biuf" and not isinstance(part.dtype, np.dtype):
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(part.to_numpy())


def number_type(column: Column) -> np.dtype[Any] | None:
    """Return the type of a column's numbers, ``None`` when it has others things.

    Examples
    --------
    >>> number_type(np.zeros(3)), number_type(np.array(["a"]))
    (dtype('float64'), None)
    """
    found: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    return found if isinstance(found, np.dtype) and found.kind in "biuf" else None


def _matrix(rows: list[Any]) -> NDArray[Any]:
    """Return a list of rows as a matrix; rows of different lengths, or of anything, as one column of objects."""
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.empty(len(rows), dtype=object)
        array[:] = rows
    return array.reshape(array.shape[0], -1)
