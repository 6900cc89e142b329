"""Proofs in floating point that a symmetric matrix is positive semidefinite, and bounds on eigenvalues from them.

A computed eigenvalue is no bound: it may be off to either side. A Cholesky factorisation that runs to its end is a
proof, once the diagonal has been lowered by more than the rounding errors [S. Rump, "Verification of positive
definiteness", BIT 46, 2006].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT, up

__all__ = ["dominates", "is_semidefinite", "largest_eigenvalue", "least_lift", "smallest_eigenvalue"]

#: Roundings charged to an entry of a factor beside one for each term of its sum.
SPARE = 16

#: Exceeds the underflow of an entry.
UNDERFLOW = 1e-290


def dominates(diagonal: FloatArray, matrix: FloatArray) -> bool:
    """Return whether a diagonal matrix less another matrix is proved to be positive semidefinite."""
    rest = diagonal - np.diagonal(matrix)
    lowered = -matrix
    np.fill_diagonal(lowered, rest)
    # each difference on the diagonal is off by one rounding of its terms
    return is_semidefinite(
        lowered, 4.0 * UNIT * (float(np.abs(diagonal).max()) + float(np.abs(np.diagonal(matrix)).max()))
    )


def is_semidefinite(matrix: FloatArray, error: float = 0.0) -> bool:
    """Return whether a symmetric matrix is proved to be positive semidefinite.

    A factorisation of A that runs to its end has L L^T = A + F with ``|F_ij| <= g (A_ii A_jj)^(1/2)``, g = k/(1 - k)
    for k = (n + 1) u/(1 - (n + 1) u), so the norm of F is at most g tr A. Here A has c taken off its diagonal, c more
    than g tr A, the error and the rounding of the diagonal itself.
    """
    n = len(matrix)
    diagonal = np.diagonal(matrix)
    if not np.isfinite(matrix).all() or not (diagonal > 0.0).all():
        return False
    lowered = matrix.copy()
    np.fill_diagonal(
        lowered, diagonal - (1.1 * (n + SPARE) * UNIT * float(diagonal.sum()) + 1.1 * error + n * UNDERFLOW)
    )
    try:
        factor = np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(factor).all())


def least_lift(holds: Callable[[float], bool], first: float, last: float) -> float | None:
    """Return a small number at which a proof succeeds, by doublings and then some halvings."""
    low, lift = 0.0, first
    while not holds(lift):
        if lift >= last:
            return None
        low, lift = lift, min(2.0 * lift, last)
    for _ in range(4 if low else 0):
        middle = 0.5 * (low + lift)
        if holds(middle):
            lift = middle
        else:
            low = middle
    return lift


def largest_eigenvalue(matrix: FloatArray) -> float:
    """Return an upper bound on the largest eigenvalue of a symmetric matrix, sharp up to rounding."""
    n = len(matrix)
    sums = up(np.abs(matrix).sum(axis=1), n)
    most = float(sums.max())
    near = float(np.linalg.eigvalsh(matrix)[-1])
    lift = least_lift(lambda share: dominates(np.full(n, near + share * most), matrix), 4 * n * UNIT, 1.0)
    return most if lift is None else min(near + lift * most, most)


def smallest_eigenvalue(matrix: FloatArray) -> float:
    """Return a lower bound on the smallest eigenvalue of a symmetric matrix, 0 where none is proved positive."""
    n = len(matrix)
    near = float(np.linalg.eigvalsh(matrix)[0])
    if near <= 0.0:
        return 0.0
    lift = least_lift(lambda share: dominates(np.full(n, -near * (1.0 - share)), -matrix), 1e-9, 1.0)
    return 0.0 if lift is None else near * (1.0 - lift)
