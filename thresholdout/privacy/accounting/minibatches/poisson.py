"""Renyi differential privacy of a Gaussian step on a Poisson batch, under either adjacency."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresholdout.data.arguments import check_word
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import (
    Orders,
    like,
    orders,
    rate,
    sigma_of,
    terms,
)
from thresholdout.privacy.accounting.minibatches.opposite_shifts import opposite_shifts
from thresholdout.privacy.accounting.minibatches.replace_one import TaylorSeries, replace_one
from thresholdout.privacy.accounting.minibatches.without_replacement import add_remove, rdp_fswor

__all__ = ["rdp_poisson"]


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
    method : {"auto", "exact", "taylor"}
        "exact": the largest value that a step can have; for replace-one that of two opposite records, and inf at orders
        where it would take too long. "taylor": Theorem 3.2 or C.9 with m terms. "auto": the exact value, and at those
        orders the bound without replacement, whose sensitivity is larger.
    m : int
        Taylor terms, 3 or more.

    Returns
    -------
    float or ndarray of shape (k,)
        In nats, rounded up.

    Raises
    ------
    InputError
        For arguments out of range.

    Notes
    -----
    Under add/remove it is the value without replacement at twice the noise. Never use one accountant for the other's
    sampler. With a replaced record two opposite gradients are the worst (PROOFS.md, F11). The constants of Theorem C.9
    are too small for the derivatives that they bound from the fourth on, so larger ones are used there (F7).

    Examples
    --------
    >>> f"{rdp_poisson(2, 3, 0.0024):.9e}"
    '6.769096068e-07'
    >>> f"{rdp_poisson(2, 6, 0.0024, adjacency='replace_one', method='taylor'):.6e}"
    '6.405692e-07'
    """
    found, noise, share, count = orders(alpha), sigma_of(sigma), rate(q, None, None), terms(m)
    check_word("method", method, ("auto", "exact", "taylor"))
    if check_word("adjacency", adjacency, ("add_remove", "replace_one")) == "add_remove":
        if method == "taylor":
            return rdp_fswor(alpha, 2 * noise, share, method="taylor", m=count)
        return like(alpha, add_remove(found, 1.0 / noise, share))
    if method == "taylor":
        return like(alpha, TaylorSeries(2 * noise, poisson=True).bound(found, share, count))
    values = opposite_shifts(found, np.nextafter(1.0 / noise, np.inf), share)
    left = np.isinf(values)
    if method == "auto" and left.any():
        values[left] = replace_one(found[left], noise, share, method="auto")
    return like(alpha, values)
