"""Statistics: parts, and functions of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms.claims.evidence import Evidence
from thresholdout.mechanisms.claims.statistic_claims import Combination, Layout, Part
from thresholdout.scoring.fitted_models import check_booster
from thresholdout.scoring.metrics import made_again
from thresholdout.scoring.statistics.class_counts import ClassCounts, ClassMean, ClassRatio
from thresholdout.scoring.statistics.statistic_parts import GroupedPart, Judged, PartEstimate, StatisticPart

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.scoring.out_of_fold import OutOfFold

__all__ = ["Estimate", "Statistic"]

_STEP = 1e-6  # of central differences, for variances that place intervals and affect no guarantee


class Estimate(float):
    """Value of a statistic, a float, together with the estimates of its parts.

    Attributes
    ----------
    parts : tuple of PartEstimate
        One estimate for each part of the statistic, such as the precision of each class.

    Examples
    --------
    >>> from thresholdout.scoring.statistics import f1
    >>> found = f1().of_output([0, 0, 1, 1], [0, 1, 1, 1])
    >>> found, len(found.parts)
    (0.8, 1)
    """

    parts: tuple[PartEstimate, ...]

    def __new__(cls, value: float, parts: tuple[PartEstimate, ...] = ()) -> Estimate:
        """Return a float that carries its parts."""
        made = super().__new__(cls, value)
        made.parts = parts
        return made


@dataclass(frozen=True)
class Statistic:
    """Describe a score of labels and predictions that is not a mean over records, such as the F1 score.

    The functions of `thresholdout.scoring`, such as `f1`, return statistics, and `bounded_difference` defines one of
    your own. A guard of claims, the default mechanism, answers them. A statistic consists of parts, such as ratios of
    sums over records, whose limits are tested one by one.

    Attributes
    ----------
    name : str
        Name of the statistic, which the guard's history shows.
    responses : tuple of str
        Methods of an estimator whose output is evaluated. The first one that the estimator has is used.
    parts : callable
        Function from the classes of the training part and of the estimator (``None`` for numbers) to the parts.
    bounds : tuple of float
        Smallest and largest possible value.
    greater_is_better : bool
        Whether a search should maximize the statistic.
    target : str
        The estimand of an interval, in words.
    combine : callable or None
        Function from the parts' values, in [0, 1], to the position of the statistic in its range. It rises with each of
        them. ``None`` if there is one part, whose value is the position.
    classifies : bool, default True
        Whether the statistic needs classes or their probabilities.
    """

    name: str
    responses: tuple[str, ...]
    parts: Callable[[NDArray[Any] | None], tuple[StatisticPart, ...]]
    bounds: tuple[float, float]
    greater_is_better: bool
    target: str
    combine: Combination | None = None
    classifies: bool = True

    def __repr__(self) -> str:
        return f"<Statistic {self.name}>"

    def __reduce__(self) -> Any:
        return made_again(self) or super().__reduce__()

    def value(self, y: Any, output: Any, classes: Any | None = None) -> float:
        """Compute the statistic of labels and predictions.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import roc_auc
        >>> roc_auc().value([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
        0.875
        """
        return float(self.of_output(y, output, classes))

    def of_output(self, y: Any, output: Any, classes: Any | None = None, X: Any = None) -> Estimate:
        """Compute the statistic and the estimates of its parts; arguments as in `value`, and the features X."""
        return self._estimate(self._judged(y, output, classes, X))

    def of(self, estimator: Any, X: Any, y: Any) -> Estimate:
        """Compute the statistic of a fitted estimator on records ``X`` with labels ``y``."""
        output = getattr(estimator, self.response_of(estimator))(X)
        return self._estimate(self._judged(y, output, getattr(estimator, "classes_", None), X))

    def of_predictions(self, found: OutOfFold, X: Any, y: Any) -> Estimate:
        """Compute the statistic of all out-of-fold predictions together, which is not a mean over folds."""
        from sklearn.utils import _safe_indexing

        labels = np.asarray(y)[found.tested]
        return self._estimate(self._judged(labels, found.output, found.classes, _safe_indexing(X, found.tested)))

    def estimate_at(self, value: float, estimator: Any, X: Any, y: Any) -> Estimate:
        """Return a known training value, with the parts of a fitted estimator on its training records."""
        known = _labels(np.asarray(y), getattr(estimator, "classes_", None)) if self._labelled() else None
        return self.moved(self.of(estimator, X, y), value, known)

    def moved(self, estimate: Estimate, value: float, known: NDArray[Any] | None) -> Estimate:
        """Return an estimate with another value, whose parts vary at least as usual there."""
        found = estimate.parts
        pairs = zip(self.parts(known), found, strict=True)
        if self.combine is None:
            return Estimate(value, tuple(part.moved(one, self.unit(value)) for part, one in pairs))
        drop = self.unit(value) - min(1.0, max(0.0, self.combine([one.value for one in found])))
        parts = (part.moved(one, min(1.0, max(0.0, one.value + drop))) for part, one in pairs)
        return Estimate(value, tuple(parts))

    def of_counts(self, counts: Mapping[Any, ClassCounts], known: NDArray[Any]) -> Estimate:
        """Return the statistic from counts of its classes, with the estimates of its parts; see `counted_parts`.

        Examples
        --------
        >>> from thresholdout.scoring.statistics import f1
        >>> f1(positive="spam").of_counts({"spam": ClassCounts(10, 4, 5, 3)}, np.array(["ham", "spam"])) == 6 / 9
        True
        """
        return self.combined(tuple(part.estimate_of_counts(counts) for part in self.counted_parts(known)))

    def evidence_of_counts(
        self, counts: Mapping[Any, ClassCounts], known: NDArray[Any], model: DependenceModel, one_law: bool
    ) -> tuple[Evidence, ...]:
        """Return each part's evidence from the holdout's counts; the rest as in `evidence`. Secret."""
        return tuple(part.evidence_of_counts(counts, model, one_law) for part in self.counted_parts(known))

    def counted_parts(self, known: NDArray[Any]) -> tuple[ClassRatio | ClassMean, ...]:
        """Return the parts of a statistic that depends on counts of classes only, and refuse any other statistic."""
        parts = self.parts(known) if self.classifies else ()
        found = tuple(part for part in parts if isinstance(part, (ClassRatio, ClassMean)))
        if not found or len(found) < len(parts):
            expected = (
                "'precision', 'recall', 'f1', 'jaccard' (of a class, or macro), fbeta(...), 'matthews_corrcoef', "
                "'balanced_accuracy', 'cohen_kappa', 'roc_auc', 'roc_auc_ovr', 'roc_auc_ovo', r2(clip=...), "
                "root_mean_squared_error(clip=...), median_absolute_error(clip=...), sliced(...), or a mean over "
                "records"
            )
            raise InputError(
                "metric",
                f"{self.name!r} of columns that are not in memory",
                expected,
                "Others need single values: load the frames by collect().",
            )
        return found

    @property
    def first_part(self) -> StatisticPart:
        """The first part; of a statistic that knows classes, that for the classes 0 and 1."""
        return self.parts(np.arange(2) if self._labelled() else None)[0]

    def evidence(
        self, estimator: Any, X: Any, y: Any, train_y: Any, model: DependenceModel, one_law: bool
    ) -> tuple[Evidence, ...]:
        """Return each part's evidence from the holdout. Secret."""
        classes = getattr(estimator, "classes_", None)
        output = getattr(estimator, self.response_of(estimator))(X)
        known = _labels(np.asarray(train_y), classes) if self._labelled() else None
        judged = Judged(_column(y), np.asarray(output), known, None if classes is None else np.asarray(classes), X)
        return tuple(part.evidence(judged, model, one_law) for part in self.parts(known))

    def layout(
        self,
        found: Estimate,
        train_y: Any,
        classes: Any,
        model: DependenceModel,
        one_law: bool,
        sizes: NDArray[np.int64] | None = None,
    ) -> Layout:
        """Return the public layout: the parts on the training part, and the expected evidence."""
        known = _labels(np.asarray(train_y), classes) if self._labelled() else None
        parts = self.parts(known)
        for part in parts:
            needed = part.refusal(model)
            if needed is not None and sizes is None:
                seen = f"{self.name!r}, whose estimand is given the labels, of {model.describe()}"
                raise InputError("metric", seen, "a mean over records for this dependence", f"It needs {needed}.")
        made = []
        for part, estimate in zip(parts, found.parts, strict=True):
            if sizes is None:
                expected = part.expected(estimate, model, one_law)
            else:
                assert isinstance(part, GroupedPart)  # of others an engine adds up nothing by group
                expected = part.expected_of_groups(estimate, sizes)
            deviation = math.sqrt(max(estimate.variance, 1e-12) / model.n)
            made.append(Part(estimate.value, deviation, expected, expected.mirrored()))
        same = one_law and _independent(model)  # in a group, labels depend on other records
        given = any(part.given or (part.one_law and not same) for part in parts)
        return Layout(tuple(made), self.combine, self._variance(found.parts), given)

    def unit(self, value: float) -> float:
        """Return the position of a value in the statistic's range, in [0, 1]."""
        lower, upper = self.bounds
        return min(1.0, max(0.0, (value - lower) / (upper - lower)))

    def _variance(self, found: tuple[PartEstimate, ...]) -> float:
        """Return the variance of the statistic if the deviations of all parts have one direction."""
        if self.combine is None:
            return max(found[0].variance, 1e-12)
        values = [min(1.0 - _STEP, max(_STEP, part.value)) for part in found]
        total = 0.0
        for k, part in enumerate(found):
            up, down = list(values), list(values)
            up[k], down[k] = values[k] + _STEP, values[k] - _STEP
            total += (self.combine(up) - self.combine(down)) / (2.0 * _STEP) * math.sqrt(part.variance)
        return max(total * total, 1e-12)

    def _labelled(self) -> bool:
        return self.classifies or "decision_function" in self.responses  # an area, of two classes

    def _judged(self, y: Any, output: Any, classes: Any | None, X: Any) -> Judged:
        labels = _column(y)
        known = None if classes is None else np.asarray(classes)
        return Judged(labels, np.asarray(output), _labels(labels, known) if self._labelled() else None, known, X)

    def _estimate(self, judged: Judged) -> Estimate:
        return self.combined(tuple(part.estimate(judged) for part in self.parts(judged.labels)))

    def combined(self, found: tuple[PartEstimate, ...]) -> Estimate:
        """Return the statistic from the estimates of its parts."""
        lower, upper = self.bounds
        values = [part.value for part in found]
        unit = values[0] if self.combine is None else min(1.0, max(0.0, self.combine(values)))
        return Estimate(lower + (upper - lower) * unit, found)

    def response_of(self, estimator: Any) -> str:
        """Return the name of the estimator's method whose output is evaluated."""
        for response in self.responses:
            if hasattr(estimator, response):
                return response
        methods = " or ".join(self.responses)
        expected = f"a fitted model with {methods}"
        advice = "A list of models is for score_all, values of records for ask."
        check_booster(estimator, classes=True)
        raise InputTypeError("estimator", f"a {type(estimator).__name__} without {methods}", expected, advice)


def _independent(model: DependenceModel) -> bool:
    from graphs import Independent

    if isinstance(model, Independent):
        return True  # avoids an array with a number for each record
    sizes = model.independent_groups()
    return sizes is not None and int(sizes.max()) == 1


def _column(y: Any) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1 or not labels.size:
        raise InputError("y", f"labels of shape {labels.shape}", "labels with one class or number for each record")
    return labels


def _labels(y: NDArray[Any], classes: Any | None) -> NDArray[Any]:
    """Return the classes of labels, with those of an estimator."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("y", "labels that are missing or infinite", "labels with a class for each record")
    return np.unique(y) if classes is None else np.union1d(y, np.asarray(classes))
