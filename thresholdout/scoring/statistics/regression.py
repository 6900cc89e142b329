"""Statistics of regressors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from thresholdout.data.arguments import positive_number
from thresholdout.errors import InputError
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.label_checks import residuals, variance_of
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import Concentrated, Judged, MeanShare

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SmoothedMedian", "median_absolute_error", "r2", "root_mean_squared_error"]


@remembered
def r2(clip: float) -> Statistic:
    """Return the coefficient of determination R^2 of predicted numbers, with clipped squared errors.

    A guard needs a bounded range, and R^2 itself has no lower bound. The result is a `Statistic` for regressors;
    greater is better.

    Parameters
    ----------
    clip : float
        Largest squared error of one record, in units of the variance of the labels. The range is 1 - clip to 1. Larger
        errors count as ``clip``, so choose a value that few or no errors of the training part exceed.

    Returns
    -------
    Statistic
        The clipped R^2; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    Given the labels this is 1 minus a mean of numbers in [0, clip].

    Examples
    --------
    >>> round(r2(4.0).value([0.0, 1.0, 2.0, 3.0], [0.5, 1.0, 2.0, 2.5]), 9)
    0.9
    >>> r2(4.0).value([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 300.0])
    0.0
    """
    top = positive_number(clip, "clip")

    def terms(judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        errors, variance = residuals(judged.output, judged.y), variance_of(judged.y)
        with np.errstate(over="ignore"):
            shares = np.minimum((errors / math.sqrt(variance)) ** 2, top) / top
        return 1.0 - shares, np.ones(errors.size)

    return Statistic(
        name=f"r2(clip={top:g})",
        responses=("predict",),
        parts=lambda _: (MeanShare(terms, "records", given=True, most=top, relative=True),),
        bounds=(1.0 - top, 1.0),
        greater_is_better=True,
        target=f"1 - the mean over the records of E min(squared error / variance of the holdout's labels, {top:g}), "
        "given the labels",
        classifies=False,
    )


@remembered
def root_mean_squared_error(clip: float) -> Statistic:
    """Return the root of the mean squared error of predicted numbers, with absolute errors clipped at ``clip``.

    A guard needs a bounded range, and the error itself has none. The result is a `Statistic` for regressors; smaller is
    better.

    Parameters
    ----------
    clip : float
        Largest absolute error of one record, in units of the target. Larger errors count as this value.

    Returns
    -------
    Statistic
        The clipped error; `Statistic.value` computes it from labels and predictions.

    Examples
    --------
    >>> root_mean_squared_error(4.0).value([0.0, 0.0], [1.0, 300.0]) == math.sqrt(17 / 2)
    True
    """
    top = positive_number(clip, "clip")

    def terms(judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        shares = np.minimum(np.abs(residuals(judged.output, judged.y)), top) / top
        return shares**2, np.ones(shares.size)

    return Statistic(
        name=f"root_mean_squared_error(clip={top:g})",
        responses=("predict",),
        parts=lambda _: (MeanShare(terms, "records", most=top * top, relative=False),),
        bounds=(0.0, top),
        greater_is_better=False,
        target=f"the root of the mean over the records of E min(squared error, {top:g}^2)",
        combine=lambda values: math.sqrt(values[0]),
        classifies=False,
    )


@dataclass(frozen=True)
class SmoothedMedian(Concentrated):
    """The mean of the middle ``1/spread`` of values, each a share of the largest that counts, `most`."""

    most: float = field(kw_only=True)

    def between(self, cells: NDArray[np.float64], counts: NDArray[np.int64]) -> tuple[float, float]:
        """Return two numbers between which it is, of counts of values in cells; PROOFS.md, E13.

        A cell is below, at and above each of some numbers in order, and the last is of records without a value, which
        have the largest one.

        Examples
        --------
        >>> (part,) = median_absolute_error(4.0).parts(None)
        >>> part.between(np.array([1.0, 2.0]), np.array([0, 5, 0, 0, 0, 0]))  # all are 1
        (0.25, 0.25)
        >>> part.between(np.array([1.0, 2.0]), np.array([0, 0, 5, 0, 0, 0]))  # all are between 1 and 2
        (0.25, 0.5)
        """
        ends = np.repeat(np.minimum(cells, self.most) / self.most, 2)
        low, high = np.concatenate([[0.0], ends, [1.0]]), np.concatenate([ends, [1.0, 1.0]])
        found = []
        for values in (low, high):
            known, place = np.unique(values[counts > 0], return_inverse=True)
            times = np.bincount(place, counts[counts > 0]).astype(np.int64)
            found.append(_middle(known, times, 1.0 / self.spread))
        return found[0], found[1]


def _middle(values: NDArray[np.float64], times: NDArray[np.int64], share: float) -> float:
    """Return the mean of a share of values in the middle; the values are in order, and each occurs so many times."""
    n = int(times.sum())
    below, above = n * (1.0 - share) / 2.0, n * (1.0 + share) / 2.0
    edges = np.clip(np.concatenate([[0.0], np.cumsum(times)]), below, above)
    return min(1.0, math.fsum(values * np.diff(edges)) / (above - below))


@remembered
def median_absolute_error(clip: float, window: float = 0.2) -> Statistic:
    """Return a smoothed median of the absolute errors: the mean of the middle ``window`` of them, in order of size.

    The result is a `Statistic` for regressors; smaller is better.

    Parameters
    ----------
    clip : float
        Largest absolute error of one record, in units of the target. Larger errors count as this value.
    window : float, default 0.2
        Share of the errors that is averaged, in [0.01, 1]. With 0.2 it is the mean of all quantiles between 0.4 and
        0.6.

    Returns
    -------
    Statistic
        The smoothed median; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    The median itself can jump from one end of the range to the other with one record. The mean of the quantiles in the
    window moves by at most ``1/(window n)`` of the range.

    Examples
    --------
    >>> statistic = median_absolute_error(10.0)
    >>> statistic.value([0.0] * 5, [1.0, 2.0, 3.0, 4.0, 50.0])
    3.0
    """
    top = positive_number(clip, "clip")
    share = positive_number(window, "window")
    if not 0.01 <= share <= 1.0:
        raise InputError("window", repr(window), "a share of the errors, in [0.01, 1]")

    def unit_value(judged: Judged) -> float:
        errors = np.minimum(np.abs(residuals(judged.output, judged.y)), top) / top
        return _middle(*np.unique(errors, return_counts=True), share)

    return Statistic(
        name=f"median_absolute_error(clip={top:g}, window={share:g})",
        responses=("predict",),
        parts=lambda _: (SmoothedMedian(unit_value, 1.0 / share, math.log(2.0) * (1.0 + 1e-12), most=top),),
        bounds=(0.0, top),
        greater_is_better=False,
        target=f"the mean of the quantiles between {0.5 - share / 2:g} and {0.5 + share / 2:g} of the absolute error, "
        f"at most {top:g}, of a record chosen at random",
        classifies=False,
    )
