"""What the width of a statistic's answer shows of the holdout's labels, as a code length."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from thresholdout.statistics.statistic import Statistic

__all__ = ["count_nats", "disclosure_nats"]

_OTHERWISE = 2.0**-20  # share of the code for holdouts that have other classes than the training part


def disclosure_nats(statistic: Statistic, train: Any, holdout: Any) -> float:
    """Return the code length of what a statistic's spread shows: the number of holdout records of each class.

    Parameters
    ----------
    statistic : Statistic
        Its ``counts`` say what matters.
    train, holdout : array-like
        Labels of both parts.

    Returns
    -------
    float
        Nats; 0 where classes do not matter.

    Examples
    --------
    >>> from thresholdout.statistics import r2, roc_auc
    >>> disclosure_nats(r2(), [0.0, 1.0], [0.25, 0.5])
    0.0
    """
    there = np.asarray(holdout)
    counts = statistic.counts(there)
    if counts.size < 2:
        return 0.0
    known = np.asarray(train)
    if np.array_equal(np.unique(known), np.unique(there)):
        return count_nats(statistic.counts(known).tolist(), counts.tolist()) - math.log1p(-_OTHERWISE)
    classes = counts.size
    return -math.log(_OTHERWISE) + classes * math.log(2.0) + count_nats([0] * classes, counts.tolist())


def count_nats(before: list[int], counts: list[int]) -> float:
    """Return ``-ln q(counts)``, q the Dirichlet-multinomial law with the weights ``before + 1``; rounded up.

    It is a law on the vectors of counts with their sum, so ``exp(-nats)`` sums to 1 over all of them.

    Parameters
    ----------
    before, counts : list of int
        Records of each class in the training part, and in the holdout.

    Examples
    --------
    >>> round(count_nats([500, 500], [480, 520]), 2)
    4.43
    >>> round(sum(math.exp(-count_nats([3, 1], [k, 5 - k])) for k in range(6)), 9)
    1.0
    """
    total, weight = sum(counts), sum(before) + len(before)
    exact = math.lgamma(total + weight) - math.lgamma(weight) - math.lgamma(total + 1)
    for earlier, count in zip(before, counts, strict=True):
        exact -= math.lgamma(count + earlier + 1) - math.lgamma(earlier + 1) - math.lgamma(count + 1)
    return max(0.0, exact) + 1e-13 * (total + weight)
