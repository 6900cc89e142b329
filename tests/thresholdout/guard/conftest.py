from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pytest

if TYPE_CHECKING:
    from tests.thresholdout.guard.lazy_guards import Engine

# The engines are imported where they are used: the oldest libraries have none.


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    from tests.thresholdout.guard.lazy_guards import data

    return data()


@pytest.fixture(params=["polars", pytest.param("duckdb", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """One engine by default: what they compute differently is in the tests of `LazyPart`."""
    from tests.thresholdout.guard.lazy_guards import ENGINES

    found: Engine = ENGINES[["polars", "duckdb"].index(request.param)]
    return found
