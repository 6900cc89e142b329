"""Refusals of records do not show whether rows of the holdout are among them: one type, one text, by every way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from tests.cases import for_each
from tests.thresholdout.guards import N, data, make
from thresholdout import Claims, KFoldGuard, Thresholdout
from thresholdout.errors import InputError
from thresholdout.guard.holdout import origin
from thresholdout.guard.sharing.shared_objects import share
from thresholdout.model_selection import GuardedSearchCV, count_queries

(X, Y), (X_TRAIN, Y_TRAIN) = data(0), data(1)
MODEL = DecisionTreeClassifier(max_depth=1).fit(X_TRAIN, Y_TRAIN)
SEARCH = GridSearchCV(MODEL, {"max_depth": [1]}, cv=2)
HALF = N // 2
TABLES = {
    "part": (X[:HALF], Y[:HALF]),
    "part with other labels": (X[:HALF], 1 - Y[:HALF]),
    "part in single precision": (X[:HALF].astype(np.float32), Y[:HALF]),
    "some of each": (np.vstack([X[: HALF // 2], X_TRAIN[HALF // 2 : HALF]]), Y_TRAIN[:HALF]),
    "one of the holdout": (np.vstack([X_TRAIN[1:HALF], X[:1]]), np.r_[Y_TRAIN[1:HALF], Y[:1]]),
    "nobody's": (X[:HALF] + 1.0, Y[:HALF]),
    "training records with other labels": (X_TRAIN[:HALF], 1 - Y_TRAIN[:HALF]),
}
WHOLE = {"holdout": (X, Y), "holdout with other labels": (X, 1 - Y), "nobody's": (X + 1.0, Y)}


def elsewhere(guard: Any) -> Any:
    return share(guard)


WAYS: dict[str, Callable[[Thresholdout, Any, Any], Any]] = {
    "split": lambda guard, X, y: list(guard.split().split(X, y)),
    "split elsewhere": lambda guard, X, y: list(elsewhere(guard).split().split(X, y)),
    "scorer": lambda guard, X, y: guard.scorer(cv="training")(MODEL, X, y),
    "scorer elsewhere": lambda guard, X, y: elsewhere(guard.scorer(cv="training"))(MODEL, X, y),
    "scorer in a search": lambda guard, X, y: GridSearchCV(
        MODEL, {"max_depth": [1]}, scoring=guard.scorer(cv="training"), cv=guard.split()
    ).fit(X, y),
    "guarded search": lambda guard, X, y: GuardedSearchCV(SEARCH, guard).fit(X, y),
    "guarded search elsewhere": lambda guard, X, y: GuardedSearchCV(SEARCH, elsewhere(guard)).fit(X, y),
    "count": lambda guard, X, y: count_queries(
        guard, GridSearchCV(MODEL, {"max_depth": [1]}, scoring=guard.scorer(cv="training"), cv=guard.split()), X, y
    ),
}


def refusal(way: Callable[..., Any], guard: Any, X: Any, y: Any) -> tuple[Any, ...]:
    with pytest.raises(InputError) as caught:
        way(guard, X, y)
    error = caught.value
    return type(error), str(error), error.argument, error.seen, error.expected


@for_each("way", WAYS.values(), ids=WAYS)
def test_other_records_than_training_records_are_refused_in_the_same_words(way: Callable[..., Any]) -> None:
    guard = make()
    found = {name: refusal(way, guard, *table) for name, table in TABLES.items()}
    assert len(set(found.values())) == 1, found
    assert guard.history.empty


@for_each("name", [name for name in WAYS if not name.startswith("scorer") or name.endswith("search")])
def test_the_whole_holdout_is_refused_like_any_other_table_where_training_records_are_wanted(name: str) -> None:
    guard = make()
    found = {table: refusal(WAYS[name], guard, *records) for table, records in WHOLE.items()}
    assert len(set(found.values())) == 1, found
    assert guard.history.empty


def test_where_records_come_from_has_one_word_for_all_that_are_not_a_whole_part() -> None:
    guard = make()
    for asked in (guard, elsewhere(guard)):
        assert {origin(asked, *table) for table in TABLES.values()} == {"other"}
        assert {origin(asked, rows) for rows, _ in list(TABLES.values())[:-1]} == {"other"}
        assert {origin(asked, X, y) for y in (Y, 1 - Y, None)} == {"holdout"}


def test_a_guard_of_folds_knows_all_its_records_and_no_part_of_them() -> None:
    guard = KFoldGuard((X, Y), cv=2, queries=5, mechanism=Claims(holdout_answers=1))
    for asked in (guard, elsewhere(guard)):
        assert {origin(asked, *table) for table in TABLES.values()} == {"other"}
        assert origin(asked, X[::-1]) == origin(asked, X, 1 - Y) == "holdout"
    ways = [refusal(lambda g, X, y: GuardedSearchCV(SEARCH, g).fit(X, y), guard, *table) for table in TABLES.values()]
    assert len(set(ways)) == 1
    assert guard.history.empty


def test_what_a_refusal_names_works() -> None:
    """Other records that are to be fitted belong into the training part; what changes records into a pipeline."""
    more = np.vstack([X_TRAIN, X_TRAIN[:50] + 1.0]), np.r_[Y_TRAIN, Y_TRAIN[:50]]
    with pytest.raises(InputError, match=r"belong into Thresholdout\(..., train=\(X, y\)\)"):
        GuardedSearchCV(SEARCH, make()).fit(*more)
    assert GuardedSearchCV(SEARCH, make(train=more)).fit(*more).n_queries_ == 1
