"""Exact confidence limits of probabilities, rounded to the safe side."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.binomial_probabilities import window
from thresholdout.privacy.accounting.bound_arguments import TINY, count, open_unit, tail_slack

__all__ = ["approximate_limits", "approximate_upper", "check_successes", "clopper_pearson_upper"]

Floats = NDArray[np.float64]


def check_successes(k: object, n: object, name: str = "k", total: str = "n") -> tuple[int, int]:
    """Return a number of events and of trials.

    Raises
    ------
    InputTypeError
        When one is no integer.
    InputError
        When there is no trial, a negative number of events, or more of them than trials.
    """
    trials = count(n, total)
    events = count(k, name, least=0)
    if events > trials:
        raise InputError(name, str(events), f"at most {total} = {trials}")
    return events, trials


def _at_most(k: int, n: int, p: float) -> float:
    """Return an upper bound on the probability of at most k events in n trials."""
    found = window(n, p, 1.0 - p)
    seen = found.masses[: max(0, k - found.first + 1)]
    return math.fsum(seen.tolist()) * (1.0 + tail_slack(n)) + TINY


def clopper_pearson_upper(k: int, n: int, alpha: float) -> float:
    """Return the upper confidence limit of a probability, after k events in n independent trials.

    Parameters
    ----------
    k : int
        Events, 0 to n.
    n : int
        Trials, 1 or more.
    alpha : float
        Probability with which the limit may be too low, in (0, 1).

    Returns
    -------
    float
        The largest probability under which k or fewer events have a probability above `alpha`; never below the exact
        one, in floating point too. It is 1 for k = n.

    Raises
    ------
    InputError, InputTypeError
        When k is no integer from 0 to n, there is no trial, or alpha is not in (0, 1).

    Notes
    -----
    The quantile at 1 - alpha of a Beta(k + 1, n - k) law [Clopper and Pearson, Biometrika 26 (1934)]. The library's
    quantile is a guess, which is moved up until the binomial tail, with a proved bound on its rounding error, is at
    most alpha (PROOFS.md, L1).

    Examples
    --------
    >>> round(clopper_pearson_upper(0, 250, 0.05), 12), clopper_pearson_upper(5, 5, 0.05)
    (0.011911419715, 1.0)
    """
    events, trials = check_successes(k, n)
    level = open_unit(alpha, "alpha")
    if events == trials:
        return 1.0
    guess = float(special.betainccinv(events + 1.0, float(trials - events), level))
    move = 1e-14
    found = guess
    while found < 1.0 and _at_most(events, trials, found) > level:
        found = max(math.nextafter(found, 1.0), guess * (1.0 + move))
        move *= 2.0
    return min(1.0, found)


def approximate_upper(k: NDArray[np.int64], n: int, alpha: float) -> Floats:
    """Return the limits after each of several numbers of events, in plain floating point: for comparisons only."""
    found = np.ones(k.shape)
    some = k < n
    events = k[some].astype(np.float64)
    found[some] = special.betainccinv(events + 1.0, n - events, alpha)
    return found


@lru_cache(maxsize=32)
def approximate_limits(n: int, alpha: float) -> Floats:
    """Return `approximate_upper` after 0, 1, ..., n events, made to never fall; read only."""
    found = np.maximum.accumulate(approximate_upper(np.arange(n + 1), n, alpha))
    found.setflags(write=False)
    return found
