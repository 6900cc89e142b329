"""Values that the templates need beside the service's answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import Any, Final, Literal

from thresholdout.service.schemas import Holdout, Leaderboard, Submission
from thresholdout.service.standings import Standing

__all__ = [
    "Axis",
    "Relation",
    "Tier",
    "axis_around",
    "decimals_for",
    "history_view",
    "leaderboard_view",
    "relation",
    "submission_view",
    "tiers",
    "written_high",
    "written_low",
]

_ROOM: Final = 0.06  # margin beyond the outermost ends, as a part of their distance
_LEAST: Final = 1e-4  # least margin on both sides, as a part of the range
_WHOLE: Final = 0.7  # intervals that cover more of the range than this part are drawn on the whole range
# Most steps between the ticks of an axis.
_TICKS: Final = 8
_MOST_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """A part of the number line, with ticks at round numbers."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def left(self, value: float) -> float:
        """Return a number's position in percent of the axis, rounded down."""
        return math.floor(self._place(value) * 100.0) / 100.0

    def right(self, value: float) -> float:
        """Return a number's position in percent of the axis, rounded up."""
        return math.ceil(self._place(value) * 100.0) / 100.0

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Return the ticks' positions in percent, and their labels."""
        step = self.ticks[1] - self.ticks[0] if len(self.ticks) > 1 else self.high - self.low
        # The logarithm of a power of ten may be rounded below an integer.
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [(round(self._place(tick), 2), f"{tick:.{decimals}f}") for tick in self.ticks]

    def _place(self, value: float) -> float:
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0) * 100.0


def axis_around(intervals: Iterable[tuple[float, float]], lower: float, upper: float) -> Axis:
    """Return an axis that separates intervals, within the range of the metric; the whole range for no intervals."""
    ends = list(intervals)
    low = max(lower, min((one for one, _ in ends), default=lower))
    high = min(upper, max((other for _, other in ends), default=upper))
    room = max(_ROOM * (high - low), _LEAST * (upper - lower))
    low, high = max(lower, low - room), min(upper, high + room)
    if high - low >= _WHOLE * (upper - lower):
        low, high = lower, upper
    return Axis(low, high, _round_numbers(low, high))


def _round_numbers(low: float, high: float) -> tuple[float, ...]:
    """Return the multiples of 1, 2 or 5 times a power of ten between two numbers."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    # Without the tolerance, rounding could skip a step that equals the rough one.
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(round(count * step, 12) for count in range(first, last + 1))


def decimals_for(widths: Sequence[float]) -> int:
    """Return the number of decimals that show two digits of the narrowest interval."""
    narrowest = min((width for width in widths if width > 0.0), default=0.05)
    return min(max(1 - math.floor(math.log10(narrowest)), 2), _MOST_DECIMALS)


def written_low(value: float, decimals: int) -> str:
    """Return a lower end as text, rounded down."""
    return _written(value, decimals, ROUND_FLOOR)


def written_high(value: float, decimals: int) -> str:
    """Return an upper end as text, rounded up."""
    return _written(value, decimals, ROUND_CEILING)


def _written(value: float, decimals: int, rounding: str) -> str:
    """Return a number as text, rounded from its shortest exact text, so that no shorter text lies in between."""
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=rounding)
    return str(abs(rounded) if rounded.is_zero() else rounded).replace("-", "\N{MINUS SIGN}")


# Standing of a team relative to the one that it is compared with.
Relation = Literal["self", "better", "worse", "tied"]


@dataclass(frozen=True, slots=True)
class Tier:
    """Teams that no certified gap divides."""

    rows: tuple[Standing, ...]

    @property
    def first(self) -> int:
        """The best possible rank in the tier."""
        return min(row.first for row in self.rows)

    @property
    def last(self) -> int:
        """The worst possible rank in the tier."""
        return max(row.last for row in self.rows)

    @property
    def tied(self) -> bool:
        """Whether all teams are tied with each other, rather than with some."""
        return all((row.first, row.last) == (self.first, self.last) for row in self.rows)


def tiers(rows: Sequence[Standing]) -> list[Tier]:
    """Return the tiers of a sorted leaderboard, the best first."""
    cuts = [0]
    worst = 0
    for place, (above, below) in enumerate(pairwise(rows), start=1):
        worst = max(worst, above.last)
        if worst <= place < below.first:
            cuts.append(place)
    cuts.append(len(rows))
    return [Tier(tuple(rows[start:stop])) for start, stop in pairwise(cuts) if start < stop]


def relation(row: Standing, other: Standing, *, greater_is_better: bool) -> Relation:
    """Return the certified relation of one team to another."""
    if row.team == other.team:
        return "self"
    if row.low > other.high:
        return "better" if greater_is_better else "worse"
    if row.high < other.low:
        return "worse" if greater_is_better else "better"
    return "tied"


# An axis of the nearest intervals is offered only if it is shorter than this part of the axis of all.
_CLOSER: Final = 0.6


def leaderboard_view(leaderboard: Leaderboard, *, close: bool) -> Mapping[str, Any]:
    """Return the values of a leaderboard's page: tiers, axis, and relations to the viewer's team or the leader.

    With `close` the axis covers this team and those tied with it; other bars may lie beyond the axis.
    """
    if not leaderboard.rows:
        return {"leaderboard": leaderboard, "tiers": []}
    holdout = leaderboard.holdout
    focus = next((row for row in leaderboard.rows if row.team == leaderboard.mine), leaderboard.rows[0])
    kinds = {
        row.team: relation(row, focus, greater_is_better=holdout.greater_is_better) if row is not focus else "self"
        for row in leaderboard.rows
    }
    near = [row for row in leaderboard.rows if kinds[row.team] in ("self", "tied")]
    wide, narrow = (
        axis_around([(row.low, row.high) for row in rows], holdout.lower, holdout.upper)
        for rows in (leaderboard.rows, near)
    )
    worth = narrow.high - narrow.low < _CLOSER * (wide.high - wide.low)
    return {
        "leaderboard": leaderboard,
        "tiers": tiers(leaderboard.rows),
        "axis": narrow if close else wide,
        "close": close,
        "closer": worth and not close,
        "decimals": decimals_for([row.high - row.low for row in leaderboard.rows]),
        "focus": focus,
        "kinds": kinds,
        "relations": set(kinds.values()),
    }


def history_view(holdout: Holdout, rows: Sequence[Submission]) -> Mapping[str, Any]:
    """Return the values of a history's page: one axis for all scores, none where no interval is shown."""
    ends = _ends(rows)
    scores = _ends([row for row in rows if row.kind == "score"])
    return {
        "rows": rows,
        "axis": axis_around(scores, holdout.lower, holdout.upper) if scores else None,
        "decimals": decimals_for([high - low for low, high in ends]),
    }


def submission_view(holdout: Holdout, submission: Submission) -> Mapping[str, Any]:
    """Return the values of a submission's page: its interval on the whole range, or a difference around zero."""
    ends = _ends([submission])
    reach = holdout.upper - holdout.lower
    if submission.kind == "comparison":
        axis = axis_around([(min(low, 0.0), max(high, 0.0)) for low, high in ends], -reach, reach)
    else:
        axis = axis_around([], holdout.lower, holdout.upper)
    return {"submission": submission, "axis": axis, "decimals": decimals_for([high - low for low, high in ends])}


def _ends(rows: Sequence[Submission]) -> list[tuple[float, float]]:
    return [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
