import codecs
import csv
import gzip
import io
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.data.tables import read_table
from thresholdout.service.http.parquet import Unreadable, pages
from thresholdout.service.http.uploads import CSV, PARQUET, media_type, read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

SMALL = Limits(most_bytes=2**20, most_decompressed=2**20, most_rows=1000, most_columns=10)


def refused(content: bytes, content_type: str = CSV, limits: Limits = SMALL) -> tuple[str, dict[str, Any]]:
    with pytest.raises(ServiceRefused) as error:
        read_upload(content, content_type, limits)
    return error.value.code, error.value.details


def parquet(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), sink, **options)
    return sink.getvalue()


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), bom=st.booleans(), quoting=st.booleans())
def test_csv_is_read_as_files_are(rows: list[tuple[str, str]], bom: bool, quoting: bool) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if quoting else csv.QUOTE_MINIMAL).writerows([("id", "a b"), *rows])
    content = text.getvalue().encode()
    found = read_upload((codecs.BOM_UTF8 if bom else b"") + content, CSV, SMALL)
    wanted = [[cell or None for cell in row] for row in rows]
    assert [[None if pd.isna(cell) else cell for cell in row] for row in found.to_numpy().tolist()] == wanted


def test_csv_of_every_form_is_read_as_the_command_line_reads_it(tmp_path: Path) -> None:
    for number, text in enumerate(
        [
            "id,y\n007,NA\n",
            ",id,y\n0,a,1\n1,b,\n",
            "id,y\r\na,1\r\nb,2",
            "\n\nid,y\n\na,1\n\n",
            'id,y\n"a,b","c""d"\n',
            'id,y\n"two\nlines",1\n',
            "id,y\n1e400,-inf\n",
            "id,y\n=1+1,'x\n",
            "ïd,y\nä,1\n",
        ]
    ):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(text.encode())
        pd.testing.assert_frame_equal(read_upload(text.encode(), CSV, SMALL), read_table(path))


@for_each(
    ("content", "code", "details"),
    [
        (b"", "bad_table", {"seen": "an empty file"}),
        (b"\n\r\n", "bad_table", {"seen": "an empty file"}),
        (b"id,p\n", "bad_table", {"seen": "no rows"}),
        (b"id,p\na,1\nb,1,2\n", "bad_table", {"row": 2, "seen": "3 cells", "expected": "2 cells"}),
        (b"id,p\na,1\nb\n", "bad_table", {"row": 2, "seen": "1 cells"}),
        (b"id,id\na,1\n", "bad_table", {"column": "id"}),
        (b"id,\na,1\n", "bad_table", {"seen": "column 2 has no name"}),
        (b"id,p\na,\0\n", "bad_table", {"seen": "a NUL character", "line": 2}),
        (b"id,p\na,\xff\n", "bad_table", {"seen": "bytes that are not UTF-8"}),
        (b"id,p\na,\xe2\x82", "bad_table", {"seen": "bytes that are not UTF-8"}),
        ("id,p\na,1\n".encode("utf-16"), "bad_table", {"seen": "text in UTF-16"}),
        (b'id,p\n"a,1\n', "bad_table", {"seen": "an odd number of quotation marks"}),
        (b'"id"x,p\na,"1"\n', "bad_table", {"line": 1}),
        (b"id,p\n" + b"a,1\n" * 1001, "too_large", {"what": "rows", "most": 1000}),
        (b"id" + b",p" * 10 + b"\n1", "too_large", {"what": "columns", "most": 10}),
        (b"x" * (2**20 + 1), "too_large", {"what": "bytes", "most": 2**20}),
        (gzip.compress(b"id,p\na,1\n", mtime=0), "unsupported", {"seen": "a file compressed by gzip"}),
        (b"\x28\xb5\x2f\xfd....", "unsupported", {"seen": "a file compressed by zstd"}),
        (b"BZh9....", "unsupported", {"seen": "a file compressed by bzip2"}),
        (parquet({"id": ["a"]}), "bad_table", {"seen": "a NUL character"}),
    ],
)
def test_csv_that_is_refused(content: bytes, code: str, details: dict[str, Any]) -> None:
    found, said = refused(content)
    assert found == code
    assert details.items() <= said.items()


def test_a_line_is_bounded_before_it_is_split() -> None:
    large = Limits(most_columns=10)
    assert refused(b"id,p\na," + b"1" * 2**21 + b"\n", limits=large) == (
        "too_large",
        {"what": "bytes of a line", "most": 2**20},
    )
    assert refused(b"id,p\na" + b"," * 10**6 + b"\n", limits=large)[0] == "bad_table"


def test_zip_files_and_spreadsheets_are_refused() -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        file.writestr("predictions.csv", "id,p\na,1\n")
    for kind in (CSV, PARQUET):
        assert refused(sink.getvalue(), kind) == ("unsupported", {"seen": "a file compressed by zip"})
    assert read_upload(b"PK,p\na,1\n", CSV, SMALL)["PK"].tolist() == ["a"]


@for_each(
    "content_type",
    ["", "text/plain", "application/json", "text/csv; charset=utf-16", 'text/csv; charset="latin-1"', "multipart/x"],
)
def test_other_kinds_are_unsupported(content_type: str) -> None:
    with pytest.raises(ServiceRefused) as error:
        media_type(content_type)
    assert error.value.status == 415


def test_parquet_of_every_type_that_a_table_has() -> None:
    columns = {
        "text": pa.array(["007", "b"]),
        "large": pa.array(["é", None], pa.large_string()),
        "category": pa.array(["x", "y"]).dictionary_encode(),
        "int": pa.array([1, 2], pa.int16()),
        "big": pa.array([2**63 + 1, 1], pa.uint64()),
        "float": pa.array([0.5, 0.25], pa.float32()),
        "bool": pa.array([True, False]),
        "decimal": pa.array([Decimal("0.50"), Decimal("1.25")]),
        "date": pa.array([date(2020, 1, 2), date(1999, 12, 31)]),
    }
    for options in ({}, {"compression": "zstd", "data_page_version": "2.0"}, {"use_dictionary": False}):
        found = read_upload(parquet(columns, **options), PARQUET, SMALL)
        assert found.to_dict("list") == {
            "text": ["007", "b"],
            "large": ["é", None] if found["large"].dtype == object else ["é", pytest.approx(float("nan"), nan_ok=True)],
            "category": ["x", "y"],
            "int": [1, 2],
            "big": [2**63 + 1, 1],
            "float": [0.5, 0.25],
            "bool": [True, False],
            "decimal": ["0.50", "1.25"],
            "date": ["2020-01-02", "1999-12-31"],
        }


@for_each(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        pa.array([b"a", b"b"]),
        pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 2),
        pa.array([datetime(2020, 1, 1)] * 2),
        pa.array([1, 2], pa.time32("s")),
        pa.array([None, None]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_other_types_are_refused_with_their_column(column: Any) -> None:
    code, details = refused(parquet({"id": pa.array(["a", "b"]), "odd": column}), PARQUET)
    assert (code, details["column"]) == ("bad_table", "odd")


def test_an_index_that_pandas_would_restore_stays_a_column() -> None:
    frame = pd.DataFrame({"prediction": [1, 0]}, index=pd.Index(["a", "b"], name="id"))
    found = read_upload(parquet(pa.Table.from_pandas(frame)), PARQUET, SMALL)
    assert found.columns.tolist() == ["prediction", "id"]


@for_each(
    "content",
    [
        b"",
        b"PAR1",
        b"id,p\na,1\n",
        b"PAR1" + bytes(100) + b"\x20\0\0\0PAR1",
        b"PARE" + bytes(20) + b"PARE",
    ],
)
def test_what_is_no_parquet_file(content: bytes) -> None:
    assert refused(content, PARQUET)[0] == "bad_table"


@pytest.mark.slow
def test_damage_anywhere_in_a_parquet_file_is_refused_or_does_not_matter() -> None:
    content = parquet({"id": ["a", "b", "c"], "p": [0.5, 0.25, 1.0]})
    for place in range(0, len(content), 3):
        for byte in (0, 0x7F, 0xFF):
            broken = content[:place] + bytes([byte]) + content[place + 1 :]
            try:
                found = read_upload(broken, PARQUET, SMALL)
            except ServiceRefused:
                continue
            assert found.shape[0] <= 1000


def test_nul_and_broken_text_in_parquet() -> None:
    assert refused(parquet({"id": ["a", "b\0"]}), PARQUET)[1] == {"seen": "a NUL character", "row": 2, "column": "id"}
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    assert refused(parquet(pa.table({"id": broken})), PARQUET)[0] == "bad_table"
    assert refused(parquet({"id": pa.array([], pa.string())}), PARQUET)[1]["seen"] == "no rows"


def test_two_columns_of_one_name_in_parquet() -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])
    assert refused(parquet(table), PARQUET)[1]["column"] == "id"
    assert refused(parquet(pa.table([pa.array(["a"])], names=[""])), PARQUET)[1]["seen"] == "column 1 has no name"


def test_compressed_bombs_are_seen_before_they_are_decompressed() -> None:
    wide = Limits(most_decompressed=2**22)
    zeros = parquet({"id": pa.array(["0" * 2**20] * 8)}, use_dictionary=False, compression="zstd")
    assert len(zeros) < 2**16
    assert refused(zeros, PARQUET, wide) == ("too_large", {"what": "bytes in memory", "most": 2**22})
    rows = parquet({"id": pa.array([0] * 1001)}, compression="zstd")
    assert refused(rows, PARQUET) == ("too_large", {"what": "rows", "most": 1000})
    columns = parquet({f"c{k}": [0] for k in range(11)})
    assert refused(columns, PARQUET) == ("too_large", {"what": "columns", "most": 10})


def test_a_long_text_of_a_dictionary_that_every_record_uses() -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * 2**15]))
    content = parquet({"id": long}, compression="zstd")
    assert len(content) < 2**16
    assert refused(content, PARQUET)[1]["what"] == "bytes in memory"
    assert refused(parquet({"id": long.cast(pa.string())}), PARQUET)[1]["what"] == "bytes in memory"
    short = parquet({"id": [f"r{k % 500}" for k in range(1000)]})  # 1000 times the size of its dictionary is too much
    assert len(read_upload(short, PARQUET, SMALL)) == 1000


def test_texts_that_repeat_the_one_before_are_not_read() -> None:
    content = parquet(
        {"id": ["x" * 2**10] * 100}, use_dictionary=False, column_encoding={"id": "DELTA_BYTE_ARRAY"}, version="2.6"
    )
    assert refused(content, PARQUET)[1] == {
        "seen": "an encoding that is not supported",
        "expected": "PLAIN",
        "column": "id",
    }


def test_pages_are_believed_and_not_the_summary() -> None:
    content = parquet({"p": pa.array(range(4000))}, use_dictionary=False, compression="none")
    limits = Limits(most_decompressed=10**6)
    start = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0).data_page_offset
    size = 32_000 + next(k for k in range(40) if _varint(32_000 + k) in content[start : start + 12])
    assert read_upload(content, PARQUET, limits).shape == (4000, 1)
    more = content[:start] + content[start:].replace(_varint(size), _varint(2**20 - 1), 1)
    assert len(more) == len(content)
    assert refused(more, PARQUET, limits)[1]["what"] == "bytes in memory"


def _varint(number: int) -> bytes:
    """A positive number in the compact protocol of Thrift, in three bytes."""
    coded = 2 * number
    return bytes([0x80 | (coded & 0x7F), 0x80 | (coded >> 7 & 0x7F), coded >> 14])


@for_each("version", ["1.0", "2.0"])
@for_each("compression", ["none", "snappy"])
def test_pages_that_are_walked_are_those_of_the_summary(version: str, compression: str) -> None:
    table = pa.table({"a": [f"r{k}" for k in range(3000)], "b": [k % 7 for k in range(3000)]})
    content = parquet(
        table, data_page_version=version, compression=compression, row_group_size=1000, data_page_size=500
    )
    summary = pq.ParquetFile(io.BytesIO(content)).metadata
    for group in range(3):
        for place in range(2):
            chunk = summary.row_group(group).column(place)
            start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            found = list(pages(content, start, chunk.total_compressed_size))
            assert sum(page.values for page in found if page.type in (0, 3)) == 1000
            headers = chunk.total_uncompressed_size - sum(page.size for page in found)
            assert 10 * len(found) < headers < 200 * len(found)


@for_each("start", [-1, 0, 3, 10**9])
def test_bytes_that_are_no_pages(start: int) -> None:
    with pytest.raises(Unreadable):
        list(pages(b"\xff" * 64, start, 40))
    with pytest.raises(Unreadable):
        list(pages(b"\x1c" * 64, 0, 64))  # structures in structures
