"""Panels: independent units, each with records that depend on one another in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.fitted_limits import FittedLimits
from graphs.known_records import BoolArray, CutNetwork, Network
from graphs.leakage.profile import Profile
from graphs.markov_structure import quilt_table
from graphs.model import Adversary, DependenceModel, Given
from graphs.models.out_of_fold import OutOfFold
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.numerics.rounding import up
from graphs.structure.revealed_blocks import RevealedBlocks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Panel"]

#: Largest table of joint probabilities.
MOST_STATES = 1_000_000


class Panel(DependenceModel):
    """Model independent units whose records depend on each other in the same way in every unit.

    Use it for patients who are measured week after week, firms over the years, or many independent sequences. The
    dependence inside a unit is any other model.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    model : DependenceModel, or callable
        Dependence between the records of one unit, which has at least two records. The bounds of this model are assumed
        to hold in each unit. The distributions of the units may differ otherwise. For units of different sizes, pass a
        function from the number of records to the model of a unit, such as ``lambda n: MarkovChain(transition, n=n)``.
    units : int, or sequence of int
        Number of units. If `model` is a function, a sequence with the number of records of each unit. Records are
        ordered by unit, and inside a unit in the order of its model. If all units have the same size, record r of unit
        u is record ``u * model.n + r`` of the panel.

    Raises
    ------
    ArgumentError
        If the units have a single record each (use `Independent`), `model` is one of out-of-fold values, a number is
        not a positive integer, or the function does not return a model of the requested number of records.

    Notes
    -----
    Records of one unit reveal nothing about another unit, so the leakage about a record is that of its unit's model.
    Moment generating functions of independent units multiply. The variance inflation is therefore the mean of the
    units' variance inflations, weighted by their numbers of records. The effective sample size of equal units is the
    sum of their effective sample sizes. See
    `graphs/PROOFS.md`, section on independent parts.

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> panel = Panel(MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=20), units=200)
    >>> panel.n, round(panel.variance_inflation(), 6)
    (4000, 2.8)
    >>> panel.describe()
    '200 independent units, each a Markov chain of 20 records over 2 states, stationary'
    >>> visits = [20, 13, 7, 20, 1]
    >>> panel = Panel(lambda n: MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=n), units=visits)
    >>> panel.n, round(panel.variance_inflation(), 6)
    (61, 2.705438)
    """

    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "parts")
    _inflations_given: ClassVar[tuple[str, ...]] = inflation_methods

    def __init__(self, model: DependenceModel | Callable[[int], DependenceModel], units: int | Sequence[int]) -> None:
        if isinstance(model, DependenceModel):
            if model.n == 1:
                expected = "a model of at least two records"
                raise ArgumentError("model", "units of one record", expected, "Use Independent(units) for one record.")
            self._kinds: list[DependenceModel] = [model]
            self._kind_of: IntArray = np.zeros(check_count("units", units), dtype=np.int64)
        else:
            self._kinds, self._kind_of = _kinds(model, units)
        for kind in self._kinds:
            if isinstance(kind, OutOfFold):
                raise ArgumentError(
                    "model", kind.describe(), "a model of the records, not of values computed from others"
                )
        self._widths = np.array([kind.n for kind in self._kinds], dtype=np.int64)[self._kind_of]
        self._starts = np.cumsum(self._widths) - self._widths
        super().__init__(int(self._widths.sum()))
        first, *others = self._kinds
        common = [name for name in first.methods if all(name in kind.methods for kind in others)]
        self.methods = tuple(common)  # type: ignore[misc]

    @property
    def model(self) -> DependenceModel:
        """The model of one unit. The model of the longest unit if sizes differ."""
        return max(self._kinds, key=lambda kind: kind.n)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self._kind_of)

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Names of the records: pairs (unit number, name in the unit), or record numbers if they have no names.

        Examples
        --------
        >>> from graphs import MarkovField
        >>> Panel(MarkovField.ising(([[0, 1]], 2), coupling=0.5), 2).records
        ((0, 0), (0, 1), (1, 0), (1, 1))
        """
        labels = self._record_labels()
        return tuple(range(self.n)) if labels is None else labels

    def _each(self) -> Iterator[tuple[DependenceModel, IntArray]]:
        """Yield each kind of unit, and the numbers of the records of its units, shape (units of that kind, records)."""
        for number, kind in enumerate(self._kinds):
            yield kind, self._starts[self._kind_of == number][:, None] + np.arange(kind.n)

    @cached_property
    def _counts(self) -> list[int]:
        """Number of units of each kind."""
        counts: list[int] = np.bincount(self._kind_of, minlength=len(self._kinds)).tolist()
        return counts

    # Leakage -----------------------------------------------------------------------------------------------

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if isinstance(epsilon, float):
            return self._repeated([kind._leakages(epsilon, method, adversary) for kind in self._kinds])
        found = np.zeros(self.n)
        for kind, places in self._each():
            for rows, budgets in _patterns(epsilon[places]):
                if budgets.any():  # a unit without a budget leaks nothing
                    found[places[rows]] = kind._leakages(budgets, method, adversary).expand()
        return Profile.of(found)

    def _best(self, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        return self._profile("best", epsilon, adversary)

    def _repeated(self, profiles: list[Profile]) -> Profile:
        """Return the profile of all units from those of one unit of each kind."""
        indices, offset = np.empty(self.n, dtype=np.int64), 0
        for unit, (_, places) in zip(profiles, self._each(), strict=True):
            index = np.repeat(np.arange(len(unit.values)), unit.counts) if unit.index is None else unit.index
            indices[places] = index + offset
            offset += len(unit.values)
        values = np.concatenate([unit.values for unit in profiles])
        counts = np.concatenate([unit.counts * count for unit, count in zip(profiles, self._counts, strict=True)])
        return Profile(values, counts, indices)

    # Variance inflation ------------------------------------------------------------------------------------

    def _inflation(self, method: str) -> float:
        if len(self._kinds) == 1 and self._kinds[0].independent_groups() is None:
            return float(self._kinds[0].n)
        sizes = self.independent_groups().astype(np.int64)
        return int(np.sum(sizes**2)) / self.n * (1 + 2**-51)

    def _by_parts(self, bounded_differences: bool) -> tuple[float, str]:
        found = [kind.variance_inflation("best", bounded_differences) for kind in self._kinds]
        if len(self._kinds) > 1:
            total = math.fsum(
                value * kind.n * count for value, kind, count in zip(found, self._kinds, self._counts, strict=True)
            )
            return up(total / self.n, len(found) + 4), f"the best route in each of {self.units} units"
        table = self._kinds[0].explain_inflation(bounded_differences)
        which = table.index[table["won"]].tolist()
        inside = which[0] if which else "the number of records"
        return found[0], f"{inside} in each of {self.units} units"

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        Returns
        -------
        float
            The number n of records, divided by the largest ratio of records to effective records in a unit.

        Examples
        --------
        >>> from graphs import MovingWindow
        >>> Panel(MovingWindow(10, 1), 7).effective_records()
        35.0
        """
        inside = [max(1.0, kind.effective_records() or 1.0) for kind in self._kinds]
        if len(inside) == 1:
            return self.units * inside[0]
        return self.n / up(max(kind.n / found for kind, found in zip(self._kinds, inside, strict=True)), 2)

    def independent_groups(self) -> IntArray:
        """Return the sizes of groups of records that are independent of each other.

        Returns
        -------
        ndarray of int
            Number of records of each unit. If the records of a unit form independent groups, the numbers of records of
            these.
        """
        of_kind = [kind.independent_groups() for kind in self._kinds]
        sizes = [np.array([k.n]) if s is None else s for k, s in zip(self._kinds, of_kind, strict=True)]
        return np.concatenate([sizes[number] for number in self._kind_of.tolist()])

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. The blocks are those of all units together.
        """
        changes: dict[int, int] = {}
        largest = 0.0
        for kind, count in zip(self._kinds, self._counts, strict=True):
            unit = kind.revealed_blocks(missed / self.units)
            largest = max(largest, unit.missed)
            for change, blocks in zip(unit.changes, unit.counts, strict=True):
                changes[change] = changes.get(change, 0) + blocks * count
        ordered = sorted(changes)
        return RevealedBlocks(tuple(ordered), tuple(changes[change] for change in ordered), largest)

    # Known records -----------------------------------------------------------------------------------------

    def _network(self) -> Network | None:
        return self._all_units

    @cached_property
    def _all_units(self) -> Network | None:
        unit = self._kinds[0]._network() if len(self._kinds) == 1 else None
        return None if unit is None else unit.repeated(self.units)

    def _parts_given(self, known: BoolArray) -> IntArray:
        found = np.empty(self.n, dtype=np.int64)
        for kind, places in self._each():
            for rows, mask in _patterns(known[places]):
                parts = kind._parts_given(mask)
                inside = np.zeros(kind.n, dtype=np.int64) if parts is None else np.unique(parts, return_inverse=True)[1]
                found[places[rows]] = inside + places[rows, :1]
        return found

    def _by_parts_given(self, known: BoolArray, bounded_differences: bool) -> tuple[float, str]:
        total = sum(
            count * unit.n * unit.variance_inflation("best", bounded_differences)
            for unit, count in self._units_given(known)
        )
        return up(total / int((~known).sum()), self.units + 4), "the best route in each unit"

    def _effective_given(self, known: BoolArray) -> float:
        shares = [unit.n / max(1.0, unit.effective_records() or 1.0) for unit, _ in self._units_given(known)]
        return int((~known).sum()) / up(max(shares), 2)

    def _units_given(self, known: BoolArray) -> Iterator[tuple[DependenceModel, int]]:
        """Yield the remaining records of a unit, and the number of units with the same."""
        for kind, places in self._each():
            names = kind._record_labels() or range(kind.n)
            for rows, mask in _patterns(known[places]):
                if not mask.all():
                    inside = [names[k] for k in np.flatnonzero(mask).tolist()]
                    yield Given(kind, inside) if inside else kind, len(rows)

    def _profile_given(
        self, method: str, epsilon: float | FloatArray, known: BoolArray, cut: CutNetwork | None
    ) -> Profile:
        if isinstance(epsilon, float) and len(self._kinds) == 1:
            unit = self._kinds[0]
            return self._repeated([unit._profile_given(method, epsilon, known[: unit.n], None)])
        asked = np.broadcast_to(np.asarray(epsilon), (self.n,))
        found = np.full(self.n, np.inf)
        refused: RouteUnavailable | None = None
        for kind, places in self._each():
            network = kind._network()
            for rows, both in _patterns(np.hstack([asked[places], known[places]])):
                budgets, mask = both[: kind.n], both[kind.n :] > 0
                if not budgets.any():  # no query about it, as for a known unit
                    found[places[rows]] = 0.0
                    continue
                inside = None if network is None else network.without(mask)
                try:
                    found[places[rows]] = kind._profile_given(method, budgets, mask, inside).expand()
                except RouteUnavailable as error:
                    refused = error
        if refused is not None and not np.isfinite(found).any():
            raise refused
        return Profile.of(found)

    def _sample_given(
        self, known: Callable[[], Mapping[int, int]], rng: np.random.Generator
    ) -> npt.NDArray[Any] | None:
        codes: list[dict[int, int]] = [{} for _ in range(self.units)]
        for record, code in known().items():
            unit = int(np.searchsorted(self._starts, record, side="right")) - 1
            codes[unit][record - int(self._starts[unit])] = code
        drawn = []
        for number, of_unit in zip(self._kind_of.tolist(), codes, strict=True):
            rows = self._kinds[number]._sample_given(lambda of_unit=of_unit: of_unit, rng)
            if rows is None:
                return None
            drawn.append(rows)
        return np.concatenate(drawn)

    # Around a record ---------------------------------------------------------------------------------------

    def _unit_of(self, place: int) -> tuple[DependenceModel, int, int]:
        """Return the model of a record's unit, the number of the unit, and that of the record in it."""
        unit = int(np.searchsorted(self._starts, place, side="right")) - 1
        return self._kinds[int(self._kind_of[unit])], unit, place - int(self._starts[unit])

    def quilts(self, record: Hashable) -> pd.DataFrame:
        """List Markov quilts of a record, with its influence on each.

        A quilt is a set of records that separates a record and the records near it from all others.

        Returns
        -------
        pandas.DataFrame
            One row per quilt of the record inside its unit, with the columns `quilt`, `nearby`, `influence` and
            `spread`, as for `DependenceModel.quilts`.
        """
        kind, unit, inside = self._unit_of(self._place_of("record", record))
        found: list[Any] = kind.quilts(kind._label_of(inside)).to_numpy().tolist()
        return quilt_table(
            [
                (self._outside(kind, unit, quilt), self._outside(kind, unit, near), influence, spread)
                for quilt, near, influence, spread in found
            ]
        )

    def markov_blanket(self, record: Hashable) -> tuple[Hashable, ...]:
        """Return the Markov blanket of a record: given its blanket, a record is independent of all other records.

        Returns
        -------
        tuple
            Names of the records in the blanket. All of them belong to the unit of the record.
        """
        kind, unit, inside = self._unit_of(self._place_of("record", record))
        return self._outside(kind, unit, kind.markov_blanket(kind._label_of(inside)))

    def _outside(self, kind: DependenceModel, unit: int, names: tuple[Any, ...]) -> tuple[Hashable, ...]:
        """Return the names in the panel of records of one unit."""
        if kind._record_labels() is not None:
            return tuple((unit, name) for name in names)
        return tuple(int(self._starts[unit]) + name if isinstance(name, int) else (unit, name) for name in names)

    def _table_of(self, places: list[int]) -> tuple[FloatArray, float]:
        by_unit: dict[int, list[int]] = {}
        for place in places:
            by_unit.setdefault(self._unit_of(place)[1], []).append(place)
        tables, order, roundings = [], [], 0.0
        for unit, inside in by_unit.items():
            start = int(self._starts[unit])
            values, error = self._kinds[int(self._kind_of[unit])]._table_of([place - start for place in inside])
            tables.append(values)
            order += inside
            roundings += error + 1
        return reduce(np.multiply.outer, tables).transpose([order.index(place) for place in places]), roundings

    # The law -----------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw one synthetic data set with the records of all units, unit after unit.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, of the kind that `model.sample` returns, unit after unit.
        """
        return np.concatenate([self._kinds[number].sample(rng) for number in self._kind_of.tolist()])

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for small panels.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per state.

        Raises
        ------
        ArgumentError
            If the model of a unit does not state a distribution, or there are more than a million joint states.
        """
        tables = [self._kinds[number].joint() for number in self._kind_of.tolist()]
        states = math.prod(float(table.size) for table in tables)
        if states > MOST_STATES:
            seen = f"one with {states:.6g} joint states"
            raise ArgumentError("model", seen, f"a model with at most {MOST_STATES} joint states")
        return reduce(np.multiply.outer, tables)

    def describe(self) -> str:
        """Describe the model in one line of text."""
        units = "unit" if self.units == 1 else "units"
        if len(self._kinds) == 1:
            return f"{self.units} independent {units}, each a {self._kinds[0].describe()}"
        lengths = f"{self._widths.min()} to {self._widths.max()} records"
        return f"{self.units} independent units of {lengths}, the longest a {self.model.describe()}"

    def _fitted_with(self) -> FittedLimits | None:
        limits = dict.fromkeys(kind.fitted_limits for kind in self._kinds)
        different = [found for found in limits if found is not None]
        if len(different) < 2:
            return next(iter(different), None)
        # limits of different fits may fail in turn: a union bound
        failure = min(up(math.fsum(found.failure for found in different), 1), 1.0)
        families = "; ".join(found.family for found in different)
        return FittedLimits(families, max(found.count for found in different), failure)

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        of_kind = [kind._record_labels() for kind in self._kinds]
        if all(labels is None for labels in of_kind):
            return None
        names = [labels or range(kind.n) for labels, kind in zip(of_kind, self._kinds, strict=True)]
        return tuple((unit, label) for unit, number in enumerate(self._kind_of.tolist()) for label in names[number])

    def _content(self) -> Mapping[str, Any]:
        if len(self._kinds) == 1:
            return {"model": self._kinds[0].fingerprint(), "units": self.units}
        return {"models": [kind.fingerprint() for kind in self._kinds], "kinds": self._kind_of}


def _kinds(family: Any, units: Any) -> tuple[list[DependenceModel], IntArray]:
    """Return the models of the different numbers of records, and which of them each unit has."""
    if not callable(family):
        expected = "a dependence model of one unit, or a function from the number of records to it"
        raise ArgumentError("model", repr(family), expected)
    if np.ndim(units) != 1 or not len(units):
        raise ArgumentError("units", repr(units), "the number of records of each unit, as model is a function")
    lengths = np.array([check_count("units", length) for length in units], dtype=np.int64)
    different, kind_of = np.unique(lengths, return_inverse=True)
    kinds = []
    for length in different.tolist():
        kind = family(length)
        if not isinstance(kind, DependenceModel) or kind.n != length:
            seen = f"{kind!r} for a unit of {length} records"
            raise ArgumentError("model", seen, f"a dependence model of {length} records")
        kinds.append(kind)
    return kinds, kind_of.astype(np.int64)


def _patterns(table: npt.NDArray[Any]) -> Iterator[tuple[IntArray, npt.NDArray[Any]]]:
    """Yield the numbers of the rows that are equal, and one of them, for each different row."""
    if (table == table[0]).all():
        yield np.arange(len(table)), table[0]
        return
    rows, which = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    for row, places in zip(rows, np.split(order, np.cumsum(np.bincount(which))[:-1]), strict=True):
        yield places, row
