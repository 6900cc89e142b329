"""Number of queries of a search, counted without a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.scorer import GuardScorer, stands_for
from thresholdout.guard.sharing.shared_objects import same
from thresholdout.guard.train_split import rows_of
from thresholdout.model_selection.guard_detection import reaches
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["count_queries"]


_DRAWN = "<drawn>"
"""Marks candidates that are unknown before they are drawn."""

_MOST_LISTED = 10_000
"""Candidates that are searched for those with the most queries; larger grids would make a count slow."""


def count_queries(guard: Thresholdout, search: Any, X: Any = None, y: Any = None) -> int:
    """Return an upper bound on the number of guard queries that fitting a search makes.

    Use it to choose ``queries=`` of a guard before a search. Nothing is queried or fitted.

    Parameters
    ----------
    guard : Thresholdout
        The guard that the search queries.
    search : estimator
        Grid, randomized or halving search of scikit-learn, with or without searches inside, a `GuardedSearchCV`, or an
        object with an attribute ``guard`` and a method ``count_queries(X, y)``.
    X, y : array-like, optional
        Data that the search will be fitted to. If None, the guard's training part.

    Returns
    -------
    int
        Largest number of queries. The search makes exactly as many, unless candidates fail, equal models occur twice
        (they are one query), or inner searches differ between candidates that are selected by scores or at random.

    Raises
    ------
    InputTypeError
        If `search` has no method ``fit``.
    InputError
        If the search would be refused these records, or if its number of queries is unknown: a function wraps a scorer,
        the search has a search procedure of its own, or candidates are drawn without a seed.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from thresholdout import Claims, Thresholdout
    >>> X, y = np.arange(400.0).reshape(200, 2), np.tile([0, 1], 100)
    >>> guard = Thresholdout((X[:100], y[:100]), train=(X[100:], y[100:]), queries=20,
    ...                      mechanism=Claims(holdout_answers=2))
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


class _Round(NamedTuple):
    """Candidates, and the number of them that are evaluated on every split."""

    candidates: Sequence[dict[str, Any]]
    evaluated: int


def _fitting(guard: Thresholdout, estimator: Any, X: Any, y: Any) -> int:
    """Count the queries of fitting an estimator once."""
    if not reaches(guard, estimator):
        return 0
    if hasattr(estimator, "count_queries") and hasattr(estimator, "guard"):
        own = int(estimator.count_queries(X, y)) if same(guard, estimator.guard) else 0
        return own + _before_asking(guard, estimator, X, y)
    rounds = _rounds(estimator, X, y)
    if rounds is not None:
        return _searching(guard, estimator, rounds, X, y)
    parts = _parts(estimator)
    if parts is None:
        raise InputError(
            "search",
            f"a {type(estimator).__name__} with a guard inside",
            "a grid, randomized or halving search of scikit-learn, or a pipeline",
            "The number of fits and scores of other estimators is unknown.",
        )
    return sum(_fitting(guard, part, X, y) for part in parts)


def _before_asking(guard: Thresholdout, guarded: Any, X: Any, y: Any) -> int:
    """Count the queries of a guarded search before its own: those of its search, and of fitting each candidate."""
    search = getattr(guarded, "search", None)
    if search is None or not reaches(guard, search):
        return 0
    rounds = _rounds(search, X, y)
    if rounds is None or not isinstance(guarded.guard, Thresholdout | None):
        seen = f"a {type(guarded).__name__} over a {type(search).__name__} with a guard inside"
        raise InputError("search", seen, "a search of scikit-learn with a Thresholdout")
    first = rounds[0]
    fits = sorted(_fitting(guard, _built(search, one), X, y) for one in first.candidates)
    return _searching(guard, search, rounds, X, y, refit=False) + sum(fits[len(fits) - first.evaluated :])


def _searching(
    guard: Thresholdout, search: Any, rounds: list[_Round], X: Any, y: Any, refit: bool | None = None
) -> int:
    """Count the queries of fitting a search."""
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing

    if hasattr(search.cv, "__next__"):
        raise InputError("cv", "an iterator, which a count would use up", "a list of splits or a splitter")
    inside = reaches(guard, search.estimator) or any(reaches(guard, list(one.candidates)) for one in rounds)
    if inside and any(_drawn(search, value) for one in rounds for value in one.candidates):
        seen = f"{type(search).__name__} with candidates that are drawn without a seed, and a guard inside"
        raise InputError("search", seen, "one with a seed", "Pass random_state=0, or another integer, to it.")
    models = [[_built(search, one) for one in part.candidates] if inside else [search.estimator] for part in rounds]
    asks = [
        [_queries_of(guard, model if search.scoring is None else search.scoring) for model in part] for part in models
    ]

    def part_of(rows: Any) -> tuple[Any, Any]:
        return _safe_indexing(X, rows), None if y is None else _safe_indexing(y, rows)

    def fits(records: tuple[Any, Any]) -> list[list[int]]:
        return [[_fitting(guard, model, *records) if inside else 0 for model in part] for part in models]

    total = 0
    for train, test in check_cv(search.cv, y, classifier=is_classifier(search.estimator)).split(X, y):
        sides = [test, train] if search.return_train_score else [test]
        evaluations = (
            sum(stands_for(guard, *part_of(side)) != "train" for side in sides) if np.any(np.hstack(asks)) else 0
        )
        for part, asked, fitted in zip(rounds, asks, fits(part_of(train)) if inside else asks, strict=True):
            costs = [evaluations * a + (f if inside else 0) for a, f in zip(asked, fitted, strict=True)]
            total += sum(sorted(costs)[-part.evaluated :]) if inside else part.evaluated * costs[0]
    last = fits((X, y)) if inside and (search.refit if refit is None else refit) else [[0]]
    return total + max(max(part) for part in last)


def _built(search: Any, candidate: dict[str, Any]) -> Any:
    """Return the estimator of a candidate."""
    from sklearn.base import clone

    return clone(search.estimator).set_params(**clone(candidate, safe=False))


def _rounds(search: Any, X: Any, y: Any) -> list[_Round] | None:
    """Return the rounds of a search with their largest sizes; None for an unknown kind of search."""
    from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV

    if not _of_sklearn(search, "fit", "_run_search"):
        return None
    if any(kind.__name__ == "BaseSuccessiveHalving" for kind in type(search).__mro__):
        return _halving(search, X, y)
    if isinstance(search, GridSearchCV):
        grid = list(ParameterGrid(search.param_grid))
        return [_Round(grid, len(grid))]
    if isinstance(search, RandomizedSearchCV):
        return [_sampled(search, int(search.n_iter))]
    return None


def _sampled(search: Any, size: int) -> _Round:
    """Return the candidates of a randomized search: those of its seed, or all possible ones."""
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    spaces = search.param_distributions
    spaces = [spaces] if isinstance(spaces, Mapping) else list(spaces)
    listed = not any(hasattr(values, "rvs") for space in spaces for values in space.values())
    if listed and len(ParameterGrid(spaces)) <= size:
        grid = list(ParameterGrid(spaces))
        return _Round(grid, len(grid))
    if isinstance(search.random_state, (int, np.integer)):
        with suppress_warnings():  # that there are fewer candidates than n_iter
            drawn = list(ParameterSampler(search.param_distributions, size, random_state=search.random_state))
        return _Round(drawn, len(drawn))
    if listed and len(ParameterGrid(spaces)) <= _MOST_LISTED:
        return _Round(list(ParameterGrid(spaces)), size)
    return _Round([{_DRAWN: True}], size)


def _drawn(search: Any, candidate: dict[str, Any]) -> bool:
    return _DRAWN in candidate


def _halving(search: Any, X: Any, y: Any) -> list[_Round]:
    """Run the schedule of a halving search with an idle estimator: scores decide only which candidates remain."""
    from sklearn.base import is_classifier
    from sklearn.model_selection import check_cv

    settings = search.get_params(deep=False)
    n_splits = check_cv(search.cv, y, classifier=is_classifier(search.estimator)).get_n_splits(X, y)
    seeded = isinstance(search.random_state, (int, np.integer))
    settings |= {
        "estimator": _idle(search.estimator),
        "scoring": lambda estimator, X, y: 0.0,
        "cv": _Alike(n_splits),
        "refit": False,
        "n_jobs": None,
        "verbose": 0,
        "error_score": "raise",
        "return_train_score": False,
        "random_state": search.random_state if seeded else 0,
    }
    schedule = type(search)(**settings).fit(np.zeros((rows_of(X), 1)), y)
    results = schedule.cv_results_
    first = [one for one, number in zip(results["params"], results["iter"], strict=True) if number == 0]
    if hasattr(search, "param_distributions") and not seeded:
        first = list(_sampled(search, len(first)).candidates)
    rounds = []
    for resources, kept in zip(schedule.n_resources_, schedule.n_candidates_, strict=True):
        given = {} if search.resource == "n_samples" else {search.resource: int(resources)}
        rounds.append(_Round([{**one, **given} for one in first], int(kept)))
    return rounds


class _Alike:
    """Splits for a schedule without data: all records on both sides, any number of times."""

    def __init__(self, n_splits: int) -> None:
        self.n_splits = n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield all records on both sides."""
        for _ in range(self.n_splits):
            yield np.arange(len(X)), np.arange(len(X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return self.n_splits


def _idle(original: Any) -> Any:
    """Return an estimator with the parameters of another one, which fits nothing."""
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


def _of_sklearn(estimator: Any, *methods: str) -> bool:
    """Return whether the methods that decide the number of fits are scikit-learn's own."""
    found = [getattr(type(estimator), name, None) for name in methods]
    return all(str(getattr(method, "__module__", "")).startswith("sklearn.") for method in found)


def _parts(estimator: Any) -> list[Any] | None:
    """Return the estimators that an estimator fits once each; None if that is unknown."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if not _of_sklearn(estimator, "fit"):
        return None
    if isinstance(estimator, Pipeline):
        return [step for _, step in estimator.steps if hasattr(step, "fit")]
    if isinstance(estimator, FeatureUnion):
        return [part for _, part in estimator.transformer_list if hasattr(part, "fit")]
    if isinstance(estimator, ColumnTransformer):
        parts = [*(part for _, part, _ in estimator.transformers), estimator.remainder]
        return [part for part in parts if hasattr(part, "fit")]
    return None


def _queries_of(guard: Thresholdout, scoring: Any) -> int:
    """Count the queries of scoring one estimator; ``scoring`` may be the estimator itself."""
    if isinstance(scoring, GuardScorer):
        return len(scoring.metrics) if same(guard, scoring.guard) else 0
    if isinstance(scoring, Mapping):
        return sum(_queries_of(guard, one) for one in scoring.values())
    if isinstance(scoring, (list, tuple, set)):
        return sum(_queries_of(guard, one) for one in scoring)
    if hasattr(scoring, "steps"):
        return _queries_of(guard, scoring.steps[-1][1])
    if hasattr(scoring, "search"):  # a guarded search scores as the search inside of it
        return _queries_of(guard, scoring.search)
    if hasattr(scoring, "scoring"):  # a search scores as it searches
        return _queries_of(guard, scoring.estimator if scoring.scoring is None else scoring.scoring)
    if not hasattr(scoring, "fit") and reaches(guard, scoring):
        seen = f"{getattr(scoring, '__name__', type(scoring).__name__)!r}, a function with a guard inside"
        advice = "The number of queries of other functions is unknown."
        raise InputError("scoring", seen, "guard.scorer() or a mapping with it", advice)
    return 0
