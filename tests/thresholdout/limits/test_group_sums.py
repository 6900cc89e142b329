"""Limits from group sums and from own sizes: small groups are enumerated, large ones have closed forms; twins fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import betabinom, binom

from tests.cases import for_each
from thresholdout.limits.bets import bet_lower
from thresholdout.limits.entropy import entropy_lower
from thresholdout.limits.group_bets import log_group_wealth
from thresholdout.limits.group_sums import BlockSums, GroupSizes, GroupSums, bet_against, group_bet
from thresholdout.limits.own_sizes import own_sizes_lower

Limit = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


def worst(limit: Limit, sizes: list[int], level: float) -> float:
    """The largest P(limit > truth) / level over group laws on {0, size} with each of many mean budgets."""
    s = np.array(sizes, dtype=float)
    outcomes = np.array(list(product((0.0, 1.0), repeat=len(sizes))))
    limits = np.array([limit(s * each, s) for each in outcomes])
    rng, found = np.random.default_rng(0), 0.0
    means = sorted({max(0.0, limit - 1e-9) for limit in limits.tolist()} - {0.0}) or [0.1]
    for mean in means[:: max(1, len(means) // 8)]:
        for trial in range(80):
            share = rng.dirichlet(np.full(s.size, (0.1, 1.0, 10.0)[trial % 3])) if trial else s / s.sum()
            ps = np.minimum(1.0, share * mean * s.sum() / s)
            if trial % 4 == 1:
                left, ps = mean * s.sum(), np.zeros(s.size)
                for g in rng.permutation(s.size):
                    ps[g] = min(1.0, left / s[g])
                    left -= ps[g] * s[g]
            truth = float(ps @ s) / s.sum()
            law = np.prod(np.where(outcomes > 0, ps, 1 - ps), axis=1)
            found = max(found, float(law[limits > truth + 1e-12].sum()))
    return found / level


def sums_of(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> GroupSums:
    return GroupSums(sums, sizes, 0)


@pytest.mark.slow
@for_each("sizes", [[1, 1, 1], [1, 2, 3], [3, 3, 1, 1], [1, 1, 2, 5]])
@for_each("level", [0.3, 0.05])
@for_each("mirrored", [False, True])
def test_a_stated_limit_of_one_bet_keeps_its_level(sizes: list[int], level: float, mirrored: bool) -> None:
    for bet in (0.05, 0.3, 1.0):

        def limit(sums: NDArray[np.float64], s: NDArray[np.float64], bet: float = bet) -> float:
            values = s - sums if mirrored else sums
            return bet_lower(sums_of(values, s), bet, math.log(level), mirrored=mirrored)

        assert worst(limit, sizes, level) <= 1.0 + 1e-9


def test_the_level_of_the_largest_bet_is_reached() -> None:
    """Equal sizes, l = 1/m, level m^G: all groups are full with exactly this probability."""
    mean, sizes = 0.3, np.full(3, 2.0)
    full = GroupSums(sizes, sizes, 0)
    assert full.log_wealth((1.0 - 1e-6) / (2.0 * mean), mean) == pytest.approx(-3 * math.log(mean), abs=1e-4)


def test_the_best_of_several_bets_has_a_mean_above_one() -> None:
    """The twin that enumeration of one level does not show: the largest of two wealths is no e-value."""
    mean, s = 0.5, np.array([1.0, 1.0, 2.0])
    one, best = 0.0, 0.0
    for each in product((0.0, 1.0), repeat=3):
        values = sums_of(s * np.array(each), s)
        wealths = [math.exp(values.log_wealth(bet, mean)) for bet in (0.2, 0.9)]
        one += mean**3 * wealths[0]
        best += mean**3 * max(wealths)
    assert one <= 1.0 + 1e-9 < 1.05 < best


def test_the_wealth_is_that_of_the_plain_formula() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, 40).astype(float)
    sums = np.array([float(rng.integers(0, int(s) + 1)) for s in sizes])
    for bet, mean in ((0.1, 0.6), (0.02, 0.9)):
        found = sums_of(sums, sizes).log_wealth(bet, mean)
        plain = float(np.sum(np.log(1.0 + bet * (sums - sizes * mean))))
        assert plain - 1e-6 < found < plain
        assert found == pytest.approx(log_group_wealth(sums, sizes, 10.0, 10.0 * bet, mean), abs=1e-6)
        mirrored = sums_of(sizes - sums, sizes).log_wealth(bet, mean, mirrored=True)
        assert mirrored == pytest.approx(found, abs=1e-9)


def many_groups(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """20,000 groups of 1 to 8 records on the grid of 2^-20; whole groups fail now and then."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, 20_000).astype(float)
    shares = rng.beta(0.5, 5.0, sizes.size)
    if seed % 2:
        shares = np.where(rng.random(sizes.size) < 0.05, 0.0, rng.beta(8.0, 2.0, sizes.size))
    return np.floor(sizes * shares * 2.0**20) / 2.0**20, sizes


def logarithms(sums: NDArray[np.float64], sizes: NDArray[np.float64], bet: float, mean: float, mirrored: bool) -> float:
    """The logarithm of the wealth, in long doubles."""
    own = (
        sizes.astype(np.longdouble) * (np.longdouble(1.0) - mean) - sums
        if mirrored
        else sums - sizes * np.longdouble(mean)
    )
    return math.fsum(np.log1p(np.longdouble(bet) * own).astype(float).tolist())


@for_each("seed", range(2))
@for_each("mirrored", [False, True])
def test_bounds_on_the_wealth_of_many_groups_decide_as_its_logarithms_do(seed: int, mirrored: bool) -> None:
    sums, sizes = many_groups(seed)
    truth = float(sums.sum() / sizes.sum())
    truth = 1.0 - truth if mirrored else truth
    for share, bold in product((0.9, 0.99, 1.01), (0.01, 0.1, 0.5, 0.95)):
        mean = share * truth
        bet = bold / (8.0 * mean)
        wealth = logarithms(sums, sizes, bet, mean, mirrored)
        for kind, root in ((GroupSums, 1.0), (BlockSums, 0.5)):
            values = kind(sums, sizes, 20)
            for off in (1e-6, 1e-3, 1.0, 100.0):
                assert values.wins(bet, mean, root * (wealth - off), mirrored=mirrored)
                assert not values.wins(bet, mean, root * (wealth + off), mirrored=mirrored)


def test_bounds_on_the_wealth_of_many_groups_mostly_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """No logarithm of a group is taken, except within 5 % of the wealth."""
    sums, sizes = many_groups(0)
    mean, bet = 0.9 * float(sums.sum() / sizes.sum()), 0.03
    monkeypatch.setattr(GroupSums, "log_wealth", None)
    values, wealth = GroupSums(sums, sizes, 20), logarithms(sums, sizes, bet, mean, False)
    assert wealth > 10.0
    assert values.wins(bet, mean, 0.95 * wealth)
    assert not values.wins(bet, mean, 1.05 * wealth)
    with pytest.raises(TypeError):
        values.wins(bet, mean, wealth)


@for_each("twin", [lambda exposed: 0.5, lambda exposed: 0.5 + 0.1 * exposed])
def test_a_loss_without_its_higher_powers_claims_too_much(
    monkeypatch: pytest.MonkeyPatch, twin: Callable[[float], float]
) -> None:
    """The broken twin: groups that fail as a whole lose more than the square says."""
    sums, sizes = many_groups(1)
    mean = 0.97 * float(sums.sum() / sizes.sum())
    bet = 0.9 / (8.0 * mean)
    wealth = logarithms(sums, sizes, bet, mean, False)
    assert not GroupSums(sums, sizes, 20).wins(bet, mean, wealth + 1.0)
    monkeypatch.setattr("thresholdout.limits.group_sums.loss_factor", twin)
    assert GroupSums(sums, sizes, 20).wins(bet, mean, wealth + 1.0)


def test_a_bet_that_could_lose_everything_says_nothing() -> None:
    values = GroupSums(np.array([3.0, 1.0]), np.array([3.0, 1.0]), 0)
    assert values.log_wealth(1.0 / (3.0 * 0.5), 0.5) == -math.inf


@pytest.mark.slow
@for_each("sizes", [[1, 1, 1], [1, 2, 3], [1, 1, 6], [4, 4, 1, 1]])
@for_each("level", [0.3, 0.05, 0.01])
def test_own_sizes_keep_their_level(sizes: list[int], level: float) -> None:
    counts = GroupSizes.of(np.array(sizes))

    def limit(sums: NDArray[np.float64], s: NDArray[np.float64]) -> float:
        return own_sizes_lower(float(sums.sum() / s.sum()), counts, math.log(level), (), 1000.0)

    assert worst(limit, sizes, level) <= 1.0 + 1e-9


def one_probability(mean: float, counts: list[tuple[int, int]], log_level: float) -> float:
    """The twin: the limit with the same probability in all groups."""
    n = sum(size * number for size, number in counts)

    def bound(p: float) -> float:
        def exponent(log_u: float) -> float:
            u = math.exp(log_u)
            return sum(k * math.log1p(p * math.expm1(u * s)) for s, k in counts) - u * n * mean

        return float(minimize_scalar(exponent, bounds=(-14.0, 1.5), method="bounded").fun)

    low, high = 0.0, mean
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bound(middle) <= log_level else (low, middle)
    return low


def test_one_probability_for_all_groups_misses_a_truth_that_own_sizes_do_not() -> None:
    """900 groups of one and one of 100: the large group alone decides."""
    counts, level, mean, n = [(1, 900), (100, 1)], 0.025, 0.55, 1000
    sizes = GroupSizes(counts)

    def missed(limit: float) -> float:
        found = 0.0
        for large in np.linspace(0.01, 0.99, 99).tolist():
            rest = (limit * n - 100.0 * large) / 900.0
            if 0.0 <= rest <= 1.0:
                needed = math.ceil(mean * n - 1e-9)
                found = max(
                    found,
                    large * float(binom.sf(needed - 101, 900, rest))
                    + (1 - large) * float(binom.sf(needed - 1, 900, rest)),
                )
        return found

    assert missed(own_sizes_lower(mean, sizes, math.log(level), (), float(n))) <= level
    assert missed(one_probability(mean, counts, math.log(level))) > 2.0 * level


@for_each("mean", [0.02, 0.3, 0.9, 1.0])
@for_each("log_level", [-1.0, -4.0, -40.0])
def test_own_sizes_are_never_worse_than_entropy_and_hoeffding(mean: float, log_level: float) -> None:
    for counts in ([(5, 40)], [(1, 100), (7, 20)], [(1, 300), (60, 2)]):
        sizes = GroupSizes(counts)
        found = own_sizes_lower(mean, sizes, log_level, (), 1000.0)
        plain = entropy_lower(mean, sizes.n / sizes.largest, log_level)
        squared = mean - math.sqrt(-0.5 * log_level * sizes.squares) / sizes.n
        assert found >= max(plain, squared) - 1e-6
        assert found <= mean


def test_noise_in_the_edge_only_widens_and_vanishes_with_it() -> None:
    sizes = GroupSizes([(1, 200), (3, 100), (10, 50)])
    exact = own_sizes_lower(0.9, sizes, -6.9, (), 1000.0)
    noisy = [own_sizes_lower(0.9, sizes, -6.9, (scale, 2 * scale), 1000.0) for scale in (0.01, 1.0, 10.0)]
    assert exact + 1e-9 >= noisy[0] > noisy[1] > noisy[2] > 0.0
    assert noisy[0] == pytest.approx(exact, abs=1e-3)


@for_each("correlation", [0.0, 0.1, 0.5, 1.0])
@for_each("mean", [0.1, 0.5, 0.9])
def test_a_placed_bet_wins_where_it_was_placed(mean: float, correlation: float) -> None:
    """Sums with a beta-binomial law of this correlation: the expected wealth is about what is needed."""
    sizes, needed = GroupSizes([(4, 300)]), 4.0
    end, bet = group_bet(mean, mean * (1 - mean), mean, correlation, sizes, needed)
    assert 0.0 < end < mean
    assert bet * 4 * end < 1.0
    k = np.arange(5)
    if correlation in (0.0, 1.0):
        law = binom.pmf(k, 4, mean) if correlation == 0.0 else np.where(k == 4, mean, np.where(k == 0, 1 - mean, 0.0))
    else:
        law = betabinom.pmf(k, 4, mean * (1 / correlation - 1), (1 - mean) * (1 / correlation - 1))
    assert 300 * float(law @ np.log1p(bet * (k - 4 * end))) == pytest.approx(needed, rel=0.08)


def test_the_limit_of_a_placed_bet_is_below_the_mean() -> None:
    """Few groups, of very different sizes: Newton's steps leave the range, from where a claim could never hold."""
    rng = np.random.default_rng(5)
    for trial in range(200):
        sizes = GroupSizes.of(np.minimum(1 + rng.pareto(1.0, int(rng.integers(1, 60))) * 2, 60).astype(np.int64))
        mean = min(float(rng.choice([0.02, 0.5, 0.9, 0.99])), 1.0 - 0.5 / sizes.n)
        variance, correlation = mean * (1.0 - mean), (0.0, 0.1, 0.5, 1.0)[trial % 4]
        end, bet = group_bet(mean, variance, mean, correlation, sizes, (3.0, 12.0)[trial % 2], times=1.7)
        assert 0.0 <= end < mean
        assert 0.0 <= bet * sizes.largest * end < 1.0


def test_the_bet_against_a_null_is_placed_at_it() -> None:
    sizes = GroupSizes([(1, 50), (5, 200)])
    for null in (0.45, 0.5, 0.6):
        bet, mean = bet_against(null, 0.03, 0.2, sizes, 6.0)
        assert null < mean < 1.0
        assert bet * 5 * null < 1.0
        assert group_bet(mean, 0.03, 0.5, 0.2, sizes, 6.0)[0] == pytest.approx(null, abs=1e-4)


def test_the_effective_number_is_that_of_the_variance_of_a_mean() -> None:
    sizes = GroupSizes([(2, 3), (5, 1)])  # 11 records; sum s (1 + (s - 1) rho) = 11 + rho (3 2 + 20)
    assert sizes.effective(0.5) == pytest.approx(121 / (11 + 0.5 * 26))
    assert (sizes.effective(0.0), sizes.groups, sizes.n, sizes.largest) == (11.0, 4, 11, 5)


def test_the_sums_are_secret() -> None:
    assert repr(GroupSums(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 3)) == "<GroupSums n=5>"


def test_bets_beyond_all_numbers_are_decided_by_logarithms() -> None:
    values = GroupSums(np.full(20_000, 0.5), np.ones(20_000), 38)
    assert values.wins(9e306, 1e-307, 3.0) == (values.log_wealth(9e306, 1e-307) >= 3.0)
