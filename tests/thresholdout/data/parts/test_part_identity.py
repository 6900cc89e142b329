"""Tables in engines have the identities of the same tables in memory, and shared records are found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.oracles.row_hashes import Entry, Time, holdout_identity
from thresholdout.data.identity import content_of
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.data.parts.part_identity import check_parts_disjoint, part_identity
from thresholdout.errors import EngineFailed, InputError, OverlapError

UTC = dt.UTC
DAY = 86400 * 10**9
TABLE = pa.table(
    {
        "float": pa.array([1.5, None, float("nan"), -0.0], pa.float64()),
        "single": pa.array([0.1, 2.0, None, float("inf")], pa.float32()),
        "integer": pa.array([1, None, -3, 2**40], pa.int64()),
        "byte": pa.array([0, 255, 7, 0], pa.uint8()),
        "large": pa.array([2**53 + 1, 0, 2**62, -(2**63)], pa.int64()),
        "truth": pa.array([True, None, False, True], pa.bool_()),
        "text": pa.array(["a", None, "", "ü"], pa.string()),
        "class": pa.array(["x", "y", "x", None], pa.string()).dictionary_encode(),
        "day": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 7, 20), dt.date(2020, 1, 1)], pa.date32()),
        "time": pa.array([0, 10**15, None, -5], pa.timestamp("us")),
        "zoned": pa.array([0, 10**15, None, -5], pa.timestamp("us", "Europe/Berlin")),
        "price": pa.array([Decimal("0.50"), Decimal("-3.25"), None, Decimal("0.00")], pa.decimal128(10, 2)),
    }
)
MICRO: list[Entry] = [Time(0), Time(10**18), np.nan, Time(-5000)]
COLUMNS: dict[str, list[Entry]] = {
    "float": [1.5, np.nan, np.nan, 0.0],
    "single": [float(np.float32(0.1)), 2.0, np.nan, np.inf],
    "integer": [1.0, np.nan, -3.0, 2.0**40],
    "byte": [0.0, 255.0, 7.0, 0.0],
    "large": [2.0**53, 0.0, 2.0**62, -(2.0**63)],
    "truth": [1.0, np.nan, 0.0, 1.0],
    "text": ["a", np.nan, "", "ü"],
    "class": ["x", "y", "x", np.nan],
    "day": [Time(18262 * DAY), np.nan, Time(-165 * DAY), Time(18262 * DAY)],
    "time": MICRO,
    "zoned": MICRO,
    "price": [0.5, -3.25, np.nan, 0.0],
}
"""What each entry is, written down by hand."""


def in_duckdb(table: pa.Table) -> Any:
    return duckdb.from_arrow(table)


def in_polars(table: pa.Table) -> Any:
    return pl.DataFrame(table).lazy()


def in_files(table: pa.Table, folder: Path) -> list[Any]:
    """Parquet files, of which one has no records, read in another order by each engine."""
    for name, rows in (("b", table[:1]), ("a", table[1:]), ("c", table[:0])):
        pq.write_table(rows, folder / f"{name}.parquet")
    everything = str(folder / "*.parquet")
    return [pl.scan_parquet(everything), duckdb.read_parquet(everything)]


ENGINES: dict[str, Callable[[pa.Table], Any]] = {"polars": in_polars, "duckdb": in_duckdb}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    return ENGINES[request.param]


def part(frame: Any, name: str = "holdout") -> LazyPart:
    return LazyPart(frame, name)


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_of_column(engine: Callable[[pa.Table], Any], name: str) -> None:
    expected = holdout_identity([[value] for value in COLUMNS[name]])
    assert part_identity(part(engine(TABLE.select([name])))) == expected
    assert content_of((TABLE.select([name]).to_pandas(),)).identity == expected


def test_whole_tables_in_any_order_and_in_any_files(tmp_path: Path) -> None:
    expected = holdout_identity(list(zip(*COLUMNS.values(), strict=True)))
    found = {content_of((TABLE.to_pandas(),)).identity}
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        found |= {part_identity(part(make(TABLE.take(order)))) for make in ENGINES.values()}
    found |= {part_identity(part(frame)) for frame in in_files(TABLE, tmp_path)}
    assert found == {expected}


def test_tables_of_many_batches(engine: Callable[[pa.Table], Any]) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"x": rng.normal(size=200_000), "k": rng.integers(0, 9, 200_000), "y": rng.random(200_000) < 0.5}
    )
    expected = content_of((frame,)).identity
    assert part_identity(part(engine(pa.Table.from_pandas(frame)))) == expected
    frame["k"] += np.arange(200_000) == 77_777
    assert part_identity(part(engine(pa.Table.from_pandas(frame)))) != expected


@pytest.mark.parametrize(
    "other", [TABLE[:3], TABLE.select(TABLE.column_names[:-1]), pa.concat_tables([TABLE, TABLE[:1]])]
)
def test_other_tables_have_other_identities(engine: Callable[[pa.Table], Any], other: pa.Table) -> None:
    assert part_identity(part(engine(other))) != part_identity(part(engine(TABLE)))


# Shared records

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float64(), [0.5, 0.0, float("nan"), None]),
    "integer": (pa.int64(), [3, 0, None]),
    "truth": (pa.bool_(), [True, False, None]),
    "text": (pa.string(), ["a", "", None]),
    "day": (pa.date32(), [dt.date(2020, 1, 1), dt.date(1970, 1, 1), None]),
    "time": (pa.timestamp("us"), [dt.datetime(2020, 1, 1), dt.datetime(1970, 1, 1), None]),
    "zoned": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC), None],
    ),
    "price": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("0.00"), None]),
}


def known(value: Any) -> Any:
    return None if value is None or value != value else value


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALUES)
def test_shared_records_are_found_whatever_is_missing(engine: Callable[[pa.Table], Any], kind: str) -> None:
    """Missing beside missing, beside what stands for it in a join, and random parts, against Python's sets."""
    dtype, values = VALUES[kind]
    last = len(values) - 1
    rng = np.random.default_rng(1)
    drawn = [[[int(k) for k in rng.integers(0, len(values), 5)] for _ in range(2)] for _ in range(3)]
    for first, second in [[[last], [last]], [[1, last], [last]], [[1], [last, 0]], [[last, 0], [1, last, 1]], *drawn]:
        sides = [[(values[k], place % 2) for place, k in enumerate(chosen)] for chosen in (first, second)]
        tables = [
            pa.table({"v": pa.array([v for v, _ in side], dtype), "w": pa.array([w for _, w in side], pa.int64())})
            for side in sides
        ]
        train, holdout = (part(engine(table), name) for table, name in zip(tables, ("train", "holdout"), strict=True))
        there = {(known(v), w) for v, w in sides[0]}
        shared = sum((known(v), w) in there for v, w in sides[1])
        if not shared:
            check_parts_disjoint(train, holdout)
            continue
        with pytest.raises(OverlapError, match=rf"^train must be .*; got {shared} of {len(second)} holdout records"):
            check_parts_disjoint(train, holdout)


@pytest.mark.slow
def test_numbers_of_several_types_are_compared_by_value(engine: Callable[[pa.Table], Any]) -> None:
    holdout = pa.table({"x": pa.array([1.0, 2.5, 0.0], pa.float64()), "c": pa.array(["a", "b", None])})
    for dtype, values in (
        (pa.int32(), [1, 7]),
        (pa.float32(), [1.0, 7.5]),
        (pa.uint8(), [1, 2]),
        (pa.bool_(), [True, True]),
    ):
        train = pa.table({"x": pa.array(values, dtype), "c": pa.array(["a", "c"]).dictionary_encode()})
        with pytest.raises(OverlapError, match="1 of 3 holdout records"):
            check_parts_disjoint(part(engine(train), "train"), part(engine(holdout)))
        check_parts_disjoint(part(engine(train[1:]), "train"), part(engine(holdout)))


@pytest.mark.slow
def test_the_same_table_shares_all_records(engine: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(OverlapError, match="4 of 4 holdout records"):
        check_parts_disjoint(part(engine(TABLE), "train"), part(engine(TABLE.take([3, 1, 0, 2]))))
    check_parts_disjoint(part(engine(TABLE[:2]), "train"), part(engine(TABLE[2:])))


@pytest.mark.slow
def test_one_column_settles_only_what_is_not_shared(engine: Callable[[pa.Table], Any]) -> None:
    """Records with the same number, which tells all of them apart, are the same only if the rest is the same, too."""
    count = np.arange(50)
    train = pa.table({"k": count % 3, "id": count})
    for labels, shared in ((count % 3 + 1, 0), (np.where(count < 7, count % 3, 9), 7)):
        holdout = part(engine(pa.table({"k": labels, "id": count})))
        if shared:
            with pytest.raises(OverlapError, match=f"{shared} of 50"):
                check_parts_disjoint(part(engine(train), "train"), holdout)
        else:
            check_parts_disjoint(part(engine(train), "train"), holdout)
    check_parts_disjoint(part(engine(train), "train"), part(engine(pa.table({"k": count % 3, "id": count + 50}))))


def test_types_and_engines_that_cannot_be_compared_are_refused() -> None:
    one, other = pa.table({"a": [1, 2]}), pa.table({"a": ["1", "2"]})
    with pytest.raises(
        InputError, match=r"^train must be .*; got column 'a' of type String, beside Int64 in the holdout"
    ):
        check_parts_disjoint(part(in_polars(other), "train"), part(in_polars(one)))
    with pytest.raises(InputError, match="a frame of the holdout's engine"):
        check_parts_disjoint(part(in_duckdb(one), "train"), part(in_polars(one)))
    with (
        duckdb.connect() as connection,
        pytest.raises(InputError, match="a frame of the holdout's engine and connection"),
    ):
        check_parts_disjoint(part(connection.from_arrow(one), "train"), part(in_duckdb(one)))


def test_a_damaged_file_is_the_engines_failure(tmp_path: Path) -> None:
    file = tmp_path / "holdout.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).normal(size=50_000)}), file, compression="none")
    for frame in (pl.scan_parquet(file), duckdb.read_parquet(str(file))):
        damaged = part(frame)
        whole = file.read_bytes()
        file.write_bytes(whole[:4] + bytes(200_000) + whole[200_004:])
        with pytest.raises(EngineFailed, match="holdout"):
            part_identity(damaged)
        file.write_bytes(whole)
