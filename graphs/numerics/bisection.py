"""Bisection to the side on which a condition is proved.

Each search keeps two ends: one at which a condition holds, and one at which it does not. It returns the first, and so
never a number about which nothing is known.

Notes
-----
Let h be the holding end, f the failing end, and m the middle of a halving.

*The condition holds at the result.* By induction over the halvings, h is the start that the caller vouches for, or a
point at which ``holds`` returned true, since only that branch moves h. Nothing is assumed about ``holds``: rounding
errors may make it change sides more than once.

*The condition fails next to it.* In the same way f is the caller's start, or a point at which ``holds`` returned false.
A search without a limit on halvings and without ``close`` ends when no float (or integer) lies between the ends. If the
condition is monotone, the result is therefore the last number at which it holds.

*A halving stays inside.* Take finite ends ``a <= b`` whose sum does not overflow. Then ``a <= (a + b)/2 <= b``,
rounding is monotone, and halving is exact for normal numbers, so the computed middle is in [a, b]. Integers are
floored, to the same effect. Geometric middles stay inside too, since ``sqrt(x * x) = x`` in floating point as long as
the square is normal. Where the product of the ends is not normal, their difference is halved instead.

*A search ends.* It goes on only while a < m < b, and then replaces an end by m. The set of floats (or integers) between
the ends is finite and loses at least one. The width is halved up to rounding, from at most 2**1024 to at least
2**-1074. This takes at most about 2100 halvings, and about 53 for ends of one magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray, IntArray

__all__ = ["bisect", "bisect_each", "bisect_each_integer", "bisect_integers", "bracket", "within"]

BoolArray: TypeAlias = npt.NDArray[np.bool_]

_NORMAL = float(np.finfo(np.float64).tiny)


def bisect(
    holds: Callable[[float], bool],
    fails_at: float,
    holds_at: float,
    *,
    halvings: int | None = None,
    close: Callable[[float, float], bool] | None = None,
    geometric: bool = False,
) -> float:
    """Return a number at which a condition holds, close to where it begins to fail."""
    return bracket(holds, fails_at, holds_at, halvings=halvings, close=close, geometric=geometric)[1]


def bracket(
    holds: Callable[[float], bool],
    fails_at: float,
    holds_at: float,
    *,
    halvings: int | None = None,
    close: Callable[[float, float], bool] | None = None,
    geometric: bool = False,
) -> tuple[float, float]:
    """Return both ends of a bisection: the one at which a condition fails, and the one at which it holds."""
    for _ in repeat(None) if halvings is None else repeat(None, halvings):
        low, high = (fails_at, holds_at) if fails_at < holds_at else (holds_at, fails_at)
        if close is not None and close(low, high):
            break
        product = low * high if geometric and low > 0.0 else 0.0
        middle = math.sqrt(product) if _NORMAL <= product < math.inf else 0.5 * (low + high)
        if halvings is None and not low < middle < high:
            break
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return fails_at, holds_at


def within(relative: float) -> Callable[[float, float], bool]:
    """Return the rule that ends a bisection when the upper end exceeds the lower one by at most a given share."""
    factor = 1.0 + relative
    return lambda low, high: not high > low * factor


def bisect_integers(
    holds: Callable[[int], bool],
    fails_at: int,
    holds_at: int,
    *,
    close: Callable[[int, int], bool] | None = None,
) -> int:
    """Return an integer at which a condition holds, next to one at which it fails."""
    while abs(fails_at - holds_at) > 1:
        if close is not None and close(min(fails_at, holds_at), max(fails_at, holds_at)):
            break
        middle = (fails_at + holds_at) // 2
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return holds_at


def bisect_each(
    holds: Callable[[FloatArray], BoolArray], fails_at: FloatArray, holds_at: FloatArray, *, halvings: int
) -> FloatArray:
    """Return a number for each entry of an array, by as many bisections side by side."""
    for _ in range(halvings):
        middle = 0.5 * (fails_at + holds_at)
        found = holds(middle)
        fails_at, holds_at = np.where(found, fails_at, middle), np.where(found, middle, holds_at)
    return holds_at


def bisect_each_integer(holds: Callable[[IntArray], BoolArray], fails_at: IntArray, holds_at: IntArray) -> IntArray:
    """Return an integer for each entry of an array, next to one at which its condition fails."""
    while (apart := np.abs(fails_at - holds_at) > 1).any():
        middle = np.where(apart, (fails_at + holds_at) // 2, holds_at)
        found = holds(middle)
        fails_at, holds_at = np.where(apart & ~found, middle, fails_at), np.where(apart & found, middle, holds_at)
    return holds_at
