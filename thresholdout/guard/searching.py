"""What a guard gives to searches: scorers, a split, and where records come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from thresholdout.guard.holdout import Origin, Records
from thresholdout.guard.scorer import GuardScorer
from thresholdout.guard.train_split import TrainSplit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from thresholdout.guard.exhaustion import Exhausted
    from thresholdout.guard.guard import Thresholdout

__all__ = ["ServesSearches"]


class ServesSearches:
    """The part of a guard that searches use."""

    _records: Records
    _searched = 0
    """How often scorers of this guard were asked for a score of the holdout."""

    def scorer(
        self,
        metric: object = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        exhausted: Exhausted = "stop",
        intervals: bool = False,
    ) -> GuardScorer:
        """Return a scorer for scikit-learn's searches; use it together with `split`.

        Losses are negated, as scikit-learn expects. It works with any ``n_jobs``.

        Parameters
        ----------
        metric : str, Metric, Statistic, or a list or mapping of them, default="accuracy"
            As in `score`. With several, each candidate is as many questions.
        cv, sample_weight : optional
            As in `score`: each candidate is cross-validated, by the same folds for all, in the search's workers.
        exhausted : {"stop", "nan", "train", "raise"}, default="stop"
            What happens when the guard answers no more. "stop": one warning, candidates without an answer get NaN, and
            the best of the answered is chosen; `SearchExhausted` where none is answered. "nan": the same, also where
            none is. "train": training values stand in. "raise": `SearchExhausted`. See `GuardScorer`.
        intervals : bool, default=False
            Give the search the ends of the answers' intervals too, as ``mean_test_low`` and ``mean_test_high`` beside
            ``mean_test_score``; it needs ``refit="score"`` then.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.model_selection import GridSearchCV
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from thresholdout import Claims, Thresholdout
        >>> X, y = load_digits(return_X_y=True)
        >>> guard = Thresholdout((X[900:], y[900:]), train=(X[:900], y[:900]), queries=20,
        ...                      mechanism=Claims(holdout_answers=2))
        >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4, 8]},
        ...                       scoring=guard.scorer("accuracy"), cv=guard.split())
        >>> search.fit(X[:900], y[:900]).best_params_
        {'max_depth': 8}
        >>> len(guard.history)
        3
        >>> best = search.set_params(scoring=guard.scorer(intervals=True), refit="score").fit(X[:900], y[:900])
        >>> low, high = (best.cv_results_[f"mean_test_{end}"][best.best_index_] for end in ("low", "high"))
        >>> bool(low <= best.best_score_ <= high)
        True
        """
        guard = cast("Thresholdout", self)
        if guard._lazy:
            self._records.labelled()
        return GuardScorer(guard, metric, cv=cv, sample_weight=sample_weight, exhausted=exhausted, intervals=intervals)

    def split(self) -> TrainSplit:
        """Return a splitter for ``cv=``: one split, which fits on all training records that it is given.

        The holdout never passes through the search; `scorer` asks the guard for it.
        """
        return TrainSplit(cast("Thresholdout", self), len(self._records.labelled()[0][1]))

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        return self._records.origin(hashes, records)
