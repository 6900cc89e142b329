"""Exact limits for the mean of independent records that are 0 or 1, of one law or of different laws.

For one law the number of ones is Bin(n, p), and the one-sided Clopper-Pearson limits are exact. Different laws with
mean p have smaller tails than Bin(n, p) from ``k >= n p + 1`` on (Hoeffding 1956, Theorem 5) and not before: with two
records, p = (2p, 0), at least one is 1 with probability 2p, more than 2p - p^2. So a limit is taken from the binomial
law only where this holds; for ``k = 1`` from the union bound ``P(S >= 1) <= n p``; and from relative entropy elsewhere
(at levels above a quarter, and below the smallest float). Every limit here is therefore valid for any laws, and for one
law it is the Clopper-Pearson limit except at ``k = 1``.

A limit is the answer to a query about one fixed k: the largest p at which ``P(S >= k)`` is at most the level for
every choice of laws with mean at most p. So the best of several bounds may be taken.

Tails of the binomial law itself, for records of one law: the sign test, and the limits for a win rate.

`thresholdout.limits.binomial` has bounds that hold for different laws too. Given the number K of records on which
exactly one of two models is right, the wins of one of them are Bin(K, theta) if the records are independent and have
one law; the bounds here are about that law only, also below ``k = K theta + 1``.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any, Final

from graphs.numerics.rounding import UNIT
from thresholdout.limits.entropy import coin_divergence, entropy_lower

__all__ = ["beta_functions", "binomial_lower", "binomial_upper", "log_binomial_tail", "log_one_law_tail"]

_SMALLEST: Final = -650.0  # logarithm of the smallest level at which the incomplete beta function is used
_SHRINK: Final = 1.0 - 1e-9  # moves the tail by 1e-9 and more; the incomplete beta function is off by 1e-12
_SLACK: Final = 1e-10  # and in proportion to the number of records from ten million on
_MANY: Final = 1e7


@cache
def beta_functions() -> tuple[Any, Any]:
    """Return the regularised incomplete beta function and its inverse, of scipy, which is loaded when they are used."""
    from scipy.special import betainc, betaincinv

    return betainc, betaincinv


@lru_cache(maxsize=16)  # a limit is checked with it, and then weighed against noise
def log_binomial_tail(k: int, n: int, p: float) -> float:
    """Bound ``ln P(S >= k)`` for n independent records with mean p, of any laws; rounded up.

    Parameters
    ----------
    k : int
        From 0 to n + 1.
    n : int
        Number of records.
    p : float
        In [0, 1].

    Returns
    -------
    float
        At most 0; ``-inf`` for k = n + 1.

    Examples
    --------
    >>> import math
    >>> round(math.exp(log_binomial_tail(3, 10, 0.1)), 6)  # 1 - 0.9^10 - 10 0.1 0.9^9 - 45 0.01 0.9^8
    0.070191
    >>> round(math.exp(log_binomial_tail(1, 10, 0.02)), 6)  # one record may be 1 with probability 0.2
    0.2
    """
    if k <= 0 or p >= 1.0:
        return 0.0
    if k > n:
        return -math.inf
    if p <= 0.0:
        return -math.inf
    mean = n * p
    if k < mean + 1.0 + 1e-9:
        union = math.log(mean) + _SLACK if k == 1 else 0.0
        return min(0.0, union)
    betainc, _ = beta_functions()
    tail = float(betainc(k, n - k + 1, p))
    if tail > 1e-280:
        return min(0.0, math.log(tail) + _SLACK * max(1.0, n / _MANY))
    return min(0.0, -n * coin_divergence(k / n, p) * (1.0 - 1e-9))


def binomial_lower(k: int, n: int, log_level: float) -> float:
    """Return the lower limit for the mean of the records' expectations, given that k of n are 1.

    Parameters
    ----------
    k, n : int
        Ones, and records.
    log_level : float
        Natural logarithm of the one-sided probability of failure; at most 0.

    Returns
    -------
    float
        In [0, 1], rounded down.

    Examples
    --------
    >>> import math
    >>> round(binomial_lower(950, 1000, math.log(0.025)), 5)
    0.93461
    >>> binomial_lower(0, 1000, -3.0), binomial_lower(1, 1000, math.log(0.01))
    (0.0, 9.999...e-06)
    """
    if k <= 0:
        return 0.0
    if log_level >= _SMALLEST:
        _, betaincinv = beta_functions()
        level, farthest = math.exp(log_level), (k - 1.0 - 1e-5) / n  # Hoeffding's theorem reaches no farther
        p = level / n if k == 1 else float(betaincinv(k, n - k + 1, level))
        whole = k > 1 and p <= farthest
        p = _SHRINK * (p if whole or k == 1 else farthest)
        if log_binomial_tail(k, n, p) <= log_level:
            return p if whole else max(p, entropy_lower(k / n, n, log_level))
    return entropy_lower(k / n, n, log_level)


def binomial_upper(k: int, n: int, log_level: float) -> float:
    """Return the upper limit, the mirror of `binomial_lower`.

    Examples
    --------
    >>> import math
    >>> round(binomial_upper(950, 1000, math.log(0.025)), 5)
    0.96266
    """
    return 1.0 if k >= n else min(1.0, 1.0 - binomial_lower(n - k, n, log_level) + UNIT)


_SMALLEST_LEVEL: Final = 1e-280  # tails below are bounded by relative entropy
_LAW_SLACK: Final = 1e-10  # the incomplete beta function is off by 1e-12


def log_one_law_tail(k: int, n: int, p: float) -> float:
    """Return ``ln P(Bin(n, p) >= k)``, rounded up.

    Parameters
    ----------
    k : int
        From 0 to n + 1.
    n : int
        Number of records, not negative.
    p : float
        In [0, 1].

    Returns
    -------
    float
        At most 0; ``-inf`` where the probability is 0.

    Examples
    --------
    >>> import math
    >>> round(math.exp(log_one_law_tail(4, 5, 0.5)), 8)  # (5 + 1) / 32
    0.1875
    >>> log_one_law_tail(0, 0, 0.5), log_one_law_tail(1, 0, 0.5)
    (0.0, -inf)
    """
    if k <= 0:
        return 0.0
    if k > n or p <= 0.0:
        return -math.inf
    if p >= 1.0:
        return 0.0
    from scipy.special import betainc

    tail = float(betainc(k, n - k + 1, p))
    if tail > _SMALLEST_LEVEL:
        return min(0.0, math.log(tail) + _LAW_SLACK)
    return min(0.0, -n * coin_divergence(k / n, p) * (1.0 - 1e-9)) if k > n * p else 0.0
