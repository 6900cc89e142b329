"""Scores that a guard can be asked for, and statistics that are no means as questions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thresholdout.best_so_far import check_direction
from thresholdout.errors import InputError
from thresholdout.fingerprint import handed_out
from thresholdout.given import Given
from thresholdout.mechanisms import Known, Mechanism
from thresholdout.question import Question
from thresholdout.statistics import Statistic, disclosure_nats, get_score
from thresholdout.weights import Weights

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.mechanisms.catalogue import Parameters
    from thresholdout.metrics import Metric
    from thresholdout.records import Records

__all__ = ["check_score", "statistic_question"]


def check_score(
    mechanism: Mechanism[Any, Any],
    parameters: Parameters,
    records: Records,
    metric: str | Metric | Statistic,
    sample_weight: tuple[object, object] | None,
    given: Given = None,
) -> tuple[Metric | Statistic, Weights | None]:
    """Return a score and weights, or refuse a score that a guard cannot be asked for.

    Raises
    ------
    InputError
        When the mechanism does not answer it, there are weights beside a statistic that is no mean, or such a statistic
        is asked for where truths are given the features.
    """
    chosen = get_score(metric)
    check_direction(parameters, chosen)
    records.labelled()
    if isinstance(chosen, Statistic) and not mechanism.statistics:
        seen = f"{chosen.name!r}, which is no mean over records, asked of {mechanism.name}"
        raise InputError("metric", seen, "a guard with mechanism='thresholdout'")
    if isinstance(chosen, Statistic) and given is not None:
        seen = f"{chosen.name!r}, which is no mean over records, of a guard with given={given!r}"
        raise InputError("metric", seen, "a metric that is a mean, such as 'accuracy'; or a guard without given=")
    if isinstance(chosen, Statistic) and sample_weight is not None:
        raise InputError("sample_weight", f"weights beside {chosen.name!r}", "a metric that is a mean over records")
    return chosen, None if sample_weight is None else Weights(sample_weight, records)


def statistic_question(
    statistic: Statistic, records: Records, model: DependenceModel, value: float, key: str | None
) -> tuple[Question, Callable[[Any], float]]:
    """Return the question about a statistic that is no mean, and its value on the holdout for an estimator.

    Parameters
    ----------
    statistic : Statistic
        What is asked.
    records : Records
        Both parts.
    model : graphs.DependenceModel
        How the holdout's records depend on each other.
    value : float
        The statistic on the training part.
    key : str or None
        The question's identity.

    Returns
    -------
    question : Question
        Its half-width has the radius of a mean times the statistic's spread.
    of : callable
        From an estimator to the value on the holdout, in units of the range. Secret.
    """
    lower, upper = statistic.bounds
    labels = records.holdout[1]

    def unit(found: float) -> float:
        return min(1.0, max(0.0, (found - lower) / (upper - lower)))

    try:
        shown = disclosure_nats(statistic, records.labelled()[0][1], labels)
        known = Known(spread=statistic.spread(labels, model), shown=shown, mean=False)
    except Exception:  # it does not exist for these labels: a failure on the holdout, and charged as one
        known = Known(shown=math.inf, mean=False)

    def of(estimator: Any) -> float:
        if known.shown == math.inf:
            raise InputError("metric", f"{statistic.name!r}", "labels for which it exists")
        return unit(float(statistic.of(estimator, *handed_out(records.holdout))))

    return Question(unit(value), statistic.bounds, statistic.name, key, known), of
