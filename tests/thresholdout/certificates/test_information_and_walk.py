"""Mutual information, walk and [J20]: worked values, certified counts, high precision, small exact mechanisms."""

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import DependenceModel, Groups, Independent, MarkovChain
from tests.sizes import corners
from thresholdout.certificates.baselines.jung_et_al import posterior_sensitivity_width
from thresholdout.certificates.largest_error import LargestError
from thresholdout.certificates.problem import Setting
from thresholdout.certificates.routes.belief_walk import walk, walk_drift
from thresholdout.certificates.routes.mutual_information import (
    divergence_width,
    monitor_width,
    mutual_information,
    published_information_width,
    second_moment,
    worst_question_deviation,
    worst_question_second_moment,
)
from thresholdout.mechanisms import ThresholdoutParameters
from thresholdout.planning.algorithm_1 import quiet_rise

Width = Callable[[float, int, float], float]

COUNTS = [  # n, tau, RZ, XR, J20, route 3
    (5_000, 0.1, 1, 0, 0, 7),
    (10_000, 0.1, 6, 3, 2, 28),
    (50_000, 0.1, 234, 80, 43, 559),
    (100_000, 0.1, 935, 295, 156, 2010),
    (100_000, 0.05, 55, 21, 11, 156),
]


def setting(model: DependenceModel, budget: int = 10, scale: float = 0.004) -> Setting:
    return Setting(model, ThresholdoutParameters(0.05, scale, budget=budget, queries=1000), 0.95)


@pytest.mark.parametrize(("n", "tau", "monitor", "printed", "sensitivity", "divergence"), COUNTS)
def test_counts(n: int, tau: float, monitor: int, printed: int, sensitivity: int, divergence: int) -> None:
    exact: list[tuple[Width, int]] = [
        (monitor_width, monitor),
        (published_information_width, printed),
        (lambda size, k, beta: posterior_sensitivity_width(int(size), k, beta), sensitivity),
    ]
    for width, count in exact:
        assert count == 0 or width(n, count, 0.05) <= tau
        assert width(n, count + 1, 0.05) > tau
    assert divergence_width(n, divergence, 0.05) <= tau
    assert divergence_width(n, divergence + divergence // 20 + 2, 0.05) > tau


def test_divergence_against_exact_inversion() -> None:
    """``kl(b2, 2 exp(-2 N t^2)) = x`` solved for t: what the entropy form gives up is less than a hundredth of x."""
    with mpmath.workdps(40):
        for size, x, b2 in ((1000, 2.0, 0.03), (10**5, 50.0, 0.01), (500, 0.1, 0.03)):
            bound = float(worst_question_deviation(size, np.array(x), np.array(b2)))
            product = 2 * mpmath.exp(-2 * size * mpmath.mpf(bound) ** 2)
            joint = mpmath.mpf(b2)
            divergence = joint * mpmath.log(joint / product) + (1 - joint) * mpmath.log((1 - joint) / (1 - product))
            assert divergence >= x * (1 - mpmath.mpf("1e-12"))
            assert divergence <= x * (1 + mpmath.mpf("1e-2"))


def test_second_moment_in_high_precision() -> None:
    with mpmath.workdps(30):
        for size, x in ((1000, 3.0), (10**5, 1e-3)):

            def cost(rate: mpmath.mpf, x: float = x, size: int = size) -> mpmath.mpf:
                return (2 * mpmath.mpf(x) - mpmath.log(1 - rate)) / (4 * size * rate)

            best = min(cost(mpmath.mpf(i) / 20_000) for i in range(1, 20_000))
            assert worst_question_second_moment(size, x) == pytest.approx(float(best), rel=1e-6)


def test_second_moment_of_the_largest_error_by_integration() -> None:
    law = LargestError(3)
    points = np.linspace(0, 120, 400_001)
    surprise = np.where(points > 15, (4 * np.exp(-(points - 15) / 2) - np.exp(-(points - 15))) / 6, 1.0)
    tail = 1 - ((1 - surprise) * (1 - np.exp(-np.maximum(points - 0.25, 0) / 4))) ** 3
    exact = float(np.trapezoid(2 * points * tail, points))
    assert exact <= law.second_moment(15.0, 0.5) <= exact * (1 + 2e-3)


def test_mutual_information_bounds_an_exact_small_mechanism() -> None:
    """Three fair bits, one Gaussian answer: I(X; Y) by integration is at most 1/(8 n s^2), and near it for large s."""
    states = np.array(list(itertools.product((0, 1), repeat=3))).mean(axis=1)
    for scale, ratio in ((0.1, 0.2), (2.0, 0.98)):
        y = np.linspace(-12 * scale - 1, 12 * scale + 2, 40_001)
        densities = np.exp(-0.5 * ((y - states[:, None]) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
        mixture = densities.mean(axis=0)
        safe = np.maximum(densities, 1e-300)
        exact = float(np.mean(np.trapezoid(safe * np.log(safe / np.maximum(mixture, 1e-300)), y, axis=1)))
        bound = 1 / (8 * 3 * scale**2)
        assert ratio * bound < exact <= bound


# Walk


def test_worked_walks() -> None:
    assert walk_drift(0.1, 10, math.exp(-3)) == pytest.approx(0.22795, abs=5e-6)
    assert walk_drift(0.01, 100, math.exp(-3)) == pytest.approx(0.075565, abs=5e-7)


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
        assert walk_drift(0.05, 40, 0.02) == pytest.approx(float(best), rel=1e-5)
        assert walk_drift(0.05, 40, 0.02) >= float(best) * (1 - 1e-5)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-4, 0.3), st.integers(1, 3000), st.floats(1e-6, 0.5))
def test_walk_is_monotone(step: float, steps: int, failure: float) -> None:
    here, near = walk_drift(step, steps, failure), 1 + 1e-3
    assert walk_drift(1.2 * step, steps, failure) >= here / near
    assert walk_drift(step, steps + 1, failure) >= here / near
    assert walk_drift(step, 2 * steps, failure) >= here / near
    assert walk_drift(step, steps, failure / 2) >= here / near
    assert here <= 1


def test_many_steps_use_a_slightly_larger_sum() -> None:
    few, more = walk_drift(0.02, 128, 0.05), walk_drift(0.02, 129, 0.05)
    assert few < more < few * 1.02
    assert walk_drift(0.76 / math.sqrt(10**6) * 1e-2, 10**6, 0.05) < 0.01
    assert walk_drift(50.0, 1, 0.05) == 1.0


@pytest.mark.parametrize("steps", [1, 2, 4, 6])
def test_walk_on_randomised_responses(steps: int) -> None:
    """One record, B coins that tell it with log-odds eps_0, every prior: all outcomes of all prefixes, enumerated."""
    step, failure = 0.5, 0.2
    truthful = 1 / (1 + math.exp(-step))
    drift = walk_drift(step, steps, failure)
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
    assert walk_drift(0.01, 4, 0.05) > math.tanh(0.01 * 4 / 4)
    assert walk_drift(0.01, 16, 0.05) < math.tanh(0.01 * 16 / 4)


# Routes


def test_routes_need_independent_groups_and_limits() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], n=100)
    unlimited = Setting(Independent(100), ThresholdoutParameters(0.05, 0.01, budget=None, queries=None), 0.95)
    for route in (walk, mutual_information, second_moment):
        assert "neither independent nor in independent groups" in route(setting(chain)).why_not
        assert "no limit is declared" in route(unlimited).why_not


def test_routes_of_equal_groups_are_those_of_as_many_records() -> None:
    groups = Groups([record // 4 for record in range(40_000)])
    for route in (walk, mutual_information, second_moment):
        ours, single = route(setting(groups)).tolerance, route(setting(Independent(10_000))).tolerance
        assert ours == pytest.approx(single, rel=1e-4)


def test_routes_are_monotone() -> None:
    for route in (walk, mutual_information, second_moment):
        here = route(setting(Independent(50_000))).tolerance
        assert route(setting(Independent(100_000))).tolerance < here
        assert route(setting(Independent(50_000), budget=20)).tolerance > here
        unequal = Groups([0, 1] + [2 + record // 2 for record in range(49_998)])
        assert route(setting(unequal)).tolerance > here


@pytest.mark.parametrize(
    ("n", "budget", "expected"), corners([(10_000, 1, 0.0958), (100_000, 10, 0.1002), (100_000, 100, 0.195)], 0)
)
def test_walk_orders_of_magnitude(n: int, budget: int, expected: float) -> None:
    """Worked tolerances rest on the cruder law of the largest error, without which they are up to a fifth smaller."""
    best = math.inf
    for scale in np.geomspace(1e-3, 3e-3, 9).tolist():
        parameters = ThresholdoutParameters(scale * quiet_rise(1000, 0.05), scale, budget=budget, queries=1000)
        best = min(best, walk(Setting(Independent(n), parameters, 0.95)).tolerance)
    assert 0.8 * expected < best < expected
