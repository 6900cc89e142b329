"""Constant bets: their mean under every law, exactly, and the limits that they give."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from thresholdout.limits.bets import best_bet, bet_lower, bet_size, log_wealth


@pytest.mark.parametrize("level", [0.3, 0.05, 1e-3])
@pytest.mark.parametrize("n", [2, 4, 6])
def test_a_mean_that_is_true_is_refuted_with_at_most_the_level(n: int, level: float) -> None:
    rng = np.random.default_rng([n, 1])
    for variance in (0.001, 0.05, 0.25):
        for _ in range(6):
            p = rng.beta(0.5, 0.5, n)
            mean = float(p.mean())
            bet = bet_size(mean, variance, n, math.log(level))
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


def test_bets_that_change_along_the_records_break_the_level() -> None:
    """A bet set by the records before it refutes the mean of expectations 0.65 then 0.35, which is 0.5."""
    rng = np.random.default_rng(2)
    n, refuted = 400, 0
    for _ in range(200):
        x = (rng.random(n) < np.repeat([0.65, 0.35], n // 2)).astype(float)
        wealth = best = 0.0
        for i in range(n):
            bet = np.clip(4 * (x[:i].mean() - 0.5), 0, 1.5) if i > 10 else 0.0
            wealth += math.log1p(bet * (x[i] - 0.5))
            best = max(best, wealth)
        refuted += best >= math.log(20)
    assert refuted / 200 > 0.5


@pytest.mark.parametrize("log_level", [-4.0, -70.0, -460.0, -5000.0])
def test_the_wealth_is_rounded_down_and_limits_are_safe(log_level: float) -> None:
    rng = np.random.default_rng(4)
    for n in (5, 1000, 20_000):
        values = rng.beta(20, 1, n)
        bet = bet_size(0.9, 0.01, n, log_level)
        limit = bet_lower(values, bet, log_level)
        with mp.workdps(40):
            exact = mp.fsum(mp.log(1 + mp.mpf(bet) * (mp.mpf(float(x)) - mp.mpf(limit))) for x in values)
            assert log_wealth(values, bet, limit) <= exact
            assert limit == 0.0 or exact >= -log_level
            assert float(exact) - log_wealth(values, bet, limit) < 1e-8 * (1 + abs(float(exact)))


def test_a_bet_is_sharper_than_entropy_where_values_vary_little() -> None:
    values = np.repeat([0.5, 1.0, 0.0], [950, 35, 15])
    bet = bet_size(0.5, 0.0125, 1000, math.log(0.0125))
    limit = bet_lower(values, bet, math.log(0.0125))
    assert values.mean() - limit < 1.05 * best_bet(0.5, 0.0125, 1000, math.log(0.0125))[1]
    assert values.mean() - limit < 0.0125  # 0.046/2 by the empirical Bernstein inequality, 0.093/2 by entropy


def test_bets_are_capped_by_what_noise_allows() -> None:
    assert bet_size(0.5, 0.01, 100, -50.0, most=0.3) == 0.3
    bet, radius = best_bet(0.5, 0.01, 100, -50.0, most=0.3)
    assert bet <= 0.3
    assert radius > best_bet(0.5, 0.01, 100, -50.0)[1]


@pytest.mark.parametrize(("n", "differ", "log_level"), [(1000, 0.03, -5.0), (1000, 0.03, -20.0), (10_000, 0.02, -13.8)])
def test_the_best_bet_on_a_difference_needs_the_fewest_wins(n: int, differ: float, log_level: float) -> None:
    """Wins and losses are n (d + g)/2 and n (d - g)/2: the smallest g at which some bet on a grid wins 1/level."""
    grid = np.linspace(0.002, 0.98, 4000)  # of z in [-1, 1]: half a bet on (z + 1)/2
    up, down = np.log1p(grid), np.log1p(-grid)
    needed = (-log_level / n - 0.5 * differ * (up + down)) / (0.5 * (up - down))
    bet, radius = best_bet(0.5, differ / 4.0, n, log_level)
    assert 2.0 * radius == pytest.approx(float(needed.min()), rel=1e-4)  # the search ends near a bet
    wins, losses = 0.5 * n * (differ + 2.0 * radius), 0.5 * n * (differ - 2.0 * radius)
    assert wins * math.log1p(bet / 2) + losses * math.log1p(-bet / 2) == pytest.approx(-log_level)
