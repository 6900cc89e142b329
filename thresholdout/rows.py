"""Records known by their content: hashes of rows that are the same in every process and for every container."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["columns_of", "membership_keys", "record_hashes", "row_hashes"]

_LANES: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_BLOCK: Final = 1 << 16
"""Numbers that are hashed at a time, so that the temporary arrays stay in the cache."""


def row_hashes(piece: Any) -> NDArray[np.uint64]:
    """Hash every record of a container to 128 bits.

    Parameters
    ----------
    piece : array, data frame, sparse matrix or sequence
        The first axis counts records.

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
    """
    if hasattr(piece, "tocsr"):
        return _finished(_sparse(piece), piece.shape[1])
    columns = columns_of(piece)
    n = len(columns[0]) if columns else len(piece)
    sums = np.zeros((n, 2), dtype=np.uint64)
    for j, column in enumerate(columns):
        if column.dtype != np.float64:
            sums += _text_hashes(column) * _column_keys(j)
            continue
        for start in range(0, n, _BLOCK):
            part = np.ascontiguousarray(column[start : start + _BLOCK])
            sums[start : start + _BLOCK] += _number_hashes(part, _column_keys(j))
    return _finished(sums, len(columns))


def record_hashes(pieces: tuple[Any, ...]) -> NDArray[np.uint64]:
    """Hash every record of a part made of several containers, such as ``(X, y)``; see `row_hashes`."""
    total = row_hashes(pieces[0])
    for piece in pieces[1:]:
        total = _mix(total * np.uint64(_LANES[0]) + row_hashes(piece))
    return total


def membership_keys(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each record, to look it up in a set of records."""
    keys: NDArray[np.uint64] = np.ascontiguousarray(hashes[:, 0])
    return keys


def columns_of(piece: Any) -> list[NDArray[Any]]:
    """Split a container that is not sparse into one-dimensional columns, numeric ones as 64-bit floats."""
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        columns = [piece.iloc[:, k].to_numpy() for k in range(piece.shape[1])]
    else:
        array = np.asarray(piece)
        columns = list(array.reshape(array.shape[0], -1).T) if array.size else []
    return [c.astype(np.float64, copy=False) if c.dtype.kind in "biuf" else c for c in columns]


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


def _text_hashes(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash a column of anything by the texts of its entries; every different text is hashed once."""
    import pandas as pd

    texts = [str(item) for item in column.tolist()]
    codes, different = pd.factorize(np.array(texts, dtype=object))
    table = np.empty((len(different), 2), dtype=np.uint64)
    for k, text in enumerate(different):
        digest = hashlib.sha256(b"t" + text.encode("utf-8", "surrogatepass")).digest()
        table[k] = int.from_bytes(digest[:8], "little") | 1, int.from_bytes(digest[8:16], "little")
    hashes: NDArray[np.uint64] = table[codes]
    return hashes


def _sparse(matrix: Any) -> NDArray[np.uint64]:
    rows = matrix.tocsr().copy()
    rows.sum_duplicates()
    columns = np.asarray(rows.indices, dtype=np.uint64)
    keys = (columns[:, None] + np.uint64(1)) * np.array(_LANES, dtype=np.uint64) | np.uint64(1)
    entries = _number_hashes(np.asarray(rows.data, dtype=np.float64), keys)
    sums = np.concatenate([np.zeros((1, 2), dtype=np.uint64), np.cumsum(entries, axis=0, dtype=np.uint64)])
    hashes: NDArray[np.uint64] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return hashes


def _finished(sums: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Scramble the sums once more, together with the number of columns."""
    return _mix(sums + _column_keys(width))
