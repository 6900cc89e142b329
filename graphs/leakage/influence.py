"""Influence of one record of a chain on another: kernels of several steps, their log-ratios and diameters.

The *max-influence* of record i on a set Q is I = ln max P(x_Q | x_i) / P(x_Q | x_i'), over configurations of positive
probability (0/0 is left out, positive/0 is infinite). For a chain, whose records left and right of i are independent
given x_i, it is a sum of two ends for the same pair (x_i, x_i').
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.leakage.messages import log_error
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.elimination import SMALLEST
from graphs.structure.potentials import log_ratio_ranges

__all__ = [
    "LEAST",
    "Kernels",
    "Supports",
    "distances_from",
    "known_subsets",
    "largest_influences",
    "largest_ranges",
    "lengths",
    "supports_of",
]

#: Longest sequence of different supports; beyond it all states count as possible, which is a valid relaxation.
LONGEST = 256

#: Probabilities below this may have lost digits to underflow; no bound is built on their logarithms.
LEAST = 1e-280


@dataclass(frozen=True, slots=True)
class Supports:
    """Possible states at the first records, and the masks in which the chain then cycles."""

    head: BoolArray  # shape (h, k): masks of the states possible at records 0 to h - 1
    cycle: BoolArray  # shape (c, k): masks at records h, h + 1, ..., repeated for ever

    def at(self, record: int) -> BoolArray:
        """Return the mask of the states possible at one record."""
        start = len(self.head)
        mask: BoolArray = self.head[record] if record < start else self.cycle[(record - start) % len(self.cycle)]
        return mask


def supports_of(transition: FloatArray, initial: FloatArray) -> Supports:
    """Return the states possible at each record.

    >>> found = supports_of(np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([1.0, 0.0]))
    >>> found.head.astype(int), found.cycle.astype(int)
    (array([[1, 0]]), array([[1, 1]]))
    """
    pattern = transition > 0
    mask = initial > 0
    seen: dict[bytes, int] = {}
    masks: list[BoolArray] = []
    while mask.tobytes() not in seen:
        if len(masks) == LONGEST:
            return Supports(np.empty((0, len(mask)), dtype=np.bool_), np.ones((1, len(mask)), dtype=np.bool_))
        seen[mask.tobytes()] = len(masks)
        masks.append(mask)
        mask = np.asarray(pattern[mask].any(axis=0))
    start = seen[mask.tobytes()]
    every = np.array(masks)
    return Supports(every[:start], every[start:])


def distances_from(
    law: FloatArray, error: float, transition: FloatArray, initial: FloatArray, count: int
) -> FloatArray:
    """Return the distance of the law at each of the first records from the stationary one.

    The range does not increase along the chain: P(x_{i+1}) / law is an average of P(x_i) / law under the reversed
    chain. So the last entry bounds those of all later records.
    """
    found: list[float] = []
    current = initial.copy()
    for step in range(count):
        with np.errstate(divide="ignore"):
            ratio = np.log(np.where(current < LEAST, 0.0, current) / law)
        largest = float(max(np.abs(np.log(law)).max(), np.abs(ratio).max()))
        # errors of the two laws in a difference of two logarithms, of `step` products, and of the logarithms
        rounding = 2.1 * error + 2.1 * (step + 1) * (len(law) + 4) * UNIT + 32 * UNIT * largest
        spread = float(ratio.max() - ratio.min()) + rounding
        if found and np.isfinite(spread) and spread >= found[-1]:
            break
        found.append(spread)
        current = current @ transition
    return np.minimum.accumulate(np.array(found))


def known_subsets(values: FloatArray, seen: int) -> FloatArray:
    """Return the slices of a table for every set of known near records, and every value of these.

    >>> known_subsets(np.arange(8.0).reshape(1, 2, 2, 2), 2)[:, 0].tolist()
    [[[2.0, 4.0], [10.0, 12.0]], [[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]
    """
    found = values[None]
    for _ in range(seen - 1):
        known = np.moveaxis(found, 3, 0)
        known = known.reshape(-1, *known.shape[2:])
        found = np.concatenate([found.sum(axis=3), known])
    return found.reshape(*found.shape[:3], -1)


def largest_ranges(configurations: FloatArray, roundings: float) -> tuple[FloatArray, FloatArray]:
    """Return D for any known near records, and for none."""
    error = (roundings + len(configurations)) * UNIT
    with np.errstate(divide="ignore"):
        logs = np.log(configurations)
    ranges = log_ratio_ranges(logs, np.asarray(error)).max(axis=-1, initial=0.0)
    return ranges.max(axis=0), ranges[0]


def largest_influences(configurations: FloatArray, remote: FloatArray, roundings: float) -> tuple[float, float]:
    """Return I of one quilt for any known near records, and for none."""
    weights = configurations * remote
    if (weights < SMALLEST).any() and ((weights < SMALLEST) & (configurations > 0) & (remote > 0)).any():
        return float("inf"), float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(weights / weights.sum(axis=-1, keepdims=True))
        largest = np.zeros(len(logs))
        for a in range(logs.shape[1] - 1):
            difference = logs[:, a : a + 1] - logs[:, a + 1 :]
            high = np.fmax(np.fmax.reduce(difference, axis=-1), -np.fmin.reduce(difference, axis=-1))
            largest = np.maximum(largest, np.where(np.isnan(high), 0.0, high).max(axis=-1, initial=0.0))
    slack = log_error(logs, (roundings + len(configurations)) * UNIT)
    found = up(largest + slack, 2)
    return float(found.max()), float(found[0])


#: Smaller entries of products may have lost relative accuracy to underflow.
TINY = 1e-280

#: Largest number of entries of one temporary array (16 MB).
CHUNK = 2_000_000

BoolArray = npt.NDArray[np.bool_]


def lengths(states: int, n: int) -> IntArray:
    """Return the step lengths at which kernels of a chain are tabulated.

    >>> lengths(2, 5), len(lengths(2, 1_000_000)) < 700
    (array([1, 2, 3, 4]), True)
    """
    few = int(np.clip(5000 / states, 24, 600))
    dense = int(few * 0.8)
    chosen = list(range(1, min(dense, n - 1) + 1))
    ratio = max((n / dense) ** (1 / max(few - dense, 1)) - 1, 0.01) if n > dense else 1.0
    while chosen and chosen[-1] < n - 1:
        step = 1 << max(int(chosen[-1] * ratio), 1).bit_length() - 1
        chosen.append(min(chosen[-1] + step, n - 1))
    return np.array(chosen, dtype=np.int64)


class Kernels:
    """Log-ratios of the m-step kernels of a chain; the tables cover the first `ready` of the `lengths`."""

    def __init__(self, transition: FloatArray, n: int) -> None:
        states = len(transition)
        self.lengths = lengths(states, n)
        self.ready = 0
        shape = (len(self.lengths), states, states)
        self._logs, self._errors = np.empty((0, *shape[1:])), np.empty(0)
        self._tables = [np.empty((0, *shape[1:])) for _ in range(4)]
        self._row_error = (states + 2) * UNIT
        self._powers = {0: (transition, transition > 0)}
        self._last = (transition, transition > 0, 1)

    def prepare(self, count: int) -> int:
        """Compute the tables of the first `count` lengths, or of all when there are fewer; return how many."""
        count = min(count, len(self.lengths))
        if count > self.ready:
            kernels = [self._kernel(int(m)) for m in self.lengths[self.ready : count]]
            logs = np.array([logs for logs, _ in kernels])
            errors = np.array([error for _, error in kernels])
            tables = [*_ratios(logs, errors), *_ratios(logs.transpose(0, 2, 1), errors)]
            self._logs = np.concatenate([self._logs, logs])
            self._errors = np.concatenate([self._errors, errors])
            self._tables = [np.concatenate(pair) for pair in zip(self._tables, tables, strict=True)]
            self.ready = count
        return count

    def logs(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return ln P^m, shape (count, k, k), and bounds on the error of a difference of two entries."""
        count = self.prepare(count)
        return self._logs[:count], self._errors[:count]

    def forward(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return, for pairs of rows x, x', the maximum and the range over y of ln P^m(x, y) / P^m(x', y)."""
        count = self.prepare(count)
        return self._tables[0][:count], self._tables[1][:count]

    def backward(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return, for pairs of columns x, x', the maximum and the range over y of ln P^m(y, x) / P^m(y, x')."""
        count = self.prepare(count)
        return self._tables[2][:count], self._tables[3][:count]

    def diameters(self, count: int, possible: BoolArray) -> FloatArray:
        """Return the projective diameters of the kernels that start in the `possible` states, shape (count,)."""
        ranges = self.forward(count)[1]
        inside: FloatArray = ranges[:, possible][:, :, possible].max(axis=(1, 2), initial=0.0)
        return inside

    def _kernel(self, m: int) -> tuple[FloatArray, float]:
        """Return ln P^m and a bound on the error of a difference of two entries.

        Products of non-negative matrices have small relative errors entry by entry: (k + 2) units for each factor.
        Where an entry that is positive by the pattern of zeros has underflowed, the logarithms are missing (nan).
        """
        kernel, pattern, power = self._last
        rest = m - power
        while rest:
            bit = rest.bit_length() - 1
            factor, factor_pattern = self._doubled(bit)
            kernel, pattern = kernel @ factor, _compose(pattern, factor_pattern)
            rest -= 1 << bit
        self._last = (kernel, pattern, m)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(pattern, kernel, 0.0))
        if m > 1 and (kernel[pattern] < TINY).any():
            logs = np.full_like(logs, np.nan)
        return logs, log_error(logs, m * self._row_error * 2)

    def _doubled(self, bit: int) -> tuple[FloatArray, BoolArray]:
        if bit not in self._powers:
            kernel, pattern = self._doubled(bit - 1)
            self._powers[bit] = (kernel @ kernel, _compose(pattern, pattern))
        return self._powers[bit]


def _compose(first: BoolArray, second: BoolArray) -> BoolArray:
    product: BoolArray = first.astype(np.float32) @ second.astype(np.float32) > 0
    return product


def _ratios(logs: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return maximum and range over y of logs[x, y] - logs[x', y], rounded up, shape (J, k, k) each.

    Entries where both are minus infinity are left out. A pair with nothing left (a state that is never reached), or
    with missing logarithms, gets infinity.
    """
    shape = logs.shape
    largest, ranges = np.empty(shape), np.empty(shape)
    rows = max(CHUNK // (shape[1] * shape[2]), 1)
    with np.errstate(invalid="ignore"):
        for x in range(shape[1]):
            for start in range(0, shape[0], rows):
                part = slice(start, start + rows)
                difference = logs[part, x, None, :] - logs[part]
                high, low = np.fmax.reduce(difference, axis=2), np.fmin.reduce(difference, axis=2)
                largest[part, x], ranges[part, x] = high, high - low
        for table in (largest, ranges):
            table[np.isnan(table)] = np.inf
            table += errors[:, None, None]
    diagonal = np.arange(shape[1])
    largest[:, diagonal, diagonal] = ranges[:, diagonal, diagonal] = 0.0
    return largest, ranges
