"""Guards of lazy frames whose engine fails, or whose records are not as declared: free, or charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.cases import for_each
from tests.thresholdout.guard.lazy_guards import DUCKDB, Engine, N, lazy_guard, of_polars
from thresholdout import Claims, Thresholdout
from thresholdout.data.parts.lazy_part import LazyPart
from thresholdout.errors import EngineFailed, InputError, LedgerMismatch


def files(folder: Path, table: pd.DataFrame) -> tuple[Path, Path]:
    paths = folder / "holdout.parquet", folder / "train.parquet"
    for path, part in zip(paths, (table[:N], table[N:]), strict=True):
        part.to_parquet(path)
    return paths


SCANS: list[Callable[[Path], Any]] = [pl.scan_parquet, lambda path: DUCKDB.read_parquet(str(path))]


@for_each("scan", SCANS, ids=["polars", "duckdb"])
def test_a_query_that_dies_in_the_engine_is_free_and_costs_once(
    tmp_path: Path, table: pd.DataFrame, scan: Callable[[Path], Any]
) -> None:
    holdout, train = files(tmp_path, table)
    guard = Thresholdout((scan(holdout), "y"), train=(scan(train), "y"), random_state=0)
    risk, content = guard.status.error_budget_left, holdout.read_bytes()
    holdout.unlink()
    right = nw.col("good") == nw.col("y")
    for ask in (
        lambda: guard.ask(right, key="k"),
        lambda: guard.score("good"),
        lambda: guard.compare("good", "bad"),
        lambda: guard.ask_all([(right, right)]),
        lambda: guard.final_check("good"),
    ):
        with pytest.raises(EngineFailed, match="holdout"):
            ask()
    assert (len(guard.history), guard.status.error_budget_left) == (0, risk)
    holdout.write_bytes(content[:100])
    with pytest.raises(EngineFailed):
        guard.ask(right, key="k")
    holdout.write_bytes(content)
    first = guard.ask(right, key="k")
    assert guard.ask(right, key="k").repeated
    assert len(guard.history) == 1
    assert first.source == "train"


def test_files_that_changed_are_seen_by_their_number_of_records_and_their_columns(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    holdout, train = files(tmp_path, table)
    guard = Thresholdout((SCANS[1](holdout), "y"), train=(SCANS[1](train), "y"), random_state=0)
    for changed in (table[: N - 1], table[:N].rename(columns={"good": "other"})):
        changed.to_parquet(holdout)
        with pytest.raises(EngineFailed):
            guard.score("good")
    assert guard.history.empty


@pytest.mark.slow
@for_each("scan", SCANS, ids=["polars", "duckdb"])
def test_values_that_changed_are_seen_when_a_guard_is_opened_again(
    tmp_path: Path, table: pd.DataFrame, scan: Callable[[Path], Any]
) -> None:
    holdout, train = files(tmp_path, table)
    ledger = tmp_path / "guard.db"
    for _ in range(2):
        Thresholdout(scan(holdout), train=scan(train), ledger=ledger)._ledger.close()
    table[:N].assign(y=table.y.where(table.id != 3, 1 - table.y)).to_parquet(holdout)
    with pytest.raises(LedgerMismatch, match="another holdout"):
        Thresholdout(scan(holdout), train=scan(train), ledger=ledger)


def test_an_interrupted_scan_is_free(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = lazy_guard(of_polars, table)
    risk, part = guard.status.error_budget_left, type(guard._records.part)  # type: ignore[attr-defined]
    before = part.totals_of

    def stopped(self: Any, *given: Any, **named: Any) -> Any:
        if self.name == "holdout":
            raise KeyboardInterrupt
        return before(self, *given, **named)

    monkeypatch.setattr(part, "totals_of", stopped)
    with pytest.raises(KeyboardInterrupt):
        guard.score("good")
    assert (len(guard.history), guard.status.error_budget_left) == (0, risk)


def test_a_second_pass_that_fails_is_charged(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only values out of range need one, so a failure of it alone tells something of the records."""
    guard = lazy_guard(of_polars, table.assign(v=np.where(np.arange(2 * N) < N, 3.0, 0.5)))
    part, before = type(guard._records.part), LazyPart._summed  # type: ignore[attr-defined]

    def summed(self: Any, asked: Any) -> Any:
        if self.name == "holdout" and any(one.careful for one in asked):
            raise EngineFailed(self.name, "a worker is gone")
        return before(self, asked)

    monkeypatch.setattr(part, "_summed", summed)
    for _ in range(2):
        with pytest.raises(InputError, match="charged"):
            guard.ask("v", binary=False)
    assert guard.history["source"].tolist() == ["failed"]
    monkeypatch.undo()
    assert guard.ask("p").source == "train"


def test_what_a_frame_computes_fails_before_there_is_a_guard(tmp_path: Path, table: pd.DataFrame) -> None:
    """A column that cannot be computed for one label would tell that label when it is asked about."""
    failing = table[:N].assign(y=table.y[:N].astype(str).where(table.id != 7, "no label"))
    frame = of_polars(failing).with_columns(pl.col("y").cast(pl.Int64))
    with pytest.raises(EngineFailed):
        Thresholdout(frame, train=of_polars(table[N:]), ledger=tmp_path / "guard.db")
    assert not (tmp_path / "guard.db").exists()


def test_values_that_should_be_ends_and_are_not_are_charged(engine: Engine, table: pd.DataFrame) -> None:
    """Whether they are is a function of the records, so it is paid for like a failure on arrays."""
    changed = table.assign(v=np.where(np.arange(2 * N) == 7, 0.5, 1.0))
    guard = lazy_guard(engine, changed)
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask("v")
    assert guard.history["source"].tolist() == ["failed"]
    with pytest.raises(InputError, match="binary"):
        guard.ask("p", binary=True)
    assert len(guard.history) == 1
    assert guard.ask("v", binary=False).value == pytest.approx(1.0, abs=0.02)


def test_what_is_missing_or_out_of_range_counts_as_an_end(engine: Engine, table: pd.DataFrame) -> None:
    values = np.full(2 * N, 0.5)
    values[:300], values[300:600], values[600:900] = np.nan, 7.0, -np.inf
    guard = lazy_guard(engine, table.assign(v=values), mechanism=Claims(noise=0.0))
    answer = guard.ask(0.5, "v")
    assert answer.interval[0] <= (300 * 1.0 + 600 * 0.5) / N <= answer.interval[1]
    # of 1500 records 300 are missing (0), 300 above (1), 300 below (0), 600 are 1/2
    only = guard.ask(0.2, nw.col("v") > 1.0)
    assert only.interval[0] <= 300 / N <= only.interval[1]
    with pytest.raises(InputError, match="train_values"):
        lazy_guard(engine, table.assign(v=values[::-1].copy())).ask("v")


def test_a_second_pass_that_fails_in_a_list_is_charged_once(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, once = lazy_guard(of_polars, table), LazyPart._summed

    def summed(part: LazyPart, asked: Any) -> Any:
        if part.name == "holdout" and any(one.careful for one in asked):
            raise EngineFailed(part.name, "no memory")
        return once(part, asked)

    monkeypatch.setattr(LazyPart, "_summed", summed)
    spoiled = nw.col("p") + 0.5  # out of range on some records
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask_all([(0.5, nw.col("good") == 1), (0.5, spoiled)])
    assert len(guard.history) == 1


def test_groups_that_have_other_sizes_than_before_are_seen(tmp_path: Path, table: pd.DataFrame) -> None:
    """A limit is for the sizes that were declared: nothing is answered for others, and nothing is charged."""
    holdout, train = files(tmp_path, table)
    guard = Thresholdout((SCANS[1](holdout), "y"), train=(SCANS[1](train), "y"), groups="g", random_state=0)
    table[:N].assign(g=np.arange(N) // 6).to_parquet(holdout)
    with pytest.raises(EngineFailed, match="of other sizes"):
        guard.score("good")
    assert guard.history.empty
