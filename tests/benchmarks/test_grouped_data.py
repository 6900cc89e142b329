"""The clustered interval of the benchmark is that of statsmodels."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.grouped_data import clustered


@pytest.mark.parametrize("size", [1, 4, 40])
def test_the_clustered_interval_is_that_of_statsmodels(size: int) -> None:
    from statsmodels.api import OLS

    rng = np.random.default_rng(size)
    values = (rng.random((30, size)) < rng.random((30, 1))).astype(float)
    fit = OLS(values.ravel(), np.ones((values.size, 1))).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(30), size)}, use_t=True
    )
    middle, half = clustered(values)
    assert (middle - half, middle + half) == pytest.approx(tuple(fit.conf_int()[0]), rel=1e-9)
