"""Solving for the number of records, or of queries, at which answers are within a half-width."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from graphs.numerics.bisection import bisect_integers
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import PlanError
from thresholdout.mechanisms import ClaimsMechanism
from thresholdout.mechanisms.claims.kinds import guard_width, is_unlimited, list_width
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.plan import ALGORITHM_1, FINAL, GUARD, LIST, Way, WayName
from thresholdout.planning.request import MOST_RECORDS, Use, independent

if TYPE_CHECKING:
    from thresholdout.planning.request import Use

__all__ = [
    "MOST_QUERIES",
    "all_ways",
    "claims_width",
    "fewest_records",
    "most_queries",
    "named_way",
    "one_way",
    "records_for",
    "smallest_at_which",
]


def named_way(use: Use) -> WayName:
    """Return the way that the arguments ask for: the default, a list, or a mechanism by its name."""
    if use.records is not None and is_unlimited(use.records):
        return ALGORITHM_1
    if not use.adaptive:
        return FINAL if use.queries == 1 else LIST
    return GUARD


def claims_width(use: Use, name: WayName, *, quick: bool = False) -> float:
    """Return the half-width of a guard's claims, of a list or of one look.

    Parameters
    ----------
    use : Use
        With records.
    name : str
        Which of them.
    quick : bool
        Leave out the noise in the edges of claims, which takes most of the time and widens them by one per cent.
    """
    problem = use, name, quick
    if problem not in use.widths:
        use.widths[problem] = _claims_width(use, name, quick)
    return use.widths[problem]


def _claims_width(use: Use, name: WayName, quick: bool) -> float:
    parameters = use.parameters()
    if quick:
        parameters = dataclasses.replace(parameters, noise=0.0)
    if name == GUARD:
        return guard_width(parameters, use.model.n, use.asked, use.anticipated_score)
    if name == FINAL:
        risk = math.log1p(-use.confidence) - use.information_released
        return ClaimsMechanism(parameters, use.model.n).final_half_width(risk, use.anticipated_score)
    return list_width(parameters, use.model.n, use.asked, use.anticipated_score)


def one_way(use: Use, name: WayName) -> Way | None:
    """Return one way of asking; ``None`` where the records do not allow it."""
    if name in (GUARD, LIST, FINAL):
        return None if is_unlimited(use.model) else _by_claims(use, name)
    return _by_algorithm_1(use)


def all_ways(use: Use) -> list[Way]:
    """Return every way of asking that the records allow, the narrowest first."""
    names: list[WayName] = [FINAL, GUARD]
    if use.asked > 1:
        names.append(LIST)
    if use.budget is not None or is_unlimited(use.model):
        names.append(ALGORITHM_1)
    found = [way for name in names if (way := one_way(use, name)) is not None]
    return sorted(found, key=lambda way: way.half_width)


def _by_claims(use: Use, name: WayName) -> Way:
    needs, call = {
        GUARD: ("nothing; any query at any time", "guard.score(model), guard.ask(...)"),
        LIST: ("all queries fixed before the first answer", "guard.score_all(models, reserve=0)"),
        FINAL: ("a choice by cross-validation; one query", "guard.final_check(model)"),
    }[name]
    return Way(name, claims_width(use, name), needs, call, use.parameters())


def _by_algorithm_1(use: Use) -> Way | None:
    budget = 1 if use.budget is None else use.budget
    asked, score, needed = use.asked, use.anticipated_score, use.after_looks
    if needed is None:
        return None
    try:
        found = algorithm_1(use.model, queries=asked, budget=budget, confidence=needed, expected=score)
    except PlanError:
        return None
    needs = f"at most {asked:,} queries, of which at most {budget:,} may disagree with the training part"
    call = f"Thresholdout(..., queries={asked}, mechanism=Claims(holdout_answers={budget}))"
    if not is_unlimited(use.model):
        call = f"Thresholdout(..., mechanism=plan(..., budget={budget}).way({ALGORITHM_1!r}).parameters)"
    width = certify_parameters(use.model, found, needed).expected_half_width(score)
    return Way(ALGORITHM_1, width, needs, call, found) if width < 1.0 else None


MOST_QUERIES: Final = 10**6
_ROUGH: Final = 200  # records are found to a two-hundredth of themselves
_ROUGHER: Final = 50  # and queries to a fiftieth, which is less than half-widths show


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
            f"no number of records up to {MOST_RECORDS:.0e} puts {use.asked:,} queries within ± {use.width:g}; take "
            "a larger width=, fewer queries=, or adaptive=False where all queries are fixed before the first answer"
        )
    return use.of(independent(found))


def fewest_records(use: Use, name: WayName) -> int | None:
    """Return the smallest number of independent records that reaches the width by one way of asking.

    Up to half a per cent more for claims, about whose widths no more is known.
    """
    width = _wanted(use)
    least = math.ceil(1.0 / use.anticipated_score)

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
    """Return the largest number of queries within the width by one way of asking; ``None`` if not even one is.

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
