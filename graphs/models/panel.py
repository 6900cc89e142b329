"""Panels: independent units, each with records that depend on one another in the same way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.fitted_limits import FittedLimits
from graphs.known_records import BoolArray, CutNetwork, Network
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel, Given
from graphs.models.out_of_fold import OutOfFold
from graphs.numerics.arguments import FloatArray, IntArray, check_count
from graphs.numerics.rounding import up
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["Panel"]

#: Largest table of joint probabilities.
MOST_STATES = 1_000_000


class Panel(DependenceModel):
    """Independent units that each have their own records, with the same dependence in every unit.

    Patients who are measured week after week, firms over the years, schools with the same timetable.

    Parameters
    ----------
    model : DependenceModel
        How the records of one unit depend on one another; at least two records. Units need not have the same law: what
        is declared is that this model's numbers hold in each of them.
    units : int
        Number of units. Records are in the order of the units, and inside a unit in the order of `model`:
        record r of unit u is number ``u * model.n + r``.

    Raises
    ------
    ArgumentError
        For units of one record (they are `Independent`), out-of-fold values, or a number of units that is no positive
        integer.

    Notes
    -----
    Nothing is told about a unit by the records of others, so leakages are those of one unit. Moment generating
    functions of independent units multiply: the variance inflation is that of one unit, whatever the number of units,
    and the effective records are as many times those of one unit as there are units. See `graphs/PROOFS.md`,
    section on independent parts.

    Examples
    --------
    >>> from graphs import MarkovChain
    >>> panel = Panel(MarkovChain([[0.75, 0.25], [0.25, 0.75]], n=20), units=200)
    >>> panel.n, round(panel.variance_inflation(), 6)
    (4000, 2.8)
    >>> panel.describe()
    '200 independent units, each a Markov chain of 20 records over 2 states, stationary'
    """

    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "parts")
    _inflations_given: ClassVar[tuple[str, ...]] = inflation_methods

    def __init__(self, model: DependenceModel, units: int) -> None:
        if not isinstance(model, DependenceModel):
            raise ArgumentError("model", repr(model), "a dependence model of the records of one unit")
        if isinstance(model, OutOfFold):
            raise ArgumentError("model", model.describe(), "a model of the records, not of values computed from others")
        if model.n == 1:
            raise ArgumentError("model", "units of one record", "at least two records (else `Independent(units)`)")
        self._units = check_count("units", units)
        self._model: DependenceModel = model
        super().__init__(model.n * self._units)
        self.methods = model.methods  # type: ignore[misc]

    @property
    def model(self) -> DependenceModel:
        """The model of one unit."""
        return self._model

    @property
    def units(self) -> int:
        """Number of units."""
        return self._units

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Names of the records, pairs of a unit's number and the name in it, where the model of a unit names them.

        Examples
        --------
        >>> from graphs import MarkovField
        >>> Panel(MarkovField.ising(([[0, 1]], 2), coupling=0.5), 2).records
        ((0, 0), (0, 1), (1, 0), (1, 1))
        """
        labels = self._record_labels()
        return tuple(range(self.n)) if labels is None else labels

    # Leakage -----------------------------------------------------------------------------------------------

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        if isinstance(epsilon, float):
            return self._repeated(self._model._leakages(epsilon, method, adversary))
        found = np.zeros((self._units, self._model.n))
        for rows, budgets in _patterns(epsilon.reshape(self._units, -1)):
            if budgets.any():  # a unit without a budget leaks nothing
                found[rows] = self._model._leakages(budgets, method, adversary).expand()
        return Profile.of(found.ravel())

    def _best(self, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        return self._profile("best", epsilon, adversary)

    def _repeated(self, unit: Profile) -> Profile:
        """Return the profile of all units from that of one."""
        index = np.repeat(np.arange(len(unit.values)), unit.counts) if unit.index is None else unit.index
        return Profile(unit.values, unit.counts * self._units, np.tile(index, self._units))

    # Variance inflation ------------------------------------------------------------------------------------

    def _inflation(self, method: str) -> float:
        sizes = self._model.independent_groups()
        if sizes is None:
            return float(self._model.n)
        return int(np.sum(sizes.astype(np.int64) ** 2)) / self._model.n * (1 + 2**-51)

    def _by_parts(self, bounded_differences: bool) -> tuple[float, str]:
        table = self._model.explain_inflation(bounded_differences)
        which = table.index[table["won"]].tolist()
        inside = which[0] if which else "the number of records"
        return self._model.variance_inflation("best", bounded_differences), f"{inside} in each of {self._units} units"

    def effective_records(self) -> float:
        """Return those of one unit, at least one, times the number of units.

        Examples
        --------
        >>> from graphs import MovingWindow
        >>> Panel(MovingWindow(10, 1), 7).effective_records()
        35.0
        """
        inside = self._model.effective_records()
        return self._units * max(1.0, inside if inside is not None else 1.0)

    def independent_groups(self) -> IntArray:
        """Return the sizes of the units, or of the groups that each of them consists of."""
        sizes = self._model.independent_groups()
        return np.tile(np.array([self._model.n]) if sizes is None else sizes, self._units)

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return the blocks of one unit, as often as there are units."""
        unit = self._model.revealed_blocks(missed / self._units)
        return RevealedBlocks(unit.changes, tuple(count * self._units for count in unit.counts), unit.missed)

    # Known records -----------------------------------------------------------------------------------------

    def _network(self) -> Network | None:
        return self._all_units

    @cached_property
    def _all_units(self) -> Network | None:
        unit = self._model._network()
        return None if unit is None else unit.repeated(self._units)

    def _parts_given(self, known: BoolArray) -> IntArray:
        width = self._model.n
        found = np.empty((self._units, width), dtype=np.int64)
        for rows, mask in _patterns(known.reshape(self._units, width)):
            parts = self._model._parts_given(mask)
            found[rows] = np.zeros(width) if parts is None else np.unique(parts, return_inverse=True)[1]
        return (found + width * np.arange(self._units)[:, None]).ravel()

    def _by_parts_given(self, known: BoolArray, bounded_differences: bool) -> tuple[float, str]:
        total = sum(
            count * unit.n * unit.variance_inflation("best", bounded_differences)
            for unit, count in self._units_given(known)
        )
        return up(total / int((~known).sum()), self._units + 4), "the best route in each unit"

    def _effective_given(self, known: BoolArray) -> float:
        shares = [unit.n / max(1.0, unit.effective_records() or 1.0) for unit, _ in self._units_given(known)]
        return int((~known).sum()) / up(max(shares), 2)

    def _units_given(self, known: BoolArray) -> Iterator[tuple[DependenceModel, int]]:
        """Yield what known records leave of a unit, and in how many units they leave that."""
        names = self._model._record_labels() or range(self._model.n)
        for rows, mask in _patterns(known.reshape(self._units, -1)):
            if not mask.all():
                inside = [names[k] for k in np.flatnonzero(mask).tolist()]
                yield Given(self._model, inside) if inside else self._model, len(rows)

    def _profile_given(
        self, method: str, epsilon: float | FloatArray, known: BoolArray, cut: CutNetwork | None
    ) -> Profile:
        if isinstance(epsilon, float):
            return self._repeated(self._model._profile_given(method, epsilon, known[: self._model.n], None))
        width = self._model.n
        network = self._model._network()
        found = np.full((self._units, width), np.inf)
        refused: RouteUnavailable | None = None
        for rows, both in _patterns(np.hstack([epsilon.reshape(-1, width), known.reshape(-1, width)])):
            budgets, mask = both[:width], both[width:] > 0
            if not budgets.any():  # nothing is asked about it, as of a unit that is known
                found[rows] = 0.0
                continue
            inside = None if network is None else network.without(mask)
            try:
                found[rows] = self._model._profile_given(method, budgets, mask, inside).expand()
            except RouteUnavailable as error:
                refused = error
        if refused is not None and not np.isfinite(found).any():
            raise refused
        return Profile.of(found.ravel())

    def _sample_given(
        self, known: Callable[[], Mapping[int, int]], rng: np.random.Generator
    ) -> npt.NDArray[Any] | None:
        width = self._model.n
        codes: list[dict[int, int]] = [{} for _ in range(self._units)]
        for record, code in known().items():
            codes[record // width][record % width] = code
        drawn = []
        for of_unit in codes:
            rows = self._model._sample_given(lambda of_unit=of_unit: of_unit, rng)  # type: ignore[misc]
            if rows is None:
                return None
            drawn.append(rows)
        return np.concatenate(drawn)

    # The law -----------------------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw the records of all units once, unit after unit.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.concatenate([self._model.sample(rng) for _ in range(self._units)])

    def joint(self) -> FloatArray:
        """Return the table of joint probabilities of the records of all units, for small panels.

        Raises
        ------
        ArgumentError
            When the model of a unit does not state a law, or there are more than a million joint states.
        """
        unit = self._model.joint()
        if float(unit.size) ** self._units > MOST_STATES:
            raise ArgumentError("model", f"{unit.size}^{self._units} joint states", f"at most {MOST_STATES}")
        table = unit
        for _ in range(self._units - 1):
            table = np.multiply.outer(table, unit)
        return table

    def describe(self) -> str:
        """Return one line of words about the model."""
        units = "unit" if self._units == 1 else "units"
        return f"{self._units} independent {units}, each a {self._model.describe()}"

    def _fitted_with(self) -> FittedLimits | None:
        return self._model.fitted_limits

    def _record_labels(self) -> tuple[Hashable, ...] | None:
        labels = self._model._record_labels()
        return None if labels is None else tuple((unit, label) for unit in range(self._units) for label in labels)

    def _content(self) -> Mapping[str, Any]:
        return {"model": self._model.fingerprint(), "units": self._units}


def _patterns(table: npt.NDArray[Any]) -> Iterator[tuple[IntArray, npt.NDArray[Any]]]:
    """Yield the numbers of the rows that are equal, and one of them, for each different row."""
    if (table == table[0]).all():
        yield np.arange(len(table)), table[0]
        return
    rows, which = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(which, kind="stable")
    for row, places in zip(rows, np.split(order, np.cumsum(np.bincount(which))[:-1]), strict=True):
        yield places, row
