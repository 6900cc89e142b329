"""Private posteriors and samplers: what they learn with fixed seeds, and the bounds and figures about them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.bound_tables import compare_on_average, exponential_mechanism_gap
from benchmarks.papers.fixed_size_figures import figure2
from benchmarks.papers.independent_draws import uniform_sampling_bound
from benchmarks.papers.regression_standins import make_linear_standin, make_naval_standin, make_wine_standin
from benchmarks.papers.sgld_figures import figure1_curves, growth_table
from benchmarks.papers.simulated_mixtures import make_kin8_standin
from tests.recorded.cases.registry import Cases
from tests.thresholdout.privacy.accounting.events.toml_events import events_to_toml
from tests.thresholdout.privacy.learning.propagation.conjugate_models import (
    BernoulliModel,
    PoissonModel,
    UnknownPrecisionModel,
)
from thresholdout.privacy.accounting import read_events
from thresholdout.privacy.accounting.events.composed_events import Composed, SelfComposed
from thresholdout.privacy.accounting.events.event_files import event_to_dict
from thresholdout.privacy.accounting.events.event_types import BlackBox, GaussianAnswer
from thresholdout.privacy.learning import (
    DPSGDClassifier,
    DPVIRegressor,
    EPClassifier,
    EPGaussianMixture,
    EPLinearRegression,
    GaussianNatural,
    LooseDeltaWarning,
    LowInformationWarning,
    LowSignalWarning,
    PBPRegressor,
    SGLDRegressor,
    epoch_law,
    posterior,
    propose_test_sample,
    pts_n_min,
    pts_ratio_scale,
    run_ep,
    run_sep,
    sgld_sample,
    site_probit,
    site_tilted_location,
    step_size,
    worst_case_pair,
)
from thresholdout.privacy.learning.dpsgd.batches import Batches
from thresholdout.privacy.learning.dpsgd.spending import Account, default_delta, noise_for_target
from thresholdout.privacy.learning.propagation.gaussian_models import (
    MixtureOfGaussians,
    logistic_probability,
    mixture_moments,
    probit_probability,
    site_linear,
    site_logistic,
)
from thresholdout.privacy.learning.sgld.clipped_events import noise_multiplier_of, step_size_of
from thresholdout.privacy.learning.sgld.iterate_law import proof_epoch
from thresholdout.privacy.learning.sgld.propose_test_sample import propose_test_sample_trace
from thresholdout.privacy.learning.sgld.worst_case_pair import pair_curve

CASES = Cases()

SYSTEM: dict[str, Any] = {"n": 100, "c": 100**1.2, "x_h": 1.0, "alpha": 1.0, "beta": 4.0}
COVARIANCE = np.array([[1.5, 0.4], [0.4, 0.8]])


def _data(n: int = 120) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = np.random.default_rng(4).integers(-8, 9, (n, 2)) / 8
    return X, X[:, 0] - 0.5 * X[:, 1]


def _quiet() -> None:
    for kind in (LooseDeltaWarning, LowInformationWarning, LowSignalWarning):
        warnings.simplefilter("ignore", kind)


@CASES.case("posteriors: linear regression by expectation propagation")
def linear_propagation() -> Any:
    X, y = _data()
    model = EPLinearRegression(noise_var=0.25).fit(X, y)
    return [model.coef_, model.predict(X[:3], return_std=True), model.log_likelihood(X, y)]


@CASES.case("posteriors: classifiers by expectation propagation")
def classifiers() -> Any:
    X, y = _data(60)
    found = [EPClassifier(link=link).fit(X, (y > 0).astype(int)) for link in ("probit", "logit")]
    return [[model.coef_, model.predict_proba(X[:3]), model.decision_function(X[:3])] for model in found]


@CASES.case("posteriors: mixtures by expectation propagation")
def mixtures() -> Any:
    X, _ = _data(40)
    X = X / 4 + np.where(np.arange(40) % 2, 2.0, -2.0)[:, None]
    model = EPGaussianMixture(2, n_epochs=3, prior_mean=[[-1.0, 0.0], [1.0, 0.0]], random_state=0).fit(X)
    return [model.means_, model.predict_proba(X[:2]), model.score(X)]


@CASES.case("posteriors: networks")
def networks() -> Any:
    X, y = _data(60)
    by_propagation = PBPRegressor((4,), n_epochs=2, random_state=0).fit(X, np.abs(y))
    by_variation = DPVIRegressor(4, n_epochs=2, batch_size=20, random_state=0).fit(X, np.abs(y))
    return [by_propagation.predict(X[:3]), by_variation.predict(X[:3])]


@CASES.case("posteriors: a private network")
def private_network() -> Any:
    X, y = _data(60)
    settings: dict[str, Any] = {"x_offset": 0.0, "x_scale": 1.0, "y_offset": 0.0, "y_scale": 1.0}
    with warnings.catch_warnings():
        _quiet()
        model = DPVIRegressor(3, n_epochs=2, batch_size=20, noise_multiplier=2.0, random_state=0, **settings).fit(X, y)
    return [model.predict(X[:3]), model.privacy_report_.epsilon]


@CASES.case("posteriors: sites")
def sites() -> Any:
    x, mean = np.array([1.0, -0.7]), np.array([0.3, -0.2])
    cavity = np.array([[0.0, 0.0], [2.0, 1.0]]), np.array([[[1.0, 0.2], [0.2, 0.5]], [[0.8, 0.0], [0.0, 1.2]]])
    return [
        site_tilted_location(np.array([4.0]), 2.0),
        list(site_linear(x, 1.2, 0.25, mean, COVARIANCE)),
        list(site_probit(x, -1, mean, COVARIANCE)),
        list(site_logistic(x, -1, mean, COVARIANCE)),
        list(mixture_moments(np.array([1.2, 0.3]), np.array([0.5, 0.5]), 0.25, *cavity)),
        probit_probability(np.array([0.3]), np.array([3.0])),
        logistic_probability(np.array([0.3]), np.array([3.0])),
    ]


@CASES.case("posteriors: other families")
def families() -> Any:
    prior = GaussianNatural([[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    mixture = run_sep(
        MixtureOfGaussians(prior, [0.5, 0.5], 0.5), [np.array([k / 4]) for k in range(6)], n_epochs=2, random_state=0
    )
    return [
        run_ep(PoissonModel(2.0, 1.0), [3, 5, 4]).theta.arrays(),
        run_ep(BernoulliModel(2.0, 1.0), [1, 1, 0]).theta.arrays(),
        run_ep(UnknownPrecisionModel(1.0, 2.0, 1.0), [3.0, 0.0]).theta.arrays(),
        mixture.theta.arrays(),
    ]


@CASES.case("posteriors: stand-in data")
def standins() -> Any:
    made = (make_kin8_standin(3), make_naval_standin(3), make_wine_standin(3), make_linear_standin(3, d=2))
    return [[X, y] for X, y in made]


@CASES.case("posteriors: chains of langevin dynamics")
def chains() -> Any:
    x, y = np.full(20, 1.1), np.full(20, 2.2)
    return [
        sgld_sample(x, y, 1.0, 4.0, 1e-3, 40, n_chains=3, rng=0),
        sgld_sample(x, y, 1.0, 4.0, 1e-3, 40, n_chains=2, batch_size=5, order="uniform", clip=1.0, rng=0),
    ]


@CASES.case("posteriors: a private langevin estimator")
def langevin_estimator() -> Any:
    X, y = _data(200)
    model = SGLDRegressor(clip=1.0, epsilon=2.0, n_steps=40, batch_size=20, order="cyclic", n_chains=1, random_state=0)
    with warnings.catch_warnings():
        _quiet()
        model.fit(X, y)
    return [model.coef_, model.privacy_report_.epsilon, model.privacy_report_.noise_multiplier]


@CASES.case("posteriors: laws of the iterates")
def laws() -> Any:
    proof = proof_epoch(100, 1.0, 1.0, 4.0)
    return [
        list(epoch_law(**SYSTEM, K=13)),
        list(epoch_law(**SYSTEM, K=13, r=50)),
        list(proof),
        uniform_sampling_bound(**SYSTEM, j=200, delta=0.001, patterns=100, rng=0),
        pair_curve(100, 300.0, 1.0, alpha=1.0, beta=4.0, eta=1e-5, batch_size=1, delta=0.001, steps=300),
        step_size(100, 1.0, 1.0, 4.0),
        list(posterior([1.0, 2.0], [2.0, 4.0], alpha=1.0, beta=1.0)),
        [list(pair) for pair in worst_case_pair(3, 2.0, 1.0)],
    ]


@CASES.case("posteriors: clipped steps")
def clipped_steps() -> Any:
    return [noise_multiplier_of(8e-3 / 60_000, 60_000, 4, 0.2), step_size_of(2.0, 1000, 10, 0.5)]


@CASES.case("posteriors: propose, test, sample")
def proposals() -> Any:
    system: dict[str, Any] = {
        "eps": 10,
        "delta": 0.05,
        "x_l": 0.5,
        "x_h": 1,
        "alpha": 1,
        "beta": 4,
        "rho1": 1.05,
        "rho2": 0.25,
    }
    x, y = np.ones(20_000), np.full(20_000, 20_000**1.025)
    asked = (10, 0.05, 0.5, 1.0, 1.0, 4.0, 1.05, 0.25, 0.3)
    trace = propose_test_sample_trace(x, y, *asked, noise=(0, 0, 0, -20_000), rng=0)
    return [
        pts_n_min(25618.625, 20_000, **system, gamma1=0.3),
        pts_ratio_scale(19999.75, 19999.75, eps=10, x_l=0.5, x_h=1.0, rho1=1.05),
        propose_test_sample(x, y, *asked, rng=0),
        trace.value,
    ]


@CASES.case("posteriors: figures about samplers")
def sampler_figures() -> Any:
    return [figure1_curves(epochs=2).tail(3), growth_table((100,))]


@CASES.case("posteriors: figures about minibatches")
def minibatch_figures() -> Any:
    return figure2([2.0])


@CASES.case("posteriors: bounds on average, side by side")
def on_average() -> Any:
    return [compare_on_average([0.1], 1e-6, 2, draws=20), exponential_mechanism_gap(0.5, draws=20)]


@CASES.case("posteriors: events as texts")
def events() -> Any:
    happened = Composed([SelfComposed(GaussianAnswer(2.0), 3), BlackBox(0.5)])
    text = events_to_toml(happened)
    again, settings = read_events(text)
    return [text, event_to_dict(again), settings]


@CASES.case("posteriors: noise for a target")
def targets() -> Any:
    X, y = _data()
    model = DPSGDClassifier(
        epsilon=4,
        delta=1e-3,
        n_steps=5,
        batch_size=20,
        learning_rate=0.5,
        average=False,
        classes=[0, 1],
        random_state=0,
    )
    model.fit(X, (y > 0).astype(int))
    noise = noise_for_target(Account(), Batches("wor", 10, 10), 1, 1.0, 1e-6)
    return [
        noise,
        default_delta(1000),
        model.privacy_report_.epsilon,
        model.noise_multiplier_,
        model.predict_proba(X[:3]),
    ]
