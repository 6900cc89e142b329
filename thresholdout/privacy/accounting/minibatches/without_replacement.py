"""Renyi differential privacy of a Gaussian step on a batch drawn without replacement: add/remove exactly.

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
    orders,
    rate,
    sigma_of,
)
from thresholdout.privacy.accounting.minibatches.moments import wang_upper
from thresholdout.privacy.accounting.minibatches.quadrature import TwoPoint, log_excess
from thresholdout.privacy.accounting.minibatches.replace_one import replace_one

__all__ = [
    "add_remove",
    "from_log",
    "rdp_fswor",
    "rdp_fswor_lower",
]


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
) -> Any:
    """Return the Renyi divergence that one step on a batch without replacement leaks.

    Notes
    -----
    `method`: "auto": the exact value for add/remove; for replace-one the smaller one per order of the envelope and the
    binomial sum. "exact" exists for add/remove only. The last three are replace-one bounds, valid for add/remove as
    well; "wang" is the published one of Wang et al.

    Add/remove: [B24, Thm 3.1], exact for every real order, in both directions (PROOFS.md, F1). Replace-one: the
    envelope (F4) and the binomial sum (F9). The sensitivity is twice the clipping norm under either adjacency, as
    the batch size is fixed.

    References
    ----------
    .. [B24] J. Birrell, R. Ebrahimi, R. Behnia, J. Pacheco, 2024.

    Examples
    --------
    >>> f"{rdp_fswor(2, 6, batch_size=120, dataset_size=50_000):.6e}"
    '6.769096e-07'
    >>> f"{rdp_fswor(2, 6, 0.0024, adjacency='replace_one'):.4e}"
    '6.7691e-07'
    """
    found, noise, share = orders(alpha), sigma_of(sigma), rate(q, batch_size, dataset_size)
    check_word("adjacency", adjacency, ("add_remove", "replace_one"))
    check_word("method", method, ("auto", "exact", "envelope", "binomial", "wang"))
    if adjacency == "replace_one" or method in ("envelope", "binomial", "wang"):
        if method == "exact":
            raise InputError("method", "'exact' for replace-one, which is not known", "'auto'")
        if method == "wang":
            return like(alpha, wang_upper(found, noise, share, variant="paper"))
        return like(alpha, replace_one(found, noise, share, method=method))
    return like(alpha, add_remove(found, 2.0 / noise, share))


def rdp_fswor_lower(alpha: Orders, sigma: float, q: float) -> Any:
    """Return a lower bound of what one step without replacement leaks, under either adjacency.

    The exact add/remove value, rounded down. It is attained under replace-one as well: by a record whose clipped
    gradient opposes all others, in place of one that does not [B24, App. E; PROOFS.md, F1].

    Examples
    --------
    >>> bool(rdp_fswor_lower(2, 6, 0.0024) < rdp_fswor(2, 6, 0.0024))
    True
    """
    return like(alpha, add_remove(orders(alpha), 2.0 / sigma_of(sigma), rate(q, None, None), lower=True))
