"""Dependency graphs once some records are known: paths through known records join the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import IntArray

__all__ = ["joined_edges"]


def joined_edges(edges: IntArray, known: npt.NDArray[np.bool_], most: int) -> IntArray | None:
    """Return the edges between unknown records, and those that paths with known interior add.

    Parameters
    ----------
    edges : ndarray of shape (E, 2)
        The two records of each edge.
    known : ndarray of bool, shape (n,)
        Which records are known.
    most : int
        Largest number of pairs that paths may join.

    Returns
    -------
    ndarray of shape (F, 2), or None
        Numbers among the unknown records, the smaller first, each pair once, in order; None beyond `most`.

    Examples
    --------
    >>> path = np.array([[0, 1], [1, 2], [2, 3]])
    >>> joined_edges(path, np.array([False, True, True, False]), 100).tolist()
    [[0, 1]]
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n, ends = len(known), known[edges]
    inside = edges[ends.all(axis=1)]
    matrix = sparse.coo_array((np.ones(len(inside), dtype=np.int8), (inside[:, 0], inside[:, 1])), shape=(n, n))
    cluster = connected_components(matrix, directed=False)[1].astype(np.int64)
    border = edges[ends.sum(axis=1) == 1]
    stop = np.where(known[border[:, 0]], border[:, 0], border[:, 1])
    outer = border.sum(axis=1) - stop
    pairs = np.unique(cluster[stop] * n + outer)
    counts = np.bincount(pairs // n, minlength=1)
    if float((counts.astype(np.float64) * (counts - 1) / 2).sum()) > most:
        return None
    # each pair of a cluster with all that follow it there
    starts = np.r_[0, np.cumsum(counts)][pairs // n]
    follow = counts[pairs // n] - (np.arange(len(pairs)) - starts) - 1
    first = np.repeat(np.arange(len(pairs)), follow)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(follow) - follow, follow)
    found = np.stack([pairs[first] % n, pairs[second] % n], axis=1)
    number = np.cumsum(~known) - 1
    both = np.sort(number[np.concatenate([edges[~ends.any(axis=1)], found])], axis=1)
    left = max(int((~known).sum()), 1)
    keys = np.unique(both[:, 0] * left + both[:, 1])
    return np.stack([keys // left, keys % left], axis=1).astype(np.int64)
