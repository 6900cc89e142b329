"""Scores that a guard can be asked for, and statistics that are no means as questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thresholdout.data.identity import handed_out
from thresholdout.errors import InputError
from thresholdout.guard.question import Question
from thresholdout.guard.sample_weights import Weights
from thresholdout.mechanisms import Known, Mechanism
from thresholdout.scoring.statistics import Estimate, Statistic, get_score

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.guard.holdout import Records
    from thresholdout.mechanisms.claims.evidence import Evidence
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.planning.declaration import Sampling
    from thresholdout.scoring.metrics import Metric

__all__ = ["check_mean", "check_score", "check_statistic", "statistic_question"]


def check_mean(metric: str | Metric | Statistic) -> Metric:
    """Return a metric, or refuse a statistic that is no mean over records.

    Raises
    ------
    InputError
        When it is such a statistic.
    """
    chosen = get_score(metric)
    if isinstance(chosen, Statistic):
        raise InputError(
            "metric", repr(chosen.name), "a metric that is a mean over records (thresholdout.scoring.metrics)"
        )
    return chosen


def check_score(
    mechanism: Mechanism[Any, Any],
    parameters: Parameters,
    records: Records,
    metric: str | Metric | Statistic,
    sample_weight: tuple[object, object] | None,
    sampling: Sampling = "independent",
) -> tuple[Metric | Statistic, Weights | None]:
    """Return a score and weights, or refuse a score that a guard cannot be asked for.

    Raises
    ------
    InputError
        When the mechanism does not answer it, there are weights beside a statistic that is no mean, or such a statistic
        is asked for where truths are given the features.
    """
    chosen = get_score(metric)
    parameters.check_direction(chosen.name, chosen.greater_is_better)
    records.labelled()
    if isinstance(chosen, Statistic):
        check_statistic(mechanism, chosen)
    if isinstance(chosen, Statistic) and sampling == "fixed_features":
        seen = f"{chosen.name!r}, which is no mean over records, of a guard with sampling={sampling!r}"
        raise InputError("metric", seen, "a metric that is a mean, such as 'accuracy'; or sampling='independent'")
    if isinstance(chosen, Statistic) and sample_weight is not None:
        raise InputError("sample_weight", f"weights beside {chosen.name!r}", "a metric that is a mean over records")
    return chosen, None if sample_weight is None else Weights(sample_weight, records)


def check_statistic(mechanism: Mechanism[Any, Any], statistic: Statistic) -> None:
    """Refuse a statistic that is no mean where a mechanism answers only means.

    Raises
    ------
    InputError
        When it does.
    """
    if not mechanism.statistics:
        seen = f"{statistic.name!r}, which is no mean over records, asked of {mechanism.name}"
        raise InputError("metric", seen, "a guard with mechanism='claims'")


def statistic_question(
    statistic: Statistic,
    records: Records,
    model: DependenceModel,
    estimator: Any,
    found: Estimate,
    key: str | None,
    one_law: bool,
) -> tuple[Question, Callable[[], tuple[Evidence, ...]]]:
    """Return the question about a statistic that is no mean, and what computes the holdout's evidence about it.

    Parameters
    ----------
    statistic : Statistic
        What is asked.
    records : Records
        Both parts.
    model : graphs.DependenceModel
        How the holdout's records depend on each other.
    estimator : estimator
        Fitted.
    found : Estimate
        The statistic on the training part.
    key : str or None
        The question's identity.
    one_law : bool
        Whether the records have one law.

    Returns
    -------
    question : Question
    evidence : callable
        Secret.

    Raises
    ------
    InputError
        When nothing is proved about it for this dependence model.
    """
    train_y = records.labelled()[0][1]
    layout = statistic.layout(found, train_y, getattr(estimator, "classes_", None), model, one_law)
    question = Question(
        statistic.unit(found), statistic.bounds, statistic.name, key, Known(layout=layout), statistic.target
    )

    def evidence() -> tuple[Evidence, ...]:
        X, y = handed_out(records.holdout)
        return statistic.evidence(estimator, X, y, train_y, model, one_law)

    return question, evidence
