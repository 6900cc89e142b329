"""What happens when a guard answers no more, in every backend; nothing may hang, nothing may be lost."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate

from tests.thresholdout.model_selection.digits import BACKENDS, TRAIN, X, make, train_scores, tree
from thresholdout import BudgetExhausted
from thresholdout.errors import GuardExhaustedWarning, InputError, SearchExhausted
from thresholdout.model_selection.policy import POLICIES, Exhausted, check_exhausted, warn_exhausted

BY_BACKEND = pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS, ids=[f"{b}-{n}" for b, n in BACKENDS])
DEPTHS = [1, 2, 3, 4, 5, 6]


@contextmanager
def quiet() -> Iterator[list[Any]]:
    """Record warnings of a search, among them those of scikit-learn about NaN."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def searched(guard: Any, policy: Exhausted, backend: str, n_jobs: int) -> tuple[Any, Any, list[str]]:
    scorer = guard.scorer(exhausted=policy)
    search = GridSearchCV(tree(), {"max_depth": DEPTHS}, scoring=scorer, cv=guard.split(), n_jobs=n_jobs)
    with joblib.parallel_config(backend), quiet() as caught:
        search.fit(*TRAIN)
    return scorer, search, [str(w.message) for w in caught if w.category is GuardExhaustedWarning]


@BY_BACKEND
def test_raise_ends_the_search(backend: str, n_jobs: int) -> None:
    guard = make(queries=2)
    scorer = guard.scorer()
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
    thread.join(timeout=60)
    assert not thread.is_alive()
    (error,) = ended
    assert isinstance(error, SearchExhausted)
    assert not isinstance(error, Exception)
    assert (error.what, error.limit) == ("queries", 2)
    assert isinstance(error.reason, BudgetExhausted)
    assert "choose exhausted='train', 'nan' or 'stop'" in str(error)
    assert not hasattr(search, "cv_results_")
    assert (len(guard.history), scorer.asked, scorer.replaced, scorer.exhausted) == (2, 2, 0, "queries")
    if n_jobs == 1:
        assert isinstance(error.__cause__, BudgetExhausted)


@BY_BACKEND
@pytest.mark.parametrize("policy", ["nan", "stop"])
def test_nan_stands_in(backend: str, n_jobs: int, policy: Exhausted) -> None:
    guard = make(queries=4)
    scorer, search, messages = searched(guard, policy, backend, n_jobs)
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores).sum() == 2
    assert sorted(scores[~np.isnan(scores)]) == sorted(guard.history["value"])
    assert (scorer.asked, scorer.replaced, scorer.exhausted) == (4, 2, "queries")
    assert len(messages) == 1
    assert messages[0].startswith("all 4 questions of this guard are used")


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
    assert "training values, which no certificate covers, stand in" in messages[0]
    assert len(messages) == 1


def test_the_budget_runs_out_as_the_questions_do() -> None:
    guard = make(threshold=0.02, noise_scale=0.001, budget=1)
    scorer, search, _ = searched(guard, "nan", "loky", 1)
    assert scorer.exhausted == "budget" == guard.exhausted
    assert list(guard.history["source"])[-1] == "holdout"
    assert np.isnan(search.cv_results_["mean_test_score"][len(guard.history) :]).all()


class Counting(type(tree())):  # type: ignore[misc]
    """A tree that counts its predictions."""

    predictions = 0

    def predict(self, X: Any) -> Any:
        type(self).predictions += 1
        return super().predict(X)


@pytest.mark.parametrize("policy", ["nan", "stop"])
def test_after_the_first_refusal_nothing_is_predicted(policy: Exhausted) -> None:
    guard = make(queries=1)
    scorer, model = guard.scorer(exhausted=policy), Counting(max_depth=2).fit(*TRAIN)
    placeholder = np.repeat(X[:1], 3, axis=0)
    scorer(model, placeholder)
    with pytest.warns(GuardExhaustedWarning):
        assert np.isnan(scorer(model, placeholder))
    Counting.predictions = 0
    assert np.isnan(scorer(model, placeholder))
    assert Counting.predictions == 0
    assert (scorer.asked, scorer.replaced) == (1, 2)


def test_stand_ins_have_the_signs_weights_and_folds_of_the_question() -> None:
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 900), np.ones(897)
    guard = make(queries=1)
    scorers = {
        "loss": guard.scorer("zero_one_loss", exhausted="train"),
        "weighted": guard.scorer(sample_weight=weights, exhausted="train"),
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


def test_policies_are_checked_first() -> None:
    assert get_args(Exhausted) == POLICIES == ("raise", "train", "nan", "stop")
    assert [check_exhausted(policy) for policy in POLICIES] == list(POLICIES)
    for wrong in ("Raise", None, 3, ["raise"]):
        with pytest.raises(InputError, match=r"exhausted: .*; expected: one of 'raise', 'train', 'nan', 'stop'"):
            make().scorer(exhausted=wrong)  # type: ignore[arg-type]


def test_a_warning_points_at_its_cause() -> None:
    with pytest.warns(GuardExhaustedWarning, match="all 3 questions .* no further question is asked") as caught:
        warn_exhausted(BudgetExhausted("queries", 3, 3), "stop", stacklevel=1)
    assert caught[0].filename == __file__
