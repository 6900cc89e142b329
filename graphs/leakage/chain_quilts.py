"""The quilts of a Markov chain, and the influence of each record on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from graphs.leakage.influence import LEAST, BoolArray, Kernels, Supports
from graphs.leakage.profile import Profile
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, charges, up

__all__ = ["ChainQuilts", "Penalty", "QuiltTable"]

#: Most quilts tried when records have different budgets, times the number of records; any selection is valid.
TRIED = 50_000_000

#: Records of one piece, tried with every quilt before the next piece: small enough for the processor's cache.
PIECE = 1 << 14

#: Maps an influence (or diameter), and whether the quilt has two ends, to a leakage.
Penalty: TypeAlias = Callable[[FloatArray, bool], FloatArray]


@dataclass(frozen=True, slots=True)
class QuiltTable:
    """Influences of a record on the quilts around it, the same for every record."""

    lengths: IntArray  # shape (J,): distances a and b, increasing from 1
    left: FloatArray  # shape (J,): influence on the quilt with a left end only, at each distance
    right: FloatArray  # shape (J,): influence on the quilt with a right end only
    both: FloatArray  # shape (J, J): influence on the quilts with two ends, left distance first

    @classmethod
    def of_pairs(cls, lengths: IntArray, backward: FloatArray, forward: FloatArray) -> QuiltTable:
        """Build the table from the log-ratios of both ends for each pair of states of the record."""
        # the maximum over pairs of states of the sum of both ends, since the ends are independent given the record
        flat_left, flat_right = backward.reshape(len(lengths), -1), forward.reshape(len(lengths), -1)
        both = np.array([(row + flat_right).max(axis=1) for row in flat_left])
        return cls(lengths, flat_left.max(axis=1), flat_right.max(axis=1), np.maximum(up(both, 1), 0.0))

    def leakages(self, n: int, epsilon: float, penalty: Penalty) -> Profile:
        """Return the smallest leakage over all quilts, for each of `n` records with the same budget."""
        return self._of_length(n, epsilon, *self._costs(epsilon, penalty))

    def stretch_leakages(self, lengths: IntArray, epsilon: float, penalty: Penalty) -> list[FloatArray]:
        """Return the same for chains of several lengths, one number for each record."""
        costs = self._costs(epsilon, penalty)
        return [self._of_length(n, epsilon, *costs).expand() for n in lengths.tolist()]

    def _of_length(self, n: int, epsilon: float, both: FloatArray, left: FloatArray, right: FloatArray) -> Profile:
        best = min(float(both[-1, -1]), up(n * epsilon, 1))
        enough = int(self.lengths[np.flatnonzero(np.diagonal(both) == both[-1, -1])[0]])
        # farther from an end than this, a quilt with one end costs more than the best quilt with two
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
        """Return the smallest leakage over quilts within each pair of distances."""
        sizes = self.lengths.astype(np.float64)
        # a + b - 1 records between the ends, the record included
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
        """Return the smallest leakage over a selection of quilts, for records with different budgets.

        The near records of a quilt count with their own budgets. In long chains the selection is the cheapest quilts
        for the mean budget.
        """
        n = len(epsilon)
        # integer prefix sums, so that their differences have no rounding errors
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
    """Return positions and penalties of the cheapest quilts: all of them for few records."""
    most = max(TRIED // n, 64)
    order = np.argsort(sizes + penalties, kind="stable")[:most]
    return [(int(k), float(penalties[k])) for k in order if np.isfinite(penalties[k])]


#: Chains that do not start in the stationary law are followed record by record up to this many numbers (160 MB).
EXACT = 20_000_000

#: Most near records of a listed quilt.
MOST_NEAR = 20


class ChainQuilts:
    """Influences and diameters of the quilts of a chain.

    The right end of a quilt depends on the kernel alone. The left end has P(x_{i-a} | x_i) proportional to P(x_{i-a})
    P^a(x_{i-a}, x_i) / P(x_i). Its log-ratios for a pair (x, x') are therefore those of the columns of P^a plus ln
    P(x_i = x') / P(x_i = x), the same for every record in the stationary case. Otherwise short chains are followed
    record by record. Long ones use two upper bounds. One is the stationary influence plus the distance of the law from
    the stationary one. The other is the range of the log-ratios, which does not depend on the law and is at least their
    maximum, since both laws sum to one.
    """

    def __init__(
        self,
        kernels: Kernels,
        supports: Supports,
        n: int,
        transition: FloatArray,
        initial: FloatArray,
        stationary: tuple[FloatArray, float] | None,
        distances: FloatArray,
    ) -> None:
        self._kernels, self._supports, self._n = kernels, supports, n
        self._transition, self._initial = transition, initial
        self._stationary, self._distances = stationary, distances
        self._tables: dict[tuple[str, int], QuiltTable] = {}

    @property
    def is_stationary(self) -> bool:
        """Whether the chain starts in its stationary law."""
        return not self._distances.any()

    @cached_property
    def _possible(self) -> BoolArray:
        """States possible at any record."""
        return np.asarray(self._supports.cycle.any(axis=0) | self._supports.head.any(axis=0))

    def leakages(self, epsilon: float | FloatArray, penalty: Penalty, factor: float) -> Profile:
        """Return the smallest leakage over all quilts, for each record."""
        if not isinstance(epsilon, float):
            kind = "influence" if self.is_stationary else "range"
            return self._table(kind, self._enough(float(epsilon.max()))).leakages_of(epsilon, penalty)
        if self._n == 1:
            return Profile.constant(epsilon, 1)
        count = self._enough(epsilon)
        if self.is_stationary:
            return self._table("influence", count).leakages(self._n, epsilon, penalty)
        if self._is_short:
            tables = enumerate(self._by_record)
            return Profile.of(np.array([t.at_record(i, self._n, epsilon, penalty) for i, t in tables]))
        found = self._table("range", count).leakages(self._n, epsilon, penalty)
        if self._stationary is None:
            return found
        near = self._table("influence", count).leakages(self._n, epsilon, penalty)
        return found.minimum(self._moved(near, factor))

    def contracted(self, epsilon: float | FloatArray, penalty: Penalty) -> Profile:
        """Return the smallest leakage over all quilts, with a penalty of diameters."""
        if not isinstance(epsilon, float):
            return self._table("diameter", self._enough(float(epsilon.max()))).leakages_of(epsilon, penalty)
        if self._n == 1:
            return Profile.constant(epsilon, 1)
        return self._table("diameter", self._enough(epsilon)).leakages(self._n, epsilon, penalty)

    def of_record(self, record: int) -> list[tuple[tuple[int, ...], tuple[int, ...], float, float]]:
        """Return the quilts of a record with at most `MOST_NEAR` near ones: ends, near records, influence, range."""
        if self._n == 1:
            return [((), (), 0.0, 0.0)]
        count = self._kernels.prepare(MOST_NEAR + 2)
        influences = self._table("influence" if self.is_stationary else "range", count)
        ranges, before, after = self._table("diameter", count), record, self._n - 1 - record
        found = []
        for a in (0, *influences.lengths[influences.lengths <= before].tolist()):
            for b in (0, *influences.lengths[influences.lengths <= after].tolist()):
                first, last = record - a + 1 if a else 0, record + b if b else self._n
                if last - first - 1 > MOST_NEAR or (not a and not b):
                    continue
                i, j = (int(np.searchsorted(influences.lengths, length)) for length in (a, b))
                pair = [
                    table.both[i, j] if a and b else table.left[i] if a else table.right[j]
                    for table in (influences, ranges)
                ]
                ends = (*([record - a] if a else []), *([record + b] if b else []))
                near = tuple(k for k in range(first, last) if k != record)
                found.append((ends, near, float(pair[0]), float(pair[1])))
        found.sort(key=lambda row: (len(row[1]), row[0]))
        if self._n <= MOST_NEAR:  # the empty quilt
            found.append(((), tuple(k for k in range(self._n) if k != record), 0.0, 0.0))
        return found

    def stretch_leakages(
        self, lengths: IntArray, epsilon: float, penalty: Penalty, contracted: bool
    ) -> list[FloatArray]:
        """Return the smallest leakage over all quilts inside stretches between known records."""
        kind = "diameter" if contracted else "influence" if self.is_stationary else "range"
        return self._table(kind, self._enough(epsilon)).stretch_leakages(lengths, epsilon, penalty)

    def blankets(self) -> Profile:
        """Return the influence of each record on its Markov blanket, its two neighbours."""
        n = self._n
        if n == 1:
            return Profile.constant(0.0, 1)
        if not self.is_stationary and self._is_short:
            tables = self._by_record
            inner = [table.both[0, 0] for table in tables[1:-1]]
            return Profile.of(np.array([tables[0].right[0], *inner, tables[-1].left[0]]))
        found = self._blankets("influence" if self.is_stationary else "range")
        if self.is_stationary or self._stationary is None:
            return found
        return found.minimum(self._moved(self._blankets("influence"), 1.0))

    def _blankets(self, kind: str) -> Profile:
        table = self._table(kind, self._kernels.prepare(8))
        middle = float(table.both[0, 0])
        return Profile.ends(table.right[:1], middle, table.left[:1], self._n)

    def _moved(self, near: Profile, factor: float) -> Profile:
        """Add the correction for the distance from the stationary law to each influence."""
        values = near.expand()
        head = self._distances[: self._n]
        values[: len(head)] += factor * head
        values[len(head) :] += factor * head[-1]  # the distance never increases along the chain
        return Profile.of(up(values, 2))

    def _enough(self, epsilon: float) -> int:
        """Return how many lengths can matter at a budget.

        A longer quilt does not help once the remaining influence (four times, in the published route) is below one more
        budget, or once its near records alone cost more than a quilt already found.
        """
        count, total = 8, len(self._kernels.lengths)
        while True:
            count = self._kernels.prepare(count)
            if count == total:
                return count
            forward, backward = (
                ranges[:, self._possible][:, :, self._possible].max(axis=(1, 2))
                for ranges in (self._kernels.forward(count)[1], self._kernels.backward(count)[1])
            )
            sizes = self._kernels.lengths[:count]
            # ranges bound influences, and every route charges an influence at most four times
            found = ((2 * sizes - 1) * epsilon + 4 * (forward + backward)).min()
            if 4 * max(forward[-1], backward[-1]) <= epsilon or sizes[-1] * epsilon >= found:
                return count
            count *= 2

    def _table(self, kind: str, count: int) -> QuiltTable:
        """Return the influences ("influence", stationary; "range", any law) or the diameters of all quilts."""
        if (kind, count) not in self._tables:
            (largest, forward), (raw, backward) = self._kernels.forward(count), self._kernels.backward(count)
            if kind == "influence":
                assert self._stationary is not None
                law, error = self._stationary
                logs = np.log(law)
                # log-ratios of columns plus ln pi(x') / pi(x); the law's error enters twice
                backward = raw + (logs - logs[:, None]) + 2.1 * error + _rounding(logs)
            right = forward if kind == "diameter" else largest
            states = np.flatnonzero(self._possible)
            inside = np.ix_(np.arange(count), states, states)
            table = QuiltTable.of_pairs(self._kernels.lengths[:count], backward[inside], right[inside])
            self._tables[kind, count] = table
        return self._tables[kind, count]

    @cached_property
    def _is_short(self) -> bool:
        return self._n <= 64 and self._n**3 * len(self._initial) ** 2 <= EXACT

    @cached_property
    def _by_record(self) -> list[QuiltTable]:
        """Influences of every record, for a short chain that starts anywhere."""
        n = self._n
        count = self._kernels.prepare(n)
        logs, errors = self._kernels.logs(count)
        forward = self._kernels.forward(count)[0]
        law, tables = self._initial, []
        for i in range(n):
            states = np.flatnonzero(self._supports.at(i))
            # no bound uses the logarithm of a probability that may have underflowed
            weights = np.log(law[states]) if law[states].min() >= LEAST else np.full(len(states), np.nan)
            slack = 2.1 * (i + 1) * (len(law) + 4) * UNIT + _rounding(weights)
            backward = np.full((count, len(states), len(states)), np.inf)
            for j in range(min(i, count)):
                before = logs[j][np.flatnonzero(self._supports.at(i - j - 1))][:, states]
                with np.errstate(invalid="ignore"):
                    difference = np.fmax.reduce(before[:, :, None] - before[:, None, :], axis=0)
                    moved = difference + (weights - weights[:, None]) + errors[j] + slack
                backward[j] = np.where(np.isnan(moved), np.inf, moved)
            tables.append(
                QuiltTable.of_pairs(self._kernels.lengths[:count], backward, forward[:, states][:, :, states])
            )
            law = law @ self._transition
        return tables


def _rounding(logs: FloatArray) -> float:
    """Return a bound on the rounding of a difference of two logarithms."""
    # two logarithms of at most 8 units each (`FUNCTION_ULPS`) and a difference, doubled
    return 32 * UNIT * float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0))
