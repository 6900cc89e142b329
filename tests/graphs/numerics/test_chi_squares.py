"""Tails of weighted means of squares, against laws with closed forms."""

from __future__ import annotations

import math

import mpmath
import numpy as np
from scipy.stats import beta

from graphs.estimation.fitted_values import ratio_tail
from tests.cases import for_each


@for_each(("zeros", "ones"), [(2, 2), (10, 7), (3, 60), (400, 300)])
@for_each("level", [1e-6, 0.01, 0.3, 0.9])
def test_a_share_of_a_sum_of_squares_is_a_beta_variable(zeros: int, ones: int, level: float) -> None:
    """The expected value comes from the beta distribution; the bound is never below it, and close."""
    law = beta(ones / 2, zeros / 2)
    at = float(law.ppf(level))
    found = ratio_tail(np.array([0.0, 1.0]), np.array([zeros, ones]), at)
    slack = 1e-12 if zeros + ones >= 17 else 1e-4
    assert law.cdf(at) * (1 - 1e-9) <= found <= law.cdf(at) * (1 + 1e-9) + slack


def anderson(count: int, at: float) -> float:
    """P(circular serial correlation <= at) of an odd number of normal values less their mean [Anderson 1942]."""
    with mpmath.workdps(60):
        half = (count - 1) // 2
        roots = [mpmath.cos(2 * mpmath.pi * k / count) for k in range(1, half + 1)]
        above = mpmath.mpf(0)
        for i, root in enumerate(roots):
            if root > at:
                others = mpmath.mpf(1)
                for j, other in enumerate(roots):
                    if j != i:
                        others *= root - other
                above += (root - at) ** (half - 1) / others
        return float(1 - above)


@for_each("count", [7, 21, 61])
@for_each("at", [-0.5, -0.2, 0.0, 0.25])
def test_serial_correlations_have_the_law_that_anderson_derived(count: int, at: float) -> None:
    """Exact, in high precision."""
    weights = np.cos(2 * math.pi * np.arange(1, (count - 1) // 2 + 1) / count)
    expected = anderson(count, at)
    found = ratio_tail(weights, np.full(len(weights), 2), at)
    assert expected - 1e-15 <= found <= expected + (1e-12 if count > 7 else 1e-5)


def test_what_is_sure_is_one_or_zero() -> None:
    """Weights all on one side."""
    counts = np.array([1, 1])
    assert ratio_tail(np.array([0.2, 0.5]), counts, 0.2) == 0.0
    assert ratio_tail(np.array([0.2, 0.5]), counts, 0.5) == 1.0
    assert ratio_tail(np.array([0.5, 0.5]), counts, 0.5) == 1.0


def test_a_coarse_bound_lies_above_a_fine_one() -> None:
    """By at most what was allowed."""
    weights, counts = np.linspace(0.1, 1.0, 9), np.full(9, 3)
    fine = ratio_tail(weights, counts, 0.4)
    assert fine <= ratio_tail(weights, counts, 0.4, 1e-6) <= fine + 1e-6
