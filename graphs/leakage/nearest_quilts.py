"""Markov quilts of a chain: two records, or one, that screen record i off from all but a few near ones.

A quilt of record i is {i - a, i + b}; either side may be missing, and then everything on that side is near. With N
the near records, a mechanism leaks at most (|N| + 1) eps' plus a penalty for the influence of record i on the quilt:
twice the influence (four times in [Z17, Lemma 2], once for an adversary who knows the model only), or, with what the
quilt's ends themselves leak, phi of the diameter. Proofs: `graphs/PROOFS.md`, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from graphs.leakage.profile import Profile
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import charges, up

__all__ = ["Penalty", "QuiltTable"]

#: Quilts that are tried when records have different budgets, times the number of records.
TRIED = 50_000_000

#: Records that are looked at with every quilt before the next: what a processor keeps at hand.
PIECE = 1 << 14

#: From influence (or diameter) to leakage, and whether the quilt has two ends.
Penalty: TypeAlias = Callable[[FloatArray, bool], FloatArray]


@dataclass(frozen=True, slots=True)
class QuiltTable:
    """Influences of a record on the quilts around it, the same for every record.

    Parameters
    ----------
    lengths : ndarray of shape (J,)
        Distances a and b that are considered, increasing from 1.
    left, right : ndarray of shape (J,)
        Influence on the quilts with one end, at each distance.
    both : ndarray of shape (J, J)
        Influence on the quilts with two ends, left distance first.
    """

    lengths: IntArray
    left: FloatArray
    right: FloatArray
    both: FloatArray

    @classmethod
    def of_pairs(cls, lengths: IntArray, backward: FloatArray, forward: FloatArray) -> QuiltTable:
        """Build the table from the log-ratios of both ends for each pair of states of the record.

        Parameters
        ----------
        lengths : ndarray of shape (J,)
            Distances.
        backward, forward : ndarray of shape (J, k, k)
            Largest log-ratio (or its range) of the left and of the right end for the pair (x, x').
        """
        flat_left, flat_right = backward.reshape(len(lengths), -1), forward.reshape(len(lengths), -1)
        both = np.array([(row + flat_right).max(axis=1) for row in flat_left])
        return cls(lengths, flat_left.max(axis=1), flat_right.max(axis=1), np.maximum(up(both, 1), 0.0))

    def leakages(self, n: int, epsilon: float, penalty: Penalty) -> Profile:
        """Return the smallest leakage over all quilts, for each of `n` records with the same budget.

        Examples
        --------
        >>> pairs = np.array([[[0.0, 1.0], [1.0, 0.0]]])
        >>> table = QuiltTable.of_pairs(np.array([1]), pairs, pairs)
        >>> table.leakages(4, 1.5, lambda influence, both: 2 * influence).expand().round(6)
        array([3.5, 5. , 5. , 3.5])
        """
        return self._of_length(n, epsilon, *self._costs(epsilon, penalty))

    def stretch_leakages(self, lengths: IntArray, epsilon: float, penalty: Penalty) -> list[FloatArray]:
        """Return the same for chains of several lengths, one number for each record."""
        costs = self._costs(epsilon, penalty)
        return [self._of_length(n, epsilon, *costs).expand() for n in lengths.tolist()]

    def _of_length(self, n: int, epsilon: float, both: FloatArray, left: FloatArray, right: FloatArray) -> Profile:
        best = min(float(both[-1, -1]), up(n * epsilon, 1))
        enough = int(self.lengths[np.flatnonzero(np.diagonal(both) == both[-1, -1])[0]])
        crossing = max(best - min(float(left[-1]), float(right[-1])), 0.0) / epsilon
        ends = int(min(max(enough, crossing + 2), n))
        at = np.arange(n) if 2 * ends >= n else np.r_[np.arange(ends), ends, np.arange(n - ends, n)]
        values = self._at(at, n, epsilon, both, left, right)
        if len(at) == n:
            return Profile.of(values)
        return Profile.ends(values[:ends], float(values[ends]), values[ends + 1 :], n)

    def at_record(self, record: int, n: int, epsilon: float, penalty: Penalty) -> float:
        """Return the smallest leakage over all quilts for one record."""
        return float(self._at(np.array([record]), n, epsilon, *self._costs(epsilon, penalty))[0])

    def _costs(self, epsilon: float, penalty: Penalty) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the smallest leakage over quilts that reach no farther than each pair of distances."""
        sizes = self.lengths.astype(np.float64)
        both = up((sizes[:, None] + (sizes - 1)) * epsilon + penalty(self.both, True), 2)
        both = np.minimum.accumulate(np.minimum.accumulate(both, axis=0), axis=1)
        left = np.minimum.accumulate(up(sizes * epsilon + penalty(self.left, False), 2))
        right = np.minimum.accumulate(up(sizes * epsilon + penalty(self.right, False), 2))
        return both, left, right

    def _at(
        self, at: IntArray, n: int, epsilon: float, both: FloatArray, left: FloatArray, right: FloatArray
    ) -> FloatArray:
        before, after = at, n - 1 - at
        i, j = (np.searchsorted(self.lengths, side, side="right") for side in (before, after))
        missing = np.full(1, np.inf)
        found = np.pad(both, ((1, 0), (1, 0)), constant_values=np.inf)[i, j]
        np.minimum(found, up(np.r_[missing, right][j] + before * epsilon, 2), out=found)
        np.minimum(found, up(np.r_[missing, left][i] + after * epsilon, 2), out=found)
        return np.minimum(found, up(n * epsilon, 1), out=found)

    def leakages_of(self, epsilon: FloatArray, penalty: Penalty) -> Profile:
        """Return the smallest leakage over all quilts of a selection, for records with different budgets.

        The near records of a quilt are counted with their own budgets. In long chains those quilts are tried that
        cost least for the mean budget.
        """
        n = len(epsilon)
        amounts, unit = charges(epsilon)
        sums = np.r_[0, np.cumsum(amounts)]
        found = np.full(n, float(sums[n]))
        costs = self.lengths.astype(np.float64) * float(epsilon.mean())
        pairs = (costs[:, None] + costs).ravel()
        quilts = [
            (int(self.lengths[position // len(self.lengths)]), int(self.lengths[position % len(self.lengths)]), extra)
            for position, extra in _cheapest(pairs, penalty(self.both, True).ravel(), n)
        ]
        for start in range(0, n, PIECE):
            for a, b, extra in quilts:
                first, last = max(start, a), min(start + PIECE, n - b)
                if first < last:
                    near = sums[first + b : last + b] - sums[first - a + 1 : last - a + 1]
                    np.minimum(found[first:last], near + extra / unit, out=found[first:last])
        most = float(found.max()) * (1 + 2**-40) + 1  # beyond a place, a quilt with one end costs more than this
        for j, extra in _cheapest(costs, penalty(self.right, False), n):
            b = int(self.lengths[j])
            before = sums[b : b + int(np.searchsorted(sums[b:n], int(max(most - extra / unit, -1.0)), "right"))]
            found[: len(before)] = np.minimum(found[: len(before)], before + extra / unit)
        for i, extra in _cheapest(costs, penalty(self.left, False), n):
            a = int(self.lengths[i])
            least = int(min(max(sums[n] - (most - extra / unit), 0.0), float(sums[n])))
            skipped = int(np.searchsorted(sums[1 : n - a + 1], least, "left"))
            after = sums[n] - sums[1 + skipped : n - a + 1]
            found[a + skipped :] = np.minimum(found[a + skipped :], after + extra / unit)
        return Profile.of(up(found * unit, 4))


def _cheapest(sizes: FloatArray, penalties: FloatArray, n: int) -> list[tuple[int, float]]:
    """Return positions and penalties of the quilts that cost least: all of them for few records."""
    most = max(TRIED // n, 64)
    order = np.argsort(sizes + penalties, kind="stable")[:most]
    return [(int(k), float(penalties[k])) for k in order if np.isfinite(penalties[k])]
