"""Areas under the receiver operating characteristic, for two classes, and means over classes or pairs of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.areas import Area
from thresholdout.scoring.statistics.label_checks import binary_labels, scores
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import Judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["roc_auc", "roc_auc_ovo", "roc_auc_ovr"]

_Chosen = tuple["NDArray[np.float64]", "NDArray[np.bool_]", "NDArray[np.bool_]"]


@remembered
def roc_auc() -> Statistic:
    """Return the area under the ROC curve: the probability that a positive record scores above a negative one.

    The result is a `Statistic` for classifiers of two classes; greater is better. Ties count half. The positive class
    is the larger label.

    Notes
    -----
    With a positive and b negative records it is as concentrated as a mean of min(a, b) independent records, also in the
    sense of relative entropy [H63, section 5b]. The guard does not reveal the numbers a and b.

    References
    ----------
    [H63] W. Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 58, 1963.

    Examples
    --------
    >>> roc_auc().value(["no", "no", "yes"], [0.3, 0.5, 0.5])
    0.75
    >>> roc_auc().value(["no", "no"], [0.3, 0.5])
    Traceback (most recent call last):
    thresholdout.errors.InputError: y must be labels of two classes; got labels of one class, 'no'.
    """

    def parts(labels: NDArray[Any] | None) -> tuple[Area, ...]:
        _, label = binary_labels(labels)

        def chosen(judged: Judged) -> _Chosen:
            positive = judged.y == label
            return scores(judged.output, judged.y), positive, ~positive

        return (Area(chosen, label),)

    return Statistic(
        name="roc_auc",
        responses=("decision_function", "predict_proba"),
        parts=parts,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target="the probability that a record of the larger label scores above one of the other (ties half); unless "
        "records are independent with one law, the mean of it over all such pairs of the holdout, given its labels",
        classifies=False,
    )


@remembered
def roc_auc_ovr() -> Statistic:
    """Return the one-vs-rest ROC AUC: the mean over the classes of the area under each class's curve.

    A class's curve takes its predicted probability as the score, and the records of all other classes as negative ones.
    The result is a `Statistic` for classifiers with ``predict_proba``; greater is better.

    Examples
    --------
    >>> sure = np.eye(3)[[0, 1, 2, 2]]
    >>> roc_auc_ovr().value([0, 1, 2, 1], sure, [0, 1, 2])
    0.8611111111111112
    """

    def parts(labels: NDArray[Any] | None) -> tuple[Area, ...]:
        return tuple(_against(label, None) for label in _classes(labels))

    what = "a record of the class gets a higher probability of it than another record"
    return _mean_of_areas("roc_auc_ovr", parts, "the classes", what)


@remembered
def roc_auc_ovo() -> Statistic:
    """Return the one-vs-one ROC AUC: the mean over ordered pairs of classes of the area under each pair's curve.

    The curve of a pair takes the predicted probability of the first class as the score, on the records of both. The
    result is a `Statistic` for classifiers with ``predict_proba``; greater is better.

    Examples
    --------
    >>> sure = np.eye(3)[[0, 1, 2, 2]]
    >>> round(roc_auc_ovo().value([0, 1, 2, 1], sure, [0, 1, 2]), 6)
    0.875
    """

    def parts(labels: NDArray[Any] | None) -> tuple[Area, ...]:
        known = _classes(labels)
        return tuple(_against(one, other) for one in known for other in known if one != other)

    what = "a record of the first gets a higher probability of it than one of the second"
    return _mean_of_areas("roc_auc_ovo", parts, "the pairs of classes", what)


def _mean_of_areas(name: str, parts: Any, over: str, what: str) -> Statistic:
    return Statistic(
        name=name,
        responses=("predict_proba",),
        parts=parts,
        bounds=(0.0, 1.0),
        greater_is_better=True,
        target=f"the mean over {over} of the probability that {what} (ties half); unless records are independent "
        "with one law, the mean of it over all such pairs of the holdout, given its labels",
        combine=lambda values: math.fsum(values) / len(values),
    )


def _against(label: Any, other: Any | None) -> Area:
    def chosen(judged: Judged) -> _Chosen:
        if judged.classes is None or judged.output.shape != (judged.y.size, len(judged.classes)):
            seen = f"scores of shape {judged.output.shape}"
            raise InputError("estimator", seen, "a model whose probabilities have a column for each of its classes_")
        column = np.flatnonzero(judged.classes == label)
        if not column.size:
            raise InputError(
                "estimator", "a model without a class of the labels", "a model with all classes of the labels"
            )
        of_label = judged.output[:, column[0]].astype(np.float64)
        if not np.isfinite(of_label).all():
            raise InputError(
                "estimator", "probabilities that are missing or infinite", "a model with finite probabilities"
            )
        positive = judged.y == label
        return of_label, positive, ~positive if other is None else judged.y == other

    return Area(chosen, label, other)


def _classes(labels: NDArray[Any] | None) -> NDArray[Any]:
    if labels is None or labels.size < 2:
        raise InputError("y", "labels of one class", "labels of several classes")
    return labels
