"""Records revealed block after block, and the number of records that change with each block.

Let the values of one block change while those of earlier blocks stay. Later records can then be coupled so that, except
for a small probability, all records outside the block and a stretch after it are the same. So a mechanism that is
private about single records is private about blocks, as about a group of that many records: `graphs/PROOFS.md`, section
on revealed blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["RevealedBlocks"]


@dataclass(frozen=True)
class RevealedBlocks:
    """How many records change with each block."""

    changes: tuple[int, ...]  # the different numbers of records that change, the block among them, increasing
    counts: tuple[int, ...]  # number of blocks for each entry of `changes`
    missed: float = 0.0  # bound on the probability, for each block, that more records change

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return sum(self.counts)

    @property
    def squares(self) -> int:
        """Sum over the blocks of the squared number of records that change."""
        return sum(count * change**2 for change, count in zip(self.changes, self.counts, strict=True))

    @classmethod
    def of_groups(cls, sizes: Iterable[int] | IntArray) -> Self:
        """Return one block for each group, which changes the whole group."""
        values, counts = np.unique(np.asarray(sizes, dtype=np.int64), return_counts=True)
        return cls(tuple(values.tolist()), tuple(counts.tolist()))

    @classmethod
    def of_series(cls, n: int, gap: int, missed: float = 0.0) -> Self:
        """Return the blocks of a series in which a change reaches `gap` >= 0 records beyond its block.

        Their length is the gap, or one more, or all records, by the smallest sum of squares.
        """
        lengths = {min(max(gap, 1), n), min(gap + 1, n), n}
        found = [cls._even(n, gap, length, missed) for length in sorted(lengths)]
        return min(found, key=lambda blocks: blocks.squares)

    @classmethod
    def _even(cls, n: int, gap: int, length: int, missed: float) -> Self:
        """Return blocks of one length, the last one possibly shorter."""
        full = (n - 1) // length  # blocks with a successor
        last = n - full * length
        near = min(full, max(0, gap - last) // length + 1)  # of these the future may be shorter than the gap
        counted: dict[int, int] = {last: 1}
        for block in range(near):
            change = length + min(gap, last + block * length)
            counted[change] = counted.get(change, 0) + 1
        if full > near:
            counted[length + gap] = counted.get(length + gap, 0) + full - near
        changes = tuple(sorted(counted))
        return cls(changes, tuple(counted[change] for change in changes), missed)

    @classmethod
    def of_reach(cls, last: IntArray) -> Self:
        """Return the blocks of records each of which may depend on those up to a last one."""
        reach, start, changes = last.tolist(), 0, []
        while start < len(reach):
            end = reach[start]
            changes.append(reach[end] - start + 1)
            start = end + 1
        return cls.of_groups(changes)

    @classmethod
    def of_forgetting(cls, n: int, distances: FloatArray, missed: float) -> Self:
        """Return the blocks of a series that forgets its past."""
        known = distances[: n - 1]
        gaps = np.arange(len(known))  # t_{gap + 1} is the distance after a gap
        enough = np.flatnonzero(up(np.ceil(n / np.maximum(gaps, 1)) * known, 3) <= missed)
        if not len(enough):
            return cls((n,), (1,))
        gap = int(enough[0])
        return cls.of_series(n, gap, float(known[gap]))
