"""Pages from values: what the templates need beside what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from thresholdout.service.page.axis import axis_around, decimals_for
from thresholdout.service.schemas import Board, Holdout, Submission
from thresholdout.service.standings import Standing

__all__ = ["Relation", "Tier", "board_view", "history_view", "relation", "submission_view", "tiers"]

Relation = Literal["self", "better", "worse", "tied"]
"""How a team stands to the one that is compared with."""


@dataclass(frozen=True, slots=True)
class Tier:
    """Teams that no certified gap separates from each other as a whole.

    Attributes
    ----------
    rows : tuple of Standing
        At least one.

    Examples
    --------
    >>> Tier((Standing("ann", 1, 1, 0.8, 0.9, 1, "forest (accuracy)", 1),)).tied
    True
    """

    rows: tuple[Standing, ...]

    @property
    def first(self) -> int:
        """The best rank that is possible in it."""
        return min(row.first for row in self.rows)

    @property
    def last(self) -> int:
        """The worst rank that is possible in it."""
        return max(row.last for row in self.rows)

    @property
    def tied(self) -> bool:
        """Whether everybody in it is tied with everybody else, rather than with some."""
        return all((row.first, row.last) == (self.first, self.last) for row in self.rows)


def tiers(rows: Sequence[Standing]) -> list[Tier]:
    """Return the tiers of a board, from the best on.

    Parameters
    ----------
    rows : sequence of Standing
        In the order of the board.

    Examples
    --------
    >>> def team(name, first, last):
    ...     return Standing(name, first, last, 0.0, 1.0, 1, "forest (accuracy)", 1)
    >>> [len(tier.rows) for tier in tiers([team("ann", 1, 2), team("bob", 1, 2), team("zoe", 3, 3)])]
    [2, 1]
    """
    cuts = [0]
    worst = 0
    for place, (above, below) in enumerate(pairwise(rows), start=1):
        worst = max(worst, above.last)
        if worst <= place < below.first:
            cuts.append(place)
    cuts.append(len(rows))
    return [Tier(tuple(rows[start:stop])) for start, stop in pairwise(cuts) if start < stop]


def relation(row: Standing, other: Standing, *, greater_is_better: bool) -> Relation:
    """Return what is certified about one team and another.

    Parameters
    ----------
    row, other : Standing
        The team, and the one that it is compared with.
    greater_is_better : bool
        Whether the metric is a score, and no loss.

    Examples
    --------
    >>> ann = Standing("ann", 1, 1, 0.8, 0.9, 1, "forest (accuracy)", 1)
    >>> bob = Standing("bob", 2, 2, 0.6, 0.7, 1, "linear (accuracy)", 2)
    >>> relation(ann, bob, greater_is_better=True)
    'better'
    """
    if row.team == other.team:
        return "self"
    if row.low > other.high:
        return "better" if greater_is_better else "worse"
    if row.high < other.low:
        return "worse" if greater_is_better else "better"
    return "tied"


_CLOSER: Final = 0.6
"""Part of the axis from which on a close look is none."""


def board_view(board: Board, *, close: bool) -> Mapping[str, Any]:
    """Return what the board's page draws: tiers, an axis, and how everybody stands to the viewer, or to the leader.

    A close look shows the viewer, or the leader, and who is tied with it; other bars may be beyond the axis.
    """
    if not board.rows:
        return {"board": board, "tiers": []}
    holdout = board.holdout
    focus = next((row for row in board.rows if row.team == board.mine), board.rows[0])
    kinds = {
        row.team: relation(row, focus, greater_is_better=holdout.greater_is_better) if row is not focus else "self"
        for row in board.rows
    }
    near = [row for row in board.rows if kinds[row.team] in ("self", "tied")]
    wide, narrow = (
        axis_around([(row.low, row.high) for row in rows], holdout.lower, holdout.upper) for rows in (board.rows, near)
    )
    worth = narrow.high - narrow.low < _CLOSER * (wide.high - wide.low)
    return {
        "board": board,
        "tiers": tiers(board.rows),
        "axis": narrow if close else wide,
        "close": close,
        "closer": worth and not close,
        "decimals": decimals_for([row.high - row.low for row in board.rows]),
        "focus": focus,
        "kinds": kinds,
        "relations": set(kinds.values()),
    }


def history_view(holdout: Holdout, rows: Sequence[Submission]) -> Mapping[str, Any]:
    """Return what a history draws: one axis for all scores, none where no interval is shown."""
    ends = _ends(rows)
    scores = _ends([row for row in rows if row.kind == "score"])
    return {
        "rows": rows,
        "axis": axis_around(scores, holdout.lower, holdout.upper) if scores else None,
        "decimals": decimals_for([high - low for low, high in ends]),
    }


def submission_view(holdout: Holdout, submission: Submission) -> Mapping[str, Any]:
    """Return what a submission's page draws: its interval on the whole range; a difference beside nought."""
    ends = _ends([submission])
    reach = holdout.upper - holdout.lower
    if submission.kind == "comparison":
        axis = axis_around([(min(low, 0.0), max(high, 0.0)) for low, high in ends], -reach, reach)
    else:
        axis = axis_around([], holdout.lower, holdout.upper)
    return {"submission": submission, "axis": axis, "decimals": decimals_for([high - low for low, high in ends])}


def _ends(rows: Sequence[Submission]) -> list[tuple[float, float]]:
    return [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
