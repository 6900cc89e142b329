"""Statistics of a holdout that are not means: area under the curve, balanced accuracy, F1, R2, median error.

A certificate by the transcript route needs one thing of a question: how far its value on the records can be from a
truth that is fixed in advance. For a mean of n numbers in [0, 1] that is ``P(|q - E q| >= t) <= 2 exp(-2 n t^2 /
Lambda)``, Lambda the variance inflation of the model. The statistics here obey the same bound with t divided by a
constant, their *spread*: their half-widths are those of a mean with the radius multiplied by it
(`Certificate.half_width`). Every spread is proved in PROOFS.md, "Statistics that are not means".

Half-widths are public. A spread is a function of the model and of the number of records of each class alone, the
largest over all labellings with these numbers: take the numbers as public too, and truths as conditional on them.
What is certified is the statistic that is expected given the labels of the holdout; `Statistic.target` says what that
is.
"""

from __future__ import annotations

from collections.abc import Callable

from thresholdout.errors import InputError, InputTypeError
from thresholdout.metrics import Metric, get_metric
from thresholdout.statistics.classification import balanced_accuracy, f1, roc_auc
from thresholdout.statistics.disclosure import disclosure_nats
from thresholdout.statistics.regression import median_absolute_error, r2
from thresholdout.statistics.statistic import Statistic

__all__ = [
    "Statistic",
    "balanced_accuracy",
    "disclosure_nats",
    "f1",
    "get_score",
    "get_statistic",
    "median_absolute_error",
    "r2",
    "roc_auc",
]

_BY_NAME: dict[str, Callable[[], Statistic]] = {
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
    "r2": r2,
    "roc_auc": roc_auc,
}


def get_statistic(statistic: str | Statistic) -> Statistic:
    """Return the statistic of that name, or the statistic itself.

    Raises
    ------
    InputError
        When no statistic has that name, or it needs a ``clip``.

    Examples
    --------
    >>> get_statistic("r2").bounds
    (-3.0, 1.0)
    >>> get_statistic("median_absolute_error")
    Traceback (most recent call last):
    thresholdout.errors.InputError: statistic: 'median_absolute_error'; expected: a range: ...
    """
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str):
        raise InputTypeError(
            "statistic", f"a {type(statistic).__name__}", "a name, or a thresholdout.statistics.Statistic"
        )
    if statistic in _BY_NAME:
        return _BY_NAME[statistic]()
    needs_clip = "thresholdout.statistics.median_absolute_error(clip=...)"
    if statistic.removeprefix("neg_") == "median_absolute_error":
        raise InputError("statistic", repr(statistic), f"a range: {needs_clip}, in units of the y")
    names = ", ".join(map(repr, sorted(_BY_NAME)))
    raise InputError("statistic", repr(statistic), f"{names} or {needs_clip}; means are in thresholdout.metrics")


def get_score(score: str | Metric | Statistic) -> Metric | Statistic:
    """Return the metric or the statistic of that name, or the thing itself.

    Raises
    ------
    InputError
        When neither a metric nor a statistic has that name.

    Examples
    --------
    >>> get_score("accuracy").name, get_score("roc_auc").name
    ('accuracy', 'roc_auc')
    """
    if isinstance(score, Statistic) or (isinstance(score, str) and score in _BY_NAME):
        return get_statistic(score)
    if score == "median_absolute_error":
        return get_statistic("median_absolute_error")
    return get_metric(score)
