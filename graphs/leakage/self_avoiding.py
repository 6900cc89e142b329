"""Messages that remember where they come from: no message returns to a vertex that it has left a few steps ago.

Proofs: `graphs/PROOFS.md`, section 3, messages with memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphs.leakage.loopy_messages import ROUNDS, contracted, settled
from graphs.leakage.segment_sums import Map
from graphs.leakage.warm_starts import keep, kept
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, charges, up
from graphs.structure.branch_weights import Branches
from graphs.structure.walks import Walks

__all__ = ["MOST_WALKS", "SelfAvoiding"]

#: Walks and arcs between them, about: half a second for each privacy budget, and 200 megabytes.
MOST_WALKS = 1_000_000

#: No more walks and arcs than so many for each link, but so many at least: small networks take no longer than others.
FOR_EACH_LINK, AT_LEAST = 150, 50_000


class SelfAvoiding:
    """Updates of all messages along self-avoiding walks.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        All links in one direction, then all in the other, in the same order; no two with the same ends.
    diameters : ndarray of shape (2E,)
        Diameter that a message from source to target passes, possibly infinite.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.
    passed : type of Map
        What links make of messages.
    is_factor : ndarray of shape (n,)
        Vertices that stand for a factor: behind it all its members but one are known.
    most : int, optional
        Most walks and arcs between them; by default more the more links there are.

    Attributes
    ----------
    walks : Walks or None
        None where there would be more than `most`.
    """

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        diameters: FloatArray,
        component: IntArray,
        passed: type[Map],
        is_factor: npt.NDArray[np.bool_],
        most: int | None = None,
    ) -> None:
        from scipy import sparse

        self._size = size = len(component)
        self.walks: Walks | None = None
        if most is None:
            most = min(MOST_WALKS, max(AT_LEAST, FOR_EACH_LINK * len(sources)))
        if len(sources) > most:
            return
        order = np.lexsort((targets, sources))
        self._sources, ends = sources[order], targets[order]
        self.walks = walks = Walks.within(self._sources, ends, is_factor, int(np.bincount(component).max()), most)
        if walks is None:
            return
        back = np.searchsorted(self._sources * size + ends, ends * size + self._sources)[walks.last]
        self._ends, self._back = ends[walks.last], order[back]
        self._arriving = self._back[: len(order)]
        self._contraction = passed(diameters[self._back])
        self._branches = Branches(sources, targets, component)
        count = len(walks.last)
        entries = np.ones(len(walks.rows)), (walks.rows, walks.followers)
        self._follow = sparse.csr_array(entries, shape=(count, count))
        self._grow = _enlargement(np.bincount(walks.rows, minlength=count))

    @property
    def remembers(self) -> bool:
        """Whether any walk has more than one link."""
        return self.walks is not None and len(self.walks.last) > len(self._sources)

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
        if not budgets.any():
            return np.zeros(self._size)
        messages = self._messages(budgets, rounds)
        received = np.bincount(self._sources, weights=messages, minlength=self._size).astype(np.float64)
        received *= _enlargement(np.bincount(self._sources, minlength=self._size))
        return received

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return what arrives over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._sources))
        if budgets.any():
            found[self._arriving] = self._messages(budgets, rounds)
        return found

    def _messages(self, budgets: FloatArray, rounds: int) -> FloatArray:
        """Return what arrives at the source of each link from its end, the links in order."""
        amounts, unit = charges(budgets)
        caps = up(self._branches.weights(amounts)[self._back].astype(np.float64) * unit, 2)
        own = budgets[self._ends]

        def updated(messages: FloatArray) -> FloatArray:
            leakages = np.asarray(self._follow @ messages) * self._grow
            leakages += own
            return contracted(self._contraction, np.minimum(up(leakages, 1), caps))

        links = len(self._sources)
        start = kept(self, budgets)
        found = settled(updated, contracted(self._contraction, caps) if start is None else start, rounds)
        keep(self, budgets, found)
        return found[:links]


def _enlargement(terms: IntArray) -> FloatArray:
    """Return what makes up for the rounding of sums of so many terms."""
    return 1 + 2 * (terms.astype(np.float64) + 4) * UNIT
