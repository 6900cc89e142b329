"""The upper limit of a spatial range: the order that it rests on, and repeated samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from graphs import ArgumentError
from graphs.estimation.spatial_range import range_limit
from tests.cases import for_each
from tests.sizes import sizes


@for_each("dimensions", [1, 2, 3, 5])
def test_contrasts_have_covariances_that_grow_with_the_range(dimensions: int) -> None:
    """l (exp(-d/l) - 1) increases in the order of quadratic forms up to -d; the kernel itself does not."""
    rng = np.random.default_rng(dimensions)
    places = rng.standard_normal((25, dimensions))
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    project = np.eye(25) - 1 / 25
    lengths = [0.01, 0.1, 0.5, 1.0, 1.3, 4.0, 50.0]
    forms = [project @ (length * np.expm1(-distances / length)) @ project for length in lengths]
    forms.append(-project @ distances @ project)
    for smaller, larger in itertools.pairwise(forms):
        assert np.linalg.eigvalsh(larger - smaller)[0] > -1e-12
    plain = [project @ np.exp(-distances / length) @ project for length in (0.5, 1.0)]
    assert np.linalg.eigvalsh(plain[1] - plain[0])[0] < -0.1


@pytest.mark.statistical
@sizes("runs", 25, 150)
def test_limits_fail_as_seldom_as_stated(runs: int) -> None:
    """Error rate 1e-9 by the binomial law, at a stated failure of 0.1; half of the range would fail."""
    rng, length, missed, halves = np.random.default_rng(2), 0.05, 0, 0
    for _ in range(runs):
        places = rng.random((40, 2))
        distances = np.linalg.norm(places[:, None] - places, axis=2)
        values = np.linalg.cholesky(np.exp(-distances / length)) @ rng.standard_normal(40)
        limit = range_limit(values, places, 0.1)
        missed += limit < length
        halves += limit > 2 * length
    assert missed <= binom.isf(1e-9, runs, 0.1)
    assert halves >= 1  # a limit, not the range itself


@pytest.mark.slow
def test_times_of_an_autoregression_have_the_range_of_its_coefficient() -> None:
    """exp(-1/l) is the coefficient: the limit for equal times is near that for the series."""
    from graphs.estimation.autoregression import autoregression_limit

    rng = np.random.default_rng(5)
    values = np.zeros(160)
    for t in range(1, 160):
        values[t] = 0.6 * values[t - 1] + rng.standard_normal()
    found = math.exp(-1 / range_limit(values, np.arange(160.0)))
    assert found == pytest.approx(autoregression_limit(values), abs=0.03)


def test_values_like_a_sheet_exclude_no_range() -> None:
    """Infinite, not large."""
    places = np.random.default_rng(1).random((40, 2))
    values = places.sum(axis=1) + 0.01 * places[:, 0] ** 2
    assert range_limit(values, places) == math.inf


def test_what_cannot_be_used_is_refused() -> None:
    """Coordinates that repeat, are missing, or do not match."""
    values = [0.1, 0.5, 0.2, 0.6]
    for places in ([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0, math.nan], [[[0.0]]] * 4):
        with pytest.raises(ArgumentError, match="coordinates"):
            range_limit(values, places)


def test_distances_whose_squares_overflow_are_refused() -> None:
    """Not divided by."""
    with pytest.raises(ArgumentError, match=r"coordinates must be .*; got a distance of"):
        range_limit([0.1, 0.5, 0.2, 0.9], [0.0, 1e200, 2e200, 5e200])
