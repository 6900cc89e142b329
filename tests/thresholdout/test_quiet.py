"""The law behind the quiet margin, against closed forms and mpmath."""

import time

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresholdout.planning.quiet import quiet_law

# (m, B, beta): VaR of max gamma + max (-delta), by adaptive quadrature with 20 digits (mpmath).
REFERENCE = {
    (1000, 1, 0.05): 18.859075,
    (1000, 10, 0.05): 21.055161,
    (100, 1, 0.001): 22.210237,
    (10, 1000, 0.05): 16.433173,
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
def test_quantiles_exceed_the_reference_by_a_two_thousandth_at_most(
    case: tuple[int, int, float], expected: float
) -> None:
    quantile = quiet_law(*case).quantile(case[2])
    assert expected <= quantile + 1e-6
    assert quantile <= expected * 1.0005


@pytest.mark.parametrize(
    ("case", "expected"), [((1000, 1, 0.05), 18.864), ((1000, 10, 0.05), 21.060), ((100, 1, 0.001), 22.215)]
)
def test_worked_values(case: tuple[int, int, float], expected: float) -> None:
    assert quiet_law(*case).quantile(case[2]) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("case", [(1000, 1), (50, 20), (10**6, 3)])
def test_tail_is_an_upper_bound_and_close(case: tuple[int, int]) -> None:
    law = quiet_law(*case, 0.05)
    for probability in (0.2, 0.05, 1e-3, 1e-4):
        index = int(np.argmax(law.tail <= probability))
        exact = float(tail_of_g(float(law.surprises[index]), *case))
        assert exact <= law.tail[index] <= 1.005 * exact


def test_one_question_and_one_hit_in_closed_form() -> None:
    law = quiet_law(1, 1, 0.05)
    positive = law.surprises >= 0
    v = law.surprises[positive]
    exact = (4 * np.exp(-v / 2) - np.exp(-v)) / 6  # the sum of Lap(2) and Lap(1)
    assert np.all(law.tail[positive] >= exact)
    near = (exact > 0.05 / 1000) & (v > 4)
    assert np.all((law.tail[positive] <= 1.02 * exact)[near])


def test_far_tail_of_a_huge_guard_is_valid_and_finite() -> None:
    start = time.perf_counter()
    quantile = quiet_law(10**9, 10**5, 1e-12).quantile(1e-12)
    assert time.perf_counter() - start < 5
    with mpmath.workdps(30):
        assert 0.99e-12 <= tail_of_g(quantile, 10**9, 10**5) <= 1e-12


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**4), st.floats(1e-9, 0.4), st.integers(1, 10), st.floats(0.05, 1.0))
def test_monotone(queries: int, budget: int, beta: float, factor: int, share: float) -> None:
    def quantile(m: int, b: int, p: float) -> float:
        return quiet_law(m, b, p).quantile(p)

    here = quantile(queries, budget, beta)
    assert here <= quantile(queries * factor, budget, beta) * (1 + 1e-3)
    assert here <= quantile(queries, budget * factor, beta) * (1 + 1e-3)
    assert here <= quantile(queries, budget, beta * share) * (1 + 1e-3)
