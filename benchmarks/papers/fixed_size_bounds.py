"""Bounds on minibatches by Taylor's formula, and by a recursion with replacement: as published, and as proved.

[B24] is Birrell, Ebrahimi, Behnia and Pacheco, "Differentially private SGD with fixed-size minibatches: tighter RDP
guarantees with or without replacement" (2024): Theorems 3.2, 3.4, 3.6, 3.7 and C.9. The proofs are F5 to F8 in
PROOFS.md of `thresholdout.privacy.accounting.minibatches`. In 200 random settings none of the bounds by Taylor's
formula decides an epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from typing import Any

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    batch,
    like,
    order,
    orders,
    rate,
    sigma_of,
)
from thresholdout.privacy.accounting.minibatches.moments import HALF_LOG_2PI, STEP, Moments, log_abs, reach
from thresholdout.privacy.accounting.minibatches.quadrature import log_sum
from thresholdout.privacy.accounting.minibatches.with_replacement import log_weights

__all__ = [
    "E_tilde",
    "F_tilde",
    "H_taylor",
    "TaylorSeries",
    "published_fswr",
    "rdp_fswr_lower",
    "remainder_add_remove",
    "taylor_fswor",
    "taylor_moment",
    "taylor_moment_bound",
    "taylor_poisson",
]


def terms(m: object, *, least: int = 3) -> int:
    """Return the number of Taylor terms; more than 60 never help."""
    found = count(m, "m", least=least)
    if found > 60:
        raise InputError("m", str(found), "at most 60 terms; more make the remainder worse")
    return found


def taylor_fswor(
    alpha: Orders, sigma: float, q: float, *, adjacency: str = "add_remove", m: int = 4, leading: str = "sharp"
) -> Any:
    """Return the bound of a step without replacement with m terms: Theorem 3.2, or under replace-one Theorem 3.4.

    `leading` is "sharp" (F5) or "paper"; everything else is as in `rdp_fswor`.

    Examples
    --------
    >>> f"{taylor_fswor(2, 6, 0.0024, adjacency='replace_one', leading='paper'):.6e}"
    '7.007539e-07'
    """
    found, noise, share, several = orders(alpha), sigma_of(sigma), rate(q, None, None), terms(m)
    check_word("leading", leading, ("sharp", "paper"))
    if check_word("adjacency", adjacency, ("add_remove", "replace_one")) == "replace_one":
        return like(alpha, TaylorSeries(noise).bound(found, share, several, leading))
    values = [taylor_log(float(a), share, several, Moments(noise)) / (float(a) - 1) for a in found]
    return like(alpha, np.array(values) * (1 + 8 * ULP))


def taylor_poisson(alpha: Orders, sigma: float, q: float, *, adjacency: str = "add_remove", m: int = 4) -> Any:
    """Return the bound of a step on a Poisson minibatch with m terms: Theorem 3.2, or C.9 with larger constants (F7).

    Examples
    --------
    >>> f"{taylor_poisson(2, 6, 0.0024, adjacency='replace_one'):.6e}"
    '6.405692e-07'
    """
    found, noise, share, several = orders(alpha), sigma_of(sigma), rate(q, None, None), terms(m)
    if check_word("adjacency", adjacency, ("add_remove", "replace_one")) == "add_remove":
        return taylor_fswor(alpha, 2 * noise, share, m=several)
    return like(alpha, TaylorSeries(2 * noise, poisson=True).bound(found, share, several))


def published_fswr(
    alpha: Orders, sigma: float, batch_size: int, dataset_size: int, *, m: int = 4, K: int | None = None
) -> Any:
    """Return the bound of a step with replacement of Theorem 3.6; K is the largest number of draws that is expanded.

    Examples
    --------
    >>> f"{published_fswr(2, 6, 120, 50_000):.2f}"
    '301.63'
    """
    found, noise = orders(alpha), sigma_of(sigma)
    draws, records = batch(batch_size, dataset_size)
    highest = min(terms(m) - 1, draws) if K is None else count(K, "K")
    if highest > draws:
        raise InputError("K", str(K), f"at most batch_size = {draws}")
    published = [_paper(float(a), noise, draws, records, m, highest) / (float(a) - 1) for a in found]
    return like(alpha, np.array(published) * (1 + 8 * ULP))


def _paper(alpha: float, sigma: float, draws: int, records: int, m: int, highest: int) -> float:
    """Return the logarithm in [B24, (112)], as log1p of a sum whose weights add up to 1."""
    logs = log_weights(draws, records)
    s = np.exp(logs[1 : highest + 1]).sum()
    rate = float(s / (math.exp(logs[0]) + s))
    parts = []
    for n in range(1, draws + 1):
        exponent = 2 * alpha * (alpha - 1) * n * n / sigma**2
        log = exponent if exponent > 600 else math.log(math.expm1(exponent))
        if n <= highest:
            taylor = taylor_log(alpha, rate, m, Moments(sigma / n))
            log = min(log, taylor if taylor > 600 else math.log(math.expm1(taylor))) - math.log(rate)
        parts.append(logs[n] + log + ULP * (64 * n + abs(float(logs[n]))))
    value = log_sum(np.array(parts))
    return float(np.logaddexp(0.0, value + 1e-12 + 64 * ULP * abs(value)))


def H_taylor(alpha: float, sigma: float, q: float, m: int) -> float:  # noqa: N802
    """Return the Taylor bound of ``E[Lam**alpha]`` with m terms [B24, (41)].

    Parameters
    ----------
    alpha : float
        Order above 1.
    sigma, q : float
        As in `rdp_fswor`.
    m : int
        Terms, 2 or more; the paper uses 3 or more.

    Returns
    -------
    float
        At least the exact value, and equal to it for integer orders below m; inf where it exceeds the largest float.

    Notes
    -----
    More terms are not always better: the remainder carries moments of about exp(2 m (m-1) / sigma**2).

    Examples
    --------
    >>> f"{H_taylor(2, 6, 0.0024, 3) - 1:.5e}"
    '6.76910e-07'
    """
    log = taylor_log(order(alpha), rate(q, None, None), terms(m, least=2), Moments(sigma_of(sigma)))
    return math.exp(log) * (1 + 8 * ULP) if log < 709 else math.inf


def remainder_add_remove(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return the bound of the remainder after m Taylor terms under add/remove [B24, (50) and (54)].

    Parameters
    ----------
    alpha, sigma, q, m
        As in `H_taylor`.

    Examples
    --------
    >>> f"{remainder_add_remove(1.5, 6, 0.0024, 3):.10e}"
    '7.8870707407e-11'
    """
    log = _remainder_log(order(alpha), rate(q, None, None), terms(m, least=2), Moments(sigma_of(sigma)))
    return math.exp(log) if log < 709 else math.inf


def _remainder_log(alpha: float, q: float, m: int, moments: Moments) -> float:
    factors = [abs(alpha - j) for j in range(m)]
    if min(factors) == 0.0:  # an integer order below m: the series ends
        return -math.inf
    front = m * math.log(q) + sum(map(math.log, factors))
    if alpha <= m:
        return front - math.lgamma(m + 1) + (alpha - m) * math.log1p(-q) + float(moments.log_bounds(m)[m]) + 1e-13
    top = math.ceil(alpha) - m
    steps = np.arange(top + 1)
    logs = moments.log_bounds(m + top)[m:] + moments.falling(top, steps) + steps * math.log(q)
    logs = logs - moments.log_factorial(m + steps)
    last = float(moments.log_bounds(m)[m]) - math.lgamma(m + 1)
    whole = float(np.logaddexp(np.logaddexp.reduce(logs), last))
    return front + whole + 1e-12


def taylor_log(alpha: float, q: float, m: int, moments: Moments) -> float:
    """Return the logarithm of the Taylor bound of E[Lam**alpha], rounded up."""
    up, down, product = _remainder_log(alpha, q, m, moments), -math.inf, 1.0
    for k in range(m):
        if k >= 2 and product != 0.0:
            log = k * math.log(q) - math.lgamma(k + 1) + math.log(abs(product))
            log += log_signed(moments, k, 1 if product > 0 else -1)
            slack = 16 * ULP * (40 + abs(k * math.log(q)) + abs(log)) if log > -math.inf else 0.0
            if product > 0:
                up = float(np.logaddexp(up, log + slack))
            else:
                down = float(np.logaddexp(down, log - slack))
        product *= alpha - k
    rest = up + math.log1p(-math.exp(down - up))  # the bound is above 1: more is added than taken off
    return float(np.logaddexp(0.0, rest))


def F_tilde(alpha: float, sigma: float, k: int) -> float:  # noqa: N802
    """Return the bound of the k-th derivative in Theorem 3.4 [B24, (83)].

    Parameters
    ----------
    alpha : float
        Order above 1.
    sigma : float
        Noise multiplier.
    k : int
        3 or more.

    Returns
    -------
    float
        inf where it exceeds the largest float.

    Examples
    --------
    >>> round(F_tilde(5.5, 6, 3), 10)
    50.6517407922
    """
    log = TaylorSeries(sigma_of(sigma)).log_term(order(alpha), terms(k))
    return math.exp(log) if log < 709 else math.inf


def E_tilde(alpha: float, sigma: float, q: float, m: int) -> float:  # noqa: N802
    """Return the bound of the remainder in Theorem 3.4 [B24, (90)].

    Parameters
    ----------
    alpha, sigma, q
        As in `rdp_fswor`.
    m : int
        3 or more.

    Returns
    -------
    float
        inf where it exceeds the largest float.

    Examples
    --------
    >>> f"{E_tilde(1.5, 6, 0.0024, 3):.8e}"
    '2.53215548e-09'
    """
    series, share, count = TaylorSeries(sigma_of(sigma)), rate(q, None, None), terms(m)
    log = series.log_remainders(np.array([order(alpha)]), share, count)[0]
    return math.exp(log) if log < 709 else math.inf


class TaylorSeries:
    """The Taylor bound of a pair of mixtures that share a component [B24, Thm 3.4 and C.9].

    Parameters
    ----------
    sigma : float
        The moments' noise multiplier: that of the mechanism without replacement, twice it for Poisson batches.
    poisson : bool
        Whether the two replaced records may move the batch apart by twice what either moves it (Poisson batches).
    published : bool
        Keep the constants of [B24, C.9] for Poisson batches; from the fourth derivative on they are too small for the
        derivative that they bound (PROOFS.md, F7).
    """

    def __init__(self, sigma: float, *, poisson: bool = False, published: bool = False) -> None:
        self.moments = Moments(sigma)
        self.shift = self.moments.shift
        self.poisson, self.published = poisson, published
        self._terms: dict[tuple[float, int], float] = {}

    def log_leading(self, alpha: Floats, q: float, leading: str) -> Floats:
        """Return the logarithm of the second-order term."""
        s = self.shift**2 / 4  # 1 / sigma**2 of the moments
        if self.poisson:
            log = _log_difference(4 * s, -4 * s)
        elif leading == "paper":
            log = _log_difference(4 * s, 2 * s)
        else:
            log = _log_difference(4 * s, 0.0) - math.log(2.0)
        value: Floats = 2 * math.log(q) + np.log(alpha * (alpha - 1)) + log
        return value + 1e-14 + 4 * ULP * np.abs(value)

    def log_term(self, alpha: float, k: int) -> float:
        """Return the logarithm of the bound of the k-th derivative at q = 0; it is kept."""
        if (alpha, k) not in self._terms:
            self._terms[alpha, k] = self._log_term(alpha, k)
        return self._terms[alpha, k]

    def _log_term(self, alpha: float, k: int) -> float:
        total = self._alone(k)
        for j in range(k + 1):
            c = alpha / (alpha - 1)
            for i in range(j):
                c *= 1 - i / alpha
            for i in range(k - j):
                c *= 1 + (i - 1) / alpha
            total += math.comb(k, j) * (abs(c - 1) + 4 * k * ULP * (1 + abs(c)))
        value = math.log(alpha - 1) + (k - 1) * math.log(alpha) + math.log(total)
        value += float(self.moments.log_bounds(k)[k])
        return value + 1e-13 + 16 * ULP * abs(value)

    def _alone(self, k: int) -> float:
        """Return the bound of ``E[(x - y)**k]`` over the moment bound."""
        if self.poisson and not self.published and k > 3:
            apart = Moments(1.0 / self.shift).log_bounds(k)[k] - self.moments.log_bounds(k)[k]
            return float(min(2.0**k, 2 + 2 * math.exp(min(apart, 700.0)))) * (1 + 1e-12)
        return 4.0 if k % 2 == 0 else 3.0

    def log_remainders(self, alpha: Floats, q: float, m: int) -> Floats:
        """Return the logarithms of the bounds of the remainder after m terms, one for each order."""
        out = np.full(alpha.shape, -np.inf)
        log_bound = float(self.moments.log_bounds(m)[m])
        sums: dict[tuple[int, int], float] = {}
        less = -math.log1p(-q)
        for j in range(m + 1):
            first = np.prod([np.abs(alpha - i) for i in range(j)], axis=0) if j else np.ones_like(alpha)
            second = np.prod([alpha + i - 1 for i in range(m - j)], axis=0) if j < m else np.ones_like(alpha)
            inner = np.full(alpha.shape, log_bound)
            for i, a in enumerate(alpha):
                if a <= j:
                    inner[i] += (j - a) * less
                    continue
                key = (math.ceil(a) - j, m)
                if key not in sums:
                    sums[key] = self._higher(key[0], q, m)
                inner[i] = np.logaddexp(log_bound, sums[key])
            with np.errstate(divide="ignore"):
                logs = np.log(first) + np.log(second) + inner + math.log(math.comb(m, j)) + (alpha + m - j - 1) * less
            out = np.logaddexp(out, logs)
        value: Floats = out + m * math.log(q) - math.lgamma(m + 1)
        return value + 1e-12 + 16 * ULP * np.abs(value)

    def _higher(self, top: int, q: float, m: int) -> float:
        """Return the logarithm of the sum over higher moments in (90), with top = ceil(alpha) - j."""
        steps = np.arange(top + 1)
        logs = self.moments.log_bounds(m + top)[m:] + steps * math.log(q)
        logs = logs + Moments.falling(top, steps) - Moments.log_factorial(m + steps) + math.lgamma(m + 1)
        peak = float(logs.max())
        return peak + math.log(float(np.exp(logs - peak).sum())) + ULP * 16 * math.lgamma(m + top + 2)

    def bound(self, alpha: Floats, q: float, m: int, leading: str = "sharp") -> Floats:
        """Return the bound of the Renyi divergence with m terms."""
        return self._added(alpha, q, m, leading, self.log_remainders(alpha, q, m))

    def floor(self, alpha: Floats, q: float, m: int) -> Floats:
        """Return something below `bound` that is found fast: with the simplest parts of the remainder alone."""
        factors = np.maximum(2 * alpha - m, alpha - 1)  # those of all j from m on, and of j = 0
        log_bound = float(self.moments.log_bounds(m)[m]) + m * math.log(q) - math.lgamma(m + 1)
        return self._added(alpha, q, m, "sharp", m * np.log(factors) + log_bound) * (1 - 1e-9)

    def _added(self, alpha: Floats, q: float, m: int, leading: str, remainders: Floats) -> Floats:
        """Return the divergence from the leading term, the further ones below m and remainders."""
        out = np.logaddexp(self.log_leading(alpha, q, leading), remainders)
        for k in range(3, m):
            front = k * math.log(q) - math.lgamma(k + 1)
            front += 16 * ULP * (abs(front) + k)
            out = np.logaddexp(out, [front + self.log_term(float(a), k) for a in alpha])
        value: Floats = np.logaddexp(0.0, out) / (alpha - 1) * (1 + 8 * ULP)
        return value


@lru_cache(maxsize=256)
def _log_difference(large: float, small: float) -> float:
    """Return ``log(exp(large) - exp(small))``."""
    gap = large - small
    return small + (math.log(math.expm1(gap)) if gap < 600 else gap)


def taylor_moment(sigma: float, k: int, *, log: bool = False) -> float:
    """Return ``E[(L - 1)**k]``, L the ratio of N(2/sigma, 1) to N(0, 1) [B24, (45)].

    Parameters
    ----------
    sigma : float
        Noise multiplier.
    k : int
        0 or more.
    log : bool
        Return the logarithm, -inf for k = 1.

    Returns
    -------
    float
        At least 0; inf where it exceeds the largest float.

    Notes
    -----
    Never from the alternating sum, which loses all digits at large noise. The moment is a polynomial in
    ``exp(4 / sigma**2) - 1`` with non-negative coefficients (PROOFS.md, F6); even ones are computed by
    quadrature, odd ones by the same with the signs kept.

    Examples
    --------
    >>> round(taylor_moment(6, 2), 12)
    0.117519068742
    """
    value = log_signed(Moments(sigma_of(sigma)), count(k, "k", least=0))
    return value if log else math.exp(value) if value < 709 else math.inf


def taylor_moment_bound(sigma: float, k: int, *, log: bool = False) -> float:
    """Return the bound of ``E|L - 1|**k`` [B24, (47)]: the moment, or for odd k the geometric mean of its neighbours.

    Parameters
    ----------
    sigma, k, log
        As in `taylor_moment`.

    Examples
    --------
    >>> round(taylor_moment_bound(6, 3), 12)
    0.090957110289
    """
    value = float(Moments(sigma_of(sigma)).log_bounds(count(k, "k", least=0))[k])
    return value if log else math.exp(value) if value < 709 else math.inf


def log_signed(moments: Moments, k: int, side: int = 1) -> float:
    """Return the logarithm of the signed moment k, rounded up for side = 1 and down for -1."""
    if k < 2:
        return 0.0 if k == 0 else -math.inf
    return float(moments.log_bounds(k)[k]) + (side - 1) * 1e-12 if k % 2 == 0 else _log_odd(moments.shift, k, side)


@lru_cache(maxsize=256)
def _log_odd(shift: float, k: int, side: int) -> float:
    a, far = shift, reach(k)
    nodes = np.arange(-math.ceil(far / STEP), math.ceil((a * k + far) / STEP)) * STEP
    exponent: Floats = np.asarray(a * (nodes - 0.5 * a), dtype=np.float64)
    logs = k * log_abs(exponent) - 0.5 * nodes**2
    peak = float(logs.max())
    sizes = np.exp(logs - peak)
    drift = ULP * float((sizes * (40 + k * (8 + 2 * np.abs(exponent)) + np.abs(logs))).sum())
    total = math.fsum((np.sign(exponent) * sizes).tolist()) + side * drift
    if total <= 0.0:
        return -math.inf
    return peak + math.log(total * STEP) - HALF_LOG_2PI


def rdp_fswr_lower(
    alpha: int,
    sigma: float,
    batch_size: int,
    dataset_size: int,
    *,
    indices: Collection[int] | None = None,
) -> float:
    """Return the lower bound of Theorem 3.7 by its recursion; without `indices` it is the exact value.

    Notes
    -----
    A lower bound of what a learner leaks only if its clipped gradients can oppose each other at full norm. The
    recursion [B24, (122), (123)] asks for its second argument at multiples of the first only: it is a table, no nested
    sum. The formula (126) lacks the logarithm and the division of 4 by sigma squared.

    Examples
    --------
    >>> f"{rdp_fswr_lower(3, 6, 20, 20_000):.8e}"
    '1.76319822e-07'
    """
    if float(order(alpha)) != math.floor(alpha):
        raise InputError("alpha", repr(alpha), "an integer of at least 2")
    noise, (draws, records) = sigma_of(sigma), batch(batch_size, dataset_size)
    chosen = None if indices is None else sorted({count(i, "indices", least=0) for i in indices})
    if chosen is not None and (not chosen or chosen[-1] > draws):
        raise InputError("indices", repr(chosen), f"some numbers between 0 and batch_size = {draws}")
    top, c = int(alpha), 4.0 / noise**2
    logs = log_weights(draws, records)
    j = np.arange((top - 1) * draws + 1)
    table = _log_expm1(draws * _log1p_exp(_log_expm1(c * j) - math.log(records)))  # F_1 - 1
    first = table
    n = np.arange(draws + 1)
    for level in range(2, top + 1):
        size = (top - level) * draws + 1
        if chosen is not None and level > 2:
            if level == 3:
                table = np.logaddexp(0.0, table)
            n = np.array(chosen)
        inner = logs[n] + c * j[:size, None] * n + table[j[:size, None] + n]
        peak = inner.max(axis=1)
        fresh = peak + np.log(np.exp(inner - peak[:, None]).sum(axis=1))
        table = fresh if chosen is not None and level > 2 else np.logaddexp(first[:size], fresh)
    slack = ULP * 32 * (c * top * draws**2 + 2 * top * draws + 400)
    value = float(table[0]) - slack
    logarithm = max(0.0, value) if chosen is not None and top > 2 else float(np.logaddexp(0.0, value))
    return logarithm / (top - 1) * (1 - 8 * ULP)


def _log_expm1(x: Any) -> Floats:
    with np.errstate(divide="ignore"):
        value: Floats = np.where(x > 600.0, x, np.log(np.expm1(np.minimum(x, 600.0))))
    return value


def _log1p_exp(x: Floats) -> Floats:
    value: Floats = np.logaddexp(0.0, x)
    return value
