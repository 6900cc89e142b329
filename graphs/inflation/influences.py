"""Variance inflation of means from influences that hold under every field.

A *field* multiplies a law by a function of each single record and normalises. Let J_ij bound, under every field, the
total variation distance between the laws of record j given two values of record i. Then (1/n) sum of J_ij is a variance
inflation for means, and n / p a number of effective records, p the spectral radius of J; both survive evidence. Proofs:
`graphs/PROOFS.md`, section on influences.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np

from graphs.numerics.arguments import FloatArray
from graphs.numerics.rounding import UNIT, up

__all__ = ["chain_influences", "passed_on", "spectral_radius"]

#: Steps of the power method, from all ones and from a vector that is close.
STEPS, FEW = 32, 6

#: Most records for which the spectral radius is looked for; with more, the largest row sum is as good.
MOST = 2_000


def chain_influences(contractions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sums over j of J_ij w_j along a chain, J_ij the product of the contractions between i and j.

    Parameters
    ----------
    contractions : ndarray of shape (n - 1,)
        Of the edge from record i to record i + 1, between 0 and 1; 0 where nothing passes.
    weights : ndarray of shape (n,)
        Not negative.

    Returns
    -------
    ndarray of shape (n,)
        Rounded up.

    Examples
    --------
    >>> chain_influences(np.array([0.5, 0.5]), np.ones(3)).round(9)
    array([1.75, 2.  , 1.75])
    """
    after = passed_on(contractions[::-1], weights[::-1])[::-1]
    before = passed_on(contractions, weights)
    found: FloatArray = up(after + np.r_[0.0, contractions * before[:-1]], 4)
    return found


def passed_on(contractions: FloatArray, weights: FloatArray) -> FloatArray:
    """Return S with S_0 = w_0 and S_i = w_i + t_{i-1} S_{i-1}, rounded up.

    Examples
    --------
    >>> passed_on(np.array([0.5, 0.5]), np.ones(3)).round(9)
    array([1.  , 1.5 , 1.75])
    """
    grow = 1 + 4 * UNIT
    steps = zip(contractions.tolist(), weights[1:].tolist(), strict=True)
    found = accumulate(steps, lambda sums, step: (sums * step[0] + step[1]) * grow, initial=float(weights[0]))
    return np.fromiter(found, dtype=np.float64, count=len(weights))


def spectral_radius(
    influences: Callable[[FloatArray], FloatArray | None], n: int, start: FloatArray | None = None
) -> float | None:
    """Return an upper bound on the spectral radius of a matrix J with positive diagonal and no negative entries.

    Parameters
    ----------
    influences : callable
        From a positive vector v to J v, rounded up; to None when nothing is known of J.
    n : int
        Number of rows.
    start : ndarray of shape (n,), optional
        A positive vector close to the eigenvector; all ones when left out.

    Returns
    -------
    float or None
        None when nothing is known of J.

    Notes
    -----
    The spectral radius is at most the largest (J v)_i / v_i, for every positive v [Collatz, Wielandt]; the power method
    improves v.

    Examples
    --------
    >>> spectral_radius(lambda v: np.array([[1, 0.5], [0.5, 1]]) @ v, 2) - 1.5 < 1e-9
    True
    """
    vector, found = np.ones(n) if start is None else start, float("inf")
    for _ in range((STEPS if start is None else FEW) if n <= MOST else 1):
        moved = influences(vector)
        if moved is None:
            return None
        found = min(found, up(float((moved / vector).max()), 2))
        vector = moved / float(moved.max())
    return found
