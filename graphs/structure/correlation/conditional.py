"""Correlations of what is left once some of the Gaussian values are known exactly."""

from __future__ import annotations

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.bisection import BoolArray
from graphs.numerics.definite import dominates, largest_eigenvalue
from graphs.numerics.rounding import UNIT, up
from graphs.structure.correlation.diagonal import dominating_diagonal
from graphs.structure.correlation.interface import ConditionalBounds

__all__ = ["given_values", "given_variances"]

#: Least conditional variance of a value that is not taken to be told by the known ones.
LEAST_VARIANCE = 1e-6


def given_values(matrix: FloatArray, known: BoolArray, off: float = 0.0) -> ConditionalBounds | None:
    """Return bounds for the values that are not known, given the others exactly; None where they are not proved.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Correlation matrix R.
    known : ndarray of bool, shape (n,)
        Which values are known, at least one.
    off : float
        By how much entries may be off at most.

    Notes
    -----
    The conditional covariance matrix is ``S = R_LL - R_LK R_KK^-1 R_KL``. For every matrix Y the covariance T of
    ``Z_L - Y' Z_K`` is at least S, and ``T - S = F' R_KK^-1 F`` with ``F = R_KL - R_KK Y``. So T is above S, and
    ``T_ii - |F_i|^2/m`` is below S_ii when m is below the least eigenvalue of R_KK. With d_i that bound, a diagonal
    above ``d^-1/2 T d^-1/2`` is above the conditional correlations too.

    Examples
    --------
    >>> series = 0.5 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> given_values(series, np.array([False, True, False])).diagonal.round(9)
    array([1., 1.])
    """
    found = _conditional(matrix, known, off)
    if found is None:
        return None
    covariance, variances, room = found
    root = 1.0 / np.sqrt(variances)
    scaled: FloatArray = 0.5 * (covariance + covariance.T) * np.outer(root, root)
    lift = len(scaled) * up(room * float(root.max()) ** 2, 64)
    return ConditionalBounds(up(dominating_diagonal(scaled) + lift, 4), up(largest_eigenvalue(scaled) + lift, 4))


def given_variances(matrix: FloatArray, known: BoolArray, off: float = 0.0) -> FloatArray | None:
    """Return lower bounds on the variances of the values that are not known, given the others exactly.

    Parameters
    ----------
    matrix, known, off
        As in `given_values`.

    Examples
    --------
    >>> series = 0.5 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> given_variances(series, np.array([False, True, False])).round(9)
    array([0.75, 0.75])
    """
    found = _conditional(matrix, known, off)
    return None if found is None else found[1]


def _conditional(matrix: FloatArray, known: BoolArray, off: float) -> tuple[FloatArray, FloatArray, float] | None:
    """Return T, lower bounds on the diagonal of S, and a bound on the error of an entry of T."""
    inner, across = matrix[np.ix_(known, known)], matrix[np.ix_(known, ~known)]
    count = len(inner)
    least = 0.5 * float(np.linalg.eigvalsh(inner)[0])
    if not least > 0.0 or not dominates(np.full(count, -least), -inner):
        return None
    least -= 2.0 * count * off
    weights = np.linalg.solve(inner, across)
    product = inner @ weights
    covariance = matrix[np.ix_(~known, ~known)] - weights.T @ across - across.T @ weights + weights.T @ product
    sizes = np.abs(weights)
    reach = up(1.0 + sizes.sum(axis=0), count)
    most = up(float((sizes.T @ (2.0 * np.abs(across) + np.abs(inner) @ sizes)).max()) + 1.0, 4.0 * count)
    error = up(4.0 * (count + 8) * UNIT * most + off * float(reach.max()) ** 2, 8)
    rounding = 2.0 * (count + 8) * UNIT * (np.linalg.norm(np.abs(inner) @ sizes, axis=0) + count) + count * off * reach
    residual = np.linalg.norm(across - product, axis=0) + rounding
    if not least > 0.0:
        return None
    variances = np.diagonal(covariance) - error - up(residual**2 / least, 64)
    if not (variances > LEAST_VARIANCE).all():
        return None
    return covariance, variances, error + 8.0 * UNIT * most
