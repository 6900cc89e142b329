"""Exact sums of per-record values, slice by slice: nothing is copied but a slice that stays in the nearest cache.

A value v in [0, 1] is rounded to the grid of `thresholdout.data.values.UnitRecords` by adding ``2**(52 - bits)``:
neighbouring floats from there on are ``2**-bits`` apart, so the sum is rounded to the nearest multiple, ties to even,
and its bit pattern, an integer, grows by exactly ``rint(v * 2**bits)``. Patterns are added as integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphs.numerics.sliced_sums import SLICE
from thresholdout.data.values import (
    ExactMean,
    checked_values,
    floats_inside,
    grid_variance,
    record_bits,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UnitSums"]

_MODULUS: Final = 1 << 64


class UnitSums:
    """What is added up of per-record values that are checked like those of `thresholdout.data.values.unit_mean`.

    Secret: the representation shows the number of records only.

    Parameters
    ----------
    values, n, bounds, argument
        As for `thresholdout.data.values.unit_mean`.

    Attributes
    ----------
    mean : ExactMean
        Of the values, each rounded to the grid.
    ends : bool
        Whether every value, rounded to the grid, is an end of the range.

    Raises
    ------
    InputError
        When the length is wrong, or a value is missing, infinite or out of range.
    InputTypeError
        When the values are not real numbers.

    Examples
    --------
    >>> sums = UnitSums([1, 2, 3, 4], 4, (0, 10), "holdout_values")
    >>> sums, sums.mean.mean(), sums.ends, round(sums.variance(), 4)
    (<UnitSums n=4>, 0.25, False, 0.0125)
    """

    __slots__ = ("_argument", "_array", "_bounds", "_zero", "ends", "mean")

    def __init__(self, values: object, n: int | None, bounds: tuple[float, float], argument: str) -> None:
        array = checked_values(values, n, argument)
        size, bits = array.size, record_bits(array.size)
        self._array: NDArray[Any] = array
        self._bounds = bounds
        self._argument = argument
        self._zero: NDArray[np.float64] = np.array(2.0 ** (52 - bits))
        if array.dtype.kind == "b" and bounds == (0.0, 1.0):
            self.mean, self.ends = ExactMean(int(np.count_nonzero(array)) << bits, size, bits), True
            return
        buffer = np.empty(min(size, SLICE))
        zero, inside = int(self._zero.view(np.uint64)), (1 << bits) - 1
        total, self.ends = 0, True
        for start in range(0, size, SLICE):
            patterns = self._lifted(start, start + SLICE, buffer).view(np.uint64)
            total += (int(np.add.reduce(patterns)) - patterns.size * zero) % _MODULUS
            self.ends = self.ends and not int(np.bitwise_or.reduce(patterns)) & inside
        self.mean = ExactMean(total, size, bits)

    def __repr__(self) -> str:
        return f"<UnitSums n={self.mean.n}>"

    def variance(self) -> float:
        """Return the variance of the values on the grid, divided by n and rounded once.

        Notes
        -----
        Squares of patterns are added modulo ``2**64``. A pattern is that of zero and k steps more, so this says which
        rest the sum S of all ``k**2`` has. Floats say near which number S is. A value v in units of the range has
        ``abs(v * 2**bits - k) <= 1/2``, so the sum of all ``(v * 2**bits)**2`` is within ``n * 2**bits <= 2**53`` of S;
        in slices of ``2**15`` values it is rounded by at most ``2**(15 + bits) + 2**38``. So what floats say is off by
        less than ``2**56``, and S is the only number with this rest that is so near.
        """
        size, total, bits = self.mean.n, self.mean.total, self.mean.bits
        buffer = np.empty(min(size, SLICE))
        zero, rest, about = int(self._zero.view(np.uint64)), 0, 0.0
        for start in range(0, size, SLICE):
            units = self._units(start, start + SLICE, buffer)
            about += float(np.einsum("i,i->", units, units))
            patterns = np.add(units, self._zero, out=buffer[: units.size]).view(np.uint64)
            rest += int(np.einsum("i,i->", patterns, patterns))
        rest = (rest - 2 * zero * total - size * zero * zero) % _MODULUS
        near = int(math.ldexp(about, 2 * bits))
        squares = rest + (near - rest + _MODULUS // 2) // _MODULUS * _MODULUS
        return grid_variance(total, squares, size, bits)

    def _lifted(self, start: int, stop: int, buffer: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return some values in units of the range, rounded to the grid, plus `_zero`, in a buffer."""
        units = self._units(start, stop, buffer)
        return np.add(units, self._zero, out=buffer[: units.size])

    def _units(self, start: int, stop: int, buffer: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return some values in units of the range; those of the range [0, 1] are not always copied."""
        part = floats_inside(self._array, start, stop, self._bounds, self._argument)
        if self._bounds == (0.0, 1.0):
            return part
        lower, upper = self._bounds
        units = np.subtract(part, lower, out=buffer[: part.size])
        units /= upper - lower
        return units
