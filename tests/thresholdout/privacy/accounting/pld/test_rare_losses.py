"""Sums in which rare losses decide: against enumeration in many digits, and where rounding errors hid them."""

import math
from collections.abc import Sequence

import mpmath as mp
import numpy as np
import pytest

from tests.cases import for_each
from tests.sizes import corners
from thresholdout.privacy.accounting.pld.convolution import Composed
from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution, guaranteed_epsilon
from thresholdout.privacy.accounting.pld.levels import Mixtures
from thresholdout.privacy.accounting.pld.loss_lattice import Lattice
from thresholdout.privacy.accounting.pld.minibatch_steps import poisson_pairs
from thresholdout.privacy.accounting.pld.pairs import GaussianMixture
from thresholdout.privacy.accounting.pld.rare_losses import Cut, WithRare

STEP = 2.0**-6
ONE = Lattice(np.array([0.2, 0.5, 0.3, 0.0, 0.0, 3e-11, 0.0, 2e-11, 1e-11]), -1, STEP, 0.0, 1e-15)
TWO = Lattice(np.array([0.1, 0.1, 0.4, 0.2, 0.2 - 4e-12, 0.0, 0.0, 4e-12]), -3, STEP, 1e-3, 0.0)
NONE = Lattice(np.array([0.3, 0.4, 0.2, 0.1]), -2, STEP, 0.0, 0.0)  # no loss of it is rare
MANY = Lattice(np.array([0.2, 0.5, 0.3, 0.0, 0.0, 3e-7, 0.0, 2e-7, 1e-7]), -1, STEP, 0.0, 0.0)
CUT = Cut(3.5 * STEP, 300.0)


def steps(counts: Sequence[int]) -> Mixtures:
    """Return steps that draw one lattice each."""
    columns = np.array([[i, i] for i in range(len(counts))])
    weights = np.array([[1.0, 0.0]] * len(counts))
    return Mixtures([], columns, weights, np.array(counts, dtype=np.float64))


def enumerated(lattices: Sequence[Lattice], counts: Sequence[int], epsilon: float) -> mp.mpf:
    """Return delta, 40 digits."""
    sums, finite, offset = {0: mp.mpf(1)}, mp.mpf(1), mp.mpf(0)
    for lattice, count in zip(lattices, counts, strict=True):
        for _ in range(count):
            new: dict[int, mp.mpf] = {}
            for j, p in sums.items():
                for k, mass in enumerate(lattice.mass.tolist(), lattice.first):
                    if mass > 0:
                        new[j + k] = new.get(j + k, mp.mpf(0)) + p * mp.mpf(mass)
            sums = new
        finite *= (1 - mp.mpf(lattice.infinite)) ** count
        offset += count * mp.mpf(lattice.offset)
    gaps = [(p, mp.mpf(j) * mp.mpf(STEP) + offset - mp.mpf(epsilon)) for j, p in sums.items()]
    return mp.fsum(p * -mp.expm1(-gap) for p, gap in gaps if gap > 0) + 1 - finite


@pytest.mark.parametrize("tilt", corners([0.0, 2.0, 20.0], 1))
@for_each(
    ("lattices", "counts"),
    [
        ([ONE], [1]),
        ([ONE], [5]),
        ([ONE, TWO], [3, 4]),
        ([ONE, TWO], [1, 1]),
        ([TWO], [12]),
        ([ONE, NONE], [3, 4]),
        ([NONE, TWO, ONE], [1, 2, 1]),
    ],
)
def test_sums_with_rare_losses_exactly(lattices: list[Lattice], counts: list[int], tilt: float) -> None:
    composed = WithRare(lattices, steps(counts), tilt, 1 << 12, CUT)
    with mp.workdps(40):
        for epsilon in (0.0, 0.02, 0.05, 0.1, 0.21, 0.3):
            exact = enumerated(lattices, counts, epsilon)
            lower, upper = composed.delta(epsilon)
            assert lower <= exact * (1 + mp.mpf(10) ** -14)
            assert exact <= upper


def test_bounds_are_close_relative_to_rare_losses() -> None:
    """Those of all sums together are not, as rounding errors are larger than this delta."""
    rare = Lattice(np.append(np.array([0.2, 0.5, 0.3]), np.zeros(40)), -1, STEP, 0.0, 0.0)
    rare.mass[-1] = 1e-22
    with mp.workdps(40):
        exact = enumerated([rare], [8], 0.55)
        lower, upper = WithRare([rare], steps([8]), 0.0, 1 << 12, Cut(0.4, 2000.0)).delta(0.55)
        assert lower <= exact <= upper <= exact * 1.000001
        assert lower >= exact * 0.999999
        assert Composed([rare], steps([8]), 0.0, 1 << 12).delta(0.55)[1] > 1e6 * exact


def test_what_sums_without_rare_losses_add_is_needed() -> None:
    """Without it the upper bound would be below what is exact."""
    with mp.workdps(40):
        exact = enumerated([ONE], [5], 0.05)
        composed = WithRare([ONE], steps([5]), 2.0, 1 << 12, CUT)
        assert super(WithRare, composed).delta(0.05)[1] < 1e-6 * exact
        assert composed.delta(0.05)[1] >= exact


def test_losses_that_are_not_rare_leave_a_bound() -> None:
    composed = WithRare([TWO], steps([3]), 0.0, 1 << 12, Cut(-3.5 * STEP, 1.0))
    assert composed.wide
    with mp.workdps(40):
        for epsilon in (0.0, 0.05):
            lower, upper = composed.delta(epsilon)
            assert lower <= enumerated([TWO], [3], epsilon) <= upper
    nothing = WithRare([TWO], steps([3]), 0.0, 1 << 12, Cut(1.0, 1.0))
    assert nothing.empty
    with mp.workdps(40):
        assert nothing.delta(0.05)[1] >= enumerated([TWO], [3], 0.05)


@for_each(("lattices", "counts"), [([MANY, NONE], [3, 4]), ([NONE, MANY, NONE], [1, 2, 1])])
@for_each("tilt", [0.0, 2.0])
def test_steps_without_rare_losses_do_not_hide_those_of_others(
    lattices: list[Lattice], counts: list[int], tilt: float
) -> None:
    composed = WithRare(lattices, steps(counts), tilt, 1 << 12, Cut(CUT.loss, 1000.0))
    with mp.workdps(40):
        for epsilon in (0.12, 0.14, 0.15):
            exact = enumerated(lattices, counts, epsilon)
            lower, upper = composed.delta(epsilon)
            assert 0.99 * upper <= exact <= upper
            assert 0.99 * exact <= lower <= exact


@pytest.mark.slow
def test_more_steps_never_leak_less() -> None:
    """34 steps whose losses are all small beside 5,018 of rare, large ones once brought epsilon down to 0."""
    large, small = GaussianMixture((1.25,), (1.6e-4,)), GaussianMixture((0.26,), (1.3e-4,))
    least = PrivacyLossDistribution({large: 5018}).epsilon(2.7e-5, accuracy=0.01).lower
    assert 0.06 < least < PrivacyLossDistribution({large: 5018, small: 34}).guaranteed_epsilon(2.7e-5) < 0.067


SETTINGS = [
    (0.9511441966478459, 1.4017197384627887e-05, 30, 1.6290477614121962e-12, 0.00747),
    (0.7410110281271037, 5.66019692966193e-05, 4734, 2.75055339198015e-12, 0.60622),
    (1.096931868003315, 0.00030998687313276053, 3, 5.329617128333396e-11, 0.041302),
]


@pytest.mark.parametrize(("sigma", "q", "count", "delta", "most"), corners(SETTINGS, 0, 2))
def test_rare_losses_at_tiny_deltas(sigma: float, q: float, count: int, delta: float, most: float) -> None:
    """One large loss alone is nearly all of delta, so upper bounds cannot be much smaller."""
    found = guaranteed_epsilon([PrivacyLossDistribution({pair: count}) for pair in poisson_pairs(sigma, q)], delta)
    assert 0.8 * delta <= one_large_loss(sigma, q, count, found) <= delta
    assert found <= most


@pytest.mark.slow
def test_rounding_errors_do_not_make_epsilon_too_small() -> None:
    """dp-accounting has 0.58566 by default, and more on finer cells: one large loss alone shows more."""
    sigma, q, count, delta, _ = SETTINGS[1]
    assert one_large_loss(sigma, q, count, 0.58566) > 1.05 * delta
    removed = PrivacyLossDistribution({poisson_pairs(sigma, q)[0]: count})
    assert removed.epsilon(delta, accuracy=0.05).lower > 0.58566


def one_large_loss(sigma: float, q: float, count: int, epsilon: float) -> float:
    """Return at most delta when a record is removed: of sums with exactly one large loss, each of the others below.

    ``E (1 - c exp(-S))_+ >= (1 - c E exp(-S))_+`` for the sum S of the others, by convexity.
    """

    def outcomes(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        t, width = np.linspace(low, high, 200_001, retstep=True)
        loss = np.log1p(q * np.expm1(t / sigma - 0.5 / sigma**2))
        density = np.exp(-0.5 * t**2) * (1 - q) + q * np.exp(-0.5 * (t - 1 / sigma) ** 2)
        return loss, density * float(width) / math.sqrt(2 * math.pi)

    usual, weights = outcomes(-10.0, 4.0)
    large, chances = outcomes(4.0, 14.0)
    mass = float(weights.sum())
    shrunk = float(weights @ np.exp(-usual)) / mass
    kept = np.maximum(1 - np.exp(epsilon - large) * shrunk ** (count - 1), 0.0)
    return float(count * mass ** (count - 1) * (chances @ kept))
