"""Worked values of the specification, computed with independent code."""

import math
from typing import Any

import numpy as np
import pytest

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.privacy.learning.propagation.examples import (
    LABELLED,
    LOCATION,
    LOCATION_RECORDS,
    MIXTURE,
    MIXTURE_RECORDS,
    REGRESSION,
    REGRESSION_RECORDS,
    labelled_model,
)
from thresholdout.privacy.learning.propagation.ep_runs import run_ep, run_sep
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
from thresholdout.privacy.learning.propagation.gaussian_models import (
    LinearPredictor,
    logistic_moments,
    mixture_moments,
    probit_probability,
    site_logistic,
    site_probit,
)
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural


def close(found: Any, expected: Any, rel: float = 1e-8) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rel, atol=1e-9)


def test_clipping() -> None:
    theta = GaussianNatural([3.0, 4.0], [[2.0, 1.0], [1.0, 5.0]])
    joint, separate = theta.clip(2.0), theta.clip(2.0, "separate")
    close(joint.eta, [0.8017837257, 1.0690449676])
    close(joint.Lam, [[0.5345224838, 0.2672612419], [0.2672612419, 1.3363062096]])
    close(separate.eta, [1.2, 1.6])
    close(separate.Lam, [[0.7184212081, 0.3592106041], [0.3592106041, 1.7960530203]])
    close(GaussianNatural([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]).project(1e-3).Lam, [[1.5005, 1.4995], [1.4995, 1.5005]])


@for_each(
    ("gamma", "T", "C", "mode", "eta", "Lam"),
    [
        (1, 1, None, "joint", 0.709521856, 0.711568256),
        (1, 3, None, "joint", 1.5747342249, 1.3947840503),
        (1, 200, None, "joint", 3.2909556761, 2.75),
        (5, 1, None, "joint", 1.9718, 1.9308),
        ("sep", 3, None, "joint", 2.7752580641, 2.6620390698),
        (5, 200, None, "joint", 2.8719062351, 2.75),
        (5, 3, 0.6, "joint", 1.1749861808, 2.0347876697),
        (5, 3, 0.6, "separate", 1.1955504201, 2.6620390698),
    ],
)
def test_location(gamma: Any, T: int, C: float | None, mode: Any, eta: float, Lam: float) -> None:
    run = run_sep(LOCATION, LOCATION_RECORDS, n_epochs=T, gamma=gamma, C=C, clip_mode=mode, sampling="cyclic")
    close(run.theta.values, [eta, Lam])
    if C is None:
        share = (5 if gamma == "sep" else gamma) / 25
        close(run.theta.Lam, [[0.25 + 2.5 * (1 - (1 - share) ** (5 * T))]])


def test_location_by_expectation_propagation_is_exact_after_one_pass() -> None:
    run = run_ep(LOCATION, LOCATION_RECORDS, max_iter=1)
    close(run.theta.values, [3.375, 2.75], 1e-14)
    close([run.theta.mean()[0], run.theta.cov()[0, 0]], [1.2272727273, 0.3636363636])


def test_injected_noise() -> None:
    def noise(k: int, shape: tuple[int, ...]) -> float:
        return 0.05 * (-1) ** k if len(shape) == 1 else 0.02

    run = run_sep(LOCATION, LOCATION_RECORDS, n_epochs=2, gamma=5, C=0.6, sampling="cyclic", noise_fn=noise)
    close(run.theta.values, [1.1212188678, 1.9905081740])


def test_one_traced_update() -> None:
    start = GaussianNatural([0.3], [[0.2]])

    def site(cavity: GaussianNatural) -> GaussianNatural:
        return LOCATION.site(np.array([4.0]), cavity)

    quiet = dp_sep_step(start, LOCATION.prior, site, N=5, gamma=5.0, C=0.6)[1]
    close(quiet.posterior.values, [1.9070855001, 1.1955213750])
    noise = GaussianNatural([0.05], [[-3.0]])
    after, trace = dp_sep_step(start, LOCATION.prior, site, N=5, gamma=5.0, C=0.6, noise=noise)
    close(trace.cavity.values, [1.325, 1.05])
    close(trace.site.values, [2, 0.5])
    close(trace.clipped.values, [0.5820855001, 0.1455213750])
    close(trace.posterior.values, [1.9570855001, 0.0001])
    close(after.values, [0.3664171000, -0.04998])
    assert trace.projected
    assert not trace.failed


def test_linear_regression() -> None:
    exact = run_ep(REGRESSION, REGRESSION_RECORDS, max_iter=1).theta
    close(exact.eta, [16, 30])
    close(exact.Lam, [[17, 6], [6, 22]])
    close(exact.mean(), [0.5088757396, 1.2248520710])
    close(exact.cov(), [[0.0650887574, -0.0177514793], [-0.0177514793, 0.0502958580]])

    def sep(gamma: float, C: float | None = None) -> GaussianNatural:
        return run_sep(REGRESSION, REGRESSION_RECORDS, n_epochs=2, gamma=gamma, C=C, sampling="cyclic").theta

    close(sep(4).eta, [14.9412109375, 27.8913574219])
    close(sep(4).Lam, [[15.3981933594, 6.0472412109], [6.0472412109, 20.3141479492]])
    close(sep(1).eta, [6.5223315969, 12.2692914046])
    close(sep(4, 1.0).eta, [0.9781608425, 1.1301851897])
    close(sep(4, 3.0).eta, [2.9344825274, 3.3905555690])
    close(sep(4, 3.0).Lam, [[6.9173351706, 0.1519359396], [0.1519359396, 3.6087830553]])


CAVITY = np.array([0.3, -0.2]), np.array([[1.5, 0.4], [0.4, 0.8]])
X = np.array([1.0, -0.7])


def test_probit_site() -> None:
    found = site_probit(X, -1, *CAVITY)
    assert found.log_evidence == pytest.approx(-0.9503035815, rel=1e-8)
    model = LinearPredictor(GaussianNatural.from_moments(*CAVITY))
    site = model.site((X, -1.0), model.prior)
    close(site.eta, [-0.8573526532, 0.6001468572])
    close(site.Lam, [[0.4938577768, -0.3457004438], [-0.3457004438, 0.2419903106]])
    tilted = model.prior + site
    close(tilted.mean(), [-0.4908423299, -0.0962829731])
    close(tilted.cov(), [[1.0566113607, 0.4581493297], [0.4581493297, 0.7923738584]])


def test_logistic_site() -> None:
    found = site_logistic(X, -1, *CAVITY)
    assert math.exp(found.log_evidence) == pytest.approx(0.4140389511, rel=1e-8)
    mean, variance, _ = logistic_moments(-1, 0.44, 1.332)
    close([mean, variance], [-0.1776628352, 1.0478601993])
    model = LinearPredictor(GaussianNatural.from_moments(*CAVITY), "logit")
    tilted = model.prior + model.site((X, -1.0), model.prior)
    close(tilted.mean(), [-0.2657272214, -0.1258062660])
    close(tilted.cov(), [[1.2616345629, 0.4312610409], [0.4312610409, 0.7959001914]])
    close(logistic_moments(-1, 0.4, 2.5)[:2], [-0.5824671961, 1.7297055215])


@for_each(
    ("link", "mean", "cov"),
    [
        ("probit", [-0.7394708240, 2.4487677198], [0.6605226689, -0.3757975159, 1.3421647200]),
        ("logit", [-0.6383737127, 2.4671213906], [1.1047261943, -0.3698964369, 1.5577984607]),
    ],
)
def test_classification_by_expectation_propagation(link: str, mean: list[float], cov: list[float]) -> None:
    run = run_ep(labelled_model(link), LABELLED)
    assert run.converged
    close(run.theta.mean(), mean, 1e-6)
    close(run.theta.cov()[[0, 0, 1], [0, 1, 1]], cov, 1e-6)
    if link == "probit":
        rows = np.array([x for x, _ in LABELLED])
        spread = np.einsum("ij,jk,ik->i", rows, run.theta.cov(), rows)
        expected = [0.6483806963, 0.0335492884, 0.9615388868, 0.4208634698, 0.1490351509, 0.8937088780]
        close(probit_probability(rows @ run.theta.mean(), spread), expected, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "mean", "cov"),
    corners(
        [
            ("probit", [-0.7270129583, 2.4118937395], [0.7278716223, -0.3715656697, 1.3762671363]),
            ("logit", [-0.6302571596, 2.4277078190], [1.1549538445, -0.3663633884, 1.6120943304]),
        ],
        0,
    ),
)
def test_fixed_point_of_stochastic_expectation_propagation(link: str, mean: list[float], cov: list[float]) -> None:
    """The mean of all sites at their own cavity; runs with small steps stay near it."""
    model, N = labelled_model(link), len(LABELLED)
    shared = model.prior.scale(0.0)
    for _ in range(80):
        cavity = model.prior + shared.scale(N - 1)
        sites = [model.site(record, cavity).values for record in LABELLED]
        shared = shared.with_values(0.5 * shared.values + 0.5 * np.mean(sites, axis=0))
    theta = model.prior + shared.scale(N)
    close(theta.mean(), mean, 1e-6)
    close(theta.cov()[[0, 0, 1], [0, 1, 1]], cov, 1e-6)
    run = run_sep(model, LABELLED, n_epochs=3000, gamma=0.02, sampling="cyclic", theta_f=shared)
    close(run.theta.mean(), mean, 2e-3)


def test_mixture() -> None:
    covs = np.array([[[1, 0.2], [0.2, 0.5]], [[0.8, 0], [0, 1.2]]])
    found = mixture_moments(np.array([1.2, 0.3]), np.array([0.5, 0.5]), 0.25, np.array([[0.0, 0.0], [2.0, 1.0]]), covs)
    close(found.responsibilities, [0.5383875080, 0.4616124920])
    assert found.log_evidence == pytest.approx(-2.4418990274, rel=1e-8)
    close(found.means, [[0.5200913309, 0.1412704826], [1.7186361954, 0.7325831081]])
    close(found.covs[0], [[0.8000121697, 0.1628170256], [0.1628170256, 0.3356493109]])
    close(found.covs[1], [[0.6109685429, 0.0877555286], [0.0877555286, 0.8249766203]])


@for_each(
    ("gamma", "C", "means"),
    [
        (6, None, [[-0.0033397035, -0.1327002722], [2.2071172464, 1.1015435444]]),
        (1, None, [[0.0047517833, -0.0756056889], [2.1207828735, 1.0853498151]]),
        (6, 1.0, [[0.0424255787, -0.1192578882], [1.9580594837, 1.0572418383]]),
    ],
)
def test_mixture_runs(gamma: float, C: float | None, means: list[list[float]]) -> None:
    run = run_sep(MIXTURE, MIXTURE_RECORDS, n_epochs=5, gamma=gamma, C=C, sampling="cyclic")
    close(run.theta.mean(), means)


def test_mixture_by_expectation_propagation() -> None:
    expected = [[-0.0236263535, -0.0677275821], [2.1398033973, 1.0957928209]]
    close(run_ep(MIXTURE, MIXTURE_RECORDS).theta.mean(), expected, 1e-7)
