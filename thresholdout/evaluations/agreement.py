"""Agreement of two judges on the same answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from thresholdout.evaluations.difference import interval
from thresholdout.evaluations.pairing import pair
from thresholdout.evaluations.scores import Scores
from thresholdout.limits.binomial import binomial_lower, binomial_upper

__all__ = ["Agreement", "agreement"]

_SAME: Final = 1e-9  # scores mapped to [0, 1] are equal up to rounding
_TAIL: Final = math.log(0.025)  # each side of a 95 % interval


@dataclass(frozen=True, slots=True)
class Agreement:
    """Result of `agreement`: how often two judges give the same score, and how far their means differ.

    Attributes
    ----------
    items : int
        Number of items that both judges scored.
    share : float
        Share of these items to which both judges gave the same score, in [0, 1].
    low, high : float
        Ends of the 95 % interval of the share: exact for independent items, under a normal approximation with clusters.
    exact : bool
        Whether the interval of the share is exact.
    difference : float
        Mean score of the second judge minus that of the first, as a fraction of the range of scores.
    difference_low, difference_high : float
        Ends of the 95 % interval of the difference under a normal approximation.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import agreement, read
    >>> frame = pd.DataFrame({"id": range(50), "strict": [1, 0] * 25, "mild": [1, 0] * 20 + [1] * 10})
    >>> found = agreement(read(frame, "strict"), read(frame, "mild"))
    >>> found.share, round(found.low, 3), round(found.high, 3), found.difference
    (0.9, 0.782, 0.967, 0.1)
    """

    items: int
    share: float
    low: float
    high: float
    exact: bool
    difference: float
    difference_low: float
    difference_high: float


def agreement(first: Scores, second: Scores, *, allow_missing: float = 1.0) -> Agreement:
    """Estimate how often two judges give the same score to the same answers.

    A judge is a metric that scores answers, such as a model or a person. Use this function before you replace a judge,
    or to compare a model that judges with people.

    Parameters
    ----------
    first, second : Scores
        Scores of the same answers by two metrics with one range, from `read`.
    allow_missing : float, default 1
        Maximum percentage (0 to 100) of items, and of samples of each judge, that may lack a score.

    Returns
    -------
    Agreement
        Its `share` is the share of equal scores, with the interval from `low` to `high`; its `difference` is that of
        the judges' means.

    Examples
    --------
    >>> import pandas as pd
    >>> from thresholdout.evaluations import read
    >>> frame = pd.DataFrame({"id": range(50), "a": [1, 0] * 25, "b": [1, 0] * 25})
    >>> agreement(read(frame, "a"), read(frame, "b")).share
    1.0
    """
    ours, theirs = (replace(run, name=f"judge {run.metric}", metric=first.metric, judge="") for run in (first, second))
    pairs = pair(ours, theirs, allow_missing)
    same = np.abs(pairs.differences) <= _SAME
    count, n = int(np.count_nonzero(same)), same.size
    low, high = binomial_lower(count, n, _TAIL), binomial_upper(count, n, _TAIL)
    if pairs.clustered:
        low, high = interval(replace(pairs, differences=same.astype(float)))
    return Agreement(n, count / n, max(0.0, low), high, not pairs.clustered, pairs.mean, *interval(pairs))
