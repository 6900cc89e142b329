"""GuardedSearchCV fitted to all records: with a KFoldGuard, or with a guard and a holdout of its own."""

import copy
import pickle
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, GroupKFold, HalvingGridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from graphs import Groups
from tests.cases import for_each
from tests.thresholdout.model_selection.searched import DEPTHS, X, Y, grid, tree
from thresholdout import Claims, SeededNoise, Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError
from thresholdout.guard.holdout import origin
from thresholdout.guard.kfold import KFoldGuard
from thresholdout.ledger import open_ledger
from thresholdout.model_selection import GuardedSearchCV


class TestHeldOutByItself:
    def search(self, **changes: Any) -> GuardedSearchCV:
        return GuardedSearchCV(grid(), random_state=0, noise=SeededNoise(0), **changes)

    def test_a_quarter_is_held_out_and_never_fitted(self) -> None:
        guarded = self.search().fit(X, Y)
        assert guarded.guard_.n == 450
        assert isinstance(guarded.guard_, Thresholdout)
        assert len(guarded.guard_.train[0]) == 1347
        assert guarded.best_estimator_.tree_.n_node_samples[0] == 1347
        assert origin(guarded.guard_, X) == "other"
        assert guarded.best_half_width_ < 0.3
        assert guarded.predict(X).shape == (1797,)

    def test_whole_groups_are_held_out(self) -> None:
        groups = np.arange(1797) // 9
        search = clone(grid()).set_params(cv=GroupKFold(3))
        guarded = GuardedSearchCV(search, random_state=0, noise=SeededNoise(0)).fit(X, Y, groups=groups)
        assert isinstance(guarded.guard_.dependence, Groups)
        assert set(guarded.guard_.dependence.independent_groups()) <= {6, 9}
        assert isinstance(guarded.guard_, Thresholdout)
        kept = {tuple(row) for row in guarded.guard_.train[0]}
        inside = np.array([tuple(row) in kept for row in X])
        assert all(len(set(inside[groups == group])) == 1 for group in np.unique(groups))

    @pytest.mark.slow
    def test_it_goes_on_in_its_ledger(self, tmp_path: Path) -> None:
        settings: dict[str, Any] = {"random_state": 0, "ledger": str(tmp_path / "guard.db"), "budget": 3}
        first = GuardedSearchCV(grid(), **settings).fit(X, Y)
        second = GuardedSearchCV(grid(), **settings).fit(X, Y)
        assert (first.n_queries_, second.n_queries_) == (3, 0)
        assert first.best_score_ == second.best_score_

    def test_few_records_certify_nothing_and_say_so(self) -> None:
        with pytest.warns(UserWarning, match="too small to certify anything"):
            guarded = self.search().fit(X[:16], Y[:16] % 2)
        assert all(answer.interval[1] - answer.interval[0] > 0.5 for answer in guarded.answers_)

    def test_sample_weights_are_split_like_the_records(self) -> None:
        weights = np.linspace(0.1, 1.0, 1797)
        guarded = self.search().fit(X, Y, sample_weight=weights)
        inside = guarded.best_estimator_.tree_.weighted_n_node_samples[0]
        assert 0.7 * weights.sum() < inside < 0.8 * weights.sum()

    def test_pickles_and_copies_predict_without_the_guard(self) -> None:
        guarded = self.search().fit(X, Y)
        for other in (pickle.loads(pickle.dumps(guarded)), copy.deepcopy(guarded)):
            assert np.array_equal(other.predict(X), guarded.predict(X))
            assert other.answers_ == guarded.answers_
            assert not hasattr(other, "guard_")

    def test_an_error_about_records_that_are_held_out_is_charged_and_hidden(self, tmp_path: Path) -> None:
        rows, labels = np.array([["a"], ["b"]] * 200, dtype=object), np.arange(400) // 2 % 2
        _, held = next(ShuffleSplit(1, test_size=0.25, random_state=0).split(np.zeros((400, 1))))
        rows[held[7], 0] = "a patient"
        search = GridSearchCV(make_pipeline(OneHotEncoder(), tree()), {"decisiontreeclassifier__max_depth": [1]}, cv=2)
        ledger = str(tmp_path / "guard.db")
        guarded = GuardedSearchCV(search, random_state=0, ledger=ledger)
        with pytest.raises(InputError, match="failed on the holdout") as caught:
            guarded.fit(rows, labels)
        assert "patient" not in "".join(traceback.format_exception(caught.value))
        with open_ledger(ledger) as opened:
            (identity,) = opened.guards()
            assert [entry.source for entry in opened.entries(identity)] == ["failed"]

    def test_labels_are_needed(self) -> None:
        with pytest.raises(ValueError, match="requires y to be passed"):
            self.search().fit(X)


class TestWithKFoldGuard:
    def test_every_candidate_is_one_query_and_the_best_is_fitted_to_all_records(self) -> None:
        guard = KFoldGuard((X, Y), cv=2, queries=6, mechanism=Claims(holdout_answers=4), random_state=0)
        guarded = GuardedSearchCV(grid(), guard)
        assert guarded.count_queries() == 3
        guarded.fit(X, Y)
        assert len(guard.history) == 3
        assert guarded.search_ is None
        assert guarded.cv_results_["params"] == [{"max_depth": depth} for depth in (1, 3, 6)]
        assert not any(name.startswith(("mean_", "split")) for name in guarded.cv_results_)
        assert guarded.best_estimator_.tree_.n_node_samples[0] == 1797
        assert guarded.best_score_ == max(answer.value for answer in guarded.answers_)
        again = GuardedSearchCV(grid(), guard).fit(X, Y)
        assert again.n_queries_ == 0
        assert again.best_params_ == guarded.best_params_

    def test_the_grid_is_one_list(self) -> None:
        """Answers are those of `KFoldGuard.score_all`, whose intervals are narrower than those of single queries."""
        guard, other, single = (KFoldGuard((X, Y), cv=2) for _ in range(3))
        guarded = GuardedSearchCV(grid(), guard).fit(X, Y)
        models = [tree().set_params(max_depth=depth) for depth in (1, 3, 6)]
        listed = other.score_all(models)
        assert [answer.interval for answer in guarded.answers_] == [answer.interval for answer in listed]
        assert list(guarded.cv_results_["guarded_score"]) == [answer.value for answer in listed]
        alone = [single.score(model) for model in models]
        assert all(one.half_width < each.half_width for one, each in zip(listed, alone, strict=True))
        assert list(guarded.cv_results_["rank_guarded"]) == [3, 2, 1]

    def test_answered_candidates_and_equal_ones_cost_nothing_in_a_list(self) -> None:
        guard = KFoldGuard((X, Y), cv=2, queries=3)
        GuardedSearchCV(GridSearchCV(tree(), {"max_depth": [3]}), guard).fit(X, Y)
        search = GridSearchCV(tree(), {"max_depth": [1, 3, 1, 6, 8]})
        with pytest.warns(GuardExhaustedWarning, match="All 3 queries"):
            guarded = GuardedSearchCV(search, guard).fit(X, Y)
        assert [answer.repeated for answer in guarded.answers_] == [False, True, True, False]
        assert (guarded.n_queries_, guarded.exhausted_) == (2, "queries")
        assert np.isnan(guarded.cv_results_["guarded_score"][4])
        assert len(guard.history) == 3

    def test_the_best_alone_is_told_if_asked_for(self) -> None:
        guard = KFoldGuard((X, Y), cv=2)
        guarded = GuardedSearchCV(grid(), guard, report="best").fit(X, Y)
        again = GuardedSearchCV(grid(), guard, report="best").fit(X, Y)
        assert (guarded.best_params_, guarded.n_queries_, again.n_queries_) == ({"max_depth": 6}, 1, 0)
        assert again.best_interval_ == guarded.best_interval_
        assert len(guard.history) == 1

    @for_each("report", ["all", "best"])
    def test_a_candidate_that_fails_leaves_the_others_their_answers(self, report: Any) -> None:
        guard = KFoldGuard((X, Y), cv=2)
        search = GridSearchCV(tree(), {"max_depth": [3, -1, 6]})  # no tree has a depth of -1
        guarded = GuardedSearchCV(search, guard, report=report).fit(X, Y)
        splits = [(fold.train, fold.test) for fold in guard._folds]
        scores = [cross_val_score(tree().set_params(max_depth=depth), X, Y, cv=splits) for depth in (3, 6)]
        truths = [float(np.mean(one)) for one in scores]
        assert guarded.best_params_ == {"max_depth": 6}
        assert guarded.best_interval_[0] < truths[1] < guarded.best_interval_[1]
        if report == "all":
            first, failing, _ = guarded.answers_
            assert first.interval[0] < truths[0] < first.interval[1]
            assert failing.interval[0] == 0.0
            assert failing.interval[1] < first.value
        assert "failed" not in set(guard.history["source"])
        assert guard.status.exhausted is None
        assert guard.score(tree().set_params(max_depth=8)).half_width < 0.2

    @for_each(
        ("search", "rows", "changes", "expected"),
        [
            (grid(), slice(1, None), {}, "all records of the KFoldGuard"),
            (grid(), slice(None), {"candidates": 2}, "candidates"),
            (HalvingGridSearchCV(tree(), DEPTHS), slice(None), {}, "candidates depend on scores"),
            (grid(scoring="balanced_accuracy"), slice(None), {}, "a mean over records"),
        ],
    )
    def test_what_is_refused(self, search: Any, rows: slice, changes: dict[str, Any], expected: str) -> None:
        guard = KFoldGuard((X, Y), cv=2, queries=6, mechanism=Claims(holdout_answers=4))
        with pytest.raises(InputError, match=expected):
            GuardedSearchCV(search, guard, **changes).fit(X[rows], Y[rows])
        assert guard.history.empty
