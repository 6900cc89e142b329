"""How the training part is cut for cross-validation, by what is declared about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["FOLDS", "Splits", "TrainingFolds", "checked_cv", "is_series"]

FOLDS: Final = 5
"""How many folds there are by default."""

Splits: TypeAlias = "tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]"
"""Positions of the records that a fold fits, and of those that it tests."""

_EXPECTED: Final = (
    "None (5 folds), 'training', a number of folds, a splitter of scikit-learn, or pairs (fit, test) of positions"
)
_INSTEAD: Final = "cv='training', or train_values="


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
            raise InputError("cv", f"{many} folds of {pieces} {what}", f"from 2 folds to as many; or {_INSTEAD}")
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
            raise InputError("cv", seen, f"folds that suit these {len(y)} records, {_INSTEAD}") from None
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
