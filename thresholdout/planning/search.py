"""Solving for the number of records, or for the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thresholdout.errors import PlanError
from thresholdout.planning.candidates import by_posterior, splitting, transcript_tolerance
from thresholdout.planning.use import Target, Use, independent

__all__ = ["fewest_records", "largest_budget"]

_MOST_RECORDS = 10**15


def fewest_records(target: Target) -> int:
    """Return the smallest number of independent records that reaches the tolerance.

    Raises
    ------
    PlanError
        When no number does.
    """

    def reaches(option: Callable[[Use], float]) -> Callable[[int], bool]:
        return lambda records: option(target.use(model=independent(records))) <= limit

    limit = _limit(target)
    found = _earliest([reaches(transcript_tolerance), reaches(_splitting), reaches(_posterior)], _MOST_RECORDS)
    if found is None:
        raise PlanError(
            f"no number of records up to {_MOST_RECORDS:.0e} reaches a tolerance of {target.tolerance:g}; take a "
            "larger tolerance, or fewer questions"
        )
    return found


def largest_budget(target: Target) -> int:
    """Return the largest budget of a guard that keeps the tolerance; 1 when only splitting does.

    Raises
    ------
    PlanError
        When nothing reaches the tolerance.
    """
    queries, limit = target.queries, _limit(target)

    def keeps(option: Callable[[Use], float]) -> Callable[[int], bool]:
        return lambda spare: option(target.use(budget=queries - spare)) <= limit

    spare = _earliest([keeps(transcript_tolerance), keeps(_posterior)], queries - 1, first=0)
    if spare is not None:
        return queries - spare
    use = target.use(budget=1)
    if _splitting(use) > limit:
        reached = min(transcript_tolerance(use), _posterior(use))
        raise PlanError(
            f"{use.n} records allow no answer from the holdout within {target.tolerance:g}: a budget of 1 has the "
            f"tolerance {reached:.3g}. Ask fewer questions, lower the confidence or the quiet margin "
            f"({use.margin:.3g}), or take more records"
        )
    return 1


def _limit(target: Target) -> float:
    assert target.tolerance is not None
    return target.tolerance


def _posterior(use: Use) -> float:
    return by_posterior(use).tolerance


def _splitting(use: Use) -> float:
    return splitting(use).tolerance


def _earliest(conditions: Iterable[Callable[[int], bool]], most: int, first: int = 1) -> int | None:
    """Return the smallest number in [first, most] from which on one of several monotone conditions holds."""
    found = None
    for holds in conditions:
        limit = most if found is None else found - 1
        if limit >= first and holds(limit):
            found = _switch(holds, first, limit)
    return found


def _switch(holds: Callable[[int], bool], first: int, last: int) -> int:
    """Return the smallest number at which a monotone condition holds that holds at ``last``."""
    low, high, step = first - 1, last, 1
    while low + step < high:
        if holds(low + step):
            high = low + step
        else:
            low, step = low + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
