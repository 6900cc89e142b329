"""Folds of a search without ``cv``, from the declarations about its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.guard.holdout import content_hashes
from thresholdout.guard.training_values import Splits, TrainingFolds

if TYPE_CHECKING:
    from thresholdout.guard.guard import Thresholdout

__all__ = ["declared_folds"]


def declared_folds(search: Any, guard: Thresholdout | None, X: Any, y: Any, groups: Any) -> Splits | None:
    """Return the folds for a search with ``cv=None``; None for those of scikit-learn.

    Declared `groups` replace the guard's. Records other than the guard's training part need them if the guard has
    groups.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(Ridge(), {"alpha": [1, 10]})
    >>> folds = declared_folds(search, None, np.zeros((6, 1)), np.arange(6.0), [0, 0, 1, 1, 2, 2])
    >>> sorted(test.tolist() for _, test in folds)
    [[0, 1], [2, 3], [4, 5]]
    """
    from sklearn.base import is_classifier

    if search.get_params(deep=False).get("cv", "its own") is not None:
        return None
    folds = TrainingFolds() if guard is None else guard._training_folds
    if groups is not None:
        folds = TrainingFolds(np.asarray(groups), folds.ordered)
    elif guard is not None and folds.groups is not None:
        given, own = (content_hashes(*part)[1] for part in ((X, y), guard.train))
        if not np.array_equal(given, own):  # type: ignore[arg-type]
            seen = "None beside records other than the guard's training part, whose groups are declared"
            raise InputError("groups", seen, "the group of each record", "Or set the search's own cv=.")
    if folds.groups is None and not folds.ordered:
        return None
    return folds.splits(None, X, y, classifier=is_classifier(search.estimator))
