"""Moments of the likelihood ratio of two normal laws, less 1, and bounds that are finite sums: ours and published."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    like,
    orders,
    rate,
    sigma_of,
)
from thresholdout.privacy.accounting.minibatches.quadrature import log_sum

__all__ = [
    "Moments",
    "binomial_moments",
    "choose",
    "interpolate",
    "neighbours",
    "rdp_wang",
    "taylor_moment",
    "taylor_moment_bound",
    "wang_upper",
]

Counts = NDArray[np.int64]

_STEP = 0.25  # the trapezoid rule's relative error is then below 2 exp(-60) for even moments (PROOFS.md, F6)

_REACH = 14.0  # standard deviations: the normal density beyond is below 1e-42

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

_ENTRIES = 1 << 19  # of a table of powers at all nodes: 4 MB

_TAIL = 45.0  # beyond, the moment is that of the ratio itself up to 1e-17


def taylor_moment(sigma: float, k: int, *, log: bool = False) -> float:
    """Return ``E[(L - 1)**k]`` or its logarithm, L the ratio of N(2/sigma, 1) to N(0, 1) [B24, (45)].

    Notes
    -----
    It is never computed as the alternating sum, which loses all digits at large noise. The moment is a polynomial in
    ``exp(4 / sigma**2) - 1`` with non-negative coefficients (PROOFS.md, F6). Even moments are computed by quadrature,
    odd ones by the same with the signs kept.
    """
    value = Moments(sigma_of(sigma)).log_signed(count(k, "k", least=0))
    return value if log else math.exp(value) if value < 709 else math.inf


def taylor_moment_bound(sigma: float, k: int, *, log: bool = False) -> float:
    """Return the bound of ``E|L - 1|**k`` [B24, (47)]: the moment, for odd k the geometric mean of its neighbours."""
    value = float(Moments(sigma_of(sigma)).log_bounds(count(k, "k", least=0))[k])
    return value if log else math.exp(value) if value < 709 else math.inf


class Moments:
    """Moments for the shift ``2 / sigma``, rounded up and cached."""

    def __init__(self, sigma: float) -> None:
        self.shift = math.nextafter(2.0 / sigma, math.inf)

    def log_bounds(self, top: int) -> Floats:
        """Return the logarithms of the bounds of the absolute moments 0, ..., top, rounded up."""
        size = 64
        while size < top + 2:
            size *= 2
        return (_few_log_bounds if size == 64 else _many_log_bounds)(self.shift, size)[: top + 1]

    def log_signed(self, k: int, side: int = 1) -> float:
        """Return the logarithm of the signed moment k, rounded up for side = 1 and down for -1."""
        if k < 2:
            return 0.0 if k == 0 else -math.inf
        return float(self.log_bounds(k)[k]) + (side - 1) * 1e-12 if k % 2 == 0 else _log_odd(self.shift, k, side)

    @staticmethod
    def log_factorial(values: Counts) -> Floats:
        """Return the logarithms of factorials of integers."""
        return _log_factorials(1 << max(64, int(values.max()) + 1).bit_length())[values]

    @classmethod
    def falling(cls, top: int, steps: Counts) -> Floats:
        """Return the logarithms of ``top! / (top - steps)!``."""
        logs: Floats = float(cls.log_factorial(np.array([top]))[0]) - cls.log_factorial(top - steps)
        return logs


@lru_cache(maxsize=8)
def _log_factorials(size: int) -> Floats:
    table = np.zeros(size)
    table[1:] = [math.lgamma(k + 1) for k in range(1, size)]
    table.flags.writeable = False
    return table


def _log_abs(exponent: Floats) -> Floats:
    """Return ``log|expm1(x)|``, without overflow."""
    with np.errstate(divide="ignore"):
        inner = np.log(np.abs(np.expm1(np.minimum(exponent, 600.0))))
    return np.where(exponent > 600.0, exponent, inner)


def _log_bounds(shift: float, size: int) -> Floats:
    """Return log-bounds of the absolute moments below `size` (even), from the even ones up to it."""
    a = shift
    ks = np.arange(0, size + 1, 2)
    logs = 0.5 * a * a * ks * (ks - 1.0)  # an upper bound of each, and sharp once the last factor is large
    sharp = (ks >= 2) & (a * a * (ks - 1) < _TAIL + np.log(np.maximum(ks, 1)))
    if sharp.any():
        top = int(ks[sharp][-1])
        nodes = np.arange(-math.ceil(_reach(top) / _STEP), math.ceil((a * top + _reach(top)) / _STEP)) * _STEP
        exponent: Floats = np.asarray(a * (nodes - 0.5 * a), dtype=np.float64)
        base = _log_abs(exponent)
        drift = 8 + 2 * np.abs(exponent)
        for rows in np.array_split(ks[sharp], math.ceil(int(sharp.sum()) * nodes.size / _ENTRIES)):
            values = rows[:, None] * base - 0.5 * nodes**2
            values += ULP * (20 + rows[:, None] * drift + np.abs(values))
            peak = values.max(axis=1)
            total = np.log(np.exp(values - peak[:, None]).sum(axis=1) * _STEP) - _HALF_LOG_2PI
            logs[rows // 2] = np.minimum(logs[rows // 2], peak + total + ULP * 8 * np.abs(peak) + 1e-14)
    bounds = np.empty(size)
    bounds[0::2] = logs[:-1]
    bounds[1::2] = 0.5 * (logs[:-1] + logs[1:])
    bounds[1] = 0.5 * logs[1]
    bounds *= 1 + np.sign(bounds) * 2 * ULP
    bounds.flags.writeable = False
    return bounds


_few_log_bounds = lru_cache(maxsize=4096)(_log_bounds)  # enough for a schedule of as many noises

_many_log_bounds = lru_cache(maxsize=64)(_log_bounds)


def _reach(k: int) -> float:
    """Return how far beyond 0 and the last shift nodes are needed for a power k of a factor that grows linearly."""
    return _REACH + 2.0 * math.sqrt(k)


@lru_cache(maxsize=256)
def _log_odd(shift: float, k: int, side: int) -> float:
    a, reach = shift, _reach(k)
    nodes = np.arange(-math.ceil(reach / _STEP), math.ceil((a * k + reach) / _STEP)) * _STEP
    exponent: Floats = np.asarray(a * (nodes - 0.5 * a), dtype=np.float64)
    logs = k * _log_abs(exponent) - 0.5 * nodes**2
    peak = float(logs.max())
    sizes = np.exp(logs - peak)
    # Odd moments may cancel: the rounding error is bounded by the sum of moduli.
    drift = ULP * float((sizes * (40 + k * (8 + 2 * np.abs(exponent)) + np.abs(logs))).sum())
    total = math.fsum((np.sign(exponent) * sizes).tolist()) + side * drift
    if total <= 0.0:
        return -math.inf
    return peak + math.log(total * _STEP) - _HALF_LOG_2PI


def interpolate(alpha: Floats, cumulants: dict[int, float]) -> Floats:
    """Return Renyi bounds from cumulant bounds at the integers around the orders, which are convex in the order."""
    low, high = np.maximum(np.floor(alpha), 2.0), np.maximum(np.ceil(alpha), 2.0)
    below, above = (np.array([cumulants[int(n)] for n in side]) for side in (low, high))
    share = np.clip(alpha - low, 0.0, 1.0)
    value: Floats = ((1 - share) * below + share * above) / np.where(alpha < 2, 1.0, alpha - 1)
    return value * (1 + 16 * ULP)


def neighbours(alpha: Floats) -> list[int]:
    """Return the integers that `interpolate` needs."""
    return sorted({max(2, int(n)) for side in (np.floor(alpha), np.ceil(alpha)) for n in side})


def choose(n: int) -> Floats:
    """Return the logarithms of the binomial coefficients of n over 0, ..., n."""
    j = np.arange(n + 1)
    return Moments.falling(n, j) - Moments.log_factorial(j)


def binomial_moments(alpha: Floats, sigma: float, q: float) -> Floats:
    """Return a bound of the replace-one Renyi divergence of a step without replacement, rounded up.

    Notes
    -----
    At an integer n, ``E[(P/Q)**n] = 1 + sum_j C(n, j) E_Q[(P/Q - 1)**j]``. The second moment is at most ``q**2 (exp(4 /
    sigma**2) - 1)``, and the others are at most ``q**j`` times the smaller of ``exp(2 j (j-1) / sigma**2)``, twice that
    for even j, and 3 times the moment bound, 4 times for even j (PROOFS.md, F9). The sum has no remainder, and does not
    blow up at small noise.
    """
    return interpolate(alpha, {n: _cumulant(n, sigma, q) for n in neighbours(alpha)})


@lru_cache(maxsize=1 << 13)  # schedules need the same integers again and again
def _cumulant(n: int, sigma: float, q: float) -> float:
    moments = Moments(sigma)
    j = np.arange(2, n + 1)
    squares = moments.shift**2 / 2 * j * (j - 1.0)
    even = j % 2 == 0  # positive parts suffice for odd powers; even ones need both signs (PROOFS.md, F9)
    plain = squares + np.where(even, math.log(2), 0.0)
    least = np.minimum(plain, moments.log_bounds(n)[2:] + np.where(even, math.log(4), math.log(3)))
    least[0] = moments.log_bounds(2)[2]
    logs = choose(n)[2:] + j * math.log(q) + least
    slack = ULP * (16 * math.lgamma(n + 2) + 16 * np.abs(logs) + 8 * j * abs(math.log(q)) + 8)
    return float(np.logaddexp(0.0, log_sum(logs + slack))) * (1 + 8 * ULP)


def rdp_wang(alpha: Orders, sigma: float, q: float, *, bound: str = "upper", variant: str = "paper") -> Any:
    """Return the bounds of Wang et al. (2019) on one step without replacement, under replace-one.

    Notes
    -----
    The lower bound, at integer orders, is the binomial sum of the exact add/remove value. Variant "paper" has the term
    of order two as [B24, App. E], "min" the minimum of the original Theorem 9.
    """
    found, noise, share = orders(alpha), sigma_of(sigma), rate(q, None, None)
    check_word("variant", variant, ("paper", "min"))
    if check_word("bound", bound, ("upper", "lower")) == "upper":
        return like(alpha, wang_upper(found, noise, share, variant=variant))
    if np.any(found != np.floor(found)):
        raise InputError("alpha", "an order that is no integer", "an integer of at least 2 for the lower bound")
    return like(alpha, np.array([_wang_lower(int(a), noise, share) / (a - 1) for a in found]))


def wang_upper(alpha: Floats, sigma: float, q: float, *, variant: str) -> Floats:
    """Return the upper bound, by linear interpolation of the cumulant function between integers."""
    return interpolate(alpha, {n: _wang_cumulant(n, sigma, q, variant) for n in neighbours(alpha)})


@lru_cache(maxsize=1 << 13)  # schedules need the same integers again and again
def _wang_cumulant(n: int, sigma: float, q: float, variant: str) -> float:
    s = 1.0 / sigma**2
    j = np.arange(3, n + 1)
    logs = math.log(2) + j * math.log(q) + choose(n)[3:] + 2 * j * (j - 1.0) * s
    second = 4 * s + math.log(-math.expm1(-4 * s)) + math.log(4)
    if variant == "min":
        second = min(second, math.log(2) + 4 * s)
    logs = np.append(logs, 2 * math.log(q) + math.log(0.5 * n * (n - 1)) + second)
    slack = 16 * ULP * (math.lgamma(n + 2) + float(np.abs(logs).max()) + n * abs(math.log(q)))
    return float(np.logaddexp(0.0, log_sum(logs) + slack))


def _wang_lower(n: int, sigma: float, q: float) -> float:
    j = np.arange(2, n + 1)
    excess = choose(n)[2:] + j * math.log(q) + (n - j) * math.log1p(-q)
    exponent = 2 * j * (j - 1.0) / sigma**2
    logs = excess + np.where(exponent < 600, np.log(np.expm1(np.minimum(exponent, 600.0))), exponent)
    slack = 16 * ULP * (math.lgamma(n + 2) + float(np.abs(logs).max()) + n * abs(math.log(q)))
    return float(np.logaddexp(0.0, log_sum(logs) - slack)) * (1 - 8 * ULP)
