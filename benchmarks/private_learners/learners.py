"""The learners of this library, and those of scikit-learn without privacy, as they are set for a task.

Settings depend on public numbers alone: sizes, bounds, the noise of the targets. They were found by trying a few on the
made data, for each learner alike, and then held for all tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPRegressor

from benchmarks.private_learners.tasks import DELTA, Task
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
    SSPRegressor,
)

__all__ = ["NO_PRIVACY", "ONLY", "PRIVATE"]

UNITS, CLIENT = 16, 10


def _scales(task: Task) -> dict[str, Any]:
    """Return public offsets and scales: features as if they were uniform, targets by their bounds."""
    low, high = task.targets
    return {
        "x_offset": (1 + task.low) / 2,
        "x_scale": (1 - task.low) / math.sqrt(12),
        "y_offset": (low + high) / 2,
        "y_scale": (high - low) / 4,
    }


def _scaled_noise(task: Task) -> float:
    return float(task.noise / _scales(task)["y_scale"] ** 2)


class _Scaled(SGLDRegressor):
    """Langevin dynamics on a target that is scaled by public numbers."""

    def fit(self, X: Any, y: Any) -> SGLDRegressor:
        low, high = self.bounds
        return super().fit(X, (y - (low + high) / 2) / ((high - low) / 4))

    def score(self, X: Any, y: Any) -> float:
        low, high = self.bounds
        return float(super().score(X, (y - (low + high) / 2) / ((high - low) / 4)))

    bounds = (0.0, 1.0)


def _langevin(task: Task, n: int, epsilon: float, seed: int) -> Any:
    precision = 1 / _scaled_noise(task)
    # The target decides the step, which must not be too large for the chain: clipping later makes it smaller.
    clip = math.sqrt(epsilon * n * precision) / 60
    model = _Scaled(
        beta=precision, clip=clip, epsilon=epsilon, delta=DELTA, n_steps=400, batch_size=n // 4, n_chains=1,
        random_state=seed, progress=False,
    )  # fmt: skip
    model.bounds = task.targets
    return model


def _propagation(task: Task, n: int, epsilon: float, seed: int) -> dict[str, Any]:
    return {
        "algorithm": "dp-sep", "clip_norm": 1.0, "n_epochs": 10 if n < 20_000 else 3, "epsilon": epsilon,
        "delta": DELTA, "random_state": seed,
    }  # fmt: skip


def _variational(task: Task, n: int, epsilon: float, seed: int) -> Any:
    return DPVIRegressor(
        UNITS, n_epochs=40, batch_size=max(100, n // 20), learning_rate=0.1, kl_weight=0.1, epsilon=epsilon,
        noise_precision=1 / _scaled_noise(task), delta=DELTA, random_state=seed, **_scales(task),
    )  # fmt: skip


def _backpropagation(task: Task, n: int, epsilon: float, seed: int) -> Any:
    return PBPRegressor(
        (UNITS,), algorithm="dp-sep", clip_norm=1.0, n_epochs=5 if n < 20_000 else 2, rho=5 / 6, epsilon=epsilon,
        noise_var=_scaled_noise(task), delta=DELTA, random_state=seed, **_scales(task),
    )  # fmt: skip


class _Clients(FederatedClassifier):
    """Federated averaging over clients that have ten records each."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedClassifier:
        return super().fit(X, y, groups=np.arange(len(X)) // CLIENT)


def _group_descent(task: Task, n: int, epsilon: float, seed: int) -> Any:
    """Return descent whose guarantee about one record implies the wanted one about ten (group privacy)."""
    one = epsilon / CLIENT
    delta = DELTA / (CLIENT * math.exp((CLIENT - 1) * one))
    return DPSGDClassifier(epsilon=one, delta=delta, classes=range(task.classes), random_state=seed)


Make = Callable[[Task, int, float, int], Any]

PRIVATE: Mapping[str, Mapping[str, Make]] = {
    "classes": {
        "DPSGDClassifier": lambda task, n, epsilon, seed: DPSGDClassifier(
            epsilon=epsilon, delta=DELTA, classes=range(task.classes), random_state=seed
        ),
        "FederatedClassifier": lambda task, n, epsilon, seed: FederatedClassifier(
            epsilon=epsilon, delta=DELTA, classes=range(task.classes), random_state=seed, progress=False
        ),
        "EPClassifier": lambda task, n, epsilon, seed: EPClassifier(
            classes=[0, 1], **_propagation(task, n, epsilon, seed)
        ),
        "FederatedClassifier, clients": lambda task, n, epsilon, seed: _Clients(
            epsilon=epsilon, delta=DELTA, classes=range(task.classes), random_state=seed, progress=False
        ),
        "DPSGDClassifier, clients": _group_descent,
    },
    "number": {
        "DPSGDRegressor": lambda task, n, epsilon, seed: DPSGDRegressor(
            epsilon=epsilon, delta=DELTA, target_bounds=task.targets, random_state=seed
        ),
        "DPSGDRegressor, 16 units": lambda task, n, epsilon, seed: DPSGDRegressor(
            UNITS, activation="tanh", learning_rate=0.5, epsilon=epsilon, delta=DELTA, target_bounds=task.targets,
            random_state=seed,
        ),
        "SGLDRegressor": _langevin,
        "SSPRegressor": lambda task, n, epsilon, seed: SSPRegressor(
            epsilon=epsilon, delta=DELTA, feature_bounds=(task.low, 1), target_bounds=task.targets, random_state=seed
        ),
        "EPLinearRegression": lambda task, n, epsilon, seed: EPLinearRegression(
            noise_var=task.noise, **_scales(task), **_propagation(task, n, epsilon, seed)
        ),
        "DPVIRegressor": _variational,
        "PBPRegressor": _backpropagation,
    },
    "clusters": {
        "DPEMGaussianMixture": lambda task, n, epsilon, seed: DPEMGaussianMixture(
            task.classes, epsilon=epsilon, delta=DELTA, random_state=seed, progress=False
        ),
        "EPGaussianMixture": lambda task, n, epsilon, seed: EPGaussianMixture(
            task.classes, noise_var=task.noise, **_propagation(task, n, epsilon, seed)
        ),
    },
}  # fmt: skip
"""For each kind of task, how each learner is made, from the task, the number of records, epsilon and a seed."""

ONLY: Mapping[str, tuple[str, ...]] = {
    "EPClassifier": ("breast cancer", "two classes"),
    "SGLDRegressor": ("diabetes", "linear"),
    "EPLinearRegression": ("diabetes", "linear"),
    "DPSGDRegressor, 16 units": ("diabetes", "friedman"),
    "DPVIRegressor": ("diabetes", "friedman"),
    "PBPRegressor": ("diabetes", "friedman"),
    "FederatedClassifier, clients": ("digits", "two classes"),
    "DPSGDClassifier, clients": ("digits", "two classes"),
}
"""For which tasks a learner is measured, where that is not all: two classes alone, linear ones, networks."""

NO_PRIVACY: Mapping[str, Mapping[str, Make]] = {
    "classes": {"LogisticRegression": lambda task, n, epsilon, seed: LogisticRegression(max_iter=2000)},
    "number": {
        "LinearRegression": lambda task, n, epsilon, seed: LinearRegression(),
        "MLPRegressor, 16 units": lambda task, n, epsilon, seed: MLPRegressor(
            hidden_layer_sizes=(UNITS,),
            activation="tanh",
            solver="lbfgs",
            max_iter=500,
            alpha=0.1,
            random_state=seed,
        ),
    },
    "clusters": {
        "GaussianMixture": lambda task, n, epsilon, seed: GaussianMixture(
            task.classes, covariance_type="spherical", random_state=seed
        )
    },
}
"""The same without privacy."""
