"""Bisection to the side on which a condition is proved.

Each search keeps two ends: one at which a condition holds, and one at which it does not. It returns the first, and so
never a number about which nothing is known.

Notes
-----
Let h be the holding end, f the failing end, and m the middle of a halving.

*The condition holds at what is returned.* By induction over the halvings: h is the start that the caller vouches for,
or a point at which ``holds`` was called and returned true, since that is the only branch in which h moves. Nothing is
assumed about ``holds``: rounding errors may make it change sides more than once.

*The condition fails next to it.* In the same way f is the caller's start, or a point at which ``holds`` returned
false. A search that ends without a limit on halvings and without ``close`` ends when no float (or integer) lies
between the ends. If the condition is monotone, the result is therefore the last number at which it holds.

*A halving stays inside.* For finite ends ``a <= b`` whose sum does not overflow, ``a <= (a + b)/2 <= b``, rounding is
monotone, and halving is exact for normal numbers: the computed middle is in [a, b]. Integers are floored, to the same
effect. Geometric middles likewise, since ``sqrt(x * x) = x`` in floating point as long as the square is normal; where
the product of the ends is not, their difference is halved instead.

*A search ends.* It goes on only while a < m < b, and then replaces an end by m: the set of floats (or integers) between
the ends is finite and loses at least one. Since the width is halved up to rounding, from at most 2**1024 to at least
2**-1074, this takes about 2100 halvings at most, and about 53 for ends of one magnitude.
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
    """Return a number at which a condition holds, close to where it begins to fail.

    Examples
    --------
    >>> root = bisect(lambda x: x * x <= 2.0, 2.0, 1.0)
    >>> root, root**2 <= 2.0 < math.nextafter(root, 2.0) ** 2
    (1.414213562373095, True)
    >>> bisect(lambda x: x * x >= 2.0, 1.0, 2.0, halvings=3)
    1.5
    """
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
    """Return both ends of a bisection: the one at which a condition fails, and the one at which it holds.

    Examples
    --------
    >>> bracket(lambda x: x >= 0.3, 0.0, 1.0, halvings=2)
    (0.25, 0.5)
    """
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
    """Return the rule that ends a bisection when the upper end exceeds the lower one by at most a given share.

    Examples
    --------
    >>> 0.1 <= bisect(lambda x: x >= 0.1, 0.05, 1.0, close=within(0.01)) <= 0.101
    True
    """
    factor = 1.0 + relative
    return lambda low, high: not high > low * factor


def bisect_integers(
    holds: Callable[[int], bool],
    fails_at: int,
    holds_at: int,
    *,
    close: Callable[[int, int], bool] | None = None,
) -> int:
    """Return an integer at which a condition holds, next to one at which it fails.

    Examples
    --------
    >>> bisect_integers(lambda k: k * k <= 50, 100, 0), bisect_integers(lambda k: k * k >= 50, 0, 100)
    (7, 8)
    """
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
    """Return a number for each entry of an array, by as many bisections side by side.

    Examples
    --------
    >>> bisect_each(lambda x: x * x <= np.array([4.0, 9.0]), np.full(2, 8.0), np.zeros(2), halvings=3)
    array([2., 3.])
    """
    for _ in range(halvings):
        middle = 0.5 * (fails_at + holds_at)
        found = holds(middle)
        fails_at, holds_at = np.where(found, fails_at, middle), np.where(found, middle, holds_at)
    return holds_at


def bisect_each_integer(holds: Callable[[IntArray], BoolArray], fails_at: IntArray, holds_at: IntArray) -> IntArray:
    """Return an integer for each entry of an array, next to one at which its condition fails.

    Examples
    --------
    >>> bisect_each_integer(lambda k: k * k <= np.array([50, 3]), np.full(2, 100), np.zeros(2, dtype=int))
    array([7, 1])
    """
    while (apart := np.abs(fails_at - holds_at) > 1).any():
        middle = np.where(apart, (fails_at + holds_at) // 2, holds_at)
        found = holds(middle)
        fails_at, holds_at = np.where(apart & ~found, middle, fails_at), np.where(apart & found, middle, holds_at)
    return holds_at
