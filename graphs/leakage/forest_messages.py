"""Messages on a forest: one sweep from the leaves to the roots, one back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from graphs.leakage.segment_sums import Contraction, Map, Segments
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up, upward_sum
from graphs.structure.spanning_forest import Rooted

__all__ = ["Bands", "Sweeps"]

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


#: Deep forests of more vertices than this are swept in bands of levels.
BANDED = 50_000


class Sweeps:
    """Two sweeps over a forest whose links contract what passes them.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        Both directions of every link, in any order.
    diameters : ndarray of shape (2E,)
        Diameter that a message from source to target passes, possibly infinite.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.
    passed : type of Map
        What links make of messages.
    """

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        diameters: FloatArray,
        component: IntArray,
        passed: type[Map] = Contraction,
    ) -> None:
        self._tree = tree = Rooted(sources, targets, component)
        size = len(tree.order)
        place, goal = tree.position[sources], tree.position[targets]
        upwards = tree.parent[place] == goal
        self._passed = passed
        self._upwards, self._downwards = np.zeros(size), np.zeros(size)
        self._upwards[place[upwards]] = diameters[upwards]
        self._downwards[goal[~upwards]] = diameters[~upwards]
        self._is_upward, self._sent, self._received = upwards, place[upwards], goal[~upwards]
        self._siblings = Segments(tree.parent[1:])
        self._grow = np.ones(size)
        self._grow[self._siblings.keys] = self._siblings.grow

    @cached_property
    def _up(self) -> Map:
        return self._passed(self._upwards)

    @cached_property
    def _down(self) -> Map:
        return self._passed(self._downwards)

    @cached_property
    def _bands(self) -> Bands:
        return Bands(self._tree, self._grow, self._upwards, self._downwards, self._passed)

    def totals(self, budgets: FloatArray) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up.

        Parameters
        ----------
        budgets : ndarray of shape (n,)
            What each vertex adds to the messages that pass it, nats.

        Returns
        -------
        ndarray of shape (n,)
        """
        _, from_below, from_above = self._run(budgets)
        found = up(from_below + from_above, 1)
        return found[self._tree.position[:-1]]

    def messages(self, budgets: FloatArray) -> FloatArray:
        """Return what arrives over each link, shape (2E,), rounded up."""
        sent, _, received = self._run(budgets)
        found = np.empty(len(self._is_upward))
        found[self._is_upward], found[~self._is_upward] = sent[self._sent], received[self._received]
        return found

    def _run(self, budgets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return, by position, the message to the parent, the sum of those from below, and the one from above."""
        own = np.append(budgets, 0.0)[self._tree.order]
        if not self._tree.narrow:
            return self._by_levels(own)
        found = self._by_bands(own) if len(own) > BANDED else None
        return self._one_by_one(own) if found is None else found

    def _around(self, own: FloatArray, messages: FloatArray) -> FloatArray:
        """Return what parents send down to each position before the parents' own message from above is added."""
        around = np.zeros(len(own))
        around[1:] = own[self._tree.parent[1:]] + self._siblings.others(messages[1:])
        return up(around, 1)

    def _by_levels(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        tree = self._tree
        messages, from_below, from_above = np.zeros((3, len(own)))
        for level in range(len(tree.levels) - 2, 0, -1):
            members, starts, parents = tree.families(level)
            behind = up(own[members] + from_below[members], 1)
            messages[members] = self._up.apply(behind, members)
            from_below[parents] = np.add.reduceat(messages[members], starts) * self._grow[parents]
        around = self._around(own, messages)
        for low, high in zip(tree.levels[1:], tree.levels[2:], strict=False):
            members = slice(low, high)
            behind = up(around[members] + from_above[tree.parent[members]], 1)
            from_above[members] = self._down.apply(behind, members)
        return messages, from_below, from_above

    def _by_bands(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        below = self._bands.from_below(own)
        if below is None:
            return None
        messages, sums = below
        above = self._bands.from_above(self._around(own, messages), upward_sum(own))
        return None if above is None else (messages, sums, above)

    def _one_by_one(self, own: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        send, receive = self._up.one, self._down.one
        parents, grow = self._tree.parent.tolist(), self._grow.tolist()
        sums, messages, budgets = [0.0] * len(own), [0.0] * len(own), own.tolist()
        for p in range(len(sums) - 1, 0, -1):
            sums[p] *= grow[p]
            messages[p] = send(p, (budgets[p] + sums[p]) * ONE_ROUNDING)
            sums[parents[p]] += messages[p]
        around = self._around(own, np.array(messages)).tolist()
        above = [0.0] * len(own)
        for p in range(1, len(above)):
            above[p] = receive(p, (around[p] + above[parents[p]]) * ONE_ROUNDING)
        return np.array(messages), np.array(sums), np.array(above)


#: Enlargement for one rounded addition.
ONE_ROUNDING = 1 + 6 * UNIT
