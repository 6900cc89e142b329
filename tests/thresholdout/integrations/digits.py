"""Digits, trees of some depths, and a guard of both; what loops of libraries train."""

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from thresholdout import Thresholdout

X, Y = load_digits(return_X_y=True)
X = (X / 16.0).astype(np.float32)
HOLDOUT, TRAIN = slice(0, 900), slice(900, None)


def guard(**declared: Any) -> Thresholdout:
    """Return a guard of the first half."""
    settings: dict[str, Any] = {"sampling": "iid", **declared}
    return Thresholdout((X[HOLDOUT], Y[HOLDOUT]), train=(X[TRAIN], Y[TRAIN]), **settings)


def tree(depth: int) -> Any:
    """Return a tree that is fitted to the training part."""
    return DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[TRAIN], Y[TRAIN])
