"""Questions, tolerances and records by every route: the order of things, and inverses of each other."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import Groups, Independent, MarkovChain, MovingWindow
from tests.sizes import corners
from thresholdout.certificates.capacity import best, fewest_records, questions_within, tolerances_for
from thresholdout.certificates.gaussian_certificate import certify_gaussian, gaussian_route
from thresholdout.errors import InputError
from thresholdout.mechanisms import GaussianParameters

COUNTS = [(2_000, 0.1, 14), (10_000, 0.1, 664), (100_000, 0.1, 73_964), (100_000, 0.05, 4_548)]


@pytest.mark.parametrize(("n", "tau", "least"), corners(COUNTS, 0, 1))
def test_certified_counts(n: int, tau: float, least: int) -> None:
    assert best(questions_within(Independent(n), tau)).questions >= least


@settings(max_examples=4, deadline=None)
@given(st.integers(20, 200_000), st.floats(0.03, 0.4))
def test_never_below_splitting(n: int, tau: float) -> None:
    reached = questions_within(Independent(n), tau, binary=True)
    counts = {reach.route: reach.questions for reach in reached if reach.sound}
    assert best(reached, identically_distributed=True).questions == max(counts.values())
    assert best(reached).questions == max(counts[route] for route in counts if not route.startswith("splitting"))
    assert counts["splitting, values 0 or 1"] >= counts["splitting"]
    assert counts["Gaussian, schedule"] >= counts["Gaussian, one scale"] * 0.99 - 1


@pytest.mark.slow
def test_questions_and_tolerances_are_inverse() -> None:
    model = Independent(20_000)
    for reach in questions_within(model, 0.1):
        if reach.questions == 0:
            continue
        at = {one.route: one.tolerance for one in tolerances_for(model, reach.questions)}[reach.route]
        above = {one.route: one.tolerance for one in tolerances_for(model, int(reach.questions * 1.02) + 2)}
        assert at <= 0.1 * (1 + 1e-3)
        assert above[reach.route] > 0.1


@pytest.mark.parametrize(("questions", "tau"), corners([(1, 0.1), (5, 0.1), (30, 0.05), (1000, 0.1), (73_964, 0.1)], 0))
def test_records_and_questions_are_inverse(questions: int, tau: float) -> None:
    for declared in (False, True):

        def most(n: int, declared: bool = declared) -> int:
            reached = questions_within(Independent(n), tau, binary=True)
            return best(reached, identically_distributed=declared).questions

        found = fewest_records(questions, tau, binary=True, identically_distributed=declared)
        assert found.route != "splitting, values 0 or 1" or declared
        assert most(math.ceil(found.records * 1.01)) >= questions
        assert most(int(found.records * 0.98) - 2) < questions


@pytest.mark.slow
def test_records_are_monotone() -> None:
    assert fewest_records(100, 0.1).records < fewest_records(200, 0.1).records
    assert fewest_records(100, 0.1).records < fewest_records(100, 0.09).records
    assert fewest_records(100, 0.1, 0.9).records < fewest_records(100, 0.1, 0.99).records


@pytest.mark.slow
def test_dependent_records() -> None:
    chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=100_000)
    reached = {reach.route: reach for reach in questions_within(chain, 0.1)}
    assert reached["Gaussian, schedule"].questions >= 2464
    assert reached["splitting"].questions == 0
    assert "nor in independent groups of one size" in reached["splitting"].why_not
    assert "neither independent" in reached["mutual information"].why_not
    assert best(tolerances_for(MovingWindow(100, 2), 5)).tolerance == math.inf
    unequal = {reach.route: reach for reach in questions_within(Groups([0, 0, 0, *range(1, 5000)]), 0.1)}
    assert "different sizes" in unequal["posterior sensitivity, published"].why_not


def test_bad_arguments() -> None:
    for tau in (0.0, 1.0, -1.0):
        with pytest.raises(InputError):
            questions_within(Independent(10), tau)
    with pytest.raises(InputError):
        tolerances_for(Independent(10), 0)
    with pytest.raises(InputError):
        fewest_records(0, 0.1)


# Certificates of a Gaussian guard


def test_certificate_of_the_schedule_is_the_tolerance_it_was_made_for() -> None:
    found = best(questions_within(Independent(10_000), 0.1))
    assert found.widths is not None
    parameters = GaussianParameters(found.widths.schedule.expand())
    certificate = certify_gaussian(Independent(10_000), parameters)
    assert certificate.tolerance == pytest.approx(0.1, rel=2e-3)
    assert certificate.route == "gaussian"
    assert certificate.splitting > certificate.tolerance
    assert certificate.half_width(1, 0, "holdout") <= certificate.tolerance
    assert "PROOFS.md" in certificate.statement


def test_threshold_grid_and_limits_of_a_gaussian_guard() -> None:
    model = Independent(50_000)
    plain = certify_gaussian(model, GaussianParameters(0.02, queries=500))
    coarse = certify_gaussian(model, GaussianParameters(0.02, queries=500, grid=1 / 64))
    front = certify_gaussian(model, GaussianParameters(0.02, queries=500, threshold=0.03))
    assert coarse.tolerance == pytest.approx(plain.tolerance + 1 / 128, abs=1e-9)
    assert front.tolerance == pytest.approx(plain.tolerance + 0.03)
    assert front.half_width(500, 0, "train") == pytest.approx(front.tolerance)
    assert front.half_width(500, 499, "holdout") == pytest.approx(plain.tolerance)
    assert plain.half_width(501, 500, "holdout") == 1.0
    endless = certify_gaussian(model, GaussianParameters(0.02))
    assert endless.tolerance == math.inf
    assert endless.half_width(500, 499, "holdout") > plain.half_width(500, 499, "holdout")
    assert endless.half_width(10**7, 0, "holdout") == 1.0


def test_a_gaussian_guard_without_a_certificate() -> None:
    route = gaussian_route(MovingWindow(100, 2), GaussianParameters(0.02, queries=5), 0.05)
    assert not route.applies
    loud = gaussian_route(Independent(10), GaussianParameters(1e-6, queries=5), 0.05)
    assert "too much" in loud.why_not
    hopeless = certify_gaussian(Independent(10), GaussianParameters(1e-6, queries=5))
    assert hopeless.half_width(1, 0, "holdout") == math.inf
