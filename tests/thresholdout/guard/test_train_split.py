import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.utils.metadata_routing import get_routing_for_object

from tests.cases import for_each
from tests.thresholdout.model_selection.digits import DEPTHS, HOLDOUT, TRAIN, X, Y, make, tree
from thresholdout import Claims, Thresholdout
from thresholdout.errors import InputError


@for_each(("rows", "size"), [(np.arange(900), 900), (np.arange(100, 140), 40), (np.array([3]), 2)])
def test_all_that_is_given_is_for_fitting_and_one_record_stands_in(rows: Any, size: int) -> None:
    split = make().split()
    ((fit, placeholder),) = split.split(TRAIN[0][rows], TRAIN[1][rows])
    assert np.array_equal(fit, np.arange(len(rows)))
    assert np.array_equal(placeholder, np.full(size, placeholder[0]))
    assert 0 <= placeholder[0] < len(rows)
    ((_, other),) = split.split(TRAIN[0][rows], TRAIN[1][rows])
    assert other[0] == (placeholder[0] + 1) % len(rows)  # another round of a search
    assert split.get_n_splits() == 1


def test_a_placeholder_has_at_most_4096_rows() -> None:
    train = np.arange(10_000.0)[:, None]
    guard = Thresholdout(
        (-1.0 - train[:50], np.zeros(50)),
        train=(train, np.zeros(10_000)),
        queries=5,
        mechanism=Claims(holdout_answers=1),
    )
    assert [(fit.size, test.size) for fit, test in guard.split().split(train)] == [(10_000, 4096)]


@pytest.mark.slow
@for_each(
    ("rows", "message"),
    [
        (HOLDOUT[0], "some of the guard's 900 training records; got records that are not all in"),
        (HOLDOUT[0][:10], "records that are not all in the guard's training part"),
        (X, "records that are not all in the guard's training part"),
        (TRAIN[0] + 1.0, "records that are not all in the guard's training part"),
    ],
    ids=["holdout", "part", "all", "other"],
)
def test_other_records_are_not_split(rows: Any, message: str) -> None:
    guard = make()
    with pytest.raises(InputError, match=message):
        GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split()).fit(
            rows, np.zeros(len(rows))
        )
    assert guard.history.empty


def test_it_has_no_data() -> None:
    split = make().split()
    text = pickle.dumps(split)
    assert len(text) < 1000
    assert pickle.loads(text).guard is split.guard
    assert repr(split) == "TrainSplit(900)"


@pytest.mark.slow
def test_groups_may_be_routed_to_it() -> None:
    split = make().split()
    assert get_routing_for_object(split).split.requests == {"groups": True}
    guard = make()
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split())
        search.fit(*TRAIN, groups=np.arange(900) % 7)
    assert len(guard.history) == 3


def test_a_search_on_a_part_of_the_training_records() -> None:
    guard = make()
    search = GridSearchCV(tree(), DEPTHS, scoring=guard.scorer(cv="training"), cv=guard.split()).fit(X[:300], Y[:300])
    assert len(guard.history) == 3
    assert np.array_equal(
        search.best_estimator_.predict(X), tree(**search.best_params_).fit(X[:300], Y[:300]).predict(X)
    )


def test_rows_of_the_training_part_with_other_labels_are_not_split() -> None:
    guard = make()
    assert [len(fit) for fit, _ in guard.split().split(TRAIN[0], TRAIN[1])] == [900]
    other = TRAIN[1].copy()
    other[3] += 1
    with pytest.raises(InputError, match="records that are not all in the guard's training part"):
        list(guard.split().split(TRAIN[0], other))


def test_few_different_rows_are_told_apart_by_their_labels_and_numbers() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 2, (400, 2)), rng.integers(0, 2, 400)
    guard = Thresholdout(
        (rows[:200], labels[:200]),
        train=(rows[200:], labels[200:]),
        queries=9,
        mechanism=Claims(holdout_answers=2),
        allow_duplicates=True,
    )
    assert [len(fit) for fit, _ in guard.split().split(rows[250:], labels[250:])] == [150]
    for part in (slice(None), slice(0, 300)):  # every row of the holdout is a row of the training part, too
        with pytest.raises(InputError, match="not all in the guard's training part"):
            list(guard.split().split(rows[part], labels[part]))
