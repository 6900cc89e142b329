"""Parts of a data set, and the identity of a holdout."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.row_hashes import hash_blocks, membership_keys
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Content",
    "Part",
    "RecordSums",
    "check_labels",
    "content_of",
    "handed_out",
    "kept",
    "kind_of_labels",
    "part",
    "record_count",
    "table_digest",
]

Part = tuple[Any, ...]
"""One part of a data set: arrays, data frames or sequences, each with one entry per record."""


def part(data: object, name: str) -> Part:
    """Check one part of a data set and return it as a tuple of containers with one entry per record."""
    if isinstance(data, dict):
        raise InputTypeError(name, "a dict", "a tuple (X, y), one array, or a data frame")
    if isinstance(data, list) and len(data) == 2 and all(hasattr(piece, "shape") for piece in data):
        raise InputTypeError(name, "a list of two arrays", "a tuple (X, y)", "The entries of a list are records.")
    pieces: Part = data if isinstance(data, tuple) else (data,)
    if not pieces:
        raise InputError(name, "an empty tuple", "(X, y), or an array with one row per record")
    lengths = []
    for piece in pieces:
        if isinstance(piece, (str, bytes)) or not (hasattr(piece, "__len__") or hasattr(piece, "shape")):
            raise InputTypeError(name, f"a {type(piece).__name__}", "arrays or data frames, one row per record")
        _check_readable(piece, name)
        shape = getattr(piece, "shape", None)
        if shape == ():
            raise InputTypeError(name, "an array without axes", "arrays with one row per record")
        lengths.append(int(shape[0]) if shape is not None else len(piece))
    if len(set(lengths)) != 1:
        raise InputError(
            name, f"pieces of {' and '.join(map(str, lengths))} records", "pieces with one number of records"
        )
    if lengths[0] < 1:
        raise InputError(name, "no records", "at least one record")
    return pieces


def _check_readable(piece: Any, name: str) -> None:
    """Refuse tensors of other libraries that numpy cannot read."""
    if isinstance(piece, np.ndarray) or not hasattr(piece, "__array__") or hasattr(piece, "to_numpy"):
        return
    try:
        np.asarray(piece[:1])
    except Exception as error:
        seen = f"a {type(piece).__name__}, which is not"
        advice = "Convert a tensor by tensor.detach().cpu().numpy()."
        raise InputTypeError(name, seen, "convertible to NumPy arrays", advice) from error


def record_count(data: Part) -> int:
    """Return the number of records of a part."""
    shape = getattr(data[0], "shape", None)
    return int(shape[0]) if shape is not None else len(data[0])


def check_labels(data: Part, name: str) -> None:
    """Refuse missing labels in a pair (X, y)."""
    if len(data) != 2 or hasattr(data[1], "tocsr"):
        return
    labels = data[1].to_numpy() if hasattr(data[1], "to_numpy") else np.asarray(data[1])
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(1, dtype=bool)
    if labels.dtype.kind == "O":
        import pandas as pd

        missing = pd.isna(labels.ravel())
    if missing.any():
        raise InputError(name, f"{int(missing.sum())} missing labels", "a pair (X, y) with a label for every record")


def kind_of_labels(labels: Any) -> str:
    """Return "numbers" (booleans too), "text", or "objects" for others and mixtures.

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
    """Return a private copy of a part; its arrays are read-only."""
    return tuple(_frozen(np.array(piece)) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def handed_out(data: Part) -> Part:
    """Return a part for functions that may write to it: read-only views of arrays, copies of the rest."""
    return tuple(_frozen(piece.view()) if isinstance(piece, np.ndarray) else _copied(piece) for piece in data)


def _copied(piece: Any) -> Any:
    return piece.copy() if hasattr(piece, "copy") else copy.deepcopy(piece)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True)
class Content:
    """Identity of a data set.

    ``identity`` is a digest of its records in any order, ``order`` one in their order. ``keys`` has 64 bits for each
    record, to search for it among others.
    """

    identity: str
    order: str
    keys: NDArray[np.uint64] | None


class RecordSums:
    """Sums of the hashes of records, which identify a data set in any order of its records.

    Examples
    --------
    >>> from thresholdout.data.row_hashes import row_hashes
    >>> one, other = RecordSums(), RecordSums()
    >>> one.add(row_hashes([[1, 2], [3, 4]]))
    >>> other.add(row_hashes([[3, 4]]))
    >>> other.add(row_hashes([[1, 2]]))
    >>> one.identity() == other.identity()
    True
    """

    def __init__(self) -> None:
        self._count = 0
        self._sums = [0, 0]

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add records by hashes of shape (k, 2); the sums are exact integers, without a modulus."""
        self._count += len(hashes)
        for half in (0, 1):
            lane = hashes[:, half]
            low, high = (lane & np.uint64(2**32 - 1)).sum(dtype=np.uint64), (lane >> np.uint64(32)).sum(dtype=np.uint64)
            self._sums[half] += int(low) + (int(high) << 32)

    def merge(self, other: RecordSums) -> None:
        """Add the sums of other records."""
        self._count += other._count
        self._sums = [one + more for one, more in zip(self._sums, other._sums, strict=True)]

    def identity(self, pieces: int = 1) -> str:
        """Return the identity of a data set of this number of pieces; see `content_of`."""
        return self._digest(b"thresholdout holdout", pieces)

    def table(self) -> str:
        """Return the digest of a table; see `table_digest`."""
        return self._digest(b"thresholdout table", 1)

    def _digest(self, what: bytes, pieces: int) -> str:
        return hashlib.sha256(what + b" %d %d %d %d\n" % (pieces, self._count, *self._sums)).hexdigest()


def content_of(data: Part, keys: bool = False) -> Content:
    """Return the identity of a data set; its records are read once, in blocks.

    The same numbers have the same identity in every container (lists, arrays of any numeric type, data frames of any
    library, sparse matrices) and in every order. The order of columns counts, their names do not. PROOFS.md, "Identity
    of records", bounds the probability of collisions.

    Examples
    --------
    >>> one = content_of(([[1, 2], [3, 4]], [0, 1]))
    >>> other = content_of((np.array([[3.0, 4.0], [1.0, 2.0]]), np.array([True, False])))
    >>> one.identity == other.identity, one.order == other.order
    (True, False)
    """
    sums, size, first = RecordSums(), record_count(data), 0
    order = hashlib.sha256(b"thresholdout order %d %d\n" % (len(data), size))
    known = np.empty(size, dtype=np.uint64) if keys else None
    for hashes in hash_blocks(data):
        sums.add(hashes)
        order.update(np.ascontiguousarray(hashes, dtype="<u8").tobytes())
        if known is not None:
            known[first : first + len(hashes)] = membership_keys(hashes)
            first += len(hashes)
    return Content(sums.identity(len(data)), order.hexdigest(), known)


def table_digest(hashes: NDArray[np.uint64]) -> str:
    """Return one digest of all rows of a table in any order; it shows nothing about single rows.

    Examples
    --------
    >>> from thresholdout.data.row_hashes import row_hashes
    >>> table_digest(row_hashes([[1, 2], [3, 4]])) == table_digest(row_hashes([[3, 4], [1, 2]]))
    True
    """
    sums = RecordSums()
    sums.add(hashes)
    return sums.table()
