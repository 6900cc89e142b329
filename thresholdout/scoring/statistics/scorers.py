"""Scores of scikit-learn: names, and scorer objects of `make_scorer` and `get_scorer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import thresholdout.scoring.metrics as metrics
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import Metric
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
from thresholdout.scoring.statistics.statistic import Statistic

__all__ = ["BY_NAME", "from_scorer", "is_scorer"]

BY_NAME: Final[Mapping[str, Callable[[], Metric | Statistic]]] = {
    "balanced_accuracy": balanced_accuracy,
    "cohen_kappa": cohen_kappa,
    "f1": f1,
    "f1_macro": lambda: f1(average="macro"),
    "f1_micro": metrics.accuracy,
    "jaccard": jaccard,
    "jaccard_macro": lambda: jaccard(average="macro"),
    "matthews_corrcoef": matthews_corrcoef,
    "precision": precision,
    "precision_macro": lambda: precision(average="macro"),
    "precision_micro": metrics.accuracy,
    "recall": recall,
    "recall_macro": lambda: recall(average="macro"),
    "recall_micro": metrics.accuracy,
    "roc_auc": roc_auc,
    "roc_auc_ovo": roc_auc_ovo,
    "roc_auc_ovr": roc_auc_ovr,
    "top_k_accuracy": metrics.top_k_accuracy,
}
"""Scores by scikit-learn's names. With one label per record, micro averages are accuracy, except Jaccard's."""

_SHARES: Final[Mapping[str, Callable[..., Statistic]]] = {
    "f1_score": f1,
    "jaccard_score": jaccard,
    "precision_score": precision,
    "recall_score": recall,
}
_SCORED: Final = ("roc_auc_score", "log_loss", "brier_score_loss", "top_k_accuracy_score")
_AREAS: Final = {"raise": roc_auc, "ovr": roc_auc_ovr, "ovo": roc_auc_ovo}
_PLAIN: Final[Mapping[str, Callable[[], Metric | Statistic]]] = {
    "accuracy_score": metrics.accuracy,
    "zero_one_loss": metrics.zero_one_loss,
    "balanced_accuracy_score": balanced_accuracy,
    "brier_score_loss": metrics.brier_score,
    "log_loss": metrics.log_loss,
    "matthews_corrcoef": matthews_corrcoef,
}


def is_scorer(score: object) -> bool:
    """Whether an object is a scorer of scikit-learn."""
    return callable(getattr(score, "_score_func", None)) and isinstance(getattr(score, "_kwargs", None), dict)


def from_scorer(scorer: Any) -> Metric | Statistic:
    """Return the metric or statistic of a scikit-learn scorer.

    Examples
    --------
    >>> from sklearn.metrics import f1_score, get_scorer, make_scorer
    >>> from_scorer(get_scorer("neg_log_loss")).name
    'log_loss(clip=5.0)'
    >>> from_scorer(make_scorer(f1_score, pos_label=0)).name
    'f1(positive=0)'
    """
    function = scorer._score_func
    name = str(getattr(function, "__name__", function))
    options = {key: value for key, value in scorer._kwargs.items() if value is not None}
    if not str(getattr(function, "__module__", "")).startswith("sklearn.metrics"):
        own = "Use thresholdout.scoring.statistics.bounded_difference(...), or ask() with per-record values."
        raise InputError("metric", f"a scorer of {name!r}", "a scorer of a function of scikit-learn", own)
    if name in _SCORED and getattr(scorer, "_response_method", None) == "predict":
        seen = f"a scorer of {name!r} with response_method='predict'"
        raise InputError("metric", seen, f"make_scorer({name}, response_method='predict_proba', ...)")
    options.pop("zero_division", None)  # an undefined score is a failed query here
    try:
        return _translated(name, options)
    except InputError as error:
        if error.argument == "metric":
            raise
        seen = f"a scorer of {name!r}"
        raise InputError("metric", seen, "a scorer with options that are served", str(error)) from None


def _translated(name: str, options: dict[str, Any]) -> Metric | Statistic:
    unlimited = metrics.needed_range("metric", f"a scorer of {name!r}", name)
    if unlimited is not None:
        raise unlimited
    found: Metric | Statistic | None = None
    if name in _SHARES:
        average, positive = options.pop("average", "binary"), options.pop("pos_label", None)
        if average == "micro" and name != "jaccard_score":
            found = metrics.accuracy()
        elif average == "macro":
            found = _SHARES[name](average="macro")
        elif average == "binary":
            found = _SHARES[name](positive)
        else:
            options["average"] = average
    elif name == "fbeta_score" and options.pop("average", "binary") == "binary":
        found = fbeta(options.pop("beta"), options.pop("pos_label", None))
    elif name == "roc_auc_score" and options.pop("average", "macro") == "macro":
        found = _AREAS.get(options.pop("multi_class", "raise"), roc_auc)()
    elif name == "cohen_kappa_score":
        found = cohen_kappa(options.pop("weights", None))
    elif name == "top_k_accuracy_score":
        found = metrics.top_k_accuracy(options.pop("k", 2))
    elif name in _PLAIN:
        found = _PLAIN[name]()
    if found is None or options:
        left = ", ".join(f"{key}={value!r}" for key, value in options.items())
        seen = f"a scorer of {name!r}" + (f" with {left}" if left else "")
        raise InputError(
            "metric", seen, f"one of {', '.join(sorted(BY_NAME))}, or a metric of thresholdout.scoring.metrics"
        )
    return found
