"""Which data these are: a holdout's identity, and whether two parts share records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError, OverlapError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Part", "check_disjoint", "fingerprint", "part"]

Part = tuple[Any, ...]
"""One part of a data set: arrays, data frames or sequences with one entry per record each."""


def part(data: object, name: str) -> Part:
    """Check one part of a data set and return it as a tuple of containers with one entry per record.

    Parameters
    ----------
    data : array-like, data frame, or tuple of them
        For instance ``(X, y)``; the first axis counts records.
    name : str
        How error messages call it.

    Raises
    ------
    InputError
        When it is empty, or its containers differ in length.
    InputTypeError
        When something in it has no length.
    """
    pieces: Part = data if isinstance(data, tuple) else (data,)
    if not pieces:
        raise InputError(name, "an empty tuple", "(X, y), or one array with a row per record")
    lengths = []
    for piece in pieces:
        if isinstance(piece, (str, bytes)) or not (hasattr(piece, "__len__") or hasattr(piece, "shape")):
            raise InputTypeError(name, f"a {type(piece).__name__}", "arrays or data frames, one row per record")
        shape = getattr(piece, "shape", None)
        if shape == ():
            raise InputTypeError(name, "an array without an axis", "arrays with one row per record")
        lengths.append(int(shape[0]) if shape is not None else len(piece))
    if len(set(lengths)) != 1:
        raise InputError(name, f"parts of {' and '.join(map(str, lengths))} records", "the same number in each")
    if lengths[0] < 1:
        raise InputError(name, "no records", "at least one record")
    return pieces


def fingerprint(data: Part) -> str:
    """Return the identity of a data set: the SHA-256 of its content, as 64 hexadecimal digits.

    The same numbers give the same identity whatever holds them (lists, arrays of any numeric type, data
    frames); names of columns do not count, the order of records does.

    Examples
    --------
    >>> fingerprint(([[1, 2]], [0])) == fingerprint((np.array([[1.0, 2.0]]), np.array([False])))
    True
    """
    digest = hashlib.sha256(b"thresholdout holdout 1\n")
    for piece in data:
        columns = _columns(piece)
        digest.update(f"piece {len(columns)} {len(columns[0]) if columns else 0}\n".encode())
        for column in columns:
            if column.dtype == np.float64:
                digest.update(b"n")
                digest.update(np.ascontiguousarray(column + 0.0).tobytes())
            else:
                digest.update(b"o")
                for item in column.tolist():
                    text = str(item).encode("utf-8", "surrogatepass")
                    digest.update(b"%d:" % len(text))
                    digest.update(text)
    return digest.hexdigest()


def check_disjoint(train: Part, holdout: Part) -> None:
    """Refuse two parts that share records: equal in every column of every piece.

    Raises
    ------
    OverlapError
        When some row of the training part equals a row of the holdout.
    """
    if len(train) != len(holdout):
        return
    left, right = _row_hashes(train), _row_hashes(holdout)
    if left is None or right is None:
        return
    shared = int(np.isin(right, left).sum())
    if shared:
        raise OverlapError(
            "train",
            f"{shared} of {right.size} holdout records occur in the training part too",
            "parts without common records; drop them from one part, or pass allow_equal_rows=True if equal "
            "rows are different records here",
        )


def _columns(piece: Any) -> list[NDArray[Any]]:
    """Split a container into arrays that hold its content: one matrix if all is numeric, else column by column."""
    if hasattr(piece, "tocsr"):
        csr = piece.tocsr().copy()
        csr.sum_duplicates()
        return [np.asarray(a, dtype=np.float64) for a in (csr.shape, csr.indptr, csr.indices, csr.data)]
    columns = _split(piece)
    if all(column.dtype == np.float64 for column in columns):
        return [np.stack(columns, axis=1)] if len(columns) > 1 else columns
    return columns


def _split(piece: Any) -> list[NDArray[Any]]:
    """Split a container into one-dimensional columns, numeric ones as float64."""
    if hasattr(piece, "columns") and hasattr(piece, "iloc"):
        columns = [piece.iloc[:, k].to_numpy() for k in range(piece.shape[1])]
    else:
        array = np.asarray(piece)
        columns = list(array.reshape(array.shape[0], -1).T)
    return [c.astype(np.float64) if c.dtype.kind in "biuf" else c for c in columns]


def _row_hashes(data: Part) -> NDArray[np.uint64] | None:
    """Hash every record to 64 bits (within this process only); None where the containers have no rows."""
    from pandas.util import hash_array

    total: NDArray[np.uint64] | None = None
    for piece in data:
        if hasattr(piece, "tocsr"):
            piece = piece.toarray() if piece.shape[0] * piece.shape[1] <= 10**8 else None
            if piece is None:
                return None
        for column in _split(piece):
            keys = np.ascontiguousarray(column) + 0.0 if column.dtype == np.float64 else column.astype(str)
            hashed = hash_array(keys.astype(object) if keys.dtype.kind in "US" else keys)
            if total is None:
                total = np.zeros(hashed.size, dtype=np.uint64)
            total = total * np.uint64(0x9E3779B97F4A7C15) + hashed
            total ^= total >> np.uint64(29)
    return total
