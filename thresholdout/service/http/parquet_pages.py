"""What the pages of a Parquet file say about themselves, read before any of them is decompressed.

A file's own summary can say anything; its readers believe the pages. So these are walked one after the other by their
headers, which are Thrift structures in the compact protocol (parquet.thrift of the Parquet format, "PageHeader").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["DICTIONARY", "Page", "Unreadable", "pages"]

DICTIONARY: Final = 2
"""Type of a page that holds a dictionary."""

_DATA, _INDEX, _DATA_V2 = 0, 1, 3
_DETAILS: Final = {_DATA: (5, 1, 2), DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}
"""By type of page: the field with its details, and in these the number of values and their encoding."""

_DEEPEST: Final = 2
"""A header holds details of its page, and these statistics."""

_MOST_FIELDS: Final = 32


class Unreadable(Exception):
    """Bytes that are no header of a page."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one page says about itself.

    Attributes
    ----------
    type : int
        0 and 3 for data, 2 for a dictionary, 1 for an index.
    size : int
        Bytes that it says it has when it is decompressed.
    values : int
        How many it says it has.
    encoding : int
        Of its values, a number of parquet.thrift.
    """

    type: int
    size: int
    values: int
    encoding: int


def pages(content: bytes, start: int, length: int) -> Iterator[Page]:
    """Walk the pages of one column chunk.

    Parameters
    ----------
    content : bytes
        The file.
    start, length : int
        Where the chunk's bytes are.

    Raises
    ------
    Unreadable
        When what stands there are no pages.
    """
    end = start + length
    if start < 0 or length < 0 or end > len(content):
        raise Unreadable
    while start < end:
        reader = _Compact(content, start, end)
        header = reader.structure()
        kind, size, stored = (_whole(header, field) for field in (1, 2, 3))
        start = reader.place + stored
        if start > end:
            raise Unreadable
        if kind == _INDEX:
            yield Page(kind, size, 0, 0)
            continue
        if kind not in _DETAILS:
            raise Unreadable
        field, values, encoding = _DETAILS[kind]
        details = header.get(field)
        if not isinstance(details, dict):
            raise Unreadable
        yield Page(kind, size, _whole(details, values), _whole(details, encoding))


def _whole(fields: dict[int, Any], field: int) -> int:
    found = fields.get(field)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise Unreadable
    return found


class _Compact:
    """Reads structures of Thrift's compact protocol from some bytes of a file."""

    def __init__(self, content: bytes, place: int, end: int) -> None:
        self.place = place
        self._content = content
        self._end = end

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Return its fields by number."""
        if depth > _DEEPEST:
            raise Unreadable
        fields: dict[int, Any] = {}
        number = 0
        for _ in range(_MOST_FIELDS):
            byte = self._byte()
            if not byte:
                return fields
            step, kind = byte >> 4, byte & 0x0F
            number = number + step if step else self._signed()
            fields[number] = self._value(kind, depth)
        raise Unreadable

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._unsigned())
        if kind == 12:
            return self.structure(depth + 1)
        raise Unreadable  # lists, sets and maps occur in no header of a page

    def _byte(self) -> int:
        self._skip(1)
        return self._content[self.place - 1]

    def _skip(self, count: int) -> None:
        self.place += count
        if self.place > self._end:
            raise Unreadable

    def _unsigned(self) -> int:
        found = 0
        for shift in range(0, 64, 7):
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise Unreadable

    def _signed(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)
