"""The pair of a replaced record among draws with replacement, beside tiny data sets of which all batches are listed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.pld.gaussian_pairs import Symmetrised
from thresholdout.privacy.accounting.pld.minibatch_steps import draws, fswr_pairs, pld_fswr
from thresholdout.privacy.accounting.pld.replaced_draws import ReplacedDraws

Floats = NDArray[np.float64]
GRID: Floats = np.arange(-30.0, 30.0, 0.01)
FACTORS = (1.0, 1.01, 1.1, 1.5, 3.0, 10.0, 100.0, 1e4)


def pair_of(sigma: float, size: int, records: int, most: int = 1000) -> ReplacedDraws:
    weights = draws(size, records, 1e-300)[:most]
    return ReplacedDraws(tuple(2 * n / sigma for n in range(1, len(weights) + 1)), weights)


def divergence_of(pair: ReplacedDraws, factor: float, tail: float = 1e-13) -> float:
    """Return what the masses of the pair say."""
    loss = pair.loss(tail)
    start = math.log(factor)
    return loss.infinite + math.fsum(-math.expm1(start - at) * p for at, p in loss.atoms if at > start)


def density(gradients: list[float], size: int, sigma: float) -> Floats:
    """Return the density of a step's output: the mean over all batches, with their orders."""
    batches = list(itertools.product(gradients, repeat=size))
    sums, counts = np.unique(np.round([math.fsum(batch) for batch in batches], 12), return_counts=True)
    parts = np.exp(-0.5 * (GRID[:, None] - sums / sigma) ** 2) / math.sqrt(2 * math.pi)
    found: Floats = parts @ (counts / len(batches))
    return found


def divergence(one: Floats, other: Floats, factor: float) -> float:
    return float(np.maximum(one - factor * other, 0.0).sum()) * 0.01


def worst(sigma: float, size: int, records: int, tries: int) -> Floats:
    """Return the largest divergences at each factor over gradients: all alike, extreme, and random ones."""
    rng = np.random.default_rng(3)
    found = np.zeros(len(FACTORS))
    for k in range(tries):
        others = [-1.0] * (records - 1) if k < 3 else rng.choice([-1.0, 1.0], records - 1).tolist()
        if k >= tries // 2:
            others = rng.uniform(-1, 1, records - 1).tolist()
        x, y = [(1.0, -1.0), (0.5, -1.0), (0.0, -1.0)][k] if k < 3 else rng.uniform(-1, 1, 2).tolist()
        if k % 2:
            x, y = 1.0, -1.0
        one, other = density([x, *others], size, sigma), density([y, *others], size, sigma)
        for pair in ((one, other), (other, one)):
            found = np.maximum(found, [divergence(*pair, factor) for factor in FACTORS])
    return found


@pytest.mark.parametrize(("sigma", "size", "records"), [(1.0, 2, 3), (2.0, 3, 4), (0.7, 2, 6), (6.0, 4, 5)])
def test_no_tiny_data_set_is_above_the_pair(sigma: float, size: int, records: int) -> None:
    found = worst(sigma, size, records, 24)
    bound = np.array([divergence_of(pair_of(sigma, size, records), factor) for factor in FACTORS])
    assert (found <= bound * (1 + 1e-7) + 1e-11).all()
    assert (found[1:] / bound[1:]).max() > 0.75


def test_one_draw_alone_would_be_too_little() -> None:
    """The pair that forgets batches with the record twice is below what a data set has."""
    found = worst(1.0, 3, 6, 4)
    broken = np.array([divergence_of(pair_of(1.0, 3, 6, most=1), factor) for factor in FACTORS])
    assert (found > broken * 1.05).any()


@pytest.mark.parametrize(("sigma", "rate"), [(0.5, 0.01), (3.0, 0.3), (40.0, 0.05), (1e6, 0.001)])
def test_one_shift_has_the_closed_form(sigma: float, rate: float) -> None:
    """H of (1-q) N(0) + q N(a) against N(0), which the symmetrised pair has: above it, and hardly more."""
    a = 2 / sigma
    pair = ReplacedDraws((a,), (rate,))
    for factor in (1.0, *(1 + rate * np.array([0.01, 0.5, 3.0, 50.0]) * min(a, 1.0)).tolist()):
        e = math.log1p((factor - 1) / rate) / a
        tails = [0.5 * math.erfc(-x / math.sqrt(2)) for x in (0.5 * a - e, -0.5 * a - e)]
        exact = rate * (tails[0] - (1 + (factor - 1) / rate) * tails[1])
        assert exact * (1 - 1e-9) <= divergence_of(pair, factor) <= exact * (1 + 2e-3) + 1e-11 * rate


@pytest.mark.parametrize("loss", [300.0, 500.0, 560.0, 590.0])
def test_masses_too_small_for_floats_under_one_law_count_under_the_other(loss: float) -> None:
    """Losses of hundreds of nats with tiny probabilities: e^-560 of 1e-109 is no float."""
    a, rate = 18.0, 0.1
    e = (loss - math.log(rate)) / a
    tails = [0.5 * math.erfc(-x / math.sqrt(2)) for x in (0.5 * a - e, -0.5 * a - e)]
    exact = rate * (tails[0] - math.exp(loss) / rate * tails[1])
    assert exact * (1 - 1e-9) <= divergence_of(ReplacedDraws((a,), (rate,)), math.exp(loss), 1e-250) <= exact * 1.3


def test_both_directions_and_totals() -> None:
    """Masses add up to 1 at least, and under Q to at most that; H of the reverse follows from them."""
    pair = pair_of(1.0, 5, 20)
    loss = pair.loss(1e-12)
    assert math.fsum(p for _, p in loss.atoms) + loss.infinite == pytest.approx(1.0, abs=1e-9)
    assert math.fsum(p for _, p in loss.atoms) + loss.infinite >= 1.0
    for factor in (0.3, 0.9, 0.999):
        mirror = 1 - factor + factor * divergence_of(pair, 1 / factor)
        assert divergence_of(pair, factor) == pytest.approx(mirror, rel=1e-9)


@pytest.mark.parametrize(
    ("sigma", "size", "records", "steps", "delta", "before"),
    [(2.0, 64, 10_000, 1000, 1e-5, 3.335), (1.0, 64, 10_000, 1, 1e-6, 8.756), (20.0, 500, 1000, 20, 1e-5, 1.1108)],
)
def test_hidden_numbers_of_draws_are_worth_much(
    sigma: float, size: int, records: int, steps: int, delta: float, before: float
) -> None:
    """Between what is attained (one record more or less) and what it would be if numbers of draws were known."""
    sizes: dict[str, Any] = {"batch_size": size, "dataset_size": records}
    attained = pld_fswr(sigma, steps, delta, accuracy=1e-3, **sizes).lower
    upper = pld_fswr(sigma, steps, delta, adjacency="replace_one", accuracy=1e-3, **sizes).upper
    assert attained < upper < 0.97 * before


def test_a_single_draw_is_a_batch_without_replacement() -> None:
    assert isinstance(fswr_pairs(1.0, 1, 100, "replace_one")[0], Symmetrised)
    assert isinstance(fswr_pairs(1.0, 2, 100, "replace_one")[0], ReplacedDraws)


@pytest.mark.parametrize(("sigma", "size", "records"), [(0.3, 25, 188), (0.2, 4, 9), (0.5, 439, 813)])
def test_hardly_any_noise_has_finite_losses_too(sigma: float, size: int, records: int) -> None:
    """Losses above 600 nats are those of known numbers of draws, and not infinite."""
    (pair,) = fswr_pairs(sigma, size, records, "replace_one", 1e-12)
    assert isinstance(pair, Symmetrised)
    assert pair.rate >= -math.expm1(size * math.log1p(-1 / records))
    sizes: dict[str, Any] = {"batch_size": size, "dataset_size": records, "accuracy": 1e-2}
    attained = pld_fswr(sigma, 1, 1e-6, **sizes).lower
    assert 100 < attained < pld_fswr(sigma, 1, 1e-6, adjacency="replace_one", **sizes).upper < math.inf


def test_bad_arguments_are_named() -> None:
    for shifts, weights, omitted in (((), (), 0.0), ((1.0,), (0.5, 0.1), 0.0), ((-1.0,), (0.5,), 0.0)):
        with pytest.raises(InputError, match="shifts"):
            ReplacedDraws(shifts, weights, omitted)
    with pytest.raises(InputError, match="weights"):
        ReplacedDraws((1.0,), (0.9,), 0.1)
    with pytest.raises(InputError, match="omitted"):
        ReplacedDraws((1.0,), (0.5,), -0.1)
