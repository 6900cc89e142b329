"""Gaussian answers beside other private looks (accounting/LOOKS.md, L5), executed on small models."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import rel_entr

from tests.oracles.gaussian_posterior import SmallModel, random_model, random_values
from thresholdout.certificates.gaussian.chosen_widths import one_scale, scheduled_widths
from thresholdout.certificates.gaussian.deviations import NoiseRuns
from thresholdout.certificates.gaussian.drift import AnytimeDrift, Drift, beside_looks, look_cost
from thresholdout.certificates.gaussian.intervals import GivenAway
from thresholdout.certificates.independent_blocks import IndependentBlocks

Floats = NDArray[np.float64]


def leaks(model: SmallModel, look: Floats) -> float:
    """Return epsilon about one record: the largest log-ratio of states that differ in a group, for its size."""
    pairs = itertools.combinations(range(len(model.prior)), 2)
    differ = [(i, j, np.flatnonzero(model.states[i] != model.states[j])) for i, j in pairs]
    return max(abs(float(look[i] - look[j])) / float(model.sizes[g[0]]) for i, j, g in differ if len(g) == 1)


def looked_at(rng: np.random.Generator) -> tuple[SmallModel, Floats, Floats, Floats, float]:
    """Any answers to any questions, and anything that looks released: the inequality holds for every transcript."""
    model = random_model(rng, int(rng.integers(1, 5)), 2, equal=rng.random() < 0.6)
    signs = rng.choice([-1.0, 1.0], len(model.laws))
    responses = (model.states == 1).astype(np.float64) @ (signs * model.sizes) * math.exp(rng.uniform(-5, 1))
    model.look = responses + rng.choice([0.0, 0.1]) * math.exp(rng.uniform(-4, 1)) * rng.normal(size=len(model.prior))
    count = int(rng.integers(1, 4))
    queries = np.array([model.query(random_values(rng, model)) for _ in range(count)])
    scales = np.exp(rng.uniform(math.log(0.05), math.log(30), count))
    truth = rng.choice(len(model.prior), p=model.prior)
    answers = queries[:, truth] + scales * rng.normal(size=count) * rng.choice([0.3, 1, 3])
    return model, queries, scales, answers, 1 + math.exp(rng.uniform(-5, 2))


def slack(model: SmallModel, queries: Floats, scales: Floats, answers: Floats, dilation: float, cost: float) -> float:
    """Return how far ``ln p_a/p_1`` is above its bound, with `cost` of A, at the t where the bound is largest."""
    ratio = model.log_density(queries, scales, answers, dilation) - model.log_density(queries, scales, answers, 1.0)
    squares = float(np.sum(model.variations(model.posterior(queries, scales, answers)) ** 2))
    bound, gained = model.lower_bound(squares, model.information(scales), dilation), 2 * (1 - dilation**-2) * squares
    epsilon = leaks(model, np.asarray(model.look))
    whole = cost * math.log(dilation) * epsilon**2 * float(np.sum(model.sizes**2)) / 16
    shares = np.geomspace(1e-5, 0.999, 300)
    return ratio - float(np.max(bound - shares * gained - whole / shares))


def test_lower_bound_of_the_dilated_density_with_looks() -> None:
    rng = np.random.default_rng(23)
    slacks, free = [], []
    for _ in range(300):
        case = looked_at(rng)
        slacks.append(slack(*case, cost=1.0))
        free.append(slack(*case, cost=0.0))
    assert min(slacks) > -1e-12
    assert min(free) < -0.01  # broken twin: looks that cost nothing


def test_cost_of_looks_cannot_be_lowered() -> None:
    """Fair coins that say what they are with a little privacy, and no answers: equality as epsilon and a - 1 vanish."""
    model = SmallModel([np.array([0.5, 0.5])] * 4, np.ones(4))
    model.look = 0.02 * model.states.sum(axis=1)
    nothing = np.zeros((1, len(model.prior))), np.array([1e6]), np.zeros(1), 1.001
    assert slack(model, *nothing, cost=1.0) > 0
    assert slack(model, *nothing, cost=0.99) < 0


def gap(expected: float, truth: float, dilation: float) -> float:
    def kl(x: float, p: float) -> float:
        return float(rel_entr(x, p) + rel_entr(1 - x, 1 - p))

    return kl(expected, truth) - kl(truth + (expected - truth) / dilation, truth)


def test_entropy_bound_with_looks() -> None:
    """K3 for random functions of the records: N gap is at most what is given away, beside looks."""
    rng = np.random.default_rng(24)
    ratios, free = [], []
    for _ in range(300):
        model, queries, scales, answers, dilation = looked_at(rng)
        b, records = dilation**2 - 1, model.n / float(model.sizes.max())
        posterior = model.posterior(queries, scales, answers)
        ratio = model.log_density(queries, scales, answers, dilation) - model.log_density(queries, scales, answers, 1)
        noise = float(np.sum(1 / (2 * records * scales**2)))
        state = GivenAway(records, b, math.exp(-ratio), weighed=noise / 4, noise=noise)
        cost = math.log(dilation) * leaks(model, np.asarray(model.look)) ** 2 * float(np.sum(model.sizes**2)) / 16
        above = ratio + b * state.weighed > 0.0
        value = model.query(random_values(rng, model))
        found = gap(float(value @ posterior), float(value @ model.prior), dilation)
        allowed = dataclasses.replace(state, looks=cost).bound
        if above and allowed < math.inf:
            ratios.append(found / allowed)
            free.append(found / state.bound)
    assert len(ratios) > 150
    assert max(ratios) <= 1.0
    assert max(free) > 1.0  # broken twin: looks that cost nothing


@pytest.mark.parametrize(
    "blocks", [IndependentBlocks.of_records(5000), IndependentBlocks.of_sizes(np.array([1, 2, 4]))]
)
@pytest.mark.parametrize("looks", [1e-6, 0.01, 0.5])
def test_drift_beside_looks_is_the_formula(blocks: IndependentBlocks, looks: float) -> None:
    """The smallest over t of ``sqrt((1+b)(x + (L + A/t)/b)/(N (2 (1-t) - (1+b) x c)))``."""
    b, failure, x = 0.4, 0.02, 0.3
    cost = math.log1p(b) / 2 * looks**2 * blocks.n * blocks.inflation / 16
    t = np.geomspace(1e-9, 1, 200_001)[:-1]
    room = 2 * (1 - t) - (1 + b) * x * blocks.crowding
    with np.errstate(all="ignore"):
        squares = (1 + b) * (x + (-math.log(failure) + cost / t) / b) / (blocks.effective * room)
    exact = math.sqrt(float(np.min(squares[room > 0])))
    found = Drift(blocks, b, failure, looks)(x)
    assert exact * (1 - 1e-7) <= found <= exact * (1 + 1e-6)
    assert found > Drift(blocks, b, failure)(x)
    assert look_cost(blocks, looks, b) == pytest.approx(cost, rel=1e-9)


def test_bounds_where_there_is_no_room() -> None:
    assert beside_looks(1.0, 0.0, 0.1) == beside_looks(1.0, -1.0, 0.0) == beside_looks(1.0, 1.0, math.inf) == math.inf
    assert beside_looks(1.0, 1.0, 1e-320) == math.inf
    assert Drift(IndependentBlocks.of_records(2), 1.0, 0.1, 0.1)(100.0) == math.inf


def test_widths_beside_looks() -> None:
    """All events stay, what was kept of earlier answers is read, and nothing is narrower."""
    blocks = IndependentBlocks.of_records(10_000)
    before = one_scale(blocks, 50, 0.05)
    after = before.beside(0.03)
    assert after.shares == before.shares
    first, past = before.recalled(1, 0, "holdout", 0.9, "")
    second, without = after.recalled(2, 1, "holdout", 0.9, past)[0], before.recalled(2, 1, "holdout", 0.9, past)[0]
    assert second[0] < without[0] < without[1] < second[1]
    assert after.tolerance() > before.tolerance()
    assert after.expected(0.9) > before.expected(0.9)
    assert first == before.interval(1, 0, "holdout", 0.9, [])
    anytime = scheduled_widths(blocks, NoiseRuns.constant(0.02, 1), 0.05, declared=False)
    assert isinstance(anytime.drift, AnytimeDrift)
    assert anytime.beside(0.03).half_width(9, 0, "holdout") > anytime.half_width(9, 0, "holdout")
