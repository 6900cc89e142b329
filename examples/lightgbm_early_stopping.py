"""
Early stopping of boosted trees
===============================

A query in every round, and only when a query is needed.

Both ways follow records cut from the training part, and both ask the guard about the same holdout. The economical one
asks when the free score claims an improvement that matters, and about the round that it chooses.

Without noise the answers are the same in every run.

Run with ``python examples/lightgbm_early_stopping.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import lightgbm
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from thresholdout import Claims, Thresholdout, WideAnswersWarning
from thresholdout.model_selection import GuardedStopping, LightGBMCallback
from thresholdout.scoring.metrics import Metric, log_loss, squared_error

CASES: dict[str, tuple[Callable[..., Any], Metric, dict[str, Any]]] = {
    "digits": (load_digits, log_loss(3.0), {"objective": "multiclass", "num_class": 10}),
    "breast cancer": (load_breast_cancer, log_loss(3.0), {"objective": "binary"}),
    "diabetes": (load_diabetes, squared_error(25_000.0), {"objective": "regression"}),
}
WAYS: dict[str, Literal["rounds", "claims"]] = {"every round": "rounds", "when needed": "claims"}


def main() -> None:
    """Fit each data set in both ways, and print the numbers of queries."""
    warnings.simplefilter("ignore", WideAnswersWarning)  # how often a guard is asked is shown, on small data
    print(f"{'data':14s} {'ask':12s} {'rounds':>6s} {'queries':>9s} {'best round':>10s} {'answer':>8s}")
    for name, (load, metric, params) in CASES.items():
        X_train, X_holdout, y_train, y_holdout = train_test_split(*load(return_X_y=True), test_size=0.4, random_state=0)
        fit, valid = train_test_split(np.arange(len(y_train)), test_size=1 / 3, random_state=0)
        for way, ask in WAYS.items():
            guard = Thresholdout(
                (X_holdout, y_holdout), train=(X_train, y_train), queries=200, mechanism=Claims(noise=0.0)
            )
            stopping = GuardedStopping(guard, metric, validation=valid, patience=10, ask=ask)
            lightgbm.train(
                {"verbose": -1, "num_threads": 1, "num_leaves": 7} | params,
                lightgbm.Dataset(X_train[fit], y_train[fit]),
                num_boost_round=300,
                callbacks=[LightGBMCallback(stopping)],
            )
            # The arithmetic of processors differs in the fifth digit.
            found = stopping.best
            best = np.format_float_positional(found.value, 3, fractional=False, trim="-") if found else "none"
            row = f"{stopping.rounds:6d} {stopping.asked:9d} {stopping.best_round:10d} {best:>8s}"
            print(f"{name:14s} {way:12s} {row}")


if __name__ == "__main__":
    main()
