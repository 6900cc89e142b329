"""How the training part is cut for cross-validation."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)

from graphs import Groups, Independent, MarkovChain, MovingWindow
from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.training_values import Splits, TrainingFolds, checked_cv, is_series

X = np.zeros((40, 2))
Y = np.tile([0, 0, 0, 1], 10)


def _same(found: Splits, expected: Any) -> None:
    expected = list(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_the_default_is_that_of_scikit_learn() -> None:
    _same(TrainingFolds().splits(None, X, Y, classifier=True), StratifiedKFold(5).split(X, Y))
    _same(TrainingFolds().splits(None, X, Y, classifier=False), KFold(5).split(X))
    _same(TrainingFolds().splits(3, X, Y, classifier=True), StratifiedKFold(3).split(X, Y))
    _same(TrainingFolds().splits(None, X, Y + 0.5, classifier=True), KFold(5).split(X))


def test_groups_are_whole_and_classes_are_spread() -> None:
    groups = np.arange(40) % 8
    folds = TrainingFolds(groups=groups)
    for cv, many in ((None, 5), (4, 4)):
        splits = folds.splits(cv, X, Y, classifier=True)
        assert len(splits) == many
        for fit, test in splits:
            assert not set(groups[fit]) & set(groups[test])
    y = np.random.default_rng(0).integers(0, 2, 40)
    _same(folds.splits(None, X, y, classifier=True), StratifiedGroupKFold(5).split(X, y, groups))
    assert len(TrainingFolds(groups=np.arange(40) % 3).splits(None, X, Y, classifier=True)) == 3
    with pytest.raises(InputError, match="1 groups of training records"):
        TrainingFolds(groups=np.zeros(40)).splits(None, X, Y, classifier=False)


def test_an_order_is_kept_and_groups_decide_where_there_are_both() -> None:
    _same(TrainingFolds(ordered=True).splits(None, X, Y, classifier=True), TimeSeriesSplit(5).split(X))
    both = TrainingFolds(groups=np.arange(40) // 8, ordered=True).splits(None, X, Y, classifier=False)
    assert sorted(np.concatenate([test for _, test in both])) == list(range(40))
    assert len(TrainingFolds(ordered=True).splits(None, X[:3], Y[:3], classifier=False)) == 2


def test_small_classes_and_few_records() -> None:
    rare = np.array([0] * 37 + [1] * 3)
    splits = TrainingFolds().splits(None, X, rare, classifier=True)
    assert len(splits) == 5
    assert all(len(set(rare[fit])) == 2 for fit, _ in splits)
    assert len(TrainingFolds().splits(None, X[:6], np.array(list("aabbcc")), classifier=True)) == 2
    assert len(TrainingFolds().splits(None, X[:6], np.array(list("abcdef")), classifier=True)) == 5
    assert len(TrainingFolds().splits(None, X[:2], Y[:2], classifier=False)) == 2
    with pytest.raises(InputError, match="cv must be a number of folds from 2 to the number of"):
        TrainingFolds().splits(None, X[:1], Y[:1], classifier=False)
    with pytest.raises(InputError, match="41 folds of 40"):
        TrainingFolds().splits(41, X, Y, classifier=False)
    with pytest.raises(InputError, match="n_splits=4"):
        TrainingFolds().splits(4, X[:6], np.array(list("aabbcc")), classifier=True)


def test_any_splitter_and_any_pairs() -> None:
    twice = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    _same(TrainingFolds().splits(twice, X, Y, classifier=True), twice.split(X))
    some = PredefinedSplit([-1] * 30 + [0] * 5 + [1] * 5)
    _same(TrainingFolds().splits(some, X, Y, classifier=True), some.split())
    pairs = checked_cv((fit, test) for fit, test in KFold(2).split(X))
    for _ in range(2):  # a generator serves more than once
        _same(TrainingFolds().splits(pairs, X, Y, classifier=True), KFold(2).split(X))


@for_each(
    ("cv", "seen"),
    [
        ([], "no folds"),
        ([([0, 1], [1, 2])], "tests records which it fits"),
        ([([0, 1], [])], "without records|pairs"),
        ([([0, 1], [40])], "other positions"),
        ([([0, 1], [-1])], "other positions"),
        ([([0.5], [1.0])], "pairs"),
        ([(0, 1, 2)], "pairs"),
        ([None], "pairs"),
    ],
)
def test_unusable_folds(cv: Any, seen: str) -> None:
    with pytest.raises(InputError, match=seen):
        TrainingFolds().splits(checked_cv(cv), X, Y, classifier=False)


@for_each("cv", [True, 1, 0, -5, "five", 2.5, b"ab", {1: 2}, object()])
def test_what_is_no_cross_validation(cv: Any) -> None:
    with pytest.raises((InputError, InputTypeError), match=r"^cv must be"):
        checked_cv(cv)


def test_the_guards_own_split_is_none() -> None:
    guard = Thresholdout((X + 1.0, Y), train=(np.arange(80.0).reshape(40, 2), Y))
    with pytest.raises(InputError, match="tests records which it fits"):
        TrainingFolds().splits(checked_cv(guard.split()), np.arange(80.0).reshape(40, 2), Y, classifier=True)


def test_what_a_guard_declares() -> None:
    train = np.arange(80.0).reshape(40, 2) + 5.0
    holdout = -np.arange(8.0).reshape(4, 2)
    y = np.zeros(4)
    groups = np.repeat(list("abcdefgh"), 5)
    guard = Thresholdout((holdout, y), train=(train, Y, groups), dependence=Groups(list("wxyz")))
    folds = guard._records.training_folds
    assert folds.groups is not None
    assert len(np.unique(folds.groups)) == 8
    assert all(len({*folds.groups[groups == name]}) == 1 for name in "abcdefgh")
    assert not folds.ordered
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], n=4)
    assert Thresholdout((holdout, y), train=(train, Y), dependence=chain)._records.training_folds.ordered
    plain = Thresholdout((holdout, y), train=(train, Y))._records
    assert plain.training_folds.groups is None
    assert not plain.training_folds.ordered


def test_series() -> None:
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], n=10)
    assert is_series(chain)
    assert is_series(MovingWindow(10, 2))
    assert not is_series(Groups([0, 0, 1]))
    assert not is_series(Independent(3))
