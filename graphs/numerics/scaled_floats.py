"""Non-negative numbers of any magnitude: a float64 and a power of two that is kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["Wide"]

#: Exponent of zero: below that of every number that can come up, far from the ends of 64-bit integers.
NOTHING = -(2**50)

#: Shifts beyond this leave nothing of a number, or would overflow.
FARTHEST = 1100


@dataclass(frozen=True, slots=True)
class Wide:
    """An array of numbers `fraction * 2**exponent`, with fractions zero or in [1/2, 1).

    Products, quotients and sums are off by one relative rounding error each, as those of floats are, but do not
    underflow or overflow. Terms of a sum that are below 2**-1074 of its largest term are lost.

    Parameters
    ----------
    fraction : ndarray
        Zero, or in [1/2, 1).
    exponent : ndarray of int, same shape
        Powers of two.

    Examples
    --------
    >>> tiny = Wide.of(np.array([1e-200]))
    >>> (tiny * tiny / tiny).floats() == tiny.floats()
    array([ True])
    """

    fraction: FloatArray
    exponent: IntArray

    @classmethod
    def of(cls, values: FloatArray, exponent: IntArray | int = 0) -> Wide:
        """Return the numbers `values * 2**exponent`; values are finite and not negative."""
        fraction, shift = np.frexp(values)
        return cls(fraction, np.where(fraction > 0, exponent + shift.astype(np.int64), NOTHING))

    def __getitem__(self, at: Any) -> Wide:
        return Wide(self.fraction[at], self.exponent[at])

    def __setitem__(self, at: Any, values: Wide) -> None:
        self.fraction[at], self.exponent[at] = values.fraction, values.exponent

    def __mul__(self, other: Wide) -> Wide:
        return Wide.of(self.fraction * other.fraction, self.exponent + other.exponent)

    def __truediv__(self, other: Wide) -> Wide:
        return Wide.of(self.fraction / other.fraction, self.exponent - other.exponent)

    def __add__(self, other: Wide) -> Wide:
        top = np.maximum(self.exponent, other.exponent)
        return Wide.of(self._shifted(top) + other._shifted(top), top)

    def sum(self) -> Wide:
        """Return the sum of all entries."""
        top = self.exponent.max(initial=NOTHING)
        return Wide.of(self._shifted(top).sum(), top)

    def floats(self) -> FloatArray:
        """Return numbers up to 1e308 as floats: zero, or without full accuracy, where they are below 2.3e-308."""
        result: FloatArray = np.ldexp(self.fraction, np.clip(self.exponent, -FARTHEST, FARTHEST).astype(np.int32))
        return result

    def _shifted(self, top: IntArray) -> FloatArray:
        """Return the numbers over `2**top`, for a `top` of at least their exponents."""
        result: FloatArray = np.ldexp(self.fraction, np.maximum(self.exponent - top, -FARTHEST).astype(np.int32))
        return result
