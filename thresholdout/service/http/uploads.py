"""Uploaded tables, checked before they are parsed, so that none takes more memory than its limit.

Bytes, rows, columns and the size in memory are bounded first. A wrong file is refused with its row and column, in
words that depend on the file alone.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.csv

from thresholdout.data.tables import INDEX
from thresholdout.service.http.parquet import read_parquet
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CSV", "PARQUET", "media_type", "read_upload"]

CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"

# First bytes of compressed files; spreadsheets are zip files.
_COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"PK": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}

# Bytes of one line.
_LONGEST_LINE: Final = 2**20

# Bytes that are decoded at once, to find the line of a wrong one.
_CHUNK: Final = 2**20
_UTF8: Final = {"", "utf-8", "utf8", "us-ascii"}
_WRONG_WIDTH = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


def media_type(content_type: str) -> str:
    """Return the kind of table that a Content-Type names; refuse other kinds, and text that is not UTF-8."""
    name, _, parameters = content_type.partition(";")
    name = name.strip().lower()
    if name not in (CSV, PARQUET):
        raise ServiceRefused("unsupported", seen=content_type[:100])
    charset = re.search(r'charset\s*=\s*"?([^";\s]*)', parameters, re.IGNORECASE)
    if charset is not None and charset.group(1).lower() not in _UTF8:
        raise ServiceRefused("unsupported", seen=content_type[:100], expected="UTF-8")
    return name


def read_upload(content: bytes, content_type: str, limits: Limits) -> pd.DataFrame:
    r"""Read an uploaded table after its check against the limits.

    Notes
    -----
    A CSV file becomes text alone, as `thresholdout.data.tables.read_table` reads it; a Parquet file numbers, truth
    values and text.
    """
    kind = media_type(content_type)
    if len(content) > limits.most_bytes:
        raise ServiceRefused("too_large", what="bytes", most=limits.most_bytes)
    for magic, name in _COMPRESSED.items():
        if content.startswith(magic) and (name != "zip" or content[2:4] in (b"\x03\x04", b"\x05\x06", b"\x07\x08")):
            raise ServiceRefused("unsupported", seen=f"a file compressed by {name}")
    return read_parquet(content, limits) if kind == PARQUET else _read_csv(content, limits)


def _read_csv(content: bytes, limits: Limits) -> pd.DataFrame:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ServiceRefused("bad_table", seen="text in UTF-16", expected="UTF-8")
    content = content.removeprefix(codecs.BOM_UTF8)
    _check_text(content)
    lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if lines > limits.most_rows + 1:
        raise ServiceRefused("too_large", what="rows", most=limits.most_rows)
    names = _header(content, limits)
    cells = _cells(content, names)
    if not cells.num_rows:
        raise ServiceRefused("bad_table", seen="no rows", expected="at least one record")
    table: pd.DataFrame = cells.to_pandas(use_threads=False)
    table.columns = [INDEX if not place and not name and len(names) > 1 else name for place, name in enumerate(names)]
    return table


def _check_text(content: bytes) -> None:
    """Refuse bytes that are no text, with the line of the first one."""
    zero = content.find(b"\0")
    if zero >= 0:
        raise ServiceRefused("bad_table", seen="a NUL character", line=content.count(b"\n", 0, zero) + 1)
    if content.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _CHUNK):
        try:
            decoder.decode(content[start : start + _CHUNK], final=start + _CHUNK >= len(content))
        except UnicodeDecodeError:
            line = content.count(b"\n", 0, start) + 1
            raise ServiceRefused("bad_table", seen="bytes that are not UTF-8", expected="UTF-8", line=line) from None


def _header(content: bytes, limits: Limits) -> list[str]:
    """Return the names of the columns in the first line that is not empty."""
    start = content[: 2 * _LONGEST_LINE].lstrip(b"\r\n")
    if not start:
        raise ServiceRefused("bad_table", seen="an empty file", expected="a header in the first line")
    text = start.decode("utf-8", errors="ignore")  # the last character may be cut
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        raise ServiceRefused("bad_table", seen="a header that is not a line of a CSV file", line=1) from None
    if len(names) > limits.most_columns:
        raise ServiceRefused("too_large", what="columns", most=limits.most_columns)
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            raise ServiceRefused("bad_table", seen="two columns of one name", column=name[:100])
        if not name and (place or len(names) == 1):
            raise ServiceRefused("bad_table", seen=f"column {place + 1} has no name", expected="a header")
        seen.add(name)
    return names


def _cells(content: bytes, names: list[str]) -> pa.Table:
    """Parse a CSV file; every cell stays text, and an empty one is missing."""
    quoted = b'"' in content
    # An open quotation mark would take the rest of the file for one cell.
    if quoted and content.count(b'"') % 2:
        raise ServiceRefused("bad_table", seen="an odd number of quotation marks", expected="an even number")
    try:
        cells = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_LONGEST_LINE),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=quoted),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                check_utf8=False,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid as error:
        raise _not_parsed(str(error)) from None
    # Both readers have to agree on the header, or a column could be taken for another.
    if cells.column_names != names:
        raise ServiceRefused("bad_table", seen="a header that can be read in two ways", line=1)
    return cells


def _not_parsed(reason: str) -> ServiceRefused:
    """Return a fixed text for a file that is no CSV file."""
    wrong = _WRONG_WIDTH.search(reason)
    if wrong is not None:
        row, expected, seen = map(int, wrong.groups())
        return ServiceRefused("bad_table", seen=f"{seen} cells", expected=f"{expected} cells", row=row - 1)
    if "straddl" in reason:
        return ServiceRefused("too_large", what="bytes of a line", most=_LONGEST_LINE)
    return ServiceRefused("bad_table", seen="text that is not a CSV file", expected="a CSV file with a header")
