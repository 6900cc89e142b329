"""Sign flips against the enumeration of all signs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout.limits.sign_flips import log_flip_tail


def enumerated(totals: NDArray[np.float64]) -> float:
    sums = [float(np.dot(signs, np.abs(totals))) for signs in product((-1.0, 1.0), repeat=totals.size)]
    return float(np.mean(np.array(sums) >= totals.sum() - 1e-9))


@for_each("seed", range(20))
def test_whole_totals_are_the_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    totals = rng.integers(-4, 5, size=11).astype(float)
    assert math.exp(log_flip_tail(totals)) == pytest.approx(enumerated(totals), rel=2e-9)


@for_each("seed", range(10))
def test_other_totals_are_near_it(seed: int) -> None:
    totals = np.random.default_rng(seed).normal(0.3, 1.0, size=12)
    assert math.exp(log_flip_tail(totals)) == pytest.approx(enumerated(totals), abs=0.02)


@for_each("sizes", [[1.0, 1, 1, 1, 1], [1.0, 2, 3, 4], [0.3, 1.7, 2.2, 0.9, 5.1], [1.0, math.pi, 2.5]])
def test_the_level_is_kept_for_symmetric_totals(sizes: list[float]) -> None:
    """Over all signs, tails of at most w have probability at most w."""
    tails = [math.exp(log_flip_tail(np.array(sizes) * signs)) for signs in product((-1.0, 1.0), repeat=len(sizes))]
    for tail in tails:
        assert np.mean(np.array(tails) <= tail + 1e-12) <= tail * (1 + 1e-8)


def test_the_twin_without_ties_exceeds_it() -> None:
    """The probability of more than what is seen is no p-value."""
    sizes = np.ones(5)
    sums = np.array([float(np.dot(signs, sizes)) for signs in product((-1.0, 1.0), repeat=5)])
    tails = np.array([np.mean(sums > each) for each in sums])
    assert any(np.mean(tails <= tail) > tail for tail in tails)


def test_equal_totals_are_the_sign_test_for_many() -> None:
    from scipy.stats import binom

    totals = np.repeat([1.0, -1.0], [2600, 2400])
    assert math.exp(log_flip_tail(totals)) == pytest.approx(float(binom.sf(2599, 5000, 0.5)), rel=1e-8)


def test_far_tails_are_bounded_where_probability_was_cut() -> None:
    assert log_flip_tail(np.ones(2000)) < math.log(1e-22)
    assert log_flip_tail(np.ones(2000)) >= -2000 * math.log(2.0)


def test_nothing_that_differs_is_no_evidence() -> None:
    assert log_flip_tail(np.zeros(10)) == 0.0
    assert log_flip_tail(np.zeros(0)) == 0.0
