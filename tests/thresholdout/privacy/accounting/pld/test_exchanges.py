"""Bins that draw from their neighbours: never more divergence, in exact arithmetic, and hardly less."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from tests.cases import for_each
from thresholdout.privacy.accounting.pld.loss import DominatingPair, Floats
from thresholdout.privacy.accounting.pld.loss_lattice import exchanged, optimistic, pessimistic
from thresholdout.privacy.accounting.pld.pairs import GaussianMixture, Laplace, OppositeShifts, Symmetrised


def divergence(masses: list[tuple[mp.mpf, mp.mpf]], level: mp.mpf) -> mp.mpf:
    """Return ``sum (p - level q)_+``."""
    return sum((max(p - level * q, mp.mpf(0)) for p, q in masses), mp.mpf(0))


def largest_excess(mass: Floats, gain: Floats, found: Floats, step: float) -> mp.mpf:
    """Return by how much divergences of the masses found are above those of the bins, at most.

    Both are piecewise linear in the level, with kinks at the exponentials of the losses.
    """
    with mp.workdps(50):
        factor = [mp.exp(mp.mpf(step) * j) for j in range(mass.size)]
        bins = [
            (mp.mpf(p), (mp.mpf(p) - mp.mpf(g)) / f)
            for p, g, f in zip(mass.tolist(), gain.tolist(), factor, strict=True)
        ]
        lattice = [(mp.mpf(p), mp.mpf(p) / f) for p, f in zip(found.tolist(), factor, strict=True)]
        levels = [mp.mpf(0), *(p / q for p, q in (*bins, *lattice) if q > 0)]
        return max(divergence(lattice, level) - divergence(bins, level) for level in levels)


def random_bins(seed: int) -> tuple[Floats, Floats, float]:
    """Return masses, gains and a width; some bins are empty, steep, or far from their points."""
    rng = np.random.default_rng(seed)
    size, step = int(rng.integers(1, 14)), float(10.0 ** rng.uniform(-6, 0.3))
    mass = rng.dirichlet(np.ones(size)) if seed % 3 else np.exp(rng.normal(0, 8, size)) / 1e6
    mass = np.where(rng.uniform(size=size) < 0.15, 0.0, mass)
    away = step * rng.uniform(-1, 1, size) * rng.choice([1e-9, 0.05, 0.5, 3.0], size)
    return mass, -mass * np.expm1(-away), step


@for_each("seed", range(60))
def test_no_divergence_grows(seed: int) -> None:
    mass, gain, step = random_bins(seed)
    found = exchanged(mass, gain, step)
    assert (found >= 0).all()
    assert found.sum() <= mass.sum()
    assert largest_excess(mass, gain, found, step) <= 0


def test_bins_that_stay_where_they_are_would_be_too_large() -> None:
    mass, gain, step = np.array([0.3, 0.4, 0.3]), np.array([0.0, -0.04, 0.0]), 0.25
    assert largest_excess(mass, gain, mass, step) > 0.03
    assert largest_excess(mass, gain, exchanged(mass, gain, step), step) <= 0


def test_the_mean_stays() -> None:
    """Losses that are up to a third of a width off change the mean in the second order, lowering them in the first."""
    rng = np.random.default_rng(3)
    size, step = 200, 1e-4
    mass = np.exp(-0.5 * np.linspace(-3, 3, size) ** 2)
    mass /= mass.sum()
    losses = step * (np.arange(size) + rng.uniform(-0.3, 0.3, size))
    found = exchanged(mass, -mass * np.expm1(step * np.arange(size) - losses), step)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    lost = float(mass @ losses - found @ (step * np.arange(size)))
    assert 0 < lost < step**2


@pytest.mark.slow
@for_each(
    ("pair", "step"),
    [
        (GaussianMixture((1.4,), (1e-4,)), 1e-4),
        (GaussianMixture((1.4,), (1e-4,), True), 1e-4),
        (GaussianMixture((2.0,), (1e-4,)), 1e-3),
        (GaussianMixture((2.5,), (0.3,), True), 1e-2),
        (OppositeShifts(1.4, 1e-4), 1e-4),
        (Symmetrised((0.5,), (1.0,), 0.01), 1e-3),
        (Laplace(0.3), 0.07),
    ],
    ids=str,
)
def test_lattices_keep_the_mean(pair: DominatingPair, step: float) -> None:
    """Both lattices have nearly the same mean: the lower one lost next to nothing of the first order in the width."""
    loss = pair.loss(1e-15)
    upper = pessimistic(loss, step)
    lower = optimistic(loss, upper)
    means = [float(each.mass @ (each.losses + each.offset)) for each in (lower, upper)]
    assert 0 <= means[1] - means[0] <= 4.0 * step**2 + 1e-15
    assert 1.0 - 1e-9 <= lower.mass.sum() <= 1.0


def test_one_bin_alone() -> None:
    assert exchanged(np.array([1.0]), np.array([0.2]), 0.1) == pytest.approx(1.0, abs=1e-14)
    assert exchanged(np.array([1.0]), np.array([-0.2]), 0.1).tolist() == [0.0]  # there is no lower point


def test_what_is_drawn_is_as_much_as_it_takes() -> None:
    """Two bins in fractions: the upper one is a quarter of a factor above its point."""
    step = math.log(2.0)
    found = exchanged(np.array([0.5, 0.5]), np.array([0.0, 0.125]), step)
    share = Fraction(1, 4)  # 1/8 = share (2 - 1) 1/2
    assert found == pytest.approx([float(Fraction(1, 2) * (1 - share)), float(Fraction(1, 2) * (1 + share))], rel=1e-9)


@for_each("step", [20.0, 40.0, 55.5])
def test_steps_of_many_nats(step: float) -> None:
    """A bin far below its point: the factor between points once was rounded relative to 1, and helped too much."""
    mass = np.array([0.7, 0.3])
    for away in (-0.6, -1.5, -1.9):
        gain = -mass * np.expm1(np.array([-2.0, -away * step]))
        assert largest_excess(mass, gain, exchanged(mass, gain, step), step) <= 0
