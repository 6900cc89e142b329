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
from thresholdout.statistics.statistic import Statistic, of_sums

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
    groups with a_g and b_g of them it is the sum of ``(a_g/a + b_g/b - a_g b_g/(a b))^2``; and if no group has records
    of both classes ``c^2 ceil(1/c)`` where that is smaller, c the largest share of a group in its class.

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

    def differences(y: NDArray[Any]) -> NDArray[np.float64]:
        return _shares(y, two_classes(y))

    def proxy(y: NDArray[Any], groups: NDArray[np.int64]) -> float:
        positive = y == two_classes(y)[1]
        counts = [np.bincount(groups[side], minlength=groups.max() + 1) for side in (positive, ~positive)]
        of_each = [count / count.sum() for count in counts]
        moved = of_each[0] + of_each[1] - of_each[0] * of_each[1]
        bound = float(np.sum(moved**2))
        if np.any(counts[0] * counts[1]):
            return bound
        total, largest = max(((int(c.sum()), int(c.max())) for c in counts), key=lambda pair: pair[1] / pair[0])
        return min(bound, -(-total // largest) * (largest / total) ** 2)

    return Statistic(
        name="roc_auc",
        responses=("decision_function", "predict_proba"),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the mean, over all pairs of a positive and a negative record of the holdout, of the probability that "
        "the positive one scores higher (ties half), given the labels; for records with one law the population's value",
        differences=differences,
        proxy=proxy,
        for_means=False,
    )


def balanced_accuracy() -> Statistic:
    """Mean over the classes of the share of their records that is predicted rightly.

    Given the labels its expectation is the mean over the classes of the probability to be right: unbiased.

    Notes
    -----
    A weighted mean: with C classes, records of class c have the weight 1/(C n_c), and V is the sum over independent
    groups of the squares of their weights.

    Examples
    --------
    >>> balanced_accuracy().value([0, 0, 0, 1], [0, 0, 1, 1])
    0.8333333333333333
    """

    def unit_value(y: NDArray[Any], output: NDArray[Any], _: NDArray[Any] | None) -> float:
        labels, index = several_classes(y)
        right = np.bincount(index, weights=predictions(output, y) == y)
        return math.fsum(right / np.bincount(index)) / labels.size

    def differences(y: NDArray[Any]) -> NDArray[np.float64]:
        labels, _ = several_classes(y)
        return _shares(y, labels) / labels.size

    return Statistic(
        name="balanced_accuracy",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the mean over the classes of the holdout of the probability that a record of the class is predicted "
        "rightly, given the labels; for records with one law the population's value",
        differences=differences,
        proxy=lambda y, groups: of_sums(differences(y), groups),
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
    s_g^2)/a^2 and 9.6 s/a, s the largest s_g; 4.8 s/a if no group has records of both classes.

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

    def differences(y: NDArray[Any]) -> NDArray[np.float64]:
        truth, _ = positives(y, None)
        return np.where(truth, 2.0, 1.0) / np.count_nonzero(truth)

    def proxy(y: NDArray[Any], groups: NDArray[np.int64]) -> float:
        truth, _ = positives(y, None)
        total = int(np.count_nonzero(truth))
        of_each, sizes = np.bincount(groups, weights=truth), np.bincount(groups)
        squares = max(float(np.sum((2.0 * of_each) ** 2)), float(np.sum(np.square(sizes, dtype=np.float64))))
        pure = not np.any((of_each > 0) & (of_each < sizes))
        return min(squares / total**2, (4.8 if pure else 9.6) * int(sizes.max()) / total)

    return Statistic(
        name="f1" if positive is None else f"f1(positive={shown(positive)})",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="2 E TP / (positive records + E positive predictions), the F1 score of the expected counts given the "
        "labels of the holdout",
        differences=differences,
        proxy=proxy,
    )


def _shares(y: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 / (number of records of the same class), for each record."""
    index = np.searchsorted(labels, y)
    shares: NDArray[np.float64] = 1.0 / np.bincount(index)[index]
    return shares
