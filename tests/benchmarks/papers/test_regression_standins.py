"""The forms of the stand-ins for public regression sets."""

import numpy as np
import pytest

from benchmarks.papers.regression_standins import make_linear_standin, make_naval_standin, make_wine_standin


def test_forms() -> None:
    for (X, y), shape in (
        (make_naval_standin(), (11934, 16)),
        (make_wine_standin(), (1599, 11)),
        (make_linear_standin(), (20_000, 5)),
    ):
        assert X.shape == shape
        assert y.shape == shape[:1]
        assert np.isfinite(y).all()
    X, y = make_linear_standin(20_000, 3)
    residual = np.linalg.lstsq(X, y, rcond=None)[1]
    assert residual[0] / 20_000 == pytest.approx(0.25, rel=0.05)
    np.testing.assert_array_equal(make_wine_standin(50, 2)[1], make_wine_standin(50, 2)[1])
    assert (make_wine_standin(50, 2)[1] != make_wine_standin(50, 3)[1]).any()
