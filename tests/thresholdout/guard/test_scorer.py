import copy
import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from tests.sizes import corners, sizes
from tests.thresholdout.model_selection.digits import (
    DEPTHS,
    HOLDOUT,
    TRAIN,
    X,
    Y,
    holdout_scores,
    make,
    train_scores,
    tree,
)
from thresholdout import Claims, SparseVector, Thresholdout
from thresholdout.errors import InputError, InputTypeError, LedgerClosed, LedgerUnusable, SearchFailed, SharingError
from thresholdout.model_selection import count_queries
from thresholdout.scoring import metrics

RNG = np.random.default_rng(5)


def test_a_query_for_the_placeholder() -> None:
    guard = make()
    model = tree(max_depth=3).fit(*TRAIN)
    score = guard.scorer("accuracy", cv="training")(model, np.repeat(TRAIN[0][7:8], 5, axis=0), None)
    assert score == guard.history["value"].iloc[-1]
    assert abs(holdout_scores([3])[0] - score) <= guard.history["half_width"].iloc[-1]


@pytest.mark.filterwarnings("ignore:The scorer got training records")
def test_any_training_records_in_any_order_are_scored_for_free() -> None:
    guard = make()
    model, scorer = tree(max_depth=3).fit(*TRAIN), guard.scorer("accuracy", cv="training")
    for rows in (np.arange(900), RNG.permutation(900), RNG.choice(900, 40, replace=False), np.array([4, 8])):
        expected = np.mean(model.predict(TRAIN[0][rows]) == TRAIN[1][rows])
        assert scorer(model, TRAIN[0][rows], TRAIN[1][rows]) == pytest.approx(expected, abs=1e-12)
    assert guard.history.empty


def test_exactly_the_holdout_in_any_order_is_a_query() -> None:
    guard = make()
    model, order = tree(max_depth=3).fit(*TRAIN), RNG.permutation(len(HOLDOUT[1]))
    with pytest.warns(UserWarning, match="Pass refit=False"):
        score = guard.scorer("accuracy", cv="training")(model, HOLDOUT[0][order], HOLDOUT[1][order])
    assert list(guard.history["value"]) == [score]
    assert list(guard.history["train"]) == pytest.approx(train_scores([3]))


@pytest.mark.slow
@for_each(
    ("rows", "message"),
    [
        (HOLDOUT[0][1:], "896 other records"),
        (np.concatenate([HOLDOUT[0], TRAIN[0][:1]]), "got 898 other records"),
        (np.repeat(HOLDOUT[0][:1], 2, axis=0), "got 2 other records"),
        (X + 1.0, "got 1797 other records"),
        (np.concatenate([TRAIN[0][:5], TRAIN[0][:1] + 1.0]), "got 6 other records"),
        (TRAIN[0][:1], r"got 1 record\. One record can be the placeholder"),
        (TRAIN[0][:0], "got 0 records"),
    ],
    ids=["part", "beside", "placeholder", "other", "one-other", "one", "none"],
)
def test_other_records_are_refused(rows: Any, message: str) -> None:
    guard = make()
    with pytest.raises(InputError, match=message):
        guard.scorer(cv="training")(tree().fit(*TRAIN), rows, np.zeros(len(rows)))
    assert guard.history.empty


def test_records_are_known_by_content_when_parts_share_rows() -> None:
    guard = Thresholdout(
        (X[898:], Y[898:]),
        train=(X[:899], Y[:899]),
        queries=40,
        mechanism=Claims(holdout_answers=4),
        allow_duplicates=True,
    )
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split()).fit(X[:899], Y[:899])
    assert len(guard.history) == 3
    assert search.score(X[:899], Y[:899]) == search.best_estimator_.score(X[:899], Y[:899])
    assert search.score(X[:2], Y[:2]) == search.best_estimator_.score(X[:2], Y[:2])
    for rows in (X[899:], X[1:900]):
        with pytest.raises(InputError, match="training records of the guard, or exactly its holdout"):
            search.score(rows, Y[: len(rows)])
    assert len(guard.history) == 3


def test_a_predefined_split_of_all_records() -> None:
    guard = make()
    cv = PredefinedSplit(np.r_[np.full(900, -1), np.zeros(897)])
    search = GridSearchCV(
        tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=cv, refit=False, return_train_score=True
    )
    with pytest.warns(UserWarning, match="Pass refit=False") as caught:
        search.fit(X, Y)
    assert len(caught) == 1
    assert list(guard.history["value"]) == list(search.cv_results_["mean_test_score"])
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(train_scores([1, 3, 5]))


def test_answers_are_the_scores_within_their_half_widths() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer("accuracy", cv="training"), cv=guard.split()).fit(*TRAIN)
    assert list(search.cv_results_["mean_test_score"]) == list(guard.history["value"])
    assert (np.abs(np.subtract(holdout_scores([1, 3, 5]), guard.history["value"])) <= guard.history["half_width"]).all()
    best = [1, 3, 5][int(np.argmax(guard.history["value"]))]
    assert np.array_equal(search.best_estimator_.predict(X), tree(max_depth=best).fit(*TRAIN).predict(X))


@pytest.mark.filterwarnings("ignore:The scorer got training records")
def test_losses_are_negated() -> None:
    guard = make()
    scores = cross_val_score(
        GaussianNB(), *TRAIN, scoring=guard.scorer("zero_one_loss", cv="training"), cv=guard.split()
    )
    assert scores == [-guard.history["value"].iloc[-1]]
    assert scores[0] < 0.0
    model = GaussianNB().fit(*TRAIN)
    assert guard.scorer("zero_one_loss", cv="training")(model, *TRAIN) == pytest.approx(model.score(*TRAIN) - 1.0)


@pytest.mark.slow
@for_each(
    ("metric", "names"),
    [
        (["accuracy", "brier_score"], ["accuracy", "brier_score"]),
        ((metrics.accuracy(), metrics.log_loss(3.0)), ["accuracy", "log_loss(clip=3.0)"]),
        ({"hits": "accuracy", "loss": "brier_score"}, ["hits", "loss"]),
    ],
    ids=["list", "tuple", "mapping"],
)
def test_several_metrics_in_one_scorer(metric: Any, names: list[str]) -> None:
    guard = make()
    scorer = guard.scorer(metric, cv="training")
    search = GridSearchCV(
        tree(), DEPTHS, scoring=scorer, refit=names[1], cv=guard.split(), return_train_score=True
    ).fit(*TRAIN)
    found = np.stack([search.cv_results_[f"mean_test_{name}"] for name in names], axis=1)
    asked = guard.history["value"].to_numpy().reshape(3, 2) * [1, -1]
    assert np.array_equal(found, asked)
    assert len(guard.history) == 6 == count_queries(guard, search) == scorer.asked
    assert list(search.cv_results_[f"mean_train_{names[0]}"]) == pytest.approx(train_scores([1, 3, 5]))


@pytest.mark.slow
@for_each(
    ("metric", "kind", "message"),
    [
        ([], InputError, "at least one metric"),
        ({}, InputError, "at least one metric"),
        ({"": "accuracy"}, InputError, "by its name"),
        (["accuracy", "accuracy"], InputError, "without repetitions"),
        (3, InputTypeError, "metric must be .*; got an int"),
        ("speed", InputError, "'speed'"),
    ],
)
def test_metrics_that_are_none(metric: Any, kind: type[InputError], message: str) -> None:
    with pytest.raises(kind, match=message):
        make().scorer(metric, cv="training")


def test_a_statistic_needs_a_mechanism_that_answers_it() -> None:
    with pytest.raises(InputError, match="for sparse vector"):
        make(mechanism=SparseVector(0.1, 0.01, budget=5), queries=20).scorer("balanced_accuracy", cv="training")
    with pytest.raises(InputError, match="Make the guard with mechanism='claims'"):
        make().scorer("balanced_accuracy", cv="training")
    guard = make(mechanism=None)
    search = GridSearchCV(
        tree(), DEPTHS, scoring=guard.scorer("balanced_accuracy", cv="training"), cv=guard.split()
    ).fit(*TRAIN)
    assert list(search.cv_results_["mean_test_score"]) == list(guard.history["value"])


def test_a_cross_validated_training_value() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer("accuracy", cv=3), cv=guard.split()).fit(*TRAIN)
    expected = [cross_val_score(tree(max_depth=d), *TRAIN, cv=3).mean() for d in (1, 3, 5)]
    assert list(guard.history["train"]) == pytest.approx(expected)
    assert search.best_params_ == {"max_depth": 5}


def sparse(rows: Any) -> Any:
    return scipy.sparse.csr_matrix(rows)


def frame(rows: Any) -> Any:
    return pd.DataFrame(rows, columns=[f"pixel {k}" for k in range(64)])


@pytest.mark.slow
@for_each(
    "container", [frame, sparse, np.asfortranarray, lambda rows: rows.astype(np.float32)],
    ids=["frame", "sparse", "fortran", "float32"],
)  # fmt: skip
@pytest.mark.parametrize("n_jobs", corners([1, 2], 0))
def test_containers(container: Callable[[Any], Any], n_jobs: int) -> None:
    train, holdout = container(TRAIN[0]), container(HOLDOUT[0])
    guard = Thresholdout((holdout, Y[900:]), train=(train, Y[:900]), queries=40, mechanism=Claims(holdout_answers=20))
    search = GridSearchCV(
        tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split(), n_jobs=n_jobs, return_train_score=True
    ).fit(train, Y[:900])
    assert sorted(guard.history["value"]) == sorted(search.cv_results_["mean_test_score"])
    assert sorted(guard.history["train"]) == pytest.approx(train_scores([1, 3, 5]))
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(train_scores([1, 3, 5]))


@pytest.mark.slow
def test_a_pipeline_works_in_the_owner_as_it_does_in_the_worker() -> None:
    """Settings of scikit-learn belong to a thread; here the prediction needs names that only they provide."""
    train, holdout = frame(TRAIN[0]), frame(HOLDOUT[0])
    guard = Thresholdout((holdout, Y[900:]), train=(train, Y[:900]), queries=40, mechanism=Claims(holdout_answers=20))
    named = make_column_selector(pattern="^pixel")
    pipeline = make_pipeline(StandardScaler(), make_column_transformer((StandardScaler(), named)), tree())
    with sklearn.config_context(transform_output="pandas"):
        search = GridSearchCV(
            pipeline,
            {"decisiontreeclassifier__max_depth": [1, 3, 5]},
            scoring=guard.scorer(cv="training"),
            cv=guard.split(),
            n_jobs=2,
            error_score="raise",
        ).fit(train, Y[:900])
    assert sorted(guard.history["train"]) == pytest.approx(train_scores([1, 3, 5]))
    assert search.best_params_ == {"decisiontreeclassifier__max_depth": 5}


def weights() -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    return rng.uniform(0.5, 2.0, 900), rng.uniform(0.5, 2.0, 897)


@sizes("n_jobs", 1, 2)
def test_declared_weights_weigh_the_query(n_jobs: int) -> None:
    guard, given = make(), weights()
    search = GridSearchCV(
        tree(), DEPTHS, scoring=guard.scorer(sample_weight=given, cv="training"), cv=guard.split(), n_jobs=n_jobs
    ).fit(*TRAIN)
    fitted = [tree(max_depth=d).fit(*TRAIN) for d in (1, 3, 5)]
    expected = [np.average(model.predict(TRAIN[0]) == TRAIN[1], weights=given[0]) for model in fitted]
    assert sorted(guard.history["train"]) == pytest.approx(expected)
    assert (guard.history["upper"] == given[0].max() / given[0].mean()).all()
    assert sorted(search.cv_results_["mean_test_score"]) == sorted(guard.history["value"])


@for_each(
    ("given", "message"),
    [
        ((np.ones(900),), "train weights"),
        ((np.ones(900), np.ones(5)), "897"),
        ((-np.ones(900), np.ones(897)), "negative"),
    ],
)
def test_weights_are_checked_when_the_scorer_is_made(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make().scorer(sample_weight=given, cv="training")


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("routing", [True, False])
def test_routed_weights_apply_to_training_scores(routing: bool, n_jobs: int) -> None:
    guard, given = make(), weights()
    with sklearn.config_context(enable_metadata_routing=routing):
        scorer = guard.scorer(sample_weight=given, cv="training")
        if routing:
            assert scorer.set_score_request(sample_weight=True) is scorer
            model = tree().set_fit_request(sample_weight=True)
        else:
            model = tree()
        search = GridSearchCV(
            model, DEPTHS, scoring=scorer, cv=guard.split(), return_train_score=True, n_jobs=n_jobs, error_score="raise"
        )
        search.fit(*TRAIN, sample_weight=given[0], **({"groups": np.arange(900)} if routing else {}))
    fitted = [tree(max_depth=d).fit(*TRAIN, sample_weight=given[0]) for d in (1, 3, 5)]
    hits = [model.predict(TRAIN[0]) == TRAIN[1] for model in fitted]
    weighted = [np.average(hit, weights=given[0]) for hit in hits]
    assert sorted(guard.history["train"]) == pytest.approx(sorted(weighted))
    # Without metadata routing, scikit-learn hands weights to scorers in its newer versions only.
    hands_over = routing or hasattr(GridSearchCV, "_check_scorers_accept_sample_weight")
    expected = weighted if hands_over else [hit.mean() for hit in hits]
    assert list(search.cv_results_["mean_train_score"]) == pytest.approx(expected)


def test_weights_that_are_not_requested_are_not_routed() -> None:
    guard = make()
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = guard.scorer(cv="training").set_score_request(sample_weight=False)
        model = tree().set_fit_request(sample_weight=True)
        search = GridSearchCV(model, DEPTHS, scoring=scorer, cv=guard.split(), error_score="raise")
        search.fit(*TRAIN, sample_weight=weights()[0])
    assert len(guard.history) == 3
    assert clone(search).scoring is scorer


@pytest.mark.filterwarnings("ignore:The scorer got training records")
def test_routed_weights_say_nothing_about_the_holdout() -> None:
    guard = make()
    model, placeholder = tree().fit(*TRAIN), np.repeat(TRAIN[0][:1], 2, axis=0)
    with pytest.raises(InputError, match=r"sample_weight=\(train, holdout\)"):
        guard.scorer(cv="training")(model, placeholder, None, sample_weight=np.ones(2))
    claims = make(mechanism=None)
    with pytest.raises(InputError, match="None for 'balanced_accuracy'; got weights"):
        claims.scorer("balanced_accuracy", cv="training")(model, *TRAIN, sample_weight=np.ones(900))
    assert guard.history.empty


def test_copies_of_a_scorer_are_the_scorer() -> None:
    scorer = make().scorer(cv="training")
    assert copy.copy(scorer) is scorer
    assert copy.deepcopy(scorer) is scorer
    assert clone(scorer, safe=False) is scorer
    assert pickle.loads(pickle.dumps(scorer)) is scorer


def test_representations() -> None:
    guard = make()
    assert repr(guard.scorer(cv="training")) == "GuardScorer(accuracy)"
    assert repr(guard.scorer(["accuracy", "brier_score"], cv="training")) == "GuardScorer(accuracy, brier_score)"
    assert guard.scorer(["accuracy", "brier_score"], cv="training").metrics == ("accuracy", "brier_score")
    assert guard.scorer(cv="training").guard is guard


class Leaky(DecisionTreeClassifier):  # type: ignore[misc]
    def predict(self, X: Any, check_input: bool = True) -> Any:
        if len(X) == 897:
            raise ValueError(f"secret {X.sum()}")
        return super().predict(X)


@pytest.mark.slow
def test_errors_about_the_holdout_do_not_show_it_from_a_worker() -> None:
    """Of loky: a pool of `multiprocessing` that is ended by an error may wait for ever for its own workers."""
    guard = make()
    search = GridSearchCV(
        Leaky(),
        {"max_depth": [3, 4]},
        scoring=guard.scorer(cv="training"),
        cv=guard.split(),
        n_jobs=2,
        error_score="raise",
    )
    with pytest.raises(InputError, match="failed on the holdout") as caught, joblib.parallel_config("loky"):
        search.fit(*TRAIN)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


def test_an_outer_cross_validation_is_free_and_the_inner_search_asks() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = cross_validate(search, *TRAIN, cv=KFold(3), return_estimator=True)
    assert len(guard.history) == 9
    for (_, test), score, fitted in zip(
        KFold(3).split(TRAIN[0]), result["test_score"], result["estimator"], strict=True
    ):
        hits = fitted.best_estimator_.predict(TRAIN[0][test]) == TRAIN[1][test]
        assert score == pytest.approx(np.mean(hits))


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", corners([1, 2], 0))
@for_each("policy", ["raise", "nan", "train", "stop"])
def test_a_closed_guard_ends_the_search(tmp_path: Path, policy: Any, n_jobs: int) -> None:
    guard = make(ledger=tmp_path / "guard.db")
    search = GridSearchCV(
        tree(),
        DEPTHS,
        scoring=guard.scorer(exhausted=policy, cv="training"),
        cv=guard.split(),
        n_jobs=n_jobs,
        error_score=np.nan,
    )
    guard._ledger.close_guard(guard._id, "the study is over")
    with pytest.raises(SearchFailed, match=r"the study is over. The search stops here") as caught:
        search.fit(*TRAIN)
    assert isinstance(caught.value.reason, LedgerClosed)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again.reason), str(again)) == (LedgerClosed, str(caught.value))


class Moving(type(tree())):  # type: ignore[misc]
    """A tree that moves the ledger's file away when it is fitted for the second time."""

    ledger: Path

    def fit(self, X: Any, y: Any) -> Any:
        if self.max_depth == 3:
            self.ledger.rename(self.ledger.with_name("elsewhere.db"))
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:a query cannot be identified by its content")
def test_a_ledger_that_is_moved_ends_the_search(tmp_path: Path) -> None:
    Moving.ledger = tmp_path / "guard.db"
    guard = make(ledger=Moving.ledger)
    search = GridSearchCV(Moving(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split(), refit=False)
    with pytest.raises(SearchFailed, match="moved, deleted or replaced") as caught:
        search.fit(*TRAIN)
    assert isinstance(caught.value.__cause__, LedgerUnusable)


def hold(connection: Any) -> None:
    """Send a guard's search, and stay until the process is killed."""
    guard = make()
    connection.send_bytes(
        pickle.dumps(
            GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=[(np.arange(900), np.zeros(5, int))])
        )
    )
    signal.pause()


def test_a_lost_owner_ends_the_search() -> None:
    receiving, sending = get_context("fork").Pipe(duplex=False)
    owner = get_context("fork").Process(target=hold, args=(sending,))
    owner.start()
    search = pickle.loads(receiving.recv_bytes())
    assert owner.pid is not None
    os.kill(owner.pid, signal.SIGKILL)
    owner.join()
    with pytest.raises(SearchFailed, match="has ended") as caught:
        search.fit(*TRAIN)
    assert isinstance(caught.value.reason, SharingError)


@pytest.mark.filterwarnings("ignore:The scorer got training records")
def test_equal_rows_with_different_labels_are_no_placeholder() -> None:
    rows, labels = np.ones((200, 2)), np.arange(200) % 2
    guard = Thresholdout((rows + 1, labels), train=(rows, labels), queries=40, mechanism=Claims(holdout_answers=4))
    scorer, model = guard.scorer(cv="training"), GaussianNB().fit(TRAIN[0][:, :2], TRAIN[1])
    assert scorer(model, rows, labels) == np.mean(model.predict(rows) == labels)
    assert guard.history.empty
    scorer(model, rows[:5], np.zeros(5, int))
    assert len(guard.history) == 1
