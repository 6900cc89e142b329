"""Renyi differential privacy of a Gaussian step on a Poisson batch, under either adjacency."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from graphs.numerics.rounding import ULP
from thresholdout.data.arguments import check_word
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

__all__ = ["opposite_shifts", "rdp_poisson"]

_HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)

_REACH: Final = 16.0  # standard deviations beyond the outermost component

_MOST: Final = 1 << 19  # nodes of the trapezoid rule; beyond, the divergence is reported as infinite

_ACCURACY: Final = 1e-14  # share of the excess that the rule's error may have

_FAR: Final = 600.0  # exponents above would overflow soon after

_LOSS: Final = 40.0  # nats that a simple bound of the tail may lose


def opposite_shifts(alpha: Floats, shift: float, rate: float) -> Floats:
    """Return the divergence of ``(1-rate) N(0,1) + rate N(shift,1)`` from its mirror image."""
    return np.array([_divergence(float(power), shift, rate) for power in alpha])


def _divergence(power: float, a: float, q: float) -> float:
    plain = (power - 1) * -math.log1p(-q) < _LOSS
    end = (power if plain else 2 * power - 1) * a + _REACH + 1.0
    rough = _excess(power, a, q, min(0.25, 0.1 / a), -a - _REACH, end) if end * max(4.0, 10.0 * a) < _MOST else None
    if rough is None or not math.isfinite(rough):
        return math.inf
    step, log_error, log_growth = _rule(power, a, rough)
    if (end + a + _REACH) / step > _MOST:
        return math.inf
    found = _excess(power, a, q, step, -a - _REACH - 1.0, end)
    # |T - I| <= e (C (1 + I) + 2 p - 1), so that I <= (T + tails + e (C + 2 p - 1)) / (1 - e C).
    error = log_error + float(np.logaddexp(log_growth, math.log(2 * power - 1)))
    whole = log_sum(np.array([found, error, _tails(power, a, q, end, plain)]))
    share = math.exp(min(0.0, log_error + log_growth))
    if share > 0.5:
        return math.inf
    whole += -math.log1p(-share) + 5e-14 + 8 * ULP * abs(whole)
    return float(np.logaddexp(0.0, whole)) / (power - 1) * (1 + 16 * ULP)


def _rule(power: float, a: float, rough: float) -> tuple[float, float, float]:
    """Return a step, and the logarithms of e and C such that its error is at most ``e (C (1 + excess) + 2 p - 1)``."""
    heights = np.linspace(0.0, 0.95, 200)[1:] * min(40.0, math.pi / a)
    growth = -(power - 1) * np.log(np.cos(0.5 * a * heights))  # log C of PROOFS.md, F11: the strip has |Im t| < pi/a
    large = np.logaddexp(growth + np.logaddexp(0.0, rough), math.log(2 * power))
    wanted = 0.5 * heights**2 + large - rough - math.log(_ACCURACY / 4)
    best = int(np.argmax(heights / wanted))
    raw = 2 * math.pi * float(heights[best] / wanted[best])
    digits = 2.0 ** (math.floor(math.log2(raw)) - 5)
    step = min(1.0, math.floor(raw / digits) * digits)  # few binary digits, so that all nodes are exact
    turns = 2 * math.pi * float(heights[best]) / step
    log_error = math.log(2.1) + 0.5 * float(heights[best]) ** 2 - turns  # turns are above 30: exp(-turns) is tiny
    return step, log_error + 1e-9, float(growth[best]) * (1 + 1e-9) + 1e-9


def _excess(power: float, a: float, q: float, step: float, low: float, high: float) -> float:
    """Return the logarithm of the trapezoid sum of phi R2 g(R1 / R2 - 1), rounded up."""
    nodes = np.arange(math.floor(low / step), math.ceil(high / step) + 1, dtype=np.float64) * step
    drawn, rest = math.log(q), math.log1p(-q)
    x = a * nodes
    one, other = (np.logaddexp(rest, drawn + side * x - 0.5 * a * a) for side in (1.0, -1.0))
    near = np.abs(x) < _FAR
    inside = np.where(near, x, 0.0)
    second = (1.0 - q) + q * np.exp(-inside - 0.5 * a * a)
    # R1 - R2 has the closed form of a sinh, so w keeps its digits near 0.
    w = 2.0 * q * math.exp(-0.5 * a * a) * np.sinh(inside) / second
    log = np.where(near & (np.abs(w) < 0.5), np.log1p(np.clip(w, -0.5, 0.5)), one - other)
    w = np.where(near, w, np.where(x > 0, np.inf, -1.0))
    # Rounding errors of w and of its logarithm, and the drift that follows, for both signs of w (F11, rounding).
    slack = ULP * (64.0 + 8.0 * (np.abs(x) + a * a - rest + abs(drawn)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logs = other + log_power_excess(power, w, log) - 0.5 * nodes**2
        moved = (power + 2.0) * -np.expm1(-np.maximum(log, 0.0)) + 5.0
    drift = ULP * (200.0 + np.abs(power * log) + nodes**2)
    drift += np.where(log >= 0, moved, 16.0 + 8.0 * np.abs(log)) * slack
    return log_sum(logs + drift) + math.log(step) - _HALF_LOG_2PI


def _tails(power: float, a: float, q: float, end: float, plain: bool) -> float:
    """Return the logarithm of a bound on the sum over the nodes outside."""
    outside = -0.5 * _REACH**2 - _HALF_LOG_2PI + 0.1
    rest, drawn = math.log1p(-q), math.log(q) - 0.5 * a * a
    one = float(np.logaddexp(rest, drawn + a * end))
    other = rest if plain else float(np.logaddexp(rest, drawn - a * end))
    beyond = power * one - (power - 1) * other - 0.5 * end**2 - _HALF_LOG_2PI + 0.1
    return float(np.logaddexp(outside + math.log(2 * power), beyond + 1e-9 + 1e-12 * abs(beyond)))


def rdp_poisson(
    alpha: Orders, sigma: float, q: float, *, adjacency: str = "add_remove", method: str = "auto", m: int = 4
) -> Any:
    """Return the Renyi divergence that one step on a Poisson batch leaks, in nats, rounded up.

    Notes
    -----
    `sigma` is the standard deviation of the noise on the sum of clipped gradients, over the clipping norm, and `q` the
    probability with which each record enters; the divisor of the sum must be fixed.

    "exact" is the largest divergence of any such step; for replace-one that of two opposite records (PROOFS.md, F11),
    infinite at orders where it would take too long. "taylor" is Theorem 3.2 or C.9 with m terms. "auto" is the exact
    value, and at those orders the bound without replacement, whose sensitivity is larger. Under add/remove the value is
    the one without replacement at twice the noise. An accountant of one sampler never holds for the other. The
    constants of Theorem C.9 are too small for the derivatives that they bound from the fourth on, so larger ones are
    used there (F7).
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
