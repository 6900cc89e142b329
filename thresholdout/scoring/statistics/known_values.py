"""Metrics whose cross-validated values are known."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score

__all__ = ["known"]


def known(metric: str | Metric | Statistic, values: Any) -> Metric | Statistic:
    """Return a metric whose `cross_validated` is known, and which is as it was in everything else.

    Examples
    --------
    >>> known("accuracy", [0.0, 1.0]).cross_validated(None, None, None, 5)
    [0.0, 1.0]
    """
    told = copy.copy(get_score(metric))
    vars(told)["cross_validated"] = partial(_told, values)  # the class may be anybody's, and stays
    return told


def _told(values: Any, estimator: Any, X: Any, y: Any, cv: object) -> Any:
    return values
