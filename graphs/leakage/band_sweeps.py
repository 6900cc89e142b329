"""Messages on forests that are deep and narrow: many stretches of the way to the roots at once.

The levels of a forest are cut into bands of equally many. All bands are swept together, each starting from bounds on
what enters it; what one sweep leaves at the edges of bands is what the next one starts from, until it moves no more.
Updates are increasing, so every sweep that starts from upper bounds ends with upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphs.leakage.segment_sums import Map
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up, upward_sum
from graphs.structure.spanning_forest import Rooted

__all__ = ["Bands"]

#: Levels in a band.
DEPTH = 256

#: Relative change at the edges of bands at which they count as settled.
SETTLED = 1e-13

#: Most sweeps. Where messages are hardly contracted bands take longer than going one vertex after the other.
MOST_SWEEPS = 16


class Bands:
    """The positions of a rooted forest, ordered by their level within their band.

    Parameters
    ----------
    tree : Rooted
        The forest.
    grow : ndarray of shape (n + 1,)
        What makes up for the rounding of a sum over the children of each position.
    upwards, downwards : ndarray of shape (n + 1,)
        Diameters that messages pass from a position to its parent, and back.
    passed : type of Map
        What links make of messages.
    levels : int
        Levels in a band.
    """

    def __init__(
        self,
        tree: Rooted,
        grow: FloatArray,
        upwards: FloatArray,
        downwards: FloatArray,
        passed: type[Map],
        levels: int = DEPTH,
    ) -> None:
        count = len(tree.order) - 1
        depth = np.repeat(np.arange(len(tree.levels) - 1), np.diff(tree.levels))[1:]
        step = (depth - 1) % levels
        self._places: IntArray = 1 + np.argsort(step, kind="stable")
        rank = np.empty(count + 1, dtype=np.int64)
        rank[self._places], rank[0] = np.arange(count), count
        self._parent: IntArray = rank[tree.parent[self._places]]
        self._stops: IntArray = np.searchsorted(step[self._places - 1], np.arange(step.max() + 2))
        self._grow = np.append(grow[self._places], grow[0])
        self._up, self._down = passed(upwards[self._places]), passed(downwards[self._places])
        self._families = [self._family(rows) for rows in self._steps()]

    def from_below(self, own: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the message of each position to its parent, and the sum of those that it receives.

        Parameters
        ----------
        own : ndarray of shape (n + 1,)
            What each position adds to the messages that pass it.

        Returns
        -------
        tuple of ndarray or None
            None when the edges of bands do not settle.
        """
        steps, mine = list(self._steps()), own[self._places]
        messages, sums = np.zeros(len(mine)), np.zeros(len(mine) + 1)
        edge = steps[0]
        messages[edge] = self._up.apply(np.full(len(mine[edge]), upward_sum(own)), edge)
        for _ in range(MOST_SWEEPS):
            before = messages[edge].copy()
            self._receive(0, messages, sums)
            for step in range(len(steps) - 1, -1, -1):
                rows = steps[step]
                messages[rows] = self._up.apply(up(mine[rows] + sums[rows], 1), rows)
                if step:
                    self._receive(step, messages, sums)
            if not (before - messages[edge] > SETTLED * messages[edge]).any():
                return self._by_position(messages), self._by_position(sums[:-1], sums[-1])
        return None

    def from_above(self, around: FloatArray, most: float) -> FloatArray | None:
        """Return the message that each position receives from its parent.

        Parameters
        ----------
        around : ndarray of shape (n + 1,)
            What the parent of each position passes on to it, but for the message from above that the parent receives.
        most : float
            No message comes from more than this.

        Returns
        -------
        ndarray of shape (n + 1,) or None
            None when the edges of bands do not settle.
        """
        steps, mine = list(self._steps()), around[self._places]
        messages = np.zeros(len(mine) + 1)
        edge = steps[-1]
        messages[edge] = self._down.apply(np.full(len(mine[edge]), most), edge)
        for _ in range(MOST_SWEEPS):
            before = messages[edge].copy()
            for rows in steps:
                behind = up(mine[rows] + messages[self._parent[rows]], 1)
                messages[rows] = self._down.apply(behind, rows)
            if not (before - messages[edge] > SETTLED * messages[edge]).any():
                return self._by_position(messages[:-1])
        return None

    def _steps(self) -> Iterator[slice]:
        """Yield the places of all positions that have the same level within their bands."""
        for start, stop in zip(self._stops[:-1].tolist(), self._stops[1:].tolist(), strict=True):
            yield slice(start, stop)

    def _family(self, rows: slice) -> tuple[IntArray, IntArray]:
        """Return where the families of siblings start in a step, and the places of their parents."""
        parents = self._parent[rows]
        starts = np.flatnonzero(np.r_[True, parents[1:] != parents[:-1]])
        return starts, parents[starts]

    def _receive(self, step: int, messages: FloatArray, sums: FloatArray) -> None:
        """Add up what the parents of a step receive."""
        starts, parents = self._families[step]
        rows = slice(self._stops[step], self._stops[step + 1])
        sums[parents] = np.add.reduceat(messages[rows], starts) * self._grow[parents]

    def _by_position(self, values: FloatArray, first: float = 0.0) -> FloatArray:
        """Return values in the order of positions."""
        found = np.empty(len(values) + 1)
        found[self._places], found[0] = values, first
        return found
