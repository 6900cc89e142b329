"""Basic and advanced composition, the corrected tail."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.privacy.accounting.oracles import bernoulli_tail, equal_delta
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.adaptive_steps import (
    chernoff_delta,
    compose_basic,
    compose_chernoff,
    compose_dwork_roth,
    compose_kov,
    compose_theorem5,
    log_tail,
)
from thresholdout.privacy.accounting.optimal_composition import compose_optimal_delta
from thresholdout.privacy.accounting.published_bounds import compose_he

QUICK = settings(max_examples=30, derandomize=True, deadline=None)


def test_worked_values() -> None:
    found = compose_kov(0.1, 1e-6, 1e-6, 100)
    assert found.details["e1"] == pytest.approx(10, rel=1e-12)
    assert found.details["e2"] == pytest.approx(5.7561060364605785, rel=1e-12)
    assert found.details["e3"] == pytest.approx(5.756105519335735, rel=1e-12)
    assert found.eps == found.details["e3"]
    assert found.delta == pytest.approx(1.0099495016664591e-4, rel=1e-12)
    assert compose_basic(0.1, 1e-6, 100).delta == pytest.approx(9.999505016169608e-05, rel=1e-12)
    assert log_tail(0.1, 100, 5.756105519335735) == pytest.approx(-14.876609651117974, rel=1e-12)
    assert compose_theorem5(0.1, 1e-6, 100).eps == pytest.approx(5.756105519335735, rel=1e-12)


def test_twelve_digit_sums() -> None:
    """Dwork and Roth's rule by its formula, for unequal steps."""
    eps, delta, dt = [0.1, 0.5, 0.3], [1e-6, 0.0, 1e-3], 1e-5
    expected = sum(e * (math.exp(e) - 1) for e in eps) + math.sqrt(2 * sum(e * e for e in eps) * math.log(1 / dt))
    found = compose_dwork_roth(eps, delta, dt)
    assert found.eps == pytest.approx(expected, rel=1e-12)
    assert found.delta == pytest.approx(1e-5 + 1e-6 + 1e-3, rel=1e-12)
    assert compose_basic(eps, delta, union=True).delta == pytest.approx(1.001e-3, rel=1e-12)
    assert compose_basic(eps, delta).delta == pytest.approx(1 - (1 - 1e-6) * (1 - 1e-3), rel=1e-9)


def test_when_the_second_epsilon_beats_the_third() -> None:
    for eps, T, dt in [(0.1, 50, 0.05), (0.1, 50, 0.3), (0.01, 20, 0.3), (0.5, 9, 1e-3), (1e-3, 1000, 0.2)]:
        details = compose_kov(eps, 0, dt, T).details
        Q = T * eps**2
        assert (details["e2"] < details["e3"]) == (math.e * dt + math.sqrt(Q) < 1)


@for_each(("eps", "least"), [(0.1, 31), (0.5, 49), (1.0, 96), (2.0, 487)])
def test_advanced_beats_basic_from_a_number_of_steps_on(eps: float, least: int) -> None:
    bound = 2 * math.log(1e6) / (1 - math.tanh(eps / 2)) ** 2
    assert least == math.floor(bound) + 1
    for T in (least - 1, least):
        details = compose_kov(eps, 0, 1e-6, T).details
        assert (details["e3"] < details["e1"]) == (least <= T)


def test_dt_is_dropped_when_the_sum_is_the_smallest() -> None:
    found = compose_kov(0.5, 1e-3, 1e-6, 2)
    assert found.details["active"] == "e1"
    assert found.eps == 1.0
    assert found.delta == pytest.approx(1 - 0.999**2, rel=1e-12)
    assert found.details["literal_delta"] == pytest.approx(1 - (1 - 1e-6) * 0.999**2, rel=1e-12)


@QUICK
@given(st.floats(1e-6, 50), st.floats(0, 0.99))
def test_one_step_costs_itself(eps: float, delta: float) -> None:
    assert tuple(compose_basic(eps, delta)) == (eps, delta)
    for found in (compose_kov(eps, delta, 1e-9), compose_chernoff(eps, delta, 1, 1e-9), compose_he(eps, delta, 1e-9)):
        assert tuple(found) == (eps, delta)
    assert compose_optimal_delta(eps, delta, eps) == delta


@pytest.mark.slow
@QUICK
@given(st.permutations([(0.1, 1e-6), (0.3, 0.0), (0.1, 1e-3), (0.7, 1e-5), (0.1, 1e-6)]))
def test_order_does_not_matter(order: list[tuple[float, float]]) -> None:
    eps, delta = zip(*order, strict=True)
    base = ([0.1, 0.1, 0.1, 0.3, 0.7], [1e-6, 1e-6, 1e-3, 0.0, 1e-5])
    assert compose_basic(eps, delta) == compose_basic(*base)
    assert compose_kov(eps, delta, 1e-6) == compose_kov(*base, 1e-6)
    assert compose_dwork_roth(eps, delta, 1e-6) == compose_dwork_roth(*base, 1e-6)
    assert compose_optimal_delta(eps, delta, 0.6) == compose_optimal_delta(*base, 0.6)


def test_equal_entries_are_the_scalar_form() -> None:
    eps, delta = np.full(7, 0.2), [1e-5] * 7
    assert compose_kov(eps, delta, 1e-6) == compose_kov(0.2, 1e-5, 1e-6, 7)
    assert compose_basic(eps, 1e-5) == compose_basic(0.2, 1e-5, 7)
    assert compose_theorem5(eps, 1e-6) == compose_theorem5(0.2, 1e-6, 7)
    assert compose_optimal_delta(eps, delta, 0.5) == compose_optimal_delta(0.2, 1e-5, 0.5, 7)


@pytest.mark.slow
@QUICK
@given(
    st.floats(0.01, 2),
    st.integers(2, 300),
    st.sampled_from([1e-9, 1e-6, 1e-3, 0.1]),
    st.sampled_from([0.0, 1e-6, 1e-3]),
)
def test_no_rule_is_below_the_optimum(eps: float, T: int, dt: float, delta: float) -> None:
    for found in (
        compose_basic(eps, delta, T),
        compose_kov(eps, delta, dt, T),
        compose_dwork_roth(eps, delta, dt, T),
        compose_chernoff(eps, delta, T, dt),
    ):
        best = float(equal_delta(eps, delta, found.eps, T))
        assert best <= found.delta <= 1
    three = compose_kov(eps, 0, dt, T).details
    for name in ("e2", "e3"):  # each of the two alone, also when it is not the smallest
        assert float(equal_delta(eps, 0, three[name], T)) <= dt


@QUICK
@given(st.floats(-4, 1.7), st.sampled_from([1, 2, 9, 100, 10_000, 10**6]), st.floats(0, 1))
def test_tail_is_the_bernoulli_form(log_eps: float, T: int, place: float) -> None:
    eps = 10**log_eps
    low = T * eps * math.tanh(eps / 2)
    total = low + place * (T * eps - low)
    assume(low < total < T * eps)
    exact = bernoulli_tail(eps, T, total)
    if exact > 1e-290:
        found = chernoff_delta(eps, T, total)
        assert found >= exact
        assert found == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.slow
@QUICK
@given(st.floats(0.01, 2), st.integers(2, 400), st.floats(0.01, 0.99))
def test_d2_the_corrected_tail_is_above_the_optimum(eps: float, T: int, place: float) -> None:
    low = T * eps * math.tanh(eps / 2)
    total = low + place * (T * eps - low)
    assert chernoff_delta(eps, T, total) >= equal_delta(eps, 0, total, T) - 1e-40


def test_chernoff_is_at_most_the_slack() -> None:
    for eps in (0.01, 0.1, 1.0):
        for dt in (1e-9, 1e-3):
            total = compose_theorem5(eps, dt, 500).eps
            assert 0 <= chernoff_delta(eps, 500, total) <= dt
            assert compose_chernoff(eps, 1e-6, 500, dt).delta <= compose_kov(eps, 1e-6, dt, 500).delta


def test_d3_where_the_tail_holds() -> None:
    assert chernoff_delta(0.1, 100, 10.0 + 1e-12) == 0
    assert chernoff_delta(0.1, 100, 0.9 * 10 * math.tanh(0.05)) == 1
    # without the factor eps in the side condition, T tanh(eps/2) = 0.05 would do for T = 1 and eps = 0.1, where the
    # mean loss is 0.005; for eps > 1 it would admit epsilons below the mean loss, where no such bound can hold
    eps, T = 3.0, 50
    between = 0.5 * (T * math.tanh(eps / 2) + T * eps * math.tanh(eps / 2))
    assert math.exp(log_tail(eps, T, between)) < 0.01 < 0.99 < float(equal_delta(eps, 0, between, T))
    assert chernoff_delta(eps, T, between) == 1


@pytest.mark.slow
@for_each("eps", [0.0, 1e-12, 0.3, 50.0, 700.0])
@for_each("T", [1, 10**6])
@for_each("delta", [0.0, 1e-300, 0.999999])
def test_no_overflow_and_no_nan(eps: float, T: int, delta: float) -> None:
    for dt in (1e-300, 1e-6, 0.999):
        for found in (
            compose_basic(eps, delta, T),
            compose_kov(eps, delta, dt, T),
            compose_chernoff(eps, delta, T, dt),
            compose_theorem5(eps, dt, T),
        ):
            assert math.isfinite(found.eps)
            assert 0 <= found.delta <= 1
        assert not math.isnan(compose_dwork_roth(eps, delta, dt, T).eps)
    for total in (0.0, 1e-9, 1.0, 1e6, 7e8):
        assert delta <= compose_optimal_delta(eps, delta, total, T) <= 1
        if eps > 0:
            assert 0 <= chernoff_delta(eps, T, total) <= 1


def test_d19_the_slack_is_in_the_logarithm() -> None:
    """As quoted, with ln(1/delta), the classic theorem would be infinite for pure steps."""
    assert math.isfinite(compose_dwork_roth(0.1, 0.0, 1e-6, 10).eps)


@for_each(
    ("eps", "delta", "T"),
    [
        (-0.1, 0, 2),
        (math.nan, 0, 2),
        (math.inf, 0, 2),
        (0.1, 1.0, 2),
        (0.1, -1e-9, 2),
        (0.1, 0, 0),
        ([], 0, None),
        ([[0.1]], 0, None),
        ([0.1, 0.2], [0.0], None),
        ([0.1, 0.2], 0, 3),
        ([0.1, math.nan], 0, None),
    ],
)
def test_refused_values(eps: Any, delta: Any, T: int | None) -> None:
    with pytest.raises(InputError):
        compose_basic(eps, delta, T)


@for_each("bad", [True, "0.1", None, 1j, [True, False], ["a"]])
def test_refused_types(bad: Any) -> None:
    with pytest.raises(InputTypeError):
        compose_basic(bad, 0, None if isinstance(bad, list) else 2)


def test_other_refusals() -> None:
    for dt in (0, 1, math.nan):
        with pytest.raises(InputError):
            compose_kov(0.1, 0, dt, 2)
    with pytest.raises(InputTypeError):
        compose_kov(0.1, 0, 0.1, 2.0)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        chernoff_delta(0.0, 10, 1.0)
