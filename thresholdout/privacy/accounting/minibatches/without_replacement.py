"""Renyi differential privacy of a Gaussian step on a batch drawn without replacement: add/remove exactly, and Taylor.

[B24] is Birrell, Ebrahimi, Behnia and Pacheco, "Differentially private SGD with fixed-size minibatches: tighter RDP
guarantees with or without replacement" (2024).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    like,
    order,
    orders,
    rate,
    sigma_of,
    terms,
)
from thresholdout.privacy.accounting.minibatches.moments import Moments, wang_upper
from thresholdout.privacy.accounting.minibatches.quadrature import TwoPoint, log_excess
from thresholdout.privacy.accounting.minibatches.replace_one import replace_one

__all__ = ["H_taylor", "add_remove", "from_log", "rdp_fswor", "rdp_fswor_lower", "remainder_add_remove", "taylor_log"]


def add_remove(alpha: Floats, shift: float, q: float, *, lower: bool = False) -> Floats:
    """Return the Renyi divergence of ``(1-q) N(0,1) + q N(shift,1)`` from ``N(0,1)``, rounded up or down."""
    moved = math.nextafter(shift, 0.0 if lower else math.inf)
    found = log_excess(TwoPoint(moved, q), alpha)
    logs = np.array([each.lower if lower else each.upper for each in found])
    return from_log(logs, alpha, lower=lower)


def from_log(logs: Floats, alpha: Floats, *, lower: bool = False) -> Floats:
    """Return ``log(1 + exp(logs)) / (alpha - 1)``, rounded up or down."""
    value: Floats = np.logaddexp(0.0, logs) / (alpha - 1) * (1 + (-1 if lower else 1) * 8 * ULP)
    return value


def rdp_fswor(
    alpha: Orders,
    sigma: float,
    q: float | None = None,
    *,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    adjacency: str = "add_remove",
    method: str = "auto",
    m: int = 4,
    leading: str = "sharp",
) -> Any:
    """Return the Renyi divergence that one step on a batch without replacement leaks, in nats, rounded up.

    Notes
    -----
    `sigma` is the standard deviation of the noise on the *sum* of clipped gradients, over the clipping norm. The
    sampling rate is q, or ``batch_size / dataset_size``; under add/remove the data set is the larger one of the pair.
    The divergence is a guarantee for every step that draws a *fresh* uniform subset and adds fresh noise,
    also after other releases. Steps add up. Epoch-wise shuffling is not covered.

    "auto" is the exact value for add/remove, [B24, Thm 3.1], exact for every real order and in both directions
    (PROOFS.md, F1). For replace-one it is the smallest valid bound per order: [B24, Thm 3.4] with its leading term
    sharpened (F5; m = 3 to 6), the envelope (F4) and the binomial sum (F9). "exact" exists for add/remove only.
    "envelope", "binomial" and "wang", the published bound of Wang et al., are replace-one bounds, valid for add/remove
    as well. The sensitivity is twice the clipping norm under either adjacency, since the batch size is fixed.
    """
    found, noise, share = orders(alpha), sigma_of(sigma), rate(q, batch_size, dataset_size)
    check_word("adjacency", adjacency, ("add_remove", "replace_one"))
    check_word("method", method, ("auto", "exact", "taylor", "envelope", "binomial", "wang"))
    check_word("leading", leading, ("sharp", "paper"))
    count = terms(m)
    if adjacency == "replace_one" or method in ("envelope", "binomial", "wang"):
        if method == "exact":
            raise InputError(
                "method", "'exact', whose value is unknown there", "'auto', or another one, for replace_one"
            )
        if method == "wang":
            return like(alpha, wang_upper(found, noise, share, variant="paper"))
        return like(alpha, replace_one(found, noise, share, method=method, m=count, leading=leading))
    if method == "taylor":
        values = [taylor_log(float(a), share, count, Moments(noise)) / (float(a) - 1) for a in found]
        return like(alpha, np.array(values) * (1 + 8 * ULP))
    return like(alpha, add_remove(found, 2.0 / noise, share))


def rdp_fswor_lower(alpha: Orders, sigma: float, q: float) -> Any:
    """Return a lower bound of the leakage of one step without replacement, under either adjacency.

    It is the exact add/remove value, rounded down. Replace-one attains it as well: by a record whose clipped gradient
    opposes all others, in place of one that does not [B24, App. E; PROOFS.md, F1].
    """
    return like(alpha, add_remove(orders(alpha), 2.0 / sigma_of(sigma), rate(q, None, None), lower=True))


def H_taylor(alpha: float, sigma: float, q: float, m: int) -> float:  # noqa: N802
    """Return the Taylor bound of ``E[Lam**alpha]`` with m terms [B24, (41)].

    It is exact for integer orders below m. More terms are not always better: the remainder carries moments of about
    exp(2 m (m-1) / sigma**2).
    """
    log = taylor_log(order(alpha), rate(q, None, None), terms(m, least=2), Moments(sigma_of(sigma)))
    return math.exp(log) * (1 + 8 * ULP) if log < 709 else math.inf


def remainder_add_remove(alpha: float, sigma: float, q: float, m: int) -> float:
    """Return the bound of the remainder after m Taylor terms under add/remove [B24, (50) and (54)]."""
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
            log += moments.log_signed(k, 1 if product > 0 else -1)
            slack = 16 * ULP * (40 + abs(k * math.log(q)) + abs(log)) if log > -math.inf else 0.0
            if product > 0:
                up = float(np.logaddexp(up, log + slack))
            else:
                down = float(np.logaddexp(down, log - slack))
        product *= alpha - k
    rest = up + math.log1p(-math.exp(down - up))  # the bound is above 1: more is added than taken off
    return float(np.logaddexp(0.0, rest))
