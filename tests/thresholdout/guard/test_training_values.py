"""Training values by cross-validation, which is the default, and what stands in for it."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graphs import Groups, MovingWindow
from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError, InputTypeError
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.sharing.shared_objects import share
from thresholdout.model_selection import GuardedSearchCV
from thresholdout.scoring import metrics

RNG = np.random.default_rng(7)
N = 240
X = RNG.normal(size=(2 * N, 3))
Y = (X[:, 0] + RNG.normal(size=2 * N) > 0).astype(int)
TRAIN, HOLDOUT = (X[:N], Y[:N]), (X[N:], Y[N:])


def make(**settings: Any) -> Thresholdout:
    return Thresholdout(HOLDOUT, **{"train": TRAIN, **settings})


def nearest(k: int = 1, **settings: Any) -> Any:
    return KNeighborsClassifier(k, **settings).fit(*TRAIN)


def told(guard: Thresholdout) -> float:
    return float(guard.history["train"].iloc[-1])


class Told:
    """A model that cannot be fitted again."""

    def predict(self, records: Any) -> Any:
        return (np.asarray(records)[:, 0] > 0).astype(int)


class TestTheDefault:
    def test_is_the_cross_validation_of_scikit_learn(self) -> None:
        guard, model = make(), nearest()
        guard.score(model)
        folds = cross_val_predict(KNeighborsClassifier(1), *TRAIN, cv=5)
        assert told(guard) == pytest.approx(np.mean(folds == TRAIN[1]), abs=1e-12)
        assert told(guard) < 0.8
        guard.score(model, cv="training")
        assert told(guard) == 1.0

    @pytest.mark.slow
    def test_of_a_loss_and_of_statistics(self) -> None:
        guard, model = make(), LogisticRegression().fit(*TRAIN)
        shares = cross_val_predict(LogisticRegression(), *TRAIN, cv=5, method="predict_proba")
        guard.score(model, "brier_score")
        assert told(guard) == pytest.approx(np.mean((shares[:, 1] - TRAIN[1]) ** 2), abs=1e-9)
        guard.score(model, "f1")
        expected = f1_score(TRAIN[1], cross_val_predict(LogisticRegression(), *TRAIN, cv=5))
        assert told(guard) == pytest.approx(expected, abs=1e-9)
        guard.score(model, "roc_auc")
        scores = cross_val_predict(LogisticRegression(), *TRAIN, cv=5, method="decision_function")
        assert told(guard) == pytest.approx(roc_auc_score(TRAIN[1], scores), abs=1e-9)

    def test_of_a_regression(self) -> None:
        y = X @ [1.0, 2.0, 0.0] + RNG.normal(size=2 * N)
        guard = Thresholdout((X[N:], y[N:]), train=(X[:N], y[:N]))
        guard.score(Ridge().fit(X[:N], y[:N]), metrics.squared_error(50.0))
        folds = cross_val_predict(Ridge(), X[:N], y[:N], cv=KFold(5))
        assert told(guard) == pytest.approx(np.mean((folds - y[:N]) ** 2), rel=1e-9)

    def test_keeps_groups_whole(self) -> None:
        groups = np.arange(N) // 6
        guard = make(dependence=Groups(1000 + groups), train=(*TRAIN, groups))
        guard.score(nearest(), cv=GroupKFold(4))
        folds = cross_val_predict(KNeighborsClassifier(1), *TRAIN, groups=groups, cv=GroupKFold(4))
        assert told(guard) == pytest.approx(np.mean(folds == TRAIN[1]), abs=1e-12)
        twins = np.concatenate([TRAIN[0][: N // 2]] * 2), np.concatenate([TRAIN[1][: N // 2]] * 2)
        pair = np.tile(np.arange(N // 2), 2)
        guard = Thresholdout(HOLDOUT, train=(*twins, pair), dependence=Groups(1000 + groups))
        model = KNeighborsClassifier(1).fit(*twins)
        guard.score(model)
        assert told(guard) < 0.8  # a copy of a record is never among those that are fitted
        guard.score(model, cv=StratifiedKFold(5))
        assert told(guard) > 0.8

    def test_goes_forward_in_a_series(self) -> None:
        guard = make(dependence=MovingWindow(N, 2))
        guard.score(nearest())
        hits = [
            KNeighborsClassifier(1).fit(TRAIN[0][fit], TRAIN[1][fit]).predict(TRAIN[0][test]) == TRAIN[1][test]
            for fit, test in TimeSeriesSplit(5).split(TRAIN[0])
        ]
        assert told(guard) == pytest.approx(np.concatenate(hits).mean(), abs=1e-12)

    @pytest.mark.slow
    def test_of_small_classes(self) -> None:
        y = TRAIN[1].copy()
        y[:3] = 2
        guard = Thresholdout(HOLDOUT, train=(TRAIN[0], y))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            guard.score(nearest())
            guard.score(LogisticRegression().fit(TRAIN[0], y), "log_loss")
        one = np.zeros(N, dtype=int)
        one[7] = 1
        guard = Thresholdout(HOLDOUT, train=(TRAIN[0], one))
        guard.score(KNeighborsClassifier(1).fit(TRAIN[0], one))
        assert told(guard) == pytest.approx(1.0 - 1.0 / N, abs=0.02)
        with pytest.raises(InputError, match=r"got .*fit 5 of 5, to 192 records, raises ValueError: .*train_values="):
            guard.score(LogisticRegression().fit(TRAIN[0], one))
        assert len(guard.history) == 1

    @for_each("size", [2, 3, 4])
    def test_of_very_few_records(self, size: int) -> None:
        train = TRAIN[0][:size], np.arange(size) % 2
        guard = Thresholdout(HOLDOUT, train=train)
        guard.score(KNeighborsClassifier(1).fit(*train))
        assert 0.0 <= told(guard) <= 1.0

    def test_of_frames_sparse_records_and_pipelines(self) -> None:
        frame, labels = pd.DataFrame(X, columns=list("abc")), pd.Series(Y)
        expected = cross_val_predict(make_pipeline(StandardScaler(), KNeighborsClassifier(3)), *TRAIN, cv=5)
        model = make_pipeline(StandardScaler(), KNeighborsClassifier(3)).fit(frame[:N], labels[:N])
        guard = Thresholdout((frame[N:], labels[N:]), train=(frame[:N], labels[:N]))
        guard.score(model)
        assert told(guard) == pytest.approx(np.mean(expected == TRAIN[1]), abs=1e-12)
        rows = scipy.sparse.csr_matrix(X)
        guard = Thresholdout((rows[N:], Y[N:]), train=(rows[:N], Y[:N]))
        guard.score(KNeighborsClassifier(1).fit(rows[:N], Y[:N]))
        assert told(guard) == pytest.approx(np.mean(cross_val_predict(nearest(), *TRAIN, cv=5) == TRAIN[1]))

    def test_says_how_many_fits_and_makes_each_once(self, caplog: pytest.LogCaptureFixture) -> None:
        guard = make()
        with caplog.at_level(logging.INFO, logger="thresholdout.guard.training_values"):
            guard.score(LogisticRegression().fit(*TRAIN))
        (line,) = [record.getMessage() for record in caplog.records]
        assert line.startswith("5 fits of LogisticRegression to parts of 240 training records")


class TestAnySplitter:
    @pytest.mark.slow
    @for_each(
        "cv",
        [
            TimeSeriesSplit(4),
            ShuffleSplit(3, test_size=30, random_state=1),
            RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ],
    )
    def test_counts_every_test_once(self, cv: Any) -> None:
        guard = make()
        guard.score(nearest(), cv=cv)
        hits = [
            KNeighborsClassifier(1).fit(TRAIN[0][fit], TRAIN[1][fit]).predict(TRAIN[0][test]) == TRAIN[1][test]
            for fit, test in cv.split(*TRAIN)
        ]
        assert told(guard) == pytest.approx(np.concatenate(hits).mean(), abs=1e-12)
        guard.score(nearest(), "f1", cv=list(cv.split(*TRAIN)))
        predicted = [
            (KNeighborsClassifier(1).fit(TRAIN[0][fit], TRAIN[1][fit]).predict(TRAIN[0][test]), TRAIN[1][test])
            for fit, test in cv.split(*TRAIN)
        ]
        said, true = (np.concatenate(side) for side in zip(*predicted, strict=True))
        assert told(guard) == pytest.approx(f1_score(true, said), abs=1e-9)

    def test_a_generator_serves_and_is_known_again(self) -> None:
        guard = make()
        first = guard.score(nearest(), cv=(pair for pair in KFold(3).split(X[:N])))
        folds = cross_val_predict(nearest(), *TRAIN, cv=KFold(3))
        assert told(guard) == pytest.approx(np.mean(folds == TRAIN[1]), abs=1e-12)
        again = guard.score(nearest(), cv=(pair for pair in KFold(3).split(X[:N])))
        assert again.repeated
        assert again.value == first.value

    def test_gets_the_declared_groups(self) -> None:
        groups = np.repeat(np.arange(4), N // 4)
        guard = make(dependence=Groups(10 + groups), train=(*TRAIN, groups))
        guard.score(nearest(), cv=LeaveOneGroupOut())
        folds = cross_val_predict(nearest(), *TRAIN, groups=groups, cv=LeaveOneGroupOut())
        assert told(guard) == pytest.approx(np.mean(folds == TRAIN[1]), abs=1e-12)

    @pytest.mark.slow
    def test_compares_both_models_by_the_same_folds(self) -> None:
        guard = make(sampling="iid")
        for about in ("difference", "win_rate"):
            found = guard.compare(nearest(9, leaf_size=20), nearest(9), cv=ShuffleSplit(3), about=about)
            assert told(guard) == (0.0 if about == "difference" else 0.5)
            assert found.verdict == "not settled"
        listed = guard.compare_all([nearest(9, leaf_size=k) for k in (20, 40)], nearest(9), cv=ShuffleSplit(2))
        assert guard.history["train"].iloc[-2:].tolist() == [0.0, 0.0]
        assert len(listed) == 2

    def test_weighs_the_records_that_were_tested(self) -> None:
        guard, cv = make(), TimeSeriesSplit(3)
        weights = RNG.uniform(0.5, 2.0, size=N)
        guard.score(nearest(), cv=cv, sample_weight=(weights, np.ones(N)))
        hits = [
            KNeighborsClassifier(1).fit(TRAIN[0][fit], TRAIN[1][fit]).predict(TRAIN[0][test]) == TRAIN[1][test]
            for fit, test in cv.split(*TRAIN)
        ]
        tested = np.concatenate([test for _, test in cv.split(*TRAIN)])
        expected = np.mean(np.concatenate(hits) * weights[tested]) / weights.mean()
        assert told(guard) == pytest.approx(expected, abs=1e-9)

    @for_each("sampling", ["independent", "fixed_features"])
    def test_values_of_any_number_bound_nothing(self, sampling: Any) -> None:
        """A training value is a claim: as few tests as one leave a valid interval."""
        guard = make(sampling=sampling)
        found = guard.score(nearest(5), cv=[(np.arange(1, N), np.array([0]))])
        truth = float(np.mean(nearest(5).predict(HOLDOUT[0]) == HOLDOUT[1]))
        assert found.interval[0] <= truth <= found.interval[1]
        found_difference = guard.compare(nearest(15), nearest(1), cv=[(np.arange(1, N), np.array([0]))])
        assert found_difference.interval[0] < found_difference.interval[1]


class TestModelsThatCannotBeFittedAgain:
    @for_each(
        "model",
        [
            Told(),
            FrozenEstimator(LogisticRegression().fit(*TRAIN)),
            make_pipeline(StandardScaler().fit(TRAIN[0]), FrozenEstimator(LogisticRegression().fit(*TRAIN))),
        ],
    )
    def test_one_sentence_says_what_to_give(self, model: Any) -> None:
        guard = make()
        expected = r"estimator must be an estimator that every fold can fit; .* Pass train_values=.*cv='training'"
        asks = (guard.score, guard.final_check, lambda one: guard.compare(one, one), lambda one: guard.score_all([one]))
        for ask in asks:
            with pytest.raises(InputError, match=expected):
                ask(model)
        with pytest.raises(InputError, match=expected):
            guard.gate(model).propose(model)
        assert guard.history.empty
        guard.score(model, cv="training")
        guard.score(model, train_values=0.7)
        assert told(guard) == 0.7
        guard.compare(model, nearest(), train_values=(np.ones(N), np.zeros(N)))
        assert told(guard) == 1.0
        guard.final_check(model, train_values=0.75)
        assert told(guard) == 0.75

    @pytest.mark.filterwarnings("ignore:a query cannot be identified by its content")
    def test_searches_that_ask_a_guard_are_not_asked_again_in_each_fold(self) -> None:
        guard = make()
        search = GridSearchCV(nearest(), {"n_neighbors": [1, 3]}, scoring=guard.scorer(), cv=guard.split()).fit(*TRAIN)
        with pytest.raises(InputError, match="that asks a guard itself"):
            guard.score(search)
        assert len(guard.history) == 2
        guard.score(search.best_estimator_)
        guard.score(search, cv="training")

    def test_what_is_not_fitted_costs_nothing(self) -> None:
        guard = make()
        with pytest.raises(InputError, match=r"estimator must be .*; got a KNeighborsClassifier that is not fitted"):
            guard.score(KNeighborsClassifier())
        assert guard.history.empty

    def test_values_that_are_none(self) -> None:
        guard, model = make(), nearest()
        for values in (np.ones(N - 1), np.full(N, 2.0), "high", np.ones((N, 2))):
            with pytest.raises((InputError, InputTypeError), match="train_values"):
                guard.score(model, train_values=values)
        with pytest.raises(InputError, match=r"cv must be None beside train_values=; got 5"):
            guard.score(model, cv=5, train_values=0.5)
        with pytest.raises(InputTypeError, match="train_values must be the f1 of the training part; got an ndarray"):
            guard.score(model, "f1", train_values=np.ones(N))
        for pair in (0.5, (0.5, 0.5), (np.ones(N),), (np.ones(N), np.ones(3))):
            with pytest.raises((InputError, InputTypeError), match="train_values"):
                guard.compare(model, nearest(3), train_values=pair)  # type: ignore[arg-type]
        assert guard.history.empty

    def test_a_gate_takes_values_of_both(self) -> None:
        guard = make(sampling="iid")
        rng = np.random.default_rng(0)
        low, high = (rng.uniform(size=N) < share for share in (0.5, 0.9))
        gate = guard.gate(Told(), train_values=low)
        decision = gate.propose(nearest(15), train_values=high)
        assert decision.gain == pytest.approx(high.mean() - low.mean())
        with pytest.raises(InputError, match=r"guard.gate\(champion, train_values="):
            guard.gate(Told()).propose(nearest(15), train_values=high)
        with pytest.raises(InputError, match="one value for each training record"):
            gate.propose(nearest(3), train_values=0.5)
        guard.gate(nearest()).propose(nearest(15))  # both by the default folds


class TestFitsThatAreNotMadeTwice:
    def test_other_metrics_and_comparisons_take_the_same_predictions(self, caplog: pytest.LogCaptureFixture) -> None:
        guard, model = make(), nearest(3)
        if content_key(model) is None:
            pytest.skip("scikit-learn is not installed as a package here")
        with caplog.at_level(logging.INFO, logger="thresholdout.guard.training_values"):
            guard.score(model)
            guard.score(nearest(3), "zero_one_loss")
            guard.compare(nearest(5), model)
            assert [record.getMessage()[:6] for record in caplog.records] == ["5 fits"] * 2
            guard.score(model, cv=3)
            guard.score(model, cv=KFold(4))
            guard.score(model, cv=list(KFold(4).split(X[:N])))
            assert [record.getMessage()[:6] for record in caplog.records[2:]] == ["3 fits", "4 fits"]


class TestScorers:
    def test_candidates_are_cross_validated_by_the_same_folds(self) -> None:
        guard = make()
        scorer = guard.scorer(cv=ShuffleSplit(2))
        GridSearchCV(nearest(), {"leaf_size": [20, 40]}, scoring=scorer, cv=guard.split()).fit(*TRAIN)
        first, second = guard.history["train"]
        assert first == second < 1.0

    def test_one_without_the_guards_split_asks_nothing_and_says_so_once(self) -> None:
        guard = make()
        search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, scoring=guard.scorer(), cv=3)
        with pytest.warns(UserWarning, match=r"does not ask the guard .* Pass cv=guard.split\(\)") as caught:
            search.fit(*TRAIN)
        assert len(caught) == 1
        assert guard.history.empty

    @pytest.mark.slow
    def test_one_that_asks_says_nothing(self) -> None:
        guard, model = make(), KNeighborsClassifier()
        inner = GridSearchCV(model, {"n_neighbors": [1, 3]}, scoring=guard.scorer(), cv=guard.split())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cross_validate(model, *TRAIN, scoring=guard.scorer(), cv=guard.split(), return_train_score=True)
            cross_validate(inner, *TRAIN, scoring=guard.scorer(), cv=2)
            cross_validate(inner, *TRAIN, scoring=guard.scorer("log_loss"), cv=2, n_jobs=2)
        assert len(guard.history) == 5  # candidates of the third search are known from the second

    @pytest.mark.slow
    def test_intervals_are_columns(self) -> None:
        guard = make()
        search = GridSearchCV(
            KNeighborsClassifier(),
            {"n_neighbors": [1, 3]},
            scoring=guard.scorer(intervals=True),
            cv=guard.split(),
            refit="score",
        ).fit(*TRAIN)
        for end in ("low", "high"):
            assert search.cv_results_[f"mean_test_{end}"].tolist() == guard.history[end].tolist()
        assert search.cv_results_["mean_test_score"].tolist() == guard.history["value"].tolist()
        found = cross_validate(
            KNeighborsClassifier(),
            *TRAIN,
            scoring=guard.scorer(["brier_score", "accuracy"], intervals=True),
            cv=guard.split(),
            return_train_score=True,
        )
        loss = guard.history.iloc[-2]
        assert found["test_brier_score_low"].tolist() == [-loss["high"]]
        assert found["test_brier_score_high"].tolist() == [-loss["low"]]
        assert found["train_brier_score_low"] == found["train_brier_score"] == found["train_brier_score_high"]
        guard = make(queries=1)
        scorer = guard.scorer(intervals=True, exhausted="train")
        cross_validate(nearest(), *TRAIN, scoring=scorer, cv=guard.split())
        with pytest.warns(GuardExhaustedWarning):
            found = cross_validate(nearest(3), *TRAIN, scoring=scorer, cv=guard.split())
        assert np.isfinite(found["test_score"]).all()
        assert np.isnan([found["test_low"], found["test_high"]]).all()  # nothing certifies what stands in
        with pytest.raises(InputTypeError, match="intervals"):
            guard.scorer(intervals="yes")  # type: ignore[arg-type]


@pytest.mark.slow
def test_from_another_process_it_is_the_same() -> None:
    guard = make()
    guard.score(nearest())
    there: Any = share(guard)
    there.score(nearest(leaf_size=20))
    there.score(nearest(), train_values=0.5)
    there.score(LinearRegression().fit(*TRAIN), metrics.squared_error(4.0), cv=TimeSeriesSplit(3))
    there.score(nearest(), cv="training")
    values = guard.history["train"].tolist()
    assert values[0] == values[1]
    assert values[2] == 0.5
    assert values[4] == 1.0
    gate: Any = share(guard.gate(nearest()))
    assert gate.propose(nearest(15)).gain == pytest.approx(
        np.mean(cross_val_predict(nearest(15), *TRAIN) == TRAIN[1]) - values[0]
    )


class TestSearches:
    """A search that says nothing about its folds takes those that are declared."""

    SEARCH = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]})
    GROUPS = np.tile(np.arange(N // 2), 2)
    TWINS = np.concatenate([TRAIN[0][: N // 2]] * 2), np.concatenate([TRAIN[1][: N // 2]] * 2)

    def found(self, guard: Any, **settings: Any) -> float:
        search = GuardedSearchCV(self.SEARCH, guard, **settings).fit(*self.TWINS)
        return float(search.cv_results_["mean_test_score"][0])

    @pytest.mark.slow
    def test_of_declared_groups_and_orders(self) -> None:
        other = 1000 + np.arange(N)
        grouped = Thresholdout(HOLDOUT, train=(*self.TWINS, self.GROUPS), dependence=Groups(other))
        assert self.found(Thresholdout(HOLDOUT, train=self.TWINS)) > 0.75  # copies of what was fitted
        splits = list(StratifiedGroupKFold(5).split(*self.TWINS, self.GROUPS))
        expected = cross_val_score(KNeighborsClassifier(1), *self.TWINS, cv=splits).mean()
        assert self.found(grouped) == pytest.approx(expected, abs=1e-12)
        assert expected < 0.75
        with pytest.raises(InputError, match=r"groups must be .*; got None beside records other than"):
            GuardedSearchCV(self.SEARCH, grouped).fit(self.TWINS[0][::-1], self.TWINS[1][::-1])
        backwards = GuardedSearchCV(self.SEARCH, grouped).fit(
            self.TWINS[0][::-1], self.TWINS[1][::-1], groups=self.GROUPS[::-1]
        )
        assert backwards.cv_results_["mean_test_score"][0] < 0.75
        series = Thresholdout(HOLDOUT, train=self.TWINS, dependence=MovingWindow(N, 1))
        expected = cross_val_score(KNeighborsClassifier(1), *self.TWINS, cv=TimeSeriesSplit(5)).mean()
        assert self.found(series) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
    def test_without_a_guard_and_with_folds_of_its_own(self) -> None:
        search = GuardedSearchCV(self.SEARCH, random_state=0).fit(*self.TWINS, groups=self.GROUPS)
        assert search.cv_results_["mean_test_score"][0] < 0.75
        own = clone(self.SEARCH).set_params(cv=StratifiedKFold(5))
        search = GuardedSearchCV(own, random_state=0).fit(*self.TWINS, groups=self.GROUPS)
        assert search.cv_results_["mean_test_score"][0] > 0.75

    @pytest.mark.slow
    def test_the_best_is_reported_with_its_interval(self) -> None:
        guard = make()
        grid = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring="neg_brier_score")
        search = GuardedSearchCV(grid, guard, report="all").fit(*TRAIN)
        best = guard.history.iloc[int(np.argmin(guard.history["value"]))]
        assert search.best_score_ == -best["value"]
        assert search.best_interval_ == (-best["high"], -best["low"])
        results = search.cv_results_
        assert results["guarded_low"][search.best_index_] == -best["high"]
        assert (results["guarded_low"] <= results["guarded_score"]).all()
        assert (results["guarded_score"] <= results["guarded_high"]).all()


@pytest.mark.parametrize("key", [None, "mine"])
@pytest.mark.parametrize("repeated", [False, True])
def test_a_model_that_was_fitted_again_is_applied_again_before_it_is_charged(key: str | None, repeated: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    guard = Thresholdout((X[200:], y[200:]), train=(X[:200], y[:200]), queries=20)
    model = LogisticRegression().fit(X[:200], y[:200])
    for _ in range(1 + repeated):
        guard.score(model, train_values=0.5)
    model.fit(X[:200, :2], y[:200])
    with pytest.raises(InputError, match="fitted to 2 features"):
        guard.score(model, train_values=0.5, key=key)
    assert guard.status.asked == 1
