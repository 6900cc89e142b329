"""Data, guards and metrics for the tests of early stopping in LightGBM and XGBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from thresholdout import Claims, Thresholdout
from thresholdout.scoring.metrics import squared_error

DIGITS = load_digits(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
SQUARED = squared_error(25_000.0)


def make(data: Any, **changes: object) -> tuple[Thresholdout, slice, slice, slice]:
    """Return a guard on the last 40 % of the records, and which are for fitting, validation and holdout."""
    X, y = data
    a, b = int(0.4 * len(y)), int(0.6 * len(y))
    choices: dict[str, Any] = {"queries": 400, "mechanism": Claims(holdout_answers=20), **changes}
    guard = Thresholdout((X[b:], y[b:]), train=(X[:b], y[:b]), **choices)
    return guard, slice(0, a), slice(a, b), slice(b, None)


def value(metric: Any, output: Any, y: Any) -> float:
    """Compute a metric from what a booster predicts, without the package's own way."""
    if metric == "accuracy":
        return float(np.mean((output.argmax(axis=1) if output.ndim == 2 else output) == y))
    if metric == "log_loss":
        return float(np.mean(np.minimum(-np.log(np.where(y == 1, output, 1 - output)), 5.0)))
    return float(np.mean(np.minimum((output - y) ** 2, 25_000.0)))
