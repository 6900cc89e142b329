"""Langevin dynamics and federated averaging: measured gaps beside the certified ones, accuracy, and times.

Run with ``python -m benchmarks.federated``. The gaps are comparison table 5, which ``benchmarks.composition`` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import timed
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.plotting import GREY, axes, finish
from thresholdout.privacy.accounting.generalization_bounds import best_error
from thresholdout.privacy.learning import FederatedClassifier, run_federated, run_sgld
from thresholdout.privacy.learning.federated import FederatedRun
from thresholdout.privacy.learning.langevin import LangevinRun

Floats = NDArray[np.float64]

FAILURE, DELTA, SLACK = 0.01, 1e-6, 1e-6
LARGE = {"batch_size": 64, "sigma": 0.5, "T": 2000}


def logistic_gradients(theta: Floats, X: Floats, signs: Floats) -> Floats:
    """Return the gradients of the logistic loss of each record; of norm 1 at most, as the features are."""
    return np.asarray(-(signs / (1.0 + np.exp(np.minimum(signs * (X @ theta), 500.0))))[:, None] * X)


def local_steps(client: tuple[Floats, Floats], theta: Floats) -> Floats:
    """Return what two gradient steps on a client's own records add to the model."""
    X, signs = client
    model = theta
    for _ in range(2):
        model = model - 0.5 * logistic_gradients(model, X, signs).mean(axis=0)
    return model - theta


def wrong(theta: Floats, X: Floats, signs: Floats) -> Floats:
    """Return the 0-1 losses."""
    return np.asarray((X @ theta) * signs <= 0, dtype=float)


def ball(rng: np.random.Generator, n: int, d: int = 10) -> Floats:
    """Return features in the unit ball."""
    X = rng.normal(size=(n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True) * rng.uniform(0.5, 1.0, (n, 1)))


def generated(n: int, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return training and test records of a logistic model with noisy labels."""
    rng = np.random.default_rng(seed)
    X = ball(rng, n + 200_000)
    chance = 1.0 / (1.0 + np.exp(-8.0 * X @ np.sign(rng.normal(size=X.shape[1])) / np.sqrt(X.shape[1])))
    signs = np.where(rng.random(len(X)) < chance, 1.0, -1.0)
    return X[:n], signs[:n], X[n:], signs[n:]


def digits() -> tuple[Floats, Floats, Floats, Floats]:
    """Return training and test images, odd against even, scaled to norm 1 at most."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, signs = X[order] / 16 / 8, np.where(y[order] % 2, 1.0, -1.0)
    return X[:1437], signs[:1437], X[1437:], signs[1437:]


def averaged(run: LangevinRun | FederatedRun) -> Floats:
    """Return the mean of the second half of the iterates, which the guarantee covers as it covers all of them."""
    return np.asarray(run.trajectory[run.steps // 2 :].mean(axis=0))


def row(name: str, run: LangevinRun | FederatedRun, data: tuple[Floats, ...]) -> dict[str, Any]:
    """Return what is known and measured of a learner; a client's loss is the mean of its records' losses."""
    X, signs, X_test, signs_test = data
    theta = averaged(run)
    train, test = float(wrong(theta, X, signs).mean()), float(wrong(theta, X_test, signs_test).mean())
    composed = run.composition(DELTA, SLACK, method="optimal")
    report = run.privacy(composed.delta)
    error = best_error(composed.eps, composed.delta, run.population, FAILURE)
    assert report.event is not None
    certificate = generalization_certificate(report.event, run.population, confidence=1 - FAILURE)
    return {
        "learner": name,
        "N": run.population,
        "tau": run.batch_size,
        "T": run.steps,
        "sigma": run.sigma,
        "eps by composition": composed.eps,
        "eps by accountants": report.epsilon,
        "delta": composed.delta,
        "train error": train,
        "test error": test,
        "its standard error": np.sqrt(test * (1 - test) / len(X_test)),
        "gap": abs(train - test),
        "theorem 1": np.nan if error is None else error,
        "certificate": certificate.bound,
        "route": certificate.route,
        "on average": certificate.average,
    }


def langevin_row(name: str, data: tuple[Floats, ...], step: float, **options: Any) -> dict[str, Any]:
    X, signs, *_ = data
    run = run_sgld(
        logistic_gradients, X, signs, theta0=np.zeros(X.shape[1]), step_sizes=step, L=1.0, random_state=0, **options
    )
    return row(name, run, data)


def federated_row(name: str, data: tuple[Floats, ...], per_client: int, **options: Any) -> dict[str, Any]:
    """Return the row of a learner whose clients have equally many records; its gap is about new clients."""
    X, signs, *_ = data
    clients = [(X[i : i + per_client], signs[i : i + per_client]) for i in range(0, len(X), per_client)]
    run = run_federated(local_steps, clients, theta0=np.zeros(X.shape[1]), L=1.0, random_state=0, **options)
    return row(name, run, data)


def compare_learners() -> pd.DataFrame:
    """Return comparison table 5: the 0-1 gaps of private learners beside the bounds on them, failure 0.01.

    Returns
    -------
    DataFrame
        One row for each learner. "theorem 1" is `best_error` of the corrected route of [He], NaN where it says
        nothing; "certificate" the best route of `generalization_certificate`; "on average" bounds the expected gap.
    """
    rows = [
        langevin_row("Langevin, generated", generated(60_000, 1), 0.5, **LARGE),
        langevin_row("Langevin, generated", generated(10**6, 2), 0.5, batch_size=256, sigma=0.5, T=20_000),
        langevin_row("Langevin, digits", digits(), 2.0, batch_size=64, sigma=0.1, T=600),
        federated_row("federated, generated, 5 records each", generated(300_000, 3), 5, **LARGE),
        federated_row("federated, digits, 3 images each", digits(), 3, batch_size=32, sigma=0.1, T=300),
    ]
    return pd.DataFrame(rows)


def plot_learners(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw measured gaps and bounds of `compare_learners`.

    Parameters
    ----------
    table : DataFrame
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    places = np.arange(len(table))
    drawn = {
        "theorem 1": ("s", "bound: theorem 1, corrected"),
        "certificate": ("v", "bound: generalization_certificate"),
        "on average": ("D", "bound on the expected gap"),
        "gap": ("o", "measured gap of one run"),
    }
    for column, (marker, label) in drawn.items():
        ax.semilogx(table[column].fillna(1.0).clip(upper=1.0), places, marker, label=label)
    ax.axvline(1.0, color=GREY, linewidth=0.8)
    ax.set_yticks(places, [f"{name}\nN = {n:,}" for name, n in zip(table["learner"], table["N"], strict=True)])
    ax.invert_yaxis()
    return finish(ax, "difference of 0-1 losses on training data and on new data (bounds at 1 say nothing)", "")


def print_accuracy() -> None:
    """Print the classifier's accuracy on digits for clients of several sizes, beside a model without privacy."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / 16, y[order]
    peer = LogisticRegression(max_iter=1000).fit(X[:1437], y[:1437]).score(X[1437:], y[1437:])
    print(f"Digits, 1,437 training images; scikit-learn's LogisticRegression without privacy: {peer:.3f}\n")
    print(
        "| images of a client | clients | epsilon 0.5 | 1 | 2 | 4 | 8 | no noise |\n|---|---|---|---|---|---|---|---|"
    )
    for per_client in (1, 3, 10):
        groups, cells = np.arange(1437) // per_client, []
        for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0, None):
            noise: dict[str, Any] = {"noise_multiplier": 0} if epsilon is None else {"epsilon": epsilon}
            found = [
                FederatedClassifier(classes=range(10), random_state=seed, **noise)
                .fit(X[:1437], y[:1437], groups)
                .score(X[1437:], y[1437:])
                for seed in range(3)
            ]
            cells.append(f"{np.mean(found):.3f}")
        print(f"| {per_client} | {groups.max() + 1} | {' | '.join(cells)} |")
    print()


def plain_descent(X: Floats, signs: Floats, T: int, size: int) -> Floats:
    """Run minibatch gradient descent without clipping, noise or an account."""
    rng, theta = np.random.default_rng(0), np.zeros(X.shape[1])
    for _ in range(T):
        drawn = rng.choice(len(X), size, replace=False)
        theta = theta - 0.5 * logistic_gradients(theta, X[drawn], signs[drawn]).mean(axis=0)
    return theta


def print_times() -> None:
    """Print what private steps take, beside plain ones."""
    X, signs, _, _ = generated(60_000, 1)
    print("| 2,000 steps, 60,000 records, 10 features, minibatches of | private, s | plain numpy, s | ratio |")
    print("|---|---|---|---|")
    start = np.zeros(X.shape[1])
    for size in (64, 1024):
        options: dict[str, Any] = {"step_sizes": 0.5, "T": 2000, "batch_size": size, "sigma": 0.5, "L": 1.0}
        ours = timed(lambda: run_sgld(logistic_gradients, X, signs, theta0=start, random_state=0, **options), 2)[1]  # noqa: B023
        plain = timed(lambda: plain_descent(X, signs, 2000, size), 2)[1]  # noqa: B023
        print(f"| {size:,} | {ours:.3f} | {plain:.3f} | {ours / plain:.2f} |")
    print("\n| FederatedClassifier, 50 rounds of 5 local steps | s |\n|---|---|")
    for clients, each in ((100_000, 1), (10_000, 10), (100, 1000)):
        groups = np.repeat(np.arange(clients), each)
        X, signs, _, _ = generated(groups.size, 4)
        model = FederatedClassifier(noise_multiplier=50.0, random_state=0)
        took = timed(lambda: model.fit(X, signs, groups), 2)[1]  # noqa: B023
        print(f"| {clients:,} clients of {each:,} records, 10 features | {took:.2f} |")
    print()


def print_learners(directory: str | None = None) -> None:
    """Print comparison table 5, and draw it if asked to."""
    table = compare_learners()
    shown = table.set_index("learner").T.to_string(float_format=lambda x: f"{x:.4g}")
    print(f"Gaps of private learners (table 5), failure {FAILURE}:\n\n```\n{shown}\n```\n")
    if directory is not None:
        plot_learners(table).figure.savefig(Path(directory) / "learners.png", dpi=150)


def main(_: Sequence[str] = ()) -> None:
    """Print accuracy and times; the gaps are among the tables of ``benchmarks.composition``."""
    print_accuracy()
    print_times()


if __name__ == "__main__":
    main(sys.argv[1:])
