"""Tails of the binomial law itself, for records of one law: the sign test, and the limits for a share of wins.

`thresholdout.limits.binomial` has bounds that hold for different laws too. Given the number K of records on which
exactly one of two models is right, the wins of one of them are Bin(K, theta) if the records are independent and have
one law; the bounds here are about that law only, also below ``k = K theta + 1``.
"""

from __future__ import annotations

import math
from typing import Final

from thresholdout.limits.entropy import coin_divergence

__all__ = ["log_one_law_tail"]

_SMALLEST: Final = 1e-280  # tails below are bounded by relative entropy
_SLACK: Final = 1e-10  # the incomplete beta function is off by 1e-12


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
    if tail > _SMALLEST:
        return min(0.0, math.log(tail) + _SLACK)
    return min(0.0, -n * coin_divergence(k / n, p) * (1.0 - 1e-9)) if k > n * p else 0.0
