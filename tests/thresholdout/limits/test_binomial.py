"""Exact binomial limits: against sums in fractions and in many digits, one law and different laws."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import betaincinv

from tests.cases import for_each
from tests.oracles.counts import binomial_tail, count_law, tail
from tests.sizes import corners
from thresholdout.limits.binomial import (
    binomial_lower,
    binomial_upper,
    log_binomial_tail,
    log_laplace_moment,
    log_one_law_tail,
    noisy_binomial_lower,
)
from thresholdout.limits.entropy import entropy_lower

_LEVELS = (-1e-3, math.log(0.9), math.log(0.5), math.log(0.3), math.log(0.25), math.log(0.05), math.log(1e-6))


def _vectors(n: int, mean: float, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Expectations with this mean: equal, as few as possible, and random ones in between."""
    few = np.zeros(n)
    whole = min(n, math.floor(n * mean))
    few[:whole] = 1.0
    if whole < n:
        few[whole] = n * mean - whole
    found = [np.full(n, mean), few]
    for k in range(1, n + 1):  # k records share it all, as far as they can hold it
        if n * mean <= k:
            found.append(np.array([n * mean / k] * k + [0.0] * (n - k)))
        if n * mean >= n - k:
            found.append(np.array([1.0] * (n - k) + [(n * mean - n + k) / k] * k))
    for _ in range(count):
        draw = rng.beta(0.4, 0.4, n)
        draw *= n * mean / draw.sum()
        found.append(np.clip(draw, 0.0, 1.0))
    return found


def _miss(limit: float, n: int, k: int, rng: np.random.Generator, count: int = 40) -> float:
    """Return the largest P(S >= k) that is found with a mean of at most the limit."""
    vectors = [v * min(1.0, limit / max(v.mean(), 1e-300)) for v in _vectors(n, limit, rng, count)]
    return max(float(tail(count_law(v.tolist()), k)) for v in vectors)


@pytest.mark.parametrize("n", corners([1, 2, 3, 4, 5, 6], 0, 1, 2))
@for_each("log_level", _LEVELS)
def test_no_laws_with_a_mean_of_at_most_the_limit_reach_the_count_more_often(n: int, log_level: float) -> None:
    rng = np.random.default_rng([n, 7])
    for k in range(1, n + 1):
        assert _miss(binomial_lower(k, n, log_level), n, k, rng) <= math.exp(log_level) * (1 + 1e-12), k


@pytest.mark.slow
def test_no_optimised_laws_break_a_limit() -> None:
    rng = np.random.default_rng(3)
    for n, k, level in ((2, 1, 0.2), (3, 1, 0.25), (3, 2, 0.24), (4, 2, 0.25), (5, 3, 0.4), (4, 3, 0.7), (3, 2, 0.6)):
        limit = binomial_lower(k, n, math.log(level))

        def less(x: np.ndarray, n: int = n, k: int = k, limit: float = limit) -> float:
            weights = np.exp(x - x.max())
            p = np.minimum(weights / weights.sum() * n * limit, 1.0)
            law = np.array([1.0])
            for each in p:
                law = np.convolve(law, [1 - each, each])
            return -float(law[k:].sum())

        worst = max(-minimize(less, rng.normal(0, 2, n), method="Nelder-Mead").fun for _ in range(6))
        assert worst <= level * (1 + 1e-9), (n, k)


@for_each(("n", "k", "level"), [(2, 1, 0.2), (3, 1, 0.1), (3, 2, 0.7), (6, 4, 0.8)])
def test_the_plain_clopper_pearson_limit_is_broken_by_different_laws(n: int, k: int, level: float) -> None:
    plain = float(betaincinv(k, n - k + 1, level))  # k = 1, or a level above a quarter
    assert _miss(plain, n, k, np.random.default_rng(0), 400) > level * 1.001


def test_the_trap_of_two_records_has_the_excess_that_was_derived() -> None:
    level = 0.2
    plain = 1.0 - math.sqrt(1.0 - level)  # P(Bin(2, p) >= 1) = level
    excess = float(tail(count_law([2 * plain, 0.0]), 1)) - level
    assert excess == pytest.approx(level**2 / 4, rel=0.15)  # to second order
    assert binomial_lower(1, 2, math.log(level)) <= level / 2


@for_each("log_level", [math.log(0.025), math.log(1e-30), math.log(1e-200)])
@for_each(("n", "k"), [(1000, 950), (1000, 999), (20, 20), (100_000, 97_000), (30, 7)])
def test_a_limit_is_where_the_tail_is_the_level(n: int, k: int, log_level: float) -> None:
    limit = binomial_lower(k, n, log_level)
    with mp.workdps(60):
        at, beyond = (mp.log(binomial_tail(k, n, p)) for p in (limit, limit * (1 + 1e-7)))
        assert at <= log_level
        assert beyond > log_level  # sharp to seven digits


@for_each("log_level", [-700.0, -5000.0, -1e5])
def test_limits_at_levels_below_the_smallest_float(log_level: float) -> None:
    for n, k in ((1000, 950), (1_000_000, 700_000), (10, 10), (1000, 2)):
        limit = binomial_lower(k, n, log_level)
        with mp.workdps(60):
            assert mp.log(binomial_tail(k, n, limit)) <= log_level if limit > 0.0 else limit == 0.0
    assert binomial_lower(700_000, 1_000_000, -5000.0) > 0.63


@pytest.mark.slow
@for_each("n", [10**6, 10**7])
def test_bounds_on_tails_are_above_them_for_many_records(n: int) -> None:
    rng = np.random.default_rng(n)
    for p in (0.5, 0.9, 0.99):
        k = math.ceil(n * p + rng.uniform(2, 20) * math.sqrt(n * p * (1 - p)))
        with mp.workdps(60):
            exact = mp.log(binomial_tail(k, n, p))
        assert float(exact) <= log_binomial_tail(k, n, p) <= float(exact) + 1e-8


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    st.floats(-1e6, -1e-9),
    st.floats(1.0, 3.0),
)
def test_limits_are_monotone_mirrored_and_inside(shape: tuple[int, int], log_level: float, factor: float) -> None:
    n, k = shape
    low, high = binomial_lower(k, n, log_level), binomial_upper(k, n, log_level)
    assert 0.0 <= low <= k / n <= high <= 1.0
    assert binomial_lower(k, n, factor * log_level) <= low * (1 + 1e-9)
    assert high == pytest.approx(1.0 - binomial_lower(n - k, n, log_level), abs=1e-15)
    assert Fraction(high) >= 1 - Fraction(binomial_lower(n - k, n, log_level))
    if k < n:
        assert binomial_lower(k + 1, n, log_level) >= low * (1 - 1e-9)


def test_upper_limits_are_at_most_one() -> None:
    assert binomial_upper(5, 10, -1e5) == 1.0
    assert binomial_upper(9, 10, -600.0) == 1.0


@for_each("level", [0.26, 0.5, 0.9, 0.999])
def test_limits_above_a_quarter_are_no_worse_than_at_a_quarter(level: float) -> None:
    for n, k in ((1000, 950), (5, 3), (40, 1), (7, 7)):
        limit = binomial_lower(k, n, math.log(level))
        assert limit >= binomial_lower(k, n, math.log(0.25)) * (1 - 1e-9)
        assert limit >= entropy_lower(k / n, n, math.log(level)) * (1 - 1e-8)


@for_each(
    ("k", "n", "p", "value"),
    [
        (0, 10, 0.0, 0.0),
        (0, 10, 0.5, 0.0),
        (11, 10, 0.5, -math.inf),
        (1, 10, 0.0, -math.inf),
        (3, 10, 0.0, -math.inf),
        (10, 10, 0.5, -10.0 * math.log(2.0)),
        (10, 10, 1.0, 0.0),
        (1, 10, 0.5, 0.0),  # the union bound is above 1
        (2, 10, 0.5, 0.0),  # below the mean and one
        (3, 10, 0.2, 0.0),  # at the mean and one
        (4, 10, 0.2, math.log(0.1208738816)),  # 1 - (0.8^10 + 10 0.2 0.8^9 + 45 0.04 0.8^8 + 120 0.008 0.8^7)
        (
            2,
            2,
            0.5 - 2.5e-10,
            0.0,
        ),  # (2p, 0): no law has two ones for sure, but nothing is proved below the mean and one
        (1000, 1000, 1e-10, 1000.0 * math.log(1e-10)),  # below the smallest float
    ],
)
def test_tails_at_the_ends_of_what_is_proved(k: int, n: int, p: float, value: float) -> None:
    found = log_binomial_tail(k, n, p)
    assert found == pytest.approx(value, rel=2e-9, abs=1e-9)
    assert value <= found <= 0.0
    assert found == value or value not in (0.0, -math.inf)


def test_one_record_of_ten_is_one_with_at_most_the_sum_of_the_probabilities() -> None:
    with mp.workdps(40):
        exact = mp.log(mp.mpf(10) * mp.mpf(0.02))
        assert exact < log_binomial_tail(1, 10, 0.02) < exact + 1e-9


@for_each(("n", "k"), [(1000, 2), (10, 2), (10**7, 2)])
def test_two_records_have_the_limit_of_the_binomial_law(n: int, k: int) -> None:
    limit = binomial_lower(k, n, math.log(0.025))
    with mp.workdps(60):
        assert binomial_tail(k, n, limit) <= mp.mpf(0.025) < binomial_tail(k, n, limit * (1 + 1e-7))


@for_each(("n", "k"), [(1000, 950), (100, 60), (10**6, 3)])
def test_limits_at_great_levels_are_as_far_as_the_theorem_reaches(n: int, k: int) -> None:
    """One record below the count, less the tolerance of the comparison."""
    for level in (0.6, 0.7):
        assert binomial_lower(k, n, math.log(level)) >= (k - 1 - 2e-5) / n * (1 - 2e-9)


@pytest.mark.slow
@for_each(("k", "n", "p", "slack"), [(52, 100, 0.505, 1e-10), (50_040_000, 10**8, 0.5, 1e-9)])
def test_tails_are_raised_by_what_the_library_may_be_off(k: int, n: int, p: float, slack: float) -> None:
    """A ten-billionth, in proportion to the records from ten million on; also for tails of more than a third."""
    with mp.workdps(60):
        raised = log_binomial_tail(k, n, p) - mp.log(binomial_tail(k, n, p))
    assert 0.8 * slack < raised < 1.2 * slack


@for_each("n", [4, 100, 10_000])
def test_tails_just_beyond_the_mean_and_one_are_those_of_fair_coins(n: int) -> None:
    """Half of what the middle leaves, less the next: up to nearly a half."""
    half = n // 2
    exact = (1 - Fraction(math.comb(n, half), 2**n)) / 2 - Fraction(math.comb(n, half + 1), 2**n)
    for bound in (log_binomial_tail(half + 2, n, 0.5), log_one_law_tail(half + 2, n, 0.5)):
        assert math.log(exact) <= bound <= math.log(exact) + 2e-10


@for_each("n", [2, 10, 1000])
@for_each("level", [0.2, 0.05, 1e-6])
def test_limits_of_none_one_and_all_are_closed_forms(n: int, level: float) -> None:
    """One record of n is 1 with at most the sum of the probabilities, all are with at most the power of the mean."""
    log_level = math.log(level)
    assert (binomial_lower(0, n, log_level), binomial_upper(n, n, log_level)) == (0.0, 1.0)
    assert level / n * (1 - 3e-9) <= binomial_lower(1, n, log_level) <= level / n
    whole = min(level ** (1 / n), 1.0 - 1.0 / n)  # Hoeffding's theorem reaches no farther
    assert whole * (1 - 3e-9) - 1e-5 <= binomial_lower(n, n, log_level) <= level ** (1 / n)
    assert 1 - binomial_lower(n, n, log_level) <= binomial_upper(0, n, log_level)
    assert 1 - level / n <= binomial_upper(n - 1, n, log_level) <= 1 - level / n * (1 - 3e-9) + 2.0**-52


def test_rounding_of_the_mean_brings_no_tail_into_reach() -> None:
    """Means above an integer by less than the rounding of their product: the next integer is below the mean and one."""
    n, seen = 10**11, 0
    for m in range(3 * 10**10, 3 * 10**10 + 40):
        p = m / n
        if Fraction(p) * n > m and n * p == m:
            assert log_binomial_tail(m + 1, n, p) == 0.0
            seen += 1
    assert seen >= 3


@for_each("scale", [1e-3, 1.0, 40.0])
@for_each("share", [1e-4, 0.3, 0.99, 0.9999])
def test_the_moment_of_laplace_noise_is_a_little_above_the_exact_one(scale: float, share: float) -> None:
    theta = share / scale
    with mp.workdps(40):
        exact = -mp.log(1 - (mp.mpf(theta) * mp.mpf(scale)) ** 2)
        assert exact <= log_laplace_moment(theta, scale) <= exact * (1 + mp.mpf("1.1e-9"))
    assert log_laplace_moment((1 - 1e-7) / scale, scale) == log_laplace_moment(1.1 / scale, scale) == math.inf


def test_no_ones_behind_noise_give_no_limit_and_one_gives_some() -> None:
    assert noisy_binomial_lower(0, 100, -3.0, (1.0,)) == 0.0
    assert 0.0 < noisy_binomial_lower(1, 100, -3.0, (0.01,)) <= binomial_lower(1, 100, -3.0)
