"""Records in an order, each of which hangs together with those up to a last one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import IntArray

__all__ = ["Reach"]


@dataclass(frozen=True)
class Reach:
    """How far each record of a series reaches: it is independent of all records beyond.

    Parameters
    ----------
    order : ndarray of shape (n,)
        Numbers of the records in the order of the series.
    last : ndarray of shape (n,)
        Place of the last record that may depend on the one at each place, not decreasing.

    Examples
    --------
    >>> reach = Reach(np.arange(5), np.array([1, 2, 2, 4, 4]))
    >>> reach.first.tolist(), reach.component.tolist(), reach.crowds.tolist()
    ([0, 0, 1, 3, 3], [0, 0, 0, 1, 1], [2, 2, 2, 2, 2])
    """

    order: IntArray
    last: IntArray

    @classmethod
    def even(cls, n: int, m: int) -> Reach:
        """Return that of a series in which all records reach m places far."""
        return cls(np.arange(n), np.minimum(np.arange(n) + m, n - 1))

    @property
    def first(self) -> IntArray:
        """Place of the first record that may depend on the one at each place."""
        found: IntArray = np.searchsorted(self.last, np.arange(len(self.last)), side="left").astype(np.int64)
        return found

    @property
    def component(self) -> IntArray:
        """Number of the connected component of each place."""
        ends: IntArray = (self.last == np.arange(len(self.last))).astype(np.int64)
        return np.cumsum(ends) - ends

    @cached_property
    def largest(self) -> int:
        """Largest number of records that may all depend on each other."""
        return int((self.last - np.arange(len(self.last))).max()) + 1

    @property
    def crowds(self) -> IntArray:
        """Largest number of records that may all depend on each other, the one at each place among them."""
        places = np.arange(len(self.last))
        level, first = self.last - places + 1, self.first
        length = places - first + 1
        found: IntArray = np.ones(len(places), dtype=np.int64)
        for power in range(int(length.max()).bit_length()):
            # level[k] is the largest over the places k to k + 2^power - 1
            rows = np.flatnonzero(length >> power == 1)
            width = 1 << power
            found[rows] = np.maximum(level[first[rows]], level[rows - width + 1])
            level[: len(level) - width] = np.maximum(level[: len(level) - width], level[width:])
        return found

    def given(self, known: npt.NDArray[np.bool_]) -> Reach:
        """Return the reach of the other records, numbered anew, once some are known.

        Two records hang together then if steps within reach lead from one to the other whose stops are all known.
        """
        places = np.arange(len(self.last))
        stops = known[self.order]
        before = np.maximum.accumulate(np.where(stops, places, -1))  # the last known place up to each
        onward = before[self.last]
        jump = np.where(onward > places, onward, places)
        while True:
            further = jump[jump]
            if (further == jump).all():
                break
            jump = further
        furthest = self.last[jump]
        left = np.flatnonzero(~stops)
        number, kept = np.cumsum(~stops) - 1, np.cumsum(~known) - 1
        return Reach(kept[self.order[left]], number[furthest[left]].astype(np.int64))
