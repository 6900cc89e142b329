"""The same table as lazy frames of several engines."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import duckdb
import polars as pl

__all__ = ["ENGINES", "Columns", "Make"]

Columns: TypeAlias = Mapping[str, Any] | pl.DataFrame
Make: TypeAlias = Callable[[Columns], object]


def polars_frame(columns: Columns) -> object:
    return pl.DataFrame(columns).lazy()


def duckdb_frame(columns: Columns) -> object:
    return duckdb.connect().from_arrow(pl.DataFrame(columns).to_arrow())


ENGINES: Final[dict[str, Make]] = {"polars": polars_frame, "duckdb": duckdb_frame}
