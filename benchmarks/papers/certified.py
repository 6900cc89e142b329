"""Bounds on eigenvalues and inverses of a precision matrix that hold in spite of rounding.

Proofs are in THEORY.md, section "Rounding".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from graphs.numerics.rounding import ULP

__all__ = ["inverse_form_bounds", "least_eigenvalue_bound", "log_deficit_bound"]

Floats = NDArray[np.float64]

"""Twice the unit roundoff of double precision."""


def least_eigenvalue_bound(matrix: Floats) -> float:
    """Return a number that the smallest eigenvalue is not below, or 0 when none above 0 is found.

    Parameters
    ----------
    matrix : ndarray, shape (d, d)
        Symmetric; taken as exact. Its trace is in [1e-100, 1e100], beyond which 0 is returned.

    Examples
    --------
    >>> bound = least_eigenvalue_bound(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> 1 - 1e-13 < bound <= 1
    True
    """
    d = matrix.shape[0]
    trace = float(np.abs(np.diag(matrix)).sum())
    if not 1e-100 <= trace <= 1e100:
        return 0.0
    slack = 4 * (d + 2) * ULP * trace
    guess = float(np.linalg.eigvalsh(matrix)[0])
    for attempt in range(8):
        shift = guess - slack * 2**attempt
        if shift <= slack:
            return 0.0
        if dpotrf(matrix - shift * np.eye(d), clean=1)[1] == 0:
            return math.nextafter(shift - slack, 0.0)
    return 0.0


def inverse_form_bounds(vector: Floats, matrix: Floats, least: float) -> tuple[float, float]:
    """Return upper bounds on the trace of a matrix's inverse and on a vector's quadratic form with it.

    Parameters
    ----------
    vector : ndarray, shape (d,)
    matrix : ndarray, shape (d, d)
        Symmetric and positive definite.
    least : float
        A lower bound on its smallest eigenvalue, above 0.

    Returns
    -------
    tuple of float
        At least ``tr matrix^-1`` and ``vector' matrix^-1 vector``; ``inf`` when the matrix is too ill-conditioned.

    Examples
    --------
    >>> trace, form = inverse_form_bounds(np.ones(2), np.diag([1.0, 4.0]), 1.0)
    >>> 1.25 <= trace < 1.25 + 1e-12, 1.25 <= form < 1.25 + 1e-12
    (True, True)
    """
    d = vector.size
    inverse = np.linalg.inv(matrix)
    size = np.abs(matrix)
    rounding = 2 * (d + 2) * ULP
    defect = np.abs(np.eye(d) - matrix @ inverse) + rounding * (np.eye(d) + size @ np.abs(inverse))
    distance = float(np.linalg.norm(defect)) * (1 + rounding + d * d * ULP)
    if not distance < 0.5:
        return math.inf, math.inf
    own = np.diag(inverse)
    trace = (float(own.sum()) + rounding * float(np.abs(own).sum())) / (1 - distance) * (1 + 4 * ULP)
    solution = inverse @ vector
    residual = np.abs(vector - matrix @ solution) + rounding * (np.abs(vector) + size @ np.abs(solution))
    products = float(vector @ solution) + rounding * float(np.abs(vector) @ np.abs(solution))
    form = products + float(np.abs(solution) @ residual) * (1 + rounding)
    form += float(residual @ residual) / least * (1 + rounding)
    return trace, max(form, 0.0) * (1 + 8 * ULP) + (1e-150 if vector.any() else 0.0)


def log_deficit_bound(r: float) -> float:
    """Return an upper bound on ``-r - log(1 - r)``, for r in [0, 1).

    Examples
    --------
    >>> round(log_deficit_bound(0.1), 12), log_deficit_bound(0.0)
    (0.005360515658, 0.0)
    """
    if r <= 0.5:
        total = sum(r**k / k for k in range(60, 1, -1)) + r**61 / (61 * (1 - r))
        return total * (1 + 128 * ULP) + (1e-300 if r else 0.0)  # squares of the smallest numbers vanish
    logarithm = -math.log1p(-r)
    return logarithm - r + 4 * ULP * (logarithm + r)
