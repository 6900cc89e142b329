"""Guards of lazy frames, and the same guards of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl

from thresholdout import Thresholdout

N = 1500


def data(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=2 * N)
    good, bad = (np.where(rng.random(2 * N) < share, y, 1 - y) for share in (0.9, 0.8))
    p = np.clip(0.6 * y + 0.4 * rng.random(2 * N), 0.0, 1.0)
    return pd.DataFrame({"id": np.arange(2 * N), "g": np.arange(2 * N) // 5, "y": y, "good": good, "bad": bad, "p": p})


def of_polars(frame: pd.DataFrame) -> Any:
    return pl.from_pandas(frame).lazy()


DUCKDB = duckdb.connect()


def of_duckdb(frame: pd.DataFrame) -> Any:
    return DUCKDB.from_df(frame)


ENGINES = [of_polars, of_duckdb]
Engine = Callable[[pd.DataFrame], Any]


def lazy_guard(engine: Engine, table: pd.DataFrame, **declared: Any) -> Thresholdout:
    declared = {"random_state": 3, **declared}
    return Thresholdout((engine(table[:N]), "y"), train=(engine(table[N:]), "y"), **declared)


def array_guard(table: pd.DataFrame, **declared: Any) -> Thresholdout:
    return Thresholdout(table[:N], train=table[N:], **{"random_state": 3, **declared})


class Column:
    """A model that says what stands in a column."""

    classes_ = np.array([0, 1])

    def __init__(self, name: str) -> None:
        self.name = name

    def predict(self, X: pd.DataFrame) -> Any:
        return X[self.name].to_numpy()


def hit(table: pd.DataFrame, name: str) -> Any:
    return (table[name] == table.y).to_numpy()


def guards(engine: Engine, table: pd.DataFrame, **declared: Any) -> tuple[Thresholdout, Thresholdout]:
    """Return a guard of lazy frames, and one of the same records in memory."""
    top, rest = table[:N], table[N:]
    return lazy_guard(engine, table, **declared), Thresholdout(
        (top, top.y), train=(rest, rest.y), random_state=3, **declared
    )


def shown(answer: Any) -> tuple[Any, ...]:
    """Return the parts of an answer that both guards share."""
    return answer.value, answer.interval, answer.source, answer.name, answer.estimand
