"""The exact optimum, against enumeration of outcomes and against the sum in many digits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.oracles import equal_delta, product_hockey_stick, worst_pair
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.adaptive_steps import compose_kov
from thresholdout.privacy.accounting.binomial_probabilities import logistic, window
from thresholdout.privacy.accounting.bound_arguments import sum_up, tail_slack
from thresholdout.privacy.accounting.optimal_composition import (
    compose_optimal_delta,
    compose_optimal_epsilon,
    optimal_delta_bounds,
    optimal_epsilon_bounds,
)

QUICK = settings(max_examples=25, derandomize=True, deadline=None)


def test_worked_values() -> None:
    assert compose_optimal_delta(0.1, 0, 5.756105519335735, 100) == pytest.approx(3.808383547e-9, rel=1e-9)
    assert compose_optimal_delta(0.1, 1e-6, 5.756105519335735, 100) == pytest.approx(9.999885816442381e-05, rel=1e-11)
    assert compose_optimal_epsilon(0.1, 0, 1e-6, T=100) == pytest.approx(4.774567588107986, rel=1e-11)
    with pytest.raises(InputError, match="delta_total"):
        compose_optimal_epsilon(0.1, 1e-6, 1e-5, T=100)


@pytest.mark.slow
@QUICK
@given(st.floats(0.01, 2), st.sampled_from([0.0, 1e-6, 0.01]), st.floats(0, 1.2))
def test_five_equal_steps_by_enumeration(eps: float, delta: float, place: float) -> None:
    exact = product_hockey_stick([(eps, delta)] * 5, place * 5 * eps)
    low, high = optimal_delta_bounds(eps, delta, place * 5 * eps, 5)
    assert low <= exact <= high
    assert high == pytest.approx(float(exact), rel=1e-10, abs=1e-290)


@pytest.mark.slow
@QUICK
@given(
    st.lists(
        st.tuples(st.just(0.0) | st.floats(1e-20, 2), st.sampled_from([0.0, 1e-6, 0.01])), min_size=2, max_size=5
    ),  # the twin has 40 digits
    st.floats(0, 1.1),
)
def test_unequal_steps_by_enumeration(steps: list[tuple[float, float]], place: float) -> None:
    eps, delta = zip(*steps, strict=True)
    total = place * sum(eps)
    exact = product_hockey_stick(steps, total)
    low, high = optimal_delta_bounds(eps, delta, total)
    assert low <= exact <= high
    assert high == pytest.approx(float(exact), rel=1e-9, abs=1e-14)


@pytest.mark.slow
@for_each(("eps", "T"), [(0.01, 3000), (0.1, 700), (1.0, 60), (5.0, 12), (1e-4, 2000), (30.0, 5), (700.0, 3)])
@for_each("place", [0.0, 0.02, 0.1, 0.5, 0.99])
def test_equal_steps_in_many_digits(eps: float, T: int, place: float) -> None:
    exact = equal_delta(eps, 0, place * T * eps, T)
    low, high = optimal_delta_bounds(eps, 0, place * T * eps, T)
    assert low <= exact <= high
    if exact > 1e-280:
        assert high == pytest.approx(float(exact), rel=1e-10)


def test_groups_of_unequal_steps() -> None:
    eps = np.repeat(np.linspace(0.01, 0.1, 4), 20)
    low, high = optimal_epsilon_bounds(eps, 0, 1e-6)
    assert low <= high <= low * (1 + 1e-9)
    assert high < compose_kov(eps, 0, 1e-6).eps
    below, above = optimal_delta_bounds(eps, 0, high)
    assert below <= 1e-6
    assert above <= 1e-6 * (1 + 1e-9)
    # steps rounded up to one of two values cost more
    rounded = np.where(eps <= 0.05, 0.05, 0.1)
    assert above < compose_optimal_delta(rounded, 0, high)


@QUICK
@given(st.floats(0.01, 3), st.integers(1, 200), st.sampled_from([0.0, 1e-8]), st.sampled_from([1e-9, 1e-5, 0.1]))
def test_round_trip(eps: float, T: int, delta: float, more: float) -> None:
    total = -math.expm1(T * math.log1p(-delta)) + more
    low, high = optimal_epsilon_bounds(eps, delta, total, T)
    assert low <= high
    assert compose_optimal_delta(eps, delta, high, T) <= total
    assert float(equal_delta(eps, delta, high, T)) <= total
    if low > 0:
        assert float(equal_delta(eps, delta, low * (1 - 1e-9), T)) > total
    assert high <= sum_up([eps], [T])


def test_delta_falls_with_epsilon_to_what_leaks_outright() -> None:
    grid = np.linspace(0, 10.5, 200)
    values = [compose_optimal_delta(0.1, 1e-6, float(e), 100) for e in grid]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert values[-1] == pytest.approx(-math.expm1(100 * math.log1p(-1e-6)), rel=1e-12)
    pair = worst_pair(0.1, 0.01)
    assert compose_optimal_delta(0.1, 0.01, 0.0) == pytest.approx(
        float(sum(abs(p - q) for p, q in pair) / 2), rel=1e-12
    )


def test_steps_without_epsilon() -> None:
    assert compose_optimal_delta(0.0, 0.0, 0.0, 50) == 0
    assert compose_optimal_epsilon(0.0, 1e-9, 1e-6, 50) == 0
    assert compose_optimal_delta([0.0, 0.3, 0.0], 0, 0.1) == compose_optimal_delta(0.3, 0, 0.1)


def test_too_many_different_steps() -> None:
    with pytest.raises(InputError, match="fewer values"):
        compose_optimal_delta(np.linspace(0.01, 0.02, 21), 0, 1.0)


def test_a_large_epsilon_and_many_steps() -> None:
    assert compose_optimal_epsilon(700, 0, 1e-9, 10**6) == 7e8
    assert compose_optimal_epsilon(1e-12, 0, 1e-9, 10**6) == 0
    small = compose_optimal_epsilon(0.001, 0, 1e-9, 10**6)
    assert small < compose_kov(0.001, 0, 1e-9, 10**6).eps


@QUICK
@given(st.sampled_from([1, 3, 16, 17, 500, 20_000]), st.floats(-12, 1.5), st.floats(0, 1))
def test_binomial_probabilities_in_many_digits(T: int, log_eps: float, place: float) -> None:
    import mpmath as mp

    x = mp.mpf(10**log_eps)
    found = window(T, *logistic(10**log_eps))
    k = found.first + round(place * (found.masses.size - 1))
    exact = mp.binomial(T, k) * mp.exp((k - T) * x - T * mp.log1p(mp.exp(-x)))
    if exact > 1e-290:
        assert found.masses[k - found.first] == pytest.approx(float(exact), rel=tail_slack(T))
    assert found.masses.sum() == pytest.approx(1, rel=1e-11)


@pytest.mark.slow
def test_agreement_with_privacy_loss_distributions_of_a_peer() -> None:
    """dp-accounting agrees where its grid divides every epsilon; for many steps its epsilon is a little too small."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    def step(eps: float, delta: float, grid: float) -> pld.PrivacyLossDistribution:
        parameters = common.DifferentialPrivacyParameters(eps, delta)
        return pld.from_privacy_parameters(parameters, value_discretization_interval=grid)

    eps = [0.1, 0.2, 0.25, 0.05, 0.3, 0.4]
    total = step(eps[0], 1e-6, 0.01)
    for value in eps[1:]:
        total = total.compose(step(value, 1e-6, 0.01))
    for e in (0.0, 0.3, 0.6, 1.0):
        assert compose_optimal_delta(eps, 1e-6, e) == pytest.approx(total.get_delta_for_epsilon(e), abs=1e-9)
    assert compose_optimal_epsilon(0.1, 0, 1e-6, 100) == pytest.approx(
        step(0.1, 0, 1e-4).self_compose(100).get_epsilon_for_delta(1e-6), rel=1e-8
    )
    theirs = step(0.01, 0, 1e-4).self_compose(10_000).get_epsilon_for_delta(1e-6)
    low, high = optimal_epsilon_bounds(0.01, 0, 1e-6, 10_000)
    assert theirs < low < high
    assert equal_delta(0.01, 0, theirs, 10_000) > 1.0000001e-6
    assert equal_delta(0.01, 0, high, 10_000) <= 1e-6
