"""Parquet uploads: the footer and the pages are checked before anything is decompressed.

The decompressed size is bounded by the sizes that pages declare, by the number of values, by the longest text of a
dictionary times the records that may use it, and by encodings: the encoding that can repeat a long text at no cost is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DICTIONARY", "Chunk", "Group", "Page", "Unreadable", "groups", "pages", "read_parquet"]

# Type of a page that holds a dictionary.
DICTIONARY: Final = 2

# Types of the other pages, as in parquet.thrift.
_DATA, _INDEX, _DATA_V2 = 0, 1, 3
# By type of page: the field with its details, and in these the number of values and their encoding.
_DETAILS: Final = {_DATA: (5, 1, 2), DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}

# Bounds of nesting and of fields in one structure: parquet.thrift stays below, and hostile files need not.
_DEEPEST: Final = 8
_MOST_FIELDS: Final = 32
# Structures and list elements of one footer, or of one page header.
_MOST_ELEMENTS: Final = 1_000_000


class Unreadable(Exception):
    """Bytes that are no footer, or no header of a page."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The place of a column's pages in one row group; a nested column is named by its path, with dots."""

    column: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Group:
    """A row group: its declared number of rows, and one chunk for each column."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The declared properties of one page.

    Notes
    -----
    `type` is 0 or 3 for data, 2 for a dictionary, 1 for an index; `size` is in bytes after decompression; `encoding` is
    a number of parquet.thrift.
    """

    type: int
    size: int
    values: int
    encoding: int


def groups(content: bytes) -> list[Group]:
    """Read the footer of a file; raise `Unreadable` if row groups differ in their columns."""
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
    """Return the place of a chunk, as readers find it."""
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
    """Yield the pages of one column chunk."""
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
    """Reader of structures in Thrift's compact protocol."""

    def __init__(self, content: bytes, place: int, end: int) -> None:
        self.place = place
        self._content = content
        self._end = end
        self._left = _MOST_ELEMENTS

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a structure by number."""
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


_MAGIC: Final = b"PAR1"
# Bytes of a footer, which is parsed before other limits apply.
_LONGEST_FOOTER: Final = 2**24
# Columns times row groups.
_MOST_CHUNKS: Final = 20_000

# Pages of a file, each with a header that is parsed in Python.
_MOST_PAGES: Final = 100_000
# Bytes in memory of one value that is no text.
_WIDEST: Final = 16

# Of parquet.thrift: all but DELTA_BYTE_ARRAY (7), in which a text can repeat the one before it for one byte.
_ENCODINGS: Final = {0, 2, 3, 4, 5, 6, 8, 9}

_TEXT_TYPES: Final = "text, numbers, truth values or dates"


def read_parquet(content: bytes, limits: Limits) -> pd.DataFrame:
    """Read a Parquet file after its check against the limits.

    Notes
    -----
    Decimals and dates become their text in a CSV file, and dictionaries their values; nested, time and binary columns
    are refused.

    Examples
    --------
    >>> sink = pa.BufferOutputStream()
    >>> pyarrow.parquet.write_table(pa.table({"id": ["a"], "prediction": [0.5]}), sink)
    >>> read_parquet(sink.getvalue().to_pybytes(), Limits()).to_dict("records")
    [{'id': 'a', 'prediction': 0.5}]
    """
    summary = _summary(content)
    within = _check_size(content, summary, limits)
    try:
        file = _file(content)
        _check_columns(file.schema_arrow)
        if not within:
            _check_texts(content, file.schema_arrow, summary, limits)
        table = file.read(use_threads=False)
        table = pa.table({name: _plain(table[name], name) for name in table.column_names})
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError):
        raise _not_parquet() from None
    found: pd.DataFrame = table.to_pandas(ignore_metadata=True, use_threads=False)
    return found


def _not_parquet() -> ServiceRefused:
    return ServiceRefused("bad_table", seen="bytes that are not a Parquet file", expected="a Parquet file")


def _summary(content: bytes) -> list[Group]:
    """Read the footer of the file, and nothing else."""
    if len(content) < 12 or not content.startswith(_MAGIC) or not content.endswith(_MAGIC):
        raise _not_parquet()
    if int.from_bytes(content[-8:-4], "little") > _LONGEST_FOOTER:
        raise ServiceRefused("too_large", what="bytes of a summary", most=_LONGEST_FOOTER)
    try:
        return groups(content)
    except Unreadable:
        raise _not_parquet() from None


def _file(content: bytes, texts: Sequence[str] = ()) -> pyarrow.parquet.ParquetFile:
    """Open a file; keep the dictionaries of the columns in `texts`."""
    return pyarrow.parquet.ParquetFile(
        pa.BufferReader(content), read_dictionary=list(texts), pre_buffer=False, arrow_extensions_enabled=False
    )


def _check_columns(schema: pa.Schema) -> None:
    """Refuse columns without a name, with a repeated name, or of a type that a table of records does not have."""
    names = set()
    for place, field in enumerate(schema):
        if not field.name:
            raise ServiceRefused("bad_table", seen=f"column {place + 1} has no name", expected="names of columns")
        if field.name in names:
            raise ServiceRefused("bad_table", seen="two columns of one name", column=field.name[:100])
        names.add(field.name)
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not (_is_text(kind) or _is_number(kind) or pa.types.is_decimal(kind) or pa.types.is_date(kind)):
            seen = f"a column of type {str(kind)[:100]}"
            raise ServiceRefused("bad_table", seen=seen, expected=_TEXT_TYPES, column=field.name[:100])


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _check_size(content: bytes, summary: list[Group], limits: Limits) -> bool:
    """Refuse a file whose footer or pages declare too large a size; return whether that bounds the table in memory."""
    rows = sum(group.rows for group in summary)
    if not rows:
        raise ServiceRefused("bad_table", seen="no rows", expected="at least one record")
    columns = len(summary[0].chunks)
    if columns > limits.most_columns:
        raise ServiceRefused("too_large", what="columns", most=limits.most_columns)
    if rows > limits.most_rows:
        raise ServiceRefused("too_large", what="rows", most=limits.most_rows)
    if columns * len(summary) > _MOST_CHUNKS:
        raise ServiceRefused("too_large", what="columns times row groups", most=_MOST_CHUNKS)
    left = limits.most_decompressed - rows * columns * _WIDEST
    expanded = count = 0
    for rows_of_group, chunk in ((group.rows, chunk) for group in summary for chunk in group.chunks):
        for page in _pages(content, chunk):
            count += 1
            left -= page.size
            if page.type == DICTIONARY:
                left -= page.values * _WIDEST
                expanded += page.size * rows_of_group
            _check_page(page, chunk, limits)
            if count > _MOST_PAGES:
                raise ServiceRefused("too_large", what="pages", most=_MOST_PAGES)
            if left < 0:
                raise _too_much(limits)
    return expanded <= left


def _pages(content: bytes, chunk: Chunk) -> Iterator[Page]:
    try:
        yield from pages(content, chunk.start, chunk.length)
    except Unreadable:
        raise _not_parquet() from None


def _check_page(page: Page, chunk: Chunk, limits: Limits) -> None:
    if page.values > limits.most_rows:
        raise ServiceRefused("too_large", what="values of a page", most=limits.most_rows)
    if page.encoding not in _ENCODINGS:
        raise ServiceRefused(
            "bad_table", seen="an encoding that is not supported", expected="PLAIN", column=chunk.column[:100]
        )


def _too_much(limits: Limits) -> ServiceRefused:
    return ServiceRefused("too_large", what="bytes in memory", most=limits.most_decompressed)


def _check_texts(content: bytes, schema: pa.Schema, summary: list[Group], limits: Limits) -> None:
    """Refuse a file that would be too large if each record had the longest text of its dictionary."""
    texts = [field.name for field in schema if _is_text(field.type)]
    file = _file(content, texts)
    size = 0
    for place, group in enumerate(summary):
        first = next(file.iter_batches(1, row_groups=[place], columns=texts, use_threads=False), None)
        for column in () if first is None else first.columns:
            size += (pc.max(pc.binary_length(column.dictionary)).as_py() or 0) * group.rows
        if size > limits.most_decompressed:
            raise _too_much(limits)


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Turn a column into numbers, truth values or text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        column.validate(full=True)  # text that is UTF-8
        zero = pc.index(pc.match_substring(column, "\0"), True).as_py()
        if zero >= 0:
            raise ServiceRefused("bad_table", seen="a NUL character", row=zero + 1, column=name[:100])
        return column
    if _is_number(column.type):
        return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    return column.cast(pa.string())
