"""Data that all learners are compared on, and what is publicly known of them.

Needs numpy and scikit-learn only, so that it also runs where another library is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1

__all__ = ["DELTA", "EPSILONS", "TASKS", "Split", "Task", "splits"]

DELTA = 1e-5
EPSILONS = (0.5, 1.0, 3.0, 8.0)

Floats = NDArray[np.float64]
Data = tuple[Floats, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """Records with features in [-1, 1] or [0, 1], and what may be known without looking at them."""

    kind: Literal["classes", "number", "clusters"]
    made: Callable[[], Data]
    sizes: tuple[int, ...]
    low: float = -1.0
    classes: int = 2
    targets: tuple[float, float] = (0.0, 1.0)
    noise: float = 0.25  # variance of a target, or of a record about its cluster's mean


@dataclass(frozen=True)
class Split:
    """Training records, test records, and the seed of the fit."""

    X: Floats
    y: NDArray[Any]
    X_test: Floats
    y_test: NDArray[Any]
    seed: int


def splits(task: Task, records: int) -> Iterator[Split]:
    """Yield four random splits, two of 20,000 records; the test part is what is left, 2,000 records at most."""
    X, y = task.made()
    for seed in range(4 if records < 20_000 else 2):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = order[:records], order[records:][:2000]
        yield Split(X[train], y[train], X[test], y[test], seed)


def _digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def _between(X: Floats, low: Any, high: Any) -> Floats:
    found: Floats = np.clip((X - low) / (np.asarray(high) - low), 0, 1) * 2 - 1
    return found


def _breast_cancer() -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    # Round numbers above the largest values, as an instrument's range would be known.
    digits = 10.0 ** np.floor(np.log10(X.max(axis=0)))
    return _between(X, 0.0, np.ceil(X.max(axis=0) / digits) * digits), y


def _diabetes() -> Data:
    X, y = load_diabetes(return_X_y=True)
    return _between(X, -0.2, 0.2), y


def _two_classes() -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (22_000, 5))
    return X, (X @ [1.0, -1.0, 0.5, 0.5, 0.0] + rng.logistic(0, 0.2, len(X)) > 0).astype(int)


def _linear() -> Data:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (22_000, 5))
    return X, X @ [1.0, -1.0, 0.5, 0.5, 0.0] + rng.normal(0, 0.5, len(X))


def _friedman() -> Data:
    X, y = make_friedman1(22_000, 8, noise=1.0, random_state=0)
    return X * 2 - 1, y


def _clusters() -> Data:
    rng = np.random.default_rng(0)
    means = np.array([[0.6, 0.1], [-0.2, 0.6], [-0.5, -0.3], [0.3, -0.6]])
    labels = rng.integers(0, 4, 22_000)
    return np.clip(means[labels] + rng.normal(0, 0.15, (22_000, 2)), -1, 1), labels


TASKS = {
    "digits": Task("classes", _digits, (200, 400, 800, 1400), low=0.0, classes=10),
    "breast cancer": Task("classes", _breast_cancer, (400,)),
    "two classes": Task("classes", _two_classes, (500, 2000, 20_000)),
    "diabetes": Task("number", _diabetes, (400,), targets=(0.0, 400.0), noise=55.0**2),
    "linear": Task("number", _linear, (500, 2000, 20_000), targets=(-4.0, 4.0), noise=0.25),
    "friedman": Task("number", _friedman, (500, 2000, 20_000), targets=(0.0, 30.0), noise=4.0),
    "clusters": Task("clusters", _clusters, (500, 2000, 20_000), classes=4, noise=0.15**2),
}
"""Digits: 64 features, 10 classes; breast cancer: 30 features; two classes and linear: 5 made features; diabetes: 10
features; Friedman's function: 8 features, not linear; clusters: 4 in 2 dimensions."""
