"""The feature-selection analyst of Dwork et al. (2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.simulation.simulated_session import Asking, Part, Query

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["FeatureSelectionAnalyst", "SignVote", "correlation"]

# Products of label and attribute are clipped to [-4, 4]; for a normal attribute this changes 6 in 100,000.
REACH = 4.0


def to_unit(products: ArrayLike) -> NDArray[np.float64]:
    """Map products of label and attribute, or their mean, from [-4, 4] to [0, 1], clipped.

    Examples
    --------
    >>> to_unit([-4.0, 0.0, 9.0])
    array([0. , 0.5, 1. ])
    """
    unit: NDArray[np.float64] = np.clip(products, -REACH, REACH) / (2 * REACH) + 0.5
    return unit


def from_unit(values: ArrayLike) -> NDArray[np.float64]:
    """Map answers in [0, 1] back to [-4, 4].

    Examples
    --------
    >>> float(from_unit(0.75))
    2.0
    """
    return (np.asarray(values, dtype=np.float64) - 0.5) * (2 * REACH)


def signed(values: NDArray[Any]) -> NDArray[Any]:
    """Return booleans as -1 and 1, and numbers as they are.

    Examples
    --------
    >>> signed(np.array([True, False])).tolist()
    [1, -1]
    """
    return np.where(values, np.int8(1), np.int8(-1)) if values.dtype == np.bool_ else values


def signed_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as -1 and 1."""
    found = signed(labels)
    if not np.isin(found, (-1, 1)).all():
        other = found[~np.isin(found, (-1, 1))]
        raise InputError("labels", f"{other[0]!r}", "-1 and 1, or booleans")
    return found


def correlation(column: int) -> Query:
    """Return the query for the mean product of label (-1 or 1) and attribute, as a mean of values in [0, 1].

    Examples
    --------
    >>> part = Part(np.array([[2.0], [-2.0]]), np.array([1, 1]))
    >>> correlation(0)(part)
    array([0.75, 0.25])
    """

    def query(part: Part) -> NDArray[np.float64]:
        return to_unit(signed(part.features[:, column]) * signed_labels(part.labels))

    return query


@dataclass(frozen=True)
class SignVote:
    """The classifier of the analyst: the sign of a signed sum of attributes; as a query, its accuracy.

    Examples
    --------
    >>> part = Part(np.array([[2.0, 1.0], [-2.0, 5.0]]), np.array([1, 1]))
    >>> SignVote(np.array([0]), np.array([1.0]))(part)
    array([ True, False])
    """

    columns: NDArray[np.intp]
    signs: NDArray[np.float64]

    def __call__(self, part: Part) -> NDArray[np.bool_]:
        """Return whether the sign is right for each record."""
        total = signed(part.features[:, self.columns]) @ self.signs
        right: NDArray[np.bool_] = np.where(total >= 0, 1, -1) == signed_labels(part.labels)
        return right


@dataclass(frozen=True)
class FeatureSelectionAnalyst:
    """Analyst that selects attributes by their correlation with the label on both parts, and adds them up.

    Attributes are normal numbers and labels are -1 or 1. Booleans stand for -1 and 1 in both. The analyst computes the
    correlations on the training part, queries those on the holdout, and keeps the attributes for which both have the
    same sign and reach the cut. It ranks them by the correlation on the training part. For every size k it then queries
    the accuracy of a classifier, the sign of the sum of the best k attributes. Pass the analyst to `interview` or
    `simulate`.

    Parameters
    ----------
    sizes : sequence of int
        The numbers k of attributes, increasing and at least 0.
    cut : float, optional
        Smallest absolute correlation of a kept attribute, on both parts. If None, 1/sqrt(number of training records).

    References
    ----------
    C. Dwork et al., "Generalization in adaptive data analysis and holdout reuse", 2015, section 4 (there the analyst
    reads the correlations on the holdout; here it queries them).

    Examples
    --------
    >>> from thresholdout.simulation.simulated_session import NaiveReuse, interview
    >>> rng = np.random.default_rng(0)
    >>> train, holdout = (Part(rng.normal(size=(400, 400)), rng.choice([-1, 1], 400)) for _ in range(2))
    >>> session = interview(FeatureSelectionAnalyst([10, 40]), NaiveReuse(), train, holdout, rng, truth=0.5)
    >>> session.answered, bool(session.reported.holdout > 0.6)
    (402, True)
    """

    sizes: Sequence[int]
    cut: float | None = None

    def __post_init__(self) -> None:
        if list(self.sizes) != sorted(set(self.sizes)) or not self.sizes or self.sizes[0] < 0:
            raise InputError("sizes", list(self.sizes), "increasing numbers of attributes, each at least 0")

    def select(
        self, train: NDArray[np.float64], answers: NDArray[np.float64], cut: float
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Select attributes by their correlations with the label.

        Parameters
        ----------
        train : ndarray, shape (d,)
            Correlation of each attribute with the label on the training part.
        answers : ndarray, shape (d,)
            The same correlations on the holdout, as answered.
        cut : float
            Smallest absolute correlation of a kept attribute, on both parts.

        Returns
        -------
        columns : ndarray of int, shape (k,)
            Columns of at most ``max(sizes)`` attributes, the largest absolute correlation on the training part first.
        signs : ndarray, shape (k,)
            Signs of their correlations, -1 or 1.

        Examples
        --------
        >>> analyst = FeatureSelectionAnalyst([2])
        >>> analyst.select(np.array([0.2, -0.3, 0.4]), np.array([0.2, -0.2, -0.4]), 0.1)
        (array([1, 0]), array([-1.,  1.]))
        """
        kept = np.flatnonzero((np.abs(train) >= cut) & (np.sign(train) * answers >= cut))
        columns = kept[np.argsort(-np.abs(train[kept]), kind="stable")][: max(self.sizes)]
        return columns, np.sign(train[columns])

    def run(self, ask: Asking, train: Part, rng: np.random.Generator) -> Query:
        """Query the correlations of all attributes, and then the accuracy of the classifier of every size.

        Parameters
        ----------
        ask : callable
            ``ask(query, claim=None)`` returns the answer of the mechanism.
        train : Part
            The training part, with ``features`` and ``labels``.
        rng : numpy.random.Generator
            Not used.

        Returns
        -------
        callable
            The classifier of the largest size, which can be called as a query.
        """
        count = train.features.shape[1]
        cut = len(train) ** -0.5 if self.cut is None else self.cut
        products = np.clip(signed(train.features) * signed_labels(train.labels)[:, None], -REACH, REACH)
        answers = from_unit([ask(correlation(column)).value for column in range(count)])
        columns, signs = self.select(products.mean(axis=0), answers, cut)
        vote = SignVote(columns[:0], signs[:0])
        for size in self.sizes:
            vote = SignVote(columns[:size], signs[:size])
            ask(vote)
        return vote
