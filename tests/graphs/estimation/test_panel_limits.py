"""Limits of a panel: the bound over all coefficients against dense algebra, and repeated samples."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, f

from graphs import ArgumentError
from graphs.estimation.variance_ratios import _largest_ratio, panel_limits
from tests.cases import for_each
from tests.sizes import sizes

Array = npt.NDArray[np.float64]


def drawn(units: int, length: int, phi: float, share: float, rng: np.random.Generator) -> Array:
    """Draw effects and stationary series, one unit in each row."""
    noise = rng.standard_normal((units, length))
    series = noise.copy()
    for t in range(1, length):
        series[:, t] = phi * series[:, t - 1] + math.sqrt(1 - phi**2) * noise[:, t]
    found: Array = math.sqrt(share) * rng.standard_normal((units, 1)) + math.sqrt(1 - share) * series + 7.0
    return found


def ratio_at(table: Array, phi: float, share: float) -> float:
    """Return the ratio of variances that the F test of generalised least squares does not reject."""
    units, length = table.shape
    inverse = np.linalg.inv(phi ** np.abs(np.subtract.outer(np.arange(length), np.arange(length))))
    variance = 1 / inverse.sum()
    means = table @ inverse.sum(axis=1) * variance
    rest = table - means[:, None]
    within = np.einsum("ij,jk,ik->", rest, inverse, rest) / (units * (length - 1))
    between = ((means - means.mean()) ** 2).sum() / (units - 1)
    return float(between / within / f.ppf(share, units - 1, units * (length - 1)) - variance)


@pytest.mark.slow
@for_each(("length", "phi", "share"), [(3, 0.5, 0.2), (6, -0.4, 0.3), (20, 0.8, 0.0)])
@for_each("most", [0.05, 0.5, 0.95])
def test_the_bound_is_the_largest_ratio_over_all_coefficients(
    length: int, phi: float, share: float, most: float
) -> None:
    """Never below a fine grid, and above it by little."""
    table = drawn(12, length, phi, share, np.random.default_rng(length))
    table -= table.mean()
    grid = max(ratio_at(table, x, 0.01) for x in np.linspace(-most, most, 801)[1:-1:2])
    found = _largest_ratio(table, most, 0.01)
    assert grid <= found <= grid + 0.01 * (1 + abs(grid))


@pytest.mark.statistical
@pytest.mark.parametrize("share", [0.0, 0.5])
@sizes("runs", 24, 200)
def test_limits_fail_as_seldom_as_stated(share: float, runs: int) -> None:
    """Error rate 1e-9 by the binomial law at a stated failure of 0.1; half of the limits would fail."""
    rng, missed, halves = np.random.default_rng(6), 0, 0
    units = np.repeat(np.arange(30), 8)
    for _ in range(runs):
        found, coefficient = panel_limits(drawn(30, 8, 0.5, share, rng).ravel(), units, 0.1)
        missed += found < share or coefficient < 0.5
        halves += found / 2 < share or coefficient / 2 < 0.5
    most = binom.isf(1e-9, runs, 0.1)
    assert missed <= most < halves


def test_what_cannot_be_used_is_refused() -> None:
    """Units of different lengths, too short, or only one."""
    values = np.random.default_rng(0).standard_normal(12)
    for units in (np.repeat(np.arange(6), 2), np.zeros(12), np.repeat([0, 1], [5, 7])):
        with pytest.raises(ArgumentError, match="units"):
            panel_limits(values, units)
