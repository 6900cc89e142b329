"""Messages on a graph with loops: all of them updated together, from above."""

from __future__ import annotations

import numpy as np

from graphs.arguments import FloatArray, IntArray
from graphs.cuts import Branches
from graphs.rooted import grouped
from graphs.rounding import charges, up
from graphs.segments import Contraction, Segments

__all__ = ["ROUNDS", "Rounds"]

#: Rounds of updates, unless the messages settle before.
ROUNDS = 200

#: Relative change of every message at which they count as settled.
SETTLED = 1e-12

#: Messages handled at a time, so that intermediate results stay in the processor's cache.
BLOCK = 1 << 14


class Rounds:
    """Synchronous updates of all messages.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        All links in one direction, then all in the other, in the same order.
    diameters : ndarray of shape (2E,)
        Diameter that a message from source to target passes, possibly infinite.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.
    """

    def __init__(self, sources: IntArray, targets: IntArray, diameters: FloatArray, component: IntArray) -> None:
        order = grouped(targets, len(component))
        half, size = len(order) // 2, len(order)
        place = np.empty(size, dtype=np.int64)
        place[order] = np.arange(size)
        self._reverse = place[np.where(order < half, order + half, order - half)]
        self._targets = targets[order]
        self._size = len(component)
        self._contraction = Contraction(diameters[order])
        self._segments = Segments(self._targets)
        self._branches = Branches(sources[order], self._targets, component)

    def totals(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up.

        Parameters
        ----------
        budgets : ndarray of shape (n,)
            What each vertex adds to the messages that pass it, nats.
        rounds : int
            Most rounds of updates.

        Returns
        -------
        ndarray of shape (n,)
        """
        found = np.zeros(self._size)
        if budgets.any():
            messages = self._messages(budgets, rounds)
            found[self._segments.keys] = self._segments.sums(messages)
        return found

    def _messages(self, budgets: FloatArray, rounds: int) -> FloatArray:
        amounts, unit = charges(budgets)
        caps = up(self._branches.weights(amounts).astype(np.float64) * unit, 2)
        own = budgets[self._targets]
        messages = np.full(len(caps), np.inf)
        self._lower(messages, caps)
        for _ in range(rounds):
            leakages = self._segments.others(messages)
            leakages += own
            behind = np.minimum(up(leakages, 1)[self._reverse], caps)
            if self._lower(messages, behind):
                break
        return messages

    def _lower(self, messages: FloatArray, behind: FloatArray) -> bool:
        """Lower messages to what their link leaves of the leakage behind it; return whether they have settled."""
        settled = True
        for start in range(0, len(messages), BLOCK):
            rows = slice(start, start + BLOCK)
            updated = self._contraction.apply(behind[rows], rows)
            settled = settled and bool((updated >= messages[rows] * (1 - SETTLED)).all())
            np.minimum(messages[rows], updated, out=messages[rows])
        return settled
