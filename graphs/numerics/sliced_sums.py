"""Sums of many numbers that are computed slice by slice, so that what is in between stays in the nearest cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["SLICE", "sum_in_slices"]

SLICE: Final = 1 << 15
"""The most numbers in a slice."""


def sum_in_slices(part: Callable[[int, int], float], size: int) -> float:
    """Return a sum of numbers, to the bit what `numpy.sum` returns for a contiguous array of them.

    Numpy halves an array until a part is short; where it halves does not depend on what is in the parts.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.random.default_rng(0).random(100_000)
    >>> sum_in_slices(lambda start, stop: float(np.add.reduce(numbers[start:stop])), 100_000) == float(numbers.sum())
    True
    """
    return _between(part, 0, size)


def _between(part: Callable[[int, int], float], start: int, stop: int) -> float:
    if stop - start <= SLICE:
        return part(start, stop)
    half = (stop - start) // 2
    middle = start + half - half % 8
    return _between(part, start, middle) + _between(part, middle, stop)
