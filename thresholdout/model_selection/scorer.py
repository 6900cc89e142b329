"""A scorer that asks a guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from thresholdout.errors import InputError, SharingError
from thresholdout.rows import row_hashes

if TYPE_CHECKING:
    from thresholdout.guard import Thresholdout
    from thresholdout.metrics import Metric
    from thresholdout.statistics import Statistic

__all__ = ["GuardScorer"]


class GuardScorer:
    """A scorer for ``scoring=``; made by `Thresholdout.scorer`, used with ``cv=guard.split()``.

    Called with the placeholder of `TrainSplit` it asks the guard for the estimator's score: one question. Called with
    the whole training part, as ``return_train_score=True`` does, it returns the training score, which is free.

    Parameters
    ----------
    guard : Thresholdout
        The guard, with its training part.
    metric : Metric or Statistic
        The score; a loss is negated, so that greater is better.
    cv : int or splitter, optional
        How to cross-validate the training value; see `Thresholdout.score`.
    """

    def __init__(self, guard: Thresholdout, metric: Metric | Statistic, cv: object | None = None) -> None:
        self._guard = guard
        self._metric = metric
        self._cv = cv

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the guarded score of a fitted estimator.

        Raises
        ------
        InputError
            When ``X`` is neither the placeholder nor, record for record, the training part.
        BudgetExhausted
            When the guard answers no more. A search with scikit-learn's default ``error_score`` turns this into a
            warning and a NaN; pass ``error_score="raise"`` to stop there.
        """
        sign = 1.0 if self._metric.greater_is_better else -1.0
        if self._guard.origin(X) == "train" and len(set(map(tuple, row_hashes(X).tolist()))) > 1:
            return sign * float(np.mean(self._metric.of(estimator, X, y)))
        size = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if size != 2 or self._guard.origin(X) != "train":
            raise InputError(
                "X", f"{size} records that are not the training part", "a search with cv=guard.split(), fitted on it"
            )
        return sign * self._guard.score(estimator, self._metric, cv=self._cv).value

    def __copy__(self) -> GuardScorer:
        return self

    def __deepcopy__(self, memo: object) -> GuardScorer:
        return self

    def __sklearn_clone__(self) -> GuardScorer:
        return self

    def __reduce__(self) -> NoReturn:
        raise SharingError(
            "a guard's scorer cannot be sent to another process: its copy would spend the same budget twice. "
            "Search with n_jobs=1, or in threads: joblib.parallel_config(backend='threading')"
        )

    def __repr__(self) -> str:
        return f"GuardScorer({self._metric.name})"
