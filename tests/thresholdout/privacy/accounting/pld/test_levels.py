"""Schedules of many noises: mixtures of levels dominate, rounded shifts are dominated, and both stay close."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from thresholdout.privacy.accounting.accountants.distribution_accountant import DistributionAccountant
from thresholdout.privacy.accounting.events.composed_events import Composed
from thresholdout.privacy.accounting.events.event_types import GaussianAnswer
from thresholdout.privacy.accounting.events.learning_steps import WithoutReplacementGaussianStep
from thresholdout.privacy.accounting.pld.atomic_pairs import Laplace
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution
from thresholdout.privacy.accounting.pld.gaussian_pairs import GaussianMixture, Symmetrised, gaussian
from thresholdout.privacy.accounting.pld.levels import dominated, dominating
from thresholdout.privacy.accounting.pld.loss import DominatingPair
from thresholdout.privacy.accounting.pld.minibatch_steps import fswor_pairs, pld_fswor


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


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("q", [1e-4, 0.1, 0.99, 1.0])
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


def test_a_schedule_of_gaussian_answers_is_one() -> None:
    rng = np.random.default_rng(1)
    shifts = np.exp(rng.uniform(math.log(0.01), math.log(0.2), 300)).tolist()
    total = math.sqrt(math.fsum(shift**2 for shift in shifts))
    exact = brentq(lambda e: ndtr(total / 2 - e / total) - math.exp(e) * ndtr(-total / 2 - e / total) - 1e-6, 0, 50)
    found = PrivacyLossDistribution([gaussian(shift) for shift in shifts]).epsilon(1e-6, accuracy=1e-3)
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= 1.5e-3 * exact
    answers = [GaussianAnswer(1 / shift) for shift in shifts]
    assert DistributionAccountant().compose(Composed(answers)).epsilon(1e-6) == pytest.approx(exact, rel=1e-4)


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
