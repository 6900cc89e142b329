"""What sums say about the wealth of a bet: never more than there is, and nearly all where bets are small."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout.limits.bets import ManyValues, Moments, ThreeValues, bet_lower, log_wealth, loss_factor

BITS = 30


def moments(values: NDArray[np.float64]) -> Moments:
    steps = [int(value * 2**BITS) for value in values]
    return Moments(len(steps), BITS, sum(steps), sum(step * step for step in steps))


def exact_wealth(values: NDArray[np.float64], bet: float, mean: float) -> mp.mpf:
    with mp.workdps(60):
        return mp.fsum(mp.log1p(mp.mpf(bet) * (mp.mpf(float(value)) - mp.mpf(mean))) for value in values)


def on_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.round(values * 2**BITS) / 2**BITS)


def test_the_factor_is_not_below_its_exact_value_nor_far_above() -> None:
    with mp.workdps(60):
        for t in (0.0, 1e-300, 1e-9, 1e-3, 2.0**-7 - 1e-9, 2.0**-7, 0.1, 0.5, 0.98, 1 - 1e-9, math.nextafter(1.0, 0.0)):
            exact = mp.mpf(1) / 2 if t < 1e-20 else (-mp.log1p(-mp.mpf(t)) - t) / mp.mpf(t) ** 2
            assert exact <= loss_factor(t) <= exact * (1 + mp.mpf(2) ** -31)


@for_each("mirrored", [False, True])
def test_the_bound_is_never_above_the_wealth(mirrored: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        shapes = rng.uniform(0.05, 3.0, size=2)
        values = on_grid(rng.beta(float(shapes[0]), float(shapes[1]), size=int(rng.integers(1, 40))))
        mean = float(rng.uniform(0.0, 1.0))
        bet = float(rng.uniform(0.0, 1.0)) / max(mean, 0.1)
        seen = 1.0 - values if mirrored else values
        assert moments(values).log_wealth(bet, mean, mirrored=mirrored) <= exact_wealth(seen, bet, mean)


def test_a_bound_without_the_cubic_term_would_be_above_it() -> None:
    values, bet, mean = np.zeros(50), 0.9, 0.8
    taylor = 50 * (-bet * mean - 0.5 * (bet * mean) ** 2)
    assert taylor > float(exact_wealth(values, bet, mean)) >= moments(values).log_wealth(bet, mean)


def test_a_bet_that_could_lose_everything_wins_nothing() -> None:
    assert moments(np.array([0.5, 1.0])).log_wealth(2.0, 0.5) == -math.inf
    assert ThreeValues(0, 1, 1).log_wealth(2.0, 0.5) == -math.inf


@pytest.mark.slow
def test_limits_from_moments_are_valid_and_nearly_as_good() -> None:
    """A limit from a lower bound on the wealth is refuted by the wealth itself, and near it where n is large."""
    rng = np.random.default_rng(2)
    values = on_grid(rng.beta(2.0, 5.0, size=20_000))
    for mirrored in (False, True):
        bet = math.sqrt(2.0 * 7.0 / (values.size * float(values.var())))
        sharp = bet_lower(values, bet, -7.0, mirrored=mirrored)
        found = bet_lower(moments(values), bet, -7.0, mirrored=mirrored)
        assert found <= sharp
        seen = 1.0 - values if mirrored else values
        assert float(exact_wealth(seen, bet, found)) >= 7.0
        assert sharp - found < 0.06 * (float(seen.mean()) - sharp)


@pytest.mark.slow
def test_three_counts_give_the_wealth_of_the_values() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        counts = rng.integers(0, 300, size=3)
        counts[1] += 1
        values = np.repeat([0.0, 0.5, 1.0], counts)
        mean = float(rng.uniform(0.05, 0.95))
        bet = float(rng.uniform(0.0, 0.999)) / max(mean, 1.0 - mean)
        for mirrored in (False, True):
            known = ThreeValues(*map(int, counts)).log_wealth(bet, mean, mirrored=mirrored)
            exact = exact_wealth(1.0 - values if mirrored else values, bet, mean)
            assert known <= exact <= known + 1e-8
            assert known == pytest.approx(log_wealth(values, bet, mean, mirrored=mirrored), abs=1e-8)


def test_the_mean_is_that_of_the_values() -> None:
    assert ThreeValues(1, 2, 3).mean() == float(Fraction(8, 12))
    assert moments(np.array([0.25, 0.5, 1.0])).mean() == pytest.approx(1.75 / 3, rel=1e-15)
    assert "0.5" not in repr(moments(np.array([0.5])))


def refused() -> NDArray[np.float64]:
    raise AssertionError("sums are enough")


def many(values: NDArray[np.float64], off: int, found: Callable[[], NDArray[np.float64]] | None = None) -> ManyValues:
    """Return values whose sum of squares is known up to an error."""
    steps = [int(value * 2**BITS) for value in values]
    squares = sum(step * step for step in steps)
    return ManyValues(len(steps), BITS, sum(steps), (squares - off, squares + off), found or (lambda: values))


@for_each("mirrored", [False, True])
@for_each("off", [0, 1 << 2 * BITS - 2])
def test_a_bet_on_many_values_wins_where_the_values_say_so(mirrored: bool, off: int) -> None:
    """At levels below, between and above both bounds, the decision is that of 60 digits."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        values = on_grid(rng.beta(rng.uniform(0.05, 3.0), rng.uniform(0.05, 3.0), size=int(rng.integers(1, 40))))
        mean = float(rng.uniform(0.0, 1.0))
        bet = float(rng.uniform(0.0, 0.999)) / max(mean, 0.1)
        wealth = float(exact_wealth(1.0 - values if mirrored else values, bet, mean))
        for away in (1e-7, 1e-3, 0.05, 0.5, 5.0):
            known = many(values, off)
            assert known.wins(bet, mean, wealth - away, mirrored=mirrored)
            assert not known.wins(bet, mean, wealth + away, mirrored=mirrored)


def test_sums_alone_decide_where_the_level_is_far_from_the_wealth() -> None:
    values = on_grid(np.random.default_rng(5).beta(2.0, 5.0, size=1_000))
    known, bet, mean = many(values, 1 << BITS, refused), 0.2, float(values.mean()) - 0.01
    wealth = float(exact_wealth(values, bet, mean))
    apart = bet / 3.0 * float(np.sum((bet * (values - mean)) ** 2))
    assert known.wins(bet, mean, wealth - 1.01 * apart)
    assert not known.wins(bet, mean, wealth + 1.01 * apart)


def test_the_smaller_sum_of_squares_would_let_a_bet_win_that_loses() -> None:
    """The broken twin: bounds on the sum of squares that are exchanged."""
    values, bet, mean = on_grid(np.random.default_rng(6).beta(2.0, 5.0, size=50)), 0.5, 0.2
    wealth, off = float(exact_wealth(values, bet, mean)), 3 << 2 * BITS
    assert not many(values, off).wins(bet, mean, wealth + 0.1)
    assert many(values, -off).wins(bet, mean, wealth + 0.1)
