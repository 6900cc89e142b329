"""What scikit-learn's searches do to a stateful scorer, as measured, and what a guard makes of it: one test each.

The first assertion of a test shows the behaviour with a naive scorer, which keeps its budget in an attribute; so these
tests also tell when scikit-learn changes.
"""

import threading
import warnings
from collections import Counter
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    PredefinedSplit,
    cross_val_score,
)
from sklearn.utils.metadata_routing import get_routing_for_object

from tests.sizes import corners
from tests.thresholdout.model_selection.digits import DEPTHS, TRAIN, X, Y, holdout_scores, make, train_scores, tree
from thresholdout import Claims
from thresholdout.errors import SearchExhausted
from thresholdout.model_selection import GuardedSearchCV, count_queries


class Naive:
    """A scorer with a budget, as one would write it first."""

    def __init__(self, budget: int = 100) -> None:
        self.left = budget
        self.sizes: list[int] = []

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        if not self.left:
            raise RuntimeError("no budget left")
        self.left -= 1
        self.sizes.append(len(y))
        return float(np.mean(estimator.predict(X) == y))


class Kept(Naive):
    """One that outlives being cloned."""

    def __sklearn_clone__(self) -> "Kept":
        return self


class Sized(type(tree())):  # type: ignore[misc]
    """A tree that says how many records it predicts at a time."""

    sizes: ClassVar[list[int]] = []

    def predict(self, X: Any) -> Any:
        self.sizes.append(len(X))
        return super().predict(X)


def grid(scoring: Any, cv: Any, **settings: Any) -> GridSearchCV:
    return GridSearchCV(tree(), DEPTHS, scoring=scoring, cv=cv, **settings)


@pytest.mark.slow
def test_calls_in_worker_processes_are_counted() -> None:
    naive, guard = Naive(), make()
    with joblib.parallel_config("loky"):
        grid(naive, 2, n_jobs=2, refit=False).fit(*TRAIN)
        search = grid(guard.scorer(cv="training"), guard.split(), n_jobs=2).fit(*TRAIN)
    assert naive.left == 100
    assert len(guard.history) == 3 == search.scoring.asked


def test_a_clone_keeps_the_identity() -> None:
    naive, guard = Naive(), make()
    assert clone(grid(naive, 2)).scoring is not naive
    search = grid(guard.scorer(cv="training"), guard.split())
    assert clone(search).scoring is search.scoring
    assert clone(search).scoring.guard is guard


@pytest.mark.slow
def test_a_lock_inside_is_no_obstacle() -> None:
    naive, guard = Naive(), make()
    naive.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="pickle"):
        clone(grid(naive, 2))
    clone(grid(guard.scorer(cv="training"), guard.split())).set_params(n_jobs=2).fit(*TRAIN)
    assert len(guard.history) == 3


def test_nested_cross_validation_asks_as_often_as_was_counted() -> None:
    naive, guard = Kept(), make()
    two = {"max_depth": [1, 3]}
    cross_val_score(GridSearchCV(tree(), two, scoring=naive, cv=2), *TRAIN, scoring=naive, cv=2)
    assert 100 - naive.left == 10  # 8 inside and 2 outside
    inner = GridSearchCV(tree(), two, scoring=guard.scorer(cv="training"), cv=guard.split())
    cross_val_score(inner, *TRAIN, scoring=guard.scorer(cv="training"), cv=KFold(2))
    assert len(guard.history) == 2 * count_queries(guard, inner) == 4


def test_training_scores_are_told_from_holdout_scores_by_content() -> None:
    naive, guard = Naive(), make()
    whole = PredefinedSplit(np.r_[np.full(900, -1), np.zeros(897)])
    grid(naive, whole, return_train_score=True, refit=False).fit(X, Y)
    assert naive.sizes == [897, 900] * 3
    search = grid(guard.scorer(cv="training"), guard.split(), return_train_score=True).fit(*TRAIN)
    assert len(guard.history) == 3
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(train_scores([1, 3, 5]))


@pytest.mark.parametrize("n_jobs", corners([1, 2], 0))
def test_a_refusal_is_not_swallowed(n_jobs: int) -> None:
    naive, guard = Naive(1), make(queries=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = grid(naive, PredefinedSplit(np.r_[np.full(900, -1), np.zeros(897)]), refit=False).fit(X, Y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True, True]
    for error_score in (np.nan, "raise"):
        with pytest.raises(SearchExhausted):
            grid(
                guard.scorer(exhausted="raise", cv="training"), guard.split(), n_jobs=n_jobs, error_score=error_score
            ).fit(*TRAIN)
    scorer = guard.scorer(exhausted="nan", cv="training")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid(scorer, guard.split(), n_jobs=n_jobs).fit(*TRAIN)
    assert (scorer.exhausted, scorer.asked, scorer.replaced) == ("queries", 0, 2)  # one was answered before


def test_halving_does_not_shrink_the_holdout() -> None:
    naive, guard = Naive(), make(queries=100, mechanism=Claims(holdout_answers=50))
    settings: dict[str, Any] = {"min_resources": "smallest", "random_state": 0, "n_candidates": 6}
    HalvingRandomSearchCV(tree(), {"max_depth": range(1, 9)}, scoring=naive, cv=2, **settings).fit(*TRAIN)
    assert min(naive.sizes) < 30
    Sized.sizes.clear()
    search = HalvingRandomSearchCV(
        Sized(),
        {"max_depth": range(1, 9)},
        scoring=guard.scorer(cv="training"),
        cv=guard.split(),
        refit=False,
        **settings,
    ).fit(*TRAIN)
    assert list(search.cv_results_["mean_test_score"]) == list(guard.history["value"])
    assert search.n_resources_[0] < 30
    assert Counter(Sized.sizes)[897] == len(guard.history) == sum(search.n_candidates_)


def test_refit_may_be_a_function() -> None:
    guard = make()
    seen: list[Any] = []

    def choose(results: Any) -> int:
        seen.append(results["mean_test_score"])
        return 1

    search = grid(guard.scorer(cv="training"), guard.split(), refit=choose).fit(*TRAIN)
    assert list(seen[0]) == list(guard.history["value"])
    assert search.best_params_ == {"max_depth": 3}
    assert not hasattr(search, "best_score_")


def test_a_predefined_split_and_the_splitter_ask_the_same() -> None:
    guard, other = make(), make()
    whole = PredefinedSplit(np.r_[np.full(900, -1), np.zeros(897)])
    with pytest.warns(UserWarning, match="Pass refit=False"):
        grid(guard.scorer(cv="training"), whole, refit=False).fit(X, Y)
    search = grid(other.scorer(cv="training"), other.split()).fit(*TRAIN)
    assert list(guard.history["train"]) == list(other.history["train"])
    assert search.best_estimator_.tree_.n_node_samples[0] == 900  # the holdout is not in the refit


def test_metadata_is_routed() -> None:
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 900)
    guard = make()
    with sklearn.config_context(enable_metadata_routing=True):
        peer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        scorer = guard.scorer(sample_weight=(weights, np.ones(897)), cv="training").set_score_request(
            sample_weight=True
        )
        requests = [get_routing_for_object(one).score.requests for one in (peer, scorer)]
        assert requests[0] == requests[1] == {"sample_weight": True}
        search = grid(scorer, guard.split(), return_train_score=True, error_score="raise")
        search.set_params(estimator=tree().set_fit_request(sample_weight=True))
        search.fit(*TRAIN, sample_weight=weights, groups=np.zeros(900))
    hits = [tree(max_depth=d).fit(*TRAIN, sample_weight=weights).predict(TRAIN[0]) == TRAIN[1] for d in (1, 3, 5)]
    expected = [np.average(hit, weights=weights) for hit in hits]
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(expected)
    assert list(guard.history["train"]) == pytest.approx(expected)


@pytest.mark.skipif(not hasattr(GridSearchCV, "set_callbacks"), reason="callbacks are new in scikit-learn 1.9")
def test_callbacks_and_guards_do_not_disturb_each_other() -> None:
    class Watching:
        def __init__(self) -> None:
            self.ended = 0

        def setup(self, estimator: Any, context: Any) -> None:
            pass

        def on_fit_task_begin(self, *args: Any, **kwargs: Any) -> None:
            pass

        def on_fit_task_end(self, *args: Any, **kwargs: Any) -> bool:
            self.ended += 1
            return True

        def teardown(self, estimator: Any, context: Any) -> None:
            pass

    guard, watching = make(), Watching()
    grid(guard.scorer(cv="training"), guard.split()).set_callbacks(watching).fit(*TRAIN)
    assert watching.ended > 3
    assert len(guard.history) == 3  # a callback that returns True does not stop a search


def test_the_meta_estimator_is_a_search_as_well() -> None:
    guard = make()
    search = GuardedSearchCV(GridSearchCV(tree(), DEPTHS, cv=2), guard).fit(*TRAIN)
    assert len(guard.history) == 3 == count_queries(guard, search)
    assert search.best_params_ == {"max_depth": 5}
    gaps = np.abs(np.subtract(sorted(guard.history["value"]), holdout_scores([1, 3, 5])))
    assert (gaps <= guard.history["half_width"].max()).all()
