"""The bounds of Wang, Balle and Kasiviswanathan (2019) for batches without replacement, for comparison."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    like,
    orders,
    rate,
    sigma_of,
)
from thresholdout.privacy.accounting.minibatches.moments import choose, interpolate, neighbours
from thresholdout.privacy.accounting.minibatches.quadrature import log_sum

__all__ = ["rdp_wang", "wang_upper"]


def rdp_wang(alpha: Orders, sigma: float, q: float, *, bound: str = "upper", variant: str = "paper") -> Any:
    """Return the bounds of Wang et al. (2019) on one step without replacement, under replace-one.

    Parameters
    ----------
    alpha : float or array of shape (k,)
        Orders above 1; integers of at least 2 for the lower bound.
    sigma, q : float
        As in `rdp_fswor`.
    bound : {"upper", "lower"}
    variant : {"paper", "min"}
        The term of order two as [B24, App. E] keeps it, or with the minimum of the original Theorem 9.

    Returns
    -------
    float or ndarray of shape (k,)

    Raises
    ------
    InputError
        For arguments out of range, and for a lower bound at an order that is no integer.

    Notes
    -----
    The lower bound is the binomial sum of the exact add/remove value.

    Examples
    --------
    >>> f"{rdp_wang(10, 6, 0.0024):.6e} {rdp_wang(10, 6, 0.0024, bound='lower'):.6e}"
    '1.405482e-05 3.392488e-06'
    """
    found, noise, share = orders(alpha), sigma_of(sigma), rate(q, None, None)
    check_word("variant", variant, ("paper", "min"))
    if check_word("bound", bound, ("upper", "lower")) == "upper":
        return like(alpha, wang_upper(found, noise, share, variant=variant))
    if np.any(found != np.floor(found)):
        raise InputError("alpha", "an order that is no integer", "integers of at least 2 for the lower bound")
    return like(alpha, np.array([_lower(int(a), noise, share) / (a - 1) for a in found]))


def wang_upper(alpha: Floats, sigma: float, q: float, *, variant: str) -> Floats:
    """Return the upper bound, by linear interpolation of the cumulant function between integers."""
    return interpolate(alpha, {n: _cumulant(n, sigma, q, variant) for n in neighbours(alpha)})


@lru_cache(maxsize=1 << 13)  # schedules ask for the same integers again and again
def _cumulant(n: int, sigma: float, q: float, variant: str) -> float:
    s = 1.0 / sigma**2
    j = np.arange(3, n + 1)
    logs = math.log(2) + j * math.log(q) + choose(n)[3:] + 2 * j * (j - 1.0) * s
    second = 4 * s + math.log(-math.expm1(-4 * s)) + math.log(4)
    if variant == "min":
        second = min(second, math.log(2) + 4 * s)
    logs = np.append(logs, 2 * math.log(q) + math.log(0.5 * n * (n - 1)) + second)
    slack = 16 * ULP * (math.lgamma(n + 2) + float(np.abs(logs).max()) + n * abs(math.log(q)))
    return float(np.logaddexp(0.0, log_sum(logs) + slack))


def _lower(n: int, sigma: float, q: float) -> float:
    j = np.arange(2, n + 1)
    excess = choose(n)[2:] + j * math.log(q) + (n - j) * math.log1p(-q)
    exponent = 2 * j * (j - 1.0) / sigma**2
    logs = excess + np.where(exponent < 600, np.log(np.expm1(np.minimum(exponent, 600.0))), exponent)
    slack = 16 * ULP * (math.lgamma(n + 2) + float(np.abs(logs).max()) + n * abs(math.log(q)))
    return float(np.logaddexp(0.0, log_sum(logs) - slack)) * (1 - 8 * ULP)
