"""The cross-validated score of a search as the training value of a guard's query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.scoring.metrics import Metric, needed_range
from thresholdout.scoring.statistics import Statistic, did_you_mean, get_score
from thresholdout.scoring.statistics.scorers import BY_NAME, from_scorer, is_scorer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TRAINING_COLUMN", "Scoring", "WithTrainingValue"]

TRAINING_COLUMN = "guarded_training_value"
"""Name of the guard's own metric among the scores of a search."""

# Scores of scikit-learn that are in the units of the guard's score of the same name.
_SAME_UNITS = ("accuracy", *BY_NAME)

# Losses that scikit-learn negates; the guard's are clipped or in other units, so they are computed anew.
_LOSSES = {"neg_log_loss": "log_loss", "neg_brier_score": "brier_score"}


class Scoring:
    """The score that ranks a search, the metric of the guard's queries, and the source of their training values.

    `name` is the score's name in the search's columns, `direct` whether it is the metric itself, in the same units. A
    search's score that no guard knows, or that has no name, is refused.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> Scoring(GridSearchCV(LogisticRegression(), {}, scoring="neg_log_loss"), None).metric.name
    'log_loss(clip=5.0)'
    """

    def __init__(self, search: Any, metric: str | Metric | Statistic | None) -> None:
        scoring = getattr(search, "scoring", None)
        self.several = isinstance(scoring, (list, tuple, set, Mapping))
        self.name, single = ("score", scoring) if not self.several else self._named(search, scoring)
        kind = self._kind(search.estimator, single)
        self.direct = kind in _SAME_UNITS
        if metric is None and is_scorer(single):
            metric = from_scorer(single)
        elif metric is None:
            metric = str(kind) if self.direct else self._by_default(kind if single is None else single)
        elif self.direct:
            self.direct = get_score(metric).name == get_score(str(kind)).name
        self.metric = get_score(metric)

    @property
    def sign(self) -> float:
        """1 for scores, -1 for losses."""
        return 1.0 if self.metric.greater_is_better else -1.0

    @staticmethod
    def _named(search: Any, scoring: Any) -> tuple[str, Any]:
        """Return the name and the score that ``refit`` names, of several."""
        refit = getattr(search, "refit", None)
        if not isinstance(refit, str) or refit not in scoring:
            seen = f"{refit!r} for a search with several scores"
            raise InputError("refit", seen, f"the name of one of them: {', '.join(map(str, scoring))}")
        return refit, scoring[refit] if isinstance(scoring, Mapping) else refit

    @staticmethod
    def _kind(estimator: Any, scoring: Any) -> str | None:
        from sklearn.base import is_classifier, is_regressor

        if scoring is None:
            return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else None
        return scoring if isinstance(scoring, str) else None

    @staticmethod
    def _by_default(scoring: Any) -> str:
        from sklearn.metrics import get_scorer_names

        if isinstance(scoring, str) and scoring in _LOSSES:
            return _LOSSES[scoring]
        unlimited = needed_range("metric", f"None for scoring={scoring!r}", scoring if isinstance(scoring, str) else "")
        if unlimited is not None:
            raise unlimited
        if isinstance(scoring, str) and scoring not in get_scorer_names():
            raise InputError("scoring", repr(scoring), "the name of a score of scikit-learn", did_you_mean(scoring))
        advice = "Pass metric= from thresholdout.scoring.metrics or thresholdout.scoring.statistics."
        raise InputError("metric", f"None for scoring={scoring!r}", "a metric's name or object", advice)

    def scorer(self, search: Any) -> Any:
        """Return the scoring for the search: the original one, or one with the metric's value beside it."""
        from sklearn.metrics import check_scoring

        if self.direct:
            return search.scoring
        return WithTrainingValue(check_scoring(search.estimator, search.scoring), self.metric)

    def training_values(self, results: Mapping[str, Any]) -> NDArray[np.float64]:
        """Return the cross-validated means of the metric, in its own units and within its range."""
        column = self.name if self.direct else TRAINING_COLUMN
        failed = np.full(len(results["params"]), np.nan)  # scikit-learn writes no column if no fit was scored
        values = np.asarray(results.get(f"mean_test_{column}", failed), dtype=np.float64)
        return np.clip(values, *self.metric.bounds)


class WithTrainingValue:
    """A scorer of one or several numbers, with the value of a guard's metric beside them."""

    def __init__(self, scorer: Any, metric: Metric | Statistic) -> None:
        self._scorer = scorer
        self._metric = metric

    def __call__(self, estimator: Any, X: Any, y: Any = None, **params: Any) -> dict[str, float]:
        """Return all scores by name."""
        found = self._scorer(estimator, X, y, **params)
        scores = dict(found) if isinstance(found, Mapping) else {"score": found}
        return {**scores, TRAINING_COLUMN: float(np.mean(self._metric.of(estimator, X, y)))}

    def get_metadata_routing(self) -> Any:
        """Return the scorer's routing."""
        from sklearn.utils.metadata_routing import get_routing_for_object

        return get_routing_for_object(self._scorer)
