"""Checks that two parts of a data set share no records and no groups.

Whoever makes or opens a guard has both parts, and sees the result. Clients that only ask do not: an existing guard
compares nothing with single records of its holdout.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from thresholdout.data.hashed_entries import Precision, rounded
from thresholdout.data.identity import Part, record_count
from thresholdout.data.record_labels import aligned
from thresholdout.data.row_hashes import block_of, columns_of, is_sparse, number_type, record_keys
from thresholdout.errors import InputError, OverlapError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from graphs.numerics.arguments import IntArray

__all__ = ["check_disjoint", "check_groups", "refuse_copies"]

Rounding: TypeAlias = "tuple[Precision | Sequence[Precision], ...]"
"""Precision of each piece, or of each of its columns."""

_STORED: Final[tuple[tuple[Precision, str], ...]] = ((np.float32, "single"), (np.float16, "half"))
_BLOCK: Final = 1 << 14  # records at a time, which bounds the memory
_KEYS: Final = 1 << 16
"""Records per block, and keys per block, which bounds the temporary arrays."""
_BEYOND_CHANCE: Final = 10
"""Factor by which agreements after rounding must exceed those by chance, so that chance refuses no valid parts."""


def check_disjoint(train: Part, holdout: Part, keys: NDArray[np.uint64] | None = None) -> None:
    """Refuse two parts that share records: equal in every column of every piece, exactly or after rounding.

    A part that was stored in single or half precision, as a whole or in some columns, contains roundings of its
    originals. Roundings also agree by chance: if different records of one part become equal by the same rounding,
    agreements between the parts count only if there are many more.

    Examples
    --------
    >>> X, y = np.random.default_rng(0).normal(size=(10, 3)), np.arange(10)
    >>> check_disjoint((np.float32(X[:6]), y[:6]), (X[5:], y[5:]))
    Traceback (most recent call last):
    thresholdout.errors.OverlapError: train must be free of holdout records; got 1 of 5...
    """
    if len(train) != len(holdout):
        return
    exact = record_keys(train), record_keys(holdout) if keys is None else keys
    shared = int(_among(exact[1], exact[0]).sum())
    if shared:
        refuse_copies(shared, exact[1].size)
    first: _Fit | None = None
    second: _Fit | None = None
    for precision, name in _STORED:
        first, second = _fitting(train, precision, first), _fitting(holdout, precision, second)
        shared = _copies(train, exact[0], holdout, exact[1], _roundings(first, second, precision))[0]
        shared = max(shared, _copies(holdout, exact[1], train, exact[0], _roundings(second, first, precision))[1])
        if shared:
            refuse_copies(shared, exact[1].size, f", rounded to {name} precision")


def check_groups(
    train_groups: object, dependence: DependenceModel, train_size: int | None, labels: pd.Index[Any] | None
) -> IntArray:
    """Refuse groups of the training part that are groups of the holdout, and return their numbers."""
    from graphs import Communities, Groups
    from graphs.errors import ArgumentError

    expected = "one group for each training record, written like the groups of the holdout"
    if train_size is None:
        raise InputError("groups", "groups without training records", "None without train=", _BOTH)
    if not isinstance(dependence, Groups | Communities):
        seen = f"groups beside {dependence.describe()}, a model without names of groups"
        raise InputError("groups", seen, "None for a holdout without groups", _BOTH)
    try:
        own = Groups(aligned(train_groups, labels, "groups"))
    except ArgumentError as error:
        raise InputError("groups", error.seen, expected) from None
    if own.n != train_size:
        raise InputError("groups", f"{own.n} groups for {train_size} training records", expected)
    protected = set(dependence.names if isinstance(dependence, Groups) else dependence.communities)
    shared = [k for k, name in enumerate(own.names) if name in protected]
    if shared:
        records = int(np.isin(own.groups, shared).sum())
        raise OverlapError(
            "groups",
            f"{len(shared)} of its {len(protected)} groups, with {records} of {own.n} training records",
            "a column without groups of the holdout",
            "With keep = ~np.isin(train_groups, holdout_groups), pass train=(X_train[keep], y_train[keep], "
            "train_groups[keep]).",
        )
    kinds = _kinds(own.names), _kinds(tuple(protected))
    if not kinds[0] <= kinds[1]:
        seen = f"{' and '.join(sorted(kinds[0]))} beside {' and '.join(sorted(kinds[1]))} for the holdout's groups"
        raise InputError("groups", seen, expected)
    return own.groups


_BOTH: Final = "Pass (X, y, groups) in both parts."


def refuse_copies(shared: int, size: int, how: str = "") -> None:
    """Refuse a training part with records of the holdout."""
    raise OverlapError(
        "train",
        f"{shared} of {size} holdout records{how}",
        "free of holdout records",
        "Drop these records from one part or, if equal rows are different records here, pass allow_duplicates=True.",
    )


def _among(keys: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which keys are among others, sorting only those whose first bits are in both."""
    likely = np.flatnonzero(_first_bits(keys, others))
    found = np.zeros(keys.size, dtype=bool)
    if likely.size:
        left = keys[likely]
        there = np.sort(others[_first_bits(others, left)])
        place = np.searchsorted(there, left)
        place[place == there.size] = 0
        found[likely] = there[place] == left
    return found


def _first_bits(keys: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which keys begin like one of the others: all that are among them, and one in eight of the rest."""
    shift = np.uint64(64 - max(8, int(others.size - 1).bit_length() + 3))
    marked = np.zeros(1 << (64 - int(shift)), dtype=bool)
    for first in range(0, others.size, _KEYS):
        marked[others[first : first + _KEYS] >> shift] = True
    found = np.empty(keys.size, dtype=bool)
    for first in range(0, keys.size, _KEYS):
        found[first : first + _KEYS] = marked[keys[first : first + _KEYS] >> shift]
    return found


def _copies(
    stored: Part,
    stored_keys: NDArray[np.uint64],
    original: Part,
    keys: NDArray[np.uint64],
    roundings: Sequence[Rounding],
) -> tuple[int, int]:
    """Return how many originals have a rounding among stored records, and how many stored records are roundings.

    Both are zero if chance explains them.
    """
    most = 0, 0
    for rounding in roundings:
        coarse = record_keys(original, rounding)
        found = _among(coarse, stored_keys) & (coarse != keys)
        if not found.any():
            continue
        order = np.argsort(coarse, kind="stable")
        alike = (coarse[order][1:] == coarse[order][:-1]) & (keys[order][1:] != keys[order][:-1])
        by_chance = 2 * int(alike.sum()) * len(stored_keys) / len(keys)
        count = int(found.sum())
        if count > _BEYOND_CHANCE * by_chance:
            most = max(most, (count, int(_among(stored_keys, coarse[found]).sum())))
    return most


@dataclass(frozen=True, slots=True)
class _Fit:
    """Columns of each piece that a rounding does not change, and whether it leaves some record unchanged as a whole.

    All entries of a sparse piece count as one column.
    """

    columns: list[list[bool]]
    some: bool


def _roundings(stored: _Fit, original: _Fit, precision: Precision) -> list[Rounding]:
    """Return the possible roundings: of everything, or of the columns with numbers of this precision only.

    There is none if rounding changes no original, or if no stored record can be a rounding.
    """
    if all(map(all, original.columns)):
        return []
    ways: list[Rounding] = [(precision,) * len(original.columns)] if stored.some else []
    whole = stored.columns
    if all(map(all, whole)) or [len(piece) for piece in whole] != [len(piece) for piece in original.columns]:
        return ways
    pairs = [pair for piece in zip(whole, original.columns, strict=True) for pair in zip(*piece, strict=True)]
    if any(fitting and not kept for fitting, kept in pairs):
        ways.append(tuple([precision if fitting else np.float64 for fitting in piece] for piece in whole))
    return ways


def _fitting(part: Part, precision: Precision, finer: _Fit | None) -> _Fit:
    """Return the columns that a rounding does not change; a column that a finer one changes is changed by it, too."""
    whole, numeric, rows = [], [], None
    for number, piece in enumerate(part):
        if is_sparse(piece):
            kept = _kept_rows(piece, precision)
            rows = kept if rows is None else rows & kept
            whole.append([bool(kept.all())])
            continue
        columns = columns_of(piece)
        whole.append([True] * len(columns) if finer is None else list(finer.columns[number]))
        for place, column in enumerate(columns):
            kind = number_type(column)
            if kind is not None and not np.can_cast(kind, precision):
                numeric.append((number, place, column))
    if finer is not None and not finer.some and not any(map(any, whole)):
        return _Fit(whole, False)
    size, some = record_count(part), False
    for start in range(0, size, _BLOCK):
        left = np.ones(min(_BLOCK, size - start), dtype=bool) if rows is None else rows[start : start + _BLOCK].copy()
        for number, place, column in numeric:
            if not whole[number][place] and not left.any():
                continue
            values = block_of(column, start, start + _BLOCK).astype(np.float64)
            same = (rounded(values, precision) == values) | np.isnan(values)
            whole[number][place] &= bool(same.all())
            left &= same
        some |= bool(left.any())
    return _Fit(whole, some)


def _kept_rows(piece: Any, precision: Precision) -> NDArray[np.bool_]:
    """Return which rows of a sparse matrix a rounding does not change."""
    entries = piece.tocoo()
    values = np.asarray(entries.data, dtype=np.float64)
    rows = np.ones(piece.shape[0], dtype=bool)
    rows[entries.row[rounded(values, precision) != values]] = False
    return rows


def _kinds(names: Sequence[Hashable]) -> set[str]:
    """Return the kinds of group names; texts never equal numbers."""
    kinds = set(map(type, names))
    return {"texts" if kind is str else "numbers" if issubclass(kind, Real) else kind.__name__ for kind in kinds}
