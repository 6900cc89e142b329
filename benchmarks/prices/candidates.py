"""What is asked: simulated candidates with known truths, and candidates of real searches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta as beta_law

__all__ = ["BETA", "GENERATED", "Candidate", "half_length", "real", "simulated"]

BETA: Final = 0.05
GENERATED: Final = ("clusters", "noisy labels", "regression cut at its median")
FRESH: Final = 20_000  # records that tell the truth of a generated data set

_SHARED: Final = 0.7  # of the variance of what makes a record hard is common to all models


@dataclass(frozen=True)
class Candidate:
    """One query: right or wrong on the training part (out of fold) and on the holdout, and its true accuracy."""

    train: NDArray[np.bool_]
    holdout: NDArray[np.bool_]
    truth: float | None


def half_length(score: float, n: float, level: float) -> float:
    """Return half the length of the Clopper-Pearson interval at a two-sided level."""
    k = score * n
    low = float(beta_law.ppf(level / 2, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta_law.ppf(1 - level / 2, k + 1, n - k)) if k < n else 1.0
    return (high - low) / 2


def simulated(n: int, n_train: int, queries: int, seed: int, shared: float = _SHARED) -> Iterator[Candidate]:
    """Yield candidates a little worse than the best: errors agree as those of real models do, or share less."""
    rng = np.random.default_rng(seed)
    difficulty = np.sqrt(shared) * rng.standard_normal(n + n_train, dtype=np.float32)
    best = rng.uniform(0.85, 0.97)
    for _ in range(queries):
        truth = float(np.clip(best - abs(rng.normal(0, 0.03)), 0.05, 0.99))
        own = rng.standard_normal(n + n_train, dtype=np.float32)
        right = difficulty + np.float32(np.sqrt(1 - shared)) * own < ndtri(truth)
        yield Candidate(right[n:], right[:n], truth)


def real(name: str, n: int, n_train: int, queries: int, seed: int) -> Iterator[Candidate]:
    """Yield models of a random search, with cross-validated training values."""
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_predict

    known = name in GENERATED
    X, y = _pool(name, n + n_train + FRESH * known, seed)
    part, train, fresh = slice(0, n), slice(n, n + n_train), slice(n + n_train, None)
    rng = np.random.default_rng(1000 + seed)
    for _ in range(queries):
        model = _estimator(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out_of_fold = cross_val_predict(model, X[train], y[train], cv=5) == y[train]
            fitted = clone(model).fit(X[train], y[train])
            truth = float(np.mean(fitted.predict(X[fresh]) == y[fresh])) if known else None
            yield Candidate(out_of_fold, fitted.predict(X[part]) == y[part], truth)


def _pool(name: str, size: int, seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return records of a data set, shuffled."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_friedman1

    rng = np.random.default_rng(seed)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
    elif name == "regression cut at its median":
        X, target = make_friedman1(size, noise=2.0, random_state=seed)
        y = (target > np.median(target)).astype(int)
    else:
        clusters, noise = (3, 0.02) if name == "clusters" else (1, 0.1)
        X, y = make_classification(
            size, 12, n_informative=6, n_clusters_per_class=clusters, flip_y=noise, class_sep=1.5, random_state=seed
        )
    order = rng.permutation(len(y))
    return X[order], y[order]


def _estimator(rng: np.random.Generator) -> Any:
    """Draw a candidate from seven families."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    family = rng.integers(7)
    if family == 0:
        return make_pipeline(StandardScaler(), KNeighborsClassifier(int(rng.integers(1, 40))))
    if family == 1:
        return DecisionTreeClassifier(max_depth=int(rng.integers(1, 15)), random_state=0)
    if family == 2:
        model = LogisticRegression(C=float(10 ** rng.uniform(-4, 2)), max_iter=200)
        return make_pipeline(StandardScaler(), model)
    if family == 3:
        return GaussianNB(var_smoothing=float(10 ** rng.uniform(-9, 0)))
    if family == 4:
        return LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(rng.uniform(0, 1)))
    if family == 5:
        return RidgeClassifier(alpha=float(10 ** rng.uniform(-3, 4)))
    return RandomForestClassifier(20, max_depth=int(rng.integers(2, 12)), random_state=0)
