"""`plan`: the recommended procedure, expected half-widths, and the records or queries that a width takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from graphs.numerics.rounding import shown_above
from thresholdout.certificates.problem import declared_confidence
from thresholdout.data.record_structure import planned_records
from thresholdout.errors import InputError, PlanError
from thresholdout.mechanisms.claims.predictor import SHARED
from thresholdout.planning.leaderboard import plan_leaderboard
from thresholdout.planning.plan import ALGORITHM_1, FINAL, GUARD, LIST, Plan, Way, WayName
from thresholdout.planning.request import Use, check_use
from thresholdout.planning.solving import (
    all_ways,
    claims_width,
    effective_records,
    fewest_of_a_kind,
    fewest_records,
    most_queries,
    named_way,
    records_for,
)

if TYPE_CHECKING:
    from datetime import timedelta

    import networkx as nx
    import numpy as np
    from numpy.typing import ArrayLike

    from graphs import DependenceModel
    from thresholdout.certificates.prior_queries import PriorQueries
    from thresholdout.planning.declaration import Limits
    from thresholdout.planning.request import Family, Use

__all__ = ["USELESS", "plan", "recommend", "warn", "within"]

USELESS: Final = 0.25
"""From this half-width on an interval covers half of the range."""

_LITTLE: Final = 0.1  # from this half-width on an interval settles little between models


def within(width: float) -> str:
    """Format a half-width, rounded up to two digits."""
    return f"± {shown_above(width, 2)}"


def recommend(use: Use, ways: Sequence[Way], chosen: Way) -> str:
    """Write the recommendation, its half-width and its reason in one sentence."""
    widths = {way.name: within(way.half_width) for way in ways if way.applies}
    asked = f"{use.asked:,} queries" if use.queries is not None else f"the first {use.asked:,} queries"
    if use.asked == 1 or chosen.name == FINAL:
        asked = "one query"
    setting = f"about {widths[chosen.name]} for {asked} at a score near {use.anticipated_score:g}"
    return f"{use.model.n:,} records: {_reason(use, widths, chosen, setting)}."


def _reason(use: Use, widths: dict[WayName, str], chosen: Way, setting: str) -> str:
    others = [
        f"{words} {widths[name]}"
        for name, words in (
            (LIST, "fixed together beforehand they would have"),
            (FINAL, "one final evaluation has"),
        )
        if name in widths and name != chosen.name
    ]
    beside = f"; {' and '.join(others)}" if others else ""
    match chosen.name:
        case "adaptive":
            return f"ask a guard, which answers any query at any time, {setting}{beside}"
        case "batch":
            one_by_one = f"; a guard that is asked one by one has {widths[GUARD]}" if GUARD in widths else ""
            return (
                f"ask all queries together by {chosen.call}, {setting}, because queries that are fixed before the "
                f"first answer pay nothing for each other{one_by_one}"
            )
        case "single":
            return f"let cross-validation choose and evaluate once by {chosen.call}, {setting}"
        case _ if use.epsilon is not None:
            claims = f"; claims with noise have {widths[GUARD]}" if GUARD in widths else ""
            told = f"with noise that releases at most {use.epsilon:g} nats about a record"
            return f"{chosen.call} answers {told}, {setting}{claims}"
        case _:
            return (
                f"Algorithm 1 answers with queries={use.asked} and budget={use.answers}, {setting}, because nothing "
                f"bounds how far a mean deviates under this dependence ({use.model.describe()}) and claims are "
                "impossible"
            )


def warn(use: Use, chosen: Way) -> tuple[str, ...]:
    """Return a sentence for each obstacle."""
    said = (_approximate(use, chosen), _missed(use, chosen), _too_few(use, chosen), _cross_validate(use, chosen))
    return tuple(words for words in said if words)


def _approximate(use: Use, chosen: Way) -> str:
    if not use.normal_limits or chosen.name == ALGORITHM_1:
        return ""
    return f"Intervals will be approximate, not guaranteed: {use.parameters().approximation}."


def _missed(use: Use, chosen: Way) -> str:
    if use.width is None or chosen.half_width <= use.width:
        return ""
    ways_out = [_that_many(use, chosen.records)] if chosen.records is not None else []
    if chosen.queries is not None:
        ways_out.append(f"at most {chosen.queries:,} queries to these")
    takes = f": that takes {', or '.join(ways_out)}" if ways_out else ""
    return f"These records do not put {use.asked:,} queries within {within(use.width)}{takes}."


def _that_many(use: Use, records: int) -> str:
    """Write the number of records that a width takes, with their kind."""
    if effective_records(use) == use.model.n:
        return f"{records:,} independent records"
    return f"about {records:,} records of this kind"


def _too_few(use: Use, chosen: Way) -> str:
    if chosen.half_width >= USELESS:
        return (
            "These are too few records to certify anything useful: an interval is half of the range or more. Take more "
            "records, or let cross-validation choose and evaluate once at the end."
        )
    if chosen.half_width > _LITTLE and chosen.name in (GUARD, ALGORITHM_1):
        return (
            f"{within(chosen.half_width).capitalize()} settles little between models: compare them with each other "
            "(guard.compare), or let cross-validation choose and evaluate once at the end."
        )
    return ""


def _cross_validate(use: Use, chosen: Way) -> str:
    """Training values that are less certain than the holdout's make claims wide."""
    records = effective_records(use)
    if chosen.name != GUARD or use.n_train is None or use.n_train >= records:
        return ""
    more = claims_width(dataclasses.replace(use, n_train=records), GUARD)
    return (
        f"Cross-validate on more than the holdout's size: with training values from {records:,.0f} records instead of "
        f"{use.n_train:,.0f}, the guard has {within(more)} instead of {within(chosen.half_width)}."
    )


def divide(use: Use) -> str:
    """Write how to divide the records before the first query; empty where no division was measured.

    The share is that of `benchmarks.development`: 500 training and 2,000 held-out records, climbs of 200 proposals.
    """
    from graphs import Groups, Independent

    n, guarded = use.model.n, use.model.n - use.model.n // 2
    if use.asked == 1 or not use.adaptive or use.epsilon is not None or use.prior_queries is not None:
        return ""
    if not isinstance(use.model, Independent | Groups) or use.anticipated_score * guarded < 1.0:
        return ""
    width = claims_width(use, FINAL, n=guarded)
    if width >= _LITTLE:
        return (
            f"Divide: hold back all {n:,} records; half of them leave a final check of {within(width)}, "
            "which settles little."
        )
    about = "about " if isinstance(use.model, Groups) else ""
    return (
        f"Divide: move {about}{n - guarded:,} of these records to the training part, or where models cannot be fitted "
        f"again to a development part (development=0.5); choose there, and check once by guard.final_check on the "
        f"{guarded:,} that stay guarded, {about}{within(width)}."
    )


_CLEARLY: Final = 0.9
"""Another mechanism replaces the default where its half-width is below this share of the default's."""


def plan(
    records: int | DependenceModel | Family | None = None,
    *,
    groups: ArrayLike | None = None,
    order: ArrayLike | None = None,
    window: float | timedelta | np.timedelta64 | None = None,
    graph: nx.Graph[Any] | None = None,
    correlation: float | None = None,
    similarity: float = SHARED,
    limits: Limits = "exact",
    queries: int | None = None,
    anticipated_score: float = 0.9,
    n_train: int | None = None,
    width: float | None = None,
    adaptive: bool = True,
    budget: int | None = None,
    confidence: float = 0.95,
    prior_queries: int | PriorQueries | None = None,
    teams: int | None = None,
    anticipation_error: float = 0.0,
    epsilon: float | None = None,
) -> Plan:
    """Recommend how to query a holdout, and compute the half-widths to expect, before any query is made.

    Use it to find out how precise the answers of a holdout will be for a number of queries, or how many records or
    queries a precision allows. It compares one final evaluation, a fixed list of queries, a guard (`Thresholdout`) for
    adaptive queries and, if it is requested or the only possibility, Algorithm 1 (`SparseVector`). Pass the records, or
    the structure of their dependence (``groups``, ``order`` or ``graph``). Pass ``width`` as well, or instead, to solve
    for the number of queries or records. Half-widths are for shares of correct predictions, such as accuracy.

    Parameters
    ----------
    records : int, graphs.DependenceModel or callable, optional
        Number of independent records in the holdout, or the dependence model of its records. If None, and without
        ``groups``, ``order`` or ``graph``, pass ``width``: the plan then finds the number of independent records that
        reaches it. A function from a number of records to their model, such as ``lambda n: MarkovChain(transition,
        n=n)``, finds the number of records of that kind (up to half a per cent more than needed). Its model may have
        fewer records than the number: whole groups, whole units of a panel.
    groups : array-like of hashable, optional
        Group of each record of the holdout, such as its patient. Records of one group may depend on each other. Pass
        the values, not a column's name.
    order : True or array-like, optional
        True declares that the ``records`` are in time order; an array has the time of each record. With ``width`` and
        ``order=True``, but without ``records``, the plan finds the number of records.
    window : int, float or time difference, optional
        With ``order`` or ``graph``: the distance beyond which records are independent.
    graph : networkx.Graph, optional
        Graph whose nodes are the records. Records without an edge between them are independent.
    correlation : float, optional
        Correlation, from 0 to 1, between the correctness of two predictions in a group or, with ``window``, within the
        window. If None, the plan assumes 0.5 in groups, and a guard learns it from the training part. With a window and
        None, limits hold for any correlation and are up to twice as wide.
    similarity : float, default 0.5
        Correlation of two queries' values on the same record, from 0 to 1: about 0.5 for models of one search, 0 for
        unrelated queries. A guard assumes 0.5. Its answers are wider if queries share less: for unrelated ones they
        were 14 % wider than planned in a simulation of 40 queries.
    limits : {"exact", "normal"}, default "exact"
        Confidence limits of the planned guard. "exact" limits are guaranteed. "normal" stands for
        ``Claims(limits="normal")``, for groups, and is APPROXIMATE. Half-widths may be 25 % off if there are hardly as
        many groups with wrong predictions as normal limits need at their level.
    queries : int, optional
        Maximum number of queries. If None, there is no limit, and half-widths refer to the first 100. With ``records``
        and ``width``, but without ``queries``, the plan finds the largest number within that width.
    anticipated_score : float, default 0.9
        Likely score, in (0, 1). Intervals are narrow near 0 and 1, and widest at 0.5.
    n_train : int, optional
        Number of independent records (groups, where they depend on each other in groups) behind the training values,
        for example by cross-validation. If None, as many as the holdout has.
    width : float, optional
        Half-width to reach, in (0, 0.5].
    adaptive : bool, default True
        Whether a query may depend on earlier answers. Pass False if all queries are fixed before the first answer.
    budget : int, optional
        Number of queries that may be answered from the holdout, for Algorithm 1. Algorithm 1 is compared only if this
        is given, or if the dependence leaves no other way (with a budget of 1 then). A guard of claims needs none.
    confidence : float, default 0.95
        Probability with which all intervals hold at once, in (0, 1).
    prior_queries : int or PriorQueries, optional
        Number of scores of this holdout that were seen before; see `PriorQueries`. Half-widths are for a guard that is
        made with the same ``prior_queries``.
    teams : int, optional
        Number of teams of a leaderboard, with one answer each. `Plan.leaderboard` has the intervals after these
        answers.
    anticipation_error : float, default 0.0
        Amount by which the teams overestimate their scores, beyond the sampling noise of their training part.
    epsilon : float, optional
        Bound on the privacy loss of one record through all answers together, in nats, under the model, against an
        attacker who knows any other records. Half-widths are those of guards with noise calibrated to it.
        `Plan.budgets` has every route to the epsilon of a single record.

    Returns
    -------
    Plan
        Print it for the recommendation. Its attributes include `recommended`, `half_width`, `records`, `queries` and
        `table`. Pass `Plan.parameters` to a guard, with the same confidence: ``Thresholdout(...,
        mechanism=p.parameters, confidence=p.confidence)``.

    Raises
    ------
    InputError
        If an argument is out of range, or if nothing is given to solve for.
    PlanError
        If nothing can be certified, or if the width cannot be reached by any number of records or queries.

    Notes
    -----
    The default recommendation is a guard that makes claims. Another mechanism is recommended only where it is narrower
    by more than a tenth, and a guard takes it only with ``mechanism=p.parameters``. Half-widths of claims are averages,
    for training values whose distance from the holdout's is that of sampling. No guarantee depends on that.

    Examples
    --------
    >>> p = plan(1000, queries=100, anticipated_score=0.95)
    >>> p
    <Plan: 1,000 records: ask a guard, which answers any query at any time, about ± 0.039 for 100 queries at a
    score near 0.95; fixed together beforehand they would have ± 0.025 and one final evaluation has ± 0.014.
    Divide: move 500 of these records to the training part, or where models cannot be fitted again to a
    development part (development=0.5); choose there, and check once by guard.final_check on the 500 that stay
    guarded, ± 0.02.>
    >>> plan(1000, queries=100, anticipated_score=0.95, adaptive=False).recommended.call
    'guard.score_all(models, reserve=0)'
    >>> plan(width=0.02, queries=100, adaptive=False).records
    2778
    >>> from graphs import MovingWindow
    >>> plan(lambda n: MovingWindow(n, 4), width=0.02, queries=100, adaptive=False).records
    18754
    >>> plan(groups=[k // 5 for k in range(5000)], queries=100, anticipated_score=0.95).half_width.__round__(3)
    0.035
    >>> scans = dict(groups=[k // 5 for k in range(2000)], queries=20, anticipated_score=0.9, correlation=0.1)
    >>> [round(plan(**scans, limits=limits).half_width, 3) for limits in ("exact", "normal")]
    [0.045, 0.039]
    >>> plan(2000, queries=100, n_train=500).warnings[0][:55]
    "Cross-validate on more than the holdout's size: with tr"
    """
    from graphs import DependenceModel

    model = planned_records(records, groups, order, window, graph, solved=width is not None)
    use = check_use(
        model,
        queries,
        anticipated_score,
        n_train,
        width,
        adaptive,
        budget,
        confidence,
        prior_queries,
        epsilon,
        correlation,
        similarity,
        limits,
    )
    if use.normal_limits and teams is not None:
        raise InputError("limits", "'normal'", "'exact' beside teams=", "A leaderboard has exact limits.")
    given, declared = use, model
    if use.records is None:
        use, declared = records_for(use)
    elif use.width is not None and use.queries is None:
        use = _most(use)
    ways = all_ways(use)
    chosen = _choose(use, ways)
    if use.width is not None:
        ways = [_solved(given, use, way, chosen) for way in ways]
        chosen = next(way for way in ways if way.name == chosen.name)
    return Plan(
        model=declared if isinstance(declared, DependenceModel) else use.model,
        n_train=use.n_train,
        queries=use.queries,
        asked=use.asked,
        anticipated_score=use.anticipated_score,
        confidence=declared_confidence(confidence),
        width=use.width,
        prior_queries=None if use.prior_queries is None else use.prior_queries.counted(use.model.n),
        ways=tuple(ways),
        recommended=chosen,
        recommendation=recommend(use, ways, chosen),
        warnings=warn(use, chosen),
        division=divide(use),
        leaderboard=plan_leaderboard(use, teams, anticipation_error),
        epsilon=use.epsilon,
    )


def _most(use: Use) -> Use:
    """Return a use with the largest number of queries within its width."""
    name = named_way(use)
    found = most_queries(use, name)
    if found is None:
        assert use.width is not None
        fewest = fewest_records(use.asking(1), name)
        takes = ""
        if fewest is not None:
            takes = f" One query takes {_that_many(use, fewest)}."
        raise PlanError(f"{use.model.describe()} do not put even one answer within {within(use.width)}.{takes}")
    return use.asking(found)


def _choose(use: Use, ways: list[Way]) -> Way:
    """Return the way to recommend."""
    named = named_way(use)
    found = {way.name: way for way in ways if way.applies}
    if named == GUARD and use.epsilon is not None and named not in found:
        named = ALGORITHM_1
    if named not in found:
        raise PlanError(_impossible(use, named, ways))
    if not use.adaptive or named != GUARD:
        return found[named]
    best = found.get(ALGORITHM_1, found[named])
    return best if best.half_width < _CLEARLY * found[named].half_width else found[named]


def _impossible(use: Use, named: WayName, ways: list[Way]) -> str:
    """Say that nothing can be certified in the requested way, and name a way that can be."""
    others = [f"The way {way.name!r} has {within(way.half_width)}: {way.call}." for way in ways if way.applies]
    instead = others[0] if others else "Take more records, or fewer queries=."
    why = next(way.why_not for way in ways if way.name == named).rstrip(".")
    asked = f"{use.asked:,} queries to {use.model.describe()}"
    return f"Nothing can be certified about {asked} by the way {named!r}: {why}. {instead}"


def _solved(given: Use, use: Use, way: Way, chosen: Way) -> Way:
    """Return a way with the numbers that its width takes: those that were left out, or both."""
    if way.name == chosen.name and given != use:
        if given.records is None:
            return dataclasses.replace(way, records=use.model.n)
        return dataclasses.replace(way, queries=use.queries)
    if way.name not in (GUARD, LIST, FINAL) or not way.applies:
        return way
    queries = None if given.records is None else most_queries(use, way.name)
    return dataclasses.replace(way, records=_records_of_a_way(given, use, way), queries=queries)


def _records_of_a_way(given: Use, use: Use, way: Way) -> int | None:
    """Return the number of records of the declared kind that reach the width by one way."""
    if given.records is not None and given.queries is None:
        return None
    if given.family is not None:
        member = fewest_of_a_kind(given, way.name)
        return None if member is None else member[1].n
    return fewest_records(given, way.name)
