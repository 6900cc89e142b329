"""Leakages of a chain of which some records are known, when all others have one budget.

Known records cut a chain into stretches that are chains themselves, with the same kernel. What a message or a quilt
tells inside of a stretch depends on its length only, so stretches of one length are looked at once, however many there
are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphs.inflation.chain_evidence import stretches
from graphs.known_records import BoolArray
from graphs.leakage.messages import Edges, along_chain, along_stretches
from graphs.leakage.profile import Profile
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["ChainStretches"]


@dataclass(frozen=True, slots=True)
class _StretchProfile(Profile):
    """Leakages of the kinds of stretches, which are compared without looking at each record."""

    def minimum(self, other: Profile) -> Profile:
        """Return the smaller leakage of each record, kind by kind where both are of the same stretches."""
        if other.index is self.index:
            return _StretchProfile(np.minimum(self.values, other.values), self.counts, self.index)
        return Profile.minimum(self, other)


class ChainStretches:
    """The stretches of unknown records of a chain, those of one kind together.

    Parameters
    ----------
    known : ndarray of bool, shape (n,)
        Which records are known.
    starts : int
        Edges from the first so many records have diameters of their own.

    Notes
    -----
    A stretch is of the same kind as another of its length, unless it begins among the first `starts` records.

    Examples
    --------
    >>> found = ChainStretches(np.array([False, True, False, False, True, False]), 0)
    >>> found.lengths
    array([1, 2])
    >>> found.profile(found.group(0.1)).expand().round(6)
    array([0.1, 0.2, 0.2, 0.1])
    """

    def __init__(self, known: BoolArray, starts: int) -> None:
        each, _ = stretches(known)
        before: IntArray = np.cumsum(each) - each
        begins = np.flatnonzero(~known)[before]
        kinds = np.stack([np.minimum(begins, starts), each], axis=1)
        found, of_stretch, counts = np.unique(kinds, axis=0, return_inverse=True, return_counts=True)
        self._begins, self.lengths = found.T.copy()
        self._own = self._begins < starts
        self._counts: IntArray = np.repeat(counts, self.lengths)
        first = (np.cumsum(self.lengths) - self.lengths)[of_stretch.ravel()]
        self._index: IntArray = np.arange(int(each.sum())) + np.repeat(first - before, each)

    def profile(self, values: Iterable[FloatArray]) -> Profile:
        """Return the profile of the unknown records, given the leakages in a stretch of each kind."""
        return _StretchProfile(np.concatenate(list(values)), self._counts, self._index)

    def group(self, epsilon: float) -> list[FloatArray]:
        """Return the sum of the budgets of a stretch, for each of its records."""
        return [np.full(m, epsilon if m == 1 else up(m * epsilon, 1)) for m in self.lengths.tolist()]

    def messages(self, epsilon: float, edges: Edges) -> list[FloatArray]:
        """Return the leakages that messages along a stretch of each kind give."""
        later = iter(along_stretches(self.lengths[~self._own], epsilon, edges.after(len(edges.head))))
        return [
            along_chain(int(length), epsilon, edges.after(int(begin))).expand() if own else next(later)
            for begin, length, own in zip(self._begins, self.lengths, self._own, strict=True)
        ]
