"""The distribution of rounded Gaussian noise, two-sided, on fixed samples.

As for the Laplace noise: the distance between an empirical and the true distribution function exceeds
``sqrt(ln(2/rate)/(2n))`` with probability at most ``rate`` (Dvoretzky, Kiefer, Wolfowitz; Massart's constant), for
every law and every n. The error rate is 1e-9; a scale that is 30 % wrong is 0.06 away.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, norm

from tests.oracles.normal import karney_normal, rounded_below
from tests.sizes import corners
from thresholdout.noise.sources import SeededNoise, SystemNoise

pytestmark = pytest.mark.statistical

RATE = 1e-9
SIZE = 40_000
CASES = [
    (Fraction(0), Fraction(1)),
    (Fraction(3, 10), Fraction(2, 5)),
    (Fraction(7, 3), Fraction(1, 50)),
    (Fraction(-5, 2), Fraction(22, 7)),
    (Fraction(10**12 + 1, 3), Fraction(2**40 + 1, 5)),
]


def sample(centre: Fraction, scale: Fraction) -> NDArray[np.int64]:
    noise = SeededNoise(41)
    return np.array([noise.rounded_gaussian(centre, scale) for _ in range(SIZE)])


def distance(draws: NDArray[np.int64], centre: Fraction, scale: Fraction) -> float:
    """The largest gap between the empirical and the true distribution function."""
    values, counts = np.unique(draws, return_counts=True)
    upto = np.cumsum(counts) / draws.size
    before = upto - counts / draws.size
    true = np.array([rounded_below(int(k), centre, scale) for k in values])
    true_before = np.array([rounded_below(int(k) - 1, centre, scale) for k in values])
    return float(max(np.abs(upto - true).max(), np.abs(before - true_before).max()))


def allowed(size: int) -> float:
    return math.sqrt(math.log(2 / RATE) / (2 * size))


@pytest.mark.parametrize(("centre", "scale"), CASES)
def test_the_law(centre: Fraction, scale: Fraction) -> None:
    assert distance(sample(centre, scale), centre, scale) <= allowed(SIZE)


@pytest.mark.parametrize("factor", [Fraction(13, 10), Fraction(10, 13)])
@pytest.mark.parametrize(("centre", "scale"), corners([CASES[0], CASES[3], CASES[4]], 0, 1))
def test_a_scale_that_is_30_percent_wrong_is_rejected(centre: Fraction, scale: Fraction, factor: Fraction) -> None:
    assert distance(sample(centre, scale), centre, factor * scale) > allowed(SIZE)


def test_the_entropy_of_the_operating_system_gives_the_same_law() -> None:
    noise, (centre, scale) = SystemNoise(), CASES[4]
    draws = np.array([noise.rounded_gaussian(centre, scale) for _ in range(SIZE)])
    assert distance(draws, centre, scale) <= allowed(SIZE)


def test_noise_on_a_rounded_mean_has_another_law() -> None:
    """What must not be done: round the mean first and add an integer that is a rounded normal number."""
    centre, scale = CASES[1]
    noise = SeededNoise(43)
    draws = np.array([round(centre) + noise.rounded_gaussian(Fraction(0), scale) for _ in range(SIZE)])
    assert distance(draws, centre, scale) > allowed(SIZE)


def test_far_tails() -> None:
    """Draws beyond three standard deviations, by an exact binomial test; a tail of degree two would be rejected."""
    beyond = int((np.abs(sample(Fraction(0), Fraction(2**40))) > 3 * 2**40).sum())
    assert binomtest(beyond, SIZE, 2 * norm.sf(3)).pvalue > RATE
    assert binomtest(beyond, SIZE, 4 * norm.sf(3)).pvalue <= RATE


def test_every_low_bit_is_fair() -> None:
    draws = sample(Fraction(0), Fraction(2**60))
    bits = (draws[:, None] >> np.arange(40)) & 1
    counts = [int(bits[:, j].sum()) for j in range(40)]
    counts += [int((bits[:, j] ^ bits[:, j + 1]).sum()) for j in range(39)]
    assert min(binomtest(count, SIZE, 0.5).pvalue for count in counts) > RATE / len(counts)


@pytest.mark.parametrize("lag", [1, 2, 4096])
def test_draws_do_not_depend_on_earlier_ones(lag: int) -> None:
    draws = sample(Fraction(0), Fraction(2**40))
    large = np.abs(draws) > np.median(np.abs(draws))
    for feature in (draws > 0, large):
        agree = int((feature[:-lag] == feature[lag:]).sum())
        assert binomtest(agree, SIZE - lag, 0.5).pvalue > RATE


def test_the_exact_twin_has_the_same_law() -> None:
    """Another exact sampler, without transcendental functions, against the law and against ours."""
    rng, size = random.Random(47), 10_000
    theirs = np.array([karney_normal(rng, 40) for _ in range(size)])
    # Its floor instead of our nearest integer: half a step of 2**-40.
    assert distance(theirs, Fraction(-1, 2), Fraction(2**40)) <= allowed(size)
    assert distance(theirs, Fraction(-1, 2), Fraction(2**40) * 13 / 10) > allowed(size)
