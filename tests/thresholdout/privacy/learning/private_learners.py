"""Every public learner that draws random numbers, with a small private fit of each that makes a report.

The tests that go through these lists compare them with what the package exports, so that a new learner is in them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import thresholdout.privacy.learning as learning
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
    PrivacyReport,
    SGLDRegressor,
    SSPRegressor,
    run_federated,
    run_sgld,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = X @ [1.0, -1.0]
LABELS = (Y > 0).astype(int)
EP: dict[str, Any] = {"algorithm": "dp-sep", "clip_norm": 1.0, "sigma": 2.0, "n_epochs": 1}

ESTIMATORS: dict[str, Any] = {
    "DPEMGaussianMixture": DPEMGaussianMixture(2, noise_multiplier=3.0, n_steps=2),
    "DPSGDClassifier": DPSGDClassifier(noise_multiplier=3.0, n_steps=2, batch_size=60, classes=[0, 1]),
    "DPSGDRegressor": DPSGDRegressor(noise_multiplier=3.0, n_steps=2, batch_size=60),
    "DPVIRegressor": DPVIRegressor(2, noise_multiplier=3.0, n_epochs=1, batch_size=30),
    "EPClassifier": EPClassifier(classes=[0, 1], **EP),
    "EPGaussianMixture": EPGaussianMixture(2, **EP),
    "EPLinearRegression": EPLinearRegression(**EP),
    "FederatedClassifier": FederatedClassifier(noise_multiplier=3.0, rounds=2, classes=[0, 1]),
    "PBPRegressor": PBPRegressor((2,), **EP),
    "SGLDRegressor": SGLDRegressor(clip=1.0, step_size=1e-4, n_steps=2, n_chains=1, batch_size=60, order="cyclic"),
    "SSPRegressor": SSPRegressor(noise_multiplier=3.0),
}

# What is released once and at once has no rest to resume.
RESUMED = [name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "resume")]


def _federated(random_state: Any) -> PrivacyReport:
    run = run_federated(
        lambda client, theta: client - theta,
        list(X),
        theta0=[0.0, 0.0],
        T=2,
        batch_size=60,
        sigma=0.1,
        L=1.0,
        random_state=random_state,
    )
    return run.privacy(1e-5)


def _langevin(random_state: Any) -> PrivacyReport:
    run = run_sgld(
        lambda theta, rows, y: rows * (rows @ theta - y)[:, None],
        X,
        Y,
        theta0=[0.0, 0.0],
        step_sizes=0.1,
        T=2,
        batch_size=60,
        sigma=0.1,
        L=1.0,
        random_state=random_state,
    )
    return run.privacy(1e-5)


RUNS: dict[str, Callable[[Any], PrivacyReport]] = {"run_federated": _federated, "run_sgld": _langevin}

WITHOUT_REPORT = {
    "propose_test_sample": "returns a number; its documentation says what an integer means",
    "run_sep": "returns a Run, which claims nothing",
    "sgld_sample": "returns states, and claims nothing",
    "streams": "makes the generators",
}


def quiet_fit(estimator: Any, rows: Any = X, y: Any = None) -> Any:
    """Fit without the warnings that so few records deserve."""
    if y is None:
        y = LABELS if "Classifier" in type(estimator).__name__ else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", learning.LowSignalWarning)
        warnings.simplefilter("ignore", learning.LowInformationWarning)
        return estimator.fit(rows, y)


def random_names() -> set[str]:
    """Return the names of everything in the package that takes a source of random numbers."""
    found = set()
    for name in dir(learning):
        value = getattr(learning, name)
        if inspect.isclass(value) and issubclass(value, Warning):
            continue
        if callable(value) and {"random_state", "rng", "seed"} & set(inspect.signature(value).parameters):
            found.add(name)
    return found


def estimators_with(*parameters: str) -> list[str]:
    """Return the names of the public estimators that have all of these parameters."""
    found = []
    for name in learning.__all__:
        value = getattr(learning, name)
        if inspect.isclass(value) and hasattr(value, "fit") and hasattr(value, "get_params"):
            found += [name] if set(parameters) <= set(inspect.signature(value).parameters) else []
    return found
