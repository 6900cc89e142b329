"""Statistics of classifiers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.statistics.checks import (
    declared_label,
    one_class,
    positive_label,
    predictions,
    scores,
    several_classes,
    shown,
    two_classes,
)
from thresholdout.statistics.labellings import largest_squares
from thresholdout.statistics.statistic import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["balanced_accuracy", "f1", "roc_auc"]


def roc_auc() -> Statistic:
    """Area under the receiver operating characteristic: how often a positive record scores above a negative one.

    Ties count half. The positive class is the larger label. Given the labels its expectation is the probability that a
    positive record scores above a negative one: unbiased.

    Notes
    -----
    With a positive and b negative records V = 1/min(a, b) for independent records [H63, section 5b]. For independent
    groups with a_g and b_g of them, let t be the largest ``a_g/a + b_g/b`` that the largest group can have: V is the
    smaller of ``t/(1 - t/2)`` and the largest sum of the ``(a_g/a + b_g/b)^2`` over all labellings.

    References
    ----------
    [H63] W. Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 58, 1963.

    Examples
    --------
    >>> roc_auc().value(["no", "no", "yes"], [0.3, 0.5, 0.5])
    0.75
    >>> roc_auc().value(["no", "no"], [0.3, 0.5])
    Traceback (most recent call last):
    thresholdout.errors.InputError: y: labels of one class, 'no'; expected: records of two classes
    """

    def unit_value(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> float:
        positive = y == positive_label(y, classes)
        of_records = scores(output, y)
        if positive.all() or not positive.any():
            raise one_class(y)
        negative = np.sort(of_records[~positive])
        ahead = of_records[positive]
        twice = int(negative.searchsorted(ahead, "left").sum()) + int(negative.searchsorted(ahead, "right").sum())
        return float(twice / (2 * ahead.size * negative.size))

    def counts(y: NDArray[Any]) -> NDArray[np.int64]:
        positive = int(np.count_nonzero(y == two_classes(y)[1]))
        return np.array([y.size - positive, positive])

    def proxy(counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
        few, many, group = int(counts.min()), int(counts.max()), int(sizes.max())
        if group == 1:
            return 1.0 / few
        largest = min(group, few) / few + max(group - few, 0) / many
        matchings = largest / (1.0 - largest / 2.0) if largest < 2.0 else math.inf
        return min(1.0, matchings, largest_squares(1.0 / counts, counts, sizes))

    return Statistic(
        name="roc_auc",
        responses=("decision_function", "predict_proba"),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the mean, over all pairs of a positive and a negative record of the holdout, of the probability that "
        "the positive one scores higher (ties half), given the labels; for records with one law the population's value",
        counts=counts,
        differences=lambda counts: 1.0 / counts,
        proxy=proxy,
        for_means=False,
    )


def balanced_accuracy() -> Statistic:
    """Mean over the classes of the share of their records that is predicted rightly.

    Given the labels its expectation is the mean over the classes of the probability to be right: unbiased.

    Notes
    -----
    A weighted mean: with C classes, records of class c have the weight 1/(C n_c), and V is the largest sum over
    independent groups of the squares of their weights, over all labellings: that in which the largest groups have the
    rarest classes.

    Examples
    --------
    >>> balanced_accuracy().value([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """

    def unit_value(y: NDArray[Any], output: NDArray[Any], _: NDArray[Any] | None) -> float:
        labels, index = several_classes(y)
        right = np.bincount(index, weights=predictions(output, y) == y)
        return math.fsum(right / np.bincount(index)) / labels.size

    def differences(counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return 1.0 / (counts * counts.size)

    return Statistic(
        name="balanced_accuracy",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the mean over the classes of the holdout of the probability that a record of the class is predicted "
        "rightly, given the labels; for records with one law the population's value",
        counts=lambda y: np.bincount(several_classes(y)[1]),
        differences=differences,
        proxy=lambda counts, sizes: largest_squares(differences(counts), counts, sizes),
    )


def f1(positive: Any | None = None) -> Statistic:
    """F1 score: ``2 TP / (positive records + positive predictions)``.

    Parameters
    ----------
    positive : label, optional
        The positive class; the larger label if left out.

    Notes
    -----
    What is certified is the same quotient of the expected counts, given the labels: not the expectation of the
    quotient, which nobody asks for. With a positive records among n, V = min(max(4 a, n)/a^2, 4.8/a) for independent
    records. For independent groups with a_g positive among s_g records it is the smaller of max(sum (2 a_g)^2, sum
    s_g^2)/a^2, the first sum that of the labelling in which the largest groups are positive, and 9.6 s/a, s the largest
    s_g; 4.8 s/a if there are positive records only.

    Examples
    --------
    >>> f1().value([0, 0, 1, 1], [0, 1, 1, 1])
    0.8
    >>> f1(positive=0).value([0, 0, 1, 1], [0, 1, 1, 1]) == 2 / 3
    True
    """

    def positives(y: NDArray[Any], classes: NDArray[Any] | None) -> tuple[NDArray[np.bool_], Any]:
        label = positive_label(y, classes) if positive is None else declared_label(positive, y, classes)
        chosen: NDArray[np.bool_] = y == label
        if not chosen.any():
            raise InputError("y", f"no records of the positive class {shown(label)}", "at least one")
        return chosen, label

    def unit_value(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> float:
        truth, label = positives(y, classes)
        said = predictions(output, y) == label
        return 2 * int(np.count_nonzero(truth & said)) / int(np.count_nonzero(truth) + np.count_nonzero(said))

    def counts(y: NDArray[Any]) -> NDArray[np.int64]:
        positive = int(np.count_nonzero(positives(y, None)[0]))
        return np.array([y.size - positive, positive])

    def proxy(counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
        others, total = map(int, counts)
        of_records = float(np.sum(np.square(sizes, dtype=np.float64)))
        squares = max(largest_squares(np.array([0.0, 2.0]), counts, sizes), of_records)
        largest = int(sizes.max())
        pure = largest == 1 or others == 0
        return min(squares / total**2, (4.8 if pure else 9.6) * largest / total)

    return Statistic(
        name="f1" if positive is None else f"f1(positive={shown(positive)})",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="2 E TP / (positive records + E positive predictions), the F1 score of the expected counts given the "
        "labels of the holdout",
        counts=counts,
        differences=lambda counts: np.array([1.0, 2.0]) / counts[1],
        proxy=proxy,
    )
