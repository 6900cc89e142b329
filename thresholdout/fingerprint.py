"""Which data these are: a holdout's identity, and whether two parts share records."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError, OverlapError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Part", "check_disjoint", "check_labels", "fingerprint", "handed_out", "kept", "part", "same_rows"]

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
    if isinstance(data, dict):
        raise InputTypeError(name, "a dict", "a tuple (X, y), one array, or a data frame")
    if isinstance(data, list) and len(data) == 2 and all(hasattr(piece, "shape") for piece in data):
        raise InputTypeError(name, "a list of two arrays", "a tuple (X, y); a list is taken as one record per entry")
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


def check_labels(data: Part, name: str) -> None:
    """Refuse missing labels in a pair (X, y).

    Raises
    ------
    InputError
        Without saying which record it is.
    """
    if len(data) != 2 or hasattr(data[1], "tocsr"):
        return
    labels = data[1].to_numpy() if hasattr(data[1], "to_numpy") else np.asarray(data[1])
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if labels.dtype.kind == "O":
        missing = np.array(
            [label is None or label != label or type(label).__name__ == "NAType" for label in labels.flat]
        )
    if missing.any():
        raise InputError(name, f"labels of which {int(missing.sum())} are missing", "a label for every record")


def kept(data: Part) -> Part:
    """Return a copy of a part that nobody else can change; its arrays are read-only."""
    return tuple(_frozen(np.array(piece)) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def handed_out(data: Part) -> Part:
    """Return what is given to functions that may write to it: read-only views of arrays, copies of the rest."""
    return tuple(_frozen(piece.view()) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def same_rows(rows: Any, expected: Any) -> bool:
    """Whether two containers hold the same records.

    Examples
    --------
    >>> same_rows(np.eye(2), [[1, 0], [0, 1]]), same_rows(np.eye(2), np.zeros((2, 2)))
    (True, False)
    """
    if type(rows) is type(expected) and hasattr(rows, "equals"):
        return bool(rows.equals(expected))
    if hasattr(rows, "tocsr") or hasattr(expected, "tocsr"):
        alike = hasattr(rows, "tocsr") and hasattr(expected, "tocsr") and rows.shape == expected.shape
        return bool(alike and (rows != expected).nnz == 0)
    left, right = np.asarray(rows), np.asarray(expected)
    numeric = left.dtype.kind in "fc" and right.dtype.kind in "fc"
    return bool(np.array_equal(left, right, equal_nan=numeric))


def _copied(piece: Any) -> Any:
    return piece.copy() if hasattr(piece, "copy") else copy.deepcopy(piece)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


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
    right = _row_hashes(holdout)
    shared = int(np.isin(right, _row_hashes(train)).sum())
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


def _row_hashes(data: Part) -> NDArray[np.uint64]:
    """Hash every record to 64 bits (within this process only)."""
    from pandas.util import hash_array

    total = np.zeros(1, dtype=np.uint64)
    for piece in data:
        if hasattr(piece, "tocsr"):
            hashes = [_sparse_hashes(piece.tocsr())]
        else:
            columns = [column + 0.0 if column.dtype == np.float64 else column for column in _split(piece)]
            hashes = [
                hash_array(column if column.dtype == np.float64 else column.astype(str).astype(object))
                for column in map(np.ascontiguousarray, columns)
            ]
        for hashed in hashes:
            total = total * np.uint64(0x9E3779B97F4A7C15) + hashed
            total ^= total >> np.uint64(29)
    return total


def _sparse_hashes(rows: Any) -> NDArray[np.uint64]:
    """Hash the rows of a sparse matrix: sums of hashes of their entries that are not zero."""
    from pandas.util import hash_array

    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    entries = hash_array(rows.data.astype(np.float64)) * np.uint64(0xBF58476D1CE4E5B9)
    entries ^= hash_array(rows.indices.astype(np.int64))
    entries *= np.uint64(0x94D049BB133111EB)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
    hashes: NDArray[np.uint64] = sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
    return hashes
