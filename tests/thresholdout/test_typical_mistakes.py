"""What people type in their first hour, and the one sentence that says what to do instead.

None of it costs anything: answers, budget, risk and history stay what they were, and no file is made. What a model or a
function raised is the cause of the error, and no part of its message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from tests.cases import for_each
from thresholdout import Claims, InputError, KFoldGuard, PriorQueries, SearchFailed, Thresholdout, plan
from thresholdout.model_selection import GuardedSearchCV

N = 200
X, Y = make_classification(2 * N, 5, flip_y=0.2, random_state=0)
TRAIN, HOLDOUT = (X[:N], Y[:N]), (X[N:], Y[N:])
TABLE = pd.DataFrame(X, columns=list("abcde"))
MODEL = LogisticRegression().fit(*TRAIN)
RIGHT = MODEL.predict(HOLDOUT[0]) == HOLDOUT[1]
DATES = pd.date_range("2020-01-01", periods=N, tz="Europe/Paris")


class Tensor:
    """What a tensor that records gradients looks like to numpy."""

    def __init__(self, array: Any) -> None:
        self._array = np.asarray(array)
        self.shape = self._array.shape

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, where: Any) -> Tensor:
        return Tensor(self._array[where])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class Saying:
    """A fitted model that predicts something of MODEL's predictions."""

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self._change = change

    def predict(self, X: Any) -> Any:
        return self._change(MODEL.predict(X))


def made(holdout: Any = HOLDOUT, train: Any = TRAIN, **declared: Any) -> Callable[[Path], object]:
    """Return what makes a guard."""
    return lambda ledger: Thresholdout(holdout, train=train, ledger=ledger, **declared)


def labelled(table: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table with a series that was numbered anew."""
    return table, pd.Series(y)


MAKING: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "X without y": (made(HOLDOUT[0]), "train", "pairs for both: Thresholdout((X, y), train=(X_train, y_train))"),
    "another number of labels": (made((X[N:], Y[N:-3])), "holdout", "pieces of 200 and 197 records"),
    "labels as text in one part": (made((X[N:], Y[N:].astype(str))), "train", "with labels of the holdout's type"),
    "labels as objects in one part": (
        made((X[N:], pd.Series(Y[N:].astype(str), dtype=object))),
        "train",
        "with labels of the holdout's type",
    ),
    "y before X": (made((Y[N:], X[N:]), (Y[:N], X[:N])), "holdout", "a pair (X, y), with the features first"),
    "no records": (made((X[:0], Y[:0])), "holdout", "at least one record"),
    "other columns": (made(train=(X[:N, :3], Y[:N])), "train", "got records of shape (3,)"),
    "a table with other columns": (
        made((TABLE[N:], Y[N:]), (TABLE[:N].drop(columns="a"), Y[:N])),
        "train",
        "with the columns of the holdout",
    ),
    "y as a column in one part": (made((X[N:], Y[N:, None])), "train", "Pass y.ravel() in both parts"),
    "a y that was numbered anew": (made(labelled(TABLE[N:], Y[N:])), "holdout", "y.loc[X.index]"),
    "missing labels": (
        made((X[N:], np.where(np.arange(N) == 3, np.nan, Y[N:]))),
        "holdout",
        "a label for every record",
    ),
    "rows in both parts": (made(train=(X[: N + 50], Y[: N + 50])), "train", "Drop these records from one part"),
    "a generator": (made(row for row in X[N:]), "holdout", "got a generator"),
    "a dictionary": (made({"X": X[N:], "y": Y[N:]}), "holdout", "a tuple (X, y)"),
    "a list of two arrays": (made([X[N:], Y[N:]]), "holdout", "a tuple (X, y)"),
    "tensors": (made((Tensor(X[N:]), Y[N:])), "holdout", "tensor.detach().cpu().numpy()"),
    "confidence in per cent": (made(confidence=95), "confidence", "a probability between 0 and 1"),
    "a negative number of queries": (made(queries=-5), "queries", "an integer of at least 1"),
    "a number of queries as text": (made(queries="10"), "queries", "an integer of at least 1"),
    "a misprinted mechanism": (made(mechanism="lader"), "mechanism", "'ladder'"),
    "groups for a dependence model": (made(dependence=[0, 1] * (N // 2)), "dependence", "Groups(labels)"),
    "looks as a list of scores": (
        made(prior_queries=[0.8, 0.9]),
        "prior_queries",
        "the number of earlier scores of this holdout",
    ),
    "looks with no values": (lambda _: PriorQueries(3, values=0), "values", "an integer of at least 1"),
    "stratified folds": (
        lambda _: KFoldGuard((X, Y), cv=StratifiedKFold(5)),
        "cv",
        "KFold(shuffle=True) or GroupKFold",
    ),
    "a misprinted argument": (made(trian=TRAIN), "trian", "Did you mean train=? The arguments are holdout, train, "),
    "training records for K-fold": (
        lambda _: KFoldGuard((X, Y), train=TRAIN),  # type: ignore[call-arg]
        "train",
        "pass them as KFoldGuard((X, y))",
    ),
    "X and y for K-fold": (lambda _: KFoldGuard(X, Y), "records", "Write KFoldGuard((X, y))"),  # type: ignore[call-arg]
    "a plan for a score in per cent": (
        lambda _: plan(1000, anticipated_score=90),
        "anticipated_score",
        "a score in (0, 1)",
    ),
}

ASKING: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "a function that returns the mean": (
        lambda guard: guard.ask(lambda X, y: np.mean(MODEL.predict(X) == y)),
        "train_values",
        "a function of X and y with one value per record",
    ),
    "a function that returns the mean in a list": (
        lambda guard: guard.ask(lambda X, y: [np.mean(MODEL.predict(X) == y)]),
        "train_values",
        "200 values, one per rec",
    ),
    "a function that returns nothing": (
        lambda guard: guard.ask(lambda X, y: None),
        "train_values",
        "one value per rec",
    ),
    "a function of X alone": (lambda guard: guard.ask(lambda X: X[:, 0] > 0), "train_values", "a function of X and y"),
    "a function that fails": (
        lambda guard: guard.ask(lambda X, y: X["age"] > 30),
        "train_values",
        "raises IndexError on the training part",
    ),
    "a function that returns a table": (lambda guard: guard.ask(lambda X, y: X), "train_values", "shape (n,)"),
    "values of the holdout alone": (lambda guard: guard.ask(RIGHT), "holdout_values", "200 values, one per holdout"),
    "a score for values": (lambda guard: guard.ask(0.8, 0.85), "holdout_values", "one value per record"),
    "too few values": (
        lambda guard: guard.ask(0.8, RIGHT[1:]),
        "holdout_values",
        "200 values, one per record; got 199 values",
    ),
    "values in per cent": (lambda guard: guard.ask(0.8, 100.0 * RIGHT), "holdout_values", "bounds=(lower, upper)"),
    "a training value in per cent": (lambda guard: guard.ask(80, RIGHT), "train_values", "bounds=(lower, upper)"),
    "losses with their sign turned": (lambda guard: guard.ask(0.2, -1.0 * RIGHT), "holdout_values", "values in [0, 1]"),
    "missing values": (lambda guard: guard.ask(0.8, np.full(N, np.nan)), "holdout_values", "values in [0, 1]"),
    "values as text": (lambda guard: guard.ask(0.8, ["right"] * N), "holdout_values", "real numbers or booleans"),
    "times": (lambda guard: guard.ask(0.8, DATES), "holdout_values", "real numbers or booleans"),
    "categories": (
        lambda guard: guard.ask(0.8, pd.Categorical(["a"] * N)),
        "holdout_values",
        "real numbers or booleans",
    ),
    "a sparse row": (lambda guard: guard.ask(0.8, scipy.sparse.csr_matrix(RIGHT)), "holdout_values", "real numbers"),
    "values in a generator": (
        lambda guard: guard.ask(0.8, (v for v in RIGHT)),
        "holdout_values",
        "got a generator",
    ),
    "values in a tensor": (
        lambda guard: guard.ask(0.8, Tensor(RIGHT)),
        "holdout_values",
        "tensor.detach().cpu().numpy()",
    ),
    "values as a column": (lambda guard: guard.ask(0.8, RIGHT[:, None]), "holdout_values", "shape (n,)"),
    "bounds that are swapped": (lambda guard: guard.ask(0.8, RIGHT, bounds=(1, 0)), "bounds", "lower < upper"),
    "one bound": (lambda guard: guard.ask(0.8, RIGHT, bounds=1), "bounds", "a pair of numbers (lower, upper)"),
    "a number for a name": (lambda guard: guard.ask(0.8, RIGHT, name=3), "name", "a string"),
    "predictions for a model": (lambda guard: guard.score(RIGHT), "estimator", "a fitted model with predict"),
    "a list for a model": (lambda guard: guard.score([MODEL, MODEL]), "estimator", "a fitted model with predict"),
    "a model for a list": (lambda guard: guard.score_all(MODEL), "models", "a list of estimators"),
    "an empty list": (lambda guard: guard.score_all([]), "queries", "at least one query"),
    "a generator of models": (lambda guard: guard.score_all(m for m in [MODEL]), "models", "a list of estimators"),
    "a misprinted metric": (lambda guard: guard.score(MODEL, "acuracy"), "metric", "'accuracy'?"),
    "a metric by its nickname": (lambda guard: guard.score(MODEL, "auc"), "metric", "'roc_auc'?"),
    "the sign of a loss": (
        lambda guard: guard.score(MODEL, "neg_log_loss"),
        "metric",
        "metric must be 'log_loss'; got 'neg_log_loss'. scorer() changes the",
    ),
    "a loss without a range": (
        lambda guard: guard.score(MODEL, "neg_mean_squared_error"),
        "metric",
        "metrics.squared_error(clip=(errors**2).max())",
    ),
    "a function for a metric": (
        lambda guard: guard.score(MODEL, accuracy_score),
        "metric",
        "make_scorer(function)",
    ),
    "a metric before the model": (
        lambda guard: guard.score("accuracy", MODEL),
        "metric",
        "The fitted model is the first argument",
    ),
    "no probabilities": (lambda guard: guard.score(LinearSVC().fit(*TRAIN), "log_loss"), "estimator", "predict_proba"),
    "a regressor for a classifier": (
        lambda guard: guard.score(LinearRegression().fit(*TRAIN)),
        "estimator",
        "a classifier trained on these labels",
    ),
    "a regressor that is right now and then": (
        lambda guard: guard.score(KNeighborsRegressor().fit(*TRAIN)),
        "estimator",
        "For a regressor take metric=r2(clip=...)",
    ),
    "a search over regressors without a metric": (
        lambda guard: cross_val_score(
            KNeighborsRegressor(), *TRAIN, scoring=guard.scorer(), cv=guard.split(), error_score="raise"
        ),
        "estimator",
        "For a regressor take metric=r2(clip=...)",
    ),
    "numbers for names of models": (
        lambda guard: guard.score_all({1: MODEL}),
        "models",
        "a mapping whose names are texts",
    ),
    "labels of another type": (
        lambda guard: guard.score(LogisticRegression().fit(X[:N], Y[:N].astype(str))),
        "estimator",
        "fitted to labels of the guard's type",
    ),
    "predictions as a column": (
        lambda guard: guard.score(Saying(lambda p: p[:, None]), cv="training"),
        "estimator",
        "the labels' shape, (200,)",
    ),
    "too few predictions": (lambda guard: guard.score(Saying(lambda p: p[1:]), cv="training"), "estimator", "(199,)"),
    "a class for a model": (
        lambda guard: guard.score(LogisticRegression),
        "estimator",
        "LogisticRegression().fit(X_train, y_train)",
    ),
    "a model that is not fitted": (
        lambda guard: guard.score(LogisticRegression()),
        "estimator",
        "model.fit(X_train, y_train) first",
    ),
    "a pipeline that is not fitted": (
        lambda guard: guard.score(make_pipeline(StandardScaler(), LogisticRegression())),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a list with a model that is not fitted": (
        lambda guard: guard.score_all([MODEL, LogisticRegression()]),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a comparison with a model that is not fitted": (
        lambda guard: guard.compare(MODEL, LogisticRegression()),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a gate of a model that is not fitted": (
        lambda guard: guard.gate(LogisticRegression()),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a last look at a model that is not fitted": (
        lambda guard: guard.final_check(LogisticRegression()),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a model that is not fitted, with its value": (
        lambda guard: guard.score(LogisticRegression(), train_values=0.8),
        "estimator",
        "Call model.fit(X_train, y_train) first",
    ),
    "a model of other features": (
        lambda guard: guard.score(LogisticRegression().fit(X[:N, :3], Y[:N])),
        "estimator",
        "to 3 features, while the training",
    ),
    "a model that fails": (
        lambda guard: guard.score(Saying(lambda p: p["label"]), cv="training"),
        "estimator",
        "belongs into a pipeline",
    ),
    "folds in words": (lambda guard: guard.score(MODEL, cv="five"), "cv", "a number of folds, a splitter"),
    "one fold": (lambda guard: guard.score(MODEL, cv=1), "cv", "at least 2"),
    "more folds than records": (lambda guard: guard.score(MODEL, cv=1000), "cv", "a number of folds from 2"),
    "folds for a model that cannot be fitted again": (
        lambda guard: guard.score(Saying(lambda p: p)),
        "estimator",
        "train_values=",
    ),
    "one set of weights": (
        lambda guard: guard.score(MODEL, sample_weight=np.ones(N)),
        "sample_weight",
        "(train weights,",
    ),
    "negative weights": (
        lambda guard: guard.score(MODEL, sample_weight=(-np.ones(N), np.ones(N))),
        "sample_weight",
        "finite weights of at least 0",
    ),
    "a search with a misprinted score": (
        lambda guard: GuardedSearchCV(GridSearchCV(MODEL, {"C": [1.0]}, scoring="acc"), guard).fit(*TRAIN),
        "scoring",
        "Did you mean 'accuracy'?",
    ),
    "a score for the guard of a search": (
        lambda guard: GuardedSearchCV(GridSearchCV(MODEL, {"C": [1.0]}), guard, scoring="accuracy"),  # type: ignore[call-arg]
        "scoring",
        "metric= is that of the guard's answers",
    ),
    "a search that has the method of a scorer": (
        lambda guard: GuardedSearchCV(GridSearchCV(MODEL, {"C": [1.0]}, scoring=guard.scorer), guard).fit(*TRAIN),
        "search",
        "GuardedSearchCV queries the guard itself",
    ),
    "a misprinted metric of a scorer": (lambda guard: guard.scorer("acuracy"), "metric", "'accuracy'?"),
}


def check_message(caught: InputError, argument: str, expected: str) -> None:
    """Check that an error names its argument and says what to do, in one line of its own words."""
    message = str(caught)
    assert message.startswith(
        (f"{argument} must be ", f"{argument} is missing: pass ", f"{argument} is not an argument ")
    )
    assert expected in message
    assert "\n" not in message
    assert len(message) < 420
    if caught.__cause__ is not None:
        assert str(caught.__cause__) not in message


@for_each("mistake", MAKING)
def test_a_mistake_in_making_a_guard_says_what_to_do(mistake: str, tmp_path: Path) -> None:
    make, argument, expected = MAKING[mistake]
    ledger = tmp_path / "guard.db"
    with pytest.raises(InputError) as caught:
        make(ledger)
    check_message(caught.value, argument, expected)
    assert not ledger.exists()


@for_each("mistake", ASKING)
def test_a_mistake_in_asking_says_what_to_do_and_costs_nothing(mistake: str) -> None:
    ask, argument, expected = ASKING[mistake]
    guard = Thresholdout(HOLDOUT, train=TRAIN, queries=50, mechanism=Claims(holdout_answers=5))
    before = guard._ledger.state(guard._id)
    with pytest.raises(InputError) as caught:
        ask(guard)
    check_message(caught.value, argument, expected)
    assert (len(guard.history), guard.status.answers_left) == (0, 5)
    assert guard.status.information_released == pytest.approx(0.0, abs=1e-9)
    assert guard._ledger.state(guard._id) == before


WITH_TEXT = TABLE.assign(city=["Paris", "Rome"] * N)
WITH_DATES = TABLE.assign(day=[*DATES, *DATES])
GAPS = np.where((np.arange(2 * N)[:, None] % 7 == 3) & (np.arange(5) == 1), np.nan, X)

OTHERS: dict[str, tuple[Any, Any, Any, str]] = {
    "a model of other columns": (
        (TABLE[N:], Y[N:]),
        (TABLE[:N], Y[:N]),
        LogisticRegression().fit(TABLE[:N][["a", "b"]], Y[:N]),
        "the training records have 'c', 'd', 'e'",
    ),
    "a column of text": ((WITH_TEXT[N:], Y[N:]), (WITH_TEXT[:N], Y[:N]), MODEL, "belongs into a pipeline"),
    "a column of times": ((WITH_DATES[N:], Y[N:]), (WITH_DATES[:N], Y[:N]), MODEL, "records have 6"),
    "missing features": ((GAPS[N:], Y[N:]), (GAPS[:N], Y[:N]), MODEL, "belongs into a pipeline with it"),
    "y as a column": ((X[N:], Y[N:, None]), (X[:N], Y[:N, None]), MODEL, "y.ravel() in both parts"),
    "labels as text, predictions as numbers": (
        (X[N:], Y[N:].astype(str)),
        (X[:N], Y[:N].astype(str)),
        MODEL,
        "fitted to labels of the guard's type",
    ),
    "no training part": (HOLDOUT, None, MODEL, "(X_train, y_train)"),
}


@for_each("cv", [None, "training"])
@for_each("mistake", OTHERS)
def test_records_that_do_not_suit_a_model_say_what_to_do(mistake: str, cv: Any) -> None:
    holdout, train, model, expected = OTHERS[mistake]
    guard = Thresholdout(holdout, train=train, queries=50, mechanism=Claims(holdout_answers=5))
    before = guard._ledger.state(guard._id)
    with pytest.raises(InputError) as caught:
        guard.score(model, cv=cv)
    check_message(caught.value, caught.value.argument, expected)
    assert len(guard.history) == 0
    assert guard._ledger.state(guard._id) == before


SERVED: dict[str, Callable[[], Any]] = {
    "sparse records": lambda: made((scipy.sparse.csr_matrix(X[N:]), Y[N:]), (scipy.sparse.csr_matrix(X[:N]), Y[:N])),
    "single precision": lambda: made((X[N:].astype("f4"), Y[N:]), (X[:N].astype("f4"), Y[:N])),
    "lists": lambda: made((X[N:].tolist(), Y[N:].tolist()), (X[:N].tolist(), Y[:N].tolist())),
    "a label that no training record has": lambda: made((X[N:], np.where(np.arange(N) == 0, 7, Y[N:]))),
}


@for_each("kind", SERVED)
def test_what_is_no_mistake_is_answered(kind: str) -> None:
    guard = SERVED[kind]()(None)
    assert guard.score(MODEL).value == pytest.approx(RIGHT.mean(), abs=0.1)


def test_a_scorer_without_the_folds_of_its_guard_says_so() -> None:
    guard = Thresholdout(HOLDOUT, train=TRAIN, queries=50, mechanism=Claims(holdout_answers=5))
    with pytest.warns(UserWarning, match=r"does not ask the guard .*Pass cv=guard\.split\(\) to the search"):
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, scoring=guard.scorer()).fit(*TRAIN)
    assert len(guard.history) == 0


def test_the_method_in_place_of_a_scorer_ends_a_search() -> None:
    """Scikit-learn turns an Exception of a scorer into NaN, so the error is a BaseException."""
    guard = Thresholdout(HOLDOUT, train=TRAIN)
    said = r"scoring must be guard.scorer\(\), the scorer that .* Pass cv=guard.split\(\) with it"
    with pytest.raises(SearchFailed, match=said):
        cross_val_score(MODEL, *TRAIN, scoring=guard.scorer, cv=guard.split())
    with pytest.raises(SearchFailed, match=said):
        GridSearchCV(MODEL, {"C": [1.0]}, scoring=guard.scorer, cv=guard.split()).fit(*TRAIN)
    assert guard.history.empty
