"""Metrics as expressions of two columns: what a prediction is worth, record by record, as an engine computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError
from thresholdout.scoring.metrics import absolute_error, accuracy, brier_score, squared_error, zero_one_loss

if TYPE_CHECKING:
    import narwhals as nw

    from thresholdout.data.parts.lazy_part import LazyPart
    from thresholdout.scoring.metrics import Metric

__all__ = ["labels_are_zero_or_one", "metric_expression"]

_SERVED: Final = (
    "'accuracy', 'zero_one_loss', 'brier_score' of probabilities and labels that are 0 or 1, "
    "metrics.squared_error(clip=...), metrics.absolute_error(clip=...); others are computed where the frame is made, "
    "as a column of values, which ask(nw.col(name), bounds=...) takes"
)


def metric_expression(metric: Metric, prediction: str, label: str) -> nw.Expr:
    """Return a metric's value of each record as an expression of two columns.

    Parameters
    ----------
    metric : Metric
        Accuracy, 0-1 loss, Brier score, squared or absolute error.
    prediction, label : str
        Names of the columns of predictions and of labels.

    Raises
    ------
    InputError
        For another metric: logarithms, for one, are not the same numbers in every engine.

    Examples
    --------
    >>> from thresholdout.scoring.metrics import accuracy
    >>> str(metric_expression(accuracy(), "pred", "y"))
    'col(pred).__eq__(col(y))'
    """
    import narwhals as nw

    told, true = nw.col(prediction), nw.col(label)
    for known, expression in _KNOWN:
        if known.values.__code__ is getattr(metric.values, "__code__", None):
            found: nw.Expr = expression(told, true, metric.bounds)
            return found
    raise InputError("metric", f"{metric.name!r} of columns that are not in memory", _SERVED)


def labels_are_zero_or_one(metric: Metric, part: LazyPart, label: str) -> bool:
    """Return whether the labels of a part are 0 and 1, or false and true, where a metric needs that."""
    import narwhals as nw

    if getattr(metric.values, "__code__", None) is not brier_score().values.__code__:
        return True
    if part.compiled(label, "label").kind == "boolean":
        return True
    found = part.totals(nw.col(label).is_in([0, 1]), argument="label")
    return found.mean.total == found.n << found.bits


def _residual(told: nw.Expr, true: nw.Expr) -> nw.Expr:
    import narwhals as nw

    return true.cast(nw.Float64) - told.cast(nw.Float64)


_KNOWN: Final[tuple[tuple[Metric, Callable[[Any, Any, tuple[float, float]], Any]], ...]] = (
    (accuracy(), lambda told, true, bounds: told == true),
    (zero_one_loss(), lambda told, true, bounds: told != true),
    (brier_score(), lambda told, true, bounds: (_residual(told, true) ** 2).clip(*bounds)),
    (squared_error(1.0), lambda told, true, bounds: (_residual(told, true) ** 2).clip(*bounds)),
    (absolute_error(1.0), lambda told, true, bounds: _residual(told, true).abs().clip(*bounds)),
)
"""Metrics by the code of their values, and the same of columns."""
