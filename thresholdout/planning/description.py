"""A plan in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from graphs.numerics.rounding import shown_above
from thresholdout.planning.plan import ALGORITHM_1, FINAL, GUARD, LIST, Way, WayName
from thresholdout.planning.ways import claims_width

if TYPE_CHECKING:
    from thresholdout.planning.request import Use

__all__ = ["USELESS", "recommend", "warn", "within"]

USELESS: Final = 0.25
"""A half-width from here on is that of an interval over half of the range."""

_LITTLE: Final = 0.1  # settles little between models


def within(width: float) -> str:
    """Write a half-width as people do, rounded up.

    Examples
    --------
    >>> within(0.04163)
    '± 0.042'
    """
    return f"± {shown_above(width, 2)}"


def recommend(use: Use, ways: Sequence[Way], chosen: Way) -> str:
    """Say what to do, how wide it is, and why, in one sentence.

    Parameters
    ----------
    use : Use
        What the plan is for.
    ways : sequence of Way
        Every way of asking.
    chosen : Way
        The one that is recommended.
    """
    widths = {way.name: within(way.half_width) for way in ways}
    asked = f"{use.asked:,} questions" if use.queries is not None else f"the first {use.asked:,} questions"
    if use.asked == 1 or chosen.name == FINAL:
        asked = "one question"
    setting = f"about {widths[chosen.name]} for {asked} at a score near {use.expected:g}"
    return f"{use.model.n:,} records: {_reason(use, widths, chosen, setting)}."


def _reason(use: Use, widths: dict[WayName, str], chosen: Way, setting: str) -> str:
    others = [
        f"{words} {widths[name]}"
        for name, words in (
            (LIST, "fixed together beforehand they would have"),
            (FINAL, "one final look has"),
        )
        if name in widths and name != chosen.name
    ]
    beside = f"; {' and '.join(others)}" if others else ""
    match chosen.name:
        case "a guard":
            return f"ask a guard, which answers any question at any time, {setting}{beside}"
        case "a fixed list":
            one_by_one = f"; a guard that is asked one by one has {widths[GUARD]}" if GUARD in widths else ""
            return (
                f"ask all questions together by {chosen.call}, {setting}, because questions that are fixed before the "
                f"first answer pay nothing for each other{one_by_one}"
            )
        case "one final look":
            return f"let cross-validation choose and look once by {chosen.call}, {setting}"
        case _:
            budget = 1 if use.budget is None else use.budget
            return (
                f"Algorithm 1 answers with queries={use.asked} and budget={budget}, {setting}, because nothing bounds "
                f"how far a mean deviates under this dependence ({use.model.describe()}) and claims are impossible"
            )


def warn(use: Use, chosen: Way) -> tuple[str, ...]:
    """Say what stands in the way, if anything.

    Parameters
    ----------
    use : Use
        What the plan is for.
    chosen : Way
        What is recommended.
    """
    said = (_missed(use, chosen), _too_few(use, chosen), _cross_validate(use, chosen))
    return tuple(words for words in said if words)


def _missed(use: Use, chosen: Way) -> str:
    if use.width is None or chosen.half_width <= use.width:
        return ""
    ways_out = [f"{chosen.records:,} independent records"] if chosen.records is not None else []
    if chosen.queries is not None:
        ways_out.append(f"at most {chosen.queries:,} questions to these")
    takes = f": that takes {', or '.join(ways_out)}" if ways_out else ""
    return f"These records do not put {use.asked:,} questions within {within(use.width)}{takes}."


def _too_few(use: Use, chosen: Way) -> str:
    if chosen.half_width >= USELESS:
        return (
            "These are too few records to certify anything useful: an interval is half of the range or more. Take more "
            "records, or let cross-validation choose and look once at the end."
        )
    if chosen.half_width > _LITTLE and chosen.name in (GUARD, ALGORITHM_1):
        return (
            f"{within(chosen.half_width).capitalize()} settles little between models: compare them with each other "
            "(guard.compare), or let cross-validation choose and look once at the end."
        )
    return ""


def _cross_validate(use: Use, chosen: Way) -> str:
    """Training values that are less certain than the holdout's make claims wide."""
    records = use.model.effective_records() or use.model.n / use.model.variance_inflation()
    if chosen.name != GUARD or use.train_records is None or use.train_records >= records:
        return ""
    more = claims_width(dataclasses.replace(use, train_records=records), GUARD)
    return (
        f"Cross-validate on more than the holdout's size: with training values from {records:,.0f} records instead of "
        f"{use.train_records:,.0f}, the guard has {within(more)} instead of {within(chosen.half_width)}."
    )
