"""Training values of models: folds of the training part, and cross-validated predictions on it."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.content_keys import content_key
from thresholdout.guard.sharing.shared_objects import SHARED
from thresholdout.scoring.fitted_models import check_applies, check_booster, check_classes, classifies, said_plainly
from thresholdout.scoring.out_of_fold import OutOfFold, out_of_fold
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.data.identity import Part
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = [
    "FOLDS",
    "Predictions",
    "Splits",
    "Trained",
    "TrainingFolds",
    "check_refit",
    "checked_cv",
    "fixed",
    "is_series",
    "parts_of",
    "trained",
    "without_fits",
]

FOLDS: Final = 5
"""Number of folds by default, as in scikit-learn."""

Splits: TypeAlias = "tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]"
"""For each fold, positions of the records that it fits and of those that it tests."""

_EXPECTED: Final = "None, 'training', a number of folds, a splitter, or pairs (fit, test) of positions"
_OTHER_FOLDS: Final = "Or pass cv='training', or train_values=."


@dataclass(frozen=True, eq=False)
class TrainingFolds:
    """Declared structure of the training part, from which its folds follow.

    Whole groups are in one fold. In an ordered part, only later records test models of earlier ones. If there are
    groups, these decide: each has an order of its own and is in one fold.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile([0, 1], 10)
    >>> TrainingFolds().splitter(y, classifier=True)
    StratifiedKFold(n_splits=5, random_state=None, shuffle=False)
    >>> TrainingFolds(groups=np.repeat(np.arange(4), 5)).splitter(y, classifier=False)
    GroupKFold(n_splits=4, random_state=None, shuffle=False)
    >>> TrainingFolds(ordered=True).splitter(y, classifier=True)
    TimeSeriesSplit(gap=0, max_train_size=None, n_splits=5, test_size=None)
    """

    groups: NDArray[Any] | None = None
    ordered: bool = False

    def splitter(self, y: Any, *, classifier: bool, folds: int | None = None) -> Any:
        """Return the scikit-learn splitter for the declared structure: by default 5 folds, or fewer for few records."""
        from sklearn import model_selection as splitters
        from sklearn.utils.multiclass import type_of_target

        pieces, what = len(y), "training records"
        if self.groups is not None:
            pieces, what = len(np.unique(self.groups)), "groups of training records"
        elif self.ordered:
            pieces, what = pieces - 1, "training records after the first"
        many = min(FOLDS, pieces) if folds is None else folds
        if pieces < 2 or not 2 <= many <= pieces:
            expected = f"a number of folds from 2 to the number of {what}"
            raise InputError("cv", f"{many} folds of {pieces} {what}", expected, _OTHER_FOLDS)
        if self.ordered and self.groups is None:
            return splitters.TimeSeriesSplit(many)
        labels = np.asarray(y)
        stratified = classifier and type_of_target(labels) in ("binary", "multiclass")
        if stratified and folds is None:  # scikit-learn requires a class with a record in every fold
            largest = int(np.unique(labels, return_counts=True)[1].max())
            many, stratified = (min(many, largest), True) if largest > 1 else (many, False)
        if self.groups is None:
            return (splitters.StratifiedKFold if stratified else splitters.KFold)(many)
        return (splitters.StratifiedGroupKFold if stratified else splitters.GroupKFold)(many)

    def splits(self, cv: object, X: Any, y: Any, *, classifier: bool) -> Splits:
        """Return the positions that each fold fits and tests; other splitters get the declared groups.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import ShuffleSplit
        >>> X, y = np.zeros((10, 1)), np.arange(10.0)
        >>> splits = TrainingFolds().splits(ShuffleSplit(2, test_size=3, random_state=0), X, y, classifier=False)
        >>> [(fit.size, test.size) for fit, test in splits]
        [(7, 3), (7, 3)]
        """
        chosen: Any = cv
        if cv is None or isinstance(cv, int):
            chosen = self.splitter(y, classifier=classifier, folds=cv)
        elif not hasattr(cv, "split"):
            return _positions(cast("Iterable[Any]", cv), len(y))
        try:
            with suppress_warnings(UserWarning):  # about small classes, and groups that a splitter does not use
                pairs = list(chosen.split(X, y, self.groups))
        except (TypeError, ValueError) as error:
            seen = f"{chosen!r}, which fails ({error})"
            raise InputError("cv", seen, f"a splitter for these {len(y)} records", _OTHER_FOLDS) from None
        return _positions(pairs, len(y))


def checked_cv(cv: object) -> Any:
    """Return a user's ``cv`` in a form that can be used more than once.

    Examples
    --------
    >>> checked_cv("training"), checked_cv(3), checked_cv(iter([([0], [1])]))
    ('training', 3, (([0], [1]),))
    """
    if cv is None or (isinstance(cv, str) and cv == "training"):
        return cv
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise InputError("cv", cv, "a number of folds, at least 2")
        return int(cv)
    if isinstance(cv, (str, bytes)):
        raise InputError("cv", repr(cv), _EXPECTED)
    if callable(getattr(cv, "split", None)):
        return cv
    if isinstance(cv, Iterable) and not isinstance(cv, dict):
        return tuple(cv)
    raise InputTypeError("cv", repr(cv), _EXPECTED)


_SERIES: Final = frozenset(("HiddenMarkov", "MarkovChain", "MixingSeries", "MovingWindow"))
"""Classes by name: each guard asks, and loads none of their modules for that."""


def is_series(dependence: DependenceModel) -> bool:
    """Whether a dependence model orders the holdout's records along a line, such as time.

    The training part is then taken for a stretch of the same line: models of earlier records are tested on later ones,
    as on the holdout. If it is none, folds fit fewer records than they could. A training value may be any number, so
    answers only become a little wider.

    Examples
    --------
    >>> from graphs import Independent, MovingWindow
    >>> is_series(MovingWindow(100, 3)), is_series(Independent(100))
    (True, False)
    """
    kinds = [kind.__name__ for kind in type(dependence).__mro__ if kind.__module__.startswith("graphs.")]
    return not _SERIES.isdisjoint(kinds)


def _positions(pairs: Iterable[Any], n: int) -> Splits:
    """Check the positions from a splitter."""
    made = []
    for pair in pairs:
        try:
            fit, test = (np.asarray(side).astype(np.intp, casting="safe") for side in pair)
        except (TypeError, ValueError):
            raise InputError("cv", repr(pair), "pairs (fit, test) of positions among the training records") from None
        for side in (fit, test):
            if side.ndim != 1 or not side.size or side.min() < 0 or side.max() >= n:
                seen = "a fold without records, or with other positions"
                raise InputError("cv", seen, f"positions from 0 to {n - 1}, some to fit and some to test")
        if np.isin(test, fit).any():
            seen = "a fold that tests records which it fits"
            raise InputError("cv", seen, "folds that test other records than they fit", "Or pass cv='training'.")
        made.append((fit, test))
    if not made:
        raise InputError("cv", "no folds", _EXPECTED)
    return tuple(made)


_LOG: Final = logging.getLogger(__name__)

_MOST_KEPT: Final = 1 << 26
"""Bytes of predictions that are cached, 64 MiB."""

_INSTEAD: Final = (
    "Pass train_values=, its cross-validated score or a value for each training record; or cv='training' for its score "
    "on the records that it was fitted to."
)


@dataclass(frozen=True, eq=False)
class Trained:
    """Training values with their origin.

    ``values`` has one for each training record or each in ``tested`` (in rising order, with repetitions), or their
    mean, or a statistic. ``splits`` has the folds if it was cross-validated; ``given`` is whether a caller gave the
    values.
    """

    values: Any
    tested: NDArray[np.intp] | None = None
    splits: Splits | None = None
    given: bool = False


class Predictions:
    """Cache of out-of-fold predictions, for further metrics and comparisons of the same estimator.

    Its keys are digests of the estimator's class and parameters and of the folds.

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
        """Return cached predictions, or ``None``."""
        with self._lock:
            return None if key is None else self._kept.get(key)

    def keep(self, key: str | None, found: OutOfFold) -> None:
        """Cache predictions, and drop the oldest if they are too many."""
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
    *,
    applied: bool = False,
) -> Trained:
    """Return a fitted estimator's values on the training or development part, or the given ones.

    Without ``folds`` (a development part) and with ``cv="training"`` the estimator is scored as it is. ``applied`` is
    whether it was just applied to training records without a failure.

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
            raise InputError("cv", repr(cv), "None beside train_values=")
        if isinstance(given, Trained):
            return given
        check_booster(estimator, classes=classifies(metric))
        if applied:
            check_classes(estimator, train[1])
        elif not getattr(estimator, "only_holdout", False):
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
    """Return the `cv` that scores models on the open part without fits."""
    return None if folds is None else "training"


def _check_nothing(how: object) -> None:
    """Refuse folds beside a development part."""
    if how is not None:
        advice = "The scores on the development part replace cross-validation."
        raise InputError("cv", repr(how), "None beside a development part", advice)


def fixed(cv: object, train: Part, folds: TrainingFolds | None) -> object:
    """Return the cross-validation of several estimators by the same folds, also from a random splitter."""
    how = checked_cv(cv)
    if folds is None:
        _check_nothing(how)
        return None
    if how is None or isinstance(how, (int, str)):
        return how
    return folds.splits(how, *train, classifier=False)


def check_refit(estimator: Any, argument: str = "estimator", instead: str = _INSTEAD) -> None:
    """Refuse an estimator that cannot be fitted again for every fold, or whose fits would ask a guard."""
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
                seen = "a frozen model, which is the same in every fold"
            elif hasattr(type(part), SHARED) or hasattr(type(getattr(part, "guard", None)), SHARED):
                seen = f"a {type(estimator).__name__} that asks a guard itself, and would do so in every fold"
    if seen is not None:
        raise InputError(argument, seen, "an estimator that every fold can fit", instead)


def parts_of(thing: Any) -> Iterator[Any]:
    """Yield an estimator and everything in its parameters, also in lists."""
    if isinstance(thing, Mapping):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        for part in thing:
            yield from parts_of(part)
        return
    yield thing
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        yield from parts_of(thing.get_params(deep=False))
