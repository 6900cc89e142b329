"""Statistics of classifiers: shares of the counted records, and functions of several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from thresholdout.data.arguments import positive_number
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.class_counts import ClassMean, ClassRatio
from thresholdout.scoring.statistics.label_checks import binary_labels, predictions, shown
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import Judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["balanced_accuracy", "f1", "fbeta", "jaccard", "matthews_corrcoef", "precision", "recall"]

Average = Literal["binary", "macro"]
_Terms = Callable[[Any, Any], "tuple[NDArray[Any], NDArray[Any]]"]
"""Maps whether records are of a class, and whether that is predicted, to numerators and denominators."""

_SAID: Final = ("predict",)
_AN_EXAMPLE: Final = "thresholdout.scoring.statistics.f1(positive=...)"


@remembered
def precision(positive: Any | None = None, *, average: Average = "binary") -> Statistic:
    """Return the precision: the share of the positive predictions that are correct.

    The result is a `Statistic` for ``guard.score(model, precision())``. Greater is better.

    Parameters
    ----------
    positive : label, optional
        The positive class. If None, it is 1 for labels 0 and 1 or -1 and 1, and True for booleans. Other labels need a
        named class, as in scikit-learn.
    average : {"binary", "macro"}, default "binary"
        "binary" for the precision of the positive class, "macro" for the unweighted mean over all classes.

    Returns
    -------
    Statistic
        The precision; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    If records are declared independent and identically distributed (``sampling="iid"``), intervals come from exact
    binomial limits. Otherwise they come from bets, and are wider: by 21 to 36 % for a single interval, 12 to 20 % in a
    list of 20, 9 to 16 % in a list of 100, and 6 to 11 % for an answer of a search of 100 queries (``python -m
    benchmarks.statistics_price``).

    Examples
    --------
    >>> precision().value([0, 0, 1, 1], [0, 1, 1, 1]) == 2 / 3
    True
    >>> precision(average="macro").value([0, 1, 2, 2], [0, 1, 1, 2])
    0.8333333333333334
    """
    return _averaged("precision", _precision, "predicted {label}", positive, average)


@remembered
def recall(positive: Any | None = None, *, average: Average = "binary") -> Statistic:
    """Return the recall: the share of the records of the positive class that are predicted as positive.

    The result is a `Statistic` for ``guard.score(model, recall())``. Greater is better. The recall of a class is the
    accuracy on its records.

    Parameters
    ----------
    positive : label, optional
        The positive class. If None, it is 1 for labels 0 and 1 or -1 and 1, and True for booleans. Other labels need a
        named class, as in scikit-learn.
    average : {"binary", "macro"}, default "binary"
        "binary" for the recall of the positive class, "macro" for the unweighted mean over all classes.

    Returns
    -------
    Statistic
        The recall; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    Without ``sampling="iid"`` intervals are wider by as much as those of `precision`.

    Examples
    --------
    >>> recall(positive=0).value([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    return _averaged("recall", _recall, "of the class {label}", positive, average)


@remembered
def f1(positive: Any | None = None, *, average: Average = "binary") -> Statistic:
    """Return the F1 score, the harmonic mean of precision and recall.

    It is ``2 TP / (positive records + positive predictions)``, with the number TP of true positives. The result is a
    `Statistic` for ``guard.score(model, f1())``. Greater is better.

    Parameters
    ----------
    positive : label, optional
        The positive class. If None, it is 1 for labels 0 and 1 or -1 and 1, and True for booleans. Other labels need a
        named class, as in scikit-learn.
    average : {"binary", "macro"}, default "binary"
        "binary" for the score of the positive class, "macro" for the unweighted mean over all classes.

    Returns
    -------
    Statistic
        The F1 score; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    The estimand is the quotient of the expected counts, not the expectation of the quotient. Without ``sampling="iid"``
    intervals are wider by as much as those of `precision`.

    Examples
    --------
    >>> f1().value([0, 0, 1, 1], [0, 1, 1, 1])
    0.8
    >>> f1(positive=0).value([0, 0, 1, 1], [0, 1, 1, 1]) == 2 / 3
    True
    """
    return _averaged("f1", _f1, "of the class {label}, or predicted so", positive, average, weight=2.0)


@remembered
def jaccard(positive: Any | None = None, *, average: Average = "binary") -> Statistic:
    """Return the Jaccard score: the share of true positives among the records that are positive or predicted so.

    The result is a `Statistic` for ``guard.score(model, jaccard())``. Greater is better.

    Parameters
    ----------
    positive : label, optional
        The positive class. If None, it is 1 for labels 0 and 1 or -1 and 1, and True for booleans. Other labels need a
        named class, as in scikit-learn.
    average : {"binary", "macro"}, default "binary"
        "binary" for the score of the positive class, "macro" for the unweighted mean over all classes.

    Returns
    -------
    Statistic
        The Jaccard score; `Statistic.value` computes it from labels and predictions.

    Examples
    --------
    >>> jaccard().value([0, 0, 1, 1], [0, 1, 1, 1]) == 2 / 3
    True
    """
    return _averaged("jaccard", _jaccard, "of the class {label}, or predicted so", positive, average)


@remembered
def fbeta(beta: float, positive: Any | None = None) -> Statistic:
    """Return the F-beta score, a mean of precision P and recall R: ``(1 + beta^2) P R / (beta^2 P + R)``.

    The result is a `Statistic` for ``guard.score(model, fbeta(2.0))``. Greater is better.

    Parameters
    ----------
    beta : float
        Weight of recall. More than 1 gives recall more weight than precision. For 1, `f1` has narrower intervals.
    positive : label, optional
        The positive class. If None, it is 1 for labels 0 and 1 or -1 and 1, and True for booleans. Other labels need a
        named class, as in scikit-learn.

    Returns
    -------
    Statistic
        The F-beta score; `Statistic.value` computes it from labels and predictions.

    Examples
    --------
    >>> round(fbeta(2.0).value([0, 0, 1, 1], [0, 1, 1, 1]), 6)
    0.909091
    """
    square = positive_number(beta, "beta") ** 2

    def combine(values: Sequence[float]) -> float:
        p, r = values
        return (1.0 + square) * p * r / (square * p + r) if p > 0.0 and r > 0.0 else 0.0

    def parts(labels: NDArray[Any] | None) -> tuple[ClassRatio, ...]:
        label = _positive(labels, positive)
        return _ratio(_precision, label, "predicted {label}"), _ratio(_recall, label, "of the class {label}")

    own = "" if positive is None else f", positive={shown(positive)}"
    return Statistic(
        name=f"fbeta(beta={float(beta)!r}{own})",
        responses=_SAID,
        parts=parts,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target=f"the F score of {_named(positive)}, of the expected numbers of true and false positives and negatives",
        combine=combine,
    )


@remembered
def matthews_corrcoef() -> Statistic:
    """Return the Matthews correlation coefficient of labels and predictions, for two classes.

    The result is a `Statistic` for ``guard.score(model, matthews_corrcoef())``. Greater is better.

    Notes
    -----
    With precision P and recall R of the positive class, p and r of the other one, it is ``sqrt(P R p r) - sqrt((1-P)
    (1-R) (1-p) (1-r))``. It rises with each of them, and the guard tests limits of all four together.

    Examples
    --------
    >>> round(matthews_corrcoef().value([0, 0, 1, 1], [0, 1, 1, 1]), 6)
    0.57735
    """

    def combine(values: Sequence[float]) -> float:
        away = math.prod(1.0 - value for value in values)
        return 0.5 * (1.0 + math.sqrt(math.prod(values)) - math.sqrt(away))

    def parts(labels: NDArray[Any] | None) -> tuple[ClassRatio, ...]:
        return tuple(
            _ratio(terms, label, missing)
            for label in binary_labels(labels)
            for terms, missing in ((_precision, "predicted {label}"), (_recall, "of the class {label}"))
        )

    return Statistic(
        name="matthews_corrcoef",
        responses=_SAID,
        parts=parts,
        bounds=(-1.0, 1.0),
        greater_is_better=True,
        target="Matthews' correlation of the expected numbers of true and false positives and negatives",
        combine=combine,
    )


@remembered
def balanced_accuracy() -> Statistic:
    """Return the balanced accuracy: the mean over the classes of the accuracy on the records of each class.

    The result is a `Statistic` for ``guard.score(model, balanced_accuracy())``. Greater is better.

    Notes
    -----
    Given the labels it is a weighted mean: records of class c have the weight 1/(C n_c), with C classes and n_c records
    of class c. The classes are those of the training part and the estimator.

    Examples
    --------
    >>> balanced_accuracy().value([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """

    def terms(judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        labels = _several(judged.labels)
        weights = np.zeros(judged.y.size)
        for label in labels:
            of_class = judged.y == label
            count = int(np.count_nonzero(of_class))
            if not count:
                raise InputError("y", f"no records of the class {shown(label)}", "labels of all classes")
            weights[of_class] = judged.y.size / (count * labels.size)
        return weights * (predictions(judged.output, judged.y) == judged.y), weights

    return Statistic(
        name="balanced_accuracy",
        responses=_SAID,
        parts=lambda labels: (ClassMean(terms, "records", one_law=True, labels=tuple(_several(labels))),),
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the mean over the classes of the probability that a record of the class is predicted rightly; "
        "unless records are independent with one law, that of the holdout's records, given their labels",
    )


def _averaged(
    name: str,
    terms: _Terms,
    missing: str,
    positive: Any | None,
    average: Average,
    weight: float = 1.0,
) -> Statistic:
    if average not in ("binary", "macro"):
        micro = "" if name == "jaccard" else "; 'micro' is the metric 'accuracy' for single labels"
        raise InputError("average", repr(average), f"'binary' or 'macro'{micro}")
    if average == "macro":
        if positive is not None:
            raise InputError("positive", shown(positive), "None beside average='macro'")

        def parts(labels: NDArray[Any] | None) -> tuple[ClassRatio, ...]:
            return tuple(_ratio(terms, label, missing, weight) for label in _several(labels))

        return Statistic(
            name=f"{name}_macro",
            responses=_SAID,
            parts=parts,
            bounds=(0.0, 1.0),
            greater_is_better=True,
            target=f"the mean over the classes of the {name} of the expected counts",
            combine=lambda values: math.fsum(values) / len(values),
        )

    def part(labels: NDArray[Any] | None) -> tuple[ClassRatio, ...]:
        return (_ratio(terms, _positive(labels, positive), missing, weight),)

    return Statistic(
        name=name if positive is None else f"{name}(positive={shown(positive)})",
        responses=_SAID,
        parts=part,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target=f"the {name} of {_named(positive)}, of the expected counts: expected wins over the expected number of "
        "records that count",
    )


def _ratio(terms: _Terms, label: Any, missing: str, weight: float = 1.0) -> ClassRatio:
    what = missing.format(label=shown(label))

    def of(judged: Judged) -> tuple[NDArray[Any], NDArray[Any]]:
        return terms(judged.y == label, predictions(judged.output, judged.y) == label)

    return ClassRatio(of, f"records {what}", weight, label=label, of_cells=terms)


def _positive(labels: NDArray[Any] | None, positive: Any | None) -> Any:
    if positive is not None:
        return positive
    other, label = binary_labels(labels)
    if isinstance(label, str) or isinstance(other, str) or label != 1 or other not in (0, -1):
        seen = f"labels {shown(other)} and {shown(label)}, of which none is said to be the positive class"
        advice = f"Pass positive={shown(label)} or positive={shown(other)}, as in {_AN_EXAMPLE}."
        raise InputError("y", seen, "labels with a positive class, such as 0 and 1", advice)
    return label


def _named(positive: Any | None) -> str:
    return "the class 1, or True" if positive is None else f"the class {shown(positive)}"


def _several(labels: NDArray[Any] | None) -> NDArray[Any]:
    if labels is None or labels.size < 2:
        raise InputError("y", "labels of one class", "labels of two classes")
    return labels


def _precision(truth: Any, said: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return truth & said, said


def _recall(truth: Any, said: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return truth & said, truth


def _jaccard(truth: Any, said: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return truth & said, truth | said


def _f1(truth: Any, said: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return 2.0 * (truth & said), truth.astype(np.float64) + said
