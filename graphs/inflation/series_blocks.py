"""Variance inflation of series, revealed block after block.

Let t_k bound the total variation distance between the laws of all that comes k records or more after a past, given two
such pasts. A block of B records changes the expectation of a statistic with bounded differences by B + t_1 + t_2 + ...
of them at most; proofs in `graphs/PROOFS.md`, section on mixing.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["block_inflation", "even_block_inflation", "uneven_block_inflation"]


def block_inflation(steps: FloatArray, beyond: float, n: int) -> float:
    """Return the variance inflation of n records with equal blocks of the best length, rounded up.

    Parameters
    ----------
    steps : ndarray of shape (K,)
        t_1, t_2, ..., t_K, rounded up.
    beyond : float
        Sum of t_k over k above K, rounded up, possibly infinite.
    n : int
        Number of records.

    Returns
    -------
    float
        The smallest, over the lengths B that are tried, of the sum over blocks of ``(B + t_1 + ... + t_R)^2 / n``, R
        the records that follow the block: about 4 S where S, the sum of all t_k, is above 1, and (1 + S)^2 below.

    Examples
    --------
    >>> round(block_inflation(np.array([0.5, 0.25]), 0.25, 10**6), 3), round(block_inflation(np.ones(9), 0, 10**6), 3)
    (4.0, 36.0)
    """
    sums = np.r_[0.0, np.cumsum(steps[: n - 1])]
    sums[1:] = up(sums[1:], len(sums))
    whole = float(sums[-1]) + (beyond if len(sums) < n else 0.0)
    lengths = {1, n}
    if whole < n:
        lengths |= {max(1, math.floor(whole)), math.ceil(whole) or 1}
    return min(_with_blocks(length, sums, whole, n) for length in sorted(lengths))


def _with_blocks(length: int, sums: FloatArray, whole: float, n: int) -> float:
    """Return the inflation with blocks of this length, the last one possibly shorter."""
    full = (n - 1) // length  # blocks that others follow
    last = n - full * length
    near = min(full, (len(sums) - 1) // length + 1)  # blocks whose future may be shorter than what is summed
    after = last + length * np.arange(near)
    moved = np.where(after < len(sums), sums[np.minimum(after, len(sums) - 1)], whole)
    total = float(((length + moved) ** 2).sum()) + float(last) ** 2
    if full > near:
        total += (full - near) * (length + whole) ** 2
    return up(total / n, near + 8)


def even_block_inflation(n: int, m: int) -> float:
    """Return the same for records that reach m places far, 0 < m, in blocks of m or m + 1, without arrays.

    Examples
    --------
    >>> round(even_block_inflation(10**9, 9), 6)
    36.0
    """
    totals = [n**2]
    for length in (m, m + 1):
        full = (n - 1) // length
        last = n - full * length
        before = (length + min(m, last)) ** 2 + (full - 1) * (length + m) ** 2 if full else 0
        totals.append(before + last**2)
    return min(up(min(totals) / n, 1), float(n))


def uneven_block_inflation(last: IntArray) -> float:
    """Return the same for records that depend on each other up to a last one each, which differs from record to record.

    Parameters
    ----------
    last : ndarray of shape (n,)
        The last record on which each may depend, not decreasing and not before the record itself.

    Examples
    --------
    A pair and three single records:

    >>> round(uneven_block_inflation(np.array([1, 1, 2, 3, 4])), 6)
    1.4
    """
    reach, total, start = last.tolist(), 0, 0
    while start < len(reach):
        end = reach[start]
        total += (reach[end] - start + 1) ** 2
        start = end + 1
    return up(float(total) / len(reach), 2)
