"""Variance inflation of records that share independent effects: users and items, readers and cases, days.

Proofs: `graphs/PROOFS.md`, section on crossed effects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up

__all__ = ["SharedEffects"]

BoolArray = npt.NDArray[np.bool_]

#: Updates of the exponents of Hoelder's inequality; any number gives a bound.
ROUNDS = 8

#: An effect of total variation size s on d records is integrated last where d (1 - s^2) is at most one of these.
CUTS = (0.0, 1.0, 4.0)


@dataclass(frozen=True, slots=True)
class Shares:
    """Exponents for records: 1 / exponent is at most 1 in sum over the records of each effect."""

    records: IntArray
    exponents: FloatArray


@dataclass(frozen=True)
class SharedEffects:
    """Which record depends on which independent effect, and how much.

    Parameters
    ----------
    records : ndarray of shape (E,)
        Record of each row, not decreasing; one row for each pair of a record and one of its effects.
    effects : ndarray of shape (E,)
        Number of the effect.
    widths : ndarray of shape (E,)
        How far, in total variation, the law of the record may move when this effect alone changes; above 0, at most 1.
    n_records, n_effects : int
        How many there are; records without a row are independent of all others.

    Examples
    --------
    Two users, each of whom rates both of two items:

    >>> square = SharedEffects.crossed([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], [1.0, 1.0])
    >>> square.degrees.tolist(), round(square.for_means(), 9), round(square.for_bounded_differences(), 9)
    ([2, 2, 2, 2], 2.0, 4.0)
    """

    records: IntArray
    effects: IntArray
    widths: FloatArray
    n_records: int
    n_effects: int

    @classmethod
    def crossed(cls, levels: list[IntArray], sizes: list[float]) -> SharedEffects:
        """Return the effects of factors: the level of each record in each factor, and the size of its effects."""
        used = [k for k, size in enumerate(sizes) if size > 0]
        n = len(levels[0])
        starts = np.cumsum([0, *(int(levels[k].max()) + 1 for k in used)])
        columns = [levels[k] + start for k, start in zip(used, starts[:-1], strict=True)]
        effects = np.stack(columns, axis=1).ravel() if used else np.zeros(0, dtype=np.int64)
        widths: FloatArray = np.tile([sizes[k] for k in used], n).astype(np.float64)
        return cls(np.repeat(np.arange(n), len(used)), effects, widths, n, int(starts[-1]))

    @cached_property
    def degrees(self) -> IntArray:
        """Number of records of each effect."""
        return np.bincount(self.effects, minlength=self.n_effects).astype(np.int64)

    @cached_property
    def component(self) -> IntArray:
        """Number of the connected component of each record: components are independent."""
        return self._components(np.ones(len(self.records), dtype=np.bool_))[0]

    def given(self, known: BoolArray) -> SharedEffects:
        """Return the effects that the other records share once some records are known.

        Effects that known records tie together become one, which moves a record by the sum of what they move it.
        """
        block = self._components(known[self.records])[1]
        rows = ~known[self.records]
        place = np.cumsum(~known) - 1
        count = int(block.max(initial=0)) + 1
        keys = place[self.records[rows]] * count + block[self.effects[rows]]
        merged, index = np.unique(keys, return_inverse=True)
        sums = np.bincount(index, weights=self.widths[rows], minlength=len(merged)).astype(np.float64)
        many = np.bincount(index, minlength=len(merged)) > 1
        widths = np.minimum(np.where(many, up(sums, float(np.bincount(self.records).max(initial=1))), sums), 1.0)
        owners, effects = merged // count, merged % count
        names, numbers = np.unique(effects, return_inverse=True)
        return SharedEffects(owners, numbers.astype(np.int64), widths, int((~known).sum()), len(names))

    def near(self, amounts: IntArray) -> IntArray:
        """Return, for each record, the sum of amounts over the records that share an effect with it, itself once.

        A record that shares several effects with it is counted for each of them.
        """
        totals = np.zeros(self.n_effects, dtype=np.int64)
        np.add.at(totals, self.effects, amounts[self.records])
        sums = amounts.copy()
        np.add.at(sums, self.records, totals[self.effects] - amounts[self.records])
        return sums

    def for_bounded_differences(self) -> float:
        """Return Lambda for statistics with bounded differences: own noise, and one step for each effect."""
        sizes = np.bincount(self.component)
        return self._total(np.minimum(sizes.astype(np.float64) ** 2, sizes + self._steps(self._all)))

    def for_means(self) -> float:
        """Return Lambda for means: Hoelder's inequality over the effects of large size, steps for the others."""
        sizes = np.bincount(self.component).astype(np.float64)
        best = np.minimum(sizes + self._steps(self._all), self._shared(self._all))
        if (self.widths < 1).any():
            room = self.degrees[self.effects] * (1 - self.widths**2)
            for cut in CUTS:
                # one choice for all rows of an effect
                outer = np.zeros(self.n_effects, dtype=np.bool_)
                outer[self.effects[room > cut]] = True
                first = outer[self.effects]
                if first.any():
                    best = np.minimum(best, self._shared(~first) + np.minimum(self._steps(first), self._moved(first)))
        return self._total(best)

    @property
    def _all(self) -> BoolArray:
        return np.ones(len(self.records), dtype=np.bool_)

    def _total(self, of_components: FloatArray) -> float:
        count = len(of_components) + len(self.records) + 2 * self.n_records
        return up(float(of_components.sum()) / self.n_records, count)

    def _steps(self, rows: BoolArray) -> FloatArray:
        """Return, for each component, the sum over effects of the square of what each moves in all its records."""
        moved = np.bincount(self.effects[rows], weights=self.widths[rows], minlength=self.n_effects)
        home = np.zeros(self.n_effects, dtype=np.int64)
        home[self.effects] = self.component[self.records]
        return np.bincount(home, weights=moved**2, minlength=int(self.component.max()) + 1).astype(np.float64)

    def _shared(self, rows: BoolArray) -> FloatArray:
        """Return, for each component, the sum of exponents; 1 for a record without an effect among these rows."""
        found = self._shares(rows, np.ones(self.n_records))
        exponents = np.ones(self.n_records)
        exponents[found.records] = np.maximum(found.exponents, 1.0)
        return np.bincount(self.component, weights=exponents).astype(np.float64)

    def _moved(self, rows: BoolArray) -> FloatArray:
        """Return, for each component, the sum of exponents times the squared range that these effects give a record."""
        sums = np.bincount(self.records[rows], weights=self.widths[rows], minlength=self.n_records)
        ranges: FloatArray = np.minimum(up(sums.astype(np.float64), 8), 1.0)
        found = self._shares(rows, ranges)
        terms = np.zeros(self.n_records)
        terms[found.records] = found.exponents * ranges[found.records] ** 2
        return np.bincount(self.component, weights=terms).astype(np.float64)

    def _shares(self, rows: BoolArray, ranges: FloatArray) -> Shares:
        """Return exponents that make the sum of exponent * range^2 small.

        By Lagrange's conditions the best exponents are sqrt(sum of multipliers of the record's effects) / range; the
        multipliers start from the squared degrees and are raised where the inverses sum to more than 1.
        """
        table, records = self._table(rows)
        if not len(records):
            return Shares(records, np.zeros(0))
        degrees = np.bincount(table.ravel(), minlength=self.n_effects + 1).astype(np.float64)
        degrees[-1] = 0.0  # of no effect
        spread, most = ranges[records], float(degrees.max())

        def largest(values: FloatArray) -> FloatArray:
            found = values[table[:, 0]]
            for column in table.T[1:]:
                found = np.maximum(found, values[column])
            return found

        def load(exponents: FloatArray) -> FloatArray:
            inverses, sums = 1 / exponents, np.zeros(self.n_effects + 1)
            for column in table.T:
                sums += np.bincount(column, weights=inverses, minlength=len(sums))
            sums[-1] = 0.0
            return up(sums, most + table.shape[1] + 4)

        def feasible(exponents: FloatArray) -> FloatArray:
            return up(exponents * largest(load(exponents)), 4)

        best = largest(degrees)
        least, multipliers = float((best * spread**2).sum()), degrees**2
        for _ in range(ROUNDS):
            exponents = np.sqrt(sum(multipliers[column] for column in table.T)) / spread
            loads = load(exponents)
            multipliers *= loads
            exponents = feasible(up(exponents * largest(loads), 4))
            total = float((exponents * spread**2).sum())
            if total < least:
                best, least = exponents, total
        return Shares(records, best)

    def _table(self, rows: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the effects of each record in some rows, one line for each, filled up, and the records."""
        effects, owners = self.effects[rows], self.records[rows]
        if not len(effects):
            return np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64)
        new = np.r_[True, np.diff(owners) > 0]
        starts, place = np.flatnonzero(new), np.cumsum(new) - 1
        found = np.full((len(starts), int(np.bincount(place).max())), self.n_effects)
        found[place, np.arange(len(owners)) - starts[place]] = effects
        return np.asfortranarray(found), owners[starts]

    def _components(self, rows: BoolArray) -> tuple[IntArray, IntArray]:
        """Return the component of each record and of each effect, joined by these rows."""
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        n = self.n_records
        size = n + self.n_effects
        entries = np.ones(int(rows.sum()), dtype=np.int8)
        joined = sparse.coo_array((entries, (self.records[rows], n + self.effects[rows])), shape=(size, size))
        found = connected_components(joined, directed=False)[1].astype(np.int64)
        numbers = np.unique(found[:n], return_inverse=True)[1].astype(np.int64)
        return numbers, found[n:]
