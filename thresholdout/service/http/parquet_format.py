"""What a Parquet file says about itself: its summary and its pages, read before anything is decompressed.

Both are Thrift structures in the compact protocol (parquet.thrift of the Parquet format: "FileMetaData", "PageHeader").
They are read here, since the summary can say anything while readers believe the pages, and since a reader in C++ ends
the process where a summary that was made to harm it names what is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["DICTIONARY", "Chunk", "Group", "Page", "Unreadable", "groups", "pages"]

DICTIONARY: Final = 2
"""Type of a page that holds a dictionary."""

_DATA, _INDEX, _DATA_V2 = 0, 1, 3
_DETAILS: Final = {_DATA: (5, 1, 2), DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}
"""By type of page: the field with its details, and in these the number of values and their encoding."""

_DEEPEST: Final = 8
_MOST_FIELDS: Final = 32
_MOST_ELEMENTS: Final = 1_000_000
"""Of the structures and lists of one summary, or of one header."""


class Unreadable(Exception):
    """Bytes that are no summary, or no header of a page."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where the pages of one column in one row group are.

    Attributes
    ----------
    column : str
        Its name; of a nested one the names from the outermost on, with dots.
    start, length : int
        Place of its bytes in the file.
    """

    column: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Group:
    """A row group.

    Attributes
    ----------
    rows : int
        How many it says it has.
    chunks : tuple of Chunk
        One for each column.
    """

    rows: int
    chunks: tuple[Chunk, ...]


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


def groups(content: bytes) -> list[Group]:
    """Read the summary at the end of a file.

    Parameters
    ----------
    content : bytes
        The file.

    Raises
    ------
    Unreadable
        When it has none, or its columns are not the same in all row groups.
    """
    end = len(content) - 8
    start = end - int.from_bytes(content[-8:-4], "little")
    if start < 4:
        raise Unreadable
    summary = _Compact(content, start, end).structure()
    found = [_group(group) for group in _list(summary, 4)]
    if len({tuple(chunk.column for chunk in group.chunks) for group in found}) > 1:
        raise Unreadable
    if sum(group.rows for group in found) != _whole(summary, 3):
        raise Unreadable
    return found


def _group(group: Any) -> Group:
    if not isinstance(group, dict):
        raise Unreadable
    return Group(_whole(group, 3), tuple(map(_chunk, _list(group, 1))))


def _chunk(chunk: Any) -> Chunk:
    """Return where a chunk begins, as readers find it."""
    details = chunk.get(3) if isinstance(chunk, dict) else None
    if not isinstance(details, dict) or 1 in chunk:  # 1: the name of another file
        raise Unreadable
    start = _whole(details, 9)
    if 11 in details and 0 < (first := _whole(details, 11)) < start:
        start = first
    path = _list(details, 3)
    if not path or not all(isinstance(name, bytes) for name in path):
        raise Unreadable
    return Chunk(b".".join(path).decode(errors="replace"), start, _whole(details, 7))


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


def _list(fields: dict[int, Any], field: int) -> list[Any]:
    found = fields.get(field)
    if not isinstance(found, list):
        raise Unreadable
    return found


class _Compact:
    """Reads structures of Thrift's compact protocol from some bytes of a file."""

    def __init__(self, content: bytes, place: int, end: int) -> None:
        self.place = place
        self._content = content
        self._end = end
        self._left = _MOST_ELEMENTS

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Return its fields by number."""
        fields: dict[int, Any] = {}
        number = 0
        for _ in range(_MOST_FIELDS):
            byte = self._byte()
            if not byte:
                return fields
            step, kind = byte >> 4, byte & 0x0F
            number = number + step if step else self._signed()
            if number in fields:
                raise Unreadable  # readers could take either
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        raise Unreadable

    def _value(self, kind: int, depth: int) -> Any:
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise Unreadable
        if kind in (1, 2, 3):  # truth values have a byte of their own in lists
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind == 9:
            return self._elements(depth + 1)
        if kind == 12:
            return self.structure(depth + 1)
        raise Unreadable  # sets and maps occur in no file

    def _elements(self, depth: int) -> list[Any]:
        byte = self._byte()
        count, kind = byte >> 4, byte & 0x0F
        if count == 15:
            count = self._unsigned()
        if count > self._left:
            raise Unreadable
        return [self._value(kind, depth) for _ in range(count)]

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, count: int) -> bytes:
        start, self.place = self.place, self.place + count
        if self.place > self._end:
            raise Unreadable
        return self._content[start : self.place]

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
