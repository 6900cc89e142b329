"""Exact sums of what a step of expectation-maximisation needs of each record, and how far one record moves them."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.events.event_types import Adjacency

__all__ = [
    "COVARIANCE_TYPES",
    "MOST_RECORDS",
    "CovarianceType",
    "noise_scales",
    "on_grid",
    "sensitivity",
    "statistics_sum",
]

Floats = NDArray[np.float64]
CovarianceType = Literal["spherical", "diag", "full"]
COVARIANCE_TYPES: tuple[CovarianceType, ...] = ("spherical", "diag", "full")

BITS = 18
GRID = 2.0**BITS
MOST_RECORDS = 2**26
MOST_COORDINATES = 2**21
_INSIDE = 1.0 - 2.0**-30  # for the rounding of norms of at most MOST_COORDINATES
_ROUNDED = 1.0 + 2.0**-20  # for the rounding of sums, scales and noise of at most MOST_RECORDS records
_ROWS = 2**15
_CHUNK = 2**22


def on_grid(X: Floats, bound: float) -> Floats:
    """Return records in units of a bound on their norm, scaled down to it and cut to a grid.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Finite.
    bound : float
        In [1e-100, 1e100]. Records of a larger Euclidean norm are scaled down to it.

    Returns
    -------
    ndarray, shape (n, d)
        Whole multiples of 2^-18 of a norm of at most 1, exactly; each row is a function of its record and the bound.

    Raises
    ------
    InputError
        For more coordinates than the rounding of norms is bounded for, 2^21.

    Examples
    --------
    >>> on_grid(np.array([[3.0, 4.0], [0.5, 0.0]]), 1.0).round(4)
    array([[0.6, 0.8],
           [0.5, 0. ]])
    """
    n, d = X.shape
    if d > MOST_COORDINATES:
        raise InputError("X", f"{d} features", f"at most {MOST_COORDINATES}")
    largest = np.zeros(n)
    for j in range(d):
        np.maximum(largest, np.abs(X[:, j]), out=largest)
    exponents = np.frexp(largest)[1]
    down = np.ldexp(X, -exponents[:, None])
    squares = np.zeros(n)
    for j in range(d):  # column by column, so that a row's rounding does not depend on its place
        squares += down[:, j] * down[:, j]
    norms = np.sqrt(squares)
    with np.errstate(over="ignore", under="ignore"):
        large = norms > np.ldexp(np.full(n, bound * _INSIDE), -exponents)
    scaled = np.where(large[:, None], 0.0, X) / bound
    scaled[large] = down[large] * (_INSIDE / norms[large])[:, None]
    return np.asarray(np.trunc(scaled * GRID) / GRID)


def second_moments(rows: Floats, covariance_type: CovarianceType) -> Floats:
    """Return squared norms, squares, or products of coordinates (upper triangle) on the grid, cut towards zero.

    Examples
    --------
    >>> second_moments(np.array([[0.5, -0.25]]), "full")
    array([[ 0.25  , -0.125 ,  0.0625]])
    """
    n, d = rows.shape
    if covariance_type == "spherical":
        squares = np.zeros(n)
        for j in range(d):
            squares += rows[:, j] * rows[:, j]  # exact: multiples of 2^-36, at most 1
        products = squares[:, None]
    elif covariance_type == "diag":
        products = rows * rows
    else:
        first, second = np.triu_indices(d)
        products = rows[:, first] * rows[:, second]
    return np.asarray(np.trunc(products * GRID) / GRID)


def statistics_sum(rows: Floats, responsibilities: Floats, covariance_type: CovarianceType) -> Floats:
    """Return the sum over records of responsibility times (1, record, second moments), exactly but for a last rounding.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
        Of `on_grid`; at most 2^26 of them.
    responsibilities : ndarray, shape (n, K)
        Not below 0, of sum 1 in each row up to rounding; cut down to multiples of 2^-18.
    covariance_type : {"spherical", "diag", "full"}

    Returns
    -------
    ndarray, shape (K, 1 + d + m)

    Notes
    -----
    Entries are whole numbers of 2^-36 at most 1 in size, so that products of matrices of 2^15 rows are exact in any
    order, as sums of them in 64 bits are.

    Examples
    --------
    >>> statistics_sum(np.array([[0.5], [-0.5]]), np.array([[1.0, 0.0], [0.25, 0.75]]), "full")
    array([[ 1.25  ,  0.375 ,  0.3125],
           [ 0.75  , -0.375 ,  0.1875]])
    """
    n, d = rows.shape
    width = 1 + d + moments(d, covariance_type)
    total = np.zeros((responsibilities.shape[1], width), dtype=np.int64)
    step = max(1, min(_ROWS, _CHUNK // width))
    for start in range(0, n, step):
        part = rows[start : start + step]
        features = np.concatenate([np.ones((len(part), 1)), part, second_moments(part, covariance_type)], axis=1)
        shares = np.floor(responsibilities[start : start + step] * GRID)
        total += (shares.T @ (features * GRID)).astype(np.int64)
    return total.astype(np.float64) / GRID**2


def moments(d: int, covariance_type: CovarianceType) -> int:
    """Return how many second moments there are."""
    return {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[covariance_type]


def noise_scales(d: int, covariance_type: CovarianceType, shares: tuple[float, float, float]) -> Floats:
    """Return the noise of each statistic of one component, relative to the noise multiplier.

    Parameters
    ----------
    d : int
    covariance_type : {"spherical", "diag", "full"}
    shares : tuple of three floats
        Of counts, sums and second moments in the squared norm of a record's statistics; their sum is 1.

    Returns
    -------
    ndarray, shape (1 + d + m,)
        Products of two different coordinates stand for two entries of a matrix, and have noise over the root of 2.

    Examples
    --------
    >>> noise_scales(2, "full", (0.25, 0.5, 0.25)).round(3)
    array([2.   , 1.414, 1.414, 2.   , 1.414, 2.   ])
    """
    count, mean, second = (1 / math.sqrt(share) for share in shares)
    found = np.full(1 + d + moments(d, covariance_type), second)
    found[0], found[1 : 1 + d] = count, mean
    if covariance_type == "full":
        i, j = np.triu_indices(d)
        found[1 + d :][i != j] /= math.sqrt(2)
    return found


def sensitivity(
    d: int, covariance_type: CovarianceType, shares: tuple[float, float, float], adjacency: Adjacency
) -> float:
    """Return how far one record moves the sum of statistics over `noise_scales`, in Euclidean norm, rounded up.

    Parameters
    ----------
    d, covariance_type, shares
        As in `noise_scales`.
    adjacency : {"replace_one", "add_remove"}

    Returns
    -------
    float
        1 for a record more or less. For a replaced one the root of 2, unless two records that belong to one component
        can be further apart, and then up to 2 (PROOFS.md, S2 and S3).

    Examples
    --------
    >>> [round(sensitivity(4, "full", (0.25, 0.5, 0.25), each), 4) for each in ("add_remove", "replace_one")]
    [1.0, 1.4142]
    >>> round(sensitivity(4, "full", (0.01, 0.98, 0.01), "replace_one"), 4)
    1.9799
    """
    if adjacency == "add_remove":
        return _ROUNDED
    _, mean, second = shares
    if covariance_type == "spherical" or mean >= 2 * second:
        apart = 4 * mean
    else:
        apart = 2 * (mean + second) + mean * mean / (2 * second)
    return math.sqrt(max(2.0, apart + 4 * second * d / GRID)) * _ROUNDED


def check_records(n: int) -> None:
    """Refuse more records than sums of them are exact for."""
    if n > MOST_RECORDS:
        raise InputError("X", f"{n} records", f"at most {MOST_RECORDS}")
