"""Parquet files as they are sent: their summary and their pages are checked before anything is decompressed.

What a few bytes can become is bounded: by what pages say they decompress to, by the number of values, by the longest
text of a dictionary times the records that may use it, and by encodings, of which the one that can repeat a long text
for nothing is not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from thresholdout.service.http.parquet_format import DICTIONARY, Chunk, Group, Page, Unreadable, groups, pages
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_parquet"]

_MAGIC: Final = b"PAR1"
_LONGEST_FOOTER: Final = 2**24
_MOST_CHUNKS: Final = 20_000
"""Columns times row groups."""

_MOST_PAGES: Final = 100_000
_WIDEST: Final = 16
"""Bytes of one value in memory, where it is no text."""

_ENCODINGS: Final = {0, 2, 3, 4, 5, 6, 8, 9}
"""Of parquet.thrift: all but DELTA_BYTE_ARRAY (7), in which a text can repeat the one before it for one byte."""

_TEXT_TYPES: Final = "text, numbers, truth values or dates"


def read_parquet(content: bytes, limits: Limits) -> pd.DataFrame:
    """Read a Parquet file, after it was checked against the limits.

    Decimals and dates become the text that a CSV file has for them, and dictionaries what they stand for; nested
    columns, times and binary ones are refused.

    Raises
    ------
    ServiceRefused
        "too_large" for what is beyond a limit, and "bad_table" for what is no such table.

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
    return ServiceRefused("bad_table", seen="bytes that are no Parquet file", expected="a Parquet file")


def _summary(content: bytes) -> list[Group]:
    """Read the summary at the end of the file, and nothing else."""
    if len(content) < 12 or not content.startswith(_MAGIC) or not content.endswith(_MAGIC):
        raise _not_parquet()
    if int.from_bytes(content[-8:-4], "little") > _LONGEST_FOOTER:
        raise ServiceRefused("too_large", what="bytes of a summary", most=_LONGEST_FOOTER)
    try:
        return groups(content)
    except Unreadable:
        raise _not_parquet() from None


def _file(content: bytes, texts: Sequence[str] = ()) -> pyarrow.parquet.ParquetFile:
    """Open a file; of columns in `texts` the dictionaries are read as they are."""
    return pyarrow.parquet.ParquetFile(
        pa.BufferReader(content), read_dictionary=list(texts), pre_buffer=False, arrow_extensions_enabled=False
    )


def _check_columns(schema: pa.Schema) -> None:
    """Refuse columns without a name, with the same one, or of a type that a table of records does not have."""
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
    """Refuse a file that says, in its summary or in any page, that it is larger than it may be.

    Returns
    -------
    bool
        Whether that bounds the table, whatever its dictionaries hold.
    """
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
            "bad_table", seen="an encoding that is not read", expected="PLAIN", column=chunk.column[:100]
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
