"""The drift bound: worked values, high precision, small exact mechanisms."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import DependenceModel, Groups, Independent, MarkovChain
from tests.cases import for_each
from tests.sizes import corners
from thresholdout.certificates.drift_bound import belief_drift, drift_bound
from thresholdout.certificates.problem import Setting
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.planning.algorithm_1 import quiet_rise


def setting(model: DependenceModel, budget: int = 10, scale: float = 0.004) -> Setting:
    return Setting(model, SparseVectorParameters(0.05, scale, budget=budget, queries=1000), 0.95)


def test_worked_walks() -> None:
    assert belief_drift(0.1, 10, math.exp(-3)) == pytest.approx(0.22795, abs=5e-6)
    assert belief_drift(0.01, 100, math.exp(-3)) == pytest.approx(0.075565, abs=5e-7)


@pytest.mark.slow
def test_walk_in_high_precision() -> None:
    with mpmath.workdps(30):
        step, steps, failure = mpmath.mpf("0.05"), 40, mpmath.mpf("0.02")
        growth = (mpmath.exp(step) - 1) ** 2 / 4

        def bound(rate: mpmath.mpf) -> mpmath.mpf:
            total, current = mpmath.mpf(0), rate
            for _ in range(steps):
                total, current = total + current, current + current * (1 + current) * growth
            return mpmath.sqrt((step**2 / 8 * total - mpmath.log(failure)) / (2 * rate))

        best = min(bound(mpmath.exp(mpmath.mpf(i) / 200)) for i in range(-400, 1200))
        assert belief_drift(0.05, 40, 0.02) == pytest.approx(float(best), rel=1e-5)
        assert belief_drift(0.05, 40, 0.02) >= float(best) * (1 - 1e-5)


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-4, 0.3), st.integers(1, 3000), st.floats(1e-6, 0.5))
def test_walk_is_monotone(step: float, steps: int, failure: float) -> None:
    here, near = belief_drift(step, steps, failure), 1 + 1e-3
    assert belief_drift(1.2 * step, steps, failure) >= here / near
    assert belief_drift(step, steps + 1, failure) >= here / near
    assert belief_drift(step, 2 * steps, failure) >= here / near
    assert belief_drift(step, steps, failure / 2) >= here / near
    assert here <= 1


def test_many_steps_use_a_slightly_larger_sum() -> None:
    few, more = belief_drift(0.02, 128, 0.05), belief_drift(0.02, 129, 0.05)
    assert few < more < few * 1.02
    assert belief_drift(0.76 / math.sqrt(10**6) * 1e-2, 10**6, 0.05) < 0.01
    assert belief_drift(50.0, 1, 0.05) == 1.0


@for_each("steps", [1, 2, 4, 6])
def test_walk_on_randomised_responses(steps: int) -> None:
    """One record, B coins that tell it with log-odds eps_0, every prior: all outcomes of all prefixes, enumerated."""
    step, failure = 0.5, 0.2
    truthful = 1 / (1 + math.exp(-step))
    drift = belief_drift(step, steps, failure)
    small = 0.0
    for prior in np.linspace(0.02, 0.98, 49):
        broken = 0.0
        for outcome in itertools.product((0, 1), repeat=steps):
            ones, zeros, moved = prior, 1 - prior, 0.0
            for bit in outcome:
                ones *= truthful if bit else 1 - truthful
                zeros *= 1 - truthful if bit else truthful
                moved = max(moved, abs(ones / (ones + zeros) - prior))
            broken += (ones + zeros) * (moved >= drift)
            small += (ones + zeros) * (moved >= drift / 3)
        assert broken <= failure
    assert small / 49 > failure


def test_walk_beats_the_posterior_certificate_from_ten_steps_on() -> None:
    assert belief_drift(0.01, 4, 0.05) > math.tanh(0.01 * 4 / 4)
    assert belief_drift(0.01, 16, 0.05) < math.tanh(0.01 * 16 / 4)


def test_routes_need_independent_groups_and_limits() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=100)
    unlimited = Setting(Independent(100), SparseVectorParameters(0.05, 0.01, budget=None, queries=None), 0.95)
    assert "neither independent nor in independent groups" in drift_bound(setting(chain)).why_not
    assert "no limit is declared" in drift_bound(unlimited).why_not


def test_routes_of_equal_groups_are_those_of_as_many_records() -> None:
    groups = Groups([record // 4 for record in range(40_000)])
    ours, single = drift_bound(setting(groups)).tolerance, drift_bound(setting(Independent(10_000))).tolerance
    assert ours == pytest.approx(single, rel=1e-4)


@pytest.mark.slow
def test_routes_are_monotone() -> None:
    here = drift_bound(setting(Independent(50_000))).tolerance
    assert drift_bound(setting(Independent(100_000))).tolerance < here
    assert drift_bound(setting(Independent(50_000), budget=20)).tolerance > here
    unequal = Groups([0, 1] + [2 + record // 2 for record in range(49_998)])
    assert drift_bound(setting(unequal)).tolerance > here


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "budget", "expected"), corners([(10_000, 1, 0.0958), (100_000, 10, 0.1002), (100_000, 100, 0.195)], 0)
)
def test_walk_orders_of_magnitude(n: int, budget: int, expected: float) -> None:
    """Worked tolerances rest on the cruder law of the largest error, without which they are up to a fifth smaller."""
    best = math.inf
    for scale in np.geomspace(1e-3, 3e-3, 9).tolist():
        parameters = SparseVectorParameters(scale * quiet_rise(1000, 0.05), scale, budget=budget, queries=1000)
        best = min(best, drift_bound(Setting(Independent(n), parameters, 0.95)).tolerance)
    assert 0.8 * expected < best < expected
