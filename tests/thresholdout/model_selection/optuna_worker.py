"""One worker of a study that several processes share: ``python optuna_worker.py STUDY LEDGER N_TRIALS POLICY``."""

import sys
import warnings
from typing import Any

import numpy as np
import optuna
from sklearn.base import BaseEstimator, ClassifierMixin

from thresholdout import Claims, Thresholdout
from thresholdout.model_selection import GuardedObjective

QUERIES, BUDGET = 36, 20


class Lookup(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Knows ``share`` of the training labels by heart and guesses the rest: it disagrees with any holdout."""

    def __init__(self, share: float = 0.0) -> None:
        self.share = share

    def fit(self, X: Any, y: Any) -> "Lookup":
        self.known_ = dict(zip(X[: int(self.share * len(X)), 0], y, strict=False))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.array([self.known_.get(x, int(x * 1e6) % 2) for x in X[:, 0]])


def make(ledger: Any = None, *, queries: int = QUERIES, budget: int = BUDGET, seed: int = 0) -> Thresholdout:
    """Return a guard on records whose labels are coin tosses."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((4000, 1)), rng.integers(0, 2, 4000)
    holdout, train = (X[2000:], y[2000:]), (X[:2000], y[:2000])
    return Thresholdout(holdout, train=train, queries=queries, mechanism=Claims(holdout_answers=budget), ledger=ledger)


def build(trial: Any) -> Lookup:
    """Suggest how much is learnt by heart."""
    return Lookup(trial.suggest_float("share", 0.0, 0.1))


def main(study_url: str, ledger: str, trials: str, policy: Any) -> None:
    """Work, and print what this worker was charged."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore")
    objective = GuardedObjective(make(ledger), build, exhausted=policy, cv="training")
    study = optuna.load_study(study_name="shared", storage=study_url)
    study.optimize(objective, n_trials=int(trials))
    print(objective.asked, objective.spent, objective.replaced, objective.exhausted)


if __name__ == "__main__":
    main(*sys.argv[1:])
