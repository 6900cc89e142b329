"""Loops and studies in worker processes that got the guard by pickling: they ask the process that has the holdout."""

import warnings
from typing import Any

import lightgbm
import numpy as np
import optuna
import pytest
import xgboost
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB

from tests.sizes import corners
from thresholdout import Claims, Thresholdout
from thresholdout.model_selection import GuardedObjective, GuardedStopping, LightGBMCallback, xgboost_callback

X, Y = load_breast_cancer(return_X_y=True)
VALID = np.arange(200, 300)


def make() -> Thresholdout:
    return Thresholdout((X[300:], Y[300:]), train=(X[:300], Y[:300]), queries=60, mechanism=Claims(holdout_answers=5))


def lightgbm_fit(guard: Thresholdout, patience: int) -> dict[str, Any]:
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=patience)
    params = {"objective": "binary", "verbose": -1, "num_threads": 1}
    lightgbm.train(params, lightgbm.Dataset(X[:200], Y[:200]), 50, callbacks=[LightGBMCallback(stopping)])
    return {"asked": stopping.asked, "values": {k: answer.value for k, answer in stopping.answers.items()}}


def xgboost_fit(guard: Thresholdout, patience: int) -> dict[str, Any]:
    stopping = GuardedStopping(guard, "accuracy", validation=VALID, patience=patience)
    params = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3}
    xgboost.train(params, xgboost.DMatrix(X[:200], Y[:200]), 50, callbacks=[xgboost_callback(stopping)])
    return {"asked": stopping.asked, "values": {k: answer.value for k, answer in stopping.answers.items()}}


def optuna_run(guard: Thresholdout, seed: int) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=seed))
    objective = GuardedObjective(guard, smoothed, cv="training")
    study.optimize(objective, n_trials=3)
    values = {trial.user_attrs["accuracy"]["query"]: trial.value for trial in study.trials}
    return {"asked": objective.asked, "values": values, "owner": study.user_attrs["guard"]}


def smoothed(trial: Any) -> GaussianNB:
    return GaussianNB(var_smoothing=trial.suggest_float("var_smoothing", 1e-9, 1e-3, log=True))


@pytest.mark.slow
@pytest.mark.parametrize("fit", corners([lightgbm_fit, xgboost_fit, optuna_run], 2))
def test_workers_are_charged_by_the_one_guard(fit: Any) -> None:
    guard = make()
    results = Parallel(n_jobs=2)(delayed(fit)(guard, number) for number in (3, 5, 8))
    history = guard.history
    assert sum(result["asked"] for result in results) == len(history) > 0
    told = {value for result in results for value in result["values"].values()}
    assert told == set(history["value"])  # rounds that several fits have are one query
    assert {result.get("owner", guard._id) for result in results} == {guard._id}


@pytest.mark.slow
def test_a_fit_elsewhere_gets_the_answers_it_would_get_here() -> None:
    away, here = make(), make()
    (result,) = Parallel(n_jobs=2)(delayed(xgboost_fit)(away, k) for k in (5,))
    assert xgboost_fit(here, 5)["values"].keys() == result["values"].keys()
    assert list(away.history["train"]) == pytest.approx(list(here.history["train"]))
