"""The price of adaptivity: how much wider a guard's intervals are than those of questions that were fixed in advance.

For each answer the half length of the certified interval is divided by that of the exact (Clopper-Pearson) interval at
the true score and at 0.05/m, m the number of questions: what a list that was written down before has (Bonferroni).
Guards are made with defaults; nothing is declared, not even m. A refused question counts as an interval of width 1.

*Simulated searches*: candidates whose errors agree as those of real models do (a common difficulty of the records with
0.7 of the variance), true accuracies spread below a best one of 0.85 to 0.97, training values from n_train records. An
adaptive analyst goes on near the best answer so far. The truth is known.

*Real searches*: random candidates from seven families of scikit-learn on digits, breast cancer, and three generated
data sets, training values cross-validated. For generated data the truth is the accuracy on 20,000 fresh records; for
real data there is none, and the baseline is taken at the holdout's own score.

Run: ``python -m benchmarks.price`` (about 20 minutes on two cores), or with ``--quick`` (about 3).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta as beta_law

from thresholdout import Thresholdout

CONFIDENCE = 0.95
SHARED = 0.7  # of the variance of what makes a record hard is common to all models


@dataclass(frozen=True)
class Candidate:
    """One question: right or wrong on the training part (out of fold) and on the holdout, and its true accuracy."""

    train: NDArray[np.bool_]
    holdout: NDArray[np.bool_]
    truth: float | None


def half_length(score: float, n: int, level: float) -> float:
    """Return half the length of the Clopper-Pearson interval at a two-sided level."""
    k = score * n
    low = float(beta_law.ppf(level / 2, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta_law.ppf(1 - level / 2, k + 1, n - k)) if k < n else 1.0
    return (high - low) / 2


def simulated(n: int, n_train: int, questions: int, seed: int) -> Iterator[Candidate]:
    """Yield candidates near the best so far: each is a little worse or better than the one it started from."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=n + n_train)
    best = rng.uniform(0.85, 0.97)
    for _ in range(questions):
        truth = float(np.clip(best - abs(rng.normal(0, 0.03)), 0.05, 0.99))
        margin = np.sqrt(SHARED) * difficulty + np.sqrt(1 - SHARED) * rng.normal(size=n + n_train)
        right = margin < ndtri(truth)
        yield Candidate(right[n:], right[:n], truth)


def asked(candidates: Iterator[Candidate], n: int, n_train: int, questions: int) -> dict[str, float]:
    """Ask a default guard about all candidates."""
    guard = Thresholdout(np.arange(float(n)), train=np.arange(float(n), float(n + n_train)))
    ratios, missed, spent = [], 0, 0.0
    for candidate in candidates:
        begun = time.perf_counter()
        low, high = guard.ask(candidate.train, candidate.holdout, binary=True).interval
        spent += time.perf_counter() - begun
        score = float(candidate.holdout.mean()) if candidate.truth is None else candidate.truth
        missed += candidate.truth is not None and not low <= candidate.truth <= high
        ratios.append((high - low) / 2 / half_length(score, n, (1 - CONFIDENCE) / questions))
    assert guard.told is not None
    return {
        "price": float(np.mean(ratios)),
        "missed": float(missed),
        "told": guard.told,
        "ms": 1e3 * spent / questions,
    }


def pool(name: str, size: int, seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
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


def estimator(rng: np.random.Generator) -> Any:
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


def real(name: str, n: int, n_train: int, questions: int, seed: int) -> Iterator[Candidate]:
    """Yield models of a random search, with cross-validated training values."""
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_predict

    X, y = pool(name, n + n_train + FRESH, seed)
    part, train, fresh = slice(0, n), slice(n, n + n_train), slice(n + n_train, None)
    known = name in GENERATED
    rng = np.random.default_rng(1000 + seed)
    for _ in range(questions):
        model = estimator(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out_of_fold = cross_val_predict(model, X[train], y[train], cv=5) == y[train]
            fitted = clone(model).fit(X[train], y[train])
            truth = float(np.mean(fitted.predict(X[fresh]) == y[fresh])) if known else None
            yield Candidate(out_of_fold, fitted.predict(X[part]) == y[part], truth)


FRESH = 20_000
GENERATED = ("clusters", "noisy labels", "regression cut at its median")


def table(rows: list[tuple[str, list[dict[str, float]]]]) -> None:
    print(f"{'search':58} {'price':>6} {'90 %':>6} {'missed':>7} {'nats told':>9} {'ms/ask':>7}")
    for name, runs in rows:
        price = [run["price"] for run in runs]
        missed = sum(run["missed"] > 0 for run in runs)
        told, ms = np.mean([run["told"] for run in runs]), np.median([run["ms"] for run in runs])
        numbers = f"{np.mean(price):6.2f} {np.quantile(price, 0.9):6.2f} {missed:3}/{len(runs):<3}"
        print(f"{name:58} {numbers} {told:9.1f} {ms:7.2f}")


def main() -> None:
    quick = "--quick" in sys.argv
    seeds = 6 if quick else 20
    rows = []
    for questions in (20, 100) if quick else (20, 100, 1000):
        for ratio in (3.0, 1.4, 1.0, 0.5, 0.25):
            for n in (300, 2000, 20_000):
                runs = [
                    asked(simulated(n, int(n * ratio), questions, seed), n, int(n * ratio), questions)
                    for seed in range(seeds if questions < 1000 else max(2, seeds // 4))
                ]
                rows.append((f"simulated, {questions} questions, n = {n}, n_train = {ratio:g} n", runs))
    print("Simulated searches\n")
    table(rows)
    rows = []
    for name, n, ratio in (
        ("digits", 300, 3.0),
        ("digits", 600, 1.4),
        ("breast cancer", 300, 0.8),
        *((name, n, ratio) for name in GENERATED for n in (300, 2000) for ratio in (1.4, 0.5)),
    ):
        for questions in (20,) if quick else (20, 100):
            size = int(n * ratio)
            runs = [
                asked(real(name, n, size, questions, seed), n, size, questions) for seed in range(2 if quick else 8)
            ]
            rows.append((f"{name}, {questions} questions, n = {n}, n_train = {ratio:g} n", runs))
    print("\nReal searches (truths known for generated data)\n")
    table(rows)


if __name__ == "__main__":
    main()
