"""Conversion of Renyi divergences to epsilon at a delta, and back."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP
from thresholdout.errors import InputError

__all__ = [
    "EdgeOrderWarning",
    "NoFiniteOrderWarning",
    "RenyiDelta",
    "RenyiEpsilon",
    "default_orders",
    "rdp_to_delta",
    "rdp_to_epsilon",
]

Floats = NDArray[np.float64]


class EdgeOrderWarning(UserWarning):
    """The best order is the first or last one: other orders would give a smaller value."""


class NoFiniteOrderWarning(UserWarning):
    """No order has a finite divergence, so nothing is guaranteed."""


@dataclass(frozen=True)
class RenyiEpsilon:
    """An epsilon from Renyi divergences, the order that gives it, and the delta at which it holds.

    It is in nats, and infinite if no order has a finite divergence.
    """

    epsilon: float
    order: float
    delta: float
    conversion: str


@dataclass(frozen=True)
class RenyiDelta:
    """A delta in [0, 1] from Renyi divergences, the order that gives it, and the epsilon at which it holds."""

    delta: float
    order: float
    epsilon: float


def default_orders() -> Floats:
    """Return the orders 1.1, 1.2, ..., 10.9, 12, ..., 63, 64, 80, 96, 128, 192, 256, 512."""
    return np.concatenate([1 + np.arange(1, 100) / 10.0, np.arange(12.0, 64.0), [64, 80, 96, 128, 192, 256, 512]])


def rdp_to_epsilon(orders: Any, rdp: Any, delta: float, *, conversion: str = "balle") -> RenyiEpsilon:
    """Return the smallest epsilon over the orders.

    Notes
    -----
    The conversions are "balle" [Balle et al. 2020, Theorem 21], and "mironov" [Mironov 2017, Proposition 3], which is
    never smaller.
    """
    alpha, rho = _checked(orders, rdp)
    log_delta = math.log(_delta(delta))
    if conversion == "balle":
        values = rho + np.log1p(-1 / alpha) - (log_delta + np.log(alpha)) / (alpha - 1)
    elif conversion == "mironov":
        values = rho - log_delta / (alpha - 1)
    else:
        raise InputError("conversion", repr(conversion), "'balle' or 'mironov'")
    # More than the rounding errors of all terms.
    values = values + 16 * ULP * (rho + (abs(log_delta) + np.log(alpha)) / (alpha - 1) + 1 / alpha)
    best = _best(values)
    epsilon = max(0.0, float(values[best]))
    if epsilon > 0.0:
        _warn(rho, best)
    return RenyiEpsilon(epsilon, float(alpha[best]), float(delta), conversion)


def rdp_to_delta(orders: Any, rdp: Any, epsilon: float) -> RenyiDelta:
    """Return the smallest delta at an epsilon, by the inverse of the conversion of Balle et al. (2020)."""
    alpha, rho = _checked(orders, rdp)
    if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float, np.floating, np.integer)):
        raise InputError("epsilon", repr(epsilon), "a finite number, 0 or more")
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError("epsilon", repr(epsilon), "a finite number, 0 or more")
    values = (alpha - 1) * (rho - epsilon) + alpha * np.log1p(-1 / alpha) - np.log(alpha - 1)
    values = values + 16 * ULP * ((alpha - 1) * (rho + epsilon) + 2 + np.abs(np.log(alpha - 1)))
    best = _best(values)
    delta = min(1.0, math.exp(min(0.0, float(values[best]))) * (1 + 4 * ULP))
    if delta < 1.0 or not math.isfinite(values[best]):
        _warn(rho, best)
    return RenyiDelta(delta, float(alpha[best]), float(epsilon))


def _delta(delta: object) -> float:
    if isinstance(delta, bool) or not isinstance(delta, (float, int, np.floating)) or not 0 < delta < 1:
        raise InputError("delta", repr(delta), "a number in (0, 1)")
    return float(delta)


def _checked(orders: Any, rdp: Any) -> tuple[Floats, Floats]:
    alpha, rho = np.atleast_1d(np.asarray(orders, dtype=float)), np.atleast_1d(np.asarray(rdp, dtype=float))
    if alpha.ndim != 1 or alpha.size == 0 or not (np.isfinite(alpha) & (alpha > 1)).all():
        raise InputError(
            "orders", f"an array of shape {alpha.shape}", "at least one finite order above 1, and no other"
        )
    if (np.diff(alpha) <= 0).any():
        raise InputError("orders", "an array that does not increase", "increasing orders")
    if rho.shape != alpha.shape or np.isnan(rho).any() or (rho < 0).any():
        raise InputError(
            "rdp", f"an array of shape {rho.shape}", f"an array of shape {alpha.shape} of numbers, 0 or more"
        )
    return alpha, rho


def _best(values: Floats) -> int:
    return int(np.argmin(values))


def _warn(rho: Floats, best: int) -> None:
    finite = np.flatnonzero(np.isfinite(rho))
    if finite.size == 0:
        warnings.warn("No order has a finite divergence, so nothing is guaranteed.", NoFiniteOrderWarning, stacklevel=3)
    elif best in (finite[0], finite[-1]):
        side = "smaller" if best == finite[0] else "larger"
        warnings.warn(
            f"The best order is at the edge of the given orders. Add {side} orders.", EdgeOrderWarning, stacklevel=3
        )
