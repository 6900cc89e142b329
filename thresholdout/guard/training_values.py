"""The training value of a model: how the training part is cut, and the cross-validated predictions on it."""

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
from thresholdout.scoring.statistics import Statistic
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.data.identity import Part
    from thresholdout.scoring.metrics import Metric

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
"""How many folds there are by default."""

Splits: TypeAlias = "tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]"
"""Positions of the records that a fold fits, and of those that it tests."""

_EXPECTED: Final = (
    "None (5 folds), 'training', a number of folds, a splitter of scikit-learn, or pairs (fit, test) of positions"
)
_OTHER_FOLDS: Final = "cv='training', or train_values="


@dataclass(frozen=True, eq=False)
class TrainingFolds:
    """What is declared about the training part, and the folds that follow from it.

    Parameters
    ----------
    groups : array-like of shape (n,), optional
        Group of each training record. Whole groups are in one fold.
    ordered : bool, default=False
        Whether the records are in the order in which they arise, so that only later ones test what was fitted to
        earlier ones. Where there are groups, these decide: each has an order of its own, and is in one fold.

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
        """Return the splitter of scikit-learn that suits what is declared.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels of the training part.
        classifier : bool
            Whether a classifier is fitted: its folds are stratified, where they are not in an order.
        folds : int, optional
            How many. By default 5, or as many as there are records or groups, if there are fewer.

        Raises
        ------
        InputError
            When there are too few records or groups.
        """
        from sklearn import model_selection as splitters
        from sklearn.utils.multiclass import type_of_target

        pieces, what = len(y), "training records"
        if self.groups is not None:
            pieces, what = len(np.unique(self.groups)), "groups of training records"
        elif self.ordered:
            pieces, what = pieces - 1, "training records after the first"
        many = min(FOLDS, pieces) if folds is None else folds
        if pieces < 2 or not 2 <= many <= pieces:
            raise InputError("cv", f"{many} folds of {pieces} {what}", f"from 2 folds to as many; or {_OTHER_FOLDS}")
        if self.ordered and self.groups is None:
            return splitters.TimeSeriesSplit(many)
        labels = np.asarray(y)
        stratified = classifier and type_of_target(labels) in ("binary", "multiclass")
        if stratified and folds is None:  # scikit-learn wants a class that is in every fold
            largest = int(np.unique(labels, return_counts=True)[1].max())
            many, stratified = (min(many, largest), True) if largest > 1 else (many, False)
        if self.groups is None:
            return (splitters.StratifiedKFold if stratified else splitters.KFold)(many)
        return (splitters.StratifiedGroupKFold if stratified else splitters.GroupKFold)(many)

    def splits(self, cv: object, X: Any, y: Any, *, classifier: bool) -> Splits:
        """Return the positions of each fold: the records that it fits, and those that it tests.

        Parameters
        ----------
        cv : None, int, splitter, or pairs of positions
            As `checked_cv` returns it. A number is that of folds of the kind that is declared; another splitter gets
            the declared groups.
        X, y : array-like
            The training part.
        classifier : bool
            As in `splitter`.

        Raises
        ------
        InputError
            When the folds are empty, out of range, or test a record that they fit.

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
            with suppress_warnings(UserWarning):  # of small classes, and of groups that a splitter has no use for
                pairs = list(chosen.split(X, y, self.groups))
        except (TypeError, ValueError) as error:
            seen = f"{chosen!r}, which says: {error}"
            raise InputError("cv", seen, f"folds that suit these {len(y)} records, {_OTHER_FOLDS}") from None
        return _positions(pairs, len(y))


def checked_cv(cv: object) -> Any:
    """Return how to cross-validate, such that it can be used more than once.

    Parameters
    ----------
    cv : None, "training", int, splitter, or iterable of pairs
        As a user gives it.

    Raises
    ------
    InputError, InputTypeError
        When it is none of these.

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


def is_series(dependence: DependenceModel) -> bool:
    """Whether a model of the holdout's records counts them along a line, as time does.

    The training part is then taken for a stretch of the same line, in its order: later records are tested by models of
    earlier ones, as the holdout will be. If it is not, folds fit fewer records than they might; a training value
    may be any number, so that answers only become a little wider.

    Examples
    --------
    >>> from graphs import Independent, MovingWindow
    >>> is_series(MovingWindow(100, 3)), is_series(Independent(100))
    (True, False)
    """
    from graphs import HiddenMarkov, MarkovChain, MixingSeries, MovingWindow

    return isinstance(dependence, HiddenMarkov | MarkovChain | MixingSeries | MovingWindow)


def _positions(pairs: Iterable[Any], n: int) -> Splits:
    """Check what a splitter says."""
    made = []
    for pair in pairs:
        try:
            fit, test = (np.asarray(side).astype(np.intp, casting="safe") for side in pair)
        except (TypeError, ValueError):
            raise InputError("cv", repr(pair), "pairs (fit, test) of positions among the training records") from None
        for side in (fit, test):
            if side.ndim != 1 or not side.size or side.min() < 0 or side.max() >= n:
                seen = "a fold without records, or with positions that there are not"
                raise InputError("cv", seen, f"positions from 0 to {n - 1}, some to fit and some to test")
        if np.isin(test, fit).any():
            seen = "a fold that tests records which it fits"
            raise InputError("cv", seen, "other records to test; or cv='training', if that is what is meant")
        made.append((fit, test))
    if not made:
        raise InputError("cv", "no folds", _EXPECTED)
    return tuple(made)


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
    *,
    applied: bool = False,
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
    applied : bool, default=False
        Whether the estimator was applied to training records just now, and did not fail.

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
            elif hasattr(type(part), SHARED) or hasattr(type(getattr(part, "guard", None)), SHARED):
                seen = f"a {type(estimator).__name__} that asks a guard itself, and would do so in every fold"
    if seen is not None:
        raise InputError(argument, seen, instead)


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
