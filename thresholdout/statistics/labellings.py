"""The worst case over all labellings of groups with public numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["largest_squares"]


def largest_squares(weights: NDArray[np.float64], counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Return the largest sum over groups of the squares of their weights, over all labellings.

    Parameters
    ----------
    weights : ndarray of shape (C,)
        Weight of a record of each class, not negative.
    counts : ndarray of shape (C,)
        Number of records of each class.
    sizes : ndarray of shape (G,)
        Sizes of the groups; they have the same sum as the counts.

    Notes
    -----
    It is attained where the largest groups have the heaviest records: whatever the labelling, no j groups weigh more
    than the heaviest records that fit into the j largest groups, so its weights are majorised by those of this one
    (PROOFS.md, S2).

    Examples
    --------
    >>> largest_squares(np.array([1.0, 2.0]), np.array([3, 2]), np.array([1, 3, 1]))
    27.0
    """
    heaviest = np.argsort(-weights, kind="stable")
    of_classes, of_groups = np.cumsum(counts[heaviest]), np.cumsum(np.sort(sizes)[::-1])
    ends = np.union1d(of_classes, of_groups)
    pieces = np.diff(ends, prepend=0) * weights[heaviest][of_classes.searchsorted(ends)]
    return float(np.sum(np.bincount(of_groups.searchsorted(ends), weights=pieces) ** 2))
