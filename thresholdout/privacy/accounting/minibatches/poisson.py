"""Renyi differential privacy of a Gaussian step on a Poisson batch, under either adjacency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from thresholdout.data.arguments import check_word
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Floats,
    Orders,
    like,
    orders,
    rate,
    sigma_of,
    terms,
)
from thresholdout.privacy.accounting.minibatches.quadrature import log_power_excess, log_sum
from thresholdout.privacy.accounting.minibatches.replace_one import TaylorSeries, replace_one
from thresholdout.privacy.accounting.minibatches.without_replacement import add_remove, rdp_fswor

__all__ = ["pair_replace_one", "rdp_poisson"]


def rdp_poisson(
    alpha: Orders, sigma: float, q: float, *, adjacency: str = "add_remove", method: str = "auto", m: int = 4
) -> Any:
    """Return the Renyi divergence that one step on a Poisson batch leaks.

    Parameters
    ----------
    alpha : float or array of shape (k,)
        Orders above 1.
    sigma : float
        Standard deviation of the noise on the sum of clipped gradients, over the clipping norm.
    q : float
        Probability, in (0, 1), with which each record enters; the divisor of the sum must be fixed.
    adjacency : {"add_remove", "replace_one"}
    method : {"auto", "exact", "taylor", "pair"}
        "auto": the exact value for add/remove; for replace-one the smallest proved bound per order (Theorem C.9 with
        m = 3 to 6, and the bounds without replacement, whose sensitivity is larger). "exact": add/remove only.
        "taylor": Theorem 3.2 or C.9 with m terms. "pair", replace-one only: the divergence of two opposite records,
        which is attained, and an upper bound only as far as numerical search has seen: an estimate, no guarantee.
    m : int
        Taylor terms, 3 or more.

    Returns
    -------
    float or ndarray of shape (k,)
        In nats, rounded up.

    Raises
    ------
    InputError
        For arguments out of range, or a method that the adjacency does not have.

    Notes
    -----
    Under add/remove it is the value without replacement at twice the noise. Never use one accountant for the other's
    sampler. The constants of Theorem C.9 are too small for the derivatives that they bound from the fourth on, so
    larger ones are used there (PROOFS.md, F7).

    Examples
    --------
    >>> f"{rdp_poisson(2, 3, 0.0024):.9e}"
    '6.769096068e-07'
    >>> f"{rdp_poisson(2, 6, 0.0024, adjacency='replace_one', method='taylor'):.6e}"
    '6.405692e-07'
    """
    found, noise, share, count = orders(alpha), sigma_of(sigma), rate(q, None, None), terms(m)
    check_word("method", method, ("auto", "exact", "taylor", "pair"))
    if check_word("adjacency", adjacency, ("add_remove", "replace_one")) == "add_remove":
        if method == "pair":
            raise InputError("method", "'pair' for add/remove", "'exact'")
        if method == "taylor":
            return rdp_fswor(alpha, 2 * noise, share, method="taylor", m=count)
        return like(alpha, add_remove(found, 1.0 / noise, share))
    if method == "exact":
        raise InputError("method", "'exact' for replace-one, which is not known", "'auto'")
    if method == "pair":
        return like(alpha, pair_replace_one(found, noise, share))
    series = TaylorSeries(2 * noise, poisson=True)
    if method == "taylor":
        return like(alpha, series.bound(found, share, count))
    best = replace_one(found, noise, share, method="auto")
    for each in (3, 4, 5, 6):
        best = np.minimum(best, series.bound(found, share, each))
    return like(alpha, best)


def pair_replace_one(alpha: Floats, sigma: float, q: float) -> Floats:
    """Return the divergence of ``(1-q) N(0,1) + q N(a,1)`` from its mirror image, ``a = 1 / sigma``.

    Parameters
    ----------
    alpha : ndarray
        Orders above 1.
    sigma, q : float
        As in `rdp_poisson`.

    Returns
    -------
    ndarray
        Not rounded to a side: attained, and conjectured to be the largest.

    Examples
    --------
    >>> f"{pair_replace_one(np.array([2.0]), 1e3, 1e-3)[0]:.4e}"
    '4.0000e-12'
    """
    a = 1.0 / sigma
    step = min(0.25, 0.1 / a)
    out = np.empty_like(alpha)
    for i, power in enumerate(alpha.tolist()):
        t = np.arange(math.ceil(-(power * a + 16) / step), math.ceil((power * a + 16) / step)) * step
        one, other = (np.logaddexp(math.log1p(-q), math.log(q) + sign * a * t - a * a / 2) for sign in (1, -1))
        log = one - other
        near = np.abs(log) < 0.1  # there the difference of both densities is taken without cancellation
        gap = 2 * q * math.exp(-a * a / 2) * np.sinh(np.where(near, a * t, 0.0)) * np.exp(-other)
        w = np.where(near, gap, np.expm1(np.minimum(log, 600.0)))
        w[log > 600.0] = np.inf
        log = np.where(near, np.log1p(np.where(near, gap, 0.0)), log)
        logs = other + log_power_excess(power, w, log) - 0.5 * t * t
        out[i] = np.logaddexp(0.0, log_sum(logs) + math.log(step) - 0.5 * math.log(2 * math.pi)) / (power - 1)
    return out
