import copy
import pickle
import traceback
import warnings

import joblib
import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from thresholdout import BudgetExhausted, Thresholdout
from thresholdout.errors import InputError, SharingError

X, Y = load_digits(return_X_y=True)
TRAIN, HOLDOUT = (X[:900], Y[:900]), (X[900:], Y[900:])
DEPTHS = {"max_depth": [1, 3, 5]}


def make(**changes: object) -> Thresholdout:
    settings: dict[str, object] = {"queries": 40, "budget": 4, "mechanism": "thresholdout", **changes}
    return Thresholdout(HOLDOUT, train=TRAIN, **settings)  # type: ignore[arg-type]


def tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=0)


def test_grid_search_asks_once_per_candidate_and_fits_on_training_records_only() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer("accuracy"), cv=guard.split()).fit(*TRAIN)
    assert len(guard.history) == 3
    assert list(search.cv_results_["mean_test_score"]) == list(guard.history["value"])
    assert search.best_params_ == {"max_depth": 5}
    expected = DecisionTreeClassifier(max_depth=5, random_state=0).fit(*TRAIN)
    assert np.array_equal(search.best_estimator_.predict(X), expected.predict(X))


def test_answers_are_the_scores_within_their_half_widths() -> None:
    guard = make()
    GridSearchCV(tree(), DEPTHS, scoring=guard.scorer("accuracy"), cv=guard.split()).fit(*TRAIN)
    for depth, value, half in zip(
        DEPTHS["max_depth"], guard.history["value"], guard.history["half_width"], strict=True
    ):
        model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(*TRAIN)
        assert abs(model.score(*HOLDOUT) - value) <= half


def test_train_scores_are_free() -> None:
    guard = make()
    search = GridSearchCV(
        tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split(), return_train_score=True, refit=False
    ).fit(*TRAIN)
    assert len(guard.history) == 3
    expected = [DecisionTreeClassifier(max_depth=d, random_state=0).fit(*TRAIN).score(*TRAIN) for d in (1, 3, 5)]
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(expected)


def test_randomized_search_and_cross_validation() -> None:
    guard = make()
    RandomizedSearchCV(
        LogisticRegression(max_iter=50, tol=0.1),
        {"C": loguniform(1e-3, 1e1)},
        n_iter=4,
        scoring=guard.scorer("accuracy"),
        cv=guard.split(),
        random_state=0,
    ).fit(*TRAIN)
    assert len(guard.history) == 4
    scores = cross_val_score(GaussianNB(), *TRAIN, scoring=guard.scorer("zero_one_loss"), cv=guard.split())
    assert scores.shape == (1,)
    assert scores[0] == -guard.history["value"].iloc[-1] <= 0  # losses are negated
    result = cross_validate(GaussianNB(), *TRAIN, scoring={"a": guard.scorer()}, cv=guard.split())
    assert result["test_a"][0] == guard.history["value"].iloc[-1]
    assert len(guard.history) == 6


def test_a_cloned_search_spends_the_same_budget() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split())
    clone(search).fit(*TRAIN)
    copy.deepcopy(search).fit(*TRAIN)
    assert len(guard.history) == 6


def test_threads_share_the_budget() -> None:
    guard = make()
    with joblib.parallel_config(backend="threading"):
        GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split(), n_jobs=2).fit(*TRAIN)
    assert list(guard.history["query"]) == [1, 2, 3]


def test_processes_are_refused_with_what_to_do() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split(), n_jobs=2)
    with pytest.raises(pickle.PicklingError) as caught, joblib.parallel_config(backend="loky"):
        search.fit(*TRAIN)
    shown = "".join(traceback.format_exception(caught.value))
    assert "SharingError: a guard's scorer cannot be sent to another process" in shown
    assert "Search with n_jobs=1, or in threads" in shown
    with pytest.raises(SharingError, match=r"n_jobs=1.*threading"):
        pickle.dumps(guard.scorer())
    assert guard.history.empty


def test_exhaustion_stops_a_search_that_raises() -> None:
    guard = make(queries=2)
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split(), error_score="raise")
    with pytest.raises(BudgetExhausted):
        search.fit(*TRAIN)
    assert len(guard.history) == 2


def test_exhaustion_is_a_visible_nan_otherwise() -> None:
    guard = make(queries=2)
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(*TRAIN)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, False, True]
    assert any("all 2 questions of this guard are used" in str(w.message) for w in caught)


def test_other_records_are_refused() -> None:
    guard = make()
    model = tree().fit(*TRAIN)
    with pytest.raises(InputError, match=r"cv=guard.split\(\)"):
        guard.scorer()(model, X[:50], Y[:50])
    with pytest.raises(InputError, match="the guard's training part, 900 records"):
        GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split()).fit(X[:800], Y[:800])
    assert guard.history.empty


def test_cross_validated_scorer() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer("accuracy", cv=3), cv=guard.split()).fit(*TRAIN)
    expected = [cross_val_score(clone(tree()).set_params(max_depth=d), *TRAIN, cv=3).mean() for d in (1, 3, 5)]
    assert list(guard.history["train"]) == pytest.approx(expected)
    assert search.best_params_ == {"max_depth": 5}


def test_representations() -> None:
    guard = make()
    assert repr(guard.scorer()) == "GuardScorer(accuracy)"
    assert repr(guard.split()) == "TrainSplit(900)"
    assert guard.split().get_n_splits() == 1


def test_the_scorer_knows_the_training_part_by_its_content() -> None:
    guard = Thresholdout(
        (X[898:], Y[898:]),
        train=(X[:899], Y[:899]),
        queries=40,
        budget=4,
        mechanism="thresholdout",
        allow_equal_rows=True,
    )
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(), cv=guard.split()).fit(X[:899], Y[:899])
    asked = len(guard.history)
    assert search.score(X[:899], Y[:899]) == search.best_estimator_.score(X[:899], Y[:899])
    for rows in (X[898:], X[:1], X[:2], X[1:900]):
        with pytest.raises(InputError, match="not the training part"):
            search.score(rows, Y[: len(rows)])
    assert len(guard.history) == asked
