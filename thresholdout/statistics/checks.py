"""Checks of labels and predictions, with messages that say what to do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "declared_label",
    "one_class",
    "positive_label",
    "positive_number",
    "predictions",
    "residuals",
    "scores",
    "several_classes",
    "shown",
    "two_classes",
    "variance_of",
]


def _distinct(y: NDArray[Any]) -> NDArray[Any]:
    if y.ndim != 1 or not y.size:
        raise InputError("y", f"labels of shape {y.shape}", "one label for each record")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("y", "labels that are missing or infinite", "a class for each record")
    return np.unique(y)


def several_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes of the labels, in order, and the number of each record's class; at least two classes."""
    labels = _distinct(y)
    if labels.size < 2:
        raise one_class(y)
    return labels, np.searchsorted(labels, y)


def two_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the two classes of the labels, in order."""
    labels, _ = several_classes(y)
    return _at_most_two(labels)


def _at_most_two(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.size > 2:
        raise InputError("y", f"labels of {labels.size} classes", "two classes")
    return labels


def one_class(y: NDArray[Any]) -> InputError:
    """Return the error about labels of one class."""
    return InputError("y", f"labels of one class, {shown(y[0])}", "records of two classes")


def positive_label(y: NDArray[Any], classes: NDArray[Any] | None) -> Any:
    """Return the larger of two labels, among those that the estimator knows if it says which."""
    if classes is None:
        return two_classes(y)[1]
    labels = _at_most_two(np.union1d(_distinct(y), classes))
    if labels.size < 2:
        raise one_class(y)
    return labels[1]


def declared_label(positive: Any, y: NDArray[Any], classes: NDArray[Any] | None) -> Any:
    """Return the declared positive class, after a check that there are no more than two classes."""
    _at_most_two(_distinct(y) if classes is None else np.union1d(_distinct(y), classes))
    return positive


def shown(label: Any) -> str:
    """Return a label as messages show it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def scores(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return one finite score for each record; of probabilities, that of the second class."""
    if output.shape != y.shape and output.shape != (y.size, 2):
        expected = f"one for each of {y.size} records, or probabilities of two classes"
        raise InputError("estimator", f"scores of shape {output.shape}", expected)
    found: NDArray[np.float64] = (output[:, 1] if output.ndim == 2 else output).astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError("estimator", "scores that are missing or infinite", "finite numbers")
    return found


def predictions(output: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Check that there is one prediction per record."""
    if output.shape != y.shape:
        raise InputError("estimator", f"predictions of shape {output.shape}", f"shape {y.shape}, as the labels")
    return output


def residuals(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return label - prediction for each record; all finite."""
    errors: NDArray[np.float64] = _numbers(y) - predictions(output, y).astype(np.float64)
    if not np.isfinite(errors).all():
        raise InputError("estimator", "predictions that are not finite", "finite numbers")
    return errors


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    if y.ndim != 1 or not y.size or y.dtype.kind not in "buif":
        raise InputError("y", f"labels of type {y.dtype} and shape {y.shape}", "one number for each record")
    numbers: NDArray[np.float64] = y.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("y", "labels that are missing or infinite", "finite numbers")
    return numbers


def variance_of(y: NDArray[Any]) -> float:
    """Return the variance of numeric labels, which must vary."""
    variance = float(np.var(_numbers(y)))
    if not (0.0 < variance < math.inf) or y.min() == y.max():
        raise InputError("y", "labels that are all the same, or vary too little or too much", "labels that vary")
    return variance


def positive_number(value: float, argument: str) -> float:
    """Check that a number is positive and finite, and return it as a float."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(argument, repr(value), "a positive finite number")
    return number
