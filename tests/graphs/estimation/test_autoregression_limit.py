"""The upper limit of an autoregression: exact near a unit root, where estimates and standard errors are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from graphs import ArgumentError
from graphs.estimation.autoregression import autoregression_limit
from tests.cases import for_each
from tests.sizes import corners, sized

Array = npt.NDArray[np.float64]


def drawn(phi: float, n: int, units: int, rng: np.random.Generator) -> Array:
    """Draw stationary series, one in each row."""
    noise = rng.standard_normal((units, n))
    values = np.empty((units, n))
    values[:, 0] = noise[:, 0] / math.sqrt(1 - phi**2)
    for t in range(1, n):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    return values


def plugged(values: Array) -> float:
    """Return the usual limit of 90 %: least squares, and 1.2816 standard errors."""
    later, earlier = values[1:] - values[1:].mean(), values[:-1] - values[:-1].mean()
    slope = float(later @ earlier) / float(earlier @ earlier)
    return slope + 1.2816 * math.sqrt(max(1 - slope**2, 0.0) / len(later))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("phi", "n", "units", "runs"),
    sized([(0.99, 300, 1), (0.9, 200, 1), (0.999, 3000, 1), (-0.9, 80, 1), (0.5, 6, 40)], 30, 180, 0, 4),
)
def test_limits_fail_as_seldom_as_stated(phi: float, n: int, units: int, runs: int) -> None:
    """Error rate 1e-9 by the binomial law, at a stated failure of 0.1."""
    rng = np.random.default_rng(round(1000 * abs(phi)) + n)
    index = None if units == 1 else np.repeat(np.arange(units), n)
    missed = sum(autoregression_limit(drawn(phi, n, units, rng).ravel(), index, 0.1) < abs(phi) for _ in range(runs))
    assert missed <= binom.isf(1e-9, runs, 0.1)


@pytest.mark.statistical
def test_the_usual_limit_fails_near_a_unit_root() -> None:
    """The side that must fail: at the same error rate the plug-in limit is rejected."""
    rng, runs = np.random.default_rng(8), 180
    missed = sum(plugged(drawn(0.99, 300, 1, rng)[0]) < 0.99 for _ in range(runs))
    assert missed > binom.isf(1e-9, runs, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("means", corners(["common", "own"], 0))
@for_each("phi", [0.7, -0.7])
def test_the_limit_is_the_largest_coefficient_that_dense_algebra_does_not_reject(phi: float, means: Any) -> None:
    """Coefficients above the limit are rejected by the same statistic, from explicit matrices and drawn normals."""
    from graphs.estimation import autoregression

    rng = np.random.default_rng(3)
    units, n, share = 40, 9, 0.1
    values = drawn(phi, n, units, rng) + 5.0
    limit = autoregression_limit(values.ravel(), np.repeat(np.arange(units), n), share, means=means)
    assert limit < 0.97
    sign = math.copysign(1.0, phi)

    # contrasts of the differences, by a complement of the means that is computed from scratch
    size = n - 1
    waves = np.cos(math.pi * np.outer(np.arange(size), np.arange(size) + 0.5) / size) * math.sqrt(2 / size)
    waves[0] /= math.sqrt(2)
    for coefficient, accepted in ((limit - 0.01, True), (limit + 0.01, False)):
        rows = (values[:, 1:] - sign * coefficient * values[:, :-1]) @ waves.T
        distance = 1 - coefficient
        count = units * (size - 1) + (2 * (units - 1) if means == "common" else 0)
        angles = math.pi * np.arange(size) / size
        angles = angles if sign > 0 else math.pi - angles
        near = 0.01 / count
        ends = np.r_[near * 1.25 ** np.arange(math.ceil(math.log(1 / near) / math.log(1.25))), 1.0]
        place = int(np.searchsorted(ends, distance))
        middle = math.sqrt(ends[place - 1] * ends[place])
        every = [np.tile(angles[1:], units)] + ([np.full(units - 1, angles[0])] if means == "common" else [])
        squares = [rows[:, 1:].ravel() ** 2]
        if means == "common":
            squares.append((np.linalg.svd(np.eye(units) - 1 / units)[0][:, :-1].T @ rows[:, 0]) ** 2)
        weights, start = autoregression._weights(np.concatenate(every), middle, share, count)
        if means == "common":
            first = values[:, 0] - values[:, 0].mean()
            weights = np.r_[weights, np.full(units - 1, start)]
            squares.append(np.full(units - 1, (1 - coefficient**2) * (first @ first) / (units - 1)))
        seen = weights @ np.concatenate(squares) / np.concatenate(squares).sum()
        null = rng.standard_normal((20000, count)) ** 2
        tail = np.mean(null @ weights <= seen * null.sum(axis=1))
        assert bool(tail > share) is accepted or abs(tail - share) < 0.01


def test_values_of_a_random_walk_do_not_exclude_a_unit_root() -> None:
    """The limit is 1, not a little less."""
    assert autoregression_limit(np.cumsum(np.random.default_rng(1).standard_normal(400))) == 1.0


def test_own_means_of_any_size_leave_the_limit_where_it_is() -> None:
    """A common mean would make them a coefficient near 1."""
    rng = np.random.default_rng(2)
    values, units = drawn(0.3, 12, 30, rng), np.repeat(np.arange(30), 12)
    shifted = values + 10.0 * rng.standard_normal((30, 1))
    first = autoregression_limit(values.ravel(), units, means="own")
    assert autoregression_limit(shifted.ravel(), units, means="own") == pytest.approx(first, abs=1e-6)
    assert autoregression_limit(shifted.ravel(), units) > 0.9


def test_units_are_found_in_any_order_and_by_their_labels() -> None:
    """Records of units may be mixed, as long as each unit's are in order of time."""
    values = drawn(0.5, 20, 4, np.random.default_rng(4))
    first = autoregression_limit(values.ravel(), np.repeat(list("abcd"), 20))
    assert autoregression_limit(values.T.ravel(), np.tile(list("abcd"), 20)) == pytest.approx(first, rel=1e-9)


def test_what_cannot_be_used_is_refused() -> None:
    """Too little beside the means, and choices that do not exist."""
    with pytest.raises(ArgumentError, match="differences beside the means"):
        autoregression_limit([0.1, 0.5, 0.2, 0.6], [0, 0, 1, 1], means="own")
    with pytest.raises(ArgumentError, match="means"):
        autoregression_limit([0.1, 0.5, 0.2, 0.6], means="each")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="units"):
        autoregression_limit([0.1, 0.5, 0.2, 0.6], [0, 0, 1])
