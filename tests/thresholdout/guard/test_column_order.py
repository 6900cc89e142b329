"""Records of lazy frames in order of time: a column of times says which are independent, and sums need no order."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

from tests.sizes import corners
from tests.thresholdout.guard.lazy_guards import Column, Engine, N, hit, lazy_guard, of_polars
from thresholdout import Thresholdout, TimeOrder
from thresholdout.errors import InputError


@pytest.fixture(scope="module")
def table(table: pd.DataFrame) -> pd.DataFrame:
    """Three records for each day, those of the training part before the others."""
    day = np.concatenate([1000 + np.arange(N) // 3, np.arange(N) // 3])
    moment = pd.Timestamp("2026-01-01") + pd.to_timedelta(day, unit="D")
    return table.assign(day=day, moment=moment)


@pytest.mark.parametrize(("by", "window"), corners([("day", 2), ("moment", pd.Timedelta(days=2))], 1))
def test_answers_are_those_of_arrays(engine: Engine, table: pd.DataFrame, by: str, window: Any) -> None:
    order, rng = TimeOrder(by, window=window), np.random.default_rng(7)
    mixed = pd.concat([table[:N].iloc[rng.permutation(N)], table[N:].iloc[rng.permutation(N)]])
    lazy = lazy_guard(engine, mixed, dependence=order)
    top, rest = table[:N], table[N:]
    eager = Thresholdout((top, top.y), train=(rest, rest.y), random_state=3, dependence=order)
    assert lazy.dependence.fingerprint() == eager.dependence.fingerprint()
    assert repr(lazy.certificate) == repr(eager.certificate)
    found, expected = lazy.score("good", "f1"), eager.score(Column("good"), "f1", cv="training")
    assert (found.value, found.interval) == (expected.value, expected.interval)
    for name in ("good", "bad"):
        found = lazy.ask(nw.col(name) == nw.col("y"))
        expected = eager.ask(hit(rest, name), hit(top, name))
        assert found.interval[0] <= float(hit(top, name).mean()) <= found.interval[1]
        assert found.interval[0] <= expected.interval[0]  # which has bets on blocks, that lazy frames have none of
        assert found.interval[1] >= expected.interval[1]
    plain = lazy_guard(engine, table)
    assert lazy.score("bad").half_width > plain.score("bad").half_width


def test_times_that_cannot_be_used_are_refused(table: pd.DataFrame) -> None:
    order = TimeOrder("day", window=2)
    for spoiled, message in (
        (
            table.assign(day=table.day.where(table.day != 1005)),
            "3 records of the holdout part without a value of 'day'",
        ),
        (table.assign(day=table.day.astype(str)), "by must be .*; got column 'day' of type String"),
        (table.assign(day=np.arange(2 * N) % N), "training records between those of the holdout"),
    ):
        with pytest.raises(InputError, match=message):
            lazy_guard(of_polars, spoiled, dependence=order)
