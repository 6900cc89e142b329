"""The theorem on Gaussian answers, executed on small models: every step that can be enumerated is."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import binom

from tests.oracles.gaussian_posterior import SmallModel, random_model, random_values
from thresholdout.certificates.gaussian.drift import Drift
from thresholdout.certificates.independent_blocks import IndependentBlocks

Floats = NDArray[np.float64]


def random_transcript(rng: np.random.Generator) -> tuple[SmallModel, Floats, Floats, Floats, float]:
    """Any answers to any questions: the inequality holds for every transcript, so adaptivity is covered."""
    model = random_model(rng, int(rng.integers(1, 6)), int(rng.integers(2, 4)), equal=rng.random() < 0.6)
    count = int(rng.integers(1, 6))
    queries = np.array([model.query(random_values(rng, model)) for _ in range(count)])
    scales = np.exp(rng.uniform(math.log(0.02), math.log(3), count))
    truth = rng.choice(len(model.prior), p=model.prior)
    answers = queries[:, truth] + scales * rng.normal(size=count) * rng.choice([0.3, 1, 3])
    return model, queries, scales, answers, 1 + math.exp(rng.uniform(-4, 2))


def test_lower_bound_of_the_dilated_density() -> None:
    """``ln p_a/p_1 >= 2 (1 - a^-2) V - (a^2 - 1) x - 2 (a - 1) x c V`` on every transcript tried."""
    rng = np.random.default_rng(5)
    slacks = []
    for _ in range(1500):
        model, queries, scales, answers, dilation = random_transcript(rng)
        slacks.append(model.slack(queries, scales, answers, dilation))
    assert min(slacks) > 0
    assert min(slacks) < 1e-3


@pytest.mark.slow
def test_lower_bound_at_the_worst_transcripts_that_can_be_found() -> None:
    """Answers, noise and dilation are optimised for the smallest slack, relative to ``(a^2 - 1) x``."""
    rng = np.random.default_rng(6)
    smallest = math.inf
    for _ in range(12):
        model, queries, scales, answers, dilation = random_transcript(rng)
        count = len(scales)

        def relative(point: Floats, model: SmallModel = model, queries: Floats = queries, k: int = count) -> float:
            noise, a = np.exp(np.clip(point[k : 2 * k], -4, 3)), 1 + math.exp(min(max(point[2 * k], -5), 3))
            return model.slack(queries, noise, np.clip(point[:k], -20, 20), a) / ((a**2 - 1) * model.information(noise))

        start = np.r_[answers, np.log(scales), math.log(dilation - 1)]
        smallest = min(smallest, minimize(relative, start, method="Nelder-Mead", options={"maxfev": 500}).fun)
    assert 0 < smallest < 0.2


def test_constant_of_the_information_cannot_be_lowered() -> None:
    """One fair bit and an answer that tells nothing: equality, and with nine tenths of x the inequality fails."""
    model = SmallModel([np.array([0.5, 0.5])], np.ones(1))
    queries, scales = np.array([[0.0, 1.0]]), np.array([5.0])
    answers, dilation = np.array([0.5]), 1.05
    ratio = model.log_density(queries, scales, answers, dilation) - model.log_density(queries, scales, answers, 1.0)
    squares = float(np.sum(model.variations(model.posterior(queries, scales, answers)) ** 2))
    information = model.information(scales)
    assert ratio == pytest.approx(model.lower_bound(squares, information, dilation), rel=1e-9)
    assert ratio < model.lower_bound(squares, 0.9 * information, dilation)


def test_dilated_density_is_a_density_of_adaptive_transcripts() -> None:
    """The integral of p_a over two answers, the second question and its noise chosen by the first answer."""
    rng = np.random.default_rng(2)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    axis, lengths = 12 * nodes + 0.5, 12 * weights
    for dilation in (1.0, 1.7, 3.0):
        model = random_model(rng, 2, 2, equal=True)
        first, low, high = (model.query(random_values(rng, model)) for _ in range(3))
        total = 0.0
        for y, length in zip(axis, lengths, strict=True):
            second, noise = (low, 0.8) if y < 0.5 else (high, 1.3)
            means, noises = np.array([first, second]), np.array([1.0, noise])
            constant = -math.log(2 * math.pi * noise)
            inner = [model.log_density(means, noises, np.array([y, z]), dilation) + constant for z in axis[::8]]
            total += length * float(np.exp(inner) @ lengths[::8]) / float(lengths[::8].sum() / lengths.sum())
        assert total == pytest.approx(1, abs=2e-3)


def greedy_run(model: SmallModel, rng: np.random.Generator, scale: float, rounds: int) -> list[float]:
    """Ask what the posterior makes most of; return the mean variation after each answer."""
    truth = rng.choice(len(model.prior), p=model.prior)
    queries: list[Floats] = []
    answers: list[float] = []
    variations = []
    signs = rng.integers(0, 2, len(model.laws))
    for _ in range(rounds):
        queries.append(model.query([np.array([1.0 - s, float(s)]) for s in signs]))
        answers.append(float(queries[-1][truth] + scale * rng.normal()))
        posterior = model.posterior(np.array(queries), np.full(len(queries), scale), np.array(answers))
        variations.append(float(model.variations(posterior) @ model.sizes / model.n))
        ones = model.states.T.astype(np.float64) @ posterior
        signs = np.where(rng.random(len(signs)) < 0.5, ones > 0.5, rng.random(len(signs)) < 0.5).astype(np.int64)
    return variations


@pytest.mark.statistical
def test_drift_holds_at_all_times_against_an_adaptive_analyst() -> None:
    """Eight fair bits, D at b2 = 0.3: broken in at most 30 % of 600 runs; a third of D is broken in more."""
    rng = np.random.default_rng(11)
    model = SmallModel([np.array([0.5, 0.5])] * 8, np.ones(8))
    drift = Drift(IndependentBlocks.of_records(8), 0.8, 0.3)
    broken = lowered = 0
    runs, scale, rounds = 600, 0.25, 6
    bounds = [drift(round_ * drift.information(scale)) for round_ in range(1, rounds + 1)]
    for _ in range(runs):
        variations = greedy_run(model, rng, scale, rounds)
        broken += any(v > bound for v, bound in zip(variations, bounds, strict=True))
        lowered += any(v > bound / 3 for v, bound in zip(variations, bounds, strict=True))
    assert binom.sf(broken - 1, runs, 0.3) > 1e-9
    assert binom.sf(lowered - 1, runs, 0.3) < 1e-9


def test_pieces_of_the_entropy_bound() -> None:
    """``K - KL(nu, P) >= 2 (1 - a^-2) V`` for laws of two and three records that are not products."""
    rng = np.random.default_rng(3)
    for _ in range(400):
        model = random_model(rng, int(rng.integers(2, 4)), 2, equal=True)
        posterior = rng.dirichlet(np.full(len(model.prior), 0.5)) + 1e-15
        posterior /= posterior.sum()
        dilation = 1 + math.exp(rng.uniform(-3, 2))
        kept = 1 / dilation
        redrawn = np.zeros_like(posterior)
        for choice in itertools.product((0, 1), repeat=len(model.laws)):
            law = np.ones_like(posterior)
            weight = 1.0
            for keep in choice:
                weight *= kept if keep else 1 - kept
            groups = np.flatnonzero(choice)
            keys = np.zeros(len(posterior), dtype=np.int64)
            for g in groups:
                keys = 2 * keys + model.states[:, g]
            marginal = np.bincount(keys, weights=posterior, minlength=2 ** len(groups))
            law = marginal[keys] * np.prod(
                [model.laws[g][model.states[:, g]] for g in range(len(model.laws)) if not choice[g]] or [law], axis=0
            )
            redrawn += weight * law
        assert redrawn.sum() == pytest.approx(1)
        gain = float(posterior @ np.log(posterior / model.prior) - redrawn @ np.log(redrawn / model.prior))
        squares = float(np.sum(model.variations(posterior) ** 2))
        assert gain >= 2 * (1 - dilation**-2) * squares - 1e-12
