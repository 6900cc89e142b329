"""Solving for the number of records, or of queries, at which answers are within a half-width."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from graphs.numerics.bisection import bisect_integers
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import InputError, PlanError
from thresholdout.mechanisms import ClaimsMechanism
from thresholdout.mechanisms.claims.kinds import guard_width, is_unlimited, list_width
from thresholdout.planning.algorithm_1 import algorithm_1
from thresholdout.planning.declaration import SparseVectorBudget
from thresholdout.planning.plan import ALGORITHM_1, FINAL, GUARD, LIST, Way, WayName
from thresholdout.planning.privacy_budget import HIDDEN, for_budget
from thresholdout.planning.request import MOST_RECORDS, Use, independent

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.planning.request import Use

__all__ = [
    "MOST_QUERIES",
    "all_ways",
    "claims_width",
    "effective_records",
    "fewest_of_a_kind",
    "fewest_records",
    "most_queries",
    "named_way",
    "one_way",
    "records_for",
    "smallest_at_which",
]


def named_way(use: Use) -> WayName:
    """Return the way of the arguments: the default, a list, or a mechanism by its name."""
    if use.records is not None and is_unlimited(use.records):
        return ALGORITHM_1
    if not use.adaptive:
        return FINAL if use.queries == 1 else LIST
    return GUARD


def claims_width(use: Use, name: WayName, *, quick: bool = False, n: int | None = None) -> float:
    """Return the half-width of a guard's claims, of a list or of one evaluation."""
    problem = use, name, quick, n
    if problem not in use.widths:
        use.widths[problem] = _claims_width(use, name, quick, use.model.n if n is None else n)
    return use.widths[problem]


def _claims_width(use: Use, name: WayName, quick: bool, n: int) -> float:
    parameters = use.parameters(n)
    if quick:
        parameters = dataclasses.replace(parameters, noise=0.0)
    if name == GUARD:
        return guard_width(parameters, n, use.asked, use.anticipated_score, use.similarity)
    if name == FINAL:
        risk = math.log1p(-use.confidence) - parameters.information_released
        return ClaimsMechanism(parameters, n).final_half_width(risk, use.anticipated_score)
    return list_width(parameters, n, use.asked, use.anticipated_score)


_CALLS: Final[dict[WayName, tuple[str, str]]] = {
    GUARD: ("nothing; any query at any time", "guard.score(model), guard.ask(...)"),
    LIST: ("all queries fixed before the first answer", "guard.score_all(models, reserve=0)"),
    FINAL: ("a choice by cross-validation; one query", "guard.final_check(model)"),
}
_UNCOVERED: Final = "noise that protects records covers queries about means, one after another"


def one_way(use: Use, name: WayName) -> Way:
    """Return one way, with the reason where it does not apply."""
    return _by_algorithm_1(use) if name == ALGORITHM_1 else _by_claims(use, name)


def all_ways(use: Use) -> list[Way]:
    """Return all ways, the narrowest first."""
    names: tuple[WayName, ...] = (FINAL, GUARD, LIST, ALGORITHM_1)
    return sorted((one_way(use, name) for name in names), key=lambda way: way.half_width)


def _by_claims(use: Use, name: WayName) -> Way:
    needs, call = _CALLS[name]
    if use.epsilon is not None and name == GUARD:
        call = f"Thresholdout(..., mechanism=Claims(epsilon={use.epsilon:g}))"
    why = ""
    if name == LIST and use.asked == 1:
        why = "one query is no list"
    elif is_unlimited(use.model):
        why = f"no deviation of a mean can be bounded for {use.model.describe()}"
    elif use.epsilon is not None and name != GUARD:
        why = _UNCOVERED
    else:
        try:
            width = claims_width(use, name)
        except InputError:  # the noise of a small epsilon is larger than the range
            if use.epsilon is None:
                raise
            width = 1.0
        if use.epsilon is None or width < HIDDEN:
            return Way(name, width, needs, call, use.parameters())
        why = f"the noise for epsilon={use.epsilon:g} hides everything; a larger one, a smaller budget= or more records"
    return Way(name, math.inf, needs, call, None, why_not=why)


def _by_algorithm_1(use: Use) -> Way:
    asked, answers, score, needed = use.asked, use.answers, use.anticipated_score, use.after_looks
    needs = f"at most {asked:,} queries, of which at most {answers:,} may disagree with the training part"
    call = f"Thresholdout(..., queries={asked}, mechanism=Claims(holdout_answers={answers}))"
    if use.epsilon is not None:
        call = f"Thresholdout(..., mechanism=SparseVector.for_budget({use.epsilon:g}, {answers}, {asked}))"
    elif not is_unlimited(use.model):
        call = f"Thresholdout(..., mechanism=plan(..., budget={answers}).way({ALGORITHM_1!r}).parameters)"
    missing = partial(Way, ALGORITHM_1, math.inf, needs, call, None)
    if needed is None:
        return missing(why_not="scores that were seen before (prior_queries=) leave it no confidence")
    if use.epsilon is None and use.budget is None and not is_unlimited(use.model):
        return missing(why_not="it takes a number of answers from the holdout (budget=) or an epsilon (epsilon=)")
    try:
        if use.epsilon is None:
            found = algorithm_1(use.model, queries=asked, budget=answers, confidence=needed, expected=score)
        else:
            wanted = SparseVectorBudget(use.epsilon, answers)
            found = for_budget(use.model, wanted, queries=asked, confidence=needed)
    except PlanError as error:
        return missing(why_not=error.reason)
    width = certify_parameters(use.model, found, needed).expected_half_width(score)
    if width >= 1.0:
        return missing(why_not="its intervals are the whole range")
    return Way(ALGORITHM_1, width, needs, call, found)


MOST_QUERIES: Final = 10**6  # a plan that reaches its width with so many names this number
MOST_OF_A_KIND: Final = 10**7  # models of more dependent records take minutes to make
_ROUGH: Final = 200  # the number of records is found to a two-hundredth of itself
_ROUGHER: Final = 50  # and that of queries to a fiftieth, which two digits of a half-width do not show
_LEAP: Final = 4  # from a number of records with no certificate to the next attempt
_GUESSES: Final = 12  # then the bracket is halved, so that a family of any shape comes to an end


def records_for(use: Use) -> tuple[Use, DependenceModel]:
    """Return a use with the smallest number of records that reaches its width, and their model as declared."""
    if use.family is None:
        name, most = named_way(use), MOST_RECORDS
        found = fewest_records(use, name)
        if found is not None:
            model = independent(found)
            return use.of(model), model
    else:
        first, _ = use.member(_first_of_a_kind(use))
        name, most = named_way(first), MOST_OF_A_KIND
        member = fewest_of_a_kind(use, name)
        if member is not None:
            return member
    raise PlanError(
        f"No number of records up to {most:.0e} puts {use.asked:,} queries within ± {_wanted(use):g}. Take "
        "a larger width=, fewer queries=, or adaptive=False where all queries are fixed before the first answer."
    )


def fewest_of_a_kind(use: Use, name: WayName) -> tuple[Use, DependenceModel] | None:
    """Return a use with the fewest records of its family that reach the width by one way, and their model.

    Up to half a per cent more. The root of the number of records times the half-width is about the same for all of
    them, which gives the next attempt; both ends of the bracket are models that were tried.
    """
    width, n = _wanted(use), _first_of_a_kind(use)
    low, high, best = 0, MOST_OF_A_KIND + 1, None
    for tried in count():
        there, made = use.member(n)
        found = _half_width(there, name)
        near = made.n * (found / width) ** 2 if found < 1.0 else float(_LEAP * n)
        guess = math.ceil(near * (1 + 0.5 / _ROUGH))
        if found <= width:
            high, best = min(n, made.n), (there, made)  # a family of whole groups may round down
            step = max(1, high // _ROUGH)
            guess = high - step if near > high - 2 * step else guess
        else:
            low = n
        if high - low <= max(1, high // _ROUGH):
            return best
        n = guess if low < guess < high and tried < _GUESSES else (low + high) // 2
    raise AssertionError


def _first_of_a_kind(use: Use) -> int:
    """Return the first number to try for a family: no fewer than independent records would need."""
    name: WayName = GUARD if use.adaptive else LIST
    return fewest_records(dataclasses.replace(use, records=None), name) or MOST_OF_A_KIND


def _half_width(use: Use, name: WayName) -> float:
    """Return the half-width of one way, infinite where the records do not allow it."""
    if name in (GUARD, LIST, FINAL):
        return math.inf if is_unlimited(use.model) else claims_width(use, name)
    return one_way(use, name).half_width


def fewest_records(use: Use, name: WayName) -> int | None:
    """Return the smallest number of records that reaches the width by one way; ``None`` if none does.

    Independent records where none are given, else records with the design effect of the model. For claims up to half a
    per cent more: no more is known of their widths. Where all records depend on each other, more need not help.
    """
    width = _wanted(use)
    least = math.ceil(1.0 / use.anticipated_score)
    if use.records is not None and (name == ALGORITHM_1 or effective_records(use) <= 1.0 < use.model.n):
        return None

    def reached(n: int, *, quick: bool = False) -> bool:
        if use.records is not None:
            return claims_width(use, name, quick=quick, n=n) <= width
        return claims_width(use.of(independent(n)), name, quick=quick) <= width

    quick = name == GUARD
    if not reached(MOST_RECORDS, quick=quick):
        return None
    rough = 1 if name in (LIST, FINAL) else _ROUGH
    found = smallest_at_which(lambda n: reached(n, quick=quick), least, MOST_RECORDS, rough)
    while quick and not reached(found):
        found += max(1, found // _ROUGH)
    return found


def effective_records(use: Use) -> float:
    """Return the effective sample size of the model."""
    return use.model.effective_records() or use.model.n / use.model.variance_inflation()


def most_queries(use: Use, name: WayName) -> int | None:
    """Return the largest number of queries within the width by one way, up to a million; ``None`` if none is."""
    width = _wanted(use)

    def reached(queries: int, *, quick: bool = False) -> bool:
        there = use.asking(queries)
        if name in (GUARD, LIST, FINAL):
            return claims_width(there, name, quick=quick) <= width
        return one_way(there, name).half_width <= width

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
    """Return the smallest number from `first` on at which a monotone condition holds."""
    low, high, step = first - 1, last, 1
    while low + step < high:
        if holds(low + step):
            high = low + step
        else:
            low, step = low + step, 2 * step
    return bisect_integers(holds, low, high, close=lambda low, high: rough > 1 and high - low <= max(1, high // rough))
