"""Bets in a random order: level by enumeration, a twin that looks ahead, and widths beside constant bets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from tests.cases import for_each
from thresholdout.limits.bets import bet_lower, placed_bet
from thresholdout.limits.ordered_bets import ordered_lower
from thresholdout.mechanisms.claims.reading import random_order
from thresholdout.noise.sources import SeededNoise

LAW = ((0.0, 0.5, 1.0), (0.5, 0.3, 0.2))


def missed(law: tuple[tuple[float, ...], tuple[float, ...]], n: int, level: float) -> float:
    """Return the probability of a limit above the mean."""
    values, chances = law
    mean = sum(v * p for v, p in zip(values, chances, strict=True))
    total = 0.0
    for draw in itertools.product(range(len(values)), repeat=n):
        x = np.array([values[k] for k in draw])
        if ordered_lower(x, mean, 0.05, math.log(level)) > mean:
            total += math.prod(chances[k] for k in draw)
    return total


@pytest.mark.slow
@for_each("level", [0.1, 0.3])
@for_each("law", [LAW, ((0.0, 0.1, 1.0), (0.6, 0.3, 0.1)), ((0.0, 1.0), (0.8, 0.2))])
def test_the_level_is_kept(law: tuple[tuple[float, ...], tuple[float, ...]], level: float) -> None:
    assert missed(law, 6, level) <= level


def test_an_order_that_depends_on_the_values_is_caught() -> None:
    """Values in falling order: wealth is large on the way, and nearly every sample refutes the truth."""
    rng = np.random.default_rng(4)
    samples = [rng.choice(LAW[0], size=100, p=LAW[1]) for _ in range(50)]
    kept, ahead = (
        sum(ordered_lower(x, 0.35, 0.15, math.log(0.05)) > 0.35 for x in ordered)
        for ordered in (samples, [np.sort(x)[::-1] for x in samples])
    )
    assert kept <= 15  # more with probability 1e-9 at a level of .05
    assert ahead > 40


def test_a_sorted_sample_is_put_in_any_order_with_the_same_probability() -> None:
    seen: dict[tuple[int, ...], int] = {}
    noise = SeededNoise(1)
    for _ in range(6000):
        order = tuple(random_order(3, noise).tolist())
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert all(abs(count - 1000) < 6.2 * math.sqrt(1000 * 5 / 6) for count in seen.values())  # 1e-9 in all


def test_upper_limits_are_mirrored() -> None:
    x = np.random.default_rng(0).beta(2, 5, size=200)
    assert ordered_lower(1.0 - x, 0.7, 0.03, -3.0) == pytest.approx(ordered_lower(x, 0.3, 0.03, -3.0, mirrored=True))


def test_it_is_narrower_than_a_constant_bet() -> None:
    rng, ordered, constant = np.random.default_rng(2), [], []
    for _ in range(20):
        x = rng.beta(1.0, 9.0, size=2000)
        _, bet = placed_bet(0.1, float(x.var()), 0.1, 2000, -math.log(0.025))
        wald = float(norm.isf(0.025)) * x.std() / math.sqrt(2000)
        ordered.append((x.mean() - ordered_lower(x, 0.1, 0.008, math.log(0.025))) / wald)
        constant.append((x.mean() - bet_lower(x, bet, math.log(0.025))) / wald)
    assert np.mean(ordered) < 0.95 * np.mean(constant)


def test_wrong_public_numbers_cost_width_and_nothing_else() -> None:
    x = np.random.default_rng(3).random(500)
    for expected, variance in ((0.01, 1e-9), (0.99, 0.25), (0.5, 1e-9)):
        assert 0.0 <= ordered_lower(x, expected, variance, -3.0) < x.mean()
    assert ordered_lower(np.zeros(10), 0.5, 0.1, -3.0) == 0.0
