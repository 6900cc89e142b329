"""Sums of records' statistics: exact, bounded for every record, and as far apart for neighbours as is claimed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError
from thresholdout.privacy.learning.dpem import record_statistics
from thresholdout.privacy.learning.dpem.record_statistics import (
    COVARIANCE_TYPES,
    CovarianceType,
    MixtureParameters,
    check_records,
    noise_scales,
    on_grid,
    responsibilities,
    sensitivity,
    statistics_sum,
)

Floats = NDArray[np.float64]
EQUAL = (1 / 3, 1 / 3, 1 / 3)
DEFAULT = (0.25, 0.5, 0.25)
SHARES = [DEFAULT, EQUAL, (0.1, 0.8, 0.1), (0.05, 0.35, 0.6), (0.05, 0.7, 0.25), (0.01, 0.98, 0.01)]
STEP = 2.0**-18


def moved(first: Floats, second: Floats, d: int, kind: CovarianceType, shares: tuple[float, float, float]) -> float:
    """Return the distance of two sums over the noise on them, by a definition of its own.

    A matrix of second moments counts with all its entries, those off the diagonal twice.
    """
    weights = [shares[0]] + [shares[1]] * d
    if kind == "full":
        weights += [shares[2] * (1 if i == j else 2) for i in range(d) for j in range(i, d)]
    else:
        weights += [shares[2]] * (1 if kind == "spherical" else d)
    return math.sqrt(float((np.square(first - second) @ np.array(weights)).sum()))


def awkward(d: int, rng: np.random.Generator) -> Floats:
    """Return records of all sizes: zeros, tiny and huge ones, on the bound, and just above it."""
    X = rng.normal(size=(60, d))
    X[:20] *= np.exp(rng.uniform(-300, 300, (20, 1)))
    X[20:40] /= np.linalg.norm(X[20:40], axis=1)[:, None]
    X[30:40] *= 1 + rng.uniform(-4, 4, (10, 1)) * 2.0**-52
    X[40] = 0.0
    X[41] = 1e308
    X[42] = 5e-324
    return X


@for_each("d", [1, 3, 40])
@for_each("bound", [1.0, 3e-100, 7.3e99])
def test_rows_have_a_norm_of_at_most_one_exactly(d: int, bound: float) -> None:
    rows = on_grid(awkward(d, np.random.default_rng(d)) * (bound if bound < 1e90 else 1.0), bound)
    units = rows * 2**18
    assert (units == np.trunc(units)).all()
    for row in units:
        assert sum(int(value) ** 2 for value in row) <= 2**36
    large = on_grid(np.full((1, d), 1e200), bound)
    assert np.linalg.norm(large) > 1 - 2 * math.sqrt(d) * STEP  # and no shorter than the grid demands


def test_a_row_is_the_same_wherever_it_stands() -> None:
    X = awkward(5, np.random.default_rng(0))
    rows = on_grid(X, 2.0)
    for n in (1, 7, 33):
        np.testing.assert_array_equal(on_grid(X[-n:], 2.0), rows[-n:])


@for_each("kind", COVARIANCE_TYPES)
def test_probabilities_are_the_same_wherever_a_record_stands(kind: CovarianceType) -> None:
    """What the report of "add_remove" assumes of numpy, on the machine at hand."""
    rng = np.random.default_rng(1)
    rows = on_grid(rng.normal(size=(203, 3)), 3.0)
    covariances = {
        "spherical": np.full(4, 0.1),
        "diag": np.full((4, 3), 0.1),
        "full": np.tile(0.1 * np.eye(3), (4, 1, 1)),
    }
    mixture = MixtureParameters(np.full(4, 0.25), rng.normal(size=(4, 3)), covariances[kind] + 0.0)
    found = responsibilities(rows, mixture)
    for without in (0, 1, 50, 201):
        np.testing.assert_array_equal(
            responsibilities(np.delete(rows, without, axis=0), mixture), np.delete(found, without, axis=0)
        )


@for_each("kind", COVARIANCE_TYPES)
def test_sums_are_exact(kind: CovarianceType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_statistics, "_ROWS", 16)
    rng = np.random.default_rng(2)
    rows, shares = on_grid(rng.normal(size=(50, 3)), 1.5), rng.dirichlet(np.ones(2), 50)
    expected = [[Fraction(0)] * (4 + {"spherical": 1, "diag": 3, "full": 6}[kind]) for _ in range(2)]
    grid = 2**18
    for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
        y = [Fraction(value) for value in row]
        pairs = [(i, j) for i in range(3) for j in range(i, 3)]
        second = {
            "spherical": [sum((value * value for value in y), Fraction(0))],
            "diag": [value * value for value in y],
            "full": [y[i] * y[j] for i, j in pairs],
        }[kind]
        cut = [Fraction(math.trunc(value * grid), grid) for value in second]
        for k in range(2):
            r = Fraction(math.floor(Fraction(share[k]) * grid), grid)
            for f, value in enumerate([Fraction(1), *y, *cut]):
                expected[k][f] += r * value
    found = statistics_sum(rows, shares, kind)
    assert [[Fraction(value) for value in row] for row in found.tolist()] == expected


def pairs_of_records(d: int, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Return random pairs, and those that are likely to be worst: at angles, the same, along an axis or a diagonal."""
    units = rng.normal(size=(40, d))
    units /= np.linalg.norm(units, axis=1)[:, None]
    found = [(one, two) for one, two in zip(units[:10], units[10:20], strict=True)]
    for one in [units[0], np.eye(d)[0], np.ones(d) / math.sqrt(d)]:
        for cosine in (-1.0, -2 / 3, -1 / 6, -0.5, 0.0, 1.0):
            other = np.roll(one, 1) if d > 1 else -one
            other = other - (other @ one) * one
            length = np.linalg.norm(other)
            turned = other / length * math.sqrt(1 - cosine * cosine) if length > 1e-9 else 0 * one
            found.append((one, cosine * one + turned))
    return found


def largest(d: int, kind: CovarianceType, shares: tuple[float, float, float]) -> float:
    """Return the largest distance of the sums of one replaced record, over records and probabilities."""
    rng = np.random.default_rng(3)
    chances = [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.5, 0.5]), rng.dirichlet([1, 1])]
    found = 0.0
    for one, two in pairs_of_records(d, rng):
        sums = [[statistics_sum(on_grid(x[None], 1.0), r[None], kind) for r in chances] for x in (one, two)]
        found = max(found, *(moved(a, b, d, kind, shares) for a, b in product(*sums)))
    return found


@for_each("kind", COVARIANCE_TYPES)
@pytest.mark.parametrize("shares", corners([pytest.param(shares) for shares in SHARES], 0))
def test_a_replaced_record_moves_sums_by_the_sensitivity_at_most(
    kind: CovarianceType, shares: tuple[float, float, float]
) -> None:
    for d in (1, 2, 4):
        claimed, found = sensitivity(d, kind, shares, "replace_one"), largest(d, kind, shares)
        assert found <= claimed
        if (kind != "diag" and d > 1) or shares == DEFAULT:
            assert found > 0.999 * claimed  # and it is attained
        if shares == DEFAULT:
            assert claimed == pytest.approx(math.sqrt(2), rel=1e-4)


def test_the_broken_twin_charges_a_replaced_record_as_one_more_or_less() -> None:
    for shares in SHARES:
        assert largest(2, "full", shares) > 1.4 * sensitivity(2, "full", shares, "add_remove")


def test_the_root_of_two_is_no_law() -> None:
    """Shares for which statistics of records of one component point away from each other need more."""
    assert largest(2, "full", (0.01, 0.98, 0.01)) > 1.39 * math.sqrt(2)


@for_each("kind", COVARIANCE_TYPES)
def test_one_record_more_moves_sums_by_one_at_most(kind: CovarianceType) -> None:
    rng = np.random.default_rng(4)
    others = on_grid(rng.normal(size=(200, 3)), 2.0)
    chances = rng.dirichlet(np.ones(2), 201)
    for record in [*rng.normal(size=(20, 3)), np.eye(3)[0]]:
        chances[77] = [1.0, 0.0]
        all_rows = np.insert(others, 77, on_grid(record[None] / np.linalg.norm(record), 1.0), axis=0)
        with_it = statistics_sum(all_rows, chances, kind)
        without = statistics_sum(others, np.delete(chances, 77, axis=0), kind)
        found = moved(with_it, without, 3, kind, DEFAULT)
        assert found <= sensitivity(3, kind, DEFAULT, "add_remove")
    assert found > 0.9999  # attained along an axis, the last one here


def test_noise_is_in_proportion_to_what_shares_leave() -> None:
    scales = noise_scales(2, "full", DEFAULT)
    np.testing.assert_allclose(scales, [2, 2**0.5, 2**0.5, 2, 2**0.5, 2], rtol=1e-15)
    half = np.array([[0.6, 0.8]])
    statistics = statistics_sum(on_grid(half, 1.0), np.ones((1, 1)), "full")[0] / scales
    assert np.linalg.norm(statistics) == pytest.approx(1.0, abs=1e-4)


def test_more_records_than_sums_are_exact_for_are_refused() -> None:
    check_records(2**26)
    with pytest.raises(InputError, match="at most"):
        check_records(2**26 + 1)


def test_more_coordinates_than_norms_are_bounded_for_are_refused() -> None:
    with pytest.raises(InputError, match="X must be a table of at most 2097152 features; got 2097153 features"):
        on_grid(np.broadcast_to(0.0, (1, 2**21 + 1)), 1.0)
