"""Crossed random effects: records of users and items, readers and cases, stores and days."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray, as_real
from graphs.numerics.rounding import charges, up
from graphs.structure.labelled_values import Listed, align, numbered_labels, read, refuse_unordered

__all__ = ["Crossed", "SharedEffects", "SharedRecords"]


#: Updates of the exponents of Hoelder's inequality; every iterate gives a bound.
ROUNDS = 8

#: Thresholds: an effect of size s on d records counts as large where d (1 - s^2) is at most one of these. The best of
#: the resulting splits counts, so any thresholds are valid.
CUTS = (0.0, 1.0, 4.0)


@dataclass(frozen=True, slots=True)
class Shares:
    """Exponents of records whose inverses sum to at most 1 over the records of each effect."""

    records: IntArray
    exponents: FloatArray


@dataclass(frozen=True)
class SharedEffects:
    """Incidence of records and independent effects, with the sizes of the effects."""

    # shape (E,): record of each row, not decreasing; one row for each pair of a record and one of its effects
    records: IntArray
    effects: IntArray  # shape (E,): number of the effect
    # shape (E,): largest total variation by which this effect alone moves the law of the record, in (0, 1]
    widths: FloatArray
    n_records: int  # records without a row are independent of all others
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

        Effects tied by known records become one, whose size for a record is the sum of theirs.
        """
        # classes of effects tied by chains of known records (PROOFS.md, crossed effects with evidence)
        block = self._components(known[self.records])[1]
        rows = ~known[self.records]
        place = np.cumsum(~known) - 1
        count = int(block.max(initial=0)) + 1
        keys = place[self.records[rows]] * count + block[self.effects[rows]]
        merged, index = np.unique(keys, return_inverse=True)
        sums = np.bincount(index, weights=self.widths[rows], minlength=len(merged)).astype(np.float64)
        many = np.bincount(index, minlength=len(merged)) > 1
        # change the effects of a class one after the other: their sizes add up, to at most 1
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
        # a component of copies has the square of its size
        sizes = np.bincount(self.component)
        return self._total(np.minimum(sizes.astype(np.float64) ** 2, sizes + self._steps(self._all)))

    def for_means(self) -> float:
        """Return Lambda for means: Hoelder's inequality over the effects of large size, steps for the others."""
        sizes = np.bincount(self.component).astype(np.float64)
        best = np.minimum(sizes + self._steps(self._all), self._shared(self._all))
        if (self.widths < 1).any():
            # with Hoelder an effect costs about d per record, as a step s^2 d^2 in all, so small effects take steps
            room = self.degrees[self.effects] * (1 - self.widths**2)
            for cut in CUTS:
                # all rows of an effect make the same choice
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
        """Return, for each component, the sum over effects of the squared total size over all their records."""
        moved = np.bincount(self.effects[rows], weights=self.widths[rows], minlength=self.n_effects)
        home = np.zeros(self.n_effects, dtype=np.int64)
        home[self.effects] = self.component[self.records]
        return np.bincount(home, weights=moved**2, minlength=int(self.component.max()) + 1).astype(np.float64)

    def _shared(self, rows: BoolArray) -> FloatArray:
        """Return, for each component, the sum of exponents; 1 for a record without an effect among these rows."""
        found = self._shares(rows, np.ones(self.n_records))
        exponents = np.ones(self.n_records)
        exponents[found.records] = np.maximum(found.exponents, 1.0)  # w_r is at most 1
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
        degrees[-1] = 0.0  # the padding, no effect
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
            # raised by the largest load of its effects, so that the inverses sum to at most 1 for every effect
            return up(exponents * largest(load(exponents)), 4)

        best = largest(degrees)  # w_r = 1 / max d_v, which always satisfies the lemma
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
        """Return the effects of each record in some rows, one padded line for each, and the records."""
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


_EXPECTED = "a sequence with one label for each record"


class SharedRecords(DependenceModel):
    """Records that are functions of shared independent effects and of noise of their own.

    `Crossed` is such a model, and so are its remaining records once some are known.
    """

    methods: ClassVar[tuple[str, ...]] = ("group", "quilt")
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "crossed", "crossed-means")

    def __init__(self, shared: SharedEffects) -> None:
        super().__init__(shared.n_records)
        self._shared = shared

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        budgets = np.broadcast_to(np.asarray(epsilon), (self.n,)).astype(np.float64)
        if not budgets.any():
            return Profile.constant(0.0, self.n)
        if method == "group":
            component, sizes = self._shared.component, self._sizes
            sums: FloatArray = np.bincount(component, weights=budgets).astype(np.float64)
            values = np.where(sizes == 1, sums, up(sums, float(sizes.max())))
            return Profile(values, sizes, component)
        if adversary == "informed":
            reason = "known records tie the effects together on which they depend"
            raise RouteUnavailable(method, reason, ("best", "group"))
        amounts, unit = charges(budgets)
        near = self._shared.near(amounts)
        return Profile.of(np.where(near == amounts, budgets, up((near * unit).astype(np.float64), 1)))

    def _inflation(self, method: str) -> float:
        if method == "crossed":
            return self._shared.for_bounded_differences()
        if method == "crossed-means":
            return self._shared.for_means()
        return int(np.sum(self._sizes**2)) / self.n * (1 + 2**-51)

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float
            The number n of records, divided by the largest number of records that share one effect.
        """
        return self.n / self.largest_degree

    @cached_property
    def largest_degree(self) -> int:
        """Largest number of records that share one effect, at least 1."""
        return max(int(self._shared.degrees.max(initial=1)), 1)

    @cached_property
    def _sizes(self) -> IntArray:
        return np.bincount(self._shared.component).astype(np.int64)

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int, or None
            Number of records of each connected component, in which records share effects directly or through other
            records. None if there is only one component.
        """
        return self._sizes.copy() if len(self._sizes) > 1 or self.n == 1 else None

    def _content(self) -> Mapping[str, Any]:
        shared = self._shared
        return {"records": shared.records, "effects": shared.effects, "widths": shared.widths, "n": self.n}

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of zeros and ones with effects of the declared sizes.

        Each effect is 0 or 1 with equal probability. A record copies one of its effects with a probability equal to the
        size of that effect (less if the sizes sum to more than 1). Otherwise the record is 0 or 1 independently.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, 0 or 1.
        """
        shared = self._shared
        found: IntArray = rng.integers(0, 2, size=self.n)
        coins: IntArray = rng.integers(0, 2, size=shared.n_effects)
        totals = np.bincount(shared.records, weights=shared.widths, minlength=self.n)
        chances = shared.widths / np.maximum(totals, 1.0)[shared.records]
        ends = np.cumsum(chances)
        firsts = np.searchsorted(shared.records, np.arange(self.n))
        at = rng.random(self.n) + np.r_[0.0, ends][firsts]
        chosen = np.searchsorted(ends, at, side="right")
        copies = chosen < np.searchsorted(shared.records, np.arange(self.n), side="right")
        found[copies] = coins[shared.effects[chosen[copies]]]
        return found

    def describe(self) -> str:
        """Describe the model in one line of text."""
        return f"{self.n} records of {self._shared.n_effects} independent effects, at most {self.largest_degree} of one"

    def _remainder(self, known: BoolArray) -> SharedRecords:
        return SharedRecords(self._shared.given(known))


class Crossed(SharedRecords):
    """Model records of users and items with crossed effects: each depends on its user, its item and its own noise.

    Use it for ratings of films by users, cases read by readers, or sales of stores on days. Two records depend on each
    other if they share the user or the item. Only the largest sizes of the effects are assumed, no distribution.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    users : iterable of hashable
        User of each record (or reader, rater, store), in the order of the records, for example a column of a data
        frame.
    items : iterable of hashable
        Item of each record (or case, film, day).
    user_effect : float, default 1.0
        Largest total variation distance, between 0 and 1, by which the distribution of a record moves when only the
        effect of its user changes. 1 allows arbitrary effects.
    item_effect : float, default 1.0
        Largest total variation distance, between 0 and 1, by which the distribution of a record moves when only the
        effect of its item changes.

    Raises
    ------
    ArgumentError
        If labels are missing, cannot be hashed or differ in number, or an effect is not between 0 and 1.

    Notes
    -----
    The model assumes that record r is g_r(a_u, b_i, e_r) with an arbitrary function g_r, and that all effects a_u of
    users, b_i of items and e_r of single records are independent. A user may rate an item several times.

    *Variance inflation.* Let d_u and d_i be the numbers of records of a user and of an item, s and t the sizes of their
    effects. For statistics with bounded differences the variance inflation is at most ``1 + s^2 sum d_u^2 / n + t^2 sum
    d_i^2 / n`` (route "crossed"). For means it is at most ``sum over records of max(d_u, d_i) / n`` ("crossed-means"),
    and less with the best exponents in Hoelder's inequality or if effects are small. The smallest of these bounds is
    used in each connected component. Proofs:
    ``graphs/PROOFS.md``, section on crossed effects.

    *Normal effects.* For normal effects with known shares of the variance (intraclass correlations) use
    `GaussianField.components`, whose numbers are smaller. `graphs.estimation.fit_components` computes limits of the
    shares from a training part: 4.0 in place of 36.5 for the ratings in `examples/ratings.py`.

    *Known records* make the effects on which they depend dependent (as a known sum does with its terms), so `given`
    merges these effects.

    *Leakage.* For an informed adversary, who may know other records, the leakage about a record is at most the sum of
    the privacy budgets in its connected component. For an uninformed adversary, who knows the model only, it is at most
    the sum of the budgets of the records that share an effect with it.

    Examples
    --------
    Ten readers, each of whom reads all of twenty cases:

    >>> readers, cases = np.divmod(np.arange(200), 20)
    >>> model = Crossed(readers, cases)
    >>> round(model.variance_inflation(), 6), model.effective_records()
    (20.0, 10.0)
    >>> round(Crossed(readers, cases, 0.2, 0.2).variance_inflation(), 6)
    2.2
    >>> model.describe()
    '200 records of 10 users crossed with 20 items, at most 20 of one'
    """

    def __init__(
        self,
        users: Iterable[Hashable],
        items: Iterable[Hashable],
        user_effect: float = 1.0,
        item_effect: float = 1.0,
    ) -> None:
        names = ("users", "items")
        sizes = [_size("user_effect", user_effect), _size("item_effect", item_effect)]
        self._cross(names, _levels(names, (users, items)), sizes)

    @classmethod
    def of_factors(cls, factors: Any, effects: Any = 1.0) -> Crossed:
        """Build the model of records that depend on one level of each of several factors.

        Use it for more than two crossed factors, such as user, item and day.

        Parameters
        ----------
        factors : mapping from name to labels, or pandas.DataFrame
            For each factor one label per record.
        effects : float, or mapping from name to float, default 1.0
            Size of the effects in total variation distance, between 0 and 1: one number for all factors, or one for
            each.

        Returns
        -------
        Crossed
            Model of the records. Its attributes `factors` and `effects` hold the names and the sizes of the effects.

        Raises
        ------
        ArgumentError
            If there is no factor, labels or effects cannot be used, or `effects` names a factor that does not exist.

        Examples
        --------
        >>> table = {"user": [0, 0, 1, 1], "item": [0, 1, 0, 1], "day": [0, 0, 0, 1]}
        >>> model = Crossed.of_factors(table, {"user": 1.0, "item": 1.0, "day": 0.1})
        >>> model.describe()
        '4 records of 2 levels of user crossed with 2 of item and 2 of day, effects of size 1, 1, 0.1, at most 3 of one'
        """
        if hasattr(factors, "columns"):
            names = tuple(factors.columns)
        elif isinstance(factors, Mapping):
            names = tuple(factors)
        else:
            raise ArgumentError("factors", repr(factors), "a mapping from names to labels, or a data frame")
        if not names:
            raise ArgumentError("factors", "no factor", "a mapping of at least one factor")
        if len(set(names)) != len(names):
            raise ArgumentError("factors", "two columns of one name", "a table with different names")
        given = effects if isinstance(effects, Mapping) else dict.fromkeys(names, effects)
        for name in (*given, *names):
            if name not in names or name not in given:
                seen = f"no factor and effect for {name!r}"
                raise ArgumentError("effects", seen, f"one number for each of {names}")
        sizes = [_size("effects", given[name]) for name in names]
        model = cls.__new__(cls)
        shown = tuple(str(name) for name in names)
        model._cross(shown, _levels(shown, [factors[name] for name in names]), sizes)
        return model

    def _cross(self, names: tuple[str, ...], levels: list[IntArray], sizes: list[float]) -> None:
        self._names, self._levels, self._effects = names, levels, sizes
        super().__init__(SharedEffects.crossed(levels, sizes))

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return self._names

    @property
    def effects(self) -> tuple[float, ...]:
        """Size of the effects of each factor, in total variation distance."""
        return tuple(self._effects)

    def _content(self) -> Mapping[str, Any]:
        return {"levels": np.stack(self._levels), "effects": np.array(self._effects)}

    def describe(self) -> str:
        """Describe the model in one line of text."""
        counts = [int(level.max()) + 1 for level in self._levels]
        if self._names == ("users", "items"):
            words = f"{counts[0]} users crossed with {counts[1]} items"
        else:
            others = [f"{count} of {name}" for count, name in zip(counts[1:], self._names[1:], strict=True)]
            words = f"{counts[0]} levels of {self._names[0]}"
            words += (
                f" crossed with {', '.join(others[:-1])}{' and ' if len(others) > 1 else ''}{others[-1]}"
                if others
                else ""
            )
        weak = min(self._effects) < 1
        sizes = f", effects of size {', '.join(f'{size:.3g}' for size in self._effects)}" if weak else ""
        return f"{self.n} records of {words}{sizes}, at most {self.largest_degree} of one"


def _size(argument: str, value: object) -> float:
    """Return the size of an effect."""
    size = as_real(value)
    if size is None or not 0.0 <= size <= 1.0:
        raise ArgumentError(argument, repr(value), "a total variation distance in [0, 1]")
    return size


def _levels(names: tuple[str, ...], columns: Iterable[Any]) -> list[IntArray]:
    """Return the number of each record's level in each factor; series with labels are aligned by them."""
    listed: list[Listed] = []
    for name, labels in zip(names, columns, strict=True):
        refuse_unordered(name, labels, _EXPECTED)
        listed.append(read(name, labels, _EXPECTED))
        if len(listed[0].items) != len(listed[-1].items):
            seen = f"{len(listed[-1].items)} labels"
            raise ArgumentError(name, seen, f"{len(listed[0].items)} labels, one for each record, as {names[0]}")
    return [numbered_labels(name, items)[0] for name, items in zip(names, align(listed), strict=True)]
