"""Diagonal matrices of small trace above a correlation matrix, proved."""

from __future__ import annotations

import math

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.definite import dominates, largest_eigenvalue, least_lift
from graphs.numerics.rounding import up

__all__ = ["dominating_diagonal"]

#: Passes of the search for a diagonal of small trace, and how much of the last pass's move the next one starts with.
PASSES = 60
MOMENTUM = 0.8

#: Share of its mean by which such a diagonal is lifted at least.
LEAST_LIFT = 1e-6


def dominating_diagonal(matrix: FloatArray) -> FloatArray:
    """Return the diagonal of a matrix P of small trace for which P - R is proved to be positive semidefinite.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        A correlation matrix R.

    Notes
    -----
    The row sums of absolute values will do (diagonal dominance), and where no entry is negative, or only the signs of
    some values differ, no trace is smaller: the trace is at least ``sum R_ij v_i v_j`` for signs v. Elsewhere the dual
    problem, the largest ``sum R_ij <v_i, v_j>`` over unit vectors, is climbed (each pass turns v_i towards
    ``sum_j R_ij v_j``, whose length becomes p_i), and p is lifted until a factorisation proves it.

    Examples
    --------
    >>> dominating_diagonal(np.array([[1.0, 0.5], [0.5, 1.0]])).round(9)
    array([1.5, 1.5])
    """
    n = len(matrix)
    rows: FloatArray = up(np.abs(matrix).sum(axis=1), n)
    if (matrix >= 0.0).all():
        return rows
    largest = largest_eigenvalue(matrix)
    best = rows if float(rows.sum()) <= largest * n else np.full(n, largest)
    lengths = _climbed(matrix)
    mean = float(lengths.mean())
    if mean * n >= float(best.sum()):
        return best
    lift = least_lift(lambda more: dominates(lengths + more, matrix), LEAST_LIFT * mean, largest)
    if lift is None:
        return best
    found = np.maximum(lengths + lift, 1.0)
    return found if float(found.sum()) < float(best.sum()) else best


def _climbed(matrix: FloatArray) -> FloatArray:
    """Return the lengths of ``sum_j R_ij v_j`` for unit vectors v whose sum of products is large."""
    n = len(matrix)
    vectors: FloatArray = np.random.default_rng(0).standard_normal((n, min(n, math.isqrt(2 * n) + 2)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    before = vectors
    for _ in range(PASSES):
        moved = matrix @ (vectors + MOMENTUM * (vectors - before))
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        before, vectors = vectors, moved / np.maximum(lengths, np.finfo(np.float64).tiny)
    return np.asarray(np.linalg.norm(matrix @ vectors, axis=1), dtype=np.float64)
