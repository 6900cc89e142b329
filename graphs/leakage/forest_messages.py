"""Messages on a forest: one sweep from the leaves to the roots, one back."""

from __future__ import annotations

import math

import numpy as np

from graphs.leakage.segment_sums import ENLARGE, TINY, Contraction, Segments
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.spanning_forest import Rooted

__all__ = ["Sweeps"]


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
    """

    def __init__(self, sources: IntArray, targets: IntArray, diameters: FloatArray, component: IntArray) -> None:
        self._tree = tree = Rooted(sources, targets, component)
        size = len(tree.order)
        place, goal = tree.position[sources], tree.position[targets]
        upwards = tree.parent[place] == goal
        up_diameters, down_diameters = np.zeros(size), np.zeros(size)
        up_diameters[place[upwards]] = diameters[upwards]
        down_diameters[goal[~upwards]] = diameters[~upwards]
        self._up, self._down = Contraction(up_diameters), Contraction(down_diameters)
        self._siblings = Segments(tree.parent[1:])
        self._grow = np.ones(size)
        self._grow[self._siblings.keys] = self._siblings.grow

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
        tree = self._tree
        own = np.append(budgets, 0.0)[tree.order]
        run = self._one_by_one if tree.narrow else self._by_levels
        from_below, from_above = run(own)
        found = up(from_below + from_above, 1)
        return found[tree.position[:-1]]

    def _around(self, own: FloatArray, messages: FloatArray) -> FloatArray:
        """Return what parents send down to each position before the parents' own message from above is added."""
        around = np.zeros(len(own))
        around[1:] = own[self._tree.parent[1:]] + self._siblings.others(messages[1:])
        return up(around, 1)

    def _by_levels(self, own: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        return from_below, from_above

    def _one_by_one(self, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        parents, grow = self._tree.parent.tolist(), self._grow.tolist()
        sums, messages, budgets = [0.0] * len(own), [0.0] * len(own), own.tolist()
        edges = _Scalars(self._up)
        for p in range(len(sums) - 1, 0, -1):
            sums[p] *= grow[p]
            messages[p] = edges.apply(p, (budgets[p] + sums[p]) * ONE_ROUNDING)
            sums[parents[p]] += messages[p]
        around = self._around(own, np.array(messages)).tolist()
        edges = _Scalars(self._down)
        above = [0.0] * len(own)
        for p in range(1, len(above)):
            above[p] = edges.apply(p, (around[p] + above[parents[p]]) * ONE_ROUNDING)
        return np.array(sums), np.array(above)


#: Enlargement for one rounded addition.
ONE_ROUNDING = 1 + 6 * UNIT


class _Scalars:
    """`Contraction` for one number at a time."""

    def __init__(self, contraction: Contraction) -> None:
        self._t, self._r = contraction.t.tolist(), contraction.r.tolist()
        self._diameters = contraction.diameters.tolist()

    def apply(self, position: int, leakage: float) -> float:
        """Return phi(Delta, leakage), rounded up."""
        bound: float = min(leakage, self._diameters[position])
        if leakage > 1000:
            return bound
        value = math.expm1(0.5 * leakage)
        contracted = math.log1p(self._t[position] * value / (1 + self._r[position] * value))
        return min(bound, 2 * ENLARGE * contracted + TINY)
