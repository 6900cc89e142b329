"""Predictions that are joined to the lazy frames of a guard."""

from __future__ import annotations

from pathlib import Path

import narwhals as nw
import pandas as pd
import pytest

from tests.cases import for_each
from tests.thresholdout.guard.lazy_guards import (
    DUCKDB,
    Engine,
    N,
    hit,
    lazy_guard,
    of_duckdb,
    of_polars,
)
from thresholdout import Thresholdout
from thresholdout.errors import InputError, InputTypeError


def test_predictions_that_arrive_later(engine: Engine, table: pd.DataFrame) -> None:
    guard = lazy_guard(engine, table.drop(columns=["good", "bad"]))
    guard.join(engine(table[["id", "good"]].sample(frac=1.0, random_state=0)), on="id")
    guard.join(engine(table[["id", "bad"]][100:]), on="id")
    known = lazy_guard(engine, table)
    found, expected = guard.score("good"), known.score("good")
    assert (found.value, found.interval) == (expected.value, expected.interval)
    worse = guard.score("bad", train_values=0.7)  # a hundred holdout records are without a prediction: wrong ones
    share = float((hit(table[:N], "bad") & (table.id[:N] >= 100)).mean())
    assert worse.interval[0] <= share <= worse.interval[1]
    assert guard.score("good").repeated
    with pytest.raises(InputError, match="more than once"):
        guard.join(engine(pd.concat([table[["id"]].assign(x=1.0)] * 2)), on="id")
    with pytest.raises(InputError, match="which the parts have"):
        guard.join(engine(table[["id", "p"]]), on="id")
    with pytest.raises(InputError, match=f"{N - 1} rows, for {N} records"):
        guard.join(engine(table[["id"]][: N - 1].assign(x=1.0)), on="id")
    with pytest.raises(InputError, match="no column 'nr'"):
        guard.join(engine(table[["id"]].assign(x=1.0)), on="nr")
    with pytest.raises(InputError, match="no column beside"):
        guard.join(engine(table[["id"]]), on="id")
    other = of_duckdb if engine is of_polars else of_polars
    with pytest.raises(InputTypeError, match="a lazy frame of the parts' engine"):
        guard.join(other(table[["id"]].assign(x=1.0)), on="id")


def test_other_predictions_of_one_name_are_other_queries(tmp_path: Path, table: pd.DataFrame) -> None:
    base, path = table.drop(columns=["good", "bad"]), tmp_path / "guard.db"
    for column, repeated in (("good", False), ("bad", False), ("good", True)):
        guard = lazy_guard(of_polars, base, ledger=path)
        guard.join(of_polars(table[["id"]].assign(pred=table[column])), on="id")
        assert guard.score("pred").repeated is repeated
        guard._ledger.close()


@for_each(
    ("here", "there"),
    [("VARCHAR", "INT"), ("BIGINT", "DECIMAL(9, 8)"), ("TIMESTAMP", "TIMESTAMP_NS"), ("INT", "DOUBLE")],
)
def test_a_join_cannot_fail_for_a_value(here: str, there: str) -> None:
    ids = {"VARCHAR": "x", "BIGINT": "1000", "TIMESTAMP": "2500-01-01", "INT": "1"}
    sure = {"VARCHAR": "1", "BIGINT": "1", "TIMESTAMP": "2020-01-01", "INT": "1"}
    messages = []
    for value in (ids[here], sure[here]):  # a cast to the other type would fail for the first alone
        guard = Thresholdout(DUCKDB.sql(f"SELECT '{value}'::{here} AS id, 1 AS y, k FROM range(50) AS t(k)"))
        with pytest.raises(InputError, match=r"Cast (one|it) where (its|the) frame is made") as found:
            guard.join(DUCKDB.sql(f"SELECT '{sure[here]}'::{there} AS id, 1 AS pred"), on="id")
        messages.append(str(found.value))
    assert messages[0] == messages[1]


@pytest.mark.slow
def test_integers_of_several_sizes_are_joined(table: pd.DataFrame) -> None:
    guard = lazy_guard(of_duckdb, table)
    guard.join(of_duckdb(table[["id"]].astype("int32").assign(more=table.good)), on="id")
    assert guard.score("more").value == lazy_guard(of_duckdb, table).score("good").value


def test_columns_that_changed_names_are_other_queries(engine: Engine, tmp_path: Path, table: pd.DataFrame) -> None:
    path = tmp_path / "guard.db"
    swapped = table.rename(columns={"good": "bad", "bad": "good"})
    later = table[["id", "good", "bad"]].rename(columns={"good": "one", "bad": "two"})
    for names, frame in ((["one", "two"], table), (["two", "one"], swapped)):
        guard = lazy_guard(engine, frame, ledger=path)
        guard.join(engine(later.set_axis(["id", *names], axis=1)), on="id")
        given = [
            guard.score("good", train_values=0.5),
            guard.ask(0.5, nw.col("good") == nw.col("y")),
            guard.score("one", train_values=0.5),
        ]
        assert not any(answer.repeated for answer in given)
        assert not guard.compare("good", "bad").answer.repeated
        guard._ledger.close()
