"""Metrics of columns of predictions: a record's value as an expression, and a bound on its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from thresholdout.data.parts.lazy_part import LOGARITHM
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import (
    Metric,
    absolute_error,
    accuracy,
    brier_score,
    log_loss,
    squared_error,
    zero_one_loss,
)

if TYPE_CHECKING:
    import narwhals as nw

    from thresholdout.data.parts.lazy_part import LazyPart

__all__ = ["labels_are_zero_or_one", "metric_expression", "slack_of"]

_SERVED: Final = (
    "'accuracy', 'zero_one_loss', 'brier_score' or 'log_loss' (of labels that are 0 or 1), "
    "metrics.squared_error(clip=...) or metrics.absolute_error(clip=...)"
)
_OTHERS: Final = (
    "Compute others where the frame is made, as a column of values, and query it by ask(nw.col(name), bounds=...)."
)


def metric_expression(metric: Metric, prediction: str, label: str) -> nw.Expr:
    """Return a metric's value of each record as an expression of a prediction and a label column.

    Examples
    --------
    >>> from thresholdout.scoring.metrics import accuracy
    >>> str(metric_expression(accuracy(), "pred", "y"))
    'col(pred).__eq__(col(y))'
    """
    import narwhals as nw

    predicted, true = nw.col(prediction), nw.col(label)
    for known, expression in _KNOWN:
        if _is(metric, known):
            found: nw.Expr = expression(predicted, true, metric.bounds)
            return found
    raise InputError("metric", f"{metric.name!r} of columns that are not in memory", _SERVED, _OTHERS)


def labels_are_zero_or_one(metric: Metric, part: LazyPart, label: str) -> bool:
    """Whether the labels of a part are 0 and 1, or booleans, if a metric needs that."""
    import narwhals as nw

    if not any(_is(metric, one) for one in (brier_score(), log_loss())):
        return True
    if part.compiled(label, "label").kind == "boolean":
        return True
    found = part.totals(nw.col(label).is_in([0, 1]), argument="label")
    return found.mean.total == found.n << found.bits


def slack_of(metric: Metric) -> float:
    """Return a bound on the error of a metric's value of a record, in its units."""
    return LOGARITHM * max(1.0, metric.bounds[1]) if _is(metric, log_loss()) else 0.0


def _is(metric: Metric, known: Metric) -> bool:
    """Whether a metric is this one of the package, with any clip."""
    return known.values.__code__ is getattr(metric.values, "__code__", None)


def _log_loss(predicted: nw.Expr, true: nw.Expr, bounds: tuple[float, float]) -> nw.Expr:
    """Return minus the log probability of the label's class, and the largest loss for other labels."""
    import narwhals as nw

    if bounds[1] > _LARGEST_LOSS:
        raise InputError(
            "clip", f"{bounds[1]:g} nats", f"at most {_LARGEST_LOSS:g}", "Floats represent exp(-clip) up to it."
        )
    y, p = true.cast(nw.Float64), predicted.cast(nw.Float64)
    of_zero = nw.when(y == 0.0).then(1.0 - p).otherwise(nw.lit(0.0))
    of_truth = nw.when(y == 1.0).then(p).otherwise(of_zero)
    return (of_truth.clip(math.exp(-bounds[1]), 1.0).log() * -1.0).clip(*bounds)


_LARGEST_LOSS: Final = 700.0  # exp(-709) is no normal float


def _residual(predicted: nw.Expr, true: nw.Expr) -> nw.Expr:
    import narwhals as nw

    return true.cast(nw.Float64) - predicted.cast(nw.Float64)


_KNOWN: Final[tuple[tuple[Metric, Callable[[Any, Any, tuple[float, float]], Any]], ...]] = (
    (accuracy(), lambda predicted, true, bounds: predicted == true),
    (zero_one_loss(), lambda predicted, true, bounds: predicted != true),
    (brier_score(), lambda predicted, true, bounds: (_residual(predicted, true) ** 2).clip(upper_bound=bounds[1])),
    (log_loss(), _log_loss),
    (squared_error(1.0), lambda predicted, true, bounds: (_residual(predicted, true) ** 2).clip(upper_bound=bounds[1])),
    (absolute_error(1.0), lambda predicted, true, bounds: _residual(predicted, true).abs().clip(upper_bound=bounds[1])),
)
"""Metrics by the code of their values, and the same of columns."""
