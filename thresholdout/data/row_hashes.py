"""Records known by their content: hashes of rows that are the same in every process and for every container."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Precision", "columns_of", "membership_keys", "record_hashes", "rounded", "row_hashes"]

Precision: TypeAlias = "type[np.float64] | type[np.float32] | type[np.float16]"
"""To what numbers are rounded before they are hashed."""

_LANES: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_BLOCK: Final = 1 << 16
"""Numbers that are hashed at a time, so that the temporary arrays stay in the cache."""


def row_hashes(piece: Any, precision: Precision | Sequence[Precision] = np.float64) -> NDArray[np.uint64]:
    """Hash every record of a container to 128 bits.

    Parameters
    ----------
    piece : array, data frame, sparse matrix or sequence
        The first axis counts records.
    precision : numpy.float64, numpy.float32 or numpy.float16, or one of them for each column
        To what numbers are rounded first; records that were stored so have the hashes of their originals. A sparse
        matrix takes one.

    Returns
    -------
    ndarray of shape (n, 2)
        Equal rows have equal hashes, in every process and whatever holds them: numbers are compared as 64-bit floats
        (with 0 = -0, all NaN alike), everything else by its text. Names of columns do not count, their order does.

    Notes
    -----
    A number x in column j adds ``mix(mix(bits(x)) + (j + 1) C)`` to its row, modulo 2^64, unless it is zero: so a
    sparse matrix is hashed as the dense one. ``mix`` is the finaliser of splitmix64, C one odd constant for each half.
    Not a cryptographic hash: it tells honest data apart, with probability 1 - n^2 / 2^129 or so, and does not resist
    somebody who constructs collisions.

    Examples
    --------
    >>> bool((row_hashes([[1, 0], [2, 3]]) == row_hashes(np.array([[1.0, 0.0], [2.0, 3.0]]))).all())
    True
    >>> bool((row_hashes(np.float32([[0.1]]), np.float32) == row_hashes([[0.1]], np.float32)).all())
    True
    """
    if hasattr(piece, "tocsr"):
        one = precision[0] if isinstance(precision, Sequence) else precision
        return _finished(_sparse(piece, one), piece.shape[1])
    columns = columns_of(piece)
    precisions = precision if isinstance(precision, Sequence) else [precision] * len(columns)
    n = len(columns[0]) if columns else len(piece)
    sums = np.zeros((n, 2), dtype=np.uint64)
    for j, column in enumerate(columns):
        keys = _column_keys(j)
        if column.dtype != np.float64:
            sums += _object_hashes(column, keys, precisions[j])
            continue
        for start in range(0, n, _BLOCK):
            part = np.ascontiguousarray(column[start : start + _BLOCK])
            sums[start : start + _BLOCK] += _number_hashes(rounded(part, precisions[j]), keys)
    return _finished(sums, len(columns))


def record_hashes(
    pieces: tuple[Any, ...], precision: Precision | tuple[Precision | Sequence[Precision], ...] = np.float64
) -> NDArray[np.uint64]:
    """Hash every record of a part made of several containers, such as ``(X, y)``; see `row_hashes`."""
    precisions = precision if isinstance(precision, tuple) else (precision,) * len(pieces)
    total = row_hashes(pieces[0], precisions[0])
    for piece, one in zip(pieces[1:], precisions[1:], strict=True):
        total = _mix(total * np.uint64(_LANES[0]) + row_hashes(piece, one))
    return total


def membership_keys(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each record, to look it up in a set of records."""
    keys: NDArray[np.uint64] = np.ascontiguousarray(hashes[:, 0])
    return keys


def columns_of(piece: Any) -> list[NDArray[Any]]:
    """Split a container that is not sparse into one-dimensional columns: 64-bit floats, texts, or objects.

    Times are their nanoseconds, as text.
    """
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        columns = [piece.iloc[:, k].to_numpy() for k in range(piece.shape[1])]
    elif isinstance(piece, list) and any(isinstance(item, np.ndarray | list | tuple) for item in piece[:1]):
        columns = list(_matrix(piece).T)
    else:
        array = piece.to_numpy() if hasattr(piece, "to_numpy") else np.asarray(piece)
        columns = list(array.reshape(array.shape[0], -1).T) if array.size else []
    return [_plain(column) for column in columns]


def _matrix(rows: list[Any]) -> NDArray[Any]:
    """Return a list of rows as a matrix; rows of different lengths, or of anything, as one column of objects."""
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.empty(len(rows), dtype=object)
        array[:] = rows
    return array.reshape(array.shape[0], -1)


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind in "biuf":
        return column.astype(np.float64, copy=False)
    if column.dtype.kind in "mM":
        unit = "datetime64[ns]" if column.dtype.kind == "M" else "timedelta64[ns]"
        return np.array([f"ns {value}" for value in column.astype(unit).view(np.int64).tolist()], dtype=object)
    return column


def _number(item: object) -> float | None:
    """Return an object as a number, a missing one as NaN, anything else as None."""
    if item is None or type(item).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(item, Real | Decimal):
        return float(item)
    return None


def _text(item: object) -> str:
    """Return a text that different objects do not share, as far as their types allow."""
    if isinstance(item, np.ndarray):
        return f"array {item.dtype} {item.shape} {hashlib.sha256(np.ascontiguousarray(item).tobytes()).hexdigest()}"
    if isinstance(item, list | tuple):
        return f"{type(item).__name__} [{', '.join(map(_text, item))}]"
    if isinstance(item, set | frozenset):
        return f"set [{', '.join(sorted(map(_text, item)))}]"
    if isinstance(item, datetime):
        return f"ns {_nanoseconds(item)}"
    return str(item)


def _nanoseconds(moment: Any) -> int:
    """Return a time as its nanoseconds, in UTC if it has a zone: copies in another zone are the same times."""
    if hasattr(moment, "to_datetime64"):  # a pandas one, which has nanoseconds
        stamp = moment.to_datetime64()
    else:
        stamp = np.datetime64(moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None))
    return int(stamp.astype("datetime64[ns]").astype(np.int64))


def rounded(values: NDArray[np.float64], precision: Precision) -> NDArray[np.float64]:
    """Round to a precision; what is too large for it becomes infinite."""
    if precision is np.float64:
        return values
    with np.errstate(over="ignore"):
        return values.astype(precision).astype(np.float64)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers one to one: the finaliser of splitmix64."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _column_keys(column: int) -> NDArray[np.uint64]:
    return np.array([(column + 1) * lane % 2**64 | 1 for lane in _LANES], dtype=np.uint64)


def _number_hashes(values: NDArray[np.float64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash numbers that stand in columns with these keys: shape (k, 2); zeros give zeros."""
    values = values + 0.0  # a copy, without negative zeros
    values[np.isnan(values)] = np.nan
    mixed = _mix(values.view(np.uint64))
    hashes = _mix(mixed[:, None] + keys)
    hashes[values == 0.0] = 0
    return hashes


def _object_hashes(column: NDArray[Any], keys: NDArray[np.uint64], precision: Precision) -> NDArray[np.uint64]:
    """Hash a column of anything, entry by entry: numbers as numbers, so that their type makes no difference."""
    items = column.tolist()
    numbers = [_number(item) for item in items] if column.dtype.kind == "O" else [None] * len(items)
    numeric = np.array([number is not None for number in numbers], dtype=bool)
    hashes = np.empty((len(items), 2), dtype=np.uint64)
    values = np.array([number for number in numbers if number is not None], dtype=np.float64)
    hashes[numeric] = _number_hashes(rounded(values, precision), keys)
    texts = [_text(item) for item, number in zip(items, numbers, strict=True) if number is None]
    hashes[~numeric] = _text_hashes(texts) * keys
    return hashes


def _text_hashes(texts: list[str]) -> NDArray[np.uint64]:
    """Hash texts; every different one is hashed once."""
    import pandas as pd

    codes, different = pd.factorize(np.array(texts, dtype=object))
    table = np.empty((len(different), 2), dtype=np.uint64)
    for k, text in enumerate(different):
        digest = hashlib.sha256(b"t" + text.encode("utf-8", "surrogatepass")).digest()
        table[k] = int.from_bytes(digest[:8], "little") | 1, int.from_bytes(digest[8:16], "little")
    hashes: NDArray[np.uint64] = table[codes]
    return hashes


def _sparse(matrix: Any, precision: Precision) -> NDArray[np.uint64]:
    rows = matrix.tocsr().copy()
    rows.sum_duplicates()
    columns = np.asarray(rows.indices, dtype=np.uint64)
    keys = (columns[:, None] + np.uint64(1)) * np.array(_LANES, dtype=np.uint64) | np.uint64(1)
    values = np.asarray(rows.data, dtype=np.float64)
    entries = _number_hashes(rounded(values, precision), keys)
    sums = np.concatenate([np.zeros((1, 2), dtype=np.uint64), np.cumsum(entries, axis=0, dtype=np.uint64)])
    hashes: NDArray[np.uint64] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return hashes


def _finished(sums: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Scramble the sums once more, together with the number of columns."""
    return _mix(sums + _column_keys(width))
