"""Sums within segments of an array, and the contraction of messages: the inner loops of message passing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphs.leakage.chain_budgets import gain
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import FUNCTION_ULPS, UNIT, up

__all__ = ["BLOCK", "Contraction", "Map", "Segments", "Shrinkage"]

#: Added to every contracted message: larger than what underflow can take away.
TINY = 2.0**-1000

#: Enlargement for one rounded product.
ONE_PRODUCT = 1 + 6 * UNIT

#: phi is 2 log1p(t V / (1 + r V)), V = expm1(alpha / 2). No map in it enlarges relative errors; 22 units in all.
ENLARGE = 1 + 2 * 26 * UNIT


#: Entries handled at a time, so that intermediate results stay in the processor's cache.
BLOCK = 1 << 14


class Segments:
    """Sums over the other members of each segment of an array.

    Parameters
    ----------
    keys : ndarray of shape (E,)
        Not decreasing; equal keys make a segment.

    Examples
    --------
    >>> Segments(np.array([0, 0, 0, 1])).others(np.array([1.0, 2.0, 4.0, 8.0])).round(9)
    array([6., 5., 3., 0.])
    """

    def __init__(self, keys: IntArray) -> None:
        self.starts: IntArray = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]][: len(keys)])
        self.keys: IntArray = keys[self.starts]
        self.lengths: IntArray = np.diff(np.r_[self.starts, len(keys)])
        self.grow: FloatArray = 1 + 2 * (self.lengths.astype(np.float64) + 4) * UNIT
        self._alone = np.repeat(self.lengths == 1, self.lengths)
        self._blocks = list(self._cut(len(keys)))

    def _cut(self, size: int) -> Iterator[_Block]:
        """Yield blocks of whole segments, of about `BLOCK` entries each."""
        marks = np.append(self.starts, size)
        edges = np.unique(np.searchsorted(marks, np.arange(0, size + BLOCK, BLOCK)).clip(max=len(self.starts)))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            rows, parts = slice(int(marks[first]), int(marks[last])), slice(first, last)
            segment = np.repeat(np.arange(last - first), self.lengths[parts])
            yield _Block(rows, self.starts[parts] - rows.start, self.grow[parts], segment, self._alone[rows])

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of each segment, rounded up; `values` are not negative."""
        if not len(values):
            return np.zeros(0)
        found: FloatArray = np.add.reduceat(values, self.starts) * self.grow
        return found

    def others(self, values: FloatArray) -> FloatArray:
        """Return, for each entry, the sum of the other entries of its segment, rounded up.

        Parameters
        ----------
        values : ndarray of shape (E,)
            Finite and not negative.

        Returns
        -------
        ndarray of shape (E,)

        Notes
        -----
        Subtracting an entry from the sum of all loses digits when it is most of the sum. At most one entry of a
        segment is more than half of the (enlarged) sum; the others of that segment are added up without it.
        """
        found = np.empty(len(values))
        for rows, others in self.others_by_block(values):
            found[rows] = others
        return found

    def others_by_block(self, values: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the same for some whole segments at a time; what has not been yielded may be changed."""
        for block in self._blocks:
            yield block.rows, block.others(values[block.rows])


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole segments that are handled together, few enough for the processor's cache."""

    rows: slice
    starts: IntArray
    grow: FloatArray
    segment: IntArray
    alone: npt.NDArray[np.bool_]

    def others(self, values: FloatArray) -> FloatArray:
        """Return the sums of the other entries of each segment."""
        out = (np.add.reduceat(values, self.starts) * self.grow)[self.segment]
        most = values > 0.5 * out
        rest = np.add.reduceat(np.where(most, 0.0, values), self.starts) * self.grow
        out -= values
        out *= 1 + 2 * UNIT
        np.copyto(out, rest[self.segment], where=most)
        out[self.alone] = 0.0
        return out


class Map(Protocol):
    """What links make of the messages that pass them: increasing, concave, not above the message, 0 at 0."""

    def __init__(self, diameters: FloatArray) -> None: ...

    def apply(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return what the links of some rows leave of values, rounded up."""

    def one(self, position: int, value: float) -> float:
        """Return the same for one link and one value."""


class Contraction:
    """The map alpha -> phi(Delta, alpha) for many diameters at once.

    Parameters
    ----------
    diameters : ndarray of shape (E,)
        Not negative, possibly infinite.

    Examples
    --------
    >>> Contraction(np.array([1.0, np.inf])).apply(np.array([0.1, 0.1])).round(12)
    array([0.02448707, 0.1       ])
    """

    def __init__(self, diameters: FloatArray) -> None:
        self.diameters = diameters
        self.t, self.r = gain(diameters)

    @cached_property
    def _scalars(self) -> tuple[list[float], list[float], list[float]]:
        return self.t.tolist(), self.r.tolist(), self.diameters.tolist()

    def one(self, position: int, leakage: float) -> float:
        """Return phi(Delta, alpha) for one diameter, rounded up."""
        t, r, diameters = self._scalars
        bound: float = min(leakage, diameters[position])
        if leakage > 1000:
            return bound
        value = math.expm1(0.5 * leakage)
        contracted = math.log1p(t[position] * value / (1 + r[position] * value))
        return min(bound, 2 * ENLARGE * contracted + TINY)

    def apply(self, leakages: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return phi(Delta, alpha) for the diameters of some rows, rounded up.

        Where V overflows, or infinity is multiplied by zero, the smaller of both arguments remains.
        """
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            value = np.expm1(0.5 * leakages)
            below = self.r[rows] * value
            below += 1
            value *= self.t[rows]
            value /= below
            np.log1p(value, out=value)
            value *= 2 * ENLARGE
            value += TINY
            np.fmin(value, leakages, out=value)
            return np.fmin(value, self.diameters[rows], out=value)


class Shrinkage:
    """The map w -> tanh(Delta / 4) w for many diameters at once: the slope of phi(Delta, .) at 0.

    Parameters
    ----------
    diameters : ndarray of shape (E,)
        Not negative, possibly infinite.

    Examples
    --------
    >>> Shrinkage(np.array([4.0, np.inf])).apply(np.array([1.0, 1.0])).round(6)
    array([0.761594, 1.      ])
    """

    def __init__(self, diameters: FloatArray) -> None:
        self.factors: FloatArray = np.minimum(up(np.tanh(diameters / 4), FUNCTION_ULPS + 2), 1.0)

    @cached_property
    def _scalars(self) -> list[float]:
        found: list[float] = self.factors.tolist()
        return found

    def apply(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return tanh(Delta / 4) w for the diameters of some rows, rounded up."""
        return np.minimum(up(values * self.factors[rows], 1) + TINY, values)

    def one(self, position: int, value: float) -> float:
        """Return tanh(Delta / 4) w for one diameter, rounded up."""
        return min(value * self._scalars[position] * ONE_PRODUCT + TINY, value)
