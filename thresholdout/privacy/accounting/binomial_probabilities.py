"""Binomial probabilities with a known relative error, and the deviance in their exponents."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import TINY, count, open_unit, tail_slack

__all__ = [
    "Window",
    "approximate_limits",
    "approximate_upper",
    "check_successes",
    "clopper_pearson_upper",
    "deviance",
    "logistic",
    "window",
]

Floats = NDArray[np.float64]

_SMALL_STIRLING = 16  # below, the error of Stirling's formula comes from a table
# Stirling's series after 1/12, from the highest power on; from 16 on the first term left out is below 1e-17.
_STIRLING = (43867 / 244188, -3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360)
_REACH = 375.0  # Hoeffding: outside of sqrt(375 T) around the mean there is at most 2 exp(-750) < 1e-325


def logistic(x: float) -> tuple[float, float]:
    """Return ``e^x/(1+e^x)`` and ``1/(1+e^x)``, each with a small relative error."""
    small = math.exp(-abs(x))
    large = 1.0 / (1.0 + small)
    return (large, small * large) if x >= 0 else (small * large, large)


def deviance(x: Floats | float, mean: float) -> Floats:
    """Return ``x log(x/mean) + mean - x`` with a small error also near the mean; `mean` above 0, x at least 0.

    Notes
    -----
    [Loader, Fast and Accurate Computation of Binomial Probabilities, 2000]: with v = (x-m)/(x+m), log(x/m) = 2 atanh v,
    and the deviance is (x-m) v + 2 x (v^3/3 + v^5/5 + ...).

    Examples
    --------
    >>> round(float(deviance(3.0, 2.0)), 10)
    0.2163953243
    """
    x = np.array(x, dtype=np.float64)
    gap = x - mean
    v = gap / (x + mean)
    square = v * v
    series = np.zeros_like(v)
    for odd in range(23, 1, -2):  # |v| < 0.1: the terms left out are below 1e-24 of the first one
        series = (series + 1.0 / odd) * square
    near = gap * v + 2.0 * x * v * series
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.where(x > 0, x, mean) / mean
        log = np.where(np.isfinite(quotient), np.log(quotient), np.log(np.where(x > 0, x, 1.0)) - math.log(mean))
    found: Floats = np.where(np.abs(v) < 0.1, near, np.maximum(x * log + (mean - x), 0.0))
    return found


def _stirling_error(n: Floats) -> Floats:
    """Return ``log n! - log(sqrt(2 pi n) (n/e)^n)``; n at least 1."""
    inverse = 1.0 / (n * n)
    series = np.zeros_like(n)
    for coefficient in _STIRLING:
        series = (series + coefficient) * inverse
    large = (series + 1.0 / 12.0) / n
    small = np.minimum(n, _SMALL_STIRLING).astype(np.int64)
    return np.where(n >= _SMALL_STIRLING, large, _TABLE[small])


def _table_entry(n: int) -> float:
    return math.lgamma(n + 1.0) - (0.5 * math.log(2 * math.pi * n) + n * math.log(n) - n)


_TABLE = np.array([0.0, *map(_table_entry, range(1, _SMALL_STIRLING + 1))])


class Window(NamedTuple):
    """Probabilities of `first`, `first + 1`, ... successes, within a relative error of `tail_slack`.

    Masses below 1e-300 may be 0. The numbers of successes left out, if it is not `complete`, have a probability below
    1e-300.
    """

    first: int
    masses: Floats
    complete: bool


def window(trials: int, success: float, failure: float) -> Window:
    """Return the binomial probabilities within Hoeffding's reach of the mean."""
    reach = math.sqrt(_REACH * trials) + 2.0  # two more, for the rounding of the mean to whole numbers
    first = max(0, math.floor(trials * success - reach))
    last = min(trials, math.ceil(trials * success + reach))
    k = np.arange(first, last + 1, dtype=np.float64)
    rest = trials - k
    complete = first == 0 and last == trials
    if success == 0.0 or failure == 0.0:
        return Window(first, (k == (0 if success == 0.0 else trials)).astype(np.float64), complete)
    inner = (k > 0) & (rest > 0)
    a, b = np.where(inner, k, 1.0), np.where(inner, rest, 1.0)
    # Loader's saddle-point form: the exponent is small near the mean and has no cancellation (PROOFS.md, A2).
    exponent = -deviance(k, trials * success) - deviance(rest, trials * failure)
    size = np.array([float(trials)])
    exponent += np.where(inner, _stirling_error(size)[0] - _stirling_error(a) - _stirling_error(b), 0.0)
    with np.errstate(under="ignore"):
        masses = np.exp(exponent) * np.where(inner, np.sqrt(trials / a / b / (2.0 * math.pi)), 1.0)
    return Window(first, masses, complete)


def check_successes(k: object, n: object, name: str = "k", total: str = "n") -> tuple[int, int]:
    """Check a number of events and of trials."""
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

    Notes
    -----
    It is the quantile at 1 - alpha of a Beta(k + 1, n - k) law [Clopper and Pearson, Biometrika 26 (1934)]. The
    library's quantile is a guess, which moves up until the binomial tail, with a proved bound on its rounding error, is
    at most alpha (PROOFS.md, L1).
    """
    events, trials = check_successes(k, n)
    level = open_unit(alpha, "alpha")
    if events == trials:
        return 1.0
    guess = float(special.betainccinv(events + 1.0, float(trials - events), level))
    move = 1e-14  # doubled until the tail is proved small: the accuracy of the guess does not matter
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
    """Return `approximate_upper` after 0, 1, ..., n events, made nondecreasing; read only."""
    found = np.maximum.accumulate(approximate_upper(np.arange(n + 1), n, alpha))
    found.setflags(write=False)
    return found
