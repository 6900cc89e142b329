"""Sums of losses on lattices against exact enumeration, bounds alone, and what intervals say when they are wide."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.privacy.accounting.pld import convolution
from thresholdout.privacy.accounting.pld.convolution import Composed
from thresholdout.privacy.accounting.pld.distribution import (
    PrivacyLossDistribution,
    guaranteed_delta,
    guaranteed_epsilon,
    worst_epsilon,
)
from thresholdout.privacy.accounting.pld.levels import Mixtures
from thresholdout.privacy.accounting.pld.loss_lattice import Lattice, optimistic, pessimistic
from thresholdout.privacy.accounting.pld.minibatch_steps import ReplacedDraws, fswor_pairs, fswr_pairs, poisson_pairs
from thresholdout.privacy.accounting.pld.pairs import (
    Discrete,
    GaussianMixture,
    Laplace,
    OppositeShifts,
    Symmetrised,
    gaussian,
    randomised_response,
)

UP = Lattice(np.array([0.1, 0.2, 0.3, 0.25, 0.1]), -2, 0.25, 0.0, 0.05)
AWAY = Lattice(np.array([0.5, 0.0, 0.0, 0.3, 0.0, 0.2]), -1, 0.25, 0.0, 0.0)
MIXED = Mixtures([], np.array([[0, 1], [1, 1]]), np.array([[0.3, 0.7], [1.0, 0.0]]), np.array([3.0, 2.0]))


def enumerated(epsilon: float) -> mp.mpf:
    """Return delta of three mixtures of UP and AWAY and two of AWAY, 40 digits."""

    def masses(lattice: Lattice, weight: float) -> list[tuple[int, mp.mpf]]:
        return [(lattice.first + i, mp.mpf(float(m)) * weight) for i, m in enumerate(lattice.mass) if m > 0]

    mixture = masses(UP, mp.mpf(0.3)) + masses(AWAY, mp.mpf(0.7))
    infinite, sums = mp.mpf(0.3) * mp.mpf(UP.infinite), {0: mp.mpf(1)}
    for step in [mixture] * 3 + [masses(AWAY, mp.mpf(1))] * 2:
        new: dict[int, mp.mpf] = {}
        for (j, p), (k, q) in itertools.product(sums.items(), step):
            new[j + k] = new.get(j + k, mp.mpf(0)) + p * q
        sums = new
    finite = sum(p * -mp.expm1(epsilon - mp.mpf(j) / 4) for j, p in sums.items() if mp.mpf(j) / 4 > epsilon)
    return finite + 1 - (1 - infinite) ** 3


@for_each("series", [True, False])
@for_each("tilt", [0.0, 0.3, 2.0, 20.0])
def test_sums_on_lattices_exactly(series: bool, tilt: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By geometric series in frequencies, and by the transform back."""
    if not series:
        monkeypatch.setattr(convolution, "_SERIES", 2)
    composed = Composed([UP, AWAY], MIXED, tilt, 1 << 12)
    with mp.workdps(40):
        for epsilon in (0.0, 0.1, 0.25, 1.3, 2.7, 3.99, 4.5):
            exact = enumerated(epsilon)
            lower, upper = composed.delta(epsilon)
            assert lower <= exact <= upper
            if tilt == 2.0 and epsilon < 3:
                assert upper - lower < 1e-7 * exact


def test_a_window_that_is_too_small_leaves_a_bound() -> None:
    composed = Composed([UP, AWAY], MIXED, 0.5, 4)
    assert composed.wide
    for epsilon in (0.0, 1.0, 2.0):
        lower, upper = composed.delta(epsilon)
        assert lower <= enumerated(epsilon) <= upper


PAIRS = [
    {GaussianMixture((1 / 3,), (0.0024,)): 1000},
    {GaussianMixture((1 / 3,), (0.0024,), True): 1000},
    {Symmetrised((0.5,), (1.0,), 0.01): 100},
    {OppositeShifts(0.5, 0.01): 300},
    {Laplace(0.1): 30, gaussian(0.2): 5},
    {randomised_response(0.3, 1e-9): 20},
    {Discrete((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)): 4},
    {fswr_pairs(2.0, 4, 100)[0]: 50, fswr_pairs(3.0, 4, 100)[0]: 50},
]


@pytest.mark.slow
@for_each("steps", PAIRS, ids=lambda steps: type(next(iter(steps))).__name__)
def test_upper_bounds_alone_are_as_close(steps: dict) -> None:  # type: ignore[type-arg]
    distribution = PrivacyLossDistribution(steps)
    both, alone = distribution.epsilon(1e-6, accuracy=1e-3), distribution.guaranteed_epsilon(1e-6, accuracy=1e-3)
    assert both.lower <= alone <= both.lower * (1 + 2e-3)
    delta = distribution.delta(0.3)
    assert delta.lower <= distribution.guaranteed_delta(0.3) <= delta.lower * (1 + 4e-3) + 1e-30


@pytest.mark.slow
def test_upper_bounds_of_the_worst() -> None:
    both = [PrivacyLossDistribution({pair: 500}) for pair in poisson_pairs(1.0, 0.01)]
    assert guaranteed_epsilon(both, 1e-5) == pytest.approx(worst_epsilon(both, 1e-5).upper, rel=2e-4)
    assert guaranteed_delta(both, 1.0) >= max(each.delta(1.0).lower for each in both)


@pytest.mark.parametrize(("size", "delta"), corners([(0.0238, 0.0016336), (0.0012, 3.58e-4), (5.0, 0.4)], 2))
def test_an_epsilon_far_below_the_largest_loss(size: float, delta: float) -> None:
    """A tilt so large that only the largest loss counts said nothing about what is far below: [0, 0.022] before."""
    exact = size + 2 * math.log1p(-delta)
    lower, _, upper = PrivacyLossDistribution([Laplace(size)]).epsilon(delta)
    assert exact * (1 - 1e-4) <= lower <= exact <= upper <= exact * (1 + 1e-4)


@pytest.mark.slow
def test_a_billion_steps_of_little_loss() -> None:
    """Rounding errors count by what they move, not as if all of it were lost: lower bounds were 0."""
    for total, exact in ((1e-3, 0.002718219088813995), (1.0, 4.3771779)):
        found = PrivacyLossDistribution({gaussian(total / math.sqrt(1e9)): 10**9}).epsilon(
            1e-6 if total < 1 else 1e-5, accuracy=1e-4
        )
        assert 0.7 * exact < found.lower < found.upper < 1.3 * exact
        assert found.lower <= exact * (1 + 1e-4)
        assert found.upper >= exact * (1 - 1e-4)
        assert "lattice" in found.reason


def test_reasons() -> None:
    assert PrivacyLossDistribution([gaussian(1.0)]).epsilon(1e-5).reason == ""
    found = PrivacyLossDistribution([randomised_response(0.5, 1e-3)]).epsilon(1e-4)
    assert found.upper == math.inf
    assert "infinite" in found.reason


@pytest.mark.slow
def test_the_reason_of_a_wide_interval() -> None:
    tiny = PrivacyLossDistribution([fswor_pairs(0.6, 5e-7)[1]]).epsilon(1e-12)
    assert tiny.upper > tiny.lower * 2
    assert "too long" in tiny.reason


def test_rates_count_draws_that_are_left_out() -> None:
    pair = fswr_pairs(1.0, 200, 201, "replace_one", omitted=1e-3)[0]
    assert isinstance(pair, ReplacedDraws)
    assert math.fsum(pair.weights) + pair.omitted >= -math.expm1(200 * math.log1p(-1 / 201))
    assert pair.loss(1e-9).infinite >= pair.omitted >= 1e-3


def test_bins_wider_than_exponents_can_be() -> None:
    """Losses that are thousands apart in one bin: outcomes far from its point are left out."""
    loss = gaussian(60.0).loss(1e-10)
    lower = optimistic(loss, pessimistic(loss, 1500.0))
    assert 0.0 <= lower.mass.sum() <= 1.0
    assert math.isfinite(lower.offset)


def test_losses_below_a_piece_are_raised() -> None:
    for pair in (GaussianMixture((0.5,), (0.3,), True), GaussianMixture((0.5,), (0.3,)), OppositeShifts(0.5, 0.3)):
        loss = pair.loss(1e-9)
        lowest = float(loss.pieces[0].loss(np.array([loss.pieces[0].low]))[0])
        assert lowest < loss.below[0][0] < lowest + 1e-10


@pytest.mark.slow
def test_roundoff_of_small_shifts_is_small() -> None:
    """What rounding adds to losses goes with the shift: 1e8 steps still have a close bound."""
    count, total = 10**8, 0.5
    found = PrivacyLossDistribution({gaussian(total / math.sqrt(count)): count}).delta(1.0)
    with mp.workdps(30):
        exact = mp.ncdf(total / 2 - 1 / total) - mp.e * mp.ncdf(-total / 2 - 1 / total)
    assert found.lower <= exact <= found.upper
    assert found.upper <= 1.05 * exact
    assert found.lower >= 0.95 * exact


def test_losses_that_are_all_the_same() -> None:
    """The mixture is far away from N(0, 1): what is left of the loss is ``-log`` of the weight that did not move."""
    shifts, weights = (17.429, 34.858, 52.288), (0.26333976437986606, 0.4384026993568675, 0.21213603299537515)
    lower, _, upper = PrivacyLossDistribution([GaussianMixture(shifts, weights, True)]).delta(0.0, accuracy=0.01)
    assert lower <= sum(weights) + 1e-12
    assert lower >= sum(weights) - 1e-6
    assert upper >= sum(weights) * (1 - 1e-12)


@for_each("added", [False, True])
@for_each("shift", [8.0, 20.0, 60.0])
def test_large_shifts(shift: float, added: bool) -> None:
    pair = GaussianMixture((shift,), (0.3,), added)
    for epsilon in (0.0, 0.2):
        lower, _, upper = PrivacyLossDistribution([pair]).delta(epsilon, accuracy=0.05)
        with mp.workdps(60):
            level = mp.e ** mp.mpf(-epsilon if added else epsilon)
            inner, a = 1 + (level - 1) / mp.mpf(0.3), mp.mpf(shift)
            e = mp.log(inner)
            exact = mp.mpf(0.3) * (mp.ncdf(a / 2 - e / a) - inner * mp.ncdf(-a / 2 - e / a))
            exact = 1 - 1 / level + exact / level if added else exact
        assert lower <= exact * (1 + mp.mpf(10) ** -12) <= upper * (1 + mp.mpf(10) ** -12)
