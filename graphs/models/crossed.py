"""Crossed random effects: records of users and items, readers and cases, stores and days."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.crossed_effects import SharedEffects
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray, as_real
from graphs.numerics.rounding import charges, up
from graphs.structure.labelled_values import Listed, align, numbered_labels, read, refuse_unordered

__all__ = ["Crossed", "SharedRecords"]

_EXPECTED = "one label for each record"


class SharedRecords(DependenceModel):
    """Records that are functions of independent effects, which they share, and of noise of their own.

    What `Crossed` is, and what is left of it once records are known.

    Parameters
    ----------
    shared : SharedEffects
        Which record depends on which effect.

    Examples
    --------
    >>> shared = SharedEffects.crossed([np.array([0, 0, 1])], [1.0])
    >>> round(SharedRecords(shared).variance_inflation(), 6)
    1.666667
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
        """Return n over the largest number of records that share one effect."""
        return self.n / self.largest_degree

    @cached_property
    def largest_degree(self) -> int:
        """Largest number of records that share one effect, at least 1."""
        return max(int(self._shared.degrees.max(initial=1)), 1)

    @cached_property
    def _sizes(self) -> IntArray:
        return np.bincount(self._shared.component).astype(np.int64)

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of the connected components, or None when there is only one component."""
        return self._sizes.copy() if len(self._sizes) > 1 or self.n == 1 else None

    def _content(self) -> Mapping[str, Any]:
        shared = self._shared
        return {"records": shared.records, "effects": shared.effects, "widths": shared.widths, "n": self.n}

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw a fair coin (0 or 1) for each effect, and let each record copy one of its effects, or none.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
            A record copies an effect with a probability of the size of that effect, less where these sum to more
            than 1; otherwise it is a coin of its own.
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
        """Return one line of words about the model."""
        return f"{self.n} records of {self._shared.n_effects} independent effects, at most {self.largest_degree} of one"

    def _remainder(self, known: BoolArray) -> SharedRecords:
        return SharedRecords(self._shared.given(known))


class Crossed(SharedRecords):
    """Records of users and items: each depends on the effect of its user, on that of its item, and on its own noise.

    Parameters
    ----------
    users : iterable of hashable
        The user of each record, in their order: a reader, a rater, a store; a column of a data frame.
    items : iterable of hashable
        The item of each record: a case, a film, a day.
    user_effect : float
        How far, in total variation, the law of a record may move when the effect of its user alone changes, in [0, 1];
        1 allows everything.
    item_effect : float
        The same for the item.

    Raises
    ------
    ArgumentError
        For labels that are missing, cannot be hashed, or differ in number; for effects outside of [0, 1].

    Notes
    -----
    Record r is g_r(a_u, b_i, e_r), g_r any function into any space, all effects a_u of users, b_i of items and e_r of
    single records independent. A user may rate an item several times.

    With d_u and d_i records of a user and of an item, and sizes s and t of their effects, statistics with bounded
    differences have the variance inflation ``1 + s^2 sum d_u^2 / n + t^2 sum d_i^2 / n`` at most ("crossed"). Means
    have ``sum over records of max(d_u, d_i) / n`` ("crossed-means"), less with the best exponents in Hoelder's
    inequality, and less where effects are small: all of these are tried for each connected component. Limits by
    relative entropy have n over the largest degree (`effective_records`). Proofs in ``graphs/PROOFS.md``, section on
    crossed effects.

    Effects of size 1 allow everything. For normal effects with shares of the variance (intraclass correlations) there
    is `GaussianField.components`, and `graphs.estimation.fit_components` takes limits of the shares from a training
    part: 4.0 in place of 36.5 for the ratings in `examples/ratings.py`.

    Known records tie effects together (the sum of two coins makes them one): `given` joins the effects on which known
    records depend. What a mechanism leaks to an adversary who knows records is bounded by what the component of a
    record leaks, to one who knows the model alone by the records that share an effect with it.

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
        """Return the model of records that depend on one level of each of several factors.

        Parameters
        ----------
        factors : mapping from name to labels, or pandas.DataFrame
            One label for each record and each factor: user, item and day.
        effects : float, or mapping from name to float
            Size of the effects of all factors, or of each, in total variation.

        Returns
        -------
        Crossed

        Raises
        ------
        ArgumentError
            For no factor, labels or effects that cannot be used, effects of factors that do not exist.

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
            raise ArgumentError("factors", "no factor", "at least one, with one label for each record")
        if len(set(names)) != len(names):
            raise ArgumentError("factors", "two columns of one name", "each factor once")
        given = effects if isinstance(effects, Mapping) else dict.fromkeys(names, effects)
        for name in (*given, *names):
            if name not in names or name not in given:
                raise ArgumentError("effects", f"no factor and effect for {name!r}", f"one number for each of {names}")
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
        """Size of the effects of each factor, in total variation."""
        return tuple(self._effects)

    def _content(self) -> Mapping[str, Any]:
        return {"levels": np.stack(self._levels), "effects": np.array(self._effects)}

    def describe(self) -> str:
        """Return one line of words about the model."""
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
        raise ArgumentError(argument, repr(value), "a total variation distance, a number in [0, 1]")
    return size


def _levels(names: tuple[str, ...], columns: Iterable[Any]) -> list[IntArray]:
    """Return the number of each record's level in each factor; series with labels are aligned by them."""
    listed: list[Listed] = []
    for name, labels in zip(names, columns, strict=True):
        refuse_unordered(name, labels, _EXPECTED)
        listed.append(read(name, labels, _EXPECTED))
        if len(listed[0].items) != len(listed[-1].items):
            seen = f"{len(listed[-1].items)} labels"
            raise ArgumentError(name, seen, f"{len(listed[0].items)}, as many as {names[0]}: one for each record")
    return [numbered_labels(name, items)[0] for name, items in zip(names, align(listed), strict=True)]
