"""Messages of changes around loops, for large networks.

Messages of changes are linear but for their caps. Without caps they are the solution of m = T m + b, which is iterated
from below and then enlarged until T m + b <= m holds in arithmetic that rounds up: such an m bounds the messages
(`graphs/PROOFS.md`, section on messages of changes). In a component where there is none the weight of
the whole component bounds them.
"""

from __future__ import annotations

import numpy as np

from graphs.leakage.loopy_messages import ROUNDS, Rounds
from graphs.leakage.segment_sums import Map
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, up
from graphs.structure.spanning_forest import grouped

__all__ = ["LinearRounds"]

#: Share of the right-hand side that may be left over.
LEFT = 1e-3

#: Weight of what is no record, in units of the largest weight: positive, so that a bound is certified there too.
FAINT = 1e-9


class LinearRounds(Rounds):
    """Updates of all messages of changes at once.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        All links in one direction, then all in the other, in the same order.
    diameters : ndarray of shape (2E,)
        Diameter that a message from source to target passes, possibly infinite.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.
    passed : type of Map
        What links make of messages, a linear map.

    Examples
    --------
    A ring, on which nothing turns back:

    >>> from graphs.leakage.segment_sums import Shrinkage
    >>> ends = np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])
    >>> both = np.concatenate(ends), np.concatenate(ends[::-1])
    >>> ring = LinearRounds(*both, np.full(8, 4 * np.arctanh(0.5)), np.zeros(4, dtype=int), Shrinkage)
    >>> ring.messages(np.ones(4)).round(3)
    array([1., 1., 1., 1., 1., 1., 1., 1.])
    """

    def __init__(
        self, sources: IntArray, targets: IntArray, diameters: FloatArray, component: IntArray, passed: type[Map]
    ) -> None:
        self._order = order = grouped(targets, len(component))
        half, size = len(order) // 2, len(order)
        place = np.empty(size, dtype=np.int64)
        place[order] = np.arange(size)
        self._reverse = place[np.where(order < half, order + half, order - half)]
        self._sources = sources[order]
        self._component = component
        self._factors = passed(diameters[order]).apply(np.ones(size))
        counts = np.bincount(targets, minlength=len(component))
        self._into = np.flatnonzero(counts)
        self._starts = (np.cumsum(counts) - counts)[self._into]
        self._grow = 1 + 2 * (float(counts.max()) + 8) * UNIT

    def totals(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up."""
        found = np.zeros(len(self._component))
        found[self._into] = np.add.reduceat(self.messages(budgets, rounds)[self._order], self._starts) * self._grow
        return found

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return what arrives over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._order))
        if not budgets.any():
            return found
        caps = up(np.bincount(self._component, weights=budgets).astype(np.float64), len(budgets))
        found[self._order] = self._from_below(budgets, caps[self._component[self._sources]], rounds)
        return found

    def _from_below(self, budgets: FloatArray, caps: FloatArray, rounds: int) -> FloatArray:
        """Return messages without caps, or the caps in the components where none were found."""
        own = np.maximum(budgets, FAINT * float(budgets.max()))
        part = self._component[self._sources]
        first = up(self._factors * own[self._sources], 1)
        messages = first
        for _ in range(rounds):
            updated = np.minimum(self._passed(messages, own), caps)
            settled = not ((updated - messages) > LEFT * first).any()
            messages = updated
            if settled:
                break
        left = messages - self._passed(messages, np.zeros(len(own))) - 4 * UNIT * messages
        shares = np.full(int(part.max()) + 1, np.inf)
        np.minimum.at(shares, part, left / first)
        shares *= 1 - 8 * UNIT
        scale = np.full(len(shares), np.inf)
        scale[shares > 0] = np.maximum(up(1 / shares[shares > 0], 2), 1.0)
        found: FloatArray = np.minimum(messages * scale[part], caps)
        return found

    def _passed(self, messages: FloatArray, own: FloatArray) -> FloatArray:
        """Return what links make of their own weights and of the other messages, rounded up."""
        sums = own.copy()
        sums[self._into] += np.add.reduceat(messages, self._starts)
        sums *= self._grow
        found = sums[self._sources]
        found -= messages[self._reverse]
        found *= self._factors
        found *= 1 + 8 * UNIT
        return found
