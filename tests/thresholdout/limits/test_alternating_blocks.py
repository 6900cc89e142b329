"""Bets on alternating blocks of a series: small series are gone through outcome by outcome; twins exceed the level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphs import MovingWindow
from tests.cases import for_each
from thresholdout.limits.binomial import log_laplace_moment
from thresholdout.limits.group_sums import BlockSums, GroupSizes, GroupSums
from thresholdout.mechanisms.base import Blocks, Grouped
from thresholdout.mechanisms.claims.group_tests import BlockBetTest, GroupBetTest
from thresholdout.mechanisms.claims.interval import better, entropy, hoeffding

Array = NDArray[np.float64]
Law = tuple[Array, Array]  # probabilities, and the records' values with each
STEPS = 256


def block_sums(values: Array, index: NDArray[np.int64]) -> BlockSums:
    sums = np.bincount(index, weights=values).astype(float)
    return BlockSums(sums, np.bincount(index).astype(float), 8)


def laws(n: int, window: int, tries: int, seed: int = 0) -> Iterator[Law]:
    """Laws of n records of which those more than `window` apart are independent.

    Copies of a coin in stretches of window + 1 records, wherever they begin; and arbitrary functions of the coins of a
    moving window, of coins with arbitrary probabilities.
    """
    rng = np.random.default_rng(seed)
    for start in range(window + 1):
        stretch = (np.arange(n) + start) // (window + 1)
        coins = np.array(list(product((0.0, 1.0), repeat=int(stretch.max()) + 1)))
        for p in (0.1, 0.25, 0.5, 0.8):
            yield np.prod(np.where(coins > 0, p, 1.0 - p), axis=1), coins[:, stretch]
    coins = np.array(list(product((0, 1), repeat=n + window)))
    places = coins @ (1 << np.arange(n + window))
    for _ in range(tries):
        ps = rng.beta(0.5, 0.5, n + window)
        law = np.prod(np.where(coins > 0, ps, 1.0 - ps), axis=1)
        tables = (rng.random((n, 1 << (window + 1))) < rng.random()).astype(float)
        seen = np.array([tables[i][(places >> i) & ((1 << (window + 1)) - 1)] for i in range(n)]).T
        yield law, seen


def largest_wealth(n: int, window: int, index: NDArray[np.int64], weights: tuple[float, float], one_bet: bool) -> float:
    """Return the largest E prod (1 + L_c y_g)^(a_c) at the true mean, c = 0, 1 in turn, from the definition.

    The bets are one number, or in proportion to 1/a_c.
    """
    blocks, longest, found = int(index.max()) + 1, int(np.bincount(index).max()), 0.0
    for probability, values in laws(n, window, 20):
        truth = float(probability @ values.mean(axis=1))
        for share in (0.1, 0.5, 0.9):
            bet, wealth = share / (longest * max(truth, 1e-3)), np.ones(probability.size)
            for block in range(blocks):
                weight = weights[block % 2]
                scaled = bet if one_bet else bet * min(weights) / weight
                gains = (values[:, index == block] - truth).sum(axis=1)
                wealth *= np.maximum(0.0, 1.0 + scaled * gains) ** weight
            found = max(found, float(probability @ wealth))
    return found


@for_each(("n", "window"), [(6, 1), (8, 1), (6, 2), (7, 3), (8, 3)])
def test_the_expected_root_of_the_wealth_is_at_most_one(n: int, window: int) -> None:
    index = MovingWindow(n, window).alternating_blocks()
    assert 0.99 < largest_wealth(n, window, index, (0.5, 0.5), True) <= 1.0 + 1e-12


@for_each(
    ("window", "length", "weights"),
    [
        (1, 1, (1.0, 1.0)),  # the whole wealth
        (3, 1, (0.5, 0.5)),  # blocks that are shorter than the window
        (1, 1, (0.1, 0.9)),  # two classes with different weights and one bet
    ],
)
def test_twins_have_an_expected_wealth_above_one(window: int, length: int, weights: tuple[float, float]) -> None:
    assert largest_wealth(8, window, np.arange(8) // length, weights, True) > 1.02


def test_unequal_weights_need_bets_in_proportion() -> None:
    assert largest_wealth(8, 1, np.arange(8), (0.1, 0.9), False) <= 1.0 + 1e-12


def test_the_bound_is_reached() -> None:
    """Pairs of copies, with m = 1: four coins whose wealth is that of independent records."""
    level, truth = 0.5**4, 0.5
    index, coins = np.arange(8), np.array(list(product((0.0, 1.0), repeat=4)))
    bet = (1.0 - 1e-7) / truth
    wealth = np.array([block_sums(values, index).log_wealth(bet, truth) for values in coins[:, np.arange(8) // 2]])
    refuted = float(np.mean(wealth >= -math.log(level) - 1e-4))
    assert refuted == level
    # the whole wealth in place of its root refutes the truth far more often than the level
    whole = [GroupSums(values, np.ones(8), 8).log_wealth(0.9 / truth, truth) for values in coins[:, np.arange(8) // 2]]
    assert float(np.mean(np.array(whole) >= -math.log(0.05))) > 1.2 * 0.05


def block_test(index: NDArray[np.int64], values: BlockSums | None, correlation: float, training: float) -> BlockBetTest:
    counts, n = np.bincount(index), index.size
    blocks = Blocks(index, counts.astype(float), GroupSizes.of(counts), correlation, training, 1.0, training)
    window = int(counts.max()) + 1
    return BlockBetTest(
        STEPS, values, blocks, better(entropy(STEPS, n / window), hoeffding(STEPS, n / window)), None, 0.5
    )


@pytest.mark.slow
@for_each(("n", "window"), [(8, 1), (9, 2), (9, 3)])
@for_each("level", [0.3, 0.1])
@for_each(("lo", "hi"), [(0, 128), (100, 256), (64, 192), (160, 250)])
@for_each("correlation", [0.0, 0.5])
def test_a_false_claim_is_confirmed_with_its_level_at_most(
    n: int, window: int, level: float, lo: int, hi: int, correlation: float
) -> None:
    index = MovingWindow(n, window).alternating_blocks()
    low, high = block_test(index, None, correlation, 100.0).interval(lo, hi, math.log(level), ())
    said: dict[bytes, bool] = {}
    for probability, values in laws(n, window, 12, seed=1):
        truth = float(probability @ values.mean(axis=1))
        if low <= truth <= high:
            continue
        confirmed = np.zeros(probability.size, dtype=bool)
        for place, row in enumerate(values):
            key = row.tobytes()
            if key not in said:
                test = block_test(index, block_sums(row, index), correlation, 100.0)
                said[key] = test.outcome(lo, hi, math.log(level), (), (0, 0, 0)) == "confirmed"
            confirmed[place] = said[key]
        assert float(probability[confirmed].sum()) <= level * (1.0 + 1e-9)


def test_blocks_taken_for_independent_groups_confirm_false_claims() -> None:
    """The side that must fail: the whole wealth, where neighbours are copies."""
    groups, worst = Grouped(np.arange(8), GroupSizes([(1, 8)]), 0.0, 100.0, 100.0), 0.0
    coins = np.array(list(product((0.0, 1.0), repeat=4)))
    tests = [
        GroupBetTest(STEPS, GroupSums(row, np.ones(8), 8), groups, None, 0.5) for row in coins[:, np.arange(8) // 2]
    ]
    for lo, level in product(range(60, 250, 10), (0.2, 0.1, 0.05)):
        low, _ = tests[0].interval(lo, STEPS, math.log(level), ())
        said = [test.outcome(lo, STEPS, math.log(level), (), (0, 0, 0)) == "confirmed" for test in tests]
        law = np.prod(np.where(coins > 0, low - 1e-9, 1.0 - low + 1e-9), axis=1)
        worst = max(worst, float(law[np.array(said)].sum()) / level)
    assert worst > 1.5


@pytest.mark.slow
@for_each(("n", "window", "training"), [(8, 1, 5.0), (9, 3, 5.0), (9, 3, 100.0)])
def test_stated_limits_miss_with_their_level_at_most(n: int, window: int, training: float) -> None:
    """Five training blocks: a mixture of bets."""
    level, index = 0.1, MovingWindow(n, window).alternating_blocks()
    ends: dict[bytes, tuple[int, int]] = {}
    for probability, values in laws(n, window, 12, seed=2):
        truth = float(probability @ values.mean(axis=1))
        missed = np.zeros((2, probability.size), dtype=bool)
        for place, row in enumerate(values):
            key = row.tobytes()
            if key not in ends:
                ends[key] = block_test(index, block_sums(row, index), 0.2, training).ends(math.log(level), 0.6)
            low, high = ends[key]
            missed[:, place] = low / STEPS > truth + 1e-9, high / STEPS < truth - 1e-9
        assert float((missed @ probability).max()) <= level * (1.0 + 1e-9)


@given(st.integers(1, 40), st.integers(0, 12))
def test_blocks_of_records_separate_their_neighbours(n: int, window: int) -> None:
    index = MovingWindow(n, window).alternating_blocks()
    assert index.size == n
    assert (np.diff(index) >= 0).all()
    for block in range(int(index.max()) - 1):
        assert np.flatnonzero(index == block + 2)[0] - np.flatnonzero(index == block)[-1] > window


@given(st.lists(st.integers(0, 30), min_size=1, max_size=25), st.integers(0, 8))
def test_blocks_of_times_separate_their_neighbours(times: list[int], length: int) -> None:
    """Every record of a block is further than the length from all records of the next but one, whatever the order."""
    index, at = (
        MovingWindow.of_times([float(one) for one in times], float(length)).alternating_blocks(),
        np.array(times),
    )
    assert sorted(set(index.tolist())) == list(range(int(index.max()) + 1))
    for block in range(int(index.max()) - 1):
        later = at[index >= block + 2]
        assert later.min() - at[index <= block].max() > length


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 256), min_size=4, max_size=30),
    st.integers(1, 5),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.9),
)
def test_wealth_is_the_root_falls_with_the_mean_and_is_mirrored(
    values: list[int], window: int, mean: float, share: float
) -> None:
    x, index = np.array(values) / 256.0, MovingWindow(len(values), window).alternating_blocks()
    sums = block_sums(x, index)
    bet = share / (float(np.bincount(index).max()) * mean)
    by_hand = 0.5 * sum(math.log1p(bet * float((x[index == g] - mean).sum())) for g in range(int(index.max()) + 1))
    assert sums.log_wealth(bet, mean) <= by_hand
    assert sums.log_wealth(bet, mean) == pytest.approx(by_hand, abs=1e-6)
    assert sums.log_wealth(bet, 0.9 * mean) >= sums.log_wealth(bet, mean)
    other = bet * mean / max(mean, 1.0 - mean)
    assert sums.mirrored().log_wealth(other, 1.0 - mean) == pytest.approx(
        sums.log_wealth(other, 1.0 - mean, mirrored=True), abs=1e-6
    )


def test_noise_is_paid_for_with_half_the_slope() -> None:
    """E W e^(t nu) at most E e^(t nu): enumerated over copies, the noise by its moment."""
    index, scale = np.arange(8), 0.01
    test, (probability, values) = block_test(index, None, 0.0, 100.0), next(laws(8, 1, 1))
    truth = float(probability @ values.mean(axis=1))
    bet = 0.8 / truth
    charge = test._charge(bet, (scale,))
    assert charge == pytest.approx(log_laplace_moment(0.5 * bet * 8, scale))
    wealth = np.exp([block_sums(row, index).log_wealth(bet, truth) for row in values])
    assert float(probability @ wealth) <= 1.0 + 1e-9
