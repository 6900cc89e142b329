"""The price of floating point and grids, charged with exact rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction

from graphs.numerics.rounding import UNIT
from thresholdout.data.arguments import check_count, check_number
from thresholdout.data.values import BLOCK
from thresholdout.errors import InputError

__all__ = ["check_grid", "integer_sensitivity", "mean_error", "round_up"]

_MOST_INTERVALS = 1 << 30  # beyond, neighbouring counts differ by less than the tolerance of 1e-9 below


def mean_error(n: int) -> Fraction:
    """Bound the floating-point error of a computed mean of n values in [0, 1].

    Parameters
    ----------
    n : int
        Number of values.

    Returns
    -------
    Fraction
        ``(k + 3) * 2**-53``, where k is n, but at most `thresholdout.data.values.BLOCK`: an upper bound on
        ``abs(computed mean - mean)`` for every array of n 64-bit floats in [0, 1].

    Raises
    ------
    InputError
        If n is not an integer of at least 1.

    Notes
    -----
    `thresholdout.data.values` sums blocks of k values with `numpy.einsum`, adds the block sums with `math.fsum` and
    divides once by n. A block may be summed in any order and any number of accumulators. Every value then passes
    through at most k - 1 roundings in a block of k (products with 1 and sums with 0 are exact), so the relative error
    of a block is at most g = (k-1)u/(1 - (k-1)u), u = 2**-53. The values are not negative, so this is the relative
    error of any sum of blocks too. fsum and the division round once each: (1+g)(1+u)**2 - 1 <= (k+3)u for k <= 2**24.
    The mean is at most 1. `numpy.mean` of at most ``BLOCK`` values obeys the same bound.

    Examples
    --------
    >>> float(mean_error(1000)) < 1.2e-13
    True
    >>> mean_error(10**9) == mean_error(10**6) > mean_error(10**5)
    True
    """
    records = check_count("n", n)
    return (min(records, BLOCK) + 3) * Fraction(UNIT)


def integer_sensitivity(sensitivity: Fraction, error: Fraction, resolution: Fraction) -> int:
    """Bound the number of grid steps by which one record moves a computed statistic that is rounded to the grid.

    The computed values of neighbours differ by at most x = (sensitivity + 2 error)/resolution steps, and rounding to
    the nearest integer moves each by at most 1/2; the difference is an integer of at most x + 1.
    """
    return math.floor((sensitivity + 2 * error) / resolution) + 1


def round_up(exact: Fraction) -> float:
    """Return the smallest float that is not below a rational number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def check_grid(grid: object) -> int:
    """Check the step of an answer grid on [0, 1], and return the number of steps."""
    expected = "1/(K-1) for an integer K between 2 and 2**30 + 1"
    step = check_number("grid", grid, 0.0, 1.0, expected)
    intervals = round(min(1.0 / step, 2.0 * _MOST_INTERVALS))
    if intervals > _MOST_INTERVALS or not math.isclose(step * intervals, 1.0, rel_tol=1e-9):
        raise InputError("grid", repr(grid), expected)
    return intervals
