"""The law of the largest error: closed forms, mpmath twins, worked values, and an analyst who attains it."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from thresholdout.certificates.problem import LargestError, surprise_tail
from thresholdout.mechanisms import NoiseRatios


def exact_tail(v: mpmath.mpf, a: float, b: float) -> mpmath.mpf:
    """P(Lap(a) + Lap(b) > v), by integrating over the second."""
    a, b = mpmath.mpf(a), mpmath.mpf(b)

    def above(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-x / a) / 2 if x > 0 else 1 - mpmath.exp(x / a) / 2

    scale = max(a, b)
    points = sorted({-60 * scale, -5 * b, 0, v, v + 5 * scale, v + 60 * scale})
    return mpmath.quad(lambda w: above(v - w) * mpmath.exp(-abs(w) / b) / (2 * b), points)


def exact_error_tail(x: mpmath.mpf, budget: int, threshold: float, grid: float) -> mpmath.mpf:
    """P(M > x) for the default ratios, from the closed forms, in high precision."""
    v, y = x - threshold, x - mpmath.mpf(grid) / 2
    surprise = (4 * mpmath.exp(-v / 2) - mpmath.exp(-v)) / 6 if v > 0 else mpmath.mpf(1)
    answer = mpmath.exp(-y / 4) if y > 0 else mpmath.mpf(1)
    return 1 - (1 - surprise) ** budget * (1 - answer) ** budget


@pytest.mark.slow
@for_each(("a", "b"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (1.0, 1.0 + 1e-9), (0.1, 5.0)])
def test_surprise_tail_in_high_precision(a: float, b: float) -> None:
    for v in (0.01, 1.0, 6.0, 30.0):
        with mpmath.workdps(20):
            exact = float(exact_tail(mpmath.mpf(v), a, b))
        assert float(surprise_tail(np.array([v]), a, b)[0]) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
@for_each(
    ("budget", "beta", "threshold", "grid"),
    [
        (1, 0.05, 18.859075, 0.0),
        (10, 0.05, 21.0, 0.0),
        (1, 0.05, 0.0, 0.0),
        (3, 1e-6, 5.0, 40.0),
        (1000, 0.2, 1e4, 1.0),
        (10**5, 1e-12, 100.0, 0.0),
    ],
)
def test_quantile_and_superquantile_in_high_precision(budget: int, beta: float, threshold: float, grid: float) -> None:
    law = LargestError(budget)
    with mpmath.workdps(40):
        quantile = law.quantile(beta, threshold, grid)
        assert exact_error_tail(mpmath.mpf(quantile), budget, threshold, grid) <= beta
        assert exact_error_tail(mpmath.mpf(quantile) * (1 - mpmath.mpf(10) ** -9), budget, threshold, grid) > beta
        pieces = [quantile + step for step in (0, 5, 20, 60, 150, 400)]
        excess = mpmath.quad(lambda x: exact_error_tail(x, budget, threshold, grid), pieces)
        exact = quantile + excess / beta
        superquantile = law.superquantile(beta, threshold, grid)
        assert exact * (1 - 1e-9) <= superquantile <= exact * 1.0005


def test_surprise_and_answer_quantiles_by_hand() -> None:
    law = LargestError(3)
    single = 1 - 0.95 ** (1 / 3)
    assert law.answer_quantile(0.05) == pytest.approx(-4 * math.log(single), rel=1e-9)
    quantile = law.surprise_quantile(0.05)
    assert (4 * math.exp(-quantile / 2) - math.exp(-quantile)) / 6 == pytest.approx(single, rel=1e-9)
    louder = LargestError(3, NoiseRatios(threshold=4.0, test=2.0, answer=8.0))
    assert louder.answer_quantile(0.05) == pytest.approx(2 * law.answer_quantile(0.05), rel=1e-9)
    assert louder.surprise_quantile(0.05) == pytest.approx(2 * quantile, rel=1e-9)  # symmetric in both scales


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 10**5), st.floats(1e-9, 0.9), st.floats(0, 50), st.floats(0, 50), st.floats(1.0, 10.0))
def test_monotone(budget: int, beta: float, threshold: float, grid: float, factor: float) -> None:
    def bounds(b: int, p: float, t: float, g: float) -> tuple[float, ...]:
        law = LargestError(b)
        return law.quantile(p, t, g), law.superquantile(p, t, g), law.surprise_quantile(p), law.answer_quantile(p)

    here = bounds(budget, beta, threshold, grid)
    worse = [
        bounds(math.ceil(budget * factor), beta, threshold, grid),
        bounds(budget, beta / factor, threshold, grid),
        bounds(budget, beta, threshold * factor, grid),
        bounds(budget, beta, threshold, grid * factor),
    ]
    for other in worse:
        assert all(a <= b * (1 + 1e-3) for a, b in zip(here, other, strict=True))
    assert here[0] <= here[1]
