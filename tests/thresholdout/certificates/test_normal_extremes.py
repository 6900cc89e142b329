"""The largest of k absolute normals: worked values, high precision, and the order of things."""

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresholdout.certificates.normal_extremes import (
    anytime_superquantile,
    largest_normal_quantile,
    largest_normal_superquantile,
)


def exact_quantile(count: int, probability: float) -> mpmath.mpf:
    single = -mpmath.expm1(mpmath.log1p(-mpmath.mpf(probability)) / count)
    low, high = mpmath.mpf(0), mpmath.mpf(40)
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (middle, high) if mpmath.erfc(middle / mpmath.sqrt(2)) > single else (low, middle)
    return high


def exact_superquantile(count: int, probability: float) -> mpmath.mpf:
    start = exact_quantile(count, probability)

    def tail(u: mpmath.mpf) -> mpmath.mpf:
        return -mpmath.expm1(count * mpmath.log1p(-mpmath.erfc(u / mpmath.sqrt(2))))

    points = [start, start + mpmath.mpf("0.3"), start + 1, start + 3, start + 12]
    return start + mpmath.quad(tail, points) / mpmath.mpf(probability)


def test_worked_values() -> None:
    assert largest_normal_quantile(1000, 0.04) == pytest.approx(4.10278213, abs=6e-9)
    assert largest_normal_superquantile(1000, 0.04) == pytest.approx(4.325892, abs=1e-6)


@pytest.mark.parametrize(("count", "probability"), [(1, 0.05), (1, 0.9), (7, 0.6), (1000, 0.04), (10**6, 1e-9)])
def test_high_precision(count: int, probability: float) -> None:
    with mpmath.workdps(30):
        quantile = exact_quantile(count, probability)
        assert quantile <= largest_normal_quantile(count, probability) <= quantile * (1 + mpmath.mpf("1e-9"))
        mean = exact_superquantile(count, probability)
        bound = largest_normal_superquantile(count, probability)
        assert mean <= bound
        if probability <= math.exp(-1):
            assert bound <= mean * (1 + mpmath.mpf("2e-6"))


def test_mean_of_all_cases() -> None:
    """At b near 1 the superquantile is the mean, ``sqrt(2/pi)`` for one normal; the bound may be larger."""
    assert math.sqrt(2 / math.pi) <= largest_normal_superquantile(1, 1 - 1e-12) <= 1.2


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**9), st.floats(1e-12, 0.3))
def test_monotone(count: int, probability: float) -> None:
    quantile, mean = largest_normal_quantile(count, probability), largest_normal_superquantile(count, probability)
    assert quantile < mean < quantile + 1.0
    assert largest_normal_quantile(2 * count, probability) > quantile
    assert largest_normal_superquantile(2 * count, probability) > mean
    assert largest_normal_superquantile(count, probability * 1.01) < mean


def test_anytime_fails_with_the_declared_probability() -> None:
    """Blocks of answers 1, 2-3, 4-7, ... have weights 6/(pi (l+1))^2, which sum to one."""
    for answer in (1, 2, 3, 4, 1000, 2**40 + 1):
        level = math.floor(math.log2(answer))
        share = 0.05 * 6 / (math.pi * (level + 1)) ** 2
        assert anytime_superquantile(answer, 0.05) == largest_normal_superquantile(2**level, share)
    assert sum(6 / (math.pi * (level + 1)) ** 2 for level in range(10**6)) <= 1
