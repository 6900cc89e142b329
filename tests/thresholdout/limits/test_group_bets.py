"""Bets on group sums: every outcome of small groups is gone through, for group laws on one budget of means."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from thresholdout.limits.group_bets import log_difference_wealth, log_group_wealth

Wealth = Callable[[NDArray[np.float64], NDArray[np.float64]], float]
MEAN = 0.3


def worst(wealth: Wealth, sizes: list[int], level: float) -> float:
    """The largest P(W >= 1/level) over group laws on {0, size} whose means have the null's budget."""
    s = np.array(sizes, dtype=float)
    outcomes = list(product((0.0, 1.0), repeat=len(sizes)))
    rejected = np.array([wealth(s * np.array(each), s) >= -math.log(level) - 1e-7 for each in outcomes])
    rng, found = np.random.default_rng(0), 0.0
    for trial in range(120):
        share = rng.dirichlet(np.full(len(sizes), (0.1, 1.0, 10.0)[trial % 3])) if trial else s / s.sum()
        ps = np.minimum(1.0, share * MEAN * s.sum() / s)  # sum s p <= n m
        if trial % 4 == 1:  # groups that are certain, one after the other, while the budget lasts
            left, ps = MEAN * s.sum(), np.zeros(s.size)
            for g in rng.permutation(s.size):
                ps[g] = min(1.0, left / s[g])
                left -= ps[g] * s[g]
        law = np.array([np.prod(np.where(np.array(each) > 0, ps, 1 - ps)) for each in outcomes])
        found = max(found, float(law[rejected].sum()))
    return found / level


def bet(largest: float, size: float, scaled: bool = True) -> Wealth:
    def wealth(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
        if not scaled:
            with np.errstate(divide="ignore", invalid="ignore"):
                return float(np.log(np.maximum(1e-300, 1 + size / largest * (sums - MEAN))).sum())
        terms = 1 + size / largest * (sums - sizes * MEAN)
        return -math.inf if np.any(terms <= 0) else log_group_wealth(sums, sizes, largest, size, MEAN)

    return wealth


@pytest.mark.slow
@for_each("sizes", [[1, 1, 1], [2, 2, 2, 2], [1, 2, 3], [3, 3, 1, 1], [1, 1, 2, 3, 3]])
@for_each("level", [0.3, 0.1, 0.02, MEAN**3])
@for_each("size", [0.5, 1.5, 0.999 / MEAN])
def test_the_level_is_kept(sizes: list[int], level: float, size: float) -> None:
    assert worst(bet(max(sizes), size), sizes, level) <= 1.0 + 1e-9


def test_the_bound_is_reached() -> None:
    """Equal sizes, the largest bet, the level m^G."""
    assert worst(bet(2.0, (1 - 1e-12) / MEAN), [2, 2, 2], MEAN**3 * (1 + 1e-6)) > 0.99


def test_a_largest_size_that_is_too_small_exceeds_it() -> None:
    def small(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
        terms = np.maximum(1e-300, 1 + 2.0 / MEAN * 0.5 * (sums - sizes * MEAN))
        return float(np.log(terms).sum())

    assert worst(small, [3, 3, 3], 0.02) > 1.2


def test_a_mean_that_forgets_the_sizes_exceeds_it() -> None:
    assert worst(bet(3.0, 0.999 / MEAN, scaled=False), [3, 3, 3], 0.1) > 1.2


def test_one_bet_on_the_means_of_unequal_groups_exceeds_it() -> None:
    def means(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
        return float(np.log1p(0.5 / MEAN * (sums / sizes - MEAN)).sum())

    assert worst(means, [1, 1, 1, 9], 0.2) > 1.2


def test_a_group_that_is_split_exceeds_it() -> None:
    """Three equal records of a group, taken for three groups."""

    def split(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
        records = np.repeat(sums / sizes, sizes.astype(int))
        return float(np.log1p(0.999 / MEAN * (records - MEAN)).sum())

    assert worst(split, [3, 3], 0.02) > 2.0


@pytest.mark.slow
@for_each("margin", [0.0, 0.1, 0.5])
def test_the_mixture_has_a_mean_of_at_most_one(margin: float) -> None:
    """E W over all outcomes of clusters of differences whose mean is -margin."""
    rng = np.random.default_rng(1)
    for sizes in ([1, 1, 1], [2, 1, 3], [1, 2, 2, 3]):
        s = np.array(sizes, dtype=float)
        for _ in range(50):
            # P(total = size) = u, P(total = -size) = v, else 0; the weighted mean of u - v is -margin
            u = rng.random(s.size) * (1 - margin) / 2
            v = u + margin
            shift = rng.normal(size=s.size) * 0.1
            shift -= (shift @ s) / s.sum()
            v = np.clip(v + shift, 0.0, 1.0 - u)
            if ((u - v) @ s) / s.sum() > -margin:
                v += ((u - v) @ s) / s.sum() + margin
                if np.any(u + v > 1.0):
                    continue
            mean = 0.0
            for each in product((-1.0, 0.0, 1.0), repeat=s.size):
                z = np.array(each)
                p = np.prod(np.where(z > 0, u, np.where(z < 0, v, 1 - u - v)))
                mean += float(p) * math.exp(log_difference_wealth(z * s, s, margin))
            assert mean <= 1.0 + 1e-9
