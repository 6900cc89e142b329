"""What a hook costs: beside the evaluation of a candidate, which takes 50 ms or more, and beside plain training."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.datasets import make_classification

from thresholdout import Thresholdout
from thresholdout.integrations import GuardedCandidates, GuardedModels, guard_of_examples
from thresholdout.model_selection import GuardedStopping, LightGBMCallback, xgboost_callback

EVALUATION = 50.0
"""Milliseconds."""

TRAIN, HOLDOUT, CANDIDATES, RUNS = 200, 2000, 200, 5

ROUNDS = 800
"""Of boosting, none of which is stopped early."""


def taken(run: Callable[[], None]) -> float:
    """Return the processor's time of one candidate among all, in milliseconds; evaluations take none here."""
    start = time.process_time()
    run()
    return 1e3 * (time.process_time() - start) / CANDIDATES


def row(name: str, runs: list[float]) -> None:
    """Print the median of runs."""
    found = statistics.median(runs)
    print(f"| {name} | {found:.2f} ms | {100 * found / EVALUATION:.2f} % |")


def boosting() -> dict[str, list[float]]:
    """Return the processor's time of a fit with early stopping by a guard, as a multiple of the plain fit's."""
    X, y = make_classification(6000, 20, random_state=0)
    train, validation, holdout = slice(0, 2000), np.arange(2000, 3000), slice(3000, None)
    settings: dict[str, Any] = {"learning_rate": 0.02, "n_estimators": ROUNDS, "n_jobs": 1, "max_depth": 3}
    ratios: dict[str, list[float]] = {}
    for _ in range(RUNS):
        for name, model in (
            ("LightGBM", lightgbm.LGBMClassifier(**settings, verbose=-1)),
            ("XGBoost", xgboost.XGBClassifier(**settings)),
        ):
            guard = Thresholdout((X[holdout], y[holdout]), train=(X[:3000], y[:3000]))
            stopping = GuardedStopping(guard, "log_loss", validation=validation, patience=ROUNDS)
            times = [time.process_time()]
            model.fit(X[train], y[train])
            times.append(time.process_time())
            if name == "LightGBM":
                model.fit(X[train], y[train], callbacks=[LightGBMCallback(stopping)])
            else:
                model.set_params(callbacks=[xgboost_callback(stopping)]).fit(X[train], y[train])
            times.append(time.process_time())
            ratios.setdefault(name, []).append((times[2] - times[1]) / (times[1] - times[0]))
    return ratios


def main() -> None:
    rng = np.random.default_rng(0)
    rates = np.linspace(0.6, 0.9, CANDIDATES) + rng.normal(0, 0.05, CANDIDATES)
    values: dict[str, dict[str, Any]] = {
        f"candidate {k}": {"train": rng.random(TRAIN) < rate, "holdout": rng.random(HOLDOUT) < rate}
        for k, rate in enumerate(rates)
    }
    examples = list(range(TRAIN)), list(range(TRAIN, TRAIN + HOLDOUT))
    X, y = np.arange(TRAIN + HOLDOUT, dtype=float)[:, None], np.arange(TRAIN + HOLDOUT) % 2
    predictions = [(y[:TRAIN] ^ ~found["train"], y[TRAIN:] ^ ~found["holdout"]) for found in values.values()]

    def evaluate(name: Any, part: str) -> Any:
        return values[name][part]

    def texts(candidates: GuardedCandidates) -> None:
        for name in values:
            candidates.propose(name)

    def outputs(models: GuardedModels) -> None:
        for train, holdout in predictions:
            models.propose_outputs(train, holdout)

    measured: dict[str, list[float]] = {}
    for run in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            for where, ledger in (("memory", None), ("SQLite", Path(folder, "guard.db"))):
                guard = guard_of_examples(*examples, ledger=ledger, sampling="iid")
                candidates = GuardedCandidates(guard, evaluate)
                for what in ("texts", "the same again"):
                    measured.setdefault(f"{what}, {where}", []).append(taken(partial(texts, candidates)))
        models = GuardedModels(Thresholdout((X[TRAIN:], y[TRAIN:]), train=(X[:TRAIN], y[:TRAIN])))
        measured.setdefault("predictions, memory", []).append(taken(partial(outputs, models)))
        print(f"run {run + 1} of {RUNS}", flush=True)
    print(f"{TRAIN} and {HOLDOUT} examples, {CANDIDATES} candidates, median of {RUNS} runs\n")
    print(f"| candidates, ledger | each | of an evaluation of {EVALUATION:g} ms |\n|---|---|---|")
    for name, runs in measured.items():
        row(name, runs)
    print(f"\n{ROUNDS} rounds of boosting, 2,000 records for fitting and 1,000 for validation\n")
    print("| library | with a guard / plain fit |\n|---|---|")
    for name, runs in boosting().items():
        print(f"| {name} | {statistics.median(runs):.1f} |")


if __name__ == "__main__":
    main()
