"""The candidates of a search: how many there are, what they are, and in which order a guard is asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.data.arguments import check_count
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.model_selection.training_value import Scoring

__all__ = ["check_search", "listed_candidates", "most_candidates", "ranked"]


def check_search(search: object, candidates: object) -> None:
    """Refuse what is no search, and a search that asks a guard by itself.

    Raises
    ------
    InputError, InputTypeError
        Says what was expected.
    """
    from thresholdout.guard.scorer import GuardScorer

    if isinstance(search, type) or not all(hasattr(search, name) for name in ("estimator", "fit", "get_params")):
        seen = f"{search!r}"
        raise InputTypeError("search", seen, "a search over an estimator's parameters, such as GridSearchCV")
    if isinstance(getattr(search, "scoring", None), GuardScorer):
        expected = "an ordinary score; GuardedSearchCV asks the guard itself"
        raise InputError("search", "a search that scores by guard.scorer()", expected)
    if candidates is not None:
        check_count("candidates", candidates)


def ranked(results: Mapping[str, Any], scoring: Scoring, candidates: int | None) -> NDArray[np.intp]:
    """Return the rows of ``cv_results_`` that a guard is asked about, the best first.

    Parameters
    ----------
    results : mapping
        Of a fitted search; of several rounds the last one counts.
    scoring : Scoring
        Says which column ranks them.
    candidates : int or None
        How many at most.

    Returns
    -------
    ndarray of int
        Candidates without a finite training value are left out.
    """
    usable = np.isfinite(scoring.training_values(results))
    if not usable.any():
        return np.flatnonzero(usable)
    ranks = np.asarray(results[f"rank_test_{scoring.name}"])
    if "iter" in results:
        rounds = np.asarray(results["iter"])
        usable &= rounds == rounds.max()
    rows = np.flatnonzero(usable)
    return rows[np.argsort(ranks[rows], kind="stable")][:candidates]


def most_candidates(search: Any) -> int | None:
    """Return how many candidates a search has at most, ``None`` when it depends on the records.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import RandomizedSearchCV
    >>> most_candidates(RandomizedSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}, n_iter=8))
    3
    """
    from sklearn.model_selection import ParameterGrid

    if hasattr(search, "param_grid"):
        return len(ParameterGrid(search.param_grid))
    draws = getattr(search, "n_iter", getattr(search, "n_candidates", None))
    if not isinstance(draws, (int, np.integer)):
        return None
    spaces = getattr(search, "param_distributions", None)
    spaces = [spaces] if isinstance(spaces, Mapping) else spaces or []
    if spaces and not any(hasattr(values, "rvs") for space in spaces for values in space.values()):
        return min(int(draws), len(ParameterGrid(spaces)))
    return int(draws)


def listed_candidates(search: Any) -> list[dict[str, Any]]:
    """Return the candidates of a search that names or draws them beforehand.

    Raises
    ------
    InputError
        When they depend on scores, as those of halving searches do.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> listed_candidates(GridSearchCV(Ridge(), {"alpha": [0.1, 1]}))
    [{'alpha': 0.1}, {'alpha': 1}]
    """
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if not hasattr(search, "resource"):
        if hasattr(search, "param_grid"):
            return list(ParameterGrid(search.param_grid))
        if hasattr(search, "param_distributions") and hasattr(search, "n_iter"):
            return list(ParameterSampler(search.param_distributions, search.n_iter, random_state=search.random_state))
    seen = f"{type(search).__name__}, whose candidates depend on scores"
    raise InputError("search", seen, "a grid or a randomized search beside a KFoldGuard")
