from __future__ import annotations

import pandas as pd
import pytest

from tests.thresholdout.guard.lazy_guards import ENGINES, Engine, data


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return data()


@pytest.fixture(params=ENGINES, ids=["polars", "duckdb"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found
