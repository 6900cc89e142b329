"""Variance inflation of records that are functions of correlated Gaussian values.

For a diagonal P with P - R positive semidefinite, R the correlation matrix, the mean of any per-record values in [0, 1]
fluctuates as tr(P)/n times a mean of independent ones [Chen, Dafnis, Paouris 2015]; proof in `graphs/PROOFS.md`,
section on Gaussian copulas.
"""

from __future__ import annotations

from graphs.numerics.rounding import upward_sum
from graphs.structure.correlation.base import Correlation

__all__ = ["copula_inflation", "copula_records"]


def copula_inflation(correlation: Correlation) -> float:
    """Return tr(P)/n for a diagonal P of small trace that is above a correlation matrix, rounded up.

    Examples
    --------
    >>> from graphs.structure.correlation.dense import DenseCorrelation
    >>> import numpy as np
    >>> round(copula_inflation(DenseCorrelation(np.array([[1.0, 0.5], [0.5, 1.0]]))), 9)
    1.5
    """
    return upward_sum(correlation.dominating()) / correlation.n * (1 + 2**-50)


def copula_records(correlation: Correlation) -> float:
    """Return n over the largest eigenvalue of a correlation matrix, rounded down, at most n.

    Examples
    --------
    >>> from graphs.structure.correlation.dense import DenseCorrelation
    >>> import numpy as np
    >>> round(copula_records(DenseCorrelation(np.ones((3, 3)))), 9)
    1.0
    """
    return min(correlation.n / correlation.radius() * (1 - 2**-50), float(correlation.n))
