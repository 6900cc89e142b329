"""
Cross-validation of patients, asked many times
==============================================

Grouped records: whole patients in a fold, and one guard for all folds.

3,000 patients have two similar scans each. A split with one of them in the training part and the other in the test part
rewards models that recognise patients. The guard keeps patients together, and gives every answer an interval although
each query is chosen from the answers before. It draws no noise: every run has the same output.

Run with ``python examples/kfold.py``.
"""

from __future__ import annotations

import textwrap

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from thresholdout.guard.kfold import KFoldGuard
from thresholdout.model_selection import GuardedSearchCV

Floats = NDArray[np.float64]


def scans(patients: int, seed: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Draw two scans of each patient: features, illness, and whose they are."""
    rng = np.random.default_rng(seed)
    looks = rng.normal(size=(patients, 12))
    ill = (looks[:, 0] + looks[:, 1] + 1.5 * rng.normal(size=patients) > 0).astype(np.int64)
    who = np.repeat(np.arange(patients), 2)
    return looks[who] + 0.1 * rng.normal(size=(2 * patients, 12)), ill[who], who


def main() -> None:
    """Ask about two models, then about a grid, and compare with patients that nobody has seen."""
    X, y, patients = scans(3_000, seed=0)
    X_fresh, y_fresh, _ = scans(20_000, seed=1)
    nearest = KNeighborsClassifier(1)
    careless = cross_val_score(nearest, X, y, cv=KFold(2, shuffle=True, random_state=0)).mean()
    print(f"nearest neighbour, patients torn apart: accuracy {careless:.3f}")
    print(f"nearest neighbour, fresh patients: {nearest.fit(X, y).score(X_fresh, y_fresh):.3f}\n")

    guard = KFoldGuard((X, y, patients), cv=2, queries=12)
    print(textwrap.fill(repr(guard), 100))
    print(guard.folds.to_string())
    print(f"route: {guard.certificate.route}\n")

    first = guard.score(nearest, "accuracy", expected=0.6)
    print(f"nearest neighbour, expected 0.6:   {first!r}")
    second = guard.score(LogisticRegression(), "accuracy", expected=0.7)
    print(f"logistic regression, expected 0.7: {second!r}")
    print(f"what is left of a probability of error of 0.05: {guard.status.error_budget_left:.4f}\n")

    model = Pipeline([("scale", StandardScaler()), ("classify", KNeighborsClassifier())])
    search = GridSearchCV(model, {"classify__n_neighbors": [25, 45, 1]}, n_jobs=2)
    guarded = GuardedSearchCV(search, guard).fit(X, y)
    print("a grid of neighbours, asked as one list:")
    columns = ["train", "half_width", "source", "remaining"]
    print(guard.history[columns].tail(guarded.n_queries_).round(3).to_string(index=False))
    print(f"chosen: {guarded.best_params_}, {guarded.best_score_:.3f} ± {guarded.best_half_width_:.3f}")
    print(f"on fresh patients: {guarded.score(X_fresh, y_fresh):.3f}")


if __name__ == "__main__":
    main()
