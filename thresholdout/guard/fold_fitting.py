"""What K-fold cross-validation does with an estimator: a clone for each fold, which never saw that fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.guard.fold_assignment import Fold

__all__ = ["FoldPredictions", "check_estimator", "fold_predictions", "parts_of"]


@dataclass(frozen=True, slots=True)
class FoldPredictions:
    """What one fold's model says about its fold."""

    output: NDArray[Any]
    classes: NDArray[Any] | None


def fold_predictions(estimator: Any, response: str, X: Any, y: Any, fold: Fold) -> FoldPredictions:
    """Fit a clone to a fold's complement, and apply it to the fold."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    with suppress_warnings():  # a warning may show records
        model = clone(estimator).fit(_safe_indexing(X, fold.train), _safe_indexing(y, fold.train))
        output = np.asarray(getattr(model, response)(_safe_indexing(X, fold.test)))
    return FoldPredictions(output, getattr(model, "classes_", None))


def check_estimator(estimator: Any, response: str) -> None:
    """Refuse what can't be fitted anew for every fold: a frozen model may have seen the fold that it is judged by."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise InputTypeError("estimator", repr(estimator), "a scikit-learn estimator, which is cloned for every fold")
    if not hasattr(estimator, response):
        raise InputTypeError("estimator", f"{type(estimator).__name__} without {response}", response)
    from sklearn.frozen import FrozenEstimator

    if any(isinstance(part, FrozenEstimator) for part in parts_of(estimator)):
        seen = "a frozen model, which stays what it is in every fold"
        raise InputError("estimator", seen, "an estimator that every fold fits anew")


def parts_of(thing: Any) -> Iterator[Any]:
    """Yield an estimator and everything in its parameters, also in lists."""
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        for part in thing:
            yield from parts_of(part)
        return
    yield thing
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        yield from parts_of(thing.get_params(deep=False))
