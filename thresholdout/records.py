"""The records behind a guard: its holdout, its training part, and what rows belong to which."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from thresholdout.errors import InputError
from thresholdout.fingerprint import (
    Part,
    check_disjoint,
    check_labels,
    handed_out,
    identity,
    kept,
    order,
    part,
)
from thresholdout.queries import unit_mean
from thresholdout.rows import coarse_hashes, membership_keys, record_hashes, row_hashes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Origin", "Records"]

Origin: TypeAlias = Literal["train", "holdout", "mixed", "other"]
"""Where rows come from; see `Records.origin`."""

_NO_TRAIN = "Thresholdout(..., train=(X_train, y_train))"


class Records:
    """A holdout, and the training part beside it.

    Parameters
    ----------
    holdout, train : array, data frame, or tuple of them
        See `thresholdout.Thresholdout`; the training part may be missing.
    allow_equal_rows : bool
        Accept rows that occur in both.

    Attributes
    ----------
    n : int
        Number of holdout records.
    holdout : tuple
        A copy that nobody else can change. Secret.

    Raises
    ------
    InputError
        When the parts are not alike, or empty.
    OverlapError
        When they share records.
    """

    def __init__(self, holdout: object, train: object | None, allow_equal_rows: bool) -> None:
        given = part(holdout, "holdout")
        check_labels(given, "holdout")
        self._train = None if train is None else part(train, "train")
        if self._train is not None:
            check_labels(self._train, "train")
            _check_parts(self._train, given)
            if not allow_equal_rows:
                check_disjoint(self._train, given)
        self.n = _length(given)
        self.holdout = kept(given)

    @cached_property
    def identity(self) -> str:
        """Who the holdout is, whatever the order of its records."""
        return identity(self.holdout)

    @cached_property
    def order(self) -> str:
        """A digest of the holdout's records in their order."""
        return order(self.holdout)

    @property
    def train(self) -> Part:
        """The training part, for functions that may write to it.

        Raises
        ------
        InputError
            When there is none.
        """
        if self._train is None:
            raise InputError("train", "no training part in this guard", _NO_TRAIN)
        return handed_out(self._train)

    @property
    def train_size(self) -> int | None:
        """Number of training records, when there is a training part."""
        return None if self._train is None else _length(self._train)

    def labelled(self) -> tuple[Part, Part]:
        """Return training part and holdout as pairs (X, y).

        Raises
        ------
        InputError
            When they are not pairs.
        """
        if self._train is None or len(self._train) != 2:
            raise InputError("train", "no training part (X, y)", "Thresholdout((X, y), train=(X_train, y_train))")
        return self.train, self.holdout

    def apply(self, query: Callable[..., object]) -> tuple[object, Callable[[], object]]:
        """Apply a question to the training part, and return how to apply it to the holdout."""
        return query(*self.train), lambda: query(*handed_out(self.holdout))

    def train_mean(self, values: object, bounds: tuple[float, float]) -> float:
        """Return the mean of training values in units of the range; a number stands for itself."""
        if isinstance(values, (int, float, np.number)) and not isinstance(values, bool):
            return unit_mean([values], 1, bounds, "train_values")
        return unit_mean(values, self.train_size, bounds, "train_values")

    def origin(
        self,
        hashes: NDArray[np.uint64],
        records: NDArray[np.uint64] | None = None,
        coarse: NDArray[np.uint64] | None = None,
    ) -> Origin:
        """Say where records come from, by their content.

        Parameters
        ----------
        hashes : ndarray of shape (k, 2)
            Of the rows of X, by `thresholdout.rows.row_hashes`.
        records : ndarray of shape (k, 2), optional
            Of the records (X, y), by `thresholdout.rows.record_hashes`; without them X alone decides.
        coarse : ndarray of shape (k, 2), optional
            Of the rows of X in single precision, by `thresholdout.rows.coarse_hashes`.

        Returns
        -------
        {"train", "holdout", "mixed", "other"}
            "holdout" for exactly the holdout's rows in any order; "train" for training records, each at most as often
            as there; "mixed" when some are holdout rows; "other" otherwise.

        Raises
        ------
        InputError
            When the parts are no pairs (X, y): then rows tell labels.
        """
        if len(self.holdout) != 2:
            raise InputError("X", "rows for a guard whose parts are no pairs (X, y)", "Thresholdout((X, y), ...)")
        keys = membership_keys(hashes)
        if keys.size == self.n and np.array_equal(np.sort(keys), self._holdout_keys):
            return "holdout"
        if keys.size and self._train is not None:
            known = self._train_keys if records is None else self._train_record_keys
            if _within(keys if records is None else membership_keys(records), known):
                return "train"
        if bool(_among(keys, self._holdout_keys).any()):
            return "mixed"
        if coarse is not None and bool(_among(membership_keys(coarse), self._coarse_keys).any()):
            return "mixed"
        return "other"

    @cached_property
    def _holdout_keys(self) -> NDArray[np.uint64]:
        return np.sort(membership_keys(row_hashes(self.holdout[0])))

    @cached_property
    def _coarse_keys(self) -> NDArray[np.uint64]:
        return np.sort(membership_keys(coarse_hashes(self.holdout[0])))

    @cached_property
    def _train_keys(self) -> NDArray[np.uint64]:
        return np.sort(membership_keys(row_hashes(self.train[0])))

    @cached_property
    def _train_record_keys(self) -> NDArray[np.uint64]:
        return np.sort(membership_keys(record_hashes(self.train)))


def _within(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> bool:
    """Whether keys are in a sorted array, each at most as often as there; copies of one key as often as one likes.

    Copies of one training record stand for the holdout in searches, see `thresholdout.model_selection.TrainSplit`.
    """
    different, counts = np.unique(keys, return_counts=True)
    there = np.searchsorted(known, different, side="right") - np.searchsorted(known, different, side="left")
    return bool((there >= (1 if different.size == 1 else counts)).all())


def _among(keys: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each key is in a sorted array."""
    places = np.minimum(np.searchsorted(known, keys), known.size - 1)
    found: NDArray[np.bool_] = known[places] == keys
    return found


def _length(data: Part) -> int:
    shape = getattr(data[0], "shape", None)
    return int(shape[0]) if shape is not None else len(data[0])


def _check_parts(train: Part, holdout: Part) -> None:
    """Both parts must be built alike."""
    if len(train) != len(holdout):
        raise InputError("train", f"{len(train)} arrays", f"{len(holdout)}, as in the holdout")
    for one, other in zip(train, holdout, strict=True):
        if hasattr(one, "columns") and hasattr(other, "columns") and list(one.columns) != list(other.columns):
            raise InputError("train", f"columns {list(one.columns)}", f"{list(other.columns)}, as in the holdout")
        left, right = getattr(one, "shape", None), getattr(other, "shape", None)
        if left is not None and right is not None and left[1:] != right[1:]:
            raise InputError("train", f"records of shape {left[1:]}", f"shape {right[1:]}, as in the holdout")
