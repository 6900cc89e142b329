"""Handwritten digits, in two parts: 900 training records and 897 to protect."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from thresholdout import SparseVector, Thresholdout

X, Y = load_digits(return_X_y=True)
TRAIN, HOLDOUT = (X[:900], Y[:900]), (X[900:], Y[900:])
DEPTHS: Final = {"max_depth": [1, 3, 5]}
BACKENDS: Final = [("loky", 1), ("loky", 2), ("multiprocessing", 2), ("threading", 2)]


def make(**changes: Any) -> Thresholdout:
    """Return a guard; its parameters are given, since planning would take most of the time of these tests."""
    given: dict[str, Any] = {"queries": 40, "mechanism": SparseVector(0.1, 0.0005, budget=20)}
    return Thresholdout(HOLDOUT, train=TRAIN, **{**given, **changes})


def tree(**settings: Any) -> Any:
    return DecisionTreeClassifier(random_state=0, **settings)


def train_scores(depths: list[int]) -> list[float]:
    """Return the training accuracy of each depth, computed without anything that is tested here."""
    fitted = [tree(max_depth=depth).fit(*TRAIN) for depth in depths]
    return [float(np.mean(model.predict(TRAIN[0]) == TRAIN[1])) for model in fitted]


def holdout_scores(depths: list[int]) -> list[float]:
    """Return the holdout accuracy of each depth."""
    fitted = [tree(max_depth=depth).fit(*TRAIN) for depth in depths]
    return [float(np.mean(model.predict(HOLDOUT[0]) == HOLDOUT[1])) for model in fitted]
