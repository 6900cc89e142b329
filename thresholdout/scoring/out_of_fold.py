"""Out-of-fold predictions of an estimator's clones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphs.progress_bar import progress_bar
from thresholdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OutOfFold", "out_of_fold"]

_LONGEST: Final = 160  # characters of an estimator's own message
_INSTEAD: Final = "Or pass train_values=, or cv='training'."


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Predictions of an estimator's clones, one for each test of a record.

    ``classes`` are those of the columns, ``None`` for numbers. ``tested`` has the records in rising order, with
    repetitions.
    """

    output: NDArray[Any]
    classes: NDArray[Any] | None
    tested: NDArray[np.intp]


def out_of_fold(
    estimator: Any, X: Any, y: Any, splits: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]], response: str
) -> OutOfFold:
    """Fit a clone for each fold, and apply it to the fold's test records.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = np.arange(4.0)[:, None], np.arange(4.0)
    >>> found = out_of_fold(LinearRegression(), X, y, [(np.array([0, 1]), np.array([3, 2]))], "predict")
    >>> found.tested, found.output.round(6)
    (array([2, 3]), array([2., 3.]))
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    classes, parts = np.unique(np.asarray(y)), []
    known = None
    for number, (fit, test) in enumerate(progress_bar(splits, doing="cross-validating", unit="fits"), start=1):
        try:
            model = clone(estimator).fit(_safe_indexing(X, fit), _safe_indexing(y, fit))
            output = np.asarray(getattr(model, response)(_safe_indexing(X, test)))
        except Exception as error:
            first = (str(error).strip() or " ").splitlines()[0][:_LONGEST]
            what = f"{type(estimator).__name__} whose fit {number} of {len(splits)}, to {fit.size} records, raises"
            seen = f"a {what} {type(error).__name__}: {first.rstrip('.')}"
            expected = "a model that can be fitted to a part of the training records"
            raise InputError("estimator", seen, expected, _INSTEAD) from error
        own = getattr(model, "classes_", None)
        if own is not None and isinstance(own, np.ndarray):
            known = classes
            if response != "predict" and not np.array_equal(own, classes):
                output = _filled(output, own, classes, response)
        parts.append(output)
    tested = np.concatenate([test for _, test in splits])
    if any(len(part) != test.size for part, (_, test) in zip(parts, splits, strict=True)):
        seen = "more or fewer predictions than records"
        raise InputError("estimator", seen, "a model with one prediction for each record")
    order = np.argsort(tested, kind="stable")
    return OutOfFold(np.concatenate(parts)[order], known, tested[order])


def _filled(output: NDArray[Any], own: NDArray[Any], classes: NDArray[Any], response: str) -> NDArray[Any]:
    """Return a column for each class; a class that a fold's model does not know has the least value."""
    if output.ndim != 2 or output.shape[1] != own.size:
        seen = f"{response} of a model that has seen {own.size} of {classes.size} classes"
        raise InputError("estimator", seen, "a model that each fold fits to all classes", _INSTEAD)
    least = 0.0 if response == "predict_proba" else float(np.finfo(np.float64).min)
    full = np.full((len(output), classes.size), least)
    full[:, np.searchsorted(classes, own)] = output
    return full
