"""Solving for the number of records, or for the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thresholdout.certificates.splitting import splitting_width
from thresholdout.errors import PlanError
from thresholdout.planning.candidates import by_posterior, transcript_tolerance
from thresholdout.planning.gaussian import gaussian_tolerance, one_scale_tolerance
from thresholdout.planning.use import Target, Use, independent
from thresholdout.planning.words import parts_would_do

__all__ = ["fewest_for_gaussian", "fewest_records", "largest_budget", "smallest_at_which"]

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
    options = [transcript_tolerance, *([_splitting] if target.identically_distributed else []), _posterior]
    found = _earliest([reaches(option) for option in options], _MOST_RECORDS)
    noisy = fewest_for_gaussian(target.queries, limit, 1.0 - target.confidence, found or _MOST_RECORDS)
    found = noisy if noisy is not None else found
    if found is None:
        raise PlanError(
            f"no number of records up to {_MOST_RECORDS:.0e} reaches a tolerance of {target.tolerance:g}; take a "
            "larger tolerance, or fewer questions"
        )
    return found


def fewest_for_gaussian(queries: int, tolerance: float, beta: float, most: int) -> int | None:
    """Return the smallest number of independent records, up to a limit, for Gaussian answers; ``None`` beyond it.

    A guard with one noise scale is quick to find; with a schedule it takes about 0.61 times its records, near which the
    search begins.
    """

    def constant(records: int) -> bool:
        return one_scale_tolerance(independent(records), queries, beta) <= tolerance

    def scheduled(records: int) -> bool:
        return gaussian_tolerance(independent(records), queries, beta)[0] <= tolerance

    if not scheduled(most):
        return None
    simple = smallest_at_which(constant, 1, most) if constant(most) else most
    return _smallest_near(scheduled, max(1, round(0.61 * simple)), most)


def _smallest_near(holds: Callable[[int], bool], hint: int, last: int) -> int:
    """Return the smallest number at which a monotone condition holds that holds at ``last``, looking near a hint."""
    low, high = hint, hint
    if holds(hint):
        while low >= 1 and holds(low):
            low, high = (low * 24) // 25 - 1, low
    else:
        while high < last and not holds(high):
            low, high = high, min(last, (high * 26) // 25 + 1)
    low = max(low, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


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

    if _gaussian(target.use(budget=queries)) <= limit:
        return queries
    spare = _earliest([keeps(transcript_tolerance), keeps(_posterior)], queries - 1, first=0)
    if spare is not None:
        return queries - spare
    use = target.use(budget=1)
    if not target.identically_distributed or _splitting(use) > limit:
        reached = min(transcript_tolerance(use), _posterior(use))
        raise PlanError(
            f"{use.n} records allow no answer from the holdout within {target.tolerance:g}: a budget of 1 has the "
            f"tolerance {reached:.3g}. Ask fewer questions, lower the confidence or the quiet margin "
            f"({use.margin:.3g}), or take more records{_parts(use, limit)}"
        )
    return 1


def _parts(use: Use, limit: float) -> str:
    width = _splitting(use)
    return "" if use.identically_distributed or width > limit else parts_would_do(width)


def _limit(target: Target) -> float:
    assert target.tolerance is not None
    return target.tolerance


def _posterior(use: Use) -> float:
    return by_posterior(use).tolerance


def _splitting(use: Use) -> float:
    return splitting_width(use.model, use.queries, use.beta)


def _gaussian(use: Use) -> float:
    return gaussian_tolerance(use.model, use.queries, use.beta)[0]


def _earliest(conditions: Iterable[Callable[[int], bool]], most: int, first: int = 1) -> int | None:
    """Return the smallest number in [first, most] from which on one of several monotone conditions holds."""
    found = None
    for holds in conditions:
        limit = most if found is None else found - 1
        if limit >= first and holds(limit):
            found = smallest_at_which(holds, first, limit)
    return found


def smallest_at_which(holds: Callable[[int], bool], first: int, last: int) -> int:
    """Return the smallest number from ``first`` on at which a monotone condition holds.

    Parameters
    ----------
    holds : callable
        The condition; it holds at ``last``, and from some number on.
    first, last : int
        Where to look.

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
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
