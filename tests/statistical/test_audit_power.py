"""Audits with power: pairs of neighbours that show at least a third of what a learner's report claims.

The record, or client, that differs pulls with all of its norm in one direction or in the other, and no other one pulls
at all. Each step looks at it, so a Gaussian mechanism is left, and the attack knows the direction. Most learners of
propagation have it as their only record: each update adds noise of its own, which hides what an earlier one has shown
from somebody who sees the last state only (of two updates a share of 1/sqrt(2) of the signal is left).

The broken twin has half the noise, and the audit must refute the claim that is true of the whole noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sizes import corners
from thresholdout.privacy.accounting import best_epsilon
from thresholdout.privacy.accounting.events.event_types import Adjacency, Event
from thresholdout.privacy.auditing import audit_outputs
from thresholdout.privacy.learning import (
    DPEMGaussianMixture,
    DPSGDClassifier,
    DPSGDRegressor,
    DPVIRegressor,
    EPClassifier,
    EPGaussianMixture,
    EPLinearRegression,
    FederatedClassifier,
    PBPRegressor,
    SGLDRegressor,
    run_federated,
    run_sgld,
)

Floats = NDArray[np.float64]
DELTA, LARGE_DELTA = 0.01, 0.2  # at the larger one, 1,000 runs tell a noise from half of it
SURE = 1 - 1e-9
ONE = np.ones((1, 1))
FAR = 1e9

pytestmark = [
    pytest.mark.statistical,
    pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowSignalWarning"),
    pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LowInformationWarning"),
    pytest.mark.filterwarnings("ignore::thresholdout.privacy.learning.LooseDeltaWarning"),
]


@dataclass(frozen=True)
class Pair:
    """The score of a run on the first or the second data set with some seed, and what a run is charged as."""

    score: Callable[[int, int], float]
    event: Event
    adjacency: Adjacency = "replace_one"


def estimator(model: Any, data: Callable[[int], tuple[Any, ...]], score: Callable[[Any], Any]) -> Pair:
    def run(part: int, seed: int) -> float:
        return float(score(model.set_params(random_state=seed).fit(*data(part))))

    run(0, 0)
    report = model.privacy_report_
    assert report.private
    return Pair(run, report.event, report.adjacency)


def either(part: int, size: int = 1) -> Floats:
    """Return targets of which the first is beyond all bounds, on one side or on the other; all others are 0."""
    return np.concatenate([[FAR if part else -FAR], np.zeros(size - 1)])


def descent_settings(noise: float) -> dict[str, Any]:
    return {
        "noise_multiplier": noise,
        "n_steps": 1,
        "learning_rate": 1.0,
        "clip_norm": 0.01,
        "fit_intercept": False,
        "average": False,
    }


TWO = np.array([[1.0], [0.0]])  # the second record has a gradient of 0


def dpsgd_regressor(noise: float) -> Pair:
    model = DPSGDRegressor(**descent_settings(noise))
    return estimator(model, lambda part: (TWO, either(part, 2)), lambda fitted: fitted.coefs_[0][0, 0])


def dpsgd_classifier(noise: float) -> Pair:
    model = DPSGDClassifier(classes=[0, 1], **descent_settings(noise))
    return estimator(
        model, lambda part: (TWO, [part, 0]), lambda fitted: fitted.coefs_[0][0, 1] - fitted.coefs_[0][0, 0]
    )


def variational(noise: float) -> Pair:
    """Of 100 records 99 are drawn; all but one pull a billion times less than the bound."""
    model = DPVIRegressor(
        1, n_epochs=1, batch_size=99, n_samples=1, clip_norm=1e6, noise_multiplier=noise, initial_variance=1e-6
    )
    return estimator(
        model, lambda part: (np.zeros((100, 1)), 1e6 * either(part, 100)), lambda fitted: fitted.q_.mean_1[-1]
    )


def langevin(noise: float) -> Pair:
    """With this step size nothing is left of the start."""
    settings: dict[str, Any] = {"n_steps": 1, "batch_size": 1, "order": "cyclic", "n_chains": 1, "progress": False}
    model = SGLDRegressor(step_size=2.0, clip=2**0.5 / noise, fit_intercept=False, **settings)
    return estimator(model, lambda part: (ONE, either(part)), lambda fitted: fitted.coef_[0])


def federated(noise: float) -> Pair:
    settings: dict[str, Any] = {"rounds": 1, "local_steps": 1, "fit_intercept": False, "average": False}
    model = FederatedClassifier(noise_multiplier=noise, classes=[0, 1], progress=False, **settings)
    return estimator(model, lambda part: (FAR * ONE, [part]), lambda fitted: fitted.coef_[0, 0])


def expectation_maximisation(noise: float) -> Pair:
    """A record of norm 1 on one side, in the first component, or on the other, in the second one; in both steps."""
    settings: dict[str, Any] = {"n_steps": 2, "means_init": [[1.0], [-1.0]], "progress": False}
    model = DPEMGaussianMixture(2, noise_multiplier=noise, **settings)
    way = np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.25, 0.5, 0.25, -0.25, 0.5, -0.25]])

    def score(fitted: Any) -> float:
        return float((fitted._path.states[1:] * way).sum())  # what is released: counts, sums and squares, with noise

    return estimator(model, lambda part: (either(part)[:, None],), score)


def propagation_settings(noise: float) -> dict[str, Any]:
    """One update, of a share of 0.01, after which the shared site is far from its bound."""
    return {"algorithm": "dp-sep", "sampling": "cyclic", "n_epochs": 1, "gamma": 0.01, "sigma": noise, "delta": 1e-5}


def propagated_line(noise: float) -> Pair:
    model = EPLinearRegression(clip_norm=1.0, fit_intercept=False, **propagation_settings(noise))
    return estimator(model, lambda part: (ONE, either(part)), lambda fitted: fitted.posterior_.eta[0])


def propagated_classes(noise: float) -> Pair:
    """With a wide prior the site of a label says much more about the mean than about the precision."""
    settings = propagation_settings(noise)
    model = EPClassifier(clip_norm=0.1, prior_precision=0.01, classes=[0, 1], fit_intercept=False, **settings)
    return estimator(model, lambda part: (ONE, [part]), lambda fitted: fitted.posterior_.eta[0])


def propagated_mixture(noise: float) -> Pair:
    """The record belongs to the second cluster for certain, and is far away from it on either side."""
    means = [[0.0, -1.0], [0.0, 1.0]]
    model = EPGaussianMixture(2, prior_mean=means, clip_norm=1.0, **propagation_settings(noise))
    return estimator(model, lambda part: ([[*either(part), 1e3]],), lambda fitted: fitted.posterior_.eta[1, 0])


def propagated_network(noise: float) -> Pair:
    """The bias of the output takes all that is seen at an input of 0."""
    model = PBPRegressor((1,), clip_norm=1e4, refine_prior=False, **propagation_settings(noise))
    return estimator(model, lambda part: (0.0 * ONE, either(part)), lambda fitted: fitted.posterior_.eta[-1])


def steps(noise: float) -> dict[str, Any]:
    return {"T": 2, "batch_size": 2, "sigma": noise, "L": 1.0, "theta0": [0.0], "progress": False}


def federated_run(noise: float) -> Pair:
    def run(part: int, seed: int) -> Any:
        clients = list(either(part, 2)[:, None])
        return run_federated(lambda client, theta: client, clients, random_state=seed, **steps(noise))

    return Pair(lambda part, seed: float(run(part, seed).theta[0]), run(0, 0).event)


def langevin_run(noise: float) -> Pair:
    def gradients(theta: Any, rows: Any, targets: Any) -> Any:
        return -targets[:, None]

    def run(part: int, seed: int) -> Any:
        y = either(part, 2)
        return run_sgld(gradients, np.zeros((2, 1)), y, step_sizes=1.0, random_state=seed, **steps(noise))

    return Pair(lambda part, seed: float(run(part, seed).theta[0]), run(0, 0).event)


PAIRS: dict[str, tuple[Callable[[float], Pair], float]] = {
    "run_federated": (federated_run, 1.0),
    "run_sgld": (langevin_run, 1.0),
    "DPEMGaussianMixture": (expectation_maximisation, 2.0),
    "DPSGDClassifier": (dpsgd_classifier, 1.5),
    "DPSGDRegressor": (dpsgd_regressor, 1.5),
    "DPVIRegressor": (variational, 2.0),
    "EPClassifier": (propagated_classes, 1.0),
    "EPGaussianMixture": (propagated_mixture, 1.0),
    "EPLinearRegression": (propagated_line, 1.0),
    "FederatedClassifier": (federated, 2.0),
    "PBPRegressor": (propagated_network, 1.0),
    "SGLDRegressor": (langevin, 2.0),
}
NAMES = pytest.mark.parametrize("name", corners(PAIRS, 0))


@cache  # for both tests: pytest runs one for all names, and then the other
def outputs(name: str, share: float) -> tuple[Floats, Floats]:
    """Return the scores of 1,000 runs on each data set, whose seeds are fixed, with a share of the noise."""
    make, noise = PAIRS[name]
    pair = make(share * noise)
    first, second = (np.array([pair.score(part, 2 * seed + part) for seed in range(1000)]) for part in (0, 1))
    return first, second


def claimed(name: str, delta: float) -> float:
    make, noise = PAIRS[name]
    pair = make(noise)
    return best_epsilon(pair.event, delta, adjacency=pair.adjacency).epsilon


def at_least(name: str, share: float, delta: float, confidence: float) -> float:
    return audit_outputs(
        *outputs(name, share), delta=delta, confidence=confidence, attack="score", fit_share=0.2
    ).epsilon


@NAMES
def test_an_audit_reaches_a_third_of_what_is_claimed(name: str) -> None:
    """The limit that must not be above the claim has an error rate of 1e-9."""
    claim = claimed(name, DELTA)
    assert at_least(name, 1.0, DELTA, SURE) <= claim
    assert at_least(name, 1.0, DELTA, 0.9) > claim / 3


@NAMES
def test_half_the_noise_is_caught(name: str) -> None:
    claim = claimed(name, LARGE_DELTA)
    assert at_least(name, 1.0, LARGE_DELTA, SURE) <= claim < at_least(name, 0.5, LARGE_DELTA, SURE)
