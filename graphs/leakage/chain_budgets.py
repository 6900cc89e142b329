"""Messages along a chain whose records have different budgets, as compositions of Moebius maps.

On v = expm1(rho/2) every message is a Moebius map with non-negative coefficients. A long chain is cut into blocks whose
maps are composed side by side, so that only the blocks are sequential. Proofs: `graphs/PROOFS.md`, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, down, up

__all__ = ["SWEPT", "TINY", "Span", "gain", "messages_from_right", "nats"]

#: Results below this may have underflowed; they are enlarged to it.
TINY = 1e-290

#: About how many values the sweeps over long edges compute in all; stopping early is valid.
SWEPT = 100_000_000

#: Records of one piece, swept repeatedly before the next: small enough for the processor's cache.
PIECE = 1 << 14

#: Chains of fewer records are followed record by record; blocks do not pay there.
SHORT = 1 << 13


def gain(diameter: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return t >= tanh(D/4) and r <= 1/(1 + exp(D/2)), the two numbers that make phi a Moebius map.

    With V = expm1(alpha/2) one has phi(D, alpha) = 2 log1p(t V / (1 + r V)): no cancellation for small numbers and
    none for large ones.
    """
    with np.errstate(over="ignore"):
        t = np.minimum(up(np.tanh(diameter / 4)), 1.0)
        r = down(1 / (1 + np.exp(diameter / 2)), 16)
    return t, r


@dataclass(frozen=True, slots=True)
class Span:
    """Edges of one length along a chain."""

    step: int  # length m of the edges
    diameters: FloatArray  # shape (n - m,): of the edge from record i to record i + m
    t: FloatArray  # shape (n - m,): `gain` of the diameters
    r: FloatArray  # shape (n - m,): `gain` of the diameters

    def reversed(self) -> Span:
        """Return the edges as seen from the other end of the chain."""
        return Span(self.step, self.diameters[::-1], self.t[::-1], self.r[::-1])


def messages_from_right(amounts: IntArray, unit: float, spans: list[Span]) -> FloatArray:
    """Return the messages from the right: exactly for single steps, then lowered by sweeps over the long edges."""
    n = len(amounts)
    if n == 1:
        return np.zeros(1)
    sums = np.r_[0, np.cumsum(amounts)]
    budgets = up(amounts.astype(np.float64) * unit, 1)
    rho: FloatArray = np.minimum(
        _single_steps(budgets, spans[0]), up((sums[n] - sums[1:]).astype(np.float64) * unit, 2)
    )
    if len(spans) == 1:
        return rho
    sweeps = int(np.clip(SWEPT / (n * len(spans)), 12, 500))  # every sweep leaves valid bounds
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        values = up(np.expm1(rho / 2))
        for start in range((n - 1) // PIECE * PIECE, -1, -PIECE):
            maps = [_maps(start, sums, budgets, unit, span) for span in spans if start + span.step < n]
            _sweep(values, start, maps, sweeps)
    return np.minimum(rho, nats(values))


def _maps(
    start: int, sums: IntArray, budgets: FloatArray, unit: float, span: Span
) -> tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the maps of the edges of one length from the records of one piece."""
    n, m = len(budgets), span.step
    stop = min(start + PIECE, n - m)
    between = up((sums[start + m : stop + m] - sums[start + 1 : stop + 1]).astype(np.float64) * unit, 2)
    before = up(np.expm1(up(between + budgets[start + m : stop + m], 1) / 2))
    return m, before, up(np.expm1(between / 2)), span.t[start:stop], span.r[start:stop]


def _sweep(
    values: FloatArray, start: int, maps: list[tuple[int, FloatArray, FloatArray, FloatArray, FloatArray]], sweeps: int
) -> None:
    """Lower the values of the records of one piece, from those behind it and from each other."""
    here = values[start : start + PIECE]
    for _ in range(sweeps):
        last = here.copy()
        for m, f, g, t, r in maps:
            moved = t / (1 / (values[start + m : start + m + len(t)] * (1 + f) + f) + r)
            here[: len(t)] = np.fmin(here[: len(t)], up(moved * (1 + g) + g, 16))
        if (here >= last * (1 - 1e-13)).all():  # converged up to rounding
            break


def nats(value: FloatArray) -> FloatArray:
    """Return rho from expm1(rho/2), rounded up."""
    return up(2 * np.log1p(value))


def _single_steps(epsilon: FloatArray, span: Span) -> FloatArray:
    """Return the messages from the right along edges of length one, nats."""
    with np.errstate(over="ignore"):
        added = up(np.expm1(epsilon / 2))
        ceiling = up(np.expm1(span.diameters / 2))
    if len(epsilon) >= SHORT and added.max() < 1000.0:
        return nats(_by_blocks(added, ceiling, span))
    enlarge = 1 + 32 * UNIT  # the operations of a step, and the accuracy of its coefficients
    value, values = 0.0, [0.0] * len(added)
    f, c, t, r = (x.tolist() for x in (added, ceiling, span.t, span.r))
    for i in range(len(added) - 2, -1, -1):
        inner = value * (1 + f[i + 1]) + f[i + 1]
        value = t[i] * inner / (1 + r[i] * inner) * enlarge if inner < 1e300 else c[i]
        values[i] = value
    return nats(np.array(values))


def _by_blocks(added: FloatArray, ceiling: FloatArray, span: Span) -> FloatArray:
    """Return the values v of the messages along edges of length one, block by block from the right."""
    steps = len(added) - 1
    size = int(np.ceil(np.sqrt(steps)))
    count = -(-steps // size)

    def table(values: FloatArray, fill: float) -> FloatArray:
        """Return values from the right as one column for each block, filled up at the end."""
        return np.concatenate([values[::-1], np.full(size * count - steps, fill)]).reshape(count, size).T.copy()

    f, t, r = table(added[1:], 0.0), table(span.t, 1.0), table(span.r, 0.0)
    most = table(ceiling, np.inf)
    starts = _starts(f, t, r)
    found, value = np.empty((size, count)), starts
    enlarge = 1 + 32 * UNIT
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(size):
            inner = value * (1 + f[k]) + f[k]
            value = np.where(inner < 1e300, t[k] * inner / (1 + r[k] * inner) * enlarge, most[k])
            found[k] = value
    values: FloatArray = np.r_[found.T.ravel()[:steps][::-1], 0.0]
    return values


def _starts(f: FloatArray, t: FloatArray, r: FloatArray) -> FloatArray:
    """Return the value that enters each block, rounded up, from the composed maps of the blocks before it.

    A map v -> (a v + b) / (c v + d) is a matrix [[a, b], [c, d]] with non-negative entries, up to a positive factor.
    Their sums and products have small relative errors for any number of factors.
    """
    size, count = f.shape
    a, b, c, d = np.ones(count), np.zeros(count), np.zeros(count), np.ones(count)
    with np.errstate(under="ignore"):
        for k in range(size):
            inside = (1 + f[k]) * a + f[k] * c, (1 + f[k]) * b + f[k] * d
            a, b, c, d = t[k] * inside[0], t[k] * inside[1], c + r[k] * inside[0], d + r[k] * inside[1]
            if k % 8 == 7:
                scale = np.maximum(np.maximum(a, b), np.maximum(c, d))
                a, b, c, d = a / scale, b / scale, c / scale, d / scale
    grow = 1 + 4 * (8 * size + 16) * UNIT
    value, found = 0.0, [0.0]
    for p, q, x, y in zip(a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True):
        below = x * value + y
        if below > 0 and value < 1e300:
            value = (p * value + q) / below * grow + TINY
        else:
            value = p / x * grow + TINY if x > 0 else float("inf")
        found.append(value)
    return np.array(found[:-1])
