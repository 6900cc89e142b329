"""Hashes of records that are the same in every process and for every container."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.data.hashed_entries import KINDS, Precision, entry_sums, mixed, rounded, squared_sums

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "Column",
    "block_of",
    "columns_of",
    "hash_blocks",
    "is_sparse",
    "membership_keys",
    "number_type",
    "record_hashes",
    "record_keys",
    "row_count",
    "row_hashes",
]

Column: TypeAlias = "NDArray[Any] | pd.Series[Any]"
"""A one-dimensional array, or a column of a data frame."""


def is_sparse(piece: Any) -> bool:
    """Whether a container is a sparse matrix."""
    return hasattr(piece, "tocsr")


def row_count(piece: Any) -> int:
    """Return the number of records of a container."""
    shape = getattr(piece, "shape", None)
    return int(shape[0]) if shape is not None else len(piece)


def columns_of(piece: Any) -> list[Column]:
    """Split a dense container into one-dimensional columns: numbers, times, texts, or objects.

    Columns of a data frame keep their type; `block_of` converts them to arrays.

    Examples
    --------
    >>> columns_of([[1, 2], [3, 4]])
    [array([1, 3]), array([2, 4])]
    """
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        return [piece.iloc[:, k] for k in range(piece.shape[1])]
    if hasattr(piece, "iloc"):
        return [piece]
    if hasattr(piece, "get_columns"):  # Polars; one array of all columns would give numbers and dates one type
        return [column.to_numpy() for column in piece.get_columns()]
    if hasattr(piece, "num_rows") and hasattr(piece, "columns"):  # Arrow
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
    """Return the type of a column's numbers, or ``None`` for other columns.

    Examples
    --------
    >>> number_type(np.zeros(3)), number_type(np.array(["a"]))
    (dtype('float64'), None)
    """
    found: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
    return found if isinstance(found, np.dtype) and found.kind in "biuf" else None


def _matrix(rows: list[Any]) -> NDArray[Any]:
    """Return a list of rows as a matrix; rows of different lengths as one column of objects."""
    try:
        array = np.asarray(rows)
    except ValueError:
        array = np.empty(len(rows), dtype=object)
        array[:] = rows
    return array.reshape(array.shape[0], -1)


# Odd, so that products modulo 2^64 lose nothing: the step of splitmix64, and a prime of xxHash64.
_LANES: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_COLUMNS: Final = 64
_BLOCK: Final = 1 << 14
"""Columns and numbers per block, so that the temporary arrays stay in the cache."""
_LONG: Final = 1 << 28
"""Numbers from which on hashing takes seconds and shows its progress."""
_NUMERIC: Final = "biuf"


def row_hashes(piece: Any, precision: Precision | Sequence[Precision] = np.float64) -> NDArray[np.uint64]:
    """Hash every record of a container to 128 bits.

    Numbers are first rounded to ``precision``, so that records stored in it have the hashes of their originals.

    Notes
    -----
    Equal rows have equal hashes in every process and container. Numbers are compared as 64-bit floats, with 0 = -0 and
    one NaN for all missing values; times and durations by their nanoseconds; everything else by its text. The order of
    columns counts, their names do not.

    A number in column j becomes the word ``m = mix(bits(x) + K)``, modulo 2^64, where K is a constant of the column and
    of the kind "number". A time has two words with other K, and so has a text, from two keyed SipHashes. A row is the
    sum of its words and the sum of their squares, scrambled one to one together with the number of columns. ``mix`` is
    the finaliser of splitmix64. PROOFS.md, "Identity of records", bounds the probability of collisions. This is no
    cryptographic hash: it does not resist constructed collisions.

    Examples
    --------
    >>> bool((row_hashes([[1, 0], [2, 3]]) == row_hashes(np.array([[1.0, 0.0], [2.0, 3.0]]))).all())
    True
    >>> bool((row_hashes(np.float32([[0.1]]), np.float32) == row_hashes([[0.1]], np.float32)).all())
    True
    """
    return record_hashes((piece,), (precision,))


def record_hashes(
    pieces: tuple[Any, ...], precision: Precision | tuple[Precision | Sequence[Precision], ...] = np.float64
) -> NDArray[np.uint64]:
    """Hash every record of a part of several containers, such as ``(X, y)``; see `row_hashes`."""
    found = np.empty((row_count(pieces[0]), 2), dtype=np.uint64)
    first = 0
    for block in hash_blocks(pieces, precision):
        found[first : first + len(block)] = block
        first += len(block)
    return found


def hash_blocks(
    pieces: tuple[Any, ...], precision: Precision | tuple[Precision | Sequence[Precision], ...] = np.float64
) -> Iterator[NDArray[np.uint64]]:
    """Hash the records of a part and yield the hashes in blocks, in order; see `record_hashes`.

    Examples
    --------
    >>> [block.shape for block in hash_blocks((np.zeros((20_000, 2)), np.zeros(20_000)))]
    [(16384, 2), (3616, 2)]
    """
    precisions = precision if isinstance(precision, tuple) else (precision,) * len(pieces)
    made = [_hasher(piece, one) for piece, one in zip(pieces, precisions, strict=True)]
    size = row_count(pieces[0])
    steps: Any = range(0, size, _BLOCK)
    if size * sum(piece.width for piece in made) > _LONG:
        steps = progress_bar(steps, doing="reading records", unit="blocks")
    for first in steps:
        last = min(size, first + _BLOCK)
        total = made[0].hashes(first, last)
        for piece in made[1:]:
            total *= np.uint64(_LANES[0])
            total += piece.hashes(first, last)
            mixed(total, np.empty_like(total))
        yield total.T


def record_keys(
    pieces: tuple[Any, ...], precision: Precision | tuple[Precision | Sequence[Precision], ...] = np.float64
) -> NDArray[np.uint64]:
    """Return 64 bits of hash for each record of a part, in order; see `record_hashes`."""
    found = np.empty(row_count(pieces[0]), dtype=np.uint64)
    first = 0
    for block in hash_blocks(pieces, precision):
        found[first : first + len(block)] = block[:, 0]
        first += len(block)
    return found


def membership_keys(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits of each record's hash, to search for it among others."""
    keys: NDArray[np.uint64] = np.ascontiguousarray(hashes[:, 0])
    return keys


def _hasher(piece: Any, precision: Precision | Sequence[Precision]) -> _Dense | _Sparse:
    """Return the hasher of a container's rows."""
    if is_sparse(piece):
        return _Sparse(piece, precision[0] if isinstance(precision, Sequence) else precision)
    columns = columns_of(piece)
    return _Dense(columns, precision if isinstance(precision, Sequence) else [precision] * len(columns))


def _column_keys(count: int) -> NDArray[np.uint64]:
    """Return the constants of each column, one for each kind of entry."""
    number = np.arange(1, KINDS * count + 1, dtype=np.uint64) * np.uint64(_LANES[1])
    return mixed(number, np.empty_like(number)).reshape(count, KINDS)


class _Dense:
    """Hashes of the rows of a dense container."""

    def __init__(self, columns: list[Column], precisions: Sequence[Precision]) -> None:
        self.width = len(columns)
        self._columns = columns
        self._precisions = precisions
        self._keys = _column_keys(self.width)
        self._room = np.empty((2, _BLOCK))

    def hashes(self, first: int, last: int) -> NDArray[np.uint64]:
        """Return the hashes of these rows, one row for each half."""
        sums = np.zeros((2, last - first), dtype=np.uint64)
        numbers: list[tuple[int, NDArray[Any]]] = []
        most = min(_COLUMNS, _BLOCK // (last - first))
        for j, column in enumerate(self._columns):
            values = block_of(column, first, last)
            if values.dtype.kind not in _NUMERIC:
                sums += entry_sums(values, self._keys[j], self._precisions[j])
            elif values.dtype.itemsize == 1 and values.size > 256:
                self._add_bytes(sums, j, values)
            else:
                numbers.append((j, values))
            if len(numbers) == most:
                self._add_numbers(sums, numbers)
                numbers = []
        if numbers:
            self._add_numbers(sums, numbers)
        return _finished(sums, self.width)

    def _add_numbers(self, sums: NDArray[np.uint64], numbers: list[tuple[int, NDArray[Any]]]) -> None:
        """Add the words of some columns of numbers, and their squares."""
        shape = len(numbers), sums.shape[1]
        words, spare = (part[: shape[0] * shape[1]].reshape(shape) for part in self._room)
        for row, (j, values) in zip(words, numbers, strict=True):
            row[:] = values
            if self._precisions[j] is not np.float64:
                row[:] = rounded(row, self._precisions[j])
        keys = self._keys[[j for j, _ in numbers], 0][:, None]
        sums += squared_sums(words, keys, spare)

    def _add_bytes(self, sums: NDArray[np.uint64], column: int, values: NDArray[Any]) -> None:
        """Add the words of a column with at most 256 different numbers, and their squares."""
        every = np.arange(256, dtype=np.uint8).view(values.dtype)
        every = every if values.dtype.kind != "b" else np.arange(256) > 0
        all_words = rounded(every.astype(np.float64), self._precisions[column])[None, :]
        table = squared_sums(all_words, self._keys[column, :1], np.empty_like(all_words))
        places = values.view(np.uint8)
        for total, words in zip(sums, table, strict=True):
            total += words[places]


class _Sparse:
    """Hashes of the rows of a sparse matrix, equal to those of the dense one."""

    def __init__(self, matrix: Any, precision: Precision) -> None:
        self.width = int(matrix.shape[1])
        self._rows = matrix.tocsr()
        self._precision = precision
        self._keys = _column_keys(self.width)[:, 0]
        self._zeros = _each_squared(np.zeros(self.width), self._keys)

    def hashes(self, first: int, last: int) -> NDArray[np.uint64]:
        """Return the hashes of these rows, one row for each half."""
        rows = self._rows[first:last].copy()
        rows.sum_duplicates()
        values = rounded(np.array(rows.data, dtype=np.float64), self._precision)
        more = _each_squared(values, self._keys[rows.indices]) - self._zeros[:, rows.indices]
        ends = np.concatenate([np.zeros((2, 1), dtype=np.uint64), np.cumsum(more, axis=1, dtype=np.uint64)], axis=1)
        sums = ends[:, rows.indptr[1:]] - ends[:, rows.indptr[:-1]]
        sums += self._zeros.sum(axis=1, dtype=np.uint64)[:, None]
        return _finished(sums, self.width)


def _each_squared(values: NDArray[np.float64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the word of each number, with a key for each, and its square."""
    one = values[None, :].copy()
    return squared_sums(one, keys[None, :], np.empty_like(one))


def _finished(sums: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Scramble both sums one to one, so that each half depends on both, together with the number of columns."""
    spare = np.empty(sums.shape[1], dtype=np.uint64)
    for half, other, lane in ((1, None, _LANES[0]), (0, 1, _LANES[1]), (1, 0, _LANES[0])):
        sums[half] += np.uint64((width + 1) * lane % 2**64)
        if other is not None:
            sums[half] += sums[other]
        mixed(sums[half], spare)
    return sums
