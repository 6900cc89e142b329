"""Columns of a table as texts that a ledger keeps: read and written at once, and not value by value.

Numbers are the bytes of an array in base64, little end first; integers take as few bytes as the largest needs. Texts
are a list, or, where they repeat, a list of the different ones and the numbers of those that stand in each row.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["packed_numbers", "packed_texts", "unpacked_numbers", "unpacked_texts"]

_INTEGERS: Final = ("<i1", "<i2", "<i4", "<i8")
_KINDS: Final = (*_INTEGERS, "<f8")


def packed_numbers(column: NDArray[Any]) -> str:
    """Return integers or floats as text.

    Examples
    --------
    >>> packed_numbers(np.array([0, 1, 1]))
    '{"kind": "<i1", "data": "AAEB"}'
    """
    if column.dtype.kind == "f":
        kind = "<f8"
    else:
        ends = (int(column.min()), int(column.max())) if column.size else (0, 0)
        kind = next(one for one in _INTEGERS if all(np.iinfo(one).min <= end <= np.iinfo(one).max for end in ends))
    return json.dumps({"kind": kind, "data": b64encode(column.astype(kind).tobytes()).decode("ascii")})


def unpacked_numbers(text: str) -> NDArray[Any]:
    """Return the column that `packed_numbers` wrote, as 64-bit integers or floats.

    Raises
    ------
    ValueError, KeyError, TypeError
        When it is something else.
    """
    found = json.loads(text)
    if found["kind"] not in _KINDS:
        raise ValueError
    column = np.frombuffer(b64decode(found["data"], validate=True), dtype=found["kind"])
    return column.astype(np.float64 if column.dtype.kind == "f" else np.int64)


def packed_texts(column: list[str]) -> str:
    """Return texts as one text.

    Examples
    --------
    >>> packed_texts(["a", "b"])
    '{"texts": ["a", "b"]}'
    >>> packed_texts(["no", "yes", "no", "no"])
    '{"texts": ["no", "yes"], "rows": {"kind": "<i1", "data": "AAEAAA=="}}'
    """
    different = dict.fromkeys(column)
    if 2 * len(different) > len(column):
        return json.dumps({"texts": column})
    places = {text: place for place, text in enumerate(different)}
    rows = np.fromiter(map(places.__getitem__, column), dtype=np.int64, count=len(column))
    return json.dumps({"texts": list(different), "rows": json.loads(packed_numbers(rows))})


def unpacked_texts(text: str) -> list[str]:
    """Return the column that `packed_texts` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError, IndexError
        When it is something else.
    """
    found = json.loads(text)
    texts: list[str] = found["texts"]
    if not isinstance(texts, list) or set(map(type, texts)) - {str}:
        raise ValueError
    if "rows" not in found:
        return texts
    rows = unpacked_numbers(json.dumps(found["rows"]))
    if rows.size and int(rows.min()) < 0:
        raise ValueError
    column: list[str] = np.asarray(texts, dtype=object)[rows].tolist()
    return column
