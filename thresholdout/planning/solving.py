"""Solving for the number of records, or of questions, at which answers are within a half-width."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from graphs.numerics.bisection import bisect_integers
from thresholdout.errors import PlanError
from thresholdout.planning.plan import FINAL, GUARD, LIST, WayName
from thresholdout.planning.request import MOST_RECORDS, Use, independent
from thresholdout.planning.ways import claims_width, named_way, one_way

__all__ = ["MOST_QUERIES", "fewest_records", "most_queries", "records_for", "smallest_at_which"]

MOST_QUERIES: Final = 10**6
_ROUGH: Final = 200  # records are found to a two-hundredth of themselves
_ROUGHER: Final = 50  # and questions to a fiftieth, which is less than half-widths show


def records_for(use: Use) -> Use:
    """Return a use with the smallest number of independent records that reaches its width.

    Raises
    ------
    PlanError
        When no number does.
    """
    found = fewest_records(use, named_way(use))
    if found is None:
        raise PlanError(
            f"no number of records up to {MOST_RECORDS:.0e} puts {use.asked:,} questions within ± {use.width:g}; take "
            "a larger width=, fewer queries=, or fixed=True where all questions are fixed before the first answer"
        )
    return use.of(independent(found))


def fewest_records(use: Use, name: WayName) -> int | None:
    """Return the smallest number of independent records that reaches the width by one way of asking.

    Up to half a per cent more for claims, about whose widths no more is known.
    """
    width = _wanted(use)
    least = math.ceil(1.0 / use.expected)

    def reached(n: int, *, quick: bool = False) -> bool:
        there = use.of(independent(n))
        if name in (GUARD, LIST, FINAL):
            return claims_width(there, name, quick=quick) <= width
        way = one_way(there, name)
        return way is not None and way.half_width <= width

    quick = name == GUARD
    if not reached(MOST_RECORDS, quick=quick):
        return None
    rough = 1 if name in (LIST, FINAL) else _ROUGH
    found = smallest_at_which(lambda n: reached(n, quick=quick), least, MOST_RECORDS, rough)
    while quick and not reached(found):
        found += max(1, found // _ROUGH)
    return found


def most_queries(use: Use, name: WayName) -> int | None:
    """Return the largest number of questions within the width by one way of asking; ``None`` if not even one is.

    No more than a million.
    """
    width = _wanted(use)

    def reached(queries: int, *, quick: bool = False) -> bool:
        there = use.asking(queries)
        if name in (GUARD, LIST, FINAL):
            return claims_width(there, name, quick=quick) <= width
        way = one_way(there, name)
        return way is not None and way.half_width <= width

    if name == FINAL:
        return 1 if reached(1) else None
    quick = name == GUARD
    if not reached(1, quick=quick):
        return None
    if reached(MOST_QUERIES, quick=quick):
        found = MOST_QUERIES
    else:
        rough = 1 if name == LIST else _ROUGHER
        found = smallest_at_which(lambda m: not reached(m, quick=quick), 1, MOST_QUERIES, rough) - 1
    while quick and found > 0 and not reached(found):
        found -= max(1, found // 50)
    return found or None


def _wanted(use: Use) -> float:
    assert use.width is not None
    return use.width


def smallest_at_which(holds: Callable[[int], bool], first: int, last: int, rough: int = 1) -> int:
    """Return the smallest number from ``first`` on at which a monotone condition holds.

    Parameters
    ----------
    holds : callable
        The condition; it holds at ``last``, and from some number on.
    first, last : int
        Where to look.
    rough : int
        With 200, a number that is larger by up to a two-hundredth will do; 1 for the smallest itself.

    Examples
    --------
    >>> smallest_at_which(lambda number: number**2 >= 50, 1, 1000)
    8
    """
    low, high, step = first - 1, last, 1
    while low + step < high:
        if holds(low + step):
            high = low + step
        else:
            low, step = low + step, 2 * step
    return bisect_integers(holds, low, high, close=lambda low, high: rough > 1 and high - low <= max(1, high // rough))
