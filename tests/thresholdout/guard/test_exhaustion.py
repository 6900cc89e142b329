"""What happens when a guard answers no more, in every backend; nothing may hang, nothing may be lost."""

import inspect
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

import joblib
import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.model_selection.digits import BACKENDS, TRAIN, X, make, train_scores, tree
from thresholdout import BudgetExhausted, SparseVector, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, SearchExhausted
from thresholdout.guard.exhaustion import POLICIES, Exhausted, check_exhausted, warn_exhausted
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.scorer import GuardScorer
from thresholdout.model_selection import (
    GuardedObjective,
    GuardedSearchCV,
    GuardedStopping,
    LightGBMEval,
    count_queries,
)

BY_BACKEND = pytest.mark.parametrize(
    ("backend", "n_jobs"), corners(BACKENDS, 0, 3), ids=[f"{b}-{n}" for b, n in BACKENDS]
)
DEPTHS = [1, 2, 3, 4, 5, 6]


@contextmanager
def quiet() -> Iterator[list[Any]]:
    """Record warnings of a search, among them those of scikit-learn about NaN."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def searched(guard: Any, policy: Exhausted, backend: str, n_jobs: int) -> tuple[Any, Any, list[str]]:
    scorer = guard.scorer(exhausted=policy, cv="training")
    search = GridSearchCV(tree(), {"max_depth": DEPTHS}, scoring=scorer, cv=guard.split(), n_jobs=n_jobs)
    with joblib.parallel_config(backend), quiet() as caught:
        search.fit(*TRAIN)
    return scorer, search, [str(w.message) for w in caught if w.category is GuardExhaustedWarning]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "n_jobs"), corners(BACKENDS, 0, 3), ids=[f"{b}-{n}" for b, n in BACKENDS])
def test_raise_ends_the_search(backend: str, n_jobs: int) -> None:
    guard = make(queries=2)
    scorer = guard.scorer(exhausted="raise", cv="training")
    search = GridSearchCV(tree(), {"max_depth": DEPTHS}, scoring=scorer, cv=guard.split(), n_jobs=n_jobs)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            with joblib.parallel_config(backend):
                search.fit(*TRAIN)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    (error,) = ended
    assert isinstance(error, SearchExhausted)
    assert not isinstance(error, Exception)
    assert (error.what, error.limit) == ("queries", 2)
    assert isinstance(error.reason, BudgetExhausted)
    assert "choose exhausted='nan' or 'train', or 'stop'" in str(error)
    assert not hasattr(search, "cv_results_")
    assert (len(guard.history), scorer.asked, scorer.replaced, scorer.exhausted) == (2, 2, 0, "queries")
    if n_jobs == 1:
        assert isinstance(error.__cause__, BudgetExhausted)


@pytest.mark.slow
@BY_BACKEND
@pytest.mark.parametrize("policy", corners(["nan", "stop"], 0))
def test_nan_stands_in(backend: str, n_jobs: int, policy: Exhausted) -> None:
    guard = make(queries=4)
    scorer, search, messages = searched(guard, policy, backend, n_jobs)
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores).sum() == 2
    assert sorted(scores[~np.isnan(scores)]) == sorted(guard.history["value"])
    assert (scorer.asked, scorer.replaced, scorer.exhausted) == (4, 2, "queries")
    assert len(messages) == 1
    assert messages[0].startswith("All 4 queries of this guard are used")


@pytest.mark.slow
@BY_BACKEND
def test_training_values_stand_in(backend: str, n_jobs: int) -> None:
    guard = make(queries=4)
    scorer, search, messages = searched(guard, "train", backend, n_jobs)
    scores, trained = search.cv_results_["mean_test_score"], train_scores(DEPTHS)
    answered = list(guard.history["value"])
    replaced = [k for k, score in enumerate(scores) if score not in answered]
    answered_depths = [k for k in range(6) if any(np.isclose(trained[k], guard.history["train"]))]
    assert scores == pytest.approx([scores[k] if k in answered_depths else trained[k] for k in range(6)], abs=1e-12)
    assert set(replaced) <= set(range(6)) - set(answered_depths)
    assert (len(answered_depths), scorer.asked, scorer.replaced) == (4, 4, 2)
    assert "training values, which have no guarantee, replace answers" in messages[0]
    assert len(messages) == 1


def test_the_budget_runs_out_as_the_queries_do() -> None:
    guard = make(mechanism=SparseVector(0.02, 0.001, budget=1))
    scorer, search, _ = searched(guard, "nan", "loky", 1)
    assert scorer.exhausted == "budget" == guard.status.exhausted
    assert list(guard.history["source"])[-1] == "holdout"
    assert np.isnan(search.cv_results_["mean_test_score"][len(guard.history) :]).all()


class Counting(type(tree())):  # type: ignore[misc]
    """A tree that counts the records that it predicts."""

    predicted = 0

    def predict(self, X: Any) -> Any:
        type(self).predicted += len(X)
        return super().predict(X)


@pytest.mark.slow
@for_each("policy", ["nan", "stop"])
def test_after_the_first_refusal_no_more_is_predicted_than_shows_whether_a_query_is_known(policy: Exhausted) -> None:
    guard = make(queries=1)
    scorer = guard.scorer(exhausted=policy, cv="training")
    first, second, third = (Counting(max_depth=depth).fit(*TRAIN) for depth in (2, 3, 4))
    placeholder = np.repeat(X[:1], 3, axis=0)
    scorer(first, placeholder)
    with pytest.warns(GuardExhaustedWarning):
        assert np.isnan(scorer(second, placeholder))
    Counting.predicted = 0
    assert np.isnan(scorer(third, placeholder))
    assert Counting.predicted <= 200 < len(TRAIN[0])
    assert (scorer.asked, scorer.replaced) == (1, 2)


def test_stand_ins_have_the_signs_weights_and_folds_of_the_query() -> None:
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 900), np.ones(897)
    guard = make(queries=1)
    scorers = {
        "loss": guard.scorer("zero_one_loss", exhausted="train", cv="training"),
        "weighted": guard.scorer(sample_weight=weights, exhausted="train", cv="training"),
        "folds": guard.scorer(cv=3, exhausted="train"),
    }
    guard.ask(0.5, np.ones(897))
    with quiet() as caught:
        result = cross_validate(tree(max_depth=3), *TRAIN, scoring=scorers, cv=guard.split())
        folds = cross_validate(tree(max_depth=3), *TRAIN, cv=3)["test_score"].mean()
    hits = tree(max_depth=3).fit(*TRAIN).predict(TRAIN[0]) == TRAIN[1]
    assert result["test_loss"] == pytest.approx(np.mean(hits) - 1.0)
    assert result["test_weighted"] == pytest.approx(np.average(hits, weights=weights[0]))
    assert result["test_folds"] == pytest.approx(folds)
    assert sum(w.category is GuardExhaustedWarning for w in caught) == 3


@pytest.mark.slow
def test_policies_are_checked_first() -> None:
    assert get_args(Exhausted) == POLICIES == ("raise", "train", "nan", "stop")
    assert [check_exhausted(policy) for policy in POLICIES] == list(POLICIES)
    for wrong in ("Raise", None, 3, ["raise"]):
        with pytest.raises(InputError, match=r"exhausted must be one of 'raise', 'train', 'nan', 'stop'; got .*"):
            make().scorer(exhausted=wrong, cv="training")  # type: ignore[arg-type]


def test_a_warning_points_at_its_cause() -> None:
    with pytest.warns(GuardExhaustedWarning, match="All 3 queries .* no further query is asked") as caught:
        warn_exhausted(BudgetExhausted("queries", 3, 3), "stop", 1, stacklevel=1)
    assert caught[0].filename == __file__


def test_one_default_everywhere() -> None:
    remote: Any = RemoteGuard
    hooks = (Thresholdout.scorer, remote.scorer, GuardScorer, GuardedSearchCV, GuardedObjective, GuardedStopping)
    for hook in (*hooks, LightGBMEval):
        assert inspect.signature(hook).parameters["exhausted"].default == "stop"


@pytest.mark.slow
@BY_BACKEND
def test_by_default_a_search_ends_with_its_answers_and_says_what_to_do(backend: str, n_jobs: int) -> None:
    """What a user sees: one warning of the guard, then scikit-learn's of the scores that are missing."""
    guard = make(queries=4)
    search = GridSearchCV(
        tree(), {"max_depth": DEPTHS}, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs
    )
    with joblib.parallel_config(backend), quiet() as caught:
        search.fit(*TRAIN)
    assert [w.category for w in caught] == [GuardExhaustedWarning, UserWarning]
    assert str(caught[0].message) == (
        "All 4 queries of this guard are used. Earlier answers stay valid; new queries need a new holdout. This search "
        "has 4 answers; no further query is asked, and candidates without an answer are NaN and ranked last. For more "
        "answers make a guard of new records with a larger queries=."
    )
    assert str(caught[1].message).startswith("One or more of the test scores are non-finite")
    scores, ranks = search.cv_results_["mean_test_score"], search.cv_results_["rank_test_score"]
    answered = np.isfinite(scores)
    assert (answered.sum(), len(guard.history)) == (4, 4)
    assert ranks[answered].max() < ranks[~answered].min()
    assert search.best_index_ == np.nanargmax(scores)
    assert search.best_score_ == max(guard.history["value"])
    assert search.best_estimator_.get_depth() == search.best_params_["max_depth"]


def test_a_budget_that_is_used_up_says_what_spends_less() -> None:
    guard = make(mechanism=SparseVector(0.02, 0.001, budget=1), random_state=0)
    scorer, _, messages = searched(guard, "stop", "loky", 1)
    (message,) = messages
    assert f"This search has {scorer.asked} answer" in message
    assert message.endswith("larger holdout_answers=. Training values by cross-validation spend less of it.")


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "n_jobs"), corners(BACKENDS, 0, 3))
def test_a_search_without_any_answer_is_an_error_that_names_what_goes_on(backend: str, n_jobs: int) -> None:
    """Scikit-learn would choose the first candidate; this includes a second search with the same scorer."""
    guard = make(queries=3)
    scorer = guard.scorer(cv="training")
    search = GridSearchCV(tree(), {"max_depth": [2, 3, 4]}, scoring=scorer, cv=guard.split(), n_jobs=n_jobs)
    with joblib.parallel_config(backend):
        search.fit(*TRAIN)
        with pytest.raises(SearchExhausted, match="choose exhausted='nan' or 'train'"):
            GridSearchCV(tree(), {"max_depth": [5, 6]}, scoring=scorer, cv=guard.split(), n_jobs=n_jobs).fit(*TRAIN)


@pytest.mark.slow
@for_each("policy", ["nan", "train"])
def test_what_the_error_names_goes_on(policy: Exhausted) -> None:
    guard = make(queries=1)
    guard.ask(0.5, np.zeros(guard.n))
    _, search, messages = searched(guard, policy, "loky", 1)
    assert len(messages) == 1
    assert "This search has 0 answers" in messages[0]
    assert np.isnan(search.cv_results_["mean_test_score"]).all() == (policy == "nan")


@pytest.mark.slow
@for_each("resource", ["n_samples", "n_estimators"])
def test_a_halving_search_never_chooses_from_a_round_without_answers(resource: str) -> None:
    """Its last round decides, and scikit-learn takes the worst of the kept candidates when all are NaN."""
    model = tree() if resource == "n_samples" else ExtraTreesClassifier(random_state=0)
    few = {"min_resources": 400} if resource == "n_samples" else {"min_resources": 2, "max_resources": 4}
    settings: dict[str, Any] = {"factor": 2, "resource": resource, "random_state": 0, **few}

    def search(guard: Any, **how: Any) -> Any:
        return HalvingGridSearchCV(model, {"max_depth": [2, 3, 5, 9]}, **settings, **how)

    first = make()
    asked = count_queries(first, search(first, scoring=first.scorer(cv="training"), cv=first.split()))
    assert asked == 4 + 2
    guard = make(queries=4)
    with pytest.raises(SearchExhausted, match=r"GuardedSearchCV\(search, guard, candidates=...\)") as caught:
        search(guard, scoring=guard.scorer(cv="training"), cv=guard.split()).fit(*TRAIN)
    assert caught.value.limit == 4
    guard = make(queries=asked - 1)  # a part of the last round is answered
    halving = search(guard, scoring=guard.scorer(cv="training"), cv=guard.split())
    with quiet() as seen:
        halving.fit(*TRAIN)
    assert [w.category for w in seen][:1] == [GuardExhaustedWarning]
    last = halving.cv_results_["iter"] == halving.cv_results_["iter"].max()
    assert np.isfinite(halving.cv_results_["mean_test_score"][last]).any()
    assert np.isfinite(halving.best_score_)
    guard = make(queries=4)
    guarded = GuardedSearchCV(search(guard, cv=2), guard, candidates=2).fit(*TRAIN)  # what the message names
    assert guarded.n_queries_ <= 2
