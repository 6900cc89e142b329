"""Algorithm 1 by the posterior route: the threshold that honest queries keep below, and the noise that is best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, laplace

from graphs import Groups, Independent, MarkovChain
from tests.cases import for_each
from thresholdout import InputError, PlanError, SeededNoise
from thresholdout.certificates.posterior import PosteriorWidths, posterior_widths
from thresholdout.certificates.problem import Setting
from thresholdout.mechanisms import SparseVectorMechanism, SparseVectorParameters
from thresholdout.mechanisms.claims.kinds import is_unlimited
from thresholdout.planning.algorithm_1 import algorithm_1, quiet_rise


def widths(parameters: SparseVectorParameters, n: int = 10_000) -> PosteriorWidths:
    return posterior_widths(Setting(Independent(n), parameters, 0.95))


@for_each("rise", [2.0, 10.0, 19.0])
def test_the_noise_of_one_test_exceeds_a_number_with_the_stated_probability(rise: float) -> None:
    """Lap(2) less Lap(1) by numerical integration, against (2/3) exp(-t/2), which the threshold is solved from."""
    exact, _ = quad(
        lambda y: float(laplace.sf(rise + y, scale=2.0) * laplace.pdf(y)), -60.0, 60.0, points=[0.0, -rise], limit=200
    )
    bound = 2.0 / 3.0 * math.exp(-rise / 2.0)
    assert exact <= bound
    assert exact == pytest.approx(bound - math.exp(-rise) / 6.0, rel=1e-6)
    for queries in (1, 50, 1000):
        solved = quiet_rise(queries, 0.05)
        assert queries * 2.0 / 3.0 * math.exp(-solved / 2.0) == pytest.approx(0.05, rel=1e-12)
    assert quiet_rise(1, 0.9) == 0.0


def sessions_with_a_hit(share: float, sessions: int, budget: int = 1) -> int:
    """Count sessions of 50 queries, all at the quiet margin, in which one is answered from the holdout."""
    n, queries, margin, scale = 1000, 50, 0.05, 2.0**-10
    threshold = margin + share * scale * quiet_rise(queries, 0.1) + 1e-4 * scale
    mechanism = SparseVectorMechanism(SparseVectorParameters(threshold, scale, budget, queries))
    values = np.zeros(n)
    count = 0
    for seed in range(sessions):
        noise = SeededNoise(seed)
        state = mechanism.start(noise)
        read = mechanism.read(values, n, (0.0, 1.0), "values")
        for _ in range(queries):
            state, outcome = mechanism.step(state, margin, read, noise)
            if outcome.source == "holdout":
                count += 1
                break
    return count


@pytest.mark.slow
def test_honest_queries_spend_budget_with_at_most_beta() -> None:
    sessions = 1500
    assert binom.sf(sessions_with_a_hit(1.0, sessions) - 1, sessions, 0.1) > 1e-9
    assert binom.sf(sessions_with_a_hit(0.6, sessions) - 1, sessions, 0.1) < 1e-9


@pytest.mark.slow
@for_each(("score", "reached"), [(0.9, 0.072), (0.97, 0.049)])
def test_noise_for_a_likely_score(score: float, reached: float) -> None:
    """What is to be reached at 10,000 records and a budget of 2; the noise for answers anywhere does not."""
    usual, near = (
        algorithm_1(Independent(10_000), queries=20, budget=2, expected=expected, quiet_margin=0.0)
        for expected in (None, score)
    )
    assert near.noise_scale < usual.noise_scale
    assert widths(near).expected(score) < reached < widths(usual).expected(score)
    assert widths(near).width > widths(usual).width
    for factor in (0.7, 1.4):
        rise = near.threshold / near.noise_scale
        other = SparseVectorParameters(
            factor * near.noise_scale * rise, factor * near.noise_scale, near.budget, near.queries
        )
        assert widths(other).expected(score) > widths(near).expected(score)


@pytest.mark.slow
def test_the_usual_noise_is_the_best_for_answers_anywhere() -> None:
    for budget in (1, 10):
        found = algorithm_1(Independent(10_000), queries=100, budget=budget, quiet_margin=0.0)
        for factor in (0.5, 0.8, 1.25, 2.0):
            other = SparseVectorParameters(factor * found.threshold, factor * found.noise_scale, budget, 100)
            assert widths(other).width >= widths(found).width * (1 - 1e-3)


@pytest.mark.slow
def test_the_quiet_margin_is_the_radius_of_fixed_queries() -> None:
    bare, usual = (
        algorithm_1(Groups(np.arange(10_000) // 4), queries=100, budget=2, quiet_margin=margin)
        for margin in (0.0, None)
    )
    assert (usual.noise_scale, usual.budget) == (bare.noise_scale, bare.budget)
    radius = math.sqrt(math.log(2 * 100 / 0.05) / (2 * 2500))
    assert usual.threshold - bare.threshold == pytest.approx(radius, rel=1e-9)
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=100_000)
    bare, usual = (algorithm_1(chain, queries=100, budget=2, quiet_margin=margin) for margin in (0.0, None))
    radius = math.sqrt(9 * math.log(2 * 100 / 0.05) / (2 * 100_000))  # (1 + 0.8) / (1 - 0.8)
    assert usual.threshold - bare.threshold == pytest.approx(radius, rel=1e-6)


def test_refuses_what_cannot_be_certified() -> None:
    with pytest.raises(PlanError, match=r"best half-width is .*fewer queries=, a smaller budget="):
        algorithm_1(Groups([0] * 1000), queries=10, budget=1)
    with pytest.raises(InputError, match="quiet_margin"):
        algorithm_1(Independent(100), queries=10, budget=1, quiet_margin=-0.1)
    with pytest.raises(InputError, match="expected"):
        algorithm_1(Independent(100), queries=10, budget=1, expected=1.5)
    assert is_unlimited(Groups([0] * 1000)) is False  # one group is one effective record, whose limits say nothing
    assert not is_unlimited(Independent(10**12))
