"""Expectations of powers of a likelihood ratio under the standard normal law, bounded on the wanted side.

All have the form ``E[g_p(w(t))]`` with ``g_p(w) = (1 + w)**p - 1 - p w >= 0`` and a likelihood ratio ``1 + w(t)`` of a
mixture of normal laws of unit variance to the standard normal law. The trapezoid rule converges exponentially for such
integrals. Its error, the tails and the rounding are bounded (PROOFS.md, F2 and F3), so the upper values are guarantees
and the lower ones lower bounds. Both are about 1e-13 apart, relatively.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.rounding import ULP
from thresholdout.privacy.accounting.minibatches.minibatch_arguments import Floats

__all__ = ["Excess", "Mixture", "Ratio", "TwoPoint", "log_excess", "log_power_excess", "log_sum", "wide"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_NODES = 4096  # more nodes are handled in pieces, and most pieces are bounded without evaluation
_ROUNDS = 6  # in which the pieces that matter are divided again
_REACH = 16.0  # standard deviations beyond the outermost component


def wide(values: Floats, side: int) -> Floats:
    """Return the values moved by 8 units in the last place, away from 0 for side = 1, towards it for -1."""
    return values * (1.0 + side * 8 * ULP)


def log_sum(logs: Floats) -> float:
    """Return ``log(sum(exp(logs)))``; -inf for no terms."""
    top = float(logs.max()) if logs.size else -math.inf
    return top if not math.isfinite(top) else top + math.log(float(np.exp(logs - top).sum()))


@dataclass(frozen=True)
class Ratio:
    """Values of a likelihood ratio at some nodes: the ratio less 1, its logarithm, and a bound on their error.

    `w` is infinite if the logarithm is above 600. `slack` bounds the error of the logarithm of ``|w|`` and, times ``|w|
    / (1 + w)``, of the ratio's.
    """

    w: Floats
    log: Floats
    slack: Floats


class Mixture(Protocol):
    """A mixture of normal laws with shifts ``0, a, ..., top * a``, of mean weight below 1."""

    @property
    def shift(self) -> float:
        """Distance of neighbouring components."""

    @property
    def top(self) -> int:
        """Largest number of shifts."""

    @property
    def touched(self) -> float:
        """Weight of all shifts but 0."""

    def at(self, nodes: Floats) -> Ratio:
        """Return the likelihood ratio to the standard normal law."""
        ...


@dataclass(frozen=True)
class TwoPoint:
    """The mixture ``(1 - q) N(0, 1) + q N(a, 1)``."""

    shift: float
    rate: float
    top: int = 1

    @property
    def touched(self) -> float:
        """Weight of all shifts but 0."""
        return self.rate

    def at(self, nodes: Floats) -> Ratio:
        """Return the likelihood ratio to the standard normal law."""
        exponent = self.shift * (nodes - 0.5 * self.shift)
        w = self.rate * np.expm1(np.minimum(exponent, 600.0))
        log = np.log1p(w)
        far = exponent > 600.0
        if far.any():
            log[far] = exponent[far] + math.log(self.rate)
            w[far] = math.inf
        return Ratio(w, log, ULP * (8.0 + np.abs(exponent)))


def log_power_excess(power: float, w: Floats, log: Floats) -> Floats:
    """Return ``log((1 + w)**p - 1 - p w)`` for p > 1 or p < 0."""
    out = np.full(w.shape, -np.inf)
    small = (np.abs(w) < 0.1) & (np.abs(power * w) < 0.5)
    if small.any():
        x = w[small]
        total = np.zeros_like(x)
        for k in range(24, 2, -1):  # Horner's rule for the binomial series over its first term
            total = (power - k + 1) / k * x * (1.0 + total)
        with np.errstate(divide="ignore"):
            out[small] = math.log(0.5 * power * (power - 1)) + 2 * np.log(np.abs(x)) + np.log1p(total)
    main = power * log
    large = ~small & ((main > 600.0) | np.isinf(w)) & (power > 1)
    if large.any():
        lam = log[large]
        rest = power * np.exp((1 - power) * lam) - (power - 1) * np.exp(-main[large])
        out[large] = main[large] + np.log1p(-rest)
    if power < 0:
        far = ~small & (w > 1e18)  # the first two terms are below the rounding error
        out[far] = math.log(-power) + log[far]
        rest_ = ~small & ~far
        out[rest_] = np.log(np.expm1(main[rest_]) - power * w[rest_])
        return out
    middle = ~small & ~large
    x = w[middle]
    out[middle] = np.log((1.0 + x) * np.expm1((power - 1) * log[middle]) - (power - 1) * x)
    return out


@dataclass(frozen=True)
class Excess:
    """Logarithm of an expectation of g_p, from below and from above."""

    lower: float
    upper: float


def log_excess(mixture: Mixture, powers: Floats) -> list[Excess]:
    """Return bounds of ``log E[g_p(w(t))]`` for several powers.

    Notes
    -----
    [B24, (6) to (8)] write ``E[Lam**alpha]``. As ``E[Lam] = 1``, it is ``1 + E[g_alpha(Lam - 1)]``, which loses no
    digits at small sampling rates.
    """
    a = mixture.shift
    up = bool(powers[0] > 1)
    # The height is chosen for the largest step whose error is small beside a guess of the value (PROOFS.md, F2); a
    # wrong guess only makes the added error bound larger.
    touched = max(mixture.touched, 1e-120)  # a smaller weight may get a looser bound
    scale = np.min(np.abs(powers * (powers - 1))) * touched**2 * min(a * a, 1.0) / 4
    wanted = 40.0 + max(0.0, math.log((2 + 2 * float(np.max(np.abs(powers)))) / scale))
    if not up:
        wanted += float(np.max(-powers)) * -math.log1p(-min(touched, 1 - 1e-16))
    height = min(math.sqrt(2 * wanted), (0.9 if up else 0.5) * math.pi / a)
    raw = 2 * math.pi * height / (wanted + 0.5 * height**2)
    digits = 2.0 ** (math.floor(math.log2(raw)) - 5)
    step = math.floor(raw / digits) * digits  # few binary digits, so that all nodes are exact
    return _Rule(mixture, up, step, height).bounds(powers)


class _Rule:
    """The trapezoid rule with a given step for one mixture."""

    def __init__(self, mixture: Mixture, up: bool, step: float, height: float) -> None:
        self.mixture, self.up, self.step = mixture, up, step
        self.log_error = 0.5 * height**2 - 2 * math.pi * height / step + math.log(2.1)
        self.first = -math.ceil(_REACH / step)
        self.cached = (self.first, self.first, mixture.at(np.empty(0)))

    def _nodes(self, low: int, high: int) -> Floats:
        return np.arange(low, high, dtype=np.float64) * self.step

    def ratio(self, low: int, high: int) -> Ratio:
        """Return the density ratio at the nodes from `low` on, up to `high`; the last stretch is cached."""
        start, stop, held = self.cached
        if low != start or high > stop:
            self.cached = (low, high, self.mixture.at(self._nodes(low, high)))
            return self.cached[2]
        size = high - low
        return Ratio(held.w[:size], held.log[:size], held.slack[:size])

    def last(self, power: float) -> int:
        """Return the number of the node from which on a bound replaces the integrand of a power."""
        reach = self.mixture.shift * self.mixture.top * (max(power, 1.0) if self.up else 1.0)
        return math.ceil((reach + _REACH) / self.step) + 1

    def bounds(self, powers: Floats) -> list[Excess]:
        """Return bounds for all powers, from one set of nodes if that is small."""
        ends = [self.last(float(p)) for p in powers]
        if max(ends) - self.first <= 4 * _NODES:
            self.ratio(self.first, max(ends))
        return [self.one(float(p), end) for p, end in zip(powers, ends, strict=True)]

    def pieces(self, power: float, end: int) -> tuple[list[tuple[int, int]], float]:
        """Return the stretches of nodes that matter, and the logarithm of a bound on the sum over the others."""
        if end - self.first <= 4 * _NODES:
            return [(self.first, end)], -math.inf
        marks = np.unique(np.linspace(self.first, end, _NODES).astype(np.int64))
        low, high = marks[:-1], marks[1:]
        dropped, best = -math.inf, -math.inf
        for _ in range(_ROUNDS):
            tops, seen = self._tops(power, low, high)
            best = max(best, seen)
            # The pieces left out add at most e^-80 of the largest value, and their bound is added anyway.
            keep = tops > best - 80.0 - math.log(end - self.first)
            if not keep.all():
                dropped = log_sum(np.append(tops[~keep] + np.log((high - low)[~keep]), dropped))
            low, high = low[keep], high[keep]
            if int((high - low).sum()) <= 64 * _NODES or low.size > 2 * _NODES:
                break
            parts = max(2, 2 * _NODES // low.size)
            edges = low[:, None] + (high - low)[:, None] * np.arange(parts + 1) // parts
            low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
            low, high = low[high > low], high[high > low]
        stretches: list[tuple[int, int]] = []
        for start, stop in zip(low.tolist(), high.tolist(), strict=True):
            if stretches and stretches[-1][1] == start and stop - stretches[-1][0] < 16 * _NODES:
                stretches[-1] = (stretches[-1][0], stop)
            else:
                stretches.append((start, stop))
        return stretches, dropped

    def _tops(self, power: float, low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[Floats, float]:
        """Return bounds of the integrand's logarithm over stretches, and the largest value at their starts."""
        marks = np.unique(np.concatenate([low, high]))
        nodes: Floats = np.asarray(marks * self.step, dtype=np.float64)
        ratio = self.mixture.at(nodes)
        values = log_power_excess(power, ratio.w, ratio.log) - 0.5 * nodes**2
        first, last = np.searchsorted(marks, low), np.searchsorted(marks, high)
        left, right = nodes[first], nodes[last]
        lead = power if power > 1 else 1.0
        slope = (ratio.log[last] - ratio.log[first]) / (right - left)
        best = np.clip(lead * slope, left, right)  # the logarithm of the ratio is convex: chords are above it
        growing = lead * (ratio.log[first] + slope * (best - left)) - 0.5 * best**2
        nearest = np.where((left < 0) & (right > 0), 0.0, np.minimum(left**2, right**2))
        tops: Floats = np.logaddexp(growing + math.log(abs(power)), self._flat(power) - 0.5 * nearest) + 0.01
        return tops, float(values.max())

    def _flat(self, power: float) -> float:
        """Return the logarithm of a bound on g_p where the ratio is below 1."""
        if power > 1:
            return math.log(power)
        full = power * math.log1p(-min(self.mixture.touched, 1 - 1e-16))
        return float(np.logaddexp(full, math.log(2 - power)))

    def one(self, power: float, end: int) -> Excess:
        """Return the bounds for one power, from the nodes before `end`."""
        lows, highs = [], []
        kept, left_out = self.pieces(power, end)
        for low, high in kept:
            ratio = self.ratio(low, high)
            t = self._nodes(low, high)
            moved = np.abs(np.expm1(-ratio.log))  # |w| / (1 + w)
            # Each logarithm moves by its own rounding error: the elasticity of g_p in w, and cancellation (F3).
            drift = (
                ULP * (200.0 + np.abs(power * ratio.log) + t * t) + (abs(power) * moved + 2 * moved + 4) * ratio.slack
            )
            logs = log_power_excess(power, ratio.w, ratio.log) - 0.5 * t * t
            highs.append(log_sum(logs + drift))
            lows.append(log_sum(np.where(ratio.slack < 0.4, logs - drift, -np.inf)))
        factor = math.log(self.step) - _HALF_LOG_2PI
        upper = log_sum(np.array([*highs, left_out])) + factor
        lower = log_sum(np.array(lows)) + factor
        # The rule's error is relative to the integral of moduli on the strip's borders (F2).
        error = self.log_error + float(
            np.logaddexp(upper if power > 1 else -math.inf, self._flat(power) + math.log(4.0))
        )
        whole = log_sum(np.array([upper, error, self._tail(power, end)]))
        return Excess(
            lower=lower + _log1m(error - lower) - 5e-14 - 8 * ULP * abs(lower),
            upper=whole + 5e-14 + 8 * ULP * abs(whole),
        )

    def _tail(self, power: float, end: int) -> float:
        """Return the logarithm of a bound on the sum over the nodes outside."""
        outside = -0.5 * _REACH**2 - _HALF_LOG_2PI + 0.1
        beyond: float = -math.inf
        if power > 1:  # the integrand falls at least as exp(-16 s)
            right = float(self.mixture.at(np.array([end * self.step])).log[0])
            beyond = power * right - 0.5 * (end * self.step) ** 2 - _HALF_LOG_2PI + 0.1
        return float(np.logaddexp(outside + self._flat(power), beyond))


def _log1m(log_part: float) -> float:
    return math.log1p(-math.exp(log_part)) if log_part < -1e-9 else -math.inf
