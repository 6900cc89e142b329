"""Statistics of regressors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError
from thresholdout.statistics.checks import positive_number, residuals, variance_of
from thresholdout.statistics.statistic import Statistic

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["median_absolute_error", "r2"]


def r2(clip: float = 4.0) -> Statistic:
    """Coefficient of determination, each squared error counting at most ``clip`` times the variance of the labels.

    Parameters
    ----------
    clip : float, default=4.0
        Largest contribution of one record, in units of the variance of the labels; the range is 1 - clip to 1.

    Notes
    -----
    Given the labels this is 1 minus a mean of numbers in [0, clip]: its spread is 1, for every model of the records
    given their labels. Half-widths show nothing of the labels: they are in units of their variance.

    Examples
    --------
    >>> round(r2().value([0.0, 1.0, 2.0, 3.0], [0.5, 1.0, 2.0, 2.5]), 9)
    0.9
    >>> r2().value([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 300.0])
    0.0
    """
    top = positive_number(clip, "clip")

    def unit_value(y: NDArray[Any], output: NDArray[Any], _: NDArray[Any] | None) -> float:
        errors, variance = residuals(output, y), variance_of(y)
        with np.errstate(over="ignore"):
            shares = np.minimum((errors / math.sqrt(variance)) ** 2, top) / top
        return min(1.0, max(0.0, 1.0 - math.fsum(shares) / errors.size))

    def counts(y: NDArray[Any]) -> NDArray[np.int64]:
        variance_of(y)
        return np.array([y.size])

    return Statistic(
        name=f"r2(clip={top:g})",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(1.0 - top, 1.0),
        greater_is_better=True,
        target=f"1 - the mean over the records of E min(squared error / variance of the holdout's labels, {top:g}), "
        "given the labels",
        counts=counts,
        differences=lambda counts: 1.0 / counts,
        proxy=lambda _, sizes: _squares(sizes),
    )


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
    window moves by at most ``1/(window n)`` of the range; its spread is 1/window, and unlike the others it needs no
    labels: the truth is the same mean of quantiles of the law of a random record's error.

    Examples
    --------
    >>> statistic = median_absolute_error(10.0)
    >>> statistic.value([0.0] * 5, [1.0, 2.0, 3.0, 4.0, 50.0])
    3.0
    >>> from graphs import Independent
    >>> round(statistic.spread([0.0] * 5, Independent(5)), 6)
    5.0
    """
    top = positive_number(clip, "clip")
    share = positive_number(window, "window")
    if not 0.01 <= share <= 1.0:
        raise InputError("window", repr(window), "a share of the errors, in [0.01, 1]")

    def unit_value(y: NDArray[Any], output: NDArray[Any], _: NDArray[Any] | None) -> float:
        errors = np.sort(np.minimum(np.abs(residuals(output, y)), top)) / top
        below, above = errors.size * (1.0 - share) / 2.0, errors.size * (1.0 + share) / 2.0
        edges = np.clip(np.arange(errors.size + 1, dtype=np.float64), below, above)
        return min(1.0, math.fsum(errors * np.diff(edges)) / (above - below))

    return Statistic(
        name=f"median_absolute_error(clip={top:g}, window={share:g})",
        responses=("predict",),
        unit_value=unit_value,
        bounds=(0.0, top),
        greater_is_better=False,
        target=f"the mean of the quantiles between {0.5 - share / 2:g} and {0.5 + share / 2:g} of the absolute error, "
        f"at most {top:g}, of a record chosen at random",
        counts=lambda y: np.array([y.size]),
        differences=lambda counts: 1.0 / counts / share,
        proxy=lambda _, sizes: _squares(sizes) / share**2,
        for_means=False,
        needs_labels=False,
    )


def _squares(sizes: NDArray[np.int64]) -> float:
    """Return the sum of the squares of the groups' shares of the records."""
    return float(np.sum((sizes / sizes.sum()) ** 2))
