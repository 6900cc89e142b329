"""The same table as lazy frames of several engines."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import duckdb
import polars as pl

__all__ = ["ENGINES", "Make"]

Make = Callable[[Mapping[str, Any]], object]


def polars_frame(columns: Mapping[str, Any]) -> object:
    return pl.LazyFrame(columns)


def duckdb_frame(columns: Mapping[str, Any]) -> object:
    return duckdb.connect().from_arrow(pl.DataFrame(columns).to_arrow())


ENGINES: Final[dict[str, Make]] = {"polars": polars_frame, "duckdb": duckdb_frame}
