"""Metrics that are means over records, as functions that return the values.

Only such metrics have the sensitivity 1/n from which a guard's noise is computed. A metric with an unbounded range is
clipped at a stated value, and guarantees hold for the clipped metric.
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
    """Describe a score that is a mean over records of values in a known range, such as accuracy.

    Every guard (`Thresholdout`) answers metrics, and only metrics can be compared and gated. The functions of
    `thresholdout.scoring`, such as `log_loss`, return metrics. Create one directly for a score of your own.

    Attributes
    ----------
    name : str
        Name of the metric, which the guard's history shows.
    response : {"predict", "predict_proba"}
        Method of an estimator whose output is evaluated.
    values : callable
        Function ``values(y, output, classes)`` that returns one value for each record, shape (n,), from the labels, the
        estimator's output and its ``classes_`` (``None`` for regressors).
    bounds : tuple of float
        Smallest and largest possible value of a record.
    greater_is_better : bool
        Whether a search should maximize the metric.
    reads_classes : bool, default True
        Whether `values` depends on ``classes``, apart from refusals. If features are fixed, models with different
        ``classes_`` are then compared on all records, even if their outputs are equal.
    ends : bool, default False
        Whether every value is an end of the range, for all records and outputs, such as 0 or 1 for accuracy.
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
        """Return the values of a fitted estimator on records ``X`` with labels ``y``, an array of shape (n,)."""
        output = np.asarray(getattr(estimator, self.response_of(estimator))(X))
        return self.values(np.asarray(y), output, getattr(estimator, "classes_", None))

    def response_of(self, estimator: Any) -> str:
        """Return the name of the estimator's method whose output is evaluated."""
        if not hasattr(estimator, self.response):
            check_booster(estimator, classes=self.response != "predict")
            advice = "A list of models is for score_all, values of records for ask."
            seen = f"a {type(estimator).__name__} without it"
            raise InputTypeError("estimator", seen, f"a fitted model with {self.response}", advice)
        return self.response

    def of_predictions(self, found: OutOfFold, X: Any, y: Any) -> NDArray[Any]:
        """Return the values of out-of-fold predictions, one for each test of a record."""
        labels = np.asarray(y)
        return self.values(labels[found.tested], found.output, found.classes)


def remembered(make: Callable[Given, Score]) -> Callable[Given, Score]:
    """Make a function's results picklable, as the call that makes them."""

    @functools.wraps(make)
    def made(*given: Given.args, **named: Given.kwargs) -> Score:
        score = make(*given, **named)
        vars(score)["_made"] = functools.partial(made, *given, **named)
        return score

    return made


def made_again(score: object) -> tuple[Any, tuple[()]] | None:
    """Return the call by which a pickle makes a score, for scores of this package's functions."""
    call = vars(score).get("_made")
    return None if call is None else (call, ())


@remembered
def accuracy() -> Metric:
    """Return the accuracy: the share of records whose predicted label is correct.

    Returns a `Metric` for ``guard.score(model, accuracy())``; its name ``"accuracy"`` does the same.

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
    """Return the zero-one loss: the share of records whose predicted label is wrong."""
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
    """Return the top-k accuracy: the share of records whose class is among the k most probable ones.

    The result is a `Metric` for classifiers with ``predict_proba``, for use as ``guard.score(model,
    top_k_accuracy(3))``.

    Parameters
    ----------
    k : int, default 2
        Number of classes, at least 1, among which the correct one counts as found. Of equal probabilities the class
        that comes last in order counts as the most probable.

    Returns
    -------
    Metric
        Mean over records of 1 for a correct class among the k and 0 otherwise. Greater is better.

    Examples
    --------
    >>> probability = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    >>> top_k_accuracy(2).values(np.array([1, 0]), probability, np.array([0, 1, 2]))
    array([ True, False])
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError("k", repr(k), "an integer of at least 1")

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        probability = _probabilities(output, y)
        best = np.argsort(probability, axis=1, kind="stable")[:, ::-1][:, :k]
        hits: NDArray[np.bool_] = (_classes(classes, probability)[best] == y[:, None]).any(axis=1)
        return hits

    return Metric(f"top_{k}_accuracy", "predict_proba", values, (0.0, 1.0), True, ends=True)


@remembered
def brier_score() -> Metric:
    """Return the Brier score: half the squared distance of predicted probabilities from the class, in [0, 1].

    The result is a `Metric` for classifiers with ``predict_proba``; smaller is better. For two classes this is the
    usual Brier score, the squared error of the predicted probability.

    Examples
    --------
    >>> brier_score().values(np.array([1]), np.array([[0.3, 0.7]]), np.array([0, 1])).round(3)
    array([0.09])
    """

    def values(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        probability = _probabilities(output, y)
        hot = y[:, None] == _classes(classes, probability)[None, :]
        unseen = ~hot.any(axis=1)  # an unknown class is one more column of zeros
        scores: NDArray[np.float64] = np.clip((((probability - hot) ** 2).sum(axis=1) + unseen) / 2, 0.0, 1.0)
        return scores

    return Metric("brier_score", "predict_proba", values, (0.0, 1.0), False)


@remembered
def log_loss(clip: float = 5.0) -> Metric:
    """Return the log loss: the negative log probability of each record's class, clipped at ``clip``.

    A guard needs a bounded range, and the log loss itself has none. The result is a `Metric` for classifiers with
    ``predict_proba``, for use as ``guard.score(model, log_loss())``.

    Parameters
    ----------
    clip : float, default 5.0
        Largest value of one record, in nats. Records whose class has a probability below ``exp(-clip)``, 0.0067 for 5,
        have this value.

    Returns
    -------
    Metric
        Mean over records of the clipped loss, with the range (0, clip). Smaller is better.

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
    """Return the squared error of predicted numbers, clipped at ``clip`` for each record.

    A guard needs a bounded range, and the squared error itself has none. The result is a `Metric` for regressors.

    Parameters
    ----------
    clip : float
        Largest value of one record, in squared units of the target.

    Returns
    -------
    Metric
        Mean over records of the clipped squared error, with the range (0, clip). Smaller is better.

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
    """Return the absolute error of predicted numbers, clipped at ``clip`` for each record.

    A guard needs a bounded range, and the absolute error itself has none. The result is a `Metric` for regressors.

    Parameters
    ----------
    clip : float
        Largest value of one record, in units of the target.

    Returns
    -------
    Metric
        Mean over records of the clipped absolute error, with the range (0, clip). Smaller is better.

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
"""Scores of regressors without a range of their own, and calls that declare the largest error that counts."""

_ALIASES: Final[dict[str, str]] = {
    "r2_score": "r2",
    "mse": "squared_error",
    "mean_squared_error": "squared_error",
    "mae": "absolute_error",
    "mean_absolute_error": "absolute_error",
    "rmse": "root_mean_squared_error",
}

METRIC_NAMES = tuple(_BY_NAME)
"""Names of the metrics without a clip."""


def _advice(metric: object) -> str:
    """Return how to go on where something else was passed as a metric."""
    if hasattr(metric, "predict"):
        return "The fitted model is the first argument, and the metric the second."
    if callable(metric):
        return "Pass a scoring function of scikit-learn as make_scorer(function)."
    return ""


def get_metric(metric: str | Metric) -> Metric:
    """Return the metric with this name, such as "accuracy", or a given `Metric` unchanged.

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
            _advice(metric),
        )
    if metric in _BY_NAME:
        return _BY_NAME[metric]()
    unlimited = needed_range("metric", repr(metric), metric)
    if unlimited is not None:
        raise unlimited
    plain = metric.removeprefix("neg_")
    if plain in _BY_NAME:
        raise InputError("metric", repr(metric), f"{plain!r}", "scorer() changes the sign of a loss by itself.")
    names = ", ".join(map(repr, sorted(_BY_NAME)))
    clipped = "metrics.absolute_error(clip=...) or metrics.squared_error(clip=...)"
    other = "thresholdout.scoring.statistics has further names, and ask() takes per-record values."
    raise InputError("metric", repr(metric), f"{names}, {clipped}", other)


def needed_range(argument: str, seen: str, name: str) -> InputError | None:
    """Return the refusal of a regressor's score without a range, with the call that declares one; else ``None``.

    Examples
    --------
    >>> needed_range("metric", "'accuracy'", "accuracy") is None
    True
    >>> raise needed_range("metric", "'mae'", "mae")
    Traceback (most recent call last):
    thresholdout.errors.InputError: metric must be a score with a declared largest error; got 'mae'. ...
    """
    plain = name.removeprefix("neg_")
    call = _RANGES.get(_ALIASES.get(plain, plain))
    if call is None:
        return None
    errors = "errors = np.abs(y_train - cross_val_predict(model, X_train, y_train))"
    advice = f"Take it from the training part: thresholdout.scoring.{call}, with {errors}."
    return InputError(argument, seen, "a score with a declared largest error", advice)


def _labels(output: NDArray[Any], y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    """Check that there is one predicted label per record, of the kind of the labels.

    On few records no prediction may be correct, so the estimator's classes count as well.
    """
    _same_shape(output, y)
    if (output.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        kinds = f"predictions of type {output.dtype} for labels of type {y.dtype}"
        raise InputTypeError("estimator", kinds, "a model with predictions of the labels' type")
    advice = "For a regressor take metric=r2(clip=...) of thresholdout.scoring.statistics."
    if not np.isin(output if classes is None else classes, np.unique(y)).any():
        seen = "predictions of which none is one of the labels"
        raise InputError("estimator", seen, "a classifier trained on these labels", advice)
    if classes is None and _fractions(output) and not _fractions(y):
        raise InputError("estimator", "predictions between the labels", "a classifier trained on these labels", advice)
    return output


def _fractions(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind == "f" and bool((np.floor(numbers) != numbers).any())


def _same_shape(output: NDArray[Any], y: NDArray[Any]) -> None:
    if output.shape != y.shape:
        expected = f"a model with predictions of the labels' shape, {y.shape}"
        raise InputError("estimator", f"predictions of shape {output.shape}", expected)


def _residual(y: NDArray[Any], output: NDArray[Any]) -> NDArray[np.float64]:
    _same_shape(output, y)
    if output.dtype.kind not in "biuf" or y.dtype.kind not in "biuf":
        seen = f"predictions of type {output.dtype} and labels of type {y.dtype}"
        raise InputTypeError("estimator", seen, "a model with numbers as predictions and labels")
    residual: NDArray[np.float64] = y.astype(np.float64) - output.astype(np.float64)
    if not np.isfinite(residual).all():
        raise InputError("estimator", "predictions or labels that are not finite", "a model with finite predictions")
    return residual


def _probabilities(output: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Check predicted probabilities: one row per record, in [0, 1], summing to 1."""
    if output.ndim != 2 or output.shape[0] != y.shape[0]:
        expected = f"a model with probabilities of shape ({y.shape[0]}, number of classes)"
        raise InputError("estimator", f"probabilities of shape {output.shape}", expected)
    probability: NDArray[np.float64] = output.astype(np.float64)
    if not ((probability >= 0).all() and np.allclose(probability.sum(axis=1), 1.0, atol=1e-5)):
        seen = "probabilities that are negative or do not sum to 1"
        raise InputError("estimator", seen, "a model with probabilities that sum to 1 for each record")
    return probability


def _classes(classes: NDArray[Any] | None, probability: NDArray[np.float64]) -> NDArray[Any]:
    if classes is None or len(classes) != probability.shape[1]:
        seen = "one whose classes_ do not match predict_proba"
        raise InputError("estimator", seen, "a model with one class per column of probabilities")
    return np.asarray(classes)
