"""Pages from values: what the templates need beside what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from thresholdout.service.page.axis import axis_around, decimals_for
from thresholdout.service.page.tiers import relation, tiers
from thresholdout.service.shown import Board, Holdout, Submission

__all__ = ["board_view", "history_view", "submission_view"]

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
