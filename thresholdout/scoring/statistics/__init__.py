"""Statistics of a holdout that are not means over records.

Guards with claims answer them, with intervals about an *estimand* that each describes in words (`Statistic.target`,
`Answer.estimand`).

A statistic consists of *parts*: ratios of sums over records, areas, or values that no record moves far. The counts in
it (of positive records, of positive predictions) are functions of the holdout and secret. Claims are placed by the
training part, so nothing that is shown depends on them. PROOFS.md, "Statistics that are not means".
"""

from __future__ import annotations

from thresholdout.errors import InputError, InputTypeError
from thresholdout.scoring.metrics import METRIC_NAMES, Metric, get_metric, needed_range
from thresholdout.scoring.statistics.agreement import cohen_kappa
from thresholdout.scoring.statistics.areas_under_curves import roc_auc, roc_auc_ovo, roc_auc_ovr
from thresholdout.scoring.statistics.classification import (
    balanced_accuracy,
    f1,
    fbeta,
    jaccard,
    matthews_corrcoef,
    precision,
    recall,
)
from thresholdout.scoring.statistics.declared import bounded_difference
from thresholdout.scoring.statistics.regression import median_absolute_error, r2, root_mean_squared_error
from thresholdout.scoring.statistics.scorers import BY_NAME, from_scorer, is_scorer
from thresholdout.scoring.statistics.slices import sliced
from thresholdout.scoring.statistics.statistic import Estimate, Statistic

__all__ = [
    "Estimate",
    "Statistic",
    "balanced_accuracy",
    "bounded_difference",
    "cohen_kappa",
    "f1",
    "fbeta",
    "get_score",
    "get_statistic",
    "jaccard",
    "matthews_corrcoef",
    "median_absolute_error",
    "precision",
    "r2",
    "recall",
    "roc_auc",
    "roc_auc_ovo",
    "roc_auc_ovr",
    "root_mean_squared_error",
    "sliced",
]

_SHORT = {"auc": "roc_auc", "acc": "accuracy", "kappa": "cohen_kappa", "mcc": "matthews_corrcoef"}


def get_statistic(statistic: str | Statistic) -> Statistic:
    """Return the statistic with this name, such as "roc_auc", or a given `Statistic` unchanged.

    Examples
    --------
    >>> get_statistic("roc_auc").bounds
    (0.0, 1.0)
    >>> get_statistic("r2")
    Traceback (most recent call last):
    thresholdout.errors.InputError: statistic must be a score with a declared largest error; got 'r2'. ...
    """
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str):
        raise InputTypeError(
            "statistic", f"a {type(statistic).__name__}", "a name or a thresholdout.scoring.statistics.Statistic"
        )
    found = BY_NAME[statistic]() if statistic in BY_NAME else None
    if isinstance(found, Statistic):
        return found
    unlimited = needed_range("statistic", repr(statistic), statistic)
    if unlimited is not None:
        raise unlimited
    names = ", ".join(repr(name) for name in sorted(BY_NAME) if isinstance(BY_NAME[name](), Statistic))
    raise InputError("statistic", repr(statistic), f"one of {names}", "Means are in thresholdout.scoring.metrics.")


def get_score(score: object) -> Metric | Statistic:
    """Return the metric or statistic for a name or a scorer of scikit-learn, or a given one unchanged.

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> get_score("accuracy").name, get_score("roc_auc").name, get_score(get_scorer("f1_macro")).name
    ('accuracy', 'roc_auc', 'f1_macro')
    """
    if isinstance(score, Statistic | Metric):
        return score
    if is_scorer(score):
        return from_scorer(score)
    if isinstance(score, str):
        if score in BY_NAME:
            return BY_NAME[score]()
        return _named(score)
    return get_metric(score)  # type: ignore[arg-type]


def _named(score: str) -> Metric | Statistic:
    """Return the metric of a name; suggest another one for a score that is not served, or for a misprint."""
    try:
        return get_metric(score)
    except InputError as error:
        refused = error
    if score.removeprefix("neg_") in METRIC_NAMES or needed_range("metric", repr(score), score) is not None:
        raise refused
    from sklearn.metrics import get_scorer, get_scorer_names

    if score in get_scorer_names():
        return from_scorer(get_scorer(score))
    raise InputError("metric", repr(score), refused.expected, f"{did_you_mean(score)} {refused.advice}".strip())


def did_you_mean(score: str) -> str:
    """Return a question with the known score that is nearest to a name; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(_SHORT.get(score.lower(), score), (*METRIC_NAMES, *BY_NAME), 1, 0.5)
    return f"Did you mean {near[0]!r}?" if near else ""
