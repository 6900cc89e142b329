"""Whether two parts of a data set share records, or groups of them.

Both parts are compared when a guard is made or opened, by whoever has them both. What is told then is not for those
who only ask: a guard that exists compares nothing with single records of its holdout.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from thresholdout.data.record_labels import aligned
from thresholdout.data.row_hashes import Precision, columns_of, record_hashes, rounded
from thresholdout.errors import InputError, OverlapError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from graphs.numerics.arguments import IntArray
    from thresholdout.data.identity import Part

__all__ = ["check_disjoint", "check_groups"]

Rounding: TypeAlias = "tuple[Precision | Sequence[Precision], ...]"
"""To what precision each piece is rounded, or each of its columns."""

_STORED: Final[tuple[tuple[Precision, str], ...]] = ((np.float32, "single"), (np.float16, "half"))
_BEYOND_CHANCE: Final = 10
"""So many times more records must agree after rounding than agree by chance."""


def check_disjoint(train: Part, holdout: Part) -> None:
    """Refuse two parts that share records: equal in every column of every piece, or but for a rounding.

    A part that went through single or half precision, as a whole or in some of its columns, has the roundings of what
    it was made of. Roundings also agree by chance: where different records of one part become equal by the same
    rounding, only many more agreements between the parts than that count.

    Raises
    ------
    OverlapError
        When some record of the training part is a record of the holdout.

    Examples
    --------
    >>> X, y = np.random.default_rng(0).normal(size=(10, 3)), np.arange(10)
    >>> check_disjoint((np.float32(X[:6]), y[:6]), (X[5:], y[5:]))
    Traceback (most recent call last):
    thresholdout.errors.OverlapError: train: 1 of 5 holdout records occur in the training part too, rounded to single...
    """
    if len(train) != len(holdout):
        return
    exact = record_hashes(train)[:, 0], record_hashes(holdout)[:, 0]
    shared = int(np.isin(exact[1], exact[0]).sum())
    if shared:
        _refuse(shared, exact[1].size, "")
    for precision, name in _STORED:
        shared = _copies(train, exact[0], holdout, exact[1], precision)[0]
        shared = max(shared, _copies(holdout, exact[1], train, exact[0], precision)[1])
        if shared:
            _refuse(shared, exact[1].size, f", rounded to {name} precision")


def check_groups(
    train_groups: object, dependence: DependenceModel, train_size: int | None, labels: pd.Index[Any] | None
) -> IntArray:
    """Refuse groups of the training part that are groups of the holdout, and return their numbers.

    Parameters
    ----------
    train_groups : array-like of hashable
        Group of each training record.
    dependence : DependenceModel
        Of the holdout's records, with names of groups.
    train_size : int or None
        Number of training records.
    labels : pandas.Index or None
        Labels of the training records, if they have some.

    Returns
    -------
    ndarray of shape (train_size,)
        Number of each training record's group, from 0.

    Raises
    ------
    OverlapError
        When some group is in both parts.
    InputError
        When the groups cannot be compared.
    """
    from graphs import Communities, Groups
    from graphs.errors import ArgumentError

    expected = "one group for each training record, written like the groups of the holdout"
    if train_size is None:
        raise InputError("train_groups", "groups without a training part", "train=(X_train, y_train) beside them")
    if not isinstance(dependence, Groups | Communities):
        seen = f"groups beside {dependence.describe()}, which have no names of groups"
        raise InputError("train_groups", seen, "groups=holdout_groups beside them, in place of another model")
    try:
        own = Groups(aligned(train_groups, labels, "train_groups"))
    except ArgumentError as error:
        raise InputError("train_groups", error.seen, expected) from None
    if own.n != train_size:
        raise InputError("train_groups", f"{own.n} groups for {train_size} training records", expected)
    protected = set(dependence.names if isinstance(dependence, Groups) else dependence.communities)
    shared = [k for k, name in enumerate(own.names) if name in protected]
    if shared:
        records = int(np.isin(own.groups, shared).sum())
        raise OverlapError(
            "train_groups",
            f"{len(shared)} of {len(protected)} groups of the holdout occur in the training part too, where they have "
            f"{records} of {own.n} records",
            "parts without common groups: with keep = ~np.isin(train_groups, holdout_groups) take "
            "train=(X_train[keep], y_train[keep]) and train_groups=train_groups[keep]",
        )
    kinds = _kinds(own.names), _kinds(tuple(protected))
    if not kinds[0] <= kinds[1]:
        seen = f"{' and '.join(sorted(kinds[0]))} beside {' and '.join(sorted(kinds[1]))} for the holdout's groups"
        raise InputError("train_groups", seen, expected)
    return own.groups


def _refuse(shared: int, size: int, how: str) -> None:
    raise OverlapError(
        "train",
        f"{shared} of {size} holdout records occur in the training part too{how}",
        "parts without common records; drop them from one part, or pass allow_equal_rows=True if equal "
        "rows are different records here",
    )


def _copies(
    stored: Part, stored_keys: NDArray[np.uint64], original: Part, keys: NDArray[np.uint64], precision: Precision
) -> tuple[int, int]:
    """Return how many originals have a rounding among stored records, and how many stored records are such roundings.

    Both are zero where chance may have done it.
    """
    most = 0, 0
    for rounding in _roundings(stored, original, precision):
        coarse = record_hashes(original, rounding)[:, 0]
        found = np.isin(coarse, stored_keys) & (coarse != keys)
        if not found.any():
            continue
        order = np.argsort(coarse, kind="stable")
        alike = (coarse[order][1:] == coarse[order][:-1]) & (keys[order][1:] != keys[order][:-1])
        by_chance = 2 * int(alike.sum()) * len(stored_keys) / len(keys)
        count = int(found.sum())
        if count > _BEYOND_CHANCE * by_chance:
            most = max(most, (count, int(np.isin(stored_keys, coarse[found]).sum())))
    return most


def _roundings(stored: Part, original: Part, precision: Precision) -> list[Rounding]:
    """Return what may have been rounded: everything, or those columns that have only numbers of this precision.

    Nothing, where a rounding changes no original, or no stored record can have come out of it.
    """
    fits = [_fitting(piece, precision) for piece in stored]
    changes = [[not column.all() for column in _fitting(piece, precision)] for piece in original]
    if not any(map(any, changes)):
        return []
    ways: list[Rounding] = []
    if np.logical_and.reduce([column for piece in fits for column in piece]).any():
        ways.append((precision,) * len(original))
    whole = [[bool(column.all()) for column in piece] for piece in fits]
    if all(map(all, whole)) or [len(piece) for piece in whole] != [len(piece) for piece in changes]:
        return ways
    pairs = [pair for piece in zip(whole, changes, strict=True) for pair in zip(*piece, strict=True)]
    if any(one and other for one, other in pairs):
        ways.append(tuple([precision if fitting else np.float64 for fitting in piece] for piece in whole))
    return ways


def _fitting(piece: Any, precision: Precision) -> list[NDArray[np.bool_]]:
    """Return for each column which of its entries are no other after rounding; for sparse ones, all as one column."""
    if hasattr(piece, "tocsr"):
        entries = piece.tocoo()
        values = np.asarray(entries.data, dtype=np.float64)
        rows = np.ones(piece.shape[0], dtype=bool)
        rows[entries.row[rounded(values, precision) != values]] = False
        return [rows]
    found = []
    for column in columns_of(piece):
        if column.dtype == np.float64:
            found.append((rounded(column, precision) == column) | np.isnan(column))
        else:
            found.append(np.ones(len(column), dtype=bool))
    return found


def _kinds(names: Sequence[Hashable]) -> set[str]:
    """Return what the names of groups are; texts are never equal to numbers."""
    return {
        "texts" if kind is str else "numbers" if issubclass(kind, Real) else kind.__name__ for kind in map(type, names)
    }
