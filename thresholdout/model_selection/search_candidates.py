"""The candidates of a search: their number, their parameters, and the order of their queries."""

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
    """Refuse objects that are no search, and searches that query a guard themselves."""
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.guard.scorer import GuardScorer

    if isinstance(search, type) or not all(hasattr(search, name) for name in ("estimator", "fit", "get_params")):
        seen = f"{search!r}"
        raise InputTypeError("search", seen, "a search over an estimator's parameters, such as GridSearchCV")
    scoring = getattr(search, "scoring", None)
    if isinstance(getattr(scoring, "__self__", scoring), GuardScorer | Thresholdout):
        advice = "GuardedSearchCV queries the guard itself."
        raise InputError("search", "a search that scores by guard.scorer()", "one with an ordinary score", advice)
    if candidates is not None:
        check_count("candidates", candidates)


def ranked(results: Mapping[str, Any], scoring: Scoring, candidates: int | None) -> NDArray[np.intp]:
    """Return the rows of ``cv_results_`` for queries, the best first, without those that lack a finite score."""
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
    """Return the largest number of candidates of a search, None if it depends on the records."""
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
    """Return the candidates of a grid or a randomized search."""
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if not hasattr(search, "resource"):
        if hasattr(search, "param_grid"):
            return list(ParameterGrid(search.param_grid))
        if hasattr(search, "param_distributions") and hasattr(search, "n_iter"):
            return list(ParameterSampler(search.param_distributions, search.n_iter, random_state=search.random_state))
    seen = f"{type(search).__name__}, whose candidates depend on scores"
    raise InputError("search", seen, "a grid or a randomized search beside a KFoldGuard")
