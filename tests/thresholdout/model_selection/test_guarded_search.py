"""GuardedSearchCV: what it asks, what it charges, what it chooses."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import Parallel, delayed
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_diabetes
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from tests.estimator_checks import each_check
from tests.sizes import corners
from tests.thresholdout.model_selection.searched import DEPTHS, HOLDOUT, TRAIN, X, Y, grid, make, tree
from thresholdout import BudgetExhausted, Claims, SeededNoise, SparseVector, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, InputTypeError
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.scoring.metrics import Metric, accuracy, squared_error, zero_one_loss
from thresholdout.scoring.statistics import r2


@pytest.mark.slow
def test_each_candidate_is_one_query_in_the_order_of_its_rank() -> None:
    guard = make()
    guarded = GuardedSearchCV(grid(), guard).fit(*TRAIN)
    plain = grid().fit(*TRAIN)
    order = np.argsort(plain.cv_results_["rank_test_score"], kind="stable")
    assert list(guard.history["train"]) == pytest.approx(plain.cv_results_["mean_test_score"][order])
    assert [answer.query for answer in guarded.answers_] == [1, 2, 3]
    scores = guarded.cv_results_["guarded_score"]
    assert list(scores[order]) == [answer.value for answer in guarded.answers_]
    assert list(guarded.cv_results_["guarded_half_width"][order]) == [a.half_width for a in guarded.answers_]
    assert list(guarded.cv_results_["guarded_source"][order]) == [a.source for a in guarded.answers_]
    assert list(guarded.cv_results_["rank_guarded"]) == [3, 2, 1]
    assert (guarded.best_index_, guarded.best_params_) == (2, {"max_depth": 6})
    assert (guarded.best_score_, guarded.n_queries_, guarded.exhausted_) == (scores[2], 3, None)
    assert guarded.best_half_width_ == guarded.answers_[0].half_width
    assert guarded.certificate_ is guard.certificate
    assert guarded.guard_ is guard
    expected = clone(tree()).set_params(max_depth=6).fit(*TRAIN)
    assert np.array_equal(guarded.predict(X), expected.predict(X))
    assert guarded.score(*HOLDOUT) == expected.score(*HOLDOUT)
    for depth, score, width in zip((1, 3, 6), scores, guarded.cv_results_["guarded_half_width"], strict=True):
        truth = clone(tree()).set_params(max_depth=depth).fit(*TRAIN).score(*HOLDOUT)
        assert abs(truth - score) <= width


def test_a_misleading_cross_validation_is_overruled() -> None:
    """Records come in copies: cross-validation believes in the tree that remembers them, the guard does not."""
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(4200, 4)), rng.integers(0, 2, size=4200)
    labels = np.where(rng.random(4200) < 0.7, features[:, 0] > 0, labels)
    X_train, y_train = np.repeat(features[:200], 5, axis=0), np.repeat(labels[:200], 5)
    shuffled = rng.permutation(1000)
    X_train, y_train = X_train[shuffled], y_train[shuffled]
    guard = Thresholdout(
        (features[200:], labels[200:]),
        train=(X_train, y_train),
        queries=2,
        mechanism=Claims(holdout_answers=2),
        random_state=1,
    )
    search = GridSearchCV(tree(), {"max_depth": [1, None]}, cv=5)
    assert search.fit(X_train, y_train).best_params_ == {"max_depth": None}
    guarded = GuardedSearchCV(search, guard).fit(X_train, y_train)
    assert guarded.best_params_ == {"max_depth": 1}
    assert list(guarded.cv_results_["guarded_source"])[1] == "holdout"


@pytest.mark.slow
@pytest.mark.parametrize("backend", corners(["loky", "threading"], 1))
def test_answers_and_charges_do_not_depend_on_the_number_of_jobs(backend: str) -> None:
    import joblib

    found = []
    for n_jobs in (1, 2):
        guard = make(mechanism=SparseVector(0.01, 0.01, budget=3), random_state=5)
        with joblib.parallel_config(backend=backend):
            guarded = GuardedSearchCV(grid(n_jobs=n_jobs), guard, exhausted="train")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", GuardExhaustedWarning)
                guarded.fit(*TRAIN)
        found.append((guard.history, guarded.answers_, guarded.cv_results_["guarded_score"], guarded.best_params_))
    pd.testing.assert_frame_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    assert np.array_equal(found[0][2], found[1][2], equal_nan=True)
    assert found[0][3] == found[1][3]


def test_fewer_candidates_are_asked_about_than_searched() -> None:
    guard = make()
    search = RandomizedSearchCV(
        LogisticRegression(max_iter=20, tol=1.0), {"C": loguniform(1e-4, 1e2)}, n_iter=6, cv=2, random_state=0
    )
    guarded = GuardedSearchCV(search, guard, candidates=2)
    assert guarded.count_queries() == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guarded.fit(*TRAIN)
    asked = np.flatnonzero(guarded.cv_results_["guarded_source"] != "")
    assert set(guarded.cv_results_["rank_test_score"][asked]) <= {1, 2}
    assert len(guard.history) == guarded.n_queries_ == len(asked) == 2
    assert np.isnan(np.delete(guarded.cv_results_["guarded_score"], asked)).all()
    assert set(np.delete(guarded.cv_results_["rank_guarded"], asked)) == {3}


@pytest.mark.slow
@for_each("kind", [HalvingGridSearchCV, HalvingRandomSearchCV])
def test_halving_asks_about_the_last_round(kind: Callable[..., Any]) -> None:
    guard = make()
    search = kind(tree(), {"max_depth": [1, 2, 3, 4, 6, 8]}, cv=3, factor=2, random_state=0, min_resources=100)
    guarded = GuardedSearchCV(search, guard).fit(*TRAIN)
    rounds = guarded.cv_results_["iter"]
    asked = guarded.cv_results_["guarded_source"] != ""
    assert rounds.max() > 0
    assert np.array_equal(asked, rounds == rounds.max())
    assert len(guard.history) == asked.sum()


def test_losses_have_the_sign_of_the_search_and_the_units_of_the_metric() -> None:
    guard = make(queries=10)
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, scoring="neg_log_loss", cv=3)
    guarded = GuardedSearchCV(search, guard).fit(*TRAIN)
    plain = search.fit(*TRAIN)
    # Overconfident: the plain loss is beyond the metric's range of 5 nats for many records, the training value is not.
    assert plain.cv_results_["mean_test_score"].min() < -2
    assert list(guard.history["name"]) == ["log_loss(clip=5.0)"] * 2
    for index, smoothing in enumerate((1e-9, 1e-2)):
        model = GaussianNB(var_smoothing=smoothing).fit(*TRAIN)
        truth = np.minimum(-np.log(np.maximum(model.predict_proba(X[600:])[np.arange(1197), Y[600:]], 1e-99)), 5).mean()
        assert (
            abs(-guarded.cv_results_["guarded_score"][index] - truth) < guarded.cv_results_["guarded_half_width"][index]
        )
    assert guarded.best_score_ == max(guarded.cv_results_["guarded_score"]) < 0
    assert guarded.best_score_ == -min(answer.value for answer in guarded.answers_)
    assert guarded.best_params_ == {"var_smoothing": 1e-2}
    assert guarded.score(*HOLDOUT) == get_scorer("neg_log_loss")(guarded.best_estimator_, *HOLDOUT)
    values = guarded.cv_results_["mean_test_guarded_training_value"]
    assert sorted(guard.history["train"]) == pytest.approx(sorted(values))
    assert (values < -guarded.cv_results_["mean_test_score"]).all()


def test_regressors_by_r2_and_by_a_clipped_loss() -> None:
    features, target = load_diabetes(return_X_y=True)
    parts: dict[str, Any] = {
        "train": (features[:200], target[:200]),
        "queries": 6,
        "mechanism": Claims(holdout_answers=2),
        "random_state": 0,
    }
    guard = Thresholdout((features[200:], target[200:]), **parts)
    search = GridSearchCV(Ridge(), {"alpha": [0.01, 100.0]}, cv=4)
    with pytest.raises(
        InputError,
        match=r"Take it from the training part: thresholdout\.scoring\.statistics\.r2\(clip=",
    ):
        GuardedSearchCV(search, guard).fit(features[:200], target[:200])
    guarded = GuardedSearchCV(search, guard, metric=r2(4.0)).fit(features[:200], target[:200])
    assert set(guard.history["name"]) == {"r2(clip=4)"}
    assert guarded.best_params_ == {"alpha": 0.01}
    with pytest.raises(InputError, match=r"squared_error\(clip=\(errors\*\*2\)"):
        GuardedSearchCV(clone(search).set_params(scoring="neg_mean_squared_error"), guard).fit(*parts["train"])
    loss = squared_error(clip=40_000.0)
    other = clone(search).set_params(scoring="neg_mean_squared_error")
    guarded = GuardedSearchCV(other, guard, metric=loss).fit(features[:200], target[:200])
    assert guarded.best_params_ == {"alpha": 0.01}
    assert list(guard.history["name"])[2:] == [loss.name] * 2
    assert guarded.best_score_ == -guarded.answers_[0].value < -1000


@pytest.mark.slow
def test_several_scores() -> None:
    guard = make()
    search = grid(scoring=["balanced_accuracy", "accuracy"], refit="accuracy")
    guarded = GuardedSearchCV(search, guard).fit(*TRAIN)
    assert set(guard.history["name"]) == {"accuracy"}
    assert max(guard.history["train"]) == max(guarded.cv_results_["mean_test_accuracy"])
    assert guarded.score(*HOLDOUT) == guarded.best_estimator_.score(*HOLDOUT)
    named = grid(scoring={"first": "neg_log_loss", "second": "accuracy"}, refit="second")
    guarded = GuardedSearchCV(named, guard, metric=zero_one_loss()).fit(*TRAIN)
    assert guarded.best_score_ == -guarded.answers_[0].value
    assert guarded.best_params_ == {"max_depth": 6}
    with pytest.raises(InputError, match=r"refit must be .*; got False for a search with several scores"):
        GuardedSearchCV(grid(scoring=["accuracy"], refit=False), guard).fit(*TRAIN)


@pytest.mark.slow
@for_each("policy", ["raise", "stop", "nan", "train"])
def test_exhaustion(policy: Any) -> None:
    guard = make(queries=2)
    guarded = GuardedSearchCV(grid(), guard, exhausted=policy)
    if policy == "raise":
        with pytest.raises(BudgetExhausted):
            guarded.fit(*TRAIN)
        assert len(guard.history) == 2
        return
    with pytest.warns(GuardExhaustedWarning) as caught:
        guarded.fit(*TRAIN)
    assert len([w for w in caught if w.category is GuardExhaustedWarning]) == 1
    assert guarded.exhausted_ == guard.status.exhausted == "queries"
    assert guarded.n_queries_ == len(guarded.answers_) == 2
    assert guarded.best_params_ == {"max_depth": 6}
    score, source = guarded.cv_results_["guarded_score"][0], guarded.cv_results_["guarded_source"][0]
    if policy == "train":
        assert (score, source) == (guarded.cv_results_["mean_test_score"][0], "uncertified")
        assert guarded.cv_results_["guarded_half_width"][0] == np.inf
    else:
        assert np.isnan(score)
        assert source == ""
    assert guarded.cv_results_["rank_guarded"][guarded.best_index_] == 1
    with pytest.raises(BudgetExhausted) if policy != "train" else pytest.warns(GuardExhaustedWarning):
        GuardedSearchCV(grid(scoring="balanced_accuracy"), guard, exhausted=policy).fit(*TRAIN)


@pytest.mark.slow
@for_each("scoring", ["f1_macro", "recall_macro", "balanced_accuracy", get_scorer("f1_macro")])
def test_searches_by_statistics_and_by_scorer_objects(scoring: Any) -> None:
    """A name is the training value that the search has; a scorer object is asked for its statistic."""
    guard = make(mechanism=None)
    guarded = GuardedSearchCV(grid(scoring=scoring), guard, report="all").fit(*TRAIN)
    name = scoring if isinstance(scoring, str) else "f1_macro"
    assert set(guard.history["name"]) == {name}
    folds = guarded.cv_results_["mean_test_score"]
    assert sorted(guard.history["train"]) == pytest.approx(sorted(folds), abs=1e-12)
    scorer = guard.scorer(scoring, cv="training")
    search = GridSearchCV(tree(), DEPTHS, scoring=scorer, cv=guard.split(), n_jobs=2).fit(*TRAIN)
    assert sorted(search.cv_results_["mean_test_score"]) == sorted(guard.history["value"][3:])


def test_by_default_a_search_ends_with_its_answers() -> None:
    guard = make(queries=2)
    guarded = GuardedSearchCV(grid(), guard)
    with pytest.warns(GuardExhaustedWarning) as caught:
        guarded.fit(*TRAIN)
    (message,) = [str(w.message) for w in caught]
    assert "This search has 2 answers; no further query is asked, and candidates without an answer are NaN" in message
    scores, ranks = guarded.cv_results_["guarded_score"], guarded.cv_results_["rank_guarded"]
    assert np.isfinite(scores).sum() == 2
    assert ranks[np.isfinite(scores)].max() < ranks[np.isnan(scores)].min()
    assert guarded.best_score_ == np.nanmax(scores) == max(guard.history["value"])
    with pytest.raises(BudgetExhausted) as refused:
        GuardedSearchCV(grid(scoring="balanced_accuracy"), guard).fit(*TRAIN)
    assert "pass exhausted='nan' or 'train'" in "".join(refused.value.__notes__)


def test_nan_goes_on_to_queries_whose_answers_are_known() -> None:
    guard = make(queries=1)
    GuardedSearchCV(GridSearchCV(tree(), {"max_depth": [1]}, cv=3), guard).fit(*TRAIN)
    guarded = GuardedSearchCV(grid(), guard, exhausted="nan")
    with pytest.warns(GuardExhaustedWarning):
        guarded.fit(*TRAIN)
    assert (guarded.best_params_, guarded.n_queries_) == ({"max_depth": 1}, 0)
    assert guarded.answers_[0].repeated
    with pytest.raises(BudgetExhausted):
        GuardedSearchCV(grid(), guard, exhausted="stop").fit(*TRAIN)


@pytest.mark.slow
def test_a_second_fit_is_free_and_the_same_also_in_another_guard_of_the_same_ledger(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "ledger": tmp_path / "guard.db",
        "random_state": None,
        "mechanism": Claims(holdout_answers=6),
    }
    first = GuardedSearchCV(grid(), make(**settings)).fit(*TRAIN)
    again = make(**settings)
    second = GuardedSearchCV(grid(n_jobs=2), again).fit(*TRAIN)
    assert [a.value for a in first.answers_] == [a.value for a in second.answers_]
    assert (first.n_queries_, second.n_queries_, len(again.history)) == (3, 0, 3)
    third = GuardedSearchCV(grid(cv=4), again).fit(*TRAIN)  # other training values are other queries
    assert third.n_queries_ == 3


class Coin(DecisionTreeClassifier):  # type: ignore[misc]
    """A tree that comes out differently in every fit."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> "Coin":
        self.drawn_ = np.random.default_rng().random()
        super().fit(X, y, sample_weight, check_input)
        return self


def test_a_model_that_comes_out_differently_is_another_query() -> None:
    guard = make()
    for queries in (1, 2):
        GuardedSearchCV(GridSearchCV(Coin(random_state=0), {"max_depth": [3]}, cv=3), guard).fit(*TRAIN)
        assert len(guard.history) == queries


def test_holdout_records_are_refused_before_anything_is_fitted() -> None:
    guard = make()
    for rows in (slice(None), slice(600, None), slice(599, 700)):
        with pytest.raises(InputError, match="not all in the guard's training part"):
            GuardedSearchCV(grid(), guard).fit(X[rows], Y[rows])
    assert guard.history.empty
    GuardedSearchCV(grid(), guard).fit(X[100:500], Y[100:500])  # a part of the training records


@for_each(
    ("search", "changes", "error", "expected"),
    [
        (tree(), {}, InputTypeError, "a search over an estimator"),
        (grid(), {"candidates": 0}, InputError, "candidates"),
        (grid(), {"exhausted": "freeze"}, InputError, "exhausted"),
        (grid(), {"guard": "guard.db"}, InputTypeError, "guard must be .*; got a str"),
        (grid(scoring="f1_weighted"), {}, InputError, "metric="),
        (grid(scoring=make_scorer(lambda y, said: 0.5)), {}, InputError, "bounded_difference"),
        (grid(scoring="neg_median_absolute_error"), {}, InputError, "median_absolute_error"),
    ],
)
def test_what_is_refused(search: Any, changes: dict[str, Any], error: type[Exception], expected: str) -> None:
    with pytest.raises(error, match=expected):
        GuardedSearchCV(search, **{"guard": make(), **changes}).fit(*TRAIN)


def test_a_search_that_asks_the_guard_itself_is_refused() -> None:
    guard = make()
    with pytest.raises(InputError, match="an ordinary score"):
        GuardedSearchCV(grid(scoring=guard.scorer(cv="training"), cv=guard.split()), guard).fit(*TRAIN)
    assert guard.history.empty


def test_failing_candidates_are_left_out_and_failing_estimators_show_why() -> None:
    guard = make()
    search = GridSearchCV(tree(), {"max_depth": [3, -1]}, cv=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guarded = GuardedSearchCV(search, guard).fit(*TRAIN)
        assert list(guarded.cv_results_["guarded_source"] != "") == [True, False]
        with pytest.raises(ValueError, match="All the 3 fits failed"):
            GuardedSearchCV(GridSearchCV(tree(), {"max_depth": [-1]}, cv=3), guard).fit(*TRAIN)


@for_each("dtype", [np.float32, object])
def test_holdout_records_of_another_type_are_refused(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    guard = Thresholdout(
        (rows[200:], labels[200:]), train=(rows[:200], labels[:200]), queries=9, mechanism=Claims(holdout_answers=2)
    )
    for part in (slice(None), slice(150, 250)):
        with pytest.raises(InputError, match="not all in the guard's training part"):
            GuardedSearchCV(grid(), guard).fit(rows[part].astype(dtype), labels[part])
    assert guard.history.empty
    GuardedSearchCV(grid(), guard).fit(rows[:200].astype(dtype), labels[:200])
    assert len(guard.history) == 3


def test_few_different_rows_do_not_let_the_holdout_in() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 3, (400, 2)), rng.integers(0, 2, 400)
    parts: dict[str, Any] = {"train": (rows[200:], labels[200:]), "allow_duplicates": True}
    guard = Thresholdout((rows[:200], labels[:200]), queries=9, mechanism=Claims(holdout_answers=2), **parts)
    for part in (slice(None), slice(0, 199)):
        with pytest.raises(InputError, match="not all in the guard's training part"):
            GuardedSearchCV(grid(), guard).fit(rows[part], labels[part])
    GuardedSearchCV(grid(), guard).fit(rows[200:], labels[200:])
    assert len(guard.history) == 3


def fixed(estimator: Any, X: Any, y: Any) -> Any:
    return np.full(len(y), 0.25)


class Fixed(Metric):
    """A metric that does not use its function."""

    def of(self, estimator: Any, X: Any, y: Any) -> Any:
        return fixed(estimator, X, y)


@pytest.mark.slow
@for_each("n_jobs", [1, 2])
def test_a_metric_with_its_own_way_keeps_it(n_jobs: int) -> None:
    metric = Fixed("fixed", "predict", accuracy().values, (0.0, 1.0), True)
    guard = make(mechanism=SparseVector(0.05, 0.001))
    search = GridSearchCV(tree(), {"max_depth": [2]}, cv=2, scoring="accuracy", n_jobs=n_jobs)
    guarded = GuardedSearchCV(search, guard, metric=metric).fit(*TRAIN)
    assert (guarded.answers_[0].name, guarded.answers_[0].value) == ("fixed", 0.25)
    (answer,) = Parallel(n_jobs=n_jobs)([delayed(guard.score)(GaussianNB().fit(*TRAIN), metric, cv=2)])
    # Its own way is not used where folds are predicted, so the training value is another one than the holdout's.
    assert abs(answer.value - 0.25) < 0.05


def test_delegation_and_representation() -> None:
    guarded = GuardedSearchCV(GridSearchCV(make_pipeline(StandardScaler(), GaussianNB()), {}, cv=2), make())
    assert hasattr(guarded, "predict_proba")
    assert not hasattr(guarded, "transform")
    assert not hasattr(guarded, "decision_function")
    assert not hasattr(guarded, "classes_")
    frame = pd.DataFrame(X[:600], columns=[f"pixel {k}" for k in range(64)])
    guarded.fit(frame.to_numpy(), Y[:600])
    assert list(guarded.classes_) == list(range(10))
    assert guarded.n_features_in_ == 64
    assert not hasattr(guarded, "feature_names_in_")
    assert guarded.predict_proba(X).shape == guarded.predict_log_proba(X).shape == (1797, 10)
    assert "GuardedSearchCV(" in repr(guarded)
    assert "GridSearchCV" in guarded._repr_html_()
    scaled = GuardedSearchCV(GridSearchCV(DecisionTreeClassifier(), {}, cv=2), make())
    assert clone(scaled).guard is scaled.guard


@pytest.mark.slow
@for_each("n_jobs", [1, 2])
def test_nested_cross_validation_spends_one_budget_also_in_other_processes(n_jobs: int) -> None:
    guard = make(queries=10)
    guarded = GuardedSearchCV(grid(), guard)
    scores = cross_val_score(guarded, *TRAIN, cv=2, n_jobs=n_jobs)
    assert scores.shape == (2,)
    assert len(guard.history) == 6


def test_metadata_routing() -> None:
    guard = make()
    with sklearn.config_context(enable_metadata_routing=True):
        inner = tree().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(inner, {"max_depth": [2]}, cv=GroupKFold(2))
        guarded = GuardedSearchCV(search, guard)
        weights = np.linspace(0.1, 1.0, 600)
        guarded.fit(*TRAIN, groups=np.arange(600) // 2, sample_weight=weights)
        assert guarded.best_estimator_.tree_.weighted_n_node_samples[0] == pytest.approx(weights.sum())
        assert "sample_weight" in guarded.get_metadata_routing().consumes("fit", {"sample_weight"})
        with pytest.raises(TypeError, match="nonsense"):
            guarded.fit(*TRAIN, groups=np.arange(600) // 2, nonsense=weights)


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    if isinstance(estimator.search.estimator, Ridge):
        reason = "R2 does not exist where all labels of a part are equal, as of these 10 records"
        return {"check_fit2d_1feature": reason, "check_estimators_nan_inf": reason}
    return {}


@pytest.mark.slow
@each_check(
    [
        GuardedSearchCV(
            GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2), noise=SeededNoise(0), random_state=0
        ),
        GuardedSearchCV(
            GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2), metric=r2(4.0), noise=SeededNoise(0), random_state=0
        ),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)
