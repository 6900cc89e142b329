"""GuardedSearchCV asks its candidates as one list: exact widths, one charge, and nothing for a search that fails."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV

from tests.cases import for_each
from tests.thresholdout.model_selection.digits import DEPTHS, HOLDOUT, TRAIN, holdout_scores, tree
from thresholdout import BudgetExhausted, Claims, InputError, SparseVector, Thresholdout
from thresholdout.errors import GuardExhaustedWarning
from thresholdout.model_selection import GuardedSearchCV

N = len(HOLDOUT[1])


def plain(**changes: Any) -> Thresholdout:
    return Thresholdout(HOLDOUT, train=TRAIN, **changes)


def grid(**changes: Any) -> GridSearchCV:
    return GridSearchCV(tree(), DEPTHS, **{"cv": 3, **changes})


def clopper_pearson(score: float, level: float) -> tuple[float, float]:
    k = round(score * N)
    return float(beta.ppf(level / 2, k, N - k + 1)), float(beta.ppf(1 - level / 2, k + 1, N - k))


def test_all_candidates_have_exact_intervals_of_a_list() -> None:
    guard = plain()
    guarded = GuardedSearchCV(grid(), guard, report="all", reserve=0.0).fit(*TRAIN)
    for score, answer in zip(holdout_scores([5, 3, 1]), guarded.answers_, strict=True):  # by cross-validated rank
        assert answer.value == pytest.approx(score, abs=1e-12)
        assert answer.interval == pytest.approx(clopper_pearson(score, 0.05 / 3), abs=1e-5)
    assert guard.history["list"].tolist() == [1, 1, 1]
    assert guard.history["candidate"].tolist() == [f"{k} {{'max_depth': {d}}}" for k, d in ((2, 5), (1, 3), (0, 1))]
    with pytest.raises(BudgetExhausted, match="is exhausted after"):
        guard.ask(0.5, np.arange(N) < 9)


def test_by_default_a_guard_that_is_given_tells_the_best_one_alone() -> None:
    guard = plain()
    guarded = GuardedSearchCV(grid(), guard).fit(*TRAIN)
    (answer,) = guarded.answers_
    assert guarded.best_params_ == {"max_depth": 5}
    assert answer.value == guarded.best_score_ == pytest.approx(holdout_scores([5])[0], abs=1e-12)
    kept = clopper_pearson(answer.value, 0.05 * (1 - 0.2 - 2.0**-19) / 3)
    assert answer.interval == pytest.approx(kept, abs=1e-5)
    assert np.isnan(guarded.cv_results_["guarded_score"]).tolist() == [True, True, False]
    assert guarded.cv_results_["rank_guarded"].tolist() == [2, 2, 1]
    assert (guarded.n_queries_, guarded.exhausted_, len(guard.history)) == (1, None, 1)
    told = guard.status.information_released
    assert told is not None
    assert told < math.log(5) + math.log(3) + 6.0
    losses = GuardedSearchCV(grid(), plain(), metric="zero_one_loss").fit(*TRAIN)
    assert losses.best_params_ == {"max_depth": 5}
    assert losses.best_score_ == pytest.approx(answer.value - 1.0)


@pytest.mark.slow
@for_each("depths", [[5, 3, 1], [2, 1, 3, 5]])
def test_candidates_with_an_answer_keep_it_in_another_grid(depths: list[int]) -> None:
    """Their rows in ``cv_results_`` are others, and their models the same."""
    guard = plain()
    GuardedSearchCV(grid(), guard, report="all").fit(*TRAIN)
    again = GuardedSearchCV(GridSearchCV(tree(), {"max_depth": depths}, cv=3), guard, report="all").fit(*TRAIN)
    assert again.cv_results_["guarded_score"].tolist() == pytest.approx(holdout_scores(depths), abs=1e-12)
    assert again.n_queries_ == len(depths) - 3
    assert len(guard.history) == len(depths)


@pytest.mark.slow
@for_each("depths", [[5, 3, 1], [2, 1, 3, 5]])
def test_the_best_can_be_told_of_another_grid(depths: list[int]) -> None:
    guard = plain()
    GuardedSearchCV(grid(), guard, candidates=2).fit(*TRAIN)
    again = GuardedSearchCV(GridSearchCV(tree(), {"max_depth": depths}, cv=3), guard, candidates=2).fit(*TRAIN)
    assert again.best_params_ == {"max_depth": 5}


@pytest.mark.slow
@for_each(("report", "asked"), [("all", 3), ("best", 1)])
def test_candidates_that_are_the_same_are_one_query(report: Any, asked: int) -> None:
    guard = plain()
    twice = [{"max_depth": [1, 3, 5]}, {"max_depth": [3]}]
    guarded = GuardedSearchCV(GridSearchCV(tree(), twice, cv=3), guard, report=report, reserve=0.0).fit(*TRAIN)
    assert (guarded.n_queries_, len(guard.history)) == (asked, asked)
    scores = guarded.cv_results_["guarded_score"]
    if report == "all":
        assert scores.tolist() == pytest.approx(holdout_scores([1, 3, 5, 3]), abs=1e-12)
    low, high = clopper_pearson(holdout_scores([5])[0], 0.05 / 3)
    assert guarded.best_half_width_ == pytest.approx(max(high - scores[2], scores[2] - low), abs=1e-4)


@pytest.mark.slow
def test_answers_do_not_depend_on_the_number_of_workers() -> None:
    found = [GuardedSearchCV(grid(n_jobs=n_jobs), plain(), report="all").fit(*TRAIN) for n_jobs in (1, 2)]
    assert found[0].answers_ == found[1].answers_


def test_of_a_halving_search_the_last_round_is_one_list() -> None:
    guard = plain()
    search = HalvingGridSearchCV(tree(), {"max_depth": [1, 2, 3, 5]}, cv=3, factor=2, random_state=0, min_resources=300)
    guarded = GuardedSearchCV(search, guard, report="all").fit(*TRAIN)
    last = guarded.cv_results_["iter"] == guarded.cv_results_["iter"].max()
    assert 1 < last.sum() < len(last)
    assert guard.history["list"].tolist() == [1] * last.sum()
    assert np.array_equal(np.isfinite(guarded.cv_results_["guarded_score"]), last)


class Breaks(type(tree())):  # type: ignore[misc]
    """A tree of depth 3 cannot be fitted to all training records; one of depth 5 cannot predict the holdout."""

    where = "fit"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        if self.where == "fit" and self.max_depth == 3 and len(X) == len(TRAIN[0]):
            raise ValueError("no")
        return super().fit(X, y, sample_weight, check_input)

    def predict(self, X: Any, check_input: bool = True) -> Any:
        if self.where == "predict" and self.max_depth == 5 and len(X) == N:
            raise ValueError("labels: 1 2 3")
        return super().predict(X, check_input)


def test_nothing_is_charged_if_a_fit_fails() -> None:
    guard = plain()
    with pytest.raises(ValueError, match=r"^no$"):
        GuardedSearchCV(GridSearchCV(Breaks(random_state=0), DEPTHS, cv=3), guard).fit(*TRAIN)
    assert guard.history.empty
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)


def test_a_candidate_that_fails_on_the_holdout_is_charged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Breaks, "where", "predict")
    guard = plain(ledger=tmp_path / "guard.db")
    models = {f"depth {depth}": Breaks(max_depth=depth, random_state=0).fit(*TRAIN) for depth in (1, 5)}
    for report in ("all", "best"):
        for _ in range(2):
            with pytest.raises(InputError, match="failed on the holdout") as caught:
                guard.score_all(models, keys=["a", "b"], report=report, cv="training")
            assert "labels" not in str(caught.value)
    assert guard.history["source"].tolist() == ["failed", "failed"]


@pytest.mark.slow
def test_fewer_queries_than_candidates_are_a_list_of_the_first() -> None:
    guard = plain(queries=2)
    with pytest.warns(GuardExhaustedWarning, match="has 2 answers"):
        guarded = GuardedSearchCV(grid(), guard, report="all").fit(*TRAIN)
    assert guard.history["list"].tolist() == [1, 1]
    assert np.isnan(guarded.cv_results_["guarded_score"]).tolist() == [True, False, False]
    assert guarded.exhausted_ == "queries"
    other = plain(queries=2)
    with pytest.raises(BudgetExhausted):
        GuardedSearchCV(grid(), other, report="all", exhausted="raise").fit(*TRAIN)
    assert other.history.empty
    with pytest.warns(GuardExhaustedWarning):
        trained = GuardedSearchCV(grid(), plain(queries=2), report="all", exhausted="train").fit(*TRAIN)
    assert trained.cv_results_["guarded_source"].tolist() == ["uncertified", "holdout", "holdout"]
    assert GuardedSearchCV(grid(), plain(queries=1)).fit(*TRAIN).n_queries_ == 1  # the best is one query


def test_a_guard_without_risk_says_so() -> None:
    guard = plain()
    guard.ask_all([(0.5, np.arange(N) < 9)], reserve=0)
    for report in ("all", "best"):
        with pytest.raises(BudgetExhausted) as refused:
            GuardedSearchCV(grid(), guard, report=report).fit(*TRAIN)
        assert "pass exhausted='nan' or 'train'" in "".join(refused.value.__notes__)


def test_a_guard_with_a_budget_is_asked_one_after_another_and_keeps_it() -> None:
    guard = plain(mechanism=Claims(holdout_answers=2))
    guarded = GuardedSearchCV(grid(), guard).fit(*TRAIN)
    assert len(guarded.answers_) == 3
    assert guard.status.answers_left == 2 - (guard.history["source"] == "holdout").sum()
    assert guard.history["list"].isna().all()
    one = plain(mechanism=Claims(holdout_answers=1))
    assert len(GuardedSearchCV(grid(), one, report="best").fit(*TRAIN).answers_) == 1
    assert one.status.answers_left == 0


@pytest.mark.slow
def test_what_cannot_be_told_is_refused_and_what_the_message_names_works() -> None:
    other = plain(mechanism=SparseVector(0.1, 0.01, budget=5), queries=5)
    with pytest.raises(InputError, match="'all' for a guard that answers one query after another"):
        GuardedSearchCV(grid(), other, report="best").fit(*TRAIN)
    assert other.history.empty
    assert len(GuardedSearchCV(grid(), other, report="all").fit(*TRAIN).answers_) == 3
    assert len(GuardedSearchCV(grid(), plain(mechanism="claims"), report="best").fit(*TRAIN).answers_) == 1
    with pytest.raises(InputError, match=r"report must be .*; got 'most'"):
        GuardedSearchCV(grid(), plain(), report="most").fit(*TRAIN)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="reserve"):
        GuardedSearchCV(grid(), plain(), reserve=1.0).fit(*TRAIN)


def test_known_training_values_take_the_place_of_cross_validation() -> None:
    models = [tree(max_depth=depth).fit(*TRAIN) for depth in (1, 5)]
    guard = plain()
    first, second = guard.score_all(models, train_values=[0.2, np.ones(len(TRAIN[1]))])
    assert guard.history["train"].tolist() == [0.2, 1.0]
    assert (first.value, second.value) == pytest.approx(holdout_scores([1, 5]))
    for values, seen in (
        ([0.2], "train_values must be .*; got 1 values"),
        (0.2, "train_values must be .*; got a float"),
    ):
        with pytest.raises(InputError, match=seen):
            guard.score_all(models, train_values=values)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"cv must be .*; got 5"):
        guard.score_all(models, train_values=[0.2, 0.3], cv=5)


def test_a_scorer_says_once_in_its_log_what_a_list_would_save(caplog: pytest.LogCaptureFixture) -> None:
    guard = plain()
    with caplog.at_level(logging.INFO, logger="thresholdout"):
        GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv=3), cv=guard.split()).fit(*TRAIN)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "thresholdout.guard.scorer"]
    assert "GuardedSearchCV(search, guard) asks about all candidates as one list" in line
