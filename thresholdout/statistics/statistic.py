"""What a statistic is, and how far its value can be from the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["Statistic"]

_ENLARGED = 1.0 + 2.0**-30  # covers the rounding errors of a statistic's value and of its spread


@dataclass(frozen=True)
class Statistic:
    """A statistic of labels and predictions, with a proved bound on how far it is from what is expected of it.

    Attributes
    ----------
    name : str
        What it is called.
    responses : tuple of str
        Methods of an estimator whose output it takes; the first that there is.
    unit_value : callable
        ``unit_value(y, output, classes)``: its value mapped to [0, 1], from the true labels, the estimator's output
        and its ``classes_`` (``None`` where there are none).
    bounds : tuple of float
        Its range: the value is ``lower + (upper - lower) * unit_value``.
    greater_is_better : bool
        Whether a search should maximise it.
    target : str
        The truth that a certificate is about, in words.
    counts : callable
        ``counts(y)``: what its half-widths may show of the labels, the number of records of each class, shape (C,);
        all n in one class where classes do not matter.
    differences : callable
        ``differences(counts)``: by how much one record of each class can move the unit value, shape (C,).
    proxy : callable
        ``proxy(counts, sizes)``: V with ``P(|f - target| >= t) <= 2 exp(-2 t^2 / V)`` in units of the range, for
        independent groups of these sizes, however the labels are distributed among them.
    for_means : bool
        Whether a variance inflation that holds for means only serves.
    needs_labels : bool
        Whether the truth is conditional on the labels.
    """

    routes: ClassVar[tuple[str, ...]] = ("transcript",)
    """Certificates that say something about such statistics."""

    name: str
    responses: tuple[str, ...]
    unit_value: Callable[[NDArray[Any], NDArray[Any], NDArray[Any] | None], float]
    bounds: tuple[float, float]
    greater_is_better: bool
    target: str
    counts: Callable[[NDArray[Any]], NDArray[np.int64]]
    differences: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    proxy: Callable[[NDArray[np.int64], NDArray[np.int64]], float]
    for_means: bool = True
    needs_labels: bool = True

    def value(self, y: Any, output: Any, classes: Any | None = None) -> float:
        """Return the statistic, in its range.

        Parameters
        ----------
        y : array-like of shape (n,)
            True labels.
        output : array-like of shape (n,) or (n, number of classes)
            What the estimator says about the records.
        classes : array-like, optional
            The estimator's ``classes_``.

        Raises
        ------
        InputError
            When the statistic does not exist for these labels, or the output does not fit.

        Examples
        --------
        >>> from thresholdout.statistics import roc_auc
        >>> roc_auc().value([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
        0.875
        """
        lower, upper = self.bounds
        known = None if classes is None else np.asarray(classes)
        return lower + (upper - lower) * self.unit_value(np.asarray(y), np.asarray(output), known)

    def of(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the statistic of a fitted estimator on records ``X`` with labels ``y``.

        Raises
        ------
        InputTypeError
            When the estimator has none of the methods that the statistic can use.
        """
        return self.value(y, getattr(estimator, self._response(estimator))(X), getattr(estimator, "classes_", None))

    def cross_validated(self, estimator: Any, X: Any, y: Any, cv: object) -> float:
        """Return the statistic of predictions by an estimator's clones, each for the records it was not fitted to.

        Parameters
        ----------
        estimator : estimator
            It is cloned.
        X, y : array-like
            Records and labels.
        cv : int or splitter
            As in scikit-learn; the test sides must partition the records.

        Notes
        -----
        One value from all records together, not the mean over the folds.
        """
        from sklearn.base import clone, is_classifier
        from sklearn.model_selection import cross_val_predict

        output = cross_val_predict(clone(estimator), X, y, cv=cv, method=self._response(estimator))
        return self.value(y, output, np.unique(np.asarray(y)) if is_classifier(estimator) else None)

    def spread(self, y: Any, model: DependenceModel, *, given_labels: bool = False) -> float:
        """Return by how much the radius of a mean is to be multiplied for this statistic.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels of the holdout.
        model : graphs.DependenceModel
            How its records depend on each other.
        given_labels : bool, default=False
            Say that the model describes the records given their labels. Independent records and groups stay
            independent given the labels, so it makes no difference to them; a chain or a field need not stay what it
            is.

        Returns
        -------
        float
            kappa with ``P(|f - target| >= t) <= 2 exp(-2 n (t/kappa)^2 / Lambda)`` in units of the range, Lambda the
            ``variance_inflation()`` of the model, rounded up; ``inf`` where nothing is known. The right argument of
            ``Certificate.half_width(..., spread=...)``. It is a function of the model and of the numbers of records of
            each class, the same for every labelling with these numbers: half-widths are public.

        Raises
        ------
        InputError
            When there are not as many labels as records, or the statistic does not exist for these labels.

        Examples
        --------
        >>> from graphs import Groups, Independent
        >>> from thresholdout.statistics import balanced_accuracy, roc_auc
        >>> labels = [0, 0, 1, 1]
        >>> round(balanced_accuracy().spread(labels, Independent(4)), 6)
        1.0
        >>> round(roc_auc().spread(labels, Independent(4)), 6)
        1.414214
        >>> model = Groups([1, 1, 2, 2])
        >>> roc_auc().spread(labels, model) == roc_auc().spread([0, 1, 0, 1], model)
        True
        """
        labels = np.asarray(y)
        n = model.n
        if labels.shape != (n,):
            raise InputError("y", f"labels of shape {labels.shape}", f"shape ({n},), one label for each record")
        counts, sizes = self.counts(labels), model.independent_groups()
        if int(counts.sum()) != n:
            raise InputError("counts", f"numbers with the sum {int(counts.sum())}", f"{n}, the number of all records")
        bounds = [math.inf]
        if sizes is not None:
            bounds.append(self.proxy(counts, sizes))
        if given_labels or not self.needs_labels:
            inflation = model.variance_inflation(bounded_differences=not self.for_means)
            if inflation < n or n == 1:
                bounds.append(n * float(self.differences(counts).max()) ** 2 * inflation)
        return math.sqrt(min(bounds) * n / model.variance_inflation()) * _ENLARGED

    def _response(self, estimator: Any) -> str:
        for response in self.responses:
            if hasattr(estimator, response):
                return response
        expected = " or ".join(self.responses)
        raise InputTypeError("estimator", f"{type(estimator).__name__} without {expected}", expected)
