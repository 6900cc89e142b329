"""Truths that are possible given what may be expected: exact posteriors of small models, and high precision."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cases import for_each
from tests.sizes import sizes
from thresholdout.certificates.posterior import LogOdds

Floats = NDArray[np.float64]
STATES = np.array(list(itertools.product((0, 1), repeat=4)))


def random_posterior(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return a joint law of four bits, its posterior after one output, and each record's exact leakage by it."""
    if rng.random() < 0.5:  # independent records, and an output that tells about each by itself
        chances = 1 / (1 + np.exp(-rng.normal(scale=2.5, size=4)))
        prior = np.prod(np.where(STATES == 1, chances, 1 - chances), axis=1)
        likelihood = np.exp(STATES @ rng.choice([0.05, 0.5, 2.0], size=4))
    else:
        prior = rng.dirichlet(np.full(16, rng.choice([0.2, 1.0])))
        prior = (prior + 1e-9) / (1 + 16e-9)
        likelihood = np.exp(rng.uniform(0, rng.choice([0.1, 1.0, 4.0]), size=16))
    posterior = prior * likelihood / np.sum(prior * likelihood)
    leakage = []
    for i in range(4):
        one = STATES[:, i] == 1
        means = [np.sum((prior * likelihood)[side]) / np.sum(prior[side]) for side in (one, ~one)]
        leakage.append(abs(math.log(means[0] / means[1])))
    return prior, posterior, np.array(leakage)


def queries(rng: np.random.Generator, prior: Floats, posterior: Floats) -> Floats:
    """Values of queries by joint state: one that moved most, and a random one."""
    moved = (posterior - prior) @ STATES
    up = np.where(moved > 0, STATES, 1 - STATES).mean(axis=1)
    values = rng.random((4, 2))
    drawn = np.mean([values[i][STATES[:, i]] for i in range(4)], axis=0)
    return np.array([up, drawn])


def outside(beliefs: LogOdds, expected: float, truth: float) -> bool:
    return not beliefs.lowest(expected) <= truth <= beliefs.highest(expected)


@sizes("models", 80, 1000)
def test_exact_posteriors_of_small_models(models: int) -> None:
    """Queries about small models, dependent ones too; 95 % of the leakage, or its mean for all, is not enough."""
    rng = np.random.default_rng(8)
    short = averaged = 0
    for _ in range(models):
        prior, posterior, leakage = random_posterior(rng)
        beliefs, lowered, mean = LogOdds(leakage), LogOdds(0.95 * leakage), LogOdds(np.array([leakage.mean()]))
        for query in queries(rng, prior, posterior):
            expected, truth = float(query @ posterior), float(query @ prior)
            assert not outside(beliefs, expected, truth)
        moved = queries(rng, prior, posterior)[0]
        short += lowered.lowest(float(moved @ posterior)) > float(moved @ prior)
        averaged += mean.lowest(float(moved @ posterior)) > float(moved @ prior)
    assert short > models / 8
    assert averaged > models / 32


def test_one_bit_attains_equality() -> None:
    """A coin whose log-odds are moved by all of the leakage: the truth is an end of the interval."""
    for chance, leakage in itertools.product((0.03, 0.5, 0.9), (0.01, 0.4, 3.0)):
        after = chance * math.exp(leakage) / (1 + chance * math.expm1(leakage))
        beliefs = LogOdds(np.array([leakage]))
        assert beliefs.lowest(after) == pytest.approx(chance, rel=1e-11)
        assert beliefs.highest(1 - after) == pytest.approx(1 - chance, rel=1e-11)


@for_each("leakage", [1e-9, 1e-3, 0.5, 4.0, 60.0, 500.0])
def test_equal_leakage_in_high_precision(leakage: float) -> None:
    beliefs = LogOdds(np.full(3, leakage))
    with mpmath.workdps(60):
        for expected in (1e-12, 0.02, 0.5, 0.97, 1 - 1e-9):
            c = mpmath.mpf(expected)
            exact = c / (c + (1 - c) * mpmath.exp(leakage))
            assert exact * (1 - mpmath.mpf("1e-10")) <= beliefs.lowest(expected) <= exact
            exact = c / (c + (1 - c) * mpmath.exp(-mpmath.mpf(leakage)))
            assert exact <= beliefs.highest(expected) <= exact + (1 - exact) * mpmath.mpf("1e-10") + mpmath.mpf("1e-15")


def smallest_truth(leakage: list[float], expected: float) -> float:
    """The problem itself, in high precision: the p_i with ``sum G_i(p_i) = n c`` whose slopes are all equal."""
    with mpmath.workdps(40):
        alphas = [mpmath.mpf(a) for a in leakage]

        def allotted(slope: mpmath.mpf) -> list[mpmath.mpf]:
            # p_i + (1-p_i) e^-alpha = w has G' = e^-alpha/w^2 = s
            found = []
            for a in alphas:
                r = mpmath.exp(-a)
                found.append(min(mpmath.mpf(1), max(mpmath.mpf(0), (mpmath.sqrt(r / slope) - r) / (1 - r))))
            return found

        low, high = mpmath.exp(-max(alphas)), mpmath.exp(max(alphas))
        for _ in range(200):
            middle = mpmath.sqrt(low * high)
            points = allotted(middle)
            total = sum(p / (p + (1 - p) * mpmath.exp(-a)) for p, a in zip(points, alphas, strict=True))
            low, high = (middle, high) if total > len(alphas) * mpmath.mpf(expected) else (low, middle)
        return float(sum(allotted(low)) / len(alphas))


@pytest.mark.slow
@for_each("leakage", [[0.25, 0.75], [0.01, 0.02, 3.0], [1.0] * 9 + [6.0]])
def test_unequal_leakage_in_high_precision(leakage: list[float]) -> None:
    beliefs = LogOdds(np.array(leakage))
    for expected in (0.01, 0.3, 0.9, 0.99):
        exact = smallest_truth(leakage, expected)
        assert exact * (1 - 1e-7) - 1e-12 <= beliefs.lowest(expected) <= exact
        assert beliefs.highest(1 - expected) == pytest.approx(1 - beliefs.lowest(expected), abs=1e-13)


def test_records_about_which_nothing_or_anything_may_be_known() -> None:
    assert LogOdds(np.zeros(4)).lowest(0.9) == pytest.approx(0.9, abs=1e-11)
    assert LogOdds(np.array([math.inf])).lowest(0.99) == 0.0
    assert LogOdds(np.array([0.0, math.inf])).lowest(0.9) == pytest.approx(0.4, abs=1e-11)
    assert LogOdds(np.array([0.0, math.inf])).lowest(0.4) == 0.0
    for value in (-0.5, 0.0, 1.0, 2.0):
        beliefs = LogOdds(np.array([0.3, 0.4]))
        assert beliefs.lowest(value) == beliefs.highest(value) == min(max(value, 0.0), 1.0)


@pytest.mark.slow
def test_many_different_leakages_are_taken_in_classes() -> None:
    leakage = np.linspace(0.1, 0.6, 20_000)
    exact = smallest_truth(np.linspace(0.1, 0.6, 400).tolist(), 0.9)
    found = LogOdds(leakage).lowest(0.9)
    assert exact - 1e-3 < found < exact + 1e-4
    assert found <= LogOdds(leakage[::40]).lowest(0.9) + 1e-4
