"""Checks of labels and predictions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["binary_labels", "predictions", "residuals", "scores", "shown", "variance_of"]


def binary_labels(labels: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return two classes, the larger one last."""
    if labels is None or not labels.size:
        raise InputError("y", "no classes", "labels of two classes")
    if labels.size > 2:
        raise InputError(
            "y", f"labels of {labels.size} classes", "labels of two classes", "Or pass positive= for one of them."
        )
    if labels.size < 2:
        raise InputError("y", f"labels of one class, {shown(labels[0])}", "labels of two classes")
    return labels[0], labels[1]


def shown(label: Any) -> str:
    """Return a label in the form of messages."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def scores(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return one finite score for each record; of two probabilities, that of the second class."""
    if output.shape != y.shape and output.shape != (y.size, 2):
        expected = f"a model with {y.size} scores, one for each record, or probabilities of two classes"
        raise InputError("estimator", f"scores of shape {output.shape}", expected)
    found: NDArray[np.float64] = (output[:, 1] if output.ndim == 2 else output).astype(np.float64)
    if not np.isfinite(found).all():
        raise InputError("estimator", "scores that are missing or infinite", "a model with finite scores")
    return found


def predictions(output: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Check that there is one prediction per record."""
    if output.shape != y.shape:
        raise InputError(
            "estimator",
            f"predictions of shape {output.shape}",
            f"a model with predictions of shape {y.shape}, as the labels",
        )
    return output


def residuals(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return label - prediction for each record; all finite."""
    errors: NDArray[np.float64] = _numbers(y) - predictions(output, y).astype(np.float64)
    if not np.isfinite(errors).all():
        raise InputError("estimator", "predictions that are not finite", "a model with finite predictions")
    return errors


def _numbers(y: NDArray[Any]) -> NDArray[np.float64]:
    if y.ndim != 1 or not y.size or y.dtype.kind not in "buif":
        raise InputError("y", f"labels of type {y.dtype} and shape {y.shape}", "labels with one number for each record")
    numbers: NDArray[np.float64] = y.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("y", "labels that are missing or infinite", "labels with finite numbers")
    return numbers


def variance_of(y: NDArray[Any]) -> float:
    """Return the variance of numeric labels, which must vary."""
    variance = float(np.var(_numbers(y)))
    if not (0.0 < variance < math.inf) or y.min() == y.max():
        raise InputError("y", "labels that are all the same, or vary too little or too much", "labels that vary")
    return variance
