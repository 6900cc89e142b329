"""Tiers of a leaderboard: where everybody above is certified to be better than everybody below, a new one begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from thresholdout.service.standings import Standing

__all__ = ["Relation", "Tier", "relation", "tiers"]

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
