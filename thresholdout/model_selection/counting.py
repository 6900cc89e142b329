"""How many questions a search will ask, without asking any."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.model_selection.scorer import GuardScorer, is_question
from thresholdout.model_selection.split import rows_of
from thresholdout.rows import row_hashes
from thresholdout.sharing import same

if TYPE_CHECKING:
    from thresholdout.guard import Thresholdout

__all__ = ["count_queries"]


def count_queries(guard: Thresholdout, search: Any, X: Any = None, y: Any = None) -> int:
    """Return how many questions fitting a search asks a guard at most; nothing is asked, and nothing fitted.

    Parameters
    ----------
    guard : Thresholdout
        The guard.
    search : estimator
        A grid, randomized or halving search of scikit-learn, also with searches inside; or anything with a ``guard``
        and a method ``count_queries(X, y)``.
    X, y : array-like, optional
        What it would be fitted to; the guard's training part by default.

    Returns
    -------
    int
        Exact unless candidates fail, or searches inside a halving search differ between candidates.

    Raises
    ------
    InputError
        When the search would be refused these records, or how often something inside is fitted is not known.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from thresholdout import Thresholdout
    >>> X, y = np.arange(400.0).reshape(200, 2), np.tile([0, 1], 100)
    >>> guard = Thresholdout((X[:100], y[:100]), train=(X[100:], y[100:]), queries=20, budget=2)
    >>> search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2, 4, 8]},
    ...                       scoring=guard.scorer("accuracy"), cv=guard.split())
    >>> count_queries(guard, search), count_queries(guard, GridSearchCV(search, {"refit": [False]}, cv=5))
    (3, 18)
    """
    if not hasattr(search, "fit"):
        raise InputTypeError("search", f"a {type(search).__name__}", "a search of scikit-learn")
    if X is None:
        X, y = guard.train
    return _fitting(guard, search, X, y)


def _fitting(guard: Thresholdout, estimator: Any, X: Any, y: Any) -> int:
    """Questions of fitting an estimator once."""
    if hasattr(estimator, "count_queries") and hasattr(estimator, "guard"):
        return int(estimator.count_queries(X, y)) if same(guard, estimator.guard) else 0
    if _asks_nothing(guard, estimator):
        return 0
    evaluations = _evaluations(estimator, X, y)
    if evaluations is not None:
        return _searching(guard, estimator, evaluations, X, y)
    parts = _parts(estimator)
    if parts is None:
        raise InputError(
            "search",
            f"a {type(estimator).__name__} with a guarded search inside",
            "a grid, randomized or halving search, or a pipeline: how often others fit what is inside is not known",
        )
    return sum(_fitting(guard, part, X, y) for part in parts)


def _searching(guard: Thresholdout, search: Any, evaluations: list[tuple[dict[str, Any], int]], X: Any, y: Any) -> int:
    """Questions of fitting a search; ``evaluations`` are its candidates, and how often each is evaluated on a split."""
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing

    times = sum(count for _, count in evaluations)
    asked = _questions_of(guard, search.estimator if search.scoring is None else search.scoring)
    varying = [candidate for candidate, _ in evaluations if any(hasattr(v, "fit") for v in candidate.values())]
    inside = not _asks_nothing(guard, search.estimator) or any(
        not _asks_nothing(guard, value) for candidate in varying for value in candidate.values()
    )

    def fits(rows: Any, labels: Any) -> list[int]:
        if not inside:
            return [0] * len(evaluations)
        if not varying:
            return [_fitting(guard, search.estimator, rows, labels)] * len(evaluations)
        return [
            _fitting(guard, clone(search.estimator).set_params(**clone(candidate, safe=False)), rows, labels)
            for candidate, _ in evaluations
        ]

    total = 0
    hashes = row_hashes(X)
    for train, test in check_cv(search.cv, y, classifier=is_classifier(search.estimator)).split(X, y):
        if asked and is_question(guard, hashes[test]):
            total += times * asked
        if inside:
            part = fits(_safe_indexing(X, train), None if y is None else _safe_indexing(y, train))
            total += sum(count * each for (_, count), each in zip(evaluations, part, strict=True))
    return total + (max(fits(X, y)) if search.refit else 0)


def _evaluations(search: Any, X: Any, y: Any) -> list[tuple[dict[str, Any], int]] | None:
    """Return a search's candidates, and how often each is evaluated at most; None for what is no known search."""
    from sklearn.model_selection import GridSearchCV, ParameterGrid, ParameterSampler, RandomizedSearchCV

    if any(kind.__name__ == "BaseSuccessiveHalving" for kind in type(search).__mro__):
        return _halving(search, X, y)
    if isinstance(search, GridSearchCV):
        return [(candidate, 1) for candidate in ParameterGrid(search.param_grid)]
    if isinstance(search, RandomizedSearchCV):
        seed = search.random_state if isinstance(search.random_state, int) else 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are fewer candidates than n_iter
            return [(c, 1) for c in ParameterSampler(search.param_distributions, search.n_iter, random_state=seed)]
    return None


def _halving(search: Any, X: Any, y: Any) -> list[tuple[dict[str, Any], int]]:
    """Run the schedule of a halving search with an estimator that does nothing.

    How many candidates a round keeps does not depend on their scores; only which ones does.
    """
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv

    settings = search.get_params(deep=False)
    n_splits = check_cv(search.cv, y, classifier=is_classifier(search.estimator)).get_n_splits(X, y)
    settings |= {
        "estimator": _idle(search.estimator),
        "scoring": lambda estimator, X, y: 0.0,
        "cv": _Alike(n_splits),
        "refit": False,
        "n_jobs": None,
        "verbose": 0,
        "error_score": "raise",
        "random_state": search.random_state if isinstance(search.random_state, int) else 0,
    }
    schedule = type(search)(**settings).fit(np.zeros((rows_of(X), 1)), y)
    return [(candidate, 1) for candidate in schedule.cv_results_["params"]]


class _Alike:
    """Splits that a schedule can be run with: all records on both sides, as often as wanted."""

    def __init__(self, n_splits: int) -> None:
        self.n_splits = n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        for _ in range(self.n_splits):
            yield np.arange(len(X)), np.arange(len(X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits


def _idle(original: Any) -> Any:
    """Return an estimator that has another one's parameters, and fits nothing."""
    from sklearn.base import BaseEstimator
    from sklearn.utils import get_tags

    class Idle(BaseEstimator):  # type: ignore[misc]
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            parameters: dict[str, Any] = original.get_params(deep=deep)
            return parameters

        def set_params(self, **parameters: Any) -> Any:
            return self

        def fit(self, X: Any, y: Any = None, **metadata: Any) -> Any:
            return self

        def __sklearn_clone__(self) -> Any:
            return self

        def __sklearn_tags__(self) -> Any:
            return get_tags(original)

    return Idle()


def _parts(estimator: Any) -> list[Any] | None:
    """Return what an estimator fits once each, when that is known of it."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(estimator, Pipeline):
        return [step for _, step in estimator.steps if hasattr(step, "fit")]
    if isinstance(estimator, FeatureUnion):
        return [part for _, part in estimator.transformer_list if hasattr(part, "fit")]
    if isinstance(estimator, ColumnTransformer):
        return [part for _, part, _ in estimator.transformers if hasattr(part, "fit")]
    return None


def _questions_of(guard: Thresholdout, scoring: Any) -> int:
    """Questions of scoring one estimator once where the guard is asked; ``scoring`` may be the estimator itself."""
    if isinstance(scoring, GuardScorer):
        return len(scoring.metrics) if same(guard, scoring.guard) else 0
    if isinstance(scoring, Mapping):
        return sum(_questions_of(guard, one) for one in scoring.values())
    if isinstance(scoring, (list, tuple, set)):
        return sum(_questions_of(guard, one) for one in scoring)
    if hasattr(scoring, "steps"):
        return _questions_of(guard, scoring.steps[-1][1])
    if hasattr(scoring, "scoring"):  # a search scores by what it searches with
        return _questions_of(guard, scoring.estimator if scoring.scoring is None else scoring.scoring)
    return 0


def _asks_nothing(guard: Thresholdout, thing: Any) -> bool:
    """Whether nothing in an estimator, or in a value of a parameter, asks this guard."""
    if isinstance(thing, GuardScorer):
        return not same(guard, thing.guard)
    if hasattr(thing, "count_queries") and hasattr(thing, "guard"):
        return not same(guard, thing.guard)
    values: Iterable[Any] = ()
    if isinstance(thing, Mapping):
        values = thing.values()
    elif isinstance(thing, (list, tuple, set)):
        values = thing
    elif hasattr(thing, "get_params") and not isinstance(thing, type):
        values = thing.get_params(deep=False).values()
    return all(_asks_nothing(guard, value) for value in values)
