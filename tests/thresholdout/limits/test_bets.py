"""Constant bets: their mean under every law, exactly, and the limits that they give."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from graphs.numerics.sliced_sums import SLICE
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout.limits.bets import best_bet, bet_lower, log_wealth, placed_bet


@for_each("level", [0.3, 0.05, 1e-3])
@for_each("n", [2, 4, 6])
def test_a_mean_that_is_true_is_refuted_with_at_most_the_level(n: int, level: float) -> None:
    rng = np.random.default_rng([n, 1])
    for variance in (0.001, 0.05, 0.25):
        for _ in range(6):
            p = rng.beta(0.5, 0.5, n)
            mean = float(p.mean())
            bet = min(math.sqrt(-2.0 * math.log(level) / (n * variance)), 0.75 / mean)
            miss = 0.0
            for outcome in itertools.product((0, 1), repeat=n):
                x = np.array(outcome, dtype=float)
                if log_wealth(x, bet, mean * (1 + 1e-12)) >= -math.log(level):
                    miss += float(np.prod(np.where(x == 1, p, 1 - p)))
            assert miss <= level


def test_the_mean_of_the_wealth_is_at_most_one_for_different_laws() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(2, 7))
        p = rng.beta(0.3, 0.3, n)
        mean = p.mean()
        bet = rng.uniform(0, 1) / mean
        assert np.prod(1 + bet * (p - mean)) <= 1 + 1e-12


@sizes("sessions", 16, 200)
def test_bets_that_change_along_the_records_break_the_level(sessions: int) -> None:
    """A bet set by the records before it refutes the mean of expectations 0.65 then 0.35, which is 0.5."""
    rng = np.random.default_rng(2)
    n, refuted = 400, 0
    for _ in range(sessions):
        x = (rng.random(n) < np.repeat([0.65, 0.35], n // 2)).astype(float)
        wealth = best = 0.0
        for i in range(n):
            bet = np.clip(4 * (x[:i].mean() - 0.5), 0, 1.5) if i > 10 else 0.0
            wealth += math.log1p(bet * (x[i] - 0.5))
            best = max(best, wealth)
        refuted += best >= math.log(20)
    assert refuted / sessions > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("log_level", corners([-4.0, -70.0, -460.0, -5000.0], 0, 1))
def test_the_wealth_is_rounded_down_and_limits_are_safe(log_level: float) -> None:
    rng = np.random.default_rng(4)
    for n in (5, 1000, 20_000):
        values = rng.beta(20, 1, n)
        bet = min(math.sqrt(-2.0 * log_level / (n * 0.01)), 0.83)
        limit = bet_lower(values, bet, log_level)
        with mp.workdps(40):
            exact = mp.fsum(mp.log(1 + mp.mpf(bet) * (mp.mpf(float(x)) - mp.mpf(limit))) for x in values)
            assert log_wealth(values, bet, limit) <= exact
            assert limit == 0.0 or exact >= -log_level
            assert float(exact) - log_wealth(values, bet, limit) < 1e-8 * (1 + abs(float(exact)))


def test_a_bet_is_sharper_than_entropy_where_values_vary_little() -> None:
    values = np.repeat([0.5, 1.0, 0.0], [950, 35, 15])
    _, bet = placed_bet(0.51, 0.0125, 0.5, 1000, -math.log(0.0125))
    limit = bet_lower(values, bet, math.log(0.0125))
    assert values.mean() - limit < 1.05 * best_bet(0.5, 0.0125, 1000, math.log(0.0125))[1]
    assert values.mean() - limit < 0.0125  # 0.046/2 by the empirical Bernstein inequality, 0.093/2 by entropy


def test_bets_are_capped_by_what_noise_allows() -> None:
    assert placed_bet(0.5, 0.01, 0.5, 100, 50.0, most=0.3)[1] <= 0.3
    bet, radius = best_bet(0.5, 0.01, 100, -50.0, most=0.3)
    assert bet <= 0.3
    assert radius > best_bet(0.5, 0.01, 100, -50.0)[1]


@for_each(("n", "differ", "log_level"), [(1000, 0.03, -5.0), (1000, 0.03, -20.0), (10_000, 0.02, -13.8)])
def test_the_best_bet_on_a_difference_needs_the_fewest_wins(n: int, differ: float, log_level: float) -> None:
    """Wins and losses are n (d + g)/2 and n (d - g)/2: the smallest g at which some bet on a grid wins 1/level."""
    grid = np.linspace(0.002, 0.98, 4000)  # of z in [-1, 1]: half a bet on (z + 1)/2
    up, down = np.log1p(grid), np.log1p(-grid)
    needed = (-log_level / n - 0.5 * differ * (up + down)) / (0.5 * (up - down))
    bet, radius = best_bet(0.5, differ / 4.0, n, log_level)
    assert 2.0 * radius == pytest.approx(float(needed.min()), rel=1e-4)  # the search ends near a bet
    wins, losses = 0.5 * n * (differ + 2.0 * radius), 0.5 * n * (differ - 2.0 * radius)
    assert wins * math.log1p(bet / 2) + losses * math.log1p(-bet / 2) == pytest.approx(-log_level)


@pytest.mark.slow
@for_each(
    ("mean", "variance", "common", "n", "needed"),
    [
        (0.51, 0.0075, 0.5, 1000, 4.4),
        (0.5, 0.0075, 0.5, 1000, 60.0),
        (0.48, 0.02, 0.5, 1000, 9.0),
        (0.02, 0.01, 0.02, 1000, 6.0),
        (0.98, 0.01, 0.98, 1000, 6.0),
        (0.3, 0.05, 0.3, 100, 6.0),
        (0.7, 0.2, 0.5, 50, 3.0),
    ],
)
def test_a_placed_end_is_the_largest_that_any_bet_wins(
    mean: float, variance: float, common: float, n: int, needed: float
) -> None:
    """Bets and ends on grids, for the law of three values with this mean and variance, or coins."""
    shift = mean - common
    square = variance + shift * shift
    low, high = (square - shift * (1 - common)) / common, (square + shift * common) / (1 - common)
    if low + high > 1:
        low, high = 1 - mean, mean
    best = 0.0
    for end in np.linspace(1e-4, mean, 4001)[:-1]:
        bets = np.linspace(1e-3, 0.8 / end, 400)
        won = high * np.log1p(bets * (1 - end)) + low * np.log1p(-bets * end)
        won += (1 - low - high) * np.log1p(bets * (common - end))
        if n * won.max() < needed:
            break
        best = float(end)
    end, bet = placed_bet(mean, variance, common, n, needed)
    assert end == pytest.approx(best, abs=2e-3 * (mean - best) + 4e-4)
    assert bet * end <= 0.8 + 1e-12


@for_each("bet", [0.5, 1.3, 1.9])
def test_a_bold_bet_refutes_no_mean_beyond_its_reach(bet: float) -> None:
    """Means of at least 1/l cannot be bet against: with all values 1, the limit stays below it, and is refuted."""
    limit = bet_lower(np.ones(1000), bet, -3.0)
    assert limit < 1 / bet
    assert 1000 * math.log1p(bet * (1 - limit)) >= 3.0


def test_where_no_mean_is_refuted_the_limit_is_0() -> None:
    assert bet_lower(np.zeros(1000), 0.5, -3.0) == 0.0
    assert bet_lower(np.ones(1000), 0.5, -3.0, mirrored=True) == 0.0


@for_each("size", [7, SLICE + 3])
@for_each("mirrored", [False, True])
def test_the_wealth_of_values_and_of_their_mirror_images(size: int, mirrored: bool) -> None:
    """A value of 0 costs most here, so that the margin is that of the negative terms."""
    values = np.random.default_rng(5).beta(8, 2, size)
    values[3] = 0.0
    exact = math.fsum(math.log1p(1.05 * (float(x) - 0.9)) for x in values)
    given = 1.0 - values if mirrored else values
    below = exact - log_wealth(given, 1.05, 0.9, mirrored=mirrored)
    margin = 1e-9 + 2.0**-50 * size * -math.log1p(-1.05 * 0.9)
    assert 0.95 * margin <= below <= 1.05 * margin


def test_the_wealth_is_rounded_down_by_the_errors_of_all_terms() -> None:
    """A billionth, and eight units in the last place of the largest term for each of a million records."""
    n = 2**20
    term = Fraction(float(np.log1p(0.75)))
    margin = n * term - Fraction(log_wealth(np.ones(n), 1.0, 0.25)) - Fraction(1, 10**9)
    assert margin == pytest.approx(n * term / 2**50, rel=0.25)
