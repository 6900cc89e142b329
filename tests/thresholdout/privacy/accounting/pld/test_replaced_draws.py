"""The pair of a replaced record among draws with replacement, beside tiny data sets of which all batches are listed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.papers.minibatch_epsilons import pld_fswr
from tests.cases import for_each
from tests.sizes import corners
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.pld.minibatch_steps import ReplacedDraws, fswr_pairs, profile
from thresholdout.privacy.accounting.pld.pairs import Symmetrised

Floats = NDArray[np.float64]
Law = tuple[Floats, Floats]  # means and weights of unit normal laws
FACTORS = (1.0, 1.01, 1.1, 1.5, 3.0, 10.0, 100.0, 1e4)


def chances(size: int, records: int) -> list[float]:
    """Return the probabilities of 0, 1, ... draws."""
    return [math.comb(size, n) * (records - 1) ** (size - n) / records**size for n in range(size + 1)]


def pair_of(sigma: float, size: int, records: int, most: int = 1000) -> ReplacedDraws:
    weights = tuple(chances(size, records)[1 : most + 1])
    return ReplacedDraws(tuple(2 * n / sigma for n in range(1, len(weights) + 1)), weights)


def divergence_of(pair: ReplacedDraws, factor: float, tail: float = 1e-13) -> float:
    """Return what the masses of the pair say."""
    loss = pair.loss(tail)
    start = math.log(factor)
    return loss.infinite + math.fsum(-math.expm1(start - at) * p for at, p in loss.atoms if at > start)


def output(gradients: list[float], size: int, sigma: float) -> Law:
    """Return the law of a step's output: all batches, as often as each is drawn."""
    sums: dict[float, float] = {}
    for batch in itertools.combinations_with_replacement(range(len(gradients)), size):
        orders = math.factorial(size)
        for record in set(batch):
            orders //= math.factorial(batch.count(record))
        total = round(math.fsum(gradients[record] for record in batch), 12)
        sums[total] = sums.get(total, 0.0) + orders / len(gradients) ** size
    return np.array(list(sums)) / sigma, np.array(list(sums.values()))


def divergence(one: Law, other: Law, factor: float) -> float:
    """Return P(S) - factor Q(S) for an event S that is nearly the best: never above the divergence."""
    means, weights = np.concatenate([one[0], other[0]]), np.concatenate([one[1], -factor * other[1]])
    at = np.linspace(means.min() - 9, means.max() + 9, 1500)
    powers = -0.5 * (at[:, None] - means) ** 2
    signs = np.exp(powers - powers.max(axis=1, keepdims=True)) @ weights
    changes = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    shares = signs[changes] / (signs[changes] - signs[changes + 1])
    ends = np.concatenate([[-np.inf], at[changes] + shares * (at[1] - at[0]), [np.inf]])
    return float(np.maximum((ndtr(ends[1:, None] - means) - ndtr(ends[:-1, None] - means)) @ weights, 0.0).sum())


def worst(sigma: float, size: int, records: int, tries: int) -> Floats:
    """Return the largest divergences at each factor over gradients: all alike, extreme, and random ones."""
    rng = np.random.default_rng(3)
    found = np.zeros(len(FACTORS))
    for k in range(tries):
        others = rng.choice([-1.0, 1.0], records - 1) if k % 2 else rng.uniform(-1, 1, records - 1)
        alike = {0: -1.0, 1: 0.0, 2: -0.8}
        gradients = [alike[k]] * (records - 1) if k in alike else others.tolist()
        x, y = rng.uniform(-1, 1, 2).tolist() if k > 4 and k % 3 == 0 else (1.0, -1.0)
        one, other = output([x, *gradients], size, sigma), output([y, *gradients], size, sigma)
        for pair in ((one, other), (other, one)):
            found = np.maximum(found, [divergence(*pair, factor) for factor in FACTORS])
    return found


SETTINGS = [(1.0, 2, 3), (2.0, 3, 4), (0.7, 2, 6), (6.0, 4, 5), (2.0, 5, 4), (3.0, 6, 4), (1.0, 7, 3), (1.5, 8, 3)]


@pytest.mark.parametrize(("sigma", "size", "records"), corners(SETTINGS, 0, 3))
def test_no_tiny_data_set_is_above_the_pair(sigma: float, size: int, records: int) -> None:
    """And what other records with opposite gradients, or none, attain is nearly as much."""
    found = worst(sigma, size, records, 7)
    bound = np.array([divergence_of(pair_of(sigma, size, records), factor) for factor in FACTORS])
    assert (found <= bound * (1 + 1e-9) + 1e-12).all()
    assert found[0] > bound[0] * 0.999
    assert (found[3:6] > bound[3:6] * 0.94).all()


def test_one_draw_alone_would_be_too_little() -> None:
    """The pair that forgets batches with the record twice is below what a data set has."""
    found = worst(1.0, 3, 6, 4)
    broken = np.array([divergence_of(pair_of(1.0, 3, 6, most=1), factor) for factor in FACTORS])
    assert (found > broken * 1.05).any()


def test_numbers_of_draws_that_always_stay_hidden_would_be_too_little() -> None:
    """The pair of one record more or less, without the condition on K, is below what gradients on both sides have."""
    found, (none, *weights) = worst(1.0, 7, 3, 3), chances(7, 3)
    more = (2.0 * np.arange(8.0), np.array([none, *weights]))
    broken = [divergence(more, (np.zeros(1), np.ones(1)), factor) for factor in FACTORS]
    assert (found[:3] > np.array(broken)[:3] * 1.005).all()
    assert found[7] <= divergence_of(pair_of(1.0, 7, 3), FACTORS[7])


def test_the_bound_is_that_of_one_record_more_where_all_numbers_of_draws_are_hidden() -> None:
    """To many digits: masses between points are all that is lost."""
    weights = np.array(chances(4, 5)[1:])
    shifts = np.arange(1, 5) / 3.0
    for outcome in (2.0, 4.0, 6.0):
        gap, bound = profile(shifts, weights, np.array([outcome]))
        ratio = chances(4, 5)[0] + float(weights @ np.exp(shifts * (outcome - shifts / 2)))
        assert gap[0] == pytest.approx(ratio - 1, rel=1e-12)
        exact = float(weights @ ndtr(shifts - outcome)) - (ratio - chances(4, 5)[0]) * float(ndtr(-outcome))
        assert exact <= bound[0] <= exact * (1 + 1e-9)


@for_each(("sigma", "rate"), [(0.5, 0.01), (3.0, 0.3), (40.0, 0.05), (1e6, 0.001)])
def test_one_shift_has_the_closed_form(sigma: float, rate: float) -> None:
    """H of (1-q) N(0) + q N(a) against N(0), which the symmetrised pair has: above it, and hardly more."""
    a = 2 / sigma
    pair = ReplacedDraws((a,), (rate,))
    for factor in (1.0, *(1 + rate * np.array([0.01, 0.5, 3.0, 50.0]) * min(a, 1.0)).tolist()):
        e = math.log1p((factor - 1) / rate) / a
        tails = [0.5 * math.erfc(-x / math.sqrt(2)) for x in (0.5 * a - e, -0.5 * a - e)]
        exact = rate * (tails[0] - (1 + (factor - 1) / rate) * tails[1])
        assert exact * (1 - 1e-9) <= divergence_of(pair, factor) <= exact * (1 + 2e-3) + 1e-11 * rate


@for_each("loss", [300.0, 500.0, 560.0, 590.0])
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


@pytest.mark.slow
@for_each(
    ("sigma", "size", "records", "steps", "delta", "before"),
    [(2.0, 64, 10_000, 1000, 1e-5, 1.402), (1.0, 64, 10_000, 1, 1e-6, 4.707), (20.0, 500, 1000, 20, 1e-5, 1.068)],
)
def test_hidden_numbers_of_draws_are_worth_much(
    sigma: float, size: int, records: int, steps: int, delta: float, before: float
) -> None:
    """Between what is attained (one record more or less) and what it was with draws hidden in one part only."""
    sizes: dict[str, Any] = {"batch_size": size, "dataset_size": records}
    attained = pld_fswr(sigma, steps, delta, accuracy=1e-3, **sizes).lower
    upper = pld_fswr(sigma, steps, delta, adjacency="replace_one", accuracy=1e-3, **sizes).upper
    assert attained < upper < 0.995 * before


def test_a_single_draw_is_a_batch_without_replacement() -> None:
    assert isinstance(fswr_pairs(1.0, 1, 100, "replace_one")[0], Symmetrised)
    assert isinstance(fswr_pairs(1.0, 2, 100, "replace_one")[0], ReplacedDraws)


@pytest.mark.slow
@for_each(("sigma", "size", "records"), [(0.3, 25, 188), (0.2, 4, 9), (0.5, 439, 813)])
def test_hardly_any_noise_has_finite_losses_too(sigma: float, size: int, records: int) -> None:
    """Losses above 600 nats are those of known numbers of draws, and not infinite."""
    (pair,) = fswr_pairs(sigma, size, records, "replace_one", 1e-12)
    assert isinstance(pair, Symmetrised)
    assert pair.rate >= -math.expm1(size * math.log1p(-1 / records))
    sizes: dict[str, Any] = {"batch_size": size, "dataset_size": records, "accuracy": 1e-2}
    attained = pld_fswr(sigma, 1, 1e-6, **sizes).lower
    assert 100 < attained < pld_fswr(sigma, 1, 1e-6, adjacency="replace_one", **sizes).upper < math.inf


def test_bad_arguments_are_named() -> None:
    wrong = [((), ()), ((1.0,), (0.5, 0.1)), ((-1.0,), (0.5,)), ((2.0, 1.0), (0.5, 0.1))]
    for shifts, weights in wrong:
        with pytest.raises(InputError, match="shifts"):
            ReplacedDraws(shifts, weights)
    with pytest.raises(InputError, match="weights"):
        ReplacedDraws((1.0,), (0.9,), 0.1)
    with pytest.raises(InputError, match="omitted"):
        ReplacedDraws((1.0,), (0.5,), -0.1)
