"""The law of the largest error, against closed forms, mpmath, and simulation-free references."""

import math
import time

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresholdout.certificates.extremes import answer_quantile, noise_extremes
from thresholdout.mechanisms import NoiseRatios

# (m, B, beta): VaR(G), and CVaR(M) at T = VaR(G), by adaptive quadrature with 20 digits (mpmath).
REFERENCE = {
    (1000, 1, 0.05): (18.859075, 39.787349),
    (1000, 10, 0.05): (21.055161, 44.197512),
    (100, 1, 0.001): (22.210237, 46.482574),
    (10, 1000, 0.05): (16.433173, 43.635160),
}


def laplace(x: mpmath.mpf, scale: int) -> mpmath.mpf:
    return mpmath.exp(x / scale) / 2 if x < 0 else 1 - mpmath.exp(-x / scale) / 2


def tail_of_g(v: float, queries: int, budget: int) -> mpmath.mpf:
    """P(max of m Lap(2) + max of B Lap(1) > v), by integrating over the second."""

    def integrand(w: mpmath.mpf) -> mpmath.mpf:
        density = budget * laplace(w, 1) ** (budget - 1) * mpmath.exp(-abs(w)) / 2
        return -mpmath.expm1(queries * mpmath.log(laplace(v - w, 2))) * density

    return mpmath.quad(integrand, sorted({-40, -10, 0, 5, 10, 20, 40, 90, v}))


@pytest.mark.parametrize(("case", "expected"), REFERENCE.items())
def test_quantiles_and_superquantiles_exceed_the_reference_by_a_two_thousandth_at_most(
    case: tuple[int, int, float], expected: tuple[float, float]
) -> None:
    queries, budget, beta = case
    extremes = noise_extremes(queries, budget, beta)
    quantile = extremes.quantile(beta)
    assert expected[0] <= quantile + 1e-6
    assert quantile <= expected[0] * 1.0005
    superquantile = extremes.superquantile(beta, expected[0])
    assert expected[1] <= superquantile + 1e-5
    assert superquantile <= expected[1] * 1.0005


@pytest.mark.parametrize(
    ("queries", "budget", "beta", "threshold", "superquantile"),
    [(1000, 1, 0.05, 18.864, 39.798), (1000, 10, 0.05, 21.060, 44.208), (100, 1, 0.001, 22.215, 46.493)],
)
def test_worked_values(queries: int, budget: int, beta: float, threshold: float, superquantile: float) -> None:
    extremes = noise_extremes(queries, budget, beta)
    assert extremes.quantile(beta) == pytest.approx(threshold, abs=0.05)
    assert extremes.superquantile(beta, extremes.quantile(beta)) == pytest.approx(superquantile, abs=0.05)


@pytest.mark.parametrize("case", [(1000, 1), (50, 20), (10**6, 3)])
def test_tail_is_an_upper_bound_and_close(case: tuple[int, int]) -> None:
    extremes = noise_extremes(*case, 0.05)
    for probability in (0.2, 0.05, 1e-3, 1e-4):
        index = int(np.argmax(extremes.tail <= probability))
        exact = float(tail_of_g(float(extremes.surprises[index]), *case))
        assert exact <= extremes.tail[index] <= 1.005 * exact


def test_one_question_and_one_hit_in_closed_form() -> None:
    extremes = noise_extremes(1, 1, 0.05)
    positive = extremes.surprises >= 0
    v = extremes.surprises[positive]
    exact = (4 * np.exp(-v / 2) - np.exp(-v)) / 6  # the sum of Lap(2) and Lap(1)
    assert np.all(extremes.tail[positive] >= exact)
    resolved = exact > 0.05 / 1000
    near = v > 4
    assert np.all((extremes.tail[positive] <= 1.02 * exact)[resolved & near])


def test_other_ratios_in_closed_form() -> None:
    extremes = noise_extremes(1, 1, 0.01, NoiseRatios(threshold=3.0, test=1.0, answer=2.0))
    v = extremes.surprises[extremes.surprises > 6]
    exact = (9 * np.exp(-v / 3) - np.exp(-v)) / 16
    assert np.all(extremes.tail[extremes.surprises > 6] >= exact)
    assert extremes.quantile(0.01) == pytest.approx(3 * math.log(9 / 16 / 0.01), rel=2e-3)


def test_far_tail_of_a_huge_guard_is_valid_and_finite() -> None:
    start = time.perf_counter()
    extremes = noise_extremes(10**9, 10**5, 1e-12)
    quantile = extremes.quantile(1e-12)
    superquantile = extremes.superquantile(1e-12, quantile)
    assert time.perf_counter() - start < 5
    with mpmath.workdps(30):
        exact = tail_of_g(quantile, 10**9, 10**5)
        assert exact <= 1e-12
        assert exact >= 0.99e-12
    assert quantile < superquantile < 10 * quantile


def test_largest_error_when_only_answers_matter() -> None:
    """With a threshold far below, M is the answers' error: VaR and CVaR of the largest of B exponentials."""
    extremes = noise_extremes(1, 3, 0.05)
    exact = 4 * -math.log1p(-((1 - 0.05) ** (1 / 3)))
    assert answer_quantile(3, 0.05) == pytest.approx(exact, rel=1e-9)
    assert answer_quantile(3, 0.05) >= exact
    assert extremes.error_quantile(0.05, -1e3) == pytest.approx(exact, rel=2e-3)
    assert extremes.error_quantile(0.05, -1e3, grid=50.0) == pytest.approx(25 + exact, rel=2e-3)
    one = noise_extremes(1, 1, 0.05).superquantile(0.05, -1e3)
    assert 4 * (math.log(20) + 1) <= one <= 4 * (math.log(20) + 1) * 1.001  # an exponential's tail is memoryless


def test_a_threshold_far_above_moves_everything() -> None:
    extremes = noise_extremes(1000, 10, 0.05)
    near = extremes.superquantile(0.05, 100.0)
    assert extremes.superquantile(0.05, 1e6) == pytest.approx(1e6 - 100 + near, abs=0.01)


cases = st.tuples(st.integers(1, 10**6), st.integers(1, 10**4), st.floats(1e-9, 0.4))


@settings(max_examples=40, deadline=None)
@given(cases, st.integers(1, 10), st.floats(0.05, 1.0))
def test_monotone(case: tuple[int, int, float], factor: int, share: float) -> None:
    queries, budget, beta = case

    def bounds(m: int, b: int, p: float) -> tuple[float, float]:
        extremes = noise_extremes(m, b, p)
        return extremes.quantile(p), extremes.superquantile(p, 20.0)

    here = bounds(queries, budget, beta)
    for more in (bounds(queries * factor, budget, beta), bounds(queries, budget * factor, beta)):
        assert all(a <= b * (1 + 1e-3) for a, b in zip(here, more, strict=True))
    assert all(a <= b * (1 + 1e-3) for a, b in zip(here, bounds(queries, budget, beta * share), strict=True))
    assert here[1] >= here[0]
