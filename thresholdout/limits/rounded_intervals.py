"""Intervals around a value, rounded conservatively."""

from __future__ import annotations

import math

__all__ = ["interval_around", "larger_side"]


def interval_around(value: float, half_width: float, lower: float, upper: float) -> tuple[float, float]:
    """Return the numbers of a range that are within a half-width of a value, rounded conservatively."""
    return max(lower, -_added(half_width, -value)), min(upper, _added(value, half_width))


def larger_side(value: float, low: float, high: float) -> float:
    """Return the larger distance of an interval's ends from a value, rounded up."""
    return max(_added(high, -value), _added(value, -low))


def _added(a: float, b: float) -> float:
    """Return a sum, rounded up; the rounding error is known exactly [Knuth, TAOCP 2, 4.2.2, Theorem B]."""
    total = a + b
    shift = total - a
    lost = (a - (total - shift)) + (b - shift)
    return math.nextafter(total, math.inf) if lost > 0.0 else total
