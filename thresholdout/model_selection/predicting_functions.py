"""Functions that predict, as estimators that a metric can use."""

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

_SLACK = 1e-4  # probabilities in single precision


class Predictor:
    """An estimator that predicts what a function returns, one label or number per record.

    Parameters
    ----------
    function : callable
        ``function(X)``: shape (n,) or (n, 1).
    state : object, optional
        What the model can be restored from, for whoever made it.
    """

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
            raise InputError(
                "predictions", f"shape {output.shape}", "one label or number per record, or kind='probabilities'"
            )
        return output


class Classifier:
    """An estimator whose class probabilities are what a function returns.

    Parameters
    ----------
    function : callable
        ``function(X)``: probabilities of the classes, shape (n, k), or of the second of two classes, shape (n,) or
        (n, 1).
    classes : array-like of shape (k,)
        The labels that the columns stand for.
    state : object, optional
        What the model can be restored from, for whoever made it.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        As given.

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
        """Return the probabilities, shape (n, k).

        Raises
        ------
        InputError
            When they are no probabilities (raw scores of a custom objective, say), or of another number of classes.
        """
        output = _array(self._function(X)).astype(np.float64)
        if output.ndim == 2 and output.shape[1] == 1:
            output = output[:, 0]
        low, high = (float(output.min()), float(output.max())) if output.size else (0.0, 0.0)
        if not (low >= -_SLACK and high <= 1 + _SLACK):
            raise InputError("predictions", f"values from {low:g} to {high:g}", _EXPECTED)
        output = np.clip(output, 0.0, 1.0)
        table = np.stack([1.0 - output, output], axis=1) if output.ndim == 1 else output
        sums = table.sum(axis=1)
        if not np.allclose(sums, 1.0, atol=10 * _SLACK):
            raise InputError("predictions", f"rows with sums from {sums.min():g} to {sums.max():g}", _EXPECTED)
        if table.shape[1] != self.classes_.size:
            raise InputError(
                "classes",
                f"{self.classes_.size} for {table.shape[1]} columns of probabilities",
                "the label of each column; pass classes=[...]",
            )
        normalised: NDArray[np.float64] = table / sums[:, None]
        return normalised

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable labels, shape (n,)."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


_EXPECTED = (
    "probabilities, one row per record that sums to 1; raw scores (a custom objective, logits) have to be "
    "transformed before they reach the guard"
)


def predictor(
    function: Callable[[Any], Any], kind: Kind, classes: Any, state: object = None, *, only_holdout: bool = False
) -> Predictor | Classifier:
    """Return an estimator that puts out what a function returns.

    Parameters
    ----------
    function : callable
        ``function(X)``.
    kind : {"probabilities", "values"}
        What the function returns.
    classes : array-like
        For probabilities, the labels of their columns.
    state : object, optional
        What the model can be restored from, for whoever made it.
    only_holdout : bool, default=False
        Whether the function knows what is put out for the holdout alone, whatever it is called with.
    """
    model = Classifier(function, classes, state) if kind == "probabilities" else Predictor(function, state)
    model.only_holdout = only_holdout
    return model


def check_kind(kind: object) -> Kind:
    """Return the kind of output when it is one.

    Examples
    --------
    >>> check_kind("logits")
    Traceback (most recent call last):
    thresholdout.errors.InputError: kind must be 'probabilities' or 'values'; got 'logits'.
    """
    if kind == "probabilities":
        return "probabilities"
    if kind == "values":
        return "values"
    raise InputError("kind", repr(kind), "'probabilities' or 'values'")


def check_objective(objective: str | None, kind: Kind | None, metric: Metric | Statistic) -> None:
    """Refuse a boosted model whose outputs the metric cannot use.

    Parameters
    ----------
    objective : str or None
        Its name, ``None`` for a custom one.
    kind : Kind or None
        What it puts out, ``None`` for raw scores.
    metric : Metric or Statistic
        What they are used for.

    Raises
    ------
    InputError
        When the outputs are raw scores, or numbers where the metric needs classes.
    """
    if kind is None:
        seen = "a custom objective, whose outputs are raw scores" if objective is None else repr(objective)
        raise InputError("objective", seen, "one of the library's own objectives for classification or regression")
    if kind == "values" and classifies(metric):
        seen = f"{objective!r} with the metric {metric.name!r} (a custom objective also shows as the default one)"
        raise InputError("objective", seen, "an objective for classification, or a metric for regression")


def _array(output: Any) -> NDArray[Any]:
    """Return what a function put out as an array, also when it is a tensor."""
    if hasattr(output, "detach"):
        output = output.detach().cpu()
    array = np.asarray(output)
    if array.dtype == object:
        raise InputTypeError("predictions", f"a {type(output).__name__}", "an array, or what NumPy makes one of")
    return array
