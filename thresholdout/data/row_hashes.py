"""Records known by their content: hashes of rows that are the same in every process and for every container."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from graphs.progress_bar import progress_bar

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Precision", "columns_of", "membership_keys", "record_hashes", "rounded", "row_hashes"]

Precision: TypeAlias = "type[np.float64] | type[np.float32] | type[np.float16]"
"""To what numbers are rounded before they are hashed."""

_LANES: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_COLUMNS: Final = 64
_BLOCK: Final = 1 << 15
"""Columns, and numbers, that are hashed at a time, so that the temporary arrays stay in the cache."""
_LONG: Final = 1 << 27
"""So many numbers take longer than a moment."""
_NUMERIC: Final = "biuf"
_PLAIN: Final = frozenset({str, bytes, bool, int, float, np.float64, np.int64, type(None)})
"""Types of which equal objects have equal hashes here."""
_MISSING: Final = ("NAType", "NaTType")


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
    sparse matrix is hashed as the dense one. The first text of a row adds ``h ((j + 1) C)``, h a half of its SHA-256,
    and each further one ``mix(h + (j + 1) C)``. ``mix`` is the finaliser of splitmix64, C one odd constant for each
    half. Not a cryptographic hash: it tells honest data apart, with probability 1 - n^2 / 2^129 or so, and does not
    resist somebody who constructs collisions.

    Examples
    --------
    >>> bool((row_hashes([[1, 0], [2, 3]]) == row_hashes(np.array([[1.0, 0.0], [2.0, 3.0]]))).all())
    True
    >>> bool((row_hashes(np.float32([[0.1]]), np.float32) == row_hashes([[0.1]], np.float32)).all())
    True
    """
    if hasattr(piece, "tocsr"):
        one = precision[0] if isinstance(precision, Sequence) else precision
        return _finished(_sparse_sums(piece, one), piece.shape[1])
    columns = columns_of(piece)
    precisions = precision if isinstance(precision, Sequence) else [precision] * len(columns)
    sums = np.zeros((2, len(columns[0]) if columns else len(piece)), dtype=np.uint64)
    numeric = [j for j, column in enumerate(columns) if column.dtype.kind in _NUMERIC]
    _add_numbers(sums, columns, numeric, precisions)
    has_text = np.zeros(sums.shape[1], dtype=bool)
    for j in sorted(set(range(len(columns))).difference(numeric)):
        sums += _object_hashes(columns[j], _column_keys(j), precisions[j], has_text)
    return _finished(sums, len(columns))


def record_hashes(
    pieces: tuple[Any, ...], precision: Precision | tuple[Precision | Sequence[Precision], ...] = np.float64
) -> NDArray[np.uint64]:
    """Hash every record of a part made of several containers, such as ``(X, y)``; see `row_hashes`."""
    precisions = precision if isinstance(precision, tuple) else (precision,) * len(pieces)
    total = row_hashes(pieces[0], precisions[0])
    for piece, one in zip(pieces[1:], precisions[1:], strict=True):
        total *= np.uint64(_LANES[0])
        total += row_hashes(piece, one)
        _mix(total, np.empty_like(total))
    return total


def membership_keys(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each record, to look it up in a set of records."""
    keys: NDArray[np.uint64] = np.ascontiguousarray(hashes[:, 0])
    return keys


def columns_of(piece: Any) -> list[NDArray[Any]]:
    """Split a container that is not sparse into one-dimensional columns: numbers, times, texts, or objects."""
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        columns = [piece.iloc[:, k].to_numpy() for k in range(piece.shape[1])]
    elif isinstance(piece, list) and any(isinstance(item, np.ndarray | list | tuple) for item in piece[:1]):
        columns = list(_matrix(piece).T)
    else:
        array = piece.to_numpy() if hasattr(piece, "to_numpy") else np.asarray(piece)
        columns = list(array.reshape(array.shape[0], -1).T) if array.size else []
    return columns


def _matrix(rows: list[Any]) -> NDArray[Any]:
    """Return a list of rows as a matrix; rows of different lengths, or of anything, as one column of objects."""
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.empty(len(rows), dtype=object)
        array[:] = rows
    return array.reshape(array.shape[0], -1)


def _number(item: object) -> float | None:
    """Return an object as a number, a missing one as NaN, anything else as None."""
    if type(item) is str:  # most are, and the questions below take longer
        return None
    if item is None or type(item).__name__ in _MISSING:
        return math.nan
    if isinstance(item, Real | Decimal):
        return float(item)
    return None


def _text(item: object) -> str:
    """Return a text that different objects do not share, as far as their types allow."""
    if type(item) is str:
        return item
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


def _mix(x: NDArray[np.uint64], spare: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers one to one, in place: the finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(x, np.uint64(shift), out=spare)
        x ^= spare
        x *= np.uint64(factor)
    np.right_shift(x, np.uint64(31), out=spare)
    x ^= spare
    return x


def _column_keys(column: Any) -> NDArray[np.uint64]:
    """Return an odd constant for each half of a column's hashes, or of several columns'."""
    number = np.atleast_1d(np.asarray(column, dtype=np.uint64)) + np.uint64(1)
    return np.stack([number * np.uint64(lane) | np.uint64(1) for lane in _LANES])


def _add_numbers(
    sums: NDArray[np.uint64],
    columns: Sequence[NDArray[Any]],
    numeric: Sequence[int],
    precisions: Sequence[Precision],
) -> None:
    """Add the hashes of all columns of numbers to those of their rows, a block after the other."""
    n = sums.shape[1]
    groups = [numeric[first : first + _COLUMNS] for first in range(0, len(numeric), _COLUMNS)]
    steps: Any = [(group, first) for group in groups for first in range(0, n, _BLOCK // len(group))]
    if n * len(numeric) > _LONG:
        steps = progress_bar(steps, doing="reading records", unit="blocks")
    room = np.empty((3, _BLOCK))
    for group, first in steps:
        last = min(n, first + _BLOCK // len(group))
        values, *spare = (part[: len(group) * (last - first)].reshape(len(group), -1) for part in room)
        for row, j in zip(values, group, strict=True):
            row[:] = columns[j][first:last]
            if precisions[j] is not np.float64:
                row[:] = rounded(row, precisions[j])
        keys = _column_keys(np.array(group)[:, None])
        halves = _number_hashes(values, keys, [part.view(np.uint64) for part in spare])
        for total, half in zip(sums, halves, strict=True):
            total[first:last] += half.sum(axis=0)


def _number_hashes(
    values: NDArray[np.float64], keys: NDArray[np.uint64], spare: Sequence[NDArray[np.uint64]]
) -> Iterator[NDArray[np.uint64]]:
    """Hash numbers that stand in columns with these keys, one half after the other; zeros give zeros.

    The values are overwritten, and so is what is yielded: it lives in the first of two spare arrays.
    """
    values += 0.0  # without negative zeros
    with np.errstate(all="ignore"):
        if math.isnan(values.sum()):
            values[np.isnan(values)] = np.nan
    zeros = None if values.all() else values == 0.0
    mixed = _mix(values.view(np.uint64), spare[0])
    for key in keys:
        hashes = _mix(np.add(mixed, key, out=spare[0]), spare[1])
        if zeros is not None:
            hashes[zeros] = 0
        yield hashes


def _object_hashes(
    column: NDArray[Any], keys: NDArray[np.uint64], precision: Precision, has_text: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Hash a column of anything: numbers as numbers, so that their type makes no difference, the rest as text.

    Which rows have a text is kept up to date: of products with the keys no row has two, since (a, b, b, a) and (b, a,
    a, b) would have the same sum of them.
    """
    codes, items = _different(column)
    numbers = [_number(item) for item in items]
    numeric = np.array([number is not None for number in numbers], dtype=bool)
    hashes = np.empty((2, len(items)), dtype=np.uint64)
    values = rounded(np.array([number for number in numbers if number is not None], dtype=np.float64), precision)
    halves = _number_hashes(values.copy(), keys, [*np.empty((2, values.size), dtype=np.uint64)])
    for row, half in zip(hashes, halves, strict=True):
        row[numeric] = half
    texts = [_text(item) for item, number in zip(items, numbers, strict=True) if number is None]
    later = hashes.copy()
    if texts:
        plain = _text_hashes(texts)
        hashes[:, ~numeric] = plain * keys
        later[:, ~numeric] = _mix(plain + keys, np.empty_like(plain))
    place = slice(None) if codes is None else codes
    found = np.where(has_text, later[:, place], hashes[:, place])
    has_text |= ~numeric[place]
    return found


def _different(column: NDArray[Any]) -> tuple[NDArray[np.intp] | None, list[Any]]:
    """Return the different entries of a column, and which of them each entry is, or else all of them.

    Times are texts of their nanoseconds. What is equal may have different texts, such as the tuples (1,) and (1.0,):
    so only texts and numbers are looked for.
    """
    import pandas as pd

    if column.dtype.kind in "mM":
        unit = "datetime64[ns]" if column.dtype.kind == "M" else "timedelta64[ns]"
        codes, moments = pd.factorize(column.astype(unit).view(np.int64))
        return codes, [f"ns {moment}" for moment in moments.tolist()]
    items = column.tolist()
    if any(kind.__name__ not in _MISSING for kind in set(map(type, items)) - _PLAIN):
        return None, items
    codes, different = pd.factorize(column.astype(object))
    found = different.tolist()
    missing = codes < 0
    if missing.any():
        codes[missing] = len(found)
        found.append(None)
    return codes, found


def _text_hashes(texts: list[str]) -> NDArray[np.uint64]:
    """Hash texts, each half in a row."""
    digests = b"".join([hashlib.sha256(b"t" + text.encode("utf-8", "surrogatepass")).digest() for text in texts])
    hashes = np.frombuffer(digests, dtype="<u8").reshape(len(texts), 4)[:, :2].T.astype(np.uint64)
    hashes[0] |= np.uint64(1)
    return hashes


def _sparse_sums(matrix: Any, precision: Precision) -> NDArray[np.uint64]:
    """Return the sums of the hashes of each row's entries."""
    rows = matrix.tocsr().copy()
    rows.sum_duplicates()
    values = rounded(np.array(rows.data, dtype=np.float64), precision)
    hashes = _number_hashes(values, _column_keys(rows.indices), [*np.empty((2, values.size), dtype=np.uint64)])
    sums = np.zeros((2, rows.shape[0]), dtype=np.uint64)
    for total, half in zip(sums, hashes, strict=True):
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(half, dtype=np.uint64)])
        total[:] = ends[rows.indptr[1:]] - ends[rows.indptr[:-1]]
    return sums


def _finished(sums: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Scramble the sums once more, together with the number of columns."""
    sums += _column_keys(width)
    return _mix(sums, np.empty_like(sums)).T
