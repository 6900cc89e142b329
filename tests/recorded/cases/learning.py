"""What private learners leak and learn, with fixed seeds."""

from __future__ import annotations

import warnings
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.clipping_theory import clipped_kl, dp_sep_kl_bound, kl_gaussian, kl_leading_order
from benchmarks.papers.independent_draws import uniform_sampling_cap
from benchmarks.papers.simulated_mixtures import make_mog_data
from tests.recorded.cases.registry import Cases
from thresholdout.privacy.accounting.events.event_files import event_to_dict
from thresholdout.privacy.learning import (
    DPSGDClassifier,
    DPSGDRegressor,
    EPLinearRegression,
    FederatedClassifier,
    GaussianNatural,
    LooseDeltaWarning,
    LowInformationWarning,
    LowSignalWarning,
    PrivacyReport,
    SGLDRegressor,
    check_lemma_conditions,
    eps_A9,
    eps_chernoff,
    eps_tail,
    epsilon_of,
    gaussian_renyi,
    pair_epsilon,
    posterior_dp_holds,
    rdp_gaussian,
    rdp_subsampled_gaussian,
    rdp_to_dp,
    run_ep,
    run_federated,
    run_sep,
    run_sgld,
    sensitivity,
    sgld_moments,
    theorem_parameters,
    worst_epoch,
)
from thresholdout.privacy.learning.dpsgd.batches import Sampling
from thresholdout.privacy.learning.propagation.ep_privacy import (
    calibrate_sep_sigma,
    joint_sigma,
    sep_event,
    sep_noise_std,
    split_sigma,
)
from thresholdout.privacy.learning.propagation.ep_runs import information_fraction, run_adf
from thresholdout.privacy.learning.propagation.gaussian_models import GaussianLocation
from thresholdout.privacy.learning.sgld.lower_bounds import eps_threshold
from thresholdout.privacy.learning.sgld.posterior_bound import (
    paper_order,
    posterior_dp,
    posterior_rdp_bound,
    posterior_size_terms,
)
from thresholdout.privacy.learning.sgld.propose_test_sample import propose_test_sample_privacy
from thresholdout.privacy.learning.sgld.worst_case_pair import posterior_pair_epsilon

CASES = Cases()

SYSTEM: dict[str, Any] = {"n": 100, "c": 100**1.2, "x_h": 1.0, "alpha": 1.0, "beta": 4.0}


def _data(n: int = 200) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.random.default_rng(3).integers(-8, 9, (n, 3)) / 8
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0.1).astype(int)


def _report(found: PrivacyReport) -> Any:
    return [found.epsilon, found.delta, found.adjacency, found.accountant, found.noise_multiplier, found.private]


@CASES.case("learning: classifier by noisy descent")
def noisy_classifier() -> Any:
    X, y = _data()
    found = []
    samplings: tuple[Sampling, ...] = ("wor", "poisson")
    for sampling in samplings:
        model = DPSGDClassifier(
            noise_multiplier=2.0,
            delta=1e-5,
            batch_size=20,
            n_steps=10,
            learning_rate=0.5,
            average=False,
            sampling=sampling,
            classes=[0, 1],
            random_state=0,
        ).fit(X, y)
        found.append([_report(model.privacy_report_), model.coef_, model.intercept_])
    return found


@CASES.case("learning: regressor by noisy descent")
def noisy_regressor() -> Any:
    X, _ = _data()
    model = DPSGDRegressor(
        noise_multiplier=3.0,
        delta=1e-5,
        batch_size=10,
        n_steps=8,
        learning_rate=0.1,
        average=False,
        adjacency="add_remove",
        public_size=200,
        random_state=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)
        model.fit(X, X[:, 0] - 0.5 * X[:, 2])
    return [_report(model.privacy_report_), model.coef_, model.intercept_]


@CASES.case("learning: federated classifier")
def federated_classifier() -> Any:
    X, y = _data()
    model = FederatedClassifier(
        rounds=5, clients_per_round=5, noise_multiplier=1.0, classes=[0, 1], random_state=0
    ).fit(X, y, groups=np.arange(200) // 10)
    return [_report(model.privacy_report_), model.coef_, model.intercept_]


@CASES.case("learning: langevin dynamics")
def langevin() -> Any:
    X, _ = _data(100)
    y = X @ [1.0, -1.0, 0.5]
    run = run_sgld(
        lambda theta, rows, targets: rows * (rows @ theta - targets)[:, None],
        X,
        y,
        theta0=[0.0, 0.0, 0.0],
        step_sizes=0.1,
        T=10,
        batch_size=10,
        sigma=1.0,
        L=1.0,
        random_state=0,
    )
    composed = run.composition(1e-7, 1e-6)
    return [run.trajectory[-1], _report(run.privacy(1e-5)), composed.eps, composed.delta]


@CASES.case("learning: langevin dynamics as an estimator")
def langevin_estimator() -> Any:
    X, _ = _data(100)
    model = SGLDRegressor(random_state=0).fit(X[:, :1], X[:, 0])
    report = model.privacy_report_
    return [report.private, report.accountant, report.adjacency]


@CASES.case("learning: federated averaging")
def federated_averaging() -> Any:
    clients = list(np.random.default_rng(0).integers(0, 9, (100, 2)) / 8)
    run = run_federated(
        lambda client, theta: client - theta,
        clients,
        theta0=[0.0, 0.0],
        T=6,
        batch_size=10,
        sigma=0.5,
        L=1.0,
        random_state=0,
    )
    composed = run.composition(1e-7, 1e-6)
    return [run.theta, _report(run.privacy(1e-5)), composed.eps]


@CASES.case("learning: expectation propagation")
def propagation() -> Any:
    prior = GaussianNatural.from_moments([0.0, 0.0], np.eye(2))
    records = list(np.random.default_rng(0).integers(-8, 9, (30, 2)) / 8)
    model = GaussianLocation(prior, 0.5)
    runs = (
        run_ep(model, records),
        run_adf(model, records),
        run_sep(model, records, n_epochs=3, random_state=0),
        run_sep(model, records, n_epochs=2, C=1.0, sigma=0.5, random_state=0),
    )
    return [[run.theta.mean(), run.theta.cov(), run.n_updates, run.n_skipped, run.n_projections] for run in runs]


@CASES.case("learning: private regression by expectation propagation")
def private_propagation() -> Any:
    X, _ = _data(300)
    with warnings.catch_warnings():
        for kind in (LooseDeltaWarning, LowInformationWarning, LowSignalWarning):
            warnings.simplefilter("ignore", kind)
        model = EPLinearRegression(algorithm="dp-sep", clip_norm=1.0, sigma=2.0, n_epochs=3, random_state=0).fit(
            X, X[:, 0]
        )
    return [_report(model.privacy_report_), model.predict(X[:3])]


@CASES.case("learning: what private propagation leaks")
def propagation_privacy() -> Any:
    found = epsilon_of(2.0, 1e-3, 1000, 1e-5)
    return [
        sensitivity(1000, 20, 1),
        sep_noise_std(1.4, 1000, 1, 1),
        rdp_gaussian([2, 3.5], 10),
        [rdp_subsampled_gaussian(8, 1e-3, 1.0, bound) for bound in ("tight", "wbk")],
        [found.epsilon, found.order],
        calibrate_sep_sigma(2.0, 1e-4, 1e-2, 10),
        joint_sigma((2.0, 3.0)),
        split_sigma(1.0, (0.5, 0.5)),
        event_to_dict(sep_event(1.5, 1000, 100)),
        event_to_dict(sep_event(50.0, 1000, 100, "shuffle")),
        information_fraction(0.01, 100, 200),
    ]


@CASES.case("learning: how far clipping and noise move a posterior")
def propagation_theory() -> Any:
    q = GaussianNatural.from_moments([1.0, 0.5], [[1.0, 0.25], [0.25, 2.0]])
    p = GaussianNatural.from_moments([0.0, 0.0], np.eye(2))
    bound = dp_sep_kl_bound(q, 0.01, 0.01, 1e-4, 5.0)
    return [
        kl_gaussian(q, p),
        clipped_kl(q, 0.5),
        clipped_kl(q, 0.5, variant="paper"),
        kl_leading_order(q, 0.01, 0.01),
        astuple(bound),
    ]


@CASES.case("learning: lower bounds on langevin dynamics")
def langevin_lower_bounds() -> Any:
    worst = worst_epoch(**SYSTEM, delta=0.001)
    return [
        eps_chernoff(**SYSTEM, K=11, delta=0.001),
        eps_tail(**SYSTEM, K=11, delta=0.001),
        eps_threshold(**SYSTEM, K=11, delta=0.001),
        eps_A9(**SYSTEM, delta=0.001),
        pair_epsilon(**SYSTEM, K=11, delta=0.001),
        posterior_pair_epsilon(**SYSTEM, delta=0.001),
        list(worst),
        list(sgld_moments(**SYSTEM, j=150)),
        check_lemma_conditions(10, 1.0, 0.1, 4.0),
        uniform_sampling_cap(100, 50),
    ]


@CASES.case("learning: upper bounds on one draw")
def posterior_upper_bounds() -> Any:
    system: dict[str, Any] = {"x_l": 0.5, "x_h": 1.0, "alpha": 1.0, "beta": 4.0, "gamma1": 0.1, "c": 1e6}
    return [
        gaussian_renyi(2.0, 0.0, 1.0, 0.5, 1.25),
        rdp_to_dp(2.0, 0.1, 1e-5),
        paper_order(1.0, 0.01),
        posterior_rdp_bound(10**6, 10.25, **system),
        posterior_rdp_bound(10**6, 10.25, **system, sharp=True),
        posterior_dp(10**6, 0.01, **system),
        posterior_dp_holds(10**6, 1.0, 0.01, **system),
        posterior_size_terms(0.5, 0.001, 0.9, 1.8, 2.0, 1.0, 0.1, 1.2),
        theorem_parameters(0.5, 2.0, 0.001, 2.0, 1.0, 1.8, 0.1, 1.2),
    ]


@CASES.case("learning: propose, test, sample")
def proposals() -> Any:
    found = propose_test_sample_privacy(0.5, 1e-5)
    return [found.eps, found.delta, found.sound]


@CASES.case("learning: generated mixtures")
def mixtures() -> Any:
    found = make_mog_data(n=12)
    return [found.X, found.labels, found.means]
