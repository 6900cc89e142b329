"""Statistics of a holdout that are not means over records.

Precision, recall, F1, Jaccard, per class or averaged; balanced accuracy; areas under the curve, also of several
classes; Matthews' correlation; Cohen's kappa; R2, root mean squared and median error; metrics on slices; and statistics
of one's own with a declared bounded difference. Guards that make claims answer them, with intervals about a *truth*
that each says in words (`Statistic.target`, `Answer.estimand`).

A statistic consists of *parts*: ratios of sums over records, areas, or values that no record moves far. The numbers of
records that count (how many are positive, how many were predicted so) are functions of the holdout; they stay secret,
and decide nothing that is shown: claims are placed by the training part. PROOFS.md, "Statistics that are not means",
has the proofs.
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
    """Return the statistic of that name, or the statistic itself.

    Examples
    --------
    >>> get_statistic("roc_auc").bounds
    (0.0, 1.0)
    >>> get_statistic("r2")
    Traceback (most recent call last):
    thresholdout.errors.InputError: statistic must be the largest that counts, from the training part: ...
    """
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str):
        raise InputTypeError(
            "statistic", f"a {type(statistic).__name__}", "a name, or a thresholdout.scoring.statistics.Statistic"
        )
    found = BY_NAME[statistic]() if statistic in BY_NAME else None
    if isinstance(found, Statistic):
        return found
    unlimited = needed_range("statistic", repr(statistic), statistic)
    if unlimited is not None:
        raise unlimited
    names = ", ".join(repr(name) for name in sorted(BY_NAME) if isinstance(BY_NAME[name](), Statistic))
    raise InputError("statistic", repr(statistic), f"{names}; means are in thresholdout.scoring.metrics")


def get_score(score: object) -> Metric | Statistic:
    """Return the metric or the statistic of that name, or of a scorer object of scikit-learn, or the thing itself.

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
    """Return the metric of a name; say what to take in place of another score of scikit-learn, or of a misprint."""
    try:
        return get_metric(score)
    except InputError as error:
        refused = error
    if "turns the sign" in refused.expected or "no limit" in str(refused.seen):
        raise refused
    from difflib import get_close_matches

    from sklearn.metrics import get_scorer, get_scorer_names

    if score in get_scorer_names():
        return from_scorer(get_scorer(score))
    near = get_close_matches(_SHORT.get(score.lower(), score), (*METRIC_NAMES, *BY_NAME), 1, 0.5)
    raise InputError("metric", repr(score), f"{near[0]!r}? Otherwise {refused.expected}" if near else refused.expected)
