"""What a model is worth on the training part: cross-validated, as far as nothing else is asked for."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.fold_fitting import parts_of
from thresholdout.guard.sharing.shared_objects import is_shared
from thresholdout.guard.training_folds import Splits, TrainingFolds, checked_cv
from thresholdout.scoring.fitted_models import check_applies, check_booster, check_classes, classifies, said_plainly
from thresholdout.scoring.out_of_fold import OutOfFold, out_of_fold
from thresholdout.scoring.statistics import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.data.identity import Part
    from thresholdout.scoring.metrics import Metric

__all__ = ["Predictions", "Trained", "check_refit", "fixed", "trained", "without_fits"]

_LOG: Final = logging.getLogger(__name__)

_MOST_KEPT: Final = 1 << 26
"""Bytes of predictions that are kept."""

_INSTEAD: Final = (
    "train_values= (its cross-validated score, or a value for each training record), or cv='training' for its score on "
    "the records that it was fitted to"
)


@dataclass(frozen=True, eq=False)
class Trained:
    """Training values, and where they come from.

    Attributes
    ----------
    values : ndarray, float or Estimate
        One for each training record, or for each that was tested; or their mean; or a statistic.
    tested : ndarray or None
        Which records were tested, in rising order and perhaps more than once; ``None`` for each of them once.
    splits : Splits or None
        The folds, where it was cross-validated.
    given : bool
        Whether the values were given, and not computed.
    """

    values: Any
    tested: NDArray[np.intp] | None = None
    splits: Splits | None = None
    given: bool = False


class Predictions:
    """Out-of-fold predictions that were made, for further metrics and comparisons of the same estimator.

    They are known by what the clones are made of: class and parameters of the estimator, and the folds.

    Examples
    --------
    >>> kept = Predictions()
    >>> made = OutOfFold(np.zeros(3), None, np.arange(3))
    >>> kept.keep("a tree of depth 2", made)
    >>> kept.find("a tree of depth 2") is made, kept.find(None) is None
    (True, True)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, OutOfFold] = OrderedDict()

    def find(self, key: str | None) -> OutOfFold | None:
        """Return what was kept."""
        with self._lock:
            return None if key is None else self._kept.get(key)

    def keep(self, key: str | None, found: OutOfFold) -> None:
        """Keep predictions, and forget the oldest where they are too many."""
        if key is None:
            return
        with self._lock:
            self._kept[key] = found
            while sum(one.output.nbytes + one.tested.nbytes for one in self._kept.values()) > _MOST_KEPT:
                self._kept.popitem(last=False)


def trained(
    metric: Metric | Statistic,
    estimator: Any,
    train: Part,
    folds: TrainingFolds | None,
    cv: object,
    given: Any = None,
    kept: Predictions | None = None,
) -> Trained:
    """Return a fitted estimator's values on the training part.

    Parameters
    ----------
    metric : Metric or Statistic
        What is asked for.
    estimator : object
        Fitted; its clones are fitted again, unless values are given or ``cv="training"``.
    train : tuple (X, y)
        The training part, or the development part.
    folds : TrainingFolds or None
        What is declared about it; ``None`` for a development part, on which models are scored as they are.
    cv : None, "training", int, splitter, or pairs of positions
        How to cross-validate.
    given : float, array-like or Trained, optional
        Values that take the place of all this.
    kept : Predictions, optional
        What was predicted before, and need not be again.

    Raises
    ------
    InputError
        When the estimator cannot be fitted again, or there are values and a `cv`.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from thresholdout.scoring.metrics import accuracy
    >>> X, y = np.arange(20.0)[:, None], np.tile([0, 1], 10)
    >>> nearest = KNeighborsClassifier(1).fit(X, y)
    >>> for cv in (None, "training"):
    ...     print(trained(accuracy(), nearest, (X, y), TrainingFolds(), cv).values.mean())
    0.5
    1.0
    """
    how = checked_cv(cv)
    if given is not None:
        if how is not None:
            raise InputError("cv", repr(cv), "nothing beside train_values, which take its place")
        if isinstance(given, Trained):
            return given
        check_booster(estimator, classes=classifies(metric))
        if not getattr(estimator, "only_holdout", False):
            check_applies(estimator, train[0], train[1], metric.response_of(estimator))
        return Trained(given, given=True)
    check_booster(estimator, classes=classifies(metric))
    X, y = train
    response = metric.response_of(estimator)
    if folds is None:
        _check_nothing(how)
    if how == "training" or folds is None:
        check_classes(estimator, y)
        with said_plainly(estimator, X, response):
            return Trained(metric.of(estimator, X, y))
    check_applies(estimator, X, y, response)
    check_refit(estimator)
    from sklearn.base import clone, is_classifier

    classifier = is_classifier(estimator)
    splits = folds.splits(how, X, y, classifier=classifier)
    named = ("folds", how, classifier) if how is None or isinstance(how, int) else splits
    key = None if kept is None else content_key(clone(estimator), named, response)
    found = None if kept is None else kept.find(key)
    if found is None:
        fits = f"{len(splits)} fits of {type(estimator).__name__}"
        _LOG.info("%s to parts of %d training records; cv='training' takes none, train_values= neither", fits, len(y))
        found = out_of_fold(estimator, X, y, splits, response)
        if kept is not None:
            kept.keep(key, found)
    values = metric.of_predictions(found, X, y)
    whole = np.array_equal(found.tested, np.arange(len(y)))
    return Trained(values, None if whole else found.tested, splits)


def without_fits(folds: TrainingFolds | None) -> object:
    """Return the `cv` by which models are scored on the open part as they are."""
    return None if folds is None else "training"


def _check_nothing(how: object) -> None:
    """Refuse folds beside a development part."""
    if how is not None:
        expected = "None: the scores on the development part take the place of cross-validation"
        raise InputError("cv", repr(how), expected)


def fixed(cv: object, train: Part, folds: TrainingFolds | None) -> object:
    """Return how to cross-validate several estimators by the same folds, also by a splitter that draws them.

    Parameters
    ----------
    cv, train, folds
        As in `trained`.
    """
    how = checked_cv(cv)
    if folds is None:
        _check_nothing(how)
        return None
    if how is None or isinstance(how, (int, str)):
        return how
    return folds.splits(how, *train, classifier=False)


def check_refit(estimator: Any, argument: str = "estimator", instead: str = _INSTEAD) -> None:
    """Refuse what cannot be fitted again for every fold, or would ask a guard again.

    Parameters
    ----------
    estimator : object
        To be cloned.
    argument, instead : str
        How messages call it, and what they advise.
    """
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    seen = None
    try:
        if not hasattr(estimator, "fit"):
            raise TypeError("no fit")
        clone(estimator)
    except Exception:
        seen = f"a {type(estimator).__name__}, which cannot be cloned and fitted again"
    else:
        for part in parts_of(estimator):
            if isinstance(part, FrozenEstimator) and hasattr(part, "predict"):
                seen = "a frozen model, which stays as it was fitted in every fold"
            elif is_shared(part) or is_shared(getattr(part, "guard", None)):
                seen = f"a {type(estimator).__name__} that asks a guard itself, and would do so in every fold"
    if seen is not None:
        raise InputError(argument, seen, instead)
