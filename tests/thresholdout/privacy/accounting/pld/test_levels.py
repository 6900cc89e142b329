"""Schedules of many noises: mixtures of levels dominate, rounded shifts are dominated, and both stay close."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from benchmarks.papers.minibatch_epsilons import pld_fswor, pld_poisson
from tests.cases import for_each
from tests.sizes import corners, sizes
from thresholdout.privacy.accounting.accountants.distribution_accountant import DistributionAccountant
from thresholdout.privacy.accounting.events.composed_events import Composed
from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import WithoutReplacementGaussianStep
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution
from thresholdout.privacy.accounting.pld.levels import dominated, dominating
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs
from thresholdout.privacy.accounting.pld.pairs import GaussianMixture, Laplace, OppositeShifts, Symmetrised, gaussian


def divergence(pair: DominatingPair, level: mp.mpf) -> mp.mpf:
    """Return H_g of ``(1-q) N(0) + q N(a)`` against N(0), or of the reverse, g above 0, in closed form."""
    assert isinstance(pair, GaussianMixture)
    a, q = mp.mpf(pair.shifts[0]), mp.mpf(pair.weights[0])
    if pair.added:
        return 1 - level + level * divergence(GaussianMixture(pair.shifts, pair.weights), 1 / level)
    inner = 1 + (level - 1) / q
    if inner <= 0:
        return 1 - level
    e = mp.log(inner)
    return q * (mp.ncdf(a / 2 - e / a) - inner * mp.ncdf(-a / 2 - e / a))


def opposite_divergence(pair: DominatingPair, level: mp.mpf) -> mp.mpf:
    """Return H_g of ``(1-q) N(0) + q N(a)`` against the same with -a; the density ratio is g at t."""
    assert isinstance(pair, OppositeShifts)
    a, q = mp.mpf(pair.shift), mp.mpf(pair.rate)
    small, middle = q * mp.exp(-(a**2) / 2), (1 - q) * (1 - level)  # small x^2 + middle x - small level = 0
    t = mp.log((mp.sqrt(middle**2 + 4 * level * small**2) - middle) / (2 * small)) / a
    return (1 - q) * (1 - level) * mp.ncdf(-t) + q * (mp.ncdf(a - t) - level * mp.ncdf(-a - t))


@pytest.mark.parametrize("q", corners([1e-4, 0.1, 0.99, 1.0], 1))
def test_mixtures_of_opposite_shifts_dominate(q: float) -> None:
    rng = np.random.default_rng(2)
    shifts = np.exp(rng.uniform(math.log(0.01), math.log(6.0), 400)).tolist()
    steps: dict[DominatingPair, int] = {OppositeShifts(shift, q): 1 for shift in shifts}
    above = dominating(steps, 0.02)
    assert len(above.pairs) < 200
    with mp.workdps(40):
        for row, pair in list(enumerate(steps))[::40]:
            for level in (0.05, 0.9, 1 + q / 100, 1 + q, 1.5, 20.0):
                g = mp.mpf(level)
                parts = [opposite_divergence(above.pairs[i], g) for i in above.columns[row]]
                mixed = sum(mp.mpf(float(w)) * h for w, h in zip(above.weights[row], parts, strict=True))
                assert mixed >= opposite_divergence(pair, g) * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -30


def test_means_are_twice_the_shift_apart() -> None:
    """With the weights of means one shift apart mixtures would be too small."""
    low, middle, high, g = 0.5, 1.0, 1.5, mp.mpf(1)
    below, at, above = (opposite_divergence(OppositeShifts(shift, 0.1), g) for shift in (low, middle, high))
    wrong = (ndtr(middle / 2) - ndtr(low / 2)) / (ndtr(high / 2) - ndtr(low / 2))
    right = (ndtr(middle) - ndtr(low)) / (ndtr(high) - ndtr(low))
    assert (1 - wrong) * below + wrong * above < at * (1 - mp.mpf("0.01"))
    assert (1 - right) * below + right * above >= at * (1 - mp.mpf("1e-14"))


@for_each(("shift", "rate"), [(1.0, 0.1), (0.2, 1e-3), (3.0, 0.999), (8.0, 1e-5), (1.0, 1.0)])
def test_outcomes_of_opposite_losses(shift: float, rate: float) -> None:
    (piece,) = OppositeShifts(shift, rate).loss(1e-12).pieces
    losses = piece.loss(np.linspace(piece.low, piece.high, 301))
    assert piece.inverse is not None
    assert piece.loss(piece.inverse(losses)) == pytest.approx(losses, rel=1e-12, abs=1e-14)


@pytest.mark.slow
def test_a_schedule_of_replaced_records() -> None:
    """Bounds from levels hold those of every step on a lattice of its own, and are not much further apart."""
    sigmas = np.linspace(2.0, 6.0, 40).tolist()
    found = pld_poisson(sigmas, 5, 1e-5, q=0.01, adjacency="replace_one", accuracy=1e-2)
    fine = pld_poisson(sigmas, 5, 1e-5, q=0.01, adjacency="replace_one", accuracy=1e-5)
    assert found.lower <= fine.upper
    assert fine.lower <= found.upper <= fine.upper * (1 + 1.5e-2)


@pytest.mark.slow
@for_each("added", [False, True])
@for_each("q", [1e-4, 0.1, 0.99, 1.0])
def test_mixtures_dominate_and_rounded_shifts_are_dominated(q: float, added: bool) -> None:
    rng = np.random.default_rng(0)
    shifts = np.exp(rng.uniform(math.log(0.01), math.log(6.0), 400)).tolist()
    steps: dict[DominatingPair, int] = {GaussianMixture((shift,), (q,), added): 1 for shift in shifts}
    above = dominating(steps, 0.02)
    assert len(above.pairs) < 200
    with mp.workdps(40):
        for row, pair in list(enumerate(steps))[::40]:
            for level in (0.05, 0.9, 1 + q / 100, 1 + q, 1.5, 20.0):
                g = mp.mpf(level)
                parts = [divergence(above.pairs[i], g) for i in above.columns[row]]
                mixed = sum(mp.mpf(float(w)) * h for w, h in zip(above.weights[row], parts, strict=True))
                assert mixed >= divergence(pair, g) * (1 - mp.mpf(10) ** -15) - mp.mpf(10) ** -30


@sizes("answers", 40, 300)
def test_a_schedule_of_gaussian_answers_is_one(answers: int) -> None:
    rng = np.random.default_rng(1)
    shifts = np.exp(rng.uniform(math.log(0.01), math.log(0.2), answers)).tolist()
    total = math.sqrt(math.fsum(shift**2 for shift in shifts))
    exact = brentq(lambda e: ndtr(total / 2 - e / total) - math.exp(e) * ndtr(-total / 2 - e / total) - 1e-6, 0, 50)
    found = PrivacyLossDistribution([gaussian(shift) for shift in shifts]).epsilon(1e-6, accuracy=1e-3)
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= 1.5e-3 * exact
    events = [GaussianAnswer(1 / shift) for shift in shifts]
    assert DistributionAccountant().compose(Composed(events)).epsilon(1e-6) == pytest.approx(exact, rel=1e-4)


@pytest.mark.slow
def test_a_schedule_of_minibatches() -> None:
    sigmas = np.linspace(3, 12, 100).tolist()
    found = pld_fswor(sigmas, 5, 1e-5, q=0.0024, accuracy=1e-3)
    assert found.upper - found.lower <= 1.5e-3 * found.upper
    # All steps with the largest noise cost less, with the smallest more.
    alone = [PrivacyLossDistribution({fswor_pairs(s, 0.0024)[0]: 500}).epsilon(1e-5).upper for s in (3.0, 12.0)]
    assert min(alone) < found.upper < max(alone)
    accountant = DistributionAccountant("add_remove", accuracy=1e-3)
    accountant.compose(Composed(WithoutReplacementGaussianStep(s, 120, 50_000) for s in sigmas), 5)
    assert found.lower <= accountant.epsilon(1e-5) <= found.upper * (1 + 1e-3)


def test_few_or_different_pairs_are_kept() -> None:
    steps: dict[DominatingPair, int] = {gaussian(1.0): 2, Laplace(0.5): 1, Symmetrised((0.5,), (1.0,), 0.1): 3}
    for found in (dominating(steps, 1e-4), dominated(steps)):
        assert set(found.pairs) == set(steps)
        assert found.counts.tolist() == [2, 1, 3]
        assert all(found.pairs[columns[0]] == pair for columns, pair in zip(found.columns, steps, strict=True))


def test_lower_levels_are_below() -> None:
    steps: dict[DominatingPair, int] = {gaussian(s): 1 for s in np.geomspace(0.1, 5.0, 1500).tolist()}
    found = dominated(steps)
    assert sum(found.counts) == 1500
    ordered = sorted(pair.shifts[0] for pair in steps if isinstance(pair, GaussianMixture))
    rounded = sorted(
        shift
        for pair, count in zip(found.pairs, found.counts, strict=True)
        for shift in [pair.shifts[0]] * int(count)  # type: ignore[attr-defined]
    )
    assert all(low <= high <= low * 1.01 for low, high in zip(rounded, ordered, strict=True))


@for_each("farthest", [1e-3, 1.0, 20.0, 50.0, 120.0, 400.0])
def test_weights_of_levels_are_never_rounded_down(farthest: float) -> None:
    """At distances of 100 and more they once were, by up to 1e-10 of themselves."""
    shifts = farthest * np.linspace(0.8, 1.0, 100)
    mixed = dominating({gaussian(shift): 1 for shift in shifts.tolist()}, 0.9)
    assert len(mixed.pairs) < 30
    levels = [pair.shifts[0] for pair in mixed.pairs if isinstance(pair, GaussianMixture)]
    with mp.workdps(60):
        for shift, (first, second), weights in zip(shifts.tolist(), mixed.columns, mixed.weights, strict=True):
            low, middle, high = (mp.erfc(mp.mpf(s) / mp.sqrt(8)) for s in (levels[first], shift, levels[second]))
            assert weights[1] >= min((low - middle) / (low - high), 1)
