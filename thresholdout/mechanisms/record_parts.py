"""Parts of the records: fixed, public, and the same on every platform."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresholdout.errors import InputError

__all__ = ["equal_groups", "group_numbers", "shuffled"]


def shuffled(count: int) -> NDArray[np.intp]:
    """Return the numbers ``0, ..., count - 1`` in a fixed order that looks random.

    Parts that are taken from this order have nothing to do with the order of the records: data that are sorted by
    class or time, or alternate, fall into all parts alike. Nothing that is guaranteed rests on it.

    Parameters
    ----------
    count : int
        How many, at least 0.

    Notes
    -----
    The numbers are sorted by a hash of theirs, the finaliser of splitmix64 (Steele, Lea and Flood 2014), so the order
    does not depend on versions or platforms.

    Examples
    --------
    >>> shuffled(6).tolist()
    [2, 4, 5, 1, 0, 3]
    """
    keys = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(keys ^ (keys >> np.uint64(31)), kind="stable")


def equal_groups(labels: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return for each record the number of its group, when all groups have the same size.

    Parts of unequal groups are refused: sizes are public, and what is asked may depend on them. Large groups may follow
    another law than small ones, and no rule puts both into every part in the same proportion as into the whole.

    Raises
    ------
    InputError
        Unless there is one label for each of the n records, and as many records of each label.

    Examples
    --------
    >>> equal_groups(["b", "a", "b", "a"], 4).tolist()
    [0, 1, 0, 1]
    """
    groups = group_numbers(labels, n)
    sizes = np.bincount(groups)
    if sizes.min() != sizes.max():
        seen = f"groups of {sizes.min()} to {sizes.max()} records, for a mechanism that answers from a part of them"
        raise InputError(
            "labels",
            seen,
            "groups of one size: those of one part are no sample of unequal ones, since what is asked may depend on "
            "sizes. mechanism='claims' answers about all records",
        )
    return groups


def group_numbers(labels: ArrayLike, n: int) -> NDArray[np.intp]:
    """Return for each record the number of its group, from 0 in order of their first records.

    Raises
    ------
    InputError
        Unless there is one label for each of the n records.

    Examples
    --------
    >>> group_numbers(["b", "a", "b"], 3).tolist()
    [0, 1, 0]
    """
    array = np.asarray(labels)
    if array.shape != (n,):
        raise InputError("labels", f"an array of shape {array.shape}", f"one label per record, shape ({n},)")
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    ranks = np.empty(first.size, dtype=np.intp)
    ranks[np.argsort(first)] = np.arange(first.size)
    return ranks[inverse]
