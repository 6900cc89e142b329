"""A search over trees of handwritten digits, and a guard whose training part it uses."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from thresholdout import Claims, Thresholdout

X, Y = load_digits(return_X_y=True)
TRAIN, HOLDOUT = (X[:600], Y[:600]), (X[600:], Y[600:])
DEPTHS = {"max_depth": [1, 3, 6]}


def make(**changes: Any) -> Thresholdout:
    settings: dict[str, Any] = {"queries": 40, "mechanism": Claims(holdout_answers=4), "random_state": 0}
    return Thresholdout(HOLDOUT, train=TRAIN, **{**settings, **changes})


def tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=0)


def grid(**changes: Any) -> GridSearchCV:
    return GridSearchCV(tree(), DEPTHS, **{"cv": 3, **changes})
