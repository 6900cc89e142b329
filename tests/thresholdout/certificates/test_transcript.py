"""The transcript certificate: worked values, exact counts, and what it refuses."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import Groups, Independent, MovingWindow
from thresholdout.certificates import certify
from thresholdout.certificates.setting import Setting
from thresholdout.certificates.transcript import DeclaredWidths, Radius, possible_queries, transcript
from thresholdout.mechanisms import SparseVector, ThresholdoutParameters


def exact_radius(n: int, inflation: float, levels: int, beta: float, m: int, b: int, i: int, j: int) -> float:
    with mpmath.workdps(40):
        words = mpmath.mpf(math.comb(i - 1, j)) * mpmath.mpf(levels) ** j
        return float(mpmath.sqrt(inflation * mpmath.log(2 * words * m * b / mpmath.mpf(beta)) / (2 * n)))


def test_worked_radii() -> None:
    radius = Radius(10_000, 1.0, 101, 0.025, queries=1000, budget=3)
    assert radius(1, 0) == pytest.approx(0.02488814396688123, abs=1e-9)
    assert radius(500, 1) == pytest.approx(0.03407060376256711, abs=1e-9)
    assert radius(1000, 2) == pytest.approx(0.04167612992493807, abs=1e-9)
    assert radius.largest() == radius(1000, 2)


def test_possible_queries() -> None:
    assert possible_queries(1000, 3, 100) == 41418786469951000
    assert possible_queries(1000, 2, 100) == sum(math.comb(1000, j + 1) * 100**j for j in range(3))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 40), st.integers(2, 10**6), st.floats(1e-12, 0.5), st.data())
def test_radius_is_the_exact_one_rounded_up(m: int, b: int, levels: int, beta: float, data: st.DataObject) -> None:
    i = data.draw(st.integers(1, m))
    j = data.draw(st.integers(0, min(i, b) - 1))
    exact = exact_radius(1000, 2.5, levels, beta, m, b, i, j)
    assert exact * (1 - 1e-15) <= Radius(1000, 2.5, levels, beta, m, b)(i, j) <= exact * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 50))
def test_largest_radius(m: int, b: int, levels: int) -> None:
    radius = Radius(1000, 1.0, levels, 0.05, m, min(m, b))
    by_hand = max(radius(i, j) for i in range(1, m + 1) for j in range(min(i, b)))
    assert radius.largest() == pytest.approx(by_hand, rel=1e-12)


def test_weights_add_up_to_at_most_one() -> None:
    """Sum over all words of their failure probabilities, recovered from the radii, is at most beta."""
    for queries, budget in ((12, 4), (None, None), (12, None), (None, 4)):
        radius = Radius(100, 1.0, 3, 0.05, queries, budget)
        total = sum(
            math.comb(i - 1, j) * 3**j * 2 * math.exp(-200 * radius(i, j) ** 2)
            for i in range(1, 13)
            for j in range(min(i, budget or 12))
        )
        assert 0.2 * 0.05 < total <= 0.05 * (1 + 1e-9)


def setting(**changes: object) -> Setting:
    arguments = {"threshold": 0.01, "noise_scale": 1e-4, "budget": 3, "queries": 1000, "grid": 0.01}
    parameters = ThresholdoutParameters(**(arguments | changes))  # type: ignore[arg-type]
    return Setting(Independent(10_000), parameters, 0.95)


def test_the_noise_bounds_fail_with_the_probability_that_is_left() -> None:
    widths = transcript(setting()).widths
    assert isinstance(widths, DeclaredWidths)
    spared = 0.05 - widths.radius.beta
    scale, slack = 1e-4, setting().slack
    surprise = (widths.train - 0.01 - slack) / scale
    error = (widths.holdout - 0.005 - slack) / scale
    by_threshold = 1 - (1 - (4 * math.exp(-surprise / 2) - math.exp(-surprise)) / 6) ** 3
    by_answers = 1 - (1 - math.exp(-error / 4)) ** 3
    assert 0.999 * spared < by_threshold + by_answers <= spared * (1 + 1e-9)


def test_joint_bound_when_answers_are_the_wider_ones() -> None:
    widths = transcript(setting(queries=3, budget=3, threshold=1e-3, grid=0.5)).widths
    assert isinstance(widths, DeclaredWidths)
    assert widths.train == widths.holdout
    assert widths.train >= 0.25 + 4e-4 * -math.log(1 - 0.95 ** (1 / 3))


def test_anytime_half_widths_by_hand() -> None:
    certificate = certify(Independent(10_000), threshold=0.01, noise_scale=1e-4, budget=None, queries=None, grid=0.01)
    assert certificate.tolerance == math.inf
    assert certificate.route == "transcript"
    beta, i, j = 0.05, 40, 2
    words = math.comb(i - 1, j) * 101**j
    by_query, by_hit = 6 / (math.pi * i) ** 2, 2.0 ** -(j + 1)
    radius = math.sqrt(math.log(2 * words / (beta / 2 * by_query * by_hit)) / 20_000)
    share = beta / 4 * by_hit
    holdout = 4e-4 * math.log(1 / share) + 0.005 + radius
    train = certificate.half_width(i, j, "train")
    surprise = (train - radius - 0.01) / 1e-4
    assert (4 * math.exp(-surprise / 2) - math.exp(-surprise)) / 6 == pytest.approx(share, rel=1e-5)
    assert certificate.half_width(i, j, "holdout") == pytest.approx(holdout, rel=1e-8)
    assert certificate.half_width(i, j, "holdout") >= holdout


def test_declared_half_widths_stay_below_the_tolerance_and_grow() -> None:
    certificate = certify(Independent(10_000), threshold=0.01, noise_scale=1e-4, budget=5, queries=100, grid=0.01)
    widths = [[certificate.half_width(i, j, "train") for i in range(j + 1, 101)] for j in range(5)]
    assert all(np.all(np.diff(row) >= 0) for row in widths)
    assert max(map(max, widths)) <= certificate.tolerance
    assert certificate.half_width(100, 4, "holdout") <= certificate.tolerance


def test_without_a_grid_the_noise_grid_counts() -> None:
    parameters = ThresholdoutParameters(0.01, 1e-4, budget=3, queries=100)
    assert Setting(Independent(1000), parameters, 0.95).levels == round(1 / SparseVector(parameters).resolution) + 1


def test_useless_inflation_is_refused() -> None:
    certificate = certify(Groups([0] * 50), threshold=0.1, noise_scale=0.01, budget=None, queries=None, grid=0.1)
    assert certificate.route == "none"
    assert certificate.half_width(1, 0, "train") == math.inf
    assert "no variance inflation below n" in str(certificate.routes.loc["transcript", "why_not"])
    assert "Nothing is certified" in certificate.statement


def test_inflation_widens_the_radius() -> None:
    narrow = Radius(1000, Independent(1000).variance_inflation(), 17, 0.05, 100, 3)(50, 1)
    wide = Radius(1000, MovingWindow(1000, 3).variance_inflation(), 17, 0.05, 100, 3)(50, 1)
    assert wide == pytest.approx(2 * narrow, rel=1e-9)
