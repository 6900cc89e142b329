"""Sums of many numbers that are computed slice by slice, so that intermediate arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["SLICE", "sum_in_slices"]

SLICE: Final = 1 << 15
"""The most numbers in a slice."""


def sum_in_slices(part: Callable[[int, int], float], size: int) -> float:
    """Return a sum of numbers, identical to the bit with `numpy.sum` of a contiguous array of them.

    NumPy halves an array until a part is short, at places that do not depend on the values.
    """
    return _between(part, 0, size)


def _between(part: Callable[[int, int], float], start: int, stop: int) -> float:
    if stop - start <= SLICE:
        return part(start, stop)
    half = (stop - start) // 2
    middle = start + half - half % 8
    return _between(part, start, middle) + _between(part, middle, stop)
