"""The distribution of the noise, two-sided, on fixed samples.

The distance between an empirical and the true distribution function exceeds ``sqrt(ln(2/rate)/(2n))`` with
probability at most ``rate``, for every law and every n (Dvoretzky, Kiefer, Wolfowitz; Massart's constant), so the
error rate of 1e-9 is exact and not asymptotic. A scale that is 30 % wrong is 0.048 away.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from pydp.distributions import LaplaceDistribution
from scipy.stats import binomtest

from tests.oracles.noise import rational_laplace
from thresholdout.noise.sources import SeededNoise, SystemNoise

pytestmark = pytest.mark.statistical

RATE = 1e-9
SIZE = 100_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(100), Fraction(5 * 2**38 + 1), Fraction(2**47)]


def distance(draws: NDArray[np.int64], scale: Fraction | float) -> float:
    """The largest gap between the empirical and the true distribution function."""
    values, counts = np.unique(draws, return_counts=True)
    upto = np.cumsum(counts) / draws.size
    before = upto - counts / draws.size
    return float(max(np.abs(upto - below(values, scale)).max(), np.abs(before - below(values - 1, scale)).max()))


def below(k: NDArray[np.int64], scale: Fraction | float) -> NDArray[np.float64]:
    """P(L <= k)."""
    s = float(scale)
    positive = 1 - np.exp(-(np.maximum(k, 0) + 1) / s) / (1 + math.exp(-1 / s))
    negative = np.exp(np.minimum(k, 0) / s) / (1 + math.exp(-1 / s))
    return np.where(k >= 0, positive, negative)


def allowed(size: int) -> float:
    return math.sqrt(math.log(2 / RATE) / (2 * size))


def one_by_one(scale: Fraction) -> NDArray[np.int64]:
    noise = SeededNoise(23)
    return np.array([noise.laplace(scale) for _ in range(SIZE)])


def in_batches(scale: Fraction) -> NDArray[np.int64]:
    return SeededNoise(29).laplace_array(scale, SIZE)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("draw", [one_by_one, in_batches])
def test_the_law(draw: Callable[[Fraction], NDArray[np.int64]], scale: Fraction) -> None:
    draws = draw(scale)
    assert distance(draws, scale) <= allowed(SIZE)


@pytest.mark.parametrize("scale", [scale for scale in SCALES if scale >= 1])
@pytest.mark.parametrize("factor", [1.3, 1 / 1.3])
def test_a_scale_that_is_30_percent_wrong_is_rejected(scale: Fraction, factor: float) -> None:
    assert distance(in_batches(scale), float(scale) * factor) > allowed(SIZE)


def test_the_entropy_of_the_operating_system_gives_the_same_law() -> None:
    scale = Fraction(5 * 2**38 + 1)
    assert distance(SystemNoise().laplace_array(scale, SIZE), scale) <= allowed(SIZE)


def test_a_large_scale_reaches_every_low_bit() -> None:
    """Residues modulo 2, 4, ..., 2**20 are uniform up to a relative 2**-20, and their bits independent."""
    draws = in_batches(Fraction(5 * 2**38 + 1))
    bits = (draws[:, None] >> np.arange(20)) & 1
    tests = [int(bits[:, j].sum()) for j in range(20)]
    tests += [int((bits[:, j] ^ bits[:, k]).sum()) for j in range(20) for k in range(j)]
    assert min(binomtest(count, SIZE, 0.5).pvalue for count in tests) > RATE / len(tests)


@pytest.mark.parametrize("lag", [1, 2, 2048, 4096])
def test_draws_do_not_depend_on_earlier_ones(lag: int) -> None:
    """Signs and sizes (above the median or not) of pairs of draws."""
    draws = in_batches(Fraction(2**40))
    large = np.abs(draws) > np.median(np.abs(draws))
    for feature in (draws > 0, large):
        agree = int((feature[:-lag] == feature[lag:]).sum())
        assert binomtest(agree, SIZE - lag, 0.5).pvalue > RATE


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5, 2), Fraction(1000)])
def test_the_exact_twin_has_the_same_law(scale: Fraction) -> None:
    rng = random.Random(31)
    draws = np.array([rational_laplace(scale, rng) for _ in range(20_000)])
    assert distance(draws, scale) <= allowed(20_000)


def test_a_second_opinion() -> None:
    """Google's differential privacy library: sensitivity 100, epsilon 1, hence scale 100, unseeded."""
    theirs = LaplaceDistribution(epsilon=1.0, sensitivity=100.0)
    sample = np.sort([theirs.sample() for _ in range(SIZE)])
    ours = np.sort(in_batches(Fraction(100)).astype(np.float64))
    # Half a step of continuity: ours is a rounded number, theirs lies on a far finer grid.
    points = np.arange(-1000, 1001) + 0.5
    gap = np.abs(np.searchsorted(sample, points) - np.searchsorted(ours, points)).max() / SIZE
    rounding = 0.5 / 100
    assert gap <= 2 * allowed(SIZE) + rounding / 2
    wrong = np.abs(np.searchsorted(1.3 * sample, points) - np.searchsorted(ours, points)).max() / SIZE
    assert wrong > 2 * allowed(SIZE) + rounding / 2
