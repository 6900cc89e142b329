"""
An Optuna study that goes on in a second session
================================================

The study's values are a guard's answers; study and guard live in files, and go on in a second session.

Every trial is one query. The study keeps each answer's half-width, and stops by itself when the guard is exhausted.
Several workers can share both files: start the script's `session` in as many processes as you like. The guard guesses
and checks without noise, so every run has the same output.

Run with ``python examples/optuna_study.py``.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import optuna
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

from thresholdout import Claims, Thresholdout
from thresholdout.errors import GuardExhaustedWarning
from thresholdout.model_selection import GuardedObjective


def build(trial: optuna.Trial) -> ExtraTreesClassifier:
    """Suggest a forest."""
    return ExtraTreesClassifier(
        n_estimators=20,
        max_depth=trial.suggest_int("max_depth", 2, 12),
        max_features=trial.suggest_float("max_features", 0.05, 0.5),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 5),
        random_state=0,
    )


def session(folder: Path, trials: int) -> optuna.Study:
    """Work on the study for a while, as any worker does, and print the numbers of queries."""
    X_train, X_holdout, y_train, y_holdout = train_test_split(
        *load_digits(return_X_y=True), test_size=0.5, random_state=0
    )
    guard = Thresholdout(
        (X_holdout, y_holdout),
        train=(X_train, y_train),
        queries=30,
        mechanism=Claims(holdout_answers=2, noise=0.0),
        ledger=folder / "guard.db",
    )
    objective = GuardedObjective(guard, build, "accuracy")
    study = optuna.create_study(
        study_name="forests",
        storage=f"sqlite:///{folder / 'study.db'}",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=len(guard.history)),
        load_if_exists=True,
    )
    study.optimize(objective, n_trials=trials)
    print(f"session: {objective.summary()}; exhausted: {guard.status.exhausted}")
    return study


def main() -> None:
    """Search in two sessions; the second would like more trials than the guard has answers."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", GuardExhaustedWarning)  # the sessions say it themselves
    with tempfile.TemporaryDirectory() as folder:
        session(Path(folder), trials=6)
        study = session(Path(folder), trials=50)
    best = study.best_trial
    worth = best.user_attrs["accuracy"]
    print(f"study: {len(study.trials)} trials, guard {study.user_attrs['guard_state']}")
    print(f"best trial {best.number}: " + ", ".join(f"{name} {value:.3g}" for name, value in best.params.items()))
    print(f"accuracy {worth['value']:.3f} ± {worth['half_width']:.3f} from {worth['source']}, query {worth['query']}")


if __name__ == "__main__":
    main()
