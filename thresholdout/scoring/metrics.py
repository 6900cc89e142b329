"""Metrics that are means over records, as the values of which they are means.

Only such metrics have the sensitivity 1/n that a guard's noise is computed from. A metric with an unbounded range is
clipped at a stated value: what is then guarded, and certified, is the clipped metric.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar

import numpy as np

from thresholdout.data.arguments import positive_number
from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring.fitted_models import check_booster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.scoring.out_of_fold import OutOfFold

Given = ParamSpec("Given")
Score = TypeVar("Score")

__all__ = [
    "METRIC_NAMES",
    "Metric",
    "absolute_error",
    "accuracy",
    "brier_score",
    "get_metric",
    "log_loss",
    "made_again",
    "needed_range",
    "remembered",
    "squared_error",
    "top_k_accuracy",
    "zero_one_loss",
]


@dataclass(frozen=True)
class Metric:
    """A mean over records of values in a stated range.

    Attributes
    ----------
    name : str
        What it is called.
    response : {"predict", "predict_proba"}
        The method of an estimator whose output it takes.
    values : callable
        ``values(y, output, classes)``: the values, shape (n,), from the true labels, the estimator's output and its
        ``classes_`` (``None`` for regressors).
    bounds : tuple of float
        The range of the values.
    greater_is_better : bool
        Whether a search should maximise it.
    reads_classes : bool, default=True
        Whether `values` depends on ``classes``, but for what it refuses. Where truths are given the features, models
        with other ``classes_`` are compared on all records then, however alike their outputs are.
    ends : bool, default=False
        Whether every value is an end of the range, whatever the records and the outputs are.
    """

    name: str
    response: Literal["predict", "predict_proba"]
    values: Callable[[NDArray[Any], NDArray[Any], NDArray[Any] | None], NDArray[Any]]
    bounds: tuple[float, float]
    greater_is_better: bool
    reads_classes: bool = True
    ends: bool = False

    def __repr__(self) -> str:
        return f"<Metric {self.name}>"

    def __reduce__(self) -> Any:
        return made_again(self) or super().__reduce__()

    def of(self, estimator: Any, X: Any, y: Any) -> NDArray[Any]:
        """Return the values of a fitted estimator on records ``X`` with labels ``y``, shape (n,)."""
        output = np.asarray(getattr(estimator, self.response_of(estimator))(X))
        return self.values(np.asarray(y), output, getattr(estimator, "classes_", None))

    def response_of(self, estimator: Any) -> str:
        """Return the method of an estimator that is used."""
        if not hasattr(estimator, self.response):
            expected = (
                f"a fitted model with {self.response}; a list of models is for score_all, values of records for ask"
            )
            check_booster(estimator, classes=self.response != "predict")
            raise InputTypeError("estimator", f"{type(estimator).__name__} without {self.response}", expected)
        return self.response

    def of_predictions(self, found: OutOfFold, X: Any, y: Any) -> NDArray[Any]:
        """Return the values of out-of-fold predictions, one for each time that a record was tested."""
        labels = np.asarray(y)
        return self.values(labels[found.tested], found.output, found.classes)


def remembered(make: Callable[Given, Score]) -> Callable[Given, Score]:
    """Let what a function makes be pickled, as the call that makes it again."""

    @functools.wraps(make)
    def made(*given: Given.args, **named: Given.kwargs) -> Score:
        score = make(*given, **named)
        vars(score)["_made"] = functools.partial(made, *given, **named)
        return score

    return made


def made_again(score: object) -> tuple[Any, tuple[()]] | None:
    """Return how a pickle makes a score again, if a function of this package has made it."""
    call = vars(score).get("_made")
    return None if call is None else (call, ())


@remembered
def accuracy() -> Metric:
    """Share of records whose predicted label is the true one.

    Examples
    --------
    >>> accuracy().values(np.array(["a", "b"]), np.array(["a", "a"]), None)
    array([ True, False])
    """
    return Metric(
        "accuracy", "predict", lambda y, told, classes: _labels(told, y, classes) == y, (0.0, 1.0), True, False, True
    )


@remembered
def zero_one_loss() -> Metric:
    """Share of records whose predicted label is wrong."""
    return Metric(
        "zero_one_loss",
        "predict",
        lambda y, told, classes: _labels(told, y, classes) != y,
        (0.0, 1.0),
        False,
        False,
        True,
    )


@remembered
def top_k_accuracy(k: int = 2) -> Metric:
    """Share of records whose class is among the k most probable ones.

    Parameters
    ----------
    k : int, default=2
        At least 1. Of equal probabilities the class that comes last in order counts as the most probable.

    Examples
    --------
    >>> probability = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    >>> top_k_accuracy(2).values(np.array([1, 0]), probability, np.array([0, 1, 2]))
    array([ True, False])
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError("k", repr(k), "a whole number of at least 1")

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        probability = _probabilities(output, y)
        best = np.argsort(probability, axis=1, kind="stable")[:, ::-1][:, :k]
        hits: NDArray[np.bool_] = (_classes(classes, probability)[best] == y[:, None]).any(axis=1)
        return hits

    return Metric(f"top_{k}_accuracy", "predict_proba", values, (0.0, 1.0), True, ends=True)


@remembered
def brier_score() -> Metric:
    """Half the squared distance between predicted probabilities and the true class, in [0, 1].

    For two classes this is the usual Brier score, the squared error of the predicted probability.

    Examples
    --------
    >>> brier_score().values(np.array([1]), np.array([[0.3, 0.7]]), np.array([0, 1])).round(3)
    array([0.09])
    """

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        probability = _probabilities(output, y)
        hot = y[:, None] == _classes(classes, probability)[None, :]
        unseen = ~hot.any(axis=1)  # a class the estimator has never seen counts as one more column
        scores: NDArray[np.float64] = np.clip((((probability - hot) ** 2).sum(axis=1) + unseen) / 2, 0.0, 1.0)
        return scores

    return Metric("brier_score", "predict_proba", values, (0.0, 1.0), False)


@remembered
def log_loss(clip: float = 5.0) -> Metric:
    """Negative log probability of the true class, at most ``clip`` for each record.

    Parameters
    ----------
    clip : float, default=5.0
        Largest value of one record, in nats; 5 is a probability of 0.0067.

    Examples
    --------
    >>> log_loss(3.0).values(np.array([0, 1]), np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1])).round(3)
    array([0.693, 3.   ])
    """
    top = positive_number(clip, "clip")

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        probability = _probabilities(output, y)
        hot = y[:, None] == _classes(classes, probability)[None, :]
        of_truth = np.where(hot, probability, 0.0).sum(axis=1)
        losses: NDArray[np.float64] = np.clip(-np.log(np.clip(of_truth, math.exp(-top), 1.0)), 0.0, top)
        return losses

    return Metric(f"log_loss(clip={top!r})", "predict_proba", values, (0.0, top), False)


@remembered
def squared_error(clip: float) -> Metric:
    """Squared error of each record, at most ``clip``.

    Parameters
    ----------
    clip : float
        Largest value of one record, in squared units of the target.

    Examples
    --------
    >>> squared_error(4.0).values(np.array([0.0, 0.0]), np.array([1.0, 3.0]), None)
    array([1., 4.])
    """
    top = positive_number(clip, "clip")
    return Metric(
        f"squared_error(clip={top!r})",
        "predict",
        lambda y, output, _: np.minimum(_residual(y, output) ** 2, top),
        (0.0, top),
        False,
        False,
    )


@remembered
def absolute_error(clip: float) -> Metric:
    """Absolute error of each record, at most ``clip`` (in units of the target).

    Examples
    --------
    >>> absolute_error(clip=2.0).values(np.array([1.0, 5.0]), np.array([1.5, 1.0]), None)
    array([0.5, 2. ])
    """
    top = positive_number(clip, "clip")
    return Metric(
        f"absolute_error(clip={top!r})",
        "predict",
        lambda y, output, _: np.minimum(np.abs(_residual(y, output)), top),
        (0.0, top),
        False,
        False,
    )


_BY_NAME: dict[str, Callable[[], Metric]] = {
    "accuracy": accuracy,
    "zero_one_loss": zero_one_loss,
    "brier_score": brier_score,
    "log_loss": log_loss,
}
_RANGES: Final[dict[str, str]] = {
    "r2": "statistics.r2(clip=(errors**2).max() / y_train.var())",
    "squared_error": "metrics.squared_error(clip=(errors**2).max())",
    "absolute_error": "metrics.absolute_error(clip=errors.max())",
    "root_mean_squared_error": "statistics.root_mean_squared_error(clip=errors.max())",
    "median_absolute_error": "statistics.median_absolute_error(clip=errors.max())",
}
"""Scores of regressors have no range of their own: the largest error that counts has to be declared."""

_ALIASES: Final[dict[str, str]] = {
    "r2_score": "r2",
    "mse": "squared_error",
    "mean_squared_error": "squared_error",
    "mae": "absolute_error",
    "mean_absolute_error": "absolute_error",
    "rmse": "root_mean_squared_error",
}

METRIC_NAMES = tuple(_BY_NAME)
"""Metrics that need no clip, by their names."""


def get_metric(metric: str | Metric) -> Metric:
    """Return the metric of that name, or the metric itself.

    Examples
    --------
    >>> get_metric("accuracy").bounds
    (0.0, 1.0)
    >>> get_metric("roc_auc")
    Traceback (most recent call last):
    thresholdout.errors.InputError: metric must be 'accuracy', 'brier_score', 'log_loss', 'zero_one_loss', ...
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise InputTypeError(
            "metric",
            f"a {type(metric).__name__}",
            "a name such as 'accuracy', or a Metric of thresholdout.scoring.metrics",
        )
    if metric in _BY_NAME:
        return _BY_NAME[metric]()
    unlimited = needed_range("metric", repr(metric), metric)
    if unlimited is not None:
        raise unlimited
    plain = metric.removeprefix("neg_")
    if plain in _BY_NAME:
        raise InputError("metric", repr(metric), f"{plain!r}; scorer() turns the sign of a loss by itself")
    names = ", ".join(map(repr, sorted(_BY_NAME)))
    clipped = "metrics.absolute_error(clip=...) or metrics.squared_error(clip=...)"
    other = "a name from thresholdout.scoring.statistics, or per-record values given to ask()"
    raise InputError("metric", repr(metric), f"{names}, {clipped}; {other}")


def needed_range(argument: str, seen: str, name: str) -> InputError | None:
    """Return the refusal of a score of regressors without a range, with the call that declares one; else ``None``.

    Examples
    --------
    >>> needed_range("metric", "'accuracy'", "accuracy") is None
    True
    >>> raise needed_range("metric", "'mae'", "mae")
    Traceback (most recent call last):
    thresholdout.errors.InputError: metric must be the largest that counts, from the training part: ...
    """
    plain = name.removeprefix("neg_")
    call = _RANGES.get(_ALIASES.get(plain, plain))
    if call is None:
        return None
    errors = "errors = np.abs(y_train - cross_val_predict(model, X_train, y_train))"
    expected = f"the largest that counts, from the training part: thresholdout.scoring.{call}, with {errors}"
    return InputError(argument, f"{seen}, whose errors have no limit", expected)


def _labels(output: NDArray[Any], y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    """Check that there is one predicted label per record, and that labels are what is predicted.

    On few records no prediction may be right, so the estimator's classes count as well.
    """
    _same_shape(output, y)
    if (output.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        kinds = f"predictions of type {output.dtype} for labels of type {y.dtype}"
        raise InputTypeError("estimator", kinds, "predictions of the labels' type")
    instead = "a classifier of these labels; for a regressor metric=r2(clip=...) of thresholdout.scoring.statistics"
    if not np.isin(output if classes is None else classes, np.unique(y)).any():
        raise InputError("estimator", "predictions that are never one of the labels", instead)
    if classes is None and _fractions(output) and not _fractions(y):
        raise InputError("estimator", "predictions between the labels", instead)
    return output


def _fractions(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind == "f" and bool((np.floor(numbers) != numbers).any())


def _same_shape(output: NDArray[Any], y: NDArray[Any]) -> None:
    if output.shape != y.shape:
        raise InputError("estimator", f"predictions of shape {output.shape}", f"shape {y.shape}, as the labels")


def _residual(y: NDArray[Any], output: NDArray[Any]) -> NDArray[np.float64]:
    _same_shape(output, y)
    if output.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        raise InputTypeError("estimator", f"predictions {output.dtype}, labels {y.dtype}", "numbers for both")
    residual: NDArray[np.float64] = y.astype(np.float64) - output.astype(np.float64)
    if not np.isfinite(residual).all():
        raise InputError("estimator", "predictions or labels that are not finite", "finite numbers")
    return residual


def _probabilities(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Check predicted probabilities: one row per record, in [0, 1], summing to 1."""
    if output.ndim != 2 or output.shape[0] != y.shape[0]:
        raise InputError("estimator", f"probabilities of shape {output.shape}", f"({y.shape[0]}, number of classes)")
    probability: NDArray[np.float64] = output.astype(np.float64)
    if not ((probability >= 0).all() and np.allclose(probability.sum(axis=1), 1.0, atol=1e-5)):
        raise InputError("estimator", "probabilities that are negative or do not sum to 1", "rows summing to 1")
    return probability


def _classes(classes: NDArray[Any] | None, probability: NDArray[np.float64]) -> NDArray[Any]:
    if classes is None or len(classes) != probability.shape[1]:
        raise InputError("estimator", "no classes_ that match predict_proba", "one class per column")
    return np.asarray(classes)
