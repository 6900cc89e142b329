"""Tables in Dask and Spark have the identities of the same tables in memory, and shared records are found."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracles.row_hashes import holdout_identity
from tests.thresholdout.data.parts.test_part_identity import COLUMNS, TABLE
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.part_identity import check_parts_disjoint, part_identity
from thresholdout.errors import OverlapError

pytestmark = [
    pytest.mark.slow,
    *(pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning")),  # of engines
]

Reader = Callable[[str], Any]


@pytest.fixture(scope="module", params=["dask", "spark"])
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    """How an engine reads Parquet files."""
    if request.param == "dask":
        frames = pytest.importorskip("dask.dataframe", reason="Dask is not installed: make test-engines")
        yield lambda pattern: frames.read_parquet(pattern, dtype_backend="pyarrow")
        return
    sessions = pytest.importorskip("pyspark.sql", reason="Spark is not installed: make test-engines")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: make test-engines")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sessions.SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield lambda pattern: session.read.parquet(pattern)
    session.stop()


def read(reader: Reader, table: pa.Table, folder: Path, name: str = "holdout") -> LazyPart:
    """Write a table to three files, of which one is empty, and read them."""
    (folder / name).mkdir(parents=True)
    for place, rows in enumerate((table[:1], table[:0], table[1:])):
        pq.write_table(rows, folder / name / f"{place}.parquet")
    return LazyPart(reader(str(folder / name / "*.parquet")), name)


def test_whole_tables(reader: Reader, tmp_path: Path) -> None:
    expected = holdout_identity(list(zip(*COLUMNS.values(), strict=True)))
    assert part_identity(read(reader, TABLE, tmp_path)) == expected
    assert part_identity(read(reader, TABLE.take([2, 0, 3, 1]), tmp_path / "turned")) == expected
    assert part_identity(read(reader, TABLE[1:], tmp_path / "less")) != expected


def test_shared_records_are_found(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(OverlapError, match="2 of 3 holdout records"):
        check_parts_disjoint(
            read(reader, TABLE[:3], tmp_path, "train"), read(reader, TABLE.take([3, 1, 2]), tmp_path, "holdout")
        )
    apart = [read(reader, rows, tmp_path / "apart", name) for rows, name in ((TABLE[:2], "train"), (TABLE[2:], "rest"))]
    check_parts_disjoint(*apart)
