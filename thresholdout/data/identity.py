"""Which data these are: parts of a data set, and who a holdout is."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.row_hashes import record_hashes
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Part",
    "check_labels",
    "handed_out",
    "identity",
    "kept",
    "kind_of_labels",
    "order",
    "part",
    "record_count",
    "table_digest",
]

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
        _check_readable(piece, name)
        shape = getattr(piece, "shape", None)
        if shape == ():
            raise InputTypeError(name, "an array without an axis", "arrays with one row per record")
        lengths.append(int(shape[0]) if shape is not None else len(piece))
    if len(set(lengths)) != 1:
        raise InputError(name, f"parts of {' and '.join(map(str, lengths))} records", "the same number in each")
    if lengths[0] < 1:
        raise InputError(name, "no records", "at least one record")
    return pieces


def _check_readable(piece: Any, name: str) -> None:
    """Refuse tensors of other libraries that numpy cannot read, before anything is made of them."""
    if isinstance(piece, np.ndarray) or not hasattr(piece, "__array__") or hasattr(piece, "to_numpy"):
        return
    try:
        np.asarray(piece[:1])
    except Exception as error:
        seen = f"a {type(piece).__name__} that numpy cannot read"
        raise InputTypeError(name, seen, "numpy arrays; tensor.detach().cpu().numpy() makes one of a tensor") from error


def record_count(data: Part) -> int:
    """Return how many records a part has."""
    shape = getattr(data[0], "shape", None)
    return int(shape[0]) if shape is not None else len(data[0])


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
        import pandas as pd

        missing = pd.isna(labels.ravel())
    if missing.any():
        raise InputError(name, f"labels of which {int(missing.sum())} are missing", "a label for every record")


def kind_of_labels(labels: Any) -> str:
    """Return "numbers" (truth values too), "text", or "objects" for what is neither, or both.

    Examples
    --------
    >>> [kind_of_labels(labels) for labels in ([1, 0], [True], ["a", "b"], np.array(["a", 1], dtype=object))]
    ['numbers', 'numbers', 'text', 'objects']
    """
    array = np.asarray(labels)
    if array.dtype.kind == "O":
        return "text" if all(isinstance(label, str) for label in array.ravel()) else "objects"
    return "text" if array.dtype.kind in "US" else "numbers" if array.dtype.kind in "biuf" else "objects"


def kept(data: Part) -> Part:
    """Return a copy of a part that nobody else can change; its arrays are read-only."""
    return tuple(_frozen(np.array(piece)) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def handed_out(data: Part) -> Part:
    """Return what is given to functions that may write to it: read-only views of arrays, copies of the rest."""
    return tuple(_frozen(piece.view()) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def _copied(piece: Any) -> Any:
    return piece.copy() if hasattr(piece, "copy") else copy.deepcopy(piece)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def identity(data: Part, hashes: NDArray[np.uint64] | None = None) -> str:
    """Return who a data set is: 64 hexadecimal digits that depend on its records, not on their order.

    The same numbers give the same identity whatever holds them (lists, arrays of any numeric type, data frames, sparse
    matrices); names of columns do not count, their order does.

    Parameters
    ----------
    data : tuple
        Its pieces.
    hashes : ndarray of shape (n, 2), optional
        Of its records, by `thresholdout.data.row_hashes.record_hashes`, where they are known.

    Examples
    --------
    >>> identity(([[1, 2], [3, 4]], [0, 1])) == identity((np.array([[3.0, 4.0], [1.0, 2.0]]), np.array([True, False])))
    True
    """
    return _digest(b"thresholdout holdout", len(data), _sorted(record_hashes(data) if hashes is None else hashes))


def table_digest(hashes: NDArray[np.uint64]) -> str:
    """Return one digest of all rows of a table, whatever their order: equal tables have equal ones, and no part tells.

    Parameters
    ----------
    hashes : ndarray of shape (n, 2)
        Of its rows, by `thresholdout.data.row_hashes.row_hashes`.

    Examples
    --------
    >>> from thresholdout.data.row_hashes import row_hashes
    >>> table_digest(row_hashes([[1, 2], [3, 4]])) == table_digest(row_hashes([[3, 4], [1, 2]]))
    True
    """
    return _digest(b"thresholdout table", 1, _sorted(hashes))


def order(data: Part, hashes: NDArray[np.uint64] | None = None) -> str:
    """Return a digest of a data set's records in their order: 64 hexadecimal digits; arguments as for `identity`."""
    return _digest(b"thresholdout order", len(data), record_hashes(data) if hashes is None else hashes)


def _sorted(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sort rows by their first half, and those that share it by the second."""
    found: NDArray[np.uint64] = hashes[np.argsort(hashes[:, 0])]
    if bool(((found[1:, 0] == found[:-1, 0]) & (found[1:, 1] < found[:-1, 1])).any()):
        found = hashes[np.lexsort((hashes[:, 1], hashes[:, 0]))]
    return found


def _digest(what: bytes, pieces: int, hashes: NDArray[np.uint64]) -> str:
    digest = hashlib.sha256(what + b" %d %d\n" % (pieces, len(hashes)))
    digest.update(np.ascontiguousarray(hashes, dtype="<u8").tobytes())
    return digest.hexdigest()
