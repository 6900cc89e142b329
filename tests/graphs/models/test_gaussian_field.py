"""Gaussian fields: closed forms of their numbers, what they refuse, and what guards and plans make of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from graphs import ArgumentError, GaussianField, Panel, RouteUnavailable
from graphs.numerics.definite import dominates
from tests.cases import for_each
from thresholdout import Thresholdout, plan
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.mechanisms import ClaimsParameters, LadderParameters


def ar_matrix(rho: float, n: int) -> np.ndarray:
    return rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


@for_each("rho", [0.9, 0.5, -0.7, 0.0])
def test_a_series_has_the_row_sums_of_its_matrix(rho: float) -> None:
    n = 40
    exact = np.abs(ar_matrix(rho, n)).sum() / n
    found = GaussianField.ar(rho, n)
    assert exact <= found.variance_inflation() <= exact * (1 + 1e-9)
    largest = np.linalg.eigvalsh(ar_matrix(rho, n))[-1]
    assert n / largest * (1 - 1e-9) <= found.effective_records() <= n / largest * (1 + 1e-12)
    dense = GaussianField(ar_matrix(rho, n))
    assert dense.variance_inflation() == pytest.approx(found.variance_inflation(), rel=1e-9)


def test_series_of_second_order_have_the_correlations_of_the_recursion() -> None:
    phi, n = np.array([1.2, -0.5]), 100
    lags = [1.0, phi[0] / (1 - phi[1])]
    while len(lags) < n:
        lags.append(phi[0] * lags[-1] + phi[1] * lags[-2])
    matrix = np.array(lags)[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]
    model = GaussianField.ar(phi, n)
    assert np.allclose(model._correlation.dense(), matrix, atol=1e-13)
    p = model._correlation.dominating()
    assert np.linalg.eigvalsh(np.diag(p) - matrix)[0] > 0
    assert p.mean() <= np.linalg.eigvalsh(matrix)[-1]  # no worse than the largest eigenvalue
    peak = max(1 / abs(np.polyval([-phi[1], -phi[0], 1], np.exp(1j * w))) ** 2 for w in np.linspace(0, math.pi, 10001))
    variance = (1 - phi[1]) / ((1 + phi[1]) * ((1 - phi[1]) ** 2 - phi[0] ** 2))
    long = GaussianField.ar(phi, 10**6)
    assert peak / variance <= long.variance_inflation() <= peak / variance * (1 + 1e-6)
    assert GaussianField.ar(0.9, 10**6).effective_records() == pytest.approx(10**6 / 19, rel=1e-9)


def test_signs_are_balanced_where_they_can_be() -> None:
    """A matrix whose signs come from flipped records has the inflation of the one without."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], 30)
    matrix = ar_matrix(0.8, 30)
    flipped = matrix * np.outer(signs, signs)
    assert GaussianField(flipped).variance_inflation() == GaussianField(matrix).variance_inflation()


@for_each("n", [3, 20, 60])
def test_a_diagonal_for_mixed_signs_is_near_the_dual_bound(n: int) -> None:
    rng = np.random.default_rng(n)
    data = rng.standard_normal((n, n))
    covariance = data @ data.T
    matrix = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    model = GaussianField(matrix)
    p = model._correlation.dominating()
    assert np.linalg.eigvalsh(np.diag(p) - matrix)[0] >= 0
    assert dominates(p * (1 + 1e-9), matrix)
    # any unit vectors bound the trace from below: here those that the diagonal itself suggests
    vectors = np.linalg.eigh(np.diag(p) - matrix)[1][:, : math.isqrt(2 * n) + 1]
    for _ in range(2000):
        vectors = matrix @ vectors
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lower = float(np.sum(matrix * (vectors @ vectors.T)))
    assert lower <= p.sum() <= lower * 1.001


def test_independent_parts_count_for_themselves() -> None:
    matrix = np.eye(6)
    matrix[:3, :3] = 1.0
    model = GaussianField(matrix)
    assert model.variance_inflation() == pytest.approx((9 + 3) / 6)
    assert model.effective_records() == pytest.approx(2.0)
    groups = model.independent_groups()
    assert groups is not None
    assert sorted(groups.tolist()) == [1, 1, 1, 3]
    assert model.leakage(0.1).round(12).tolist() == pytest.approx([0.3] * 3 + [0.1] * 3)
    assert model.leakage([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).tolist() == pytest.approx([0.6] * 3 + [0.4, 0.5, 0.6])
    assert GaussianField.ar(0.5, 4).leakage(0.1).tolist() == pytest.approx([0.4] * 4)
    with pytest.raises(RouteUnavailable, match="means"):
        model.variance_inflation("copula", bounded_differences=True)


def test_known_records_void_what_hangs_together_with_them() -> None:
    matrix = np.eye(6)
    matrix[:3, :3] = 0.5
    np.fill_diagonal(matrix, 1.0)
    rest = GaussianField(matrix).given([0])
    assert rest.variance_inflation() == pytest.approx((4 + 3) / 5)
    assert GaussianField.ar(0.5, 10).given([0]).variance_inflation() == 9.0


@pytest.mark.slow
def test_samples_have_the_correlations() -> None:
    rng = np.random.default_rng(1)
    for model in (GaussianField(ar_matrix(0.7, 4)), GaussianField.ar(0.7, 4)):
        drawn = np.array([model.sample(rng) for _ in range(4000)])
        assert np.abs(np.cov(drawn.T) - ar_matrix(0.7, 4)).max() < 0.12  # 6.1 deviations at least: below 1e-8
    assert GaussianField(np.ones((3, 3))).sample(rng).std() < 1e-6
    assert GaussianField.ar([0.1, 0.2, 0.3], 2).sample(rng).shape == (2,)


def test_names_are_those_of_the_table() -> None:
    names = ["north", "south"]
    table = pd.DataFrame([[1.0, 0.5], [0.5, 1.0]], index=names, columns=names)
    model = GaussianField(table)
    assert model.records == ("north", "south")
    assert model.leakage({"south": 0.2, "north": 0.1}).round(9).tolist() == [0.3, 0.3]
    assert model.given(["north"]).n == 1
    assert GaussianField([[1.0, 0.5], [0.5, 1.0]]).records == (0, 1)
    for columns in (["south", "north"], ["north", "east"]):
        with pytest.raises(ArgumentError, match="columns"):
            GaussianField(pd.DataFrame(table.to_numpy(), index=names, columns=columns))
    with pytest.raises(ArgumentError, match="twice"):
        GaussianField(pd.DataFrame(table.to_numpy(), index=["a", "a"], columns=["a", "a"]))


@for_each(
    ("matrix", "message"),
    [
        ([[1.0, 0.5]], "shape"),
        ([], "shape"),
        ([[1.0, math.nan], [math.nan, 1.0]], "finite numbers"),
        ([[1.0, 1.5], [1.5, 1.0]], "from -1 to 1"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, 0.5], [0.5, 0.9]], "ones on its diagonal"),
        ([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]], "eigenvalue -0.8"),
        ([["a", "b"], ["c", "d"]], "type"),
    ],
)
def test_what_is_no_correlation_matrix_is_refused(matrix: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        GaussianField(matrix)


@for_each("coefficients", [1.0, -1.0, 1.2, [0.5, 0.5], [2.0, -1.0001], math.nan, [], [[0.5]], "a"])
def test_what_is_no_stationary_series_is_refused(coefficients: object) -> None:
    with pytest.raises(ArgumentError, match="coefficients"):
        GaussianField.ar(coefficients, 10)


def test_tiny_negative_eigenvalues_are_rounding() -> None:
    """Correlations of 30 records over 5 columns have rank 4: 26 eigenvalues are zero, some of them below in floats."""
    matrix = np.corrcoef(np.random.default_rng(0).standard_normal((30, 5)))
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert eigenvalues[0] < 0 < 1e-12 < eigenvalues[-4]
    assert eigenvalues[25] < 1e-12
    model = GaussianField(matrix)
    records = model.effective_records()
    assert records is not None
    assert records <= 30 / eigenvalues[-1] * (1 + 1e-12)
    assert records == pytest.approx(30 / eigenvalues[-1], rel=1e-3)


def test_content_tells_models_apart() -> None:
    models = [GaussianField.ar(0.5, 3), GaussianField.ar(0.6, 3), GaussianField.ar(0.5, 4), GaussianField(np.eye(3))]
    assert len({model.fingerprint() for model in models}) == 4
    assert GaussianField.ar(0.5, 3).fingerprint() == GaussianField.ar([0.5], 3).fingerprint()


def test_guards_plans_and_certificates_take_it() -> None:
    model = GaussianField.ar(0.6, 4000)
    assert "about" in str(plan(model, queries=20))
    claims = certify_parameters(model, ClaimsParameters().for_records(model, 0.95))
    assert claims.route == "claims"
    assert claims.expected_half_width(0.9) < 0.1
    rng = np.random.default_rng(0)
    holdout = np.c_[model.sample(rng), np.zeros(4000)]
    guard = Thresholdout(holdout, train=rng.standard_normal((500, 2)), dependence=model)
    answer = guard.ask(lambda rows: rows[:, 0] > 0)
    low, high = answer.interval
    assert low <= 0.5 <= high
    assert high - low < 0.3


def test_panels_of_fields() -> None:
    unit = np.eye(3)
    unit[0, 1] = unit[1, 0] = 0.5
    panel = Panel(GaussianField(unit), 10)
    assert panel.variance_inflation() == pytest.approx(4 / 3)
    assert panel.effective_records() == pytest.approx(20.0)
    assert panel.given([0]).leakage(0.1).round(12).tolist()[:2] == [0.1, 0.1]


def test_certificates_say_that_truths_are_conditional_on_gaussian_values() -> None:
    rest = GaussianField.ar(0.6, 600).conditional_on_values().given(range(300))
    about = "all that was known before the first query and the Gaussian values of known records"
    assert about in certify_parameters(rest, ClaimsParameters().for_records(rest, 0.95)).about
    assert about in certify_parameters(rest, LadderParameters()).about
    plain = GaussianField.ar(0.6, 40).given([0])
    assert "E[q(X) | known]" in plain.condition
    assert "Gaussian values" not in certify_parameters(plain, LadderParameters()).about
