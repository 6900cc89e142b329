"""What private steps cost: epsilons and deltas by every accountant, compositions, generalisation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.papers.bound_tables import compare_composition, compare_high_probability, compare_kl
from benchmarks.papers.minibatch_epsilons import refine_epsilon
from tests.oracles.divergences import (
    approx_max_divergence,
    hockey_stick,
    kl_divergence,
    max_divergence,
    pure_decomposition,
    statistical_distance,
)
from tests.recorded.cases.registry import Cases
from thresholdout.privacy.accounting import (
    Accountant,
    BlackBox,
    Composed,
    Composition,
    DistributionAccountant,
    Event,
    FederatedRound,
    GaussianAnswer,
    GeneralizationBound,
    LaplaceAnswer,
    PoissonGaussianStep,
    PureAccountant,
    RenyiAccountant,
    SelfComposed,
    SGLDStep,
    ThresholdoutInteraction,
    UnsoundBoundWarning,
    UnsupportedEvent,
    WithoutReplacementGaussianStep,
    WithReplacementGaussianStep,
    assumed_training_error,
    azuma_tail,
    best_epsilon,
    best_error,
    calibrate,
    calibrate_sigma,
    chernoff_delta,
    compose_basic,
    compose_chernoff,
    compose_dwork_roth,
    compose_he,
    compose_kov,
    compose_optimal_delta,
    compose_optimal_epsilon,
    compose_theorem5,
    dwork2015_bound,
    empirical_variance,
    federated_privacy,
    gaussian_step,
    high_probability_bound,
    kl_bound,
    multidatabase_bound,
    nissim_stemmer_bound,
    on_average_bound,
    oneto_risk_bound,
    oneto_variance_bound,
    pac_guarantee,
    pac_plan,
    sample_size_required,
    sgld_generalization,
    sgld_privacy,
    smallest_delta,
    smallest_eps,
    subsample,
    tv_bound,
)
from thresholdout.privacy.accounting.accountants.calibration import best_delta
from thresholdout.privacy.accounting.accountants.renyi_conversion import (
    EdgeOrderWarning,
    NoFiniteOrderWarning,
    default_orders,
    rdp_to_delta,
    rdp_to_epsilon,
)
from thresholdout.privacy.accounting.adaptive_steps import gaussian_delta
from thresholdout.privacy.accounting.events.event_files import event_to_dict
from thresholdout.privacy.accounting.iterative_learners import federated_step, sgld_step
from thresholdout.privacy.accounting.optimal_composition import optimal_delta_bounds, optimal_epsilon_bounds

CASES = Cases()

EVENTS: dict[str, Callable[[], Event]] = {
    "laplace": lambda: LaplaceAnswer(20.0),
    "gaussian": lambda: GaussianAnswer(30.0, sensitivity=2.0),
    "interaction": lambda: ThresholdoutInteraction(1000, 0.02, 3),
    "black box": lambda: BlackBox(0.05, 1e-7),
    "poisson": lambda: PoissonGaussianStep(3.0, 0.02),
    "without replacement": lambda: WithoutReplacementGaussianStep(3.0, 20, 1000),
    "with replacement": lambda: WithReplacementGaussianStep(4.0, 10, 1000),
    "sgld": lambda: SGLDStep(0.5, clip=1.0, batch_size=10, records=1000),
    "federated": lambda: FederatedRound(0.3, 20, 500),
}

ACCOUNTANTS: dict[str, Callable[..., Accountant]] = {
    "renyi": RenyiAccountant,
    "distribution": lambda adjacency: DistributionAccountant(adjacency, accuracy=1e-2),
    "pure": PureAccountant,
}


def _stated(accountant: Accountant) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeOrderWarning)
        warnings.simplefilter("ignore", NoFiniteOrderWarning)
        stated = accountant.epsilon_statements(1e-5)
        if not isinstance(accountant, DistributionAccountant):
            stated = [*stated, *accountant.delta_statements(0.5)]
    return [[each.value, each.bound] for each in stated]


def _account(make: Callable[[], Event], accountant: Callable[..., Accountant]) -> Any:
    found: list[Any] = []
    for adjacency in ("replace_one", "add_remove"):
        try:
            found.append([adjacency, _stated(accountant(adjacency).compose(make(), 12))])
        except UnsupportedEvent:
            found.append([adjacency, "refused"])
    return found


@CASES.case("accounting: deltas by distributions")
def deltas() -> Any:
    steps = SelfComposed(PoissonGaussianStep(3.0, 0.02), 12)
    return [DistributionAccountant(accuracy=1e-3).compose(event).delta(0.5) for event in (steps, EVENTS["laplace"]())]


for _name, _event in EVENTS.items():
    for _by, _accountant in ACCOUNTANTS.items():
        CASES.add(
            f"accounting: {_name} by {_by}",
            lambda event=_event, accountant=_accountant: _account(event, accountant),  # type: ignore[misc]
        )


@CASES.case("accounting: mixed events")
def mixed_events() -> Any:
    step = WithoutReplacementGaussianStep(2.0, 10, 1000)
    happened = Composed([SelfComposed(step, 20), GaussianAnswer(50.0), BlackBox(0.1)])
    found = best_epsilon(happened, 1e-5)
    columns = ["accountant", "epsilon", "bound"]
    return [found.epsilon, found.accountant, found.table[columns], best_delta(happened, 1.0), event_to_dict(happened)]


@CASES.case("accounting: pure events")
def pure_events() -> Any:
    happened = Composed([SelfComposed(LaplaceAnswer(10.0), 30), BlackBox(0.2)])
    found = best_epsilon(happened, 1e-6)
    return [found.epsilon, found.accountant, best_delta(happened, 1.5), PureAccountant().compose(happened).epsilon(0.0)]


@CASES.case("accounting: calibrated noise of steps")
def calibrated_steps() -> Any:
    asked: list[dict[str, Any]] = [
        {"sampling": "wor"},
        {"sampling": "wor", "adjacency": "add_remove"},
    ]
    return [
        calibrate_sigma(2.0, 1e-5, 50, batch_size=10, dataset_size=1000, method="rdp", tolerance=1e-2, **each)
        for each in asked
    ]


@CASES.case("accounting: calibrated noise by distributions")
def calibrated_by_distributions() -> Any:
    found = calibrate(lambda sigma: SelfComposed(GaussianAnswer(sigma), 5), 1.0, 1e-5, tolerance=1e-4)
    return [found.value, found.epsilon, found.delta]


@CASES.case("accounting: renyi curves")
def renyi_curves() -> Any:
    orders = [1.5, 2.0, 4.0, 17.0]
    found = []
    for name, event in EVENTS.items():
        try:
            found.append([name, RenyiAccountant(orders=orders).compose(event(), 3).rdp()])
        except UnsupportedEvent:
            found.append([name, "refused"])
    return found


@CASES.case("accounting: from renyi divergences")
def conversions() -> Any:
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    rdp = 0.02 * orders
    found = [rdp_to_epsilon(orders, rdp, 1e-5, conversion=rule) for rule in ("balle", "mironov")]
    fine = refine_epsilon(lambda alpha: 0.02 * np.asarray(alpha), 1e-5)
    delta = rdp_to_delta(orders, rdp, 0.8)
    return [[[each.epsilon, each.order] for each in (*found, fine)], delta.delta, delta.order, default_orders()]


def _composed(found: Composition) -> Any:
    return [found.eps, found.delta, found.rule, found.sound]


@CASES.case("accounting: compositions by rule")
def compositions() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return [
            _composed(compose_basic(0.25, 1e-6, 4)),
            _composed(compose_dwork_roth(0.1, 1e-8, 1e-6, 100)),
            _composed(compose_kov(0.1, 1e-6, 1e-6, 100)),
            _composed(compose_kov([0.1, 0.3, 0.02], [1e-7, 0.0, 1e-8], 1e-6)),
            _composed(compose_theorem5(0.1, 1e-6, 100)),
            _composed(compose_chernoff(0.1, 1e-6, 100, 1e-6)),
            _composed(compose_he(0.1, 1e-6, 1e-6, 100)),
            _composed(compose_he(0.1, 1e-6, 1e-6, 100, variant="II")),
            _composed(compose_he(0.1, 1e-6, 1e-6, 100, formula="paper")),
            chernoff_delta(0.1, 100, 4.0),
        ]


@CASES.case("accounting: optimal compositions")
def optimal_compositions() -> Any:
    eps = [0.1, 0.2, 0.05, 0.4]
    return [
        compose_optimal_delta(0.1, 1e-8, 2.0, 50),
        compose_optimal_epsilon(0.1, 1e-8, 1e-5, 50),
        optimal_delta_bounds(eps, 0.0, 0.3),
        optimal_epsilon_bounds(eps, 0.0, 1e-4),
        optimal_epsilon_bounds(0.01, 0.0, 1e-4, 300),
    ]


@CASES.case("accounting: gaussian steps and subsets")
def gaussian_steps() -> Any:
    amplified = subsample(0.5, 1e-6, 0.1)
    return [
        gaussian_delta(1.0, 2.0, 0.5),
        gaussian_step(1.0, 2.0, 1e-5),
        gaussian_step(1.0, 2.0, 1e-5, exact=True),
        [amplified.eps, amplified.delta, amplified.sound],
    ]


@CASES.case("accounting: divergences")
def divergences() -> Any:
    p, q = [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.2, 0.3]
    tail = azuma_tail([0.1, 0.2, 0.3], 0.5)
    return [
        kl_divergence(p, q),
        max_divergence(p, q),
        approx_max_divergence(p, q, 0.01),
        statistical_distance(p, q),
        hockey_stick(p, q, 0.1),
        pure_decomposition([0.3, 0.7], [0.5, 0.5], 0.8),
        [kl_bound(0.3, rule) for rule in ("he", "dwork_rothblum", "dwork_rothblum_vadhan")],
        tv_bound(0.3, 1e-5),
        [tail.deviation, tail.probability],
    ]


@CASES.case("accounting: langevin dynamics and federated averaging")
def iterative() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        found = sgld_generalization(60_000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6)
        return [
            [sgld_step(10, 1.0, 1.0, 1e-5, formula) for formula in ("corrected", "paper")],
            [federated_step(10, 1.0, 1e-5, neighbours) for neighbours in ("replace", "zero_out")],
            federated_step(10, 1.0, 1e-5, "replace", "paper"),
            _composed(sgld_privacy(60_000, 64, 2000, 1.0, 0.5, 1e-6, 1e-6)),
            _composed(federated_privacy(1000, 50, 100, 1.0, 1e-6, 1e-6)),
            _generalized(found),
        ]


def _generalized(found: GeneralizationBound) -> Any:
    return [found.error, found.failure, found.confidence, found.n_required, found.applicable, found.vacuous, found.rule]


@CASES.case("accounting: generalisation of private learners")
def generalization() -> Any:
    pac = pac_plan(0.5, 0.05)
    many = multidatabase_bound(0.1, 1e-6, 3)
    return [
        [on_average_bound(0.5, 1e-5, 10, rule) for rule in ("theorem2", "tight")],
        list(many),
        sample_size_required(0.05, 1e-6),
        smallest_delta(0.05, 20_000),
        smallest_eps(1e-6, 10_000),
        _generalized(high_probability_bound(0.05, 1e-6, 20_000)),
        best_error(0.01, 0.0, 10_000, 0.05),
        _generalized(pac_guarantee(0.1, 0.05, 1e-6, 20_000)),
        [pac.training_error, pac.eps, pac.delta, pac.n],
        assumed_training_error(100, 0.1, 1.0),
    ]


@CASES.case("accounting: quoted bounds")
def quoted_bounds() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        found = [
            dwork2015_bound(0.5, 1e-5),
            nissim_stemmer_bound(0.05, 1e-6),
            oneto_risk_bound(0.05, 2000, 0.2),
            oneto_variance_bound(0.05, 2000, 0.2),
        ]
    return [[_generalized(each) for each in found], empirical_variance([0.0, 1.0, 0.25])]


@CASES.case("accounting: bounds side by side")
def comparisons() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)
        return [
            compare_high_probability([0.02, 0.05], 1e-6, 20_000, 0.1),
            compare_kl([0.1, 1.0]),
            compare_composition(0.1, 1e-7, [10, 100], 1e-6),
        ]
