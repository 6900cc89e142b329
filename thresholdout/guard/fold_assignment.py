"""Folds of a cross-validation that do not depend on the records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from graphs.models.out_of_fold import OutOfFold

__all__ = ["Fold", "fold_model", "make_folds"]

_BLIND = "a splitter that uses no labels, such as KFold(shuffle=True) or GroupKFold"
_WHY_BLIND = (
    "Given the other folds, the class counts of a stratified fold are known, so its records are not independent draws."
)
_PARTITION = "folds whose test sides partition the records"


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold: positions of the training and the test records, and the groups of the test records."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    groups: NDArray[np.int64]


def make_folds(
    n: int, cv: Any, groups: Any = None, dependence: DependenceModel | None = None, random_state: int = 0
) -> tuple[Fold, ...]:
    """Return folds of n records; they must not depend on labels, and train on no record of a group that they test.

    A splitter gets placeholders instead of records and labels. Without ``groups`` the independent groups of the
    dependence model count. ``random_state`` is the seed for a number of folds.

    Examples
    --------
    >>> [len(fold.test) for fold in make_folds(10, 3)]
    [4, 3, 3]
    >>> from sklearn.model_selection import StratifiedKFold
    >>> make_folds(10, StratifiedKFold(2))
    Traceback (most recent call last):
    thresholdout.errors.InputError: cv must be a splitter that uses no labels, ...; got StratifiedKFold. ...
    """
    from graphs import Groups

    members = _members(n, groups, dependence)
    grouped = len(np.unique(members)) < n
    together = Groups(groups).groups if groups is not None else members if grouped else None
    splits = _splits(n, cv, together, random_state)
    if len(splits) < 2:
        raise InputError("cv", f"{len(splits)} fold", "at least two folds")
    tested = np.concatenate([test for _, test in splits])
    if len(tested) != n or not np.array_equal(np.sort(tested), np.arange(n)):
        advice = "Every record must be in exactly one test side."
        raise InputError("cv", f"test sides of {len(tested)} of {n} records", _PARTITION, advice)
    for number, (train, test) in enumerate(splits):
        if not len(test) or not len(train) or train.min() < 0 or train.max() >= n:
            seen = f"fold {number} with {len(train)} and {len(test)} records"
            raise InputError("cv", seen, "folds with records on both sides")
        if np.isin(members[train], members[test]).any():
            what = "groups" if grouped else "records"
            seen = f"fold {number}, which trains on {what} that it tests"
            raise InputError("cv", seen, "folds with whole groups on one side")
    return tuple(Fold(train, test, members[test]) for train, test in splits)


def fold_model(
    n: int, folds: tuple[Fold, ...], groups: Any = None, dependence: DependenceModel | None = None
) -> OutOfFold:
    """Return the dependence model of the out-of-fold values, with the limits of a fitted model."""
    from graphs.models.out_of_fold import OutOfFold

    home = np.empty(n, dtype=np.int64)
    for number, fold in enumerate(folds):
        home[fold.test] = number
    model = OutOfFold(home, _members(n, groups, dependence))
    limits = None if dependence is None else dependence.fitted_limits
    return model if limits is None else model.fitted(limits)


def _members(n: int, groups: Any, dependence: Any) -> NDArray[np.int64]:
    """Return the number of each record's independent group."""
    from graphs import DependenceModel, Groups

    if dependence is not None and not isinstance(dependence, DependenceModel):
        seen = f"a {type(dependence).__name__}"
        raise InputTypeError("dependence", seen, "a model of graphs, such as Groups(labels)")
    if dependence is not None and dependence.n != n:
        raise InputError("dependence", f"a model of {dependence.n} records", f"a model of {n} records")
    declared = np.arange(n, dtype=np.int64) if dependence is None else _independent(dependence)
    if groups is None:
        return declared
    given = Groups(groups)
    if given.n != n:
        raise InputError("groups", f"{given.n} labels", f"{n} labels, one for each record")
    if dependence is None:
        return given.groups
    homes = np.full(n, -1, dtype=np.int64)
    homes[declared] = given.groups
    if (homes[declared] != given.groups).any():
        seen = "labels that divide a group of the dependence model"
        raise InputError("groups", seen, "unions of the groups of the dependence model")
    return declared


def _independent(dependence: DependenceModel) -> NDArray[np.int64]:
    """Return the independent groups of a model; refuse a model without them or without their members."""
    from graphs import Groups

    if isinstance(dependence, Groups):
        return dependence.groups
    sizes = dependence.independent_groups()
    if sizes is not None and int(sizes.max()) == 1:
        return np.arange(dependence.n, dtype=np.int64)
    what = "a model whose folds depend on each other" if sizes is None else "a model of several components"
    advice = "A fold must have the same distribution given the other folds."
    seen = f"{what} ({dependence.describe()})"
    raise InputError("dependence", seen, "a model of independent records, or Groups(labels)", advice)


def _splits(
    n: int, cv: Any, groups: NDArray[np.int64] | None, random_state: int
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return pairs of positions."""
    from sklearn.model_selection import GroupKFold, KFold

    placeholder = np.zeros((n, 1))
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        pieces = n if groups is None else len(np.unique(groups))
        if not 2 <= cv <= pieces:
            what = "records" if groups is None else "groups"
            raise InputError("cv", cv, f"a number of folds from 2 to {pieces}, the number of {what}")
        kind = KFold if groups is None else GroupKFold
        found: Iterable[Any] = kind(int(cv), shuffle=True, random_state=random_state).split(placeholder, None, groups)
    elif "Stratified" in type(cv).__name__:
        raise InputError("cv", type(cv).__name__, _BLIND, _WHY_BLIND)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        try:
            with suppress_warnings(UserWarning):  # about groups that the splitter ignores
                found = list(cv.split(placeholder, None, groups))
        except (TypeError, ValueError) as error:
            raise InputError("cv", f"{cv!r}, which fails ({error})", _BLIND, _WHY_BLIND) from None
    elif hasattr(cv, "__iter__") and not isinstance(cv, str):
        found = cv
    else:
        raise InputTypeError("cv", repr(cv), "a number of folds, a splitter, or pairs (train, test)")
    try:
        pairs = [tuple(map(np.asarray, pair)) for pair in found]
        splits = [
            (train.astype(np.intp, casting="safe"), test.astype(np.intp, casting="safe")) for train, test in pairs
        ]
    except (TypeError, ValueError):
        raise InputError("cv", repr(cv), "pairs (train, test) of positions") from None
    return splits
