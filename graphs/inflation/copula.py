"""Variance inflation of records that are functions of correlated Gaussian values.

For a diagonal P with P - R positive semidefinite, R the correlation matrix, the mean of any per-record values in [0, 1]
fluctuates as tr(P)/n times a mean of independent ones [Chen, Dafnis, Paouris 2015]; proof in `graphs/PROOFS.md`,
section on Gaussian copulas.
"""

from __future__ import annotations

import math

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import upward_sum

__all__ = ["copula_inflation", "copula_records", "smoothed_inflation"]


def copula_inflation(diagonal: FloatArray) -> float:
    """Return tr(P)/n, rounded up.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Of P.

    Examples
    --------
    >>> import numpy as np
    >>> round(copula_inflation(np.array([1.5, 1.5, 1.0])), 9)
    1.333333333
    """
    return upward_sum(diagonal) / len(diagonal) * (1 + 2**-50)


def copula_records(radius: float, n: int) -> float:
    """Return n over a bound on the largest eigenvalue of R, rounded down, at least 1 and at most n.

    Examples
    --------
    >>> round(copula_records(3.0, 3), 9)
    1.0
    """
    return min(max(n / radius * (1 - 2**-50), 1.0), float(n))


def smoothed_inflation(of_means: float, least: float) -> float:
    """Return 1 + (2/pi) (Lambda - s)/s, rounded up: the inflation of statistics with bounded differences.

    Parameters
    ----------
    of_means : float
        Lambda = tr(P)/n as in `copula_inflation`.
    least : float
        s, a positive lower bound on the smallest eigenvalue of R.

    Examples
    --------
    >>> round(smoothed_inflation(3.0, 1 / 3), 6)
    6.092958
    """
    return 1.0 + 2.0 / math.pi * (of_means - least) / least * (1 + 2**-48)
