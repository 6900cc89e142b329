"""Statistics of regressors."""

from __future__ import annotations

import math
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

__all__ = ["median_absolute_error", "r2", "root_mean_squared_error"]


@remembered
def r2(clip: float) -> Statistic:
    """Coefficient of determination, each squared error counting at most ``clip`` times the variance of the labels.

    Parameters
    ----------
    clip : float
        Largest contribution of one record, in units of the variance of the labels; the range is 1 - clip to 1. Errors
        beyond it are not seen: take one that none of the training part's exceeds, or few.

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
    """Root of the mean squared error, each error counting at most ``clip``.

    Parameters
    ----------
    clip : float
        Largest absolute error of one record, in units of the target.

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


@remembered
def median_absolute_error(clip: float, window: float = 0.2) -> Statistic:
    """Smoothed median of the absolute errors: the mean of the middle ``window`` of them, in order of size.

    Parameters
    ----------
    clip : float
        Largest absolute error of one record, in units of the target.
    window : float, default=0.2
        Share of the errors that is averaged, in [0.01, 1]: 0.2 takes the mean of all quantiles between 0.4 and 0.6.

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
        errors = np.sort(np.minimum(np.abs(residuals(judged.output, judged.y)), top)) / top
        below, above = errors.size * (1.0 - share) / 2.0, errors.size * (1.0 + share) / 2.0
        edges = np.clip(np.arange(errors.size + 1, dtype=np.float64), below, above)
        return min(1.0, math.fsum(errors * np.diff(edges)) / (above - below))

    return Statistic(
        name=f"median_absolute_error(clip={top:g}, window={share:g})",
        responses=("predict",),
        parts=lambda _: (Concentrated(unit_value, 1.0 / share),),
        bounds=(0.0, top),
        greater_is_better=False,
        target=f"the mean of the quantiles between {0.5 - share / 2:g} and {0.5 + share / 2:g} of the absolute error, "
        f"at most {top:g}, of a record chosen at random",
        classifies=False,
    )
