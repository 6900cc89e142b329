"""A splitter that trains on all given records and leaves scoring to a guard."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from thresholdout.errors import InputError, InputTypeError, SearchFailed
from thresholdout.guard.holdout import origin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.guard import Thresholdout

__all__ = ["TrainSplit", "check_training", "made_by_a_call", "placeholder_size", "rows_of"]

_MOST: Final = 4096
"""Rows of a placeholder: enough for a halving search to cut it down by a factor of two thousand."""

_CALLS: Final = itertools.count()
"""Numbers the splits of this process, so that scorers can distinguish rounds of searches."""


class TrainSplit:
    """Splitter for ``cv=`` of a search with one split: train on all given records, test on a placeholder.

    `Thresholdout.split` makes it, for use with `Thresholdout.scorer`. The placeholder is one training record, repeated.
    It is another record in every call, which shows a `GuardScorer` the round of a search. The scorer never reads it,
    but asks the guard. So the holdout does not pass through the search, and a final refit uses training records only.
    The splitter has no data and can be sent to other processes.

    Parameters
    ----------
    guard : Thresholdout
        The guard. Any of its training records may be split, such as a fold of an outer cross-validation.
    n : int
        Number of training records, for messages.

    Examples
    --------
    >>> from thresholdout import Claims, Thresholdout
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> guard = Thresholdout((X[:50], np.zeros(50)), train=(X[50:], np.zeros(50)), queries=10,
    ...                      mechanism=Claims(holdout_answers=2))
    >>> [(fit.size, test.size) for fit, test in guard.split().split(X[60:])]
    [(40, 40)]
    """

    def __init__(self, guard: Thresholdout, n: int) -> None:
        self.guard = guard
        self.n = n

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the one split, and refuse records that are not training records."""
        check_training(self.guard, X, y, self.n)
        size = rows_of(X)
        yield np.arange(size), np.full(placeholder_size(size), next(_CALLS) % size, dtype=np.intp)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return 1."""
        return 1

    def get_metadata_routing(self) -> Any:
        """Return the metadata request: ``groups`` are accepted and make no difference to one split."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner="TrainSplit")
        request.split.add_request(param="groups", alias=True)
        return request

    def __repr__(self) -> str:
        return f"TrainSplit({self.n})"


def check_training(guard: Thresholdout, X: Any, y: Any, n: int) -> None:
    """Refuse records that are not training records of the guard, with one message for all other records."""
    if origin(guard, X, y) != "train":
        check_width(guard, X)
        raise InputError(
            "X",
            "records that are not all in the guard's training part",
            f"some of the guard's {n} training records",
            "Other records to fit belong into Thresholdout(..., train=(X, y)), and changes of records into a pipeline.",
        )


def check_width(guard: Thresholdout, X: Any) -> None:
    """Refuse a subset of the columns: a search over columns does not state which ones they are."""
    there, known = (tuple(getattr(part, "shape", ())) for part in (X, guard.train[0]))
    if len(there) == 2 and len(known) == 2 and there[1] < known[1]:
        raise InputError(
            "X",
            f"{there[1]} of the {known[1]} columns",
            "records with all columns",
            "RFECV and SequentialFeatureSelector pass some columns only. Make the selection a step: "
            "GridSearchCV(make_pipeline(RFE(model), model), {'rfe__n_features_to_select': [...]}, "
            "scoring=guard.scorer(), cv=guard.split()); or use the selector on training records, without the guard.",
        )


def placeholder_size(n: int) -> int:
    """Return the number of rows that represent the holdout if ``n`` records are split."""
    return max(2, min(n, _MOST))


def rows_of(X: Any) -> int:
    """Return the number of records."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape is not None else len(X)


Made = TypeVar("Made", bound=Callable[..., Any])


def made_by_a_call(method: Made) -> Made:
    """Make a method refuse the call of a search, which was given the method in place of the scorer that it returns."""

    @functools.wraps(method)
    def checked(guard: Thresholdout, *given: object, **named: Any) -> Any:
        if len(given) > 1:  # an estimator and records; a search turns an Exception into NaN
            seen, expected = "guard.scorer, the method", "guard.scorer(), the scorer that the method returns"
            raise SearchFailed(InputTypeError("scoring", seen, expected, "Pass cv=guard.split() with it."))
        return method(guard, *given, **named)

    return cast(Made, checked)
