"""Which defaults of private learners measure best, and above which share of noise a fit is worth nothing.

Run with ``python -m benchmarks.private_learners defaults`` or ``python -m benchmarks.private_learners worth``; some
minutes each. The second prints each learner's share of noise beside its score, from which the limits of its
`LowSignalWarning` were read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_friedman1

from thresholdout.privacy.learning import DPSGDClassifier, DPSGDRegressor, EPLinearRegression
from thresholdout.privacy.learning.privacy_report import noise_share

SEEDS = 4

Floats = NDArray[np.float64]


def digits() -> tuple[Floats, NDArray[Any]]:
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def friedman() -> tuple[Floats, Floats]:
    X, y = make_friedman1(12_000, 8, noise=1, random_state=0)
    return X * 2 - 1, (y - 15) / 15


def split(n: int, records: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(records)
    return order[:n], order[n:][:2000]


def mean_score(make: Any, X: Floats, y: Any, n: int) -> tuple[float, Any]:
    scores = []
    for seed in range(SEEDS):
        train, test = split(n, len(X), seed)
        model = make(seed).fit(X[train], y[train])
        scores.append(model.score(X[test], y[test]))
    return float(np.mean(scores)), model


def share(model: Any, rate: float) -> float:
    steps = np.ones(model.n_steps_)
    parameters = sum(part.size for part in (*model.coefs_, *model.intercepts_))
    return noise_share(model.noise_multiplier_ * steps, rate * steps, model.batch_size_, parameters)


def defaults() -> None:
    X, y = digits()
    print("digits, 1,000 records: accuracy\nbatch  steps  rate  average  epsilon 1, 3, 8")
    for batch, steps, rate, average in ((250, 80, 0.5, False), (1000, 30, 4.0, "half"), (1000, 60, 2.0, "half")):
        row = []
        for epsilon in (1.0, 3.0, 8.0):
            named: dict[str, Any] = {"batch_size": batch, "n_steps": steps, "learning_rate": rate, "average": average}
            named |= {"epsilon": epsilon, "classes": range(10)}
            row.append(mean_score(lambda seed, k=named: DPSGDClassifier(**k, random_state=seed), X, y, 1000)[0])
        print(f"{batch:5d}  {steps:5d}  {rate:4g}  {average!s:>7}  {', '.join(f'{each:.3f}' for each in row)}")


def worth() -> None:
    (X, y), (rows, targets) = digits(), friedman()
    print("learner  records  epsilon  noise  score")
    for n in (200, 400, 800, 1400):
        for epsilon in (0.5, 1.0, 3.0):
            found, model = mean_score(
                lambda seed, e=epsilon: DPSGDClassifier(epsilon=e, classes=range(10), random_state=seed), X, y, n
            )
            print(f"digits by DP-SGD  {n:6d}  {epsilon:g}  {share(model, 2.0):.3f}  {found:.3f}")
            found, model = mean_score(
                lambda seed, e=epsilon: DPSGDRegressor(epsilon=e, random_state=seed), rows, targets, n
            )
            print(f"Friedman by DP-SGD  {n:6d}  {epsilon:g}  {share(model, 0.25):.3f}  {found:.3f}")
    for n in (500, 1000, 5000):
        for d in (2, 5, 20):
            rng = np.random.default_rng(0)
            X = rng.uniform(-1, 1, (n, d))
            y = X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(0, 0.3, n)
            model = EPLinearRegression(
                algorithm="dp-sep", clip_norm=3.0, noise_var=0.1, epsilon=1.0, n_epochs=3, random_state=0
            ).fit(X, y)
            print(f"{d} weights by EP  {n:6d}  1  signal {model.signal_to_noise_:.2f}  {model.score(X, y):.3g}")
