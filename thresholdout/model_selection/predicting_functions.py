"""Predicting functions as estimators for metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring.fitted_models import classifies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["Classifier", "Kind", "Predictor", "check_kind", "check_objective", "predictor"]

Kind = Literal["probabilities", "values"]
"""``"probabilities"``: of the classes, shape (n, k), or of the second of two, shape (n,) or (n, 1). ``"values"``: the
predicted labels or numbers themselves, shape (n,) or (n, 1)."""

_SLACK = 1e-4  # rounding of probabilities in single precision, with a margin


class Predictor:
    """An estimator whose predictions a function returns, one label or number per record; `state` restores the model."""

    only_holdout = False

    def __init__(self, function: Callable[[Any], Any], state: object = None) -> None:
        self._function = function
        self.state = state

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions, shape (n,)."""
        output = _array(self._function(X))
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        if output.ndim != 1:
            advice = "Pass kind='probabilities' for probabilities."
            raise InputError("predictions", f"shape {output.shape}", "one label or number per record", advice)
        return output


class Classifier:
    """An estimator whose class probabilities a function returns; `state` restores the model.

    The function returns shape (n, k), or the probability of the second of two classes, shape (n,) or (n, 1).

    Examples
    --------
    >>> model = Classifier(lambda X: np.array([0.2, 0.9]), ["no", "yes"])
    >>> model.predict(None).tolist(), model.predict_proba(None).round(3).tolist()
    (['no', 'yes'], [[0.8, 0.2], [0.1, 0.9]])
    """

    only_holdout = False

    def __init__(self, function: Callable[[Any], Any], classes: Any, state: object = None) -> None:
        self._function = function
        self.state = state
        self.classes_: NDArray[Any] = np.asarray(classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities, shape (n, k); refuse raw scores, and another number of classes."""
        output = _array(self._function(X)).astype(np.float64)
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        low, high = (float(output.min()), float(output.max())) if output.size else (0.0, 0.0)
        if not (low >= -_SLACK and high <= 1 + _SLACK):
            raise InputError("predictions", f"values from {low:g} to {high:g}", _EXPECTED, _ADVICE)
        output = np.clip(output, 0.0, 1.0)
        table = np.stack([1.0 - output, output], axis=1) if output.ndim == 1 else output
        sums = table.sum(axis=1)
        if not np.allclose(sums, 1.0, atol=10 * _SLACK):
            seen = f"rows with sums from {sums.min():g} to {sums.max():g}"
            raise InputError("predictions", seen, _EXPECTED, _ADVICE)
        if table.shape[1] != self.classes_.size:
            raise InputError(
                "classes",
                f"{self.classes_.size} for {table.shape[1]} columns of probabilities",
                "the labels of all columns",
                "Pass classes=[...].",
            )
        normalised: NDArray[np.float64] = table / sums[:, None]
        return normalised

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable labels, shape (n,)."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


_EXPECTED = "probabilities, in one row per record with the sum 1"
_ADVICE = "Transform raw scores (of a custom objective, or logits) before they reach the guard."


def predictor(
    function: Callable[[Any], Any], kind: Kind, classes: Any, state: object = None, *, only_holdout: bool = False
) -> Predictor | Classifier:
    """Return an estimator with a function's outputs; with `only_holdout` it knows those for the holdout alone."""
    model = Classifier(function, classes, state) if kind == "probabilities" else Predictor(function, state)
    model.only_holdout = only_holdout
    return model


def check_kind(kind: object) -> Kind:
    """Return the kind of output, after a check."""
    if kind == "probabilities":
        return "probabilities"
    if kind == "values":
        return "values"
    raise InputError("kind", repr(kind), "'probabilities' or 'values'")


def check_objective(objective: str | None, kind: Kind | None, metric: Metric | Statistic) -> None:
    """Refuse a boosted model whose outputs the metric cannot use; `objective` is None for a custom one."""
    if kind is None:
        seen = "a custom objective, whose outputs are raw scores" if objective is None else repr(objective)
        raise InputError("objective", seen, "one of the library's own objectives for classification or regression")
    if kind == "values" and classifies(metric):
        seen = f"{objective!r} with the metric {metric.name!r} (a custom objective also shows as the default one)"
        raise InputError("objective", seen, "an objective for classification", "Or use a metric for regression.")


def _array(output: Any) -> NDArray[Any]:
    """Return a function's output, a tensor too, as an array."""
    if hasattr(output, "detach"):
        output = output.detach().cpu()
    array = np.asarray(output)
    if array.dtype == object:
        raise InputTypeError("predictions", f"a {type(output).__name__}", "an array, or an object that NumPy converts")
    return array
