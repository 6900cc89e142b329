"""Every search of scikit-learn, with every backend of joblib: what is asked, and what it is worth."""

import copy
import io
import pickle
import warnings
from collections import Counter
from typing import Any

import joblib
import numpy as np
import pytest
from scipy.stats import randint
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.model_selection.digits import (
    BACKENDS,
    DEPTHS,
    TRAIN,
    X,
    Y,
    holdout_scores,
    make,
    train_scores,
    tree,
)
from thresholdout import SparseVector
from thresholdout.errors import InputError
from thresholdout.model_selection import count_queries

BY_BACKEND = pytest.mark.parametrize(
    ("backend", "n_jobs"), corners(BACKENDS, 0, 3), ids=[f"{b}-{n}" for b, n in BACKENDS]
)


@pytest.mark.slow
@BY_BACKEND
def test_grid_search(backend: str, n_jobs: int) -> None:
    guard = make()
    with joblib.parallel_config(backend):
        search = GridSearchCV(
            tree(),
            DEPTHS,
            scoring=guard.scorer(cv="training"),
            cv=guard.split(),
            n_jobs=n_jobs,
            return_train_score=True,
        ).fit(*TRAIN)
    history = guard.history
    assert list(history["query"]) == [1, 2, 3]
    assert sorted(history["train"]) == pytest.approx(train_scores([1, 3, 5]))
    by_train = dict(zip(history["train"], history["value"], strict=True))
    assert [by_train[train] for train in search.cv_results_["mean_train_score"]] == list(
        search.cv_results_["mean_test_score"]
    )
    assert search.best_params_ == {"max_depth": 5}
    assert np.array_equal(search.best_estimator_.predict(X), tree(max_depth=5).fit(*TRAIN).predict(X))


@pytest.mark.slow
@BY_BACKEND
def test_randomized_search(backend: str, n_jobs: int) -> None:
    guard = make()
    with joblib.parallel_config(backend):
        search = RandomizedSearchCV(
            tree(),
            {"max_depth": randint(1, 9)},
            n_iter=4,
            random_state=3,
            scoring=guard.scorer("zero_one_loss", cv="training"),
            cv=guard.split(),
            n_jobs=n_jobs,
            refit=False,
        ).fit(*TRAIN)
    depths = [int(candidate["max_depth"]) for candidate in search.cv_results_["params"]]
    assert sorted(guard.history["train"]) == pytest.approx(sorted(1.0 - np.array(train_scores(depths))))
    assert sorted(search.cv_results_["mean_test_score"]) == sorted(-guard.history["value"])


@pytest.mark.slow
@BY_BACKEND
def test_cross_validation(backend: str, n_jobs: int) -> None:
    guard = make()
    scoring = {"hits": guard.scorer(cv="training"), "loss": guard.scorer("brier_score", cv="training")}
    with joblib.parallel_config(backend):
        result = cross_validate(
            tree(max_depth=3), *TRAIN, scoring=scoring, cv=guard.split(), n_jobs=n_jobs, return_train_score=True
        )
        scores = cross_val_score(
            tree(max_depth=2), *TRAIN, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs
        )
        again = cross_val_score(
            tree(max_depth=2), *TRAIN, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs
        )
    assert [result["test_hits"][0], -result["test_loss"][0], scores[0]] == list(guard.history["value"])
    assert again[0] == scores[0]
    assert result["train_hits"] == pytest.approx(train_scores([3]))
    assert abs(scores[0] - holdout_scores([2])[0]) <= guard.history["half_width"].iloc[-1]


@pytest.mark.slow
@BY_BACKEND
@pytest.mark.parametrize("kind", corners(["grid", "random"], 0))
def test_halving_searches_score_every_candidate_on_the_whole_holdout(backend: str, n_jobs: int, kind: str) -> None:
    guard = make()
    shared: dict[str, Any] = {
        "scoring": guard.scorer(cv="training"), "cv": guard.split(), "random_state": 1, "n_jobs": n_jobs,
        "error_score": "raise", "min_resources": 100,
    }  # fmt: skip
    if kind == "grid":
        search = HalvingGridSearchCV(tree(), {"max_depth": [1, 2, 3, 4, 5, 6]}, **shared)
    else:
        search = HalvingRandomSearchCV(tree(), {"max_depth": randint(1, 1000)}, n_candidates=6, **shared)
    counted = count_queries(guard, search)
    with joblib.parallel_config(backend):
        search.fit(*TRAIN)
    assert search.n_candidates_ == [6, 2]
    assert counted == len(guard.history) == 8
    assert sorted(search.cv_results_["mean_test_score"]) == sorted(guard.history["value"])
    # The training value of the query is on all training records, the search's own on those that it fitted to.
    assert (search.cv_results_["mean_train_score"][:6] >= sorted(guard.history["train"])[0]).all()
    assert search.best_score_ in set(guard.history["value"])


def test_a_halving_search_that_cuts_the_placeholder_away_is_told_what_would_do() -> None:
    guard = make()
    settings: dict[str, Any] = {
        "scoring": guard.scorer(cv="training"), "cv": guard.split(), "random_state": 1, "error_score": "raise",
        "factor": 2,
    }  # fmt: skip
    few = HalvingGridSearchCV(tree(), DEPTHS, min_resources=1, max_resources=4, **settings)
    with pytest.raises(InputError, match="min_resources=3 or more"):
        few.fit(*TRAIN)
    assert guard.history.empty
    HalvingGridSearchCV(tree(), DEPTHS, min_resources=3, max_resources=9, **settings).fit(*TRAIN)
    assert len(guard.history) == 5


@pytest.mark.slow
@BY_BACKEND
def test_nested_with_the_guard_outside(backend: str, n_jobs: int) -> None:
    guard = make()
    inner = GridSearchCV(tree(), DEPTHS, cv=3)
    with joblib.parallel_config(backend):
        result = cross_validate(inner, *TRAIN, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs)
    assert list(guard.history["value"]) == list(result["test_score"])
    best = clone(inner).fit(*TRAIN).best_params_["max_depth"]
    assert list(guard.history["train"]) == pytest.approx(train_scores([best]))


@pytest.mark.slow
@BY_BACKEND
def test_nested_with_the_guard_inside(backend: str, n_jobs: int) -> None:
    guard = make()
    inner = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split())
    with joblib.parallel_config(backend):
        scores = cross_val_score(inner, *TRAIN, cv=KFold(2), n_jobs=n_jobs, error_score="raise")
    assert len(guard.history) == 6
    asked = []
    for train, test in KFold(2).split(TRAIN[0]):
        fitted = [tree(max_depth=d).fit(X[train], Y[train]) for d in (1, 3, 5)]
        asked += [model.score(*TRAIN) for model in fitted]
        assert fitted[2].score(X[test], Y[test]) == pytest.approx(scores[int(test[0] > 0)])
    assert sorted(guard.history["train"]) == pytest.approx(sorted(asked))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:a query cannot be identified by its content")
@BY_BACKEND
def test_nested_with_the_guard_on_both_sides(backend: str, n_jobs: int) -> None:
    guard = make()
    inner = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split())
    outer = GridSearchCV(inner, {"refit": [True]}, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs)
    counted = count_queries(guard, outer)
    with joblib.parallel_config(backend):
        outer.fit(*TRAIN)
    assert counted == 3 + 1 + 3  # the candidate's search, its score, and the refit
    assert len(guard.history) == 3 + 1  # the refit makes the same models again
    assert set(outer.cv_results_["mean_test_score"]) <= set(guard.history["value"])


@pytest.mark.slow
@BY_BACKEND
def test_charges_are_exact_in_any_order(backend: str, n_jobs: int) -> None:
    """A tree that overfits is answered from the holdout, and charged; a shallow one is not: which is certain here."""
    guard = make(mechanism=SparseVector(0.1, 0.001, budget=20), queries=40, random_state=0)
    depths = [1, 1, 12, 12, 12, 1]
    with joblib.parallel_config(backend):
        GridSearchCV(
            tree(),
            [{"max_depth": [d], "min_impurity_decrease": [k * 1e-12]} for k, d in enumerate(depths)],
            scoring=guard.scorer(cv="training"),
            cv=guard.split(),
            n_jobs=n_jobs,
            refit=False,
        ).fit(*TRAIN)
    gaps = np.subtract(train_scores(depths), holdout_scores(depths))
    assert (np.abs(gaps[:2]) < 0.05).all()
    assert (gaps[2:5] > 0.15).all()
    assert Counter(guard.history["source"]) == {"train": 3, "holdout": 3}
    assert guard.status.answers_left == 17


def test_refit_may_be_a_function_or_left_out() -> None:
    def cheapest(results: Any) -> int:
        good = results["mean_test_score"] > 0.3
        return int(np.flatnonzero(good)[0])

    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split(), refit=cheapest).fit(
        *TRAIN
    )
    assert search.best_params_ == {"max_depth": 3}
    assert not hasattr(search, "best_score_")
    left_out = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split(), refit=False).fit(
        *TRAIN
    )
    assert not hasattr(left_out, "best_estimator_")
    assert len(guard.history) == 3  # the same three models


def copied(search: Any, how: str) -> Any:
    if how == "joblib":
        stream = io.BytesIO()
        joblib.dump(search, stream)
        stream.seek(0)
        return joblib.load(stream)
    return {"clone": clone, "deepcopy": copy.deepcopy, "pickle": lambda s: pickle.loads(pickle.dumps(s))}[how](search)


@pytest.mark.slow
@for_each("how", ["clone", "deepcopy", "pickle", "joblib"])
def test_copies_of_a_search_spend_the_same_budget(how: str) -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split())
    before = copied(search, how).fit(*TRAIN)
    assert before.scoring is search.scoring
    after = copied(before, how)
    assert after.scoring is search.scoring
    if how != "clone":
        assert after.best_score_ == before.best_score_
    after.fit(*TRAIN)
    assert len(guard.history) == 3 == search.scoring.asked  # the same models


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", corners([1, 2], 0))
@for_each("error_score", [np.nan, 0.0, "raise"])
def test_candidates_that_fail_are_not_charged(error_score: Any, n_jobs: int) -> None:
    guard = make()
    search = GridSearchCV(
        tree(),
        {"max_depth": [3, -1]},
        scoring=guard.scorer(cv="training"),
        cv=guard.split(),
        error_score=error_score,
        n_jobs=n_jobs,
        refit=False,
    )
    if error_score == "raise":
        with pytest.raises(ValueError, match="max_depth"):
            search.fit(*TRAIN)
        assert len(guard.history) <= 1
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says that a fit failed
        search.fit(*TRAIN)
    assert len(guard.history) == 1
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(error_score, nan_ok=True)
