"""Series whose records are independent when more than a window apart."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.inflation.concentration import even_block_inflation, uneven_block_inflation
from graphs.known_records import BoolArray
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, IntArray, as_integer, as_real, check_count
from graphs.numerics.rounding import UNIT, charges, up
from graphs.structure.revealed_blocks import RevealedBlocks
from graphs.structure.sort_keys import sort_ranks

__all__ = ["MovingWindow", "Reach", "reach_of_times"]


@dataclass(frozen=True)
class Reach:
    """Range of dependence of each record of a series: it is independent of all records beyond."""

    order: IntArray  # shape (n,): numbers of the records in the order of the series
    last: IntArray  # shape (n,): place of the last record that may depend on the one at each place, not decreasing

    @classmethod
    def even(cls, n: int, m: int) -> Reach:
        """Return the range of a series in which each record depends on at most the next m."""
        return cls(np.arange(n), np.minimum(np.arange(n) + m, n - 1))

    @property
    def first(self) -> IntArray:
        """Place of the first record that may depend on the one at each place."""
        found: IntArray = np.searchsorted(self.last, np.arange(len(self.last)), side="left").astype(np.int64)
        return found

    @property
    def component(self) -> IntArray:
        """Number of the connected component of each place."""
        # a record that depends on no later one ends a component, since `last` does not decrease
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
        """Return the range of the other records, renumbered, once some are known.

        Two records are connected then if steps within reach lead from one to the other whose stops are all known.
        """
        places = np.arange(len(self.last))
        stops = known[self.order]
        before = np.maximum.accumulate(np.where(stops, places, -1))  # the last known place up to each
        onward = before[self.last]
        # the farthest known stop in one step; stops are never better before i, since `last` does not decrease
        jump = np.where(onward > places, onward, places)
        while True:  # pointer doubling
            further = jump[jump]
            if (further == jump).all():
                break
            jump = further
        furthest = self.last[jump]
        left = np.flatnonzero(~stops)
        number, kept = np.cumsum(~stops) - 1, np.cumsum(~known) - 1
        return Reach(kept[self.order[left]], number[furthest[left]].astype(np.int64))


def reach_of_times(times: Any, length: Any) -> Reach:
    """Return which records are at most `length` apart, in the order of their times.

    >>> reach_of_times([3.0, 0.0, 1.0], 1.0).last.tolist()
    [1, 1, 2]
    """
    ranks = sort_ranks("times", times)
    if not len(ranks):
        raise ArgumentError("times", "nothing", "one time for each record")
    order = np.argsort(ranks, kind="stable")
    values = getattr(times, "array", times)
    listed = values if hasattr(values, "dtype") else np.asarray(list(values))
    if listed.dtype.kind in "iuf" or (listed.dtype.kind == "O" and as_real(listed[0]) is not None):
        last = _among_numbers(np.asarray(listed), length, order)
    else:
        last = _among_instants(times, length, order)
    return Reach(order.astype(np.int64), last.astype(np.int64) - 1)


def _among_numbers(values: Any, length: Any, order: IntArray) -> IntArray:
    size = as_real(length)
    if size is None or not 0 <= size < math.inf:
        raise ArgumentError("length", repr(length), "a finite number, not negative, as the times are numbers")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        record = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ArgumentError("times", f"{numbers[record]} for record {record}", "finite times")
    whole = as_integer(length)
    if values.dtype.kind == "i" and whole is not None and whole < 2**62 and np.abs(numbers).max() < 2.0**62:
        exact = values.astype(np.int64)[order]
        return _after(exact, exact + whole)
    places: FloatArray = numbers[order]
    # stored decimals are rounded: a difference within rounding of the length counts as within it
    ends = places + size + 8 * UNIT * (np.abs(places) + size)
    return _after(places, ends)


def _among_instants(times: Any, length: Any, order: IntArray) -> IntArray:
    import pandas as pd

    expected = "a time difference such as pandas.Timedelta, finite and not negative, as the times are dates"
    if not isinstance(length, datetime.timedelta | np.timedelta64):
        raise ArgumentError("length", repr(length), expected)
    try:
        size = pd.Timedelta(length)
    except ValueError:  # months and years, which have no fixed length
        raise ArgumentError("length", repr(length), expected) from None
    if pd.isna(size) or size < pd.Timedelta(0):
        raise ArgumentError("length", repr(length), expected)
    index = pd.Index(times if hasattr(times, "dtype") else list(times))
    if not isinstance(index, pd.DatetimeIndex | pd.TimedeltaIndex):
        if not isinstance(index[0], datetime.date):
            seen = f"times of type {type(index[0]).__name__}"
            advice = "Pass times.to_timestamp() of a pandas.PeriodIndex."
            raise ArgumentError("times", seen, "numbers, dates or times", advice)
        index = pd.DatetimeIndex(pd.to_datetime(list(index), utc=getattr(index[0], "tzinfo", None) is not None))
    unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[index.unit]
    places = np.asarray(index.asi8)[order]
    steps = size.as_unit("ns").value // unit  # differences of times are whole numbers of their unit
    room = (2**63 - 1) - np.maximum(places, 0)
    return _after(places, places + np.minimum(steps, room))


def _after(places: Any, ends: Any) -> IntArray:
    """Return how many places there are up to each end."""
    found: IntArray = np.searchsorted(places, ends, side="right").astype(np.int64)
    return found


class MovingWindow(DependenceModel):
    """Model a series in which records more than m steps apart are independent (m-dependence).

    Use it when dependence has a known finite range, for example features that are computed from overlapping windows.
    `MovingWindow.of_times` takes a range in time instead of steps. `MixingSeries` allows dependence that decays without
    ending.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    n : int
        Number of records, at least one.
    m : int
        Range of the dependence in steps. 0 means independent records.

    Raises
    ------
    ArgumentError
        If `n` is not a positive integer, or `m` is not a nonnegative integer.

    Notes
    -----
    Precisely, any part of the series is assumed to be independent of all records more than m steps later, jointly. This
    is not a Markov network: two distant records, independent by themselves, may depend on each other once a record
    between them is known (two coins and their sum). For an informed adversary, who may know other records, the leakage
    bound is therefore group privacy of the whole series. For an uninformed adversary, who knows the model only, records
    beyond the window are independent of record i, so the bound adds at most the 2m + 1 budgets within the window.

    The variance inflation of means is m + 1, the chromatic number of the graph that joins records within m steps
    [Janson 2004, Theorem 2.1]. That of statistics with bounded differences is about 4 m. Given known records, the
    remaining records have the same structure: two of them may depend on each other if steps of at most m lead from one
    to the other over known records only. See `graphs/PROOFS.md`, section on
    windows.

    Examples
    --------
    >>> model = MovingWindow(5, 1)
    >>> model.leakage(0.1, adversary="uninformed").round(6)
    array([0.2, 0.3, 0.3, 0.3, 0.2])
    >>> model.variance_inflation()
    2.0
    """

    methods: ClassVar[tuple[str, ...]] = ("group", "quilt")
    inflation_methods: ClassVar[tuple[str, ...]] = ("components", "colouring", "mixing")

    def __init__(self, n: int, m: int) -> None:
        super().__init__(n)
        self._m = check_count("m", m, 0)
        self._reach: Reach | None = None
        self._length = ""

    @classmethod
    def of_times(cls, times: Any, length: Any) -> MovingWindow:
        """Build the model of records that are independent when they are more than a given time apart.

        Parameters
        ----------
        times : sequence
            Time of each record: numbers, or dates and times, in any order. Equal times are allowed.
        length : float, datetime.timedelta, numpy.timedelta64 or pandas.Timedelta
            Range of the dependence, of the type of a difference between two times. 0 joins records of equal time.

        Returns
        -------
        MovingWindow
            Model whose `m` is the largest number of records in any window of that length, less one. The variance
            inflation of means is the average, over the records, of the largest number of records in such a window
            around each.

        Raises
        ------
        ArgumentError
            If a time is missing or infinite, times are of several kinds, or `length` does not match their type.

        Examples
        --------
        >>> import pandas as pd
        >>> visits = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 18:00", "2024-03-01 10:00", "2024-05-01 10:00"])
        >>> model = MovingWindow.of_times(visits, pd.Timedelta(days=30))
        >>> model.m, round(model.variance_inflation(), 6)
        (1, 1.5)
        """
        return cls._reaching(reach_of_times(times, length), str(length))

    @classmethod
    def _reaching(cls, reach: Reach, length: str = "") -> MovingWindow:
        """Return the model of records with a range of dependence each."""
        model = cls(len(reach.last), reach.largest - 1)
        model._reach, model._length = reach, length
        return model

    @property
    def m(self) -> int:
        """Range of the dependence, in steps of the series."""
        return self._m

    @property
    def even(self) -> bool:
        """Whether the range is a number of steps. False if it is a length of time (`of_times`)."""
        return self._reach is None

    def spaced(self) -> IntArray:
        """Select records that are all more than a window apart, so that they are independent.

        Returns
        -------
        ndarray of int
            Numbers of the selected records, in the order of the series, starting with its first record.

        Examples
        --------
        >>> MovingWindow(8, 2).spaced()
        array([0, 3, 6])
        >>> MovingWindow.of_times([0.0, 0.5, 1.0, 9.0, 9.5], 1.0).spaced()
        array([0, 3])
        """
        if self._reach is None:
            return np.arange(0, self.n, self._m + 1)
        place, found = 0, []
        while place < self.n:
            found.append(place)
            place = int(self._reach.last[place]) + 1
        return self._reach.order[found]

    def alternating_blocks(self) -> IntArray:
        """Split the series into blocks such that blocks that are not adjacent are jointly independent.

        Each block is just long enough to separate its neighbours, so every second block can be treated as independent
        data.

        Returns
        -------
        ndarray of int
            Block number of each record, from 0, in the order of the records.

        Examples
        --------
        >>> MovingWindow(8, 2).alternating_blocks()
        array([0, 0, 1, 1, 2, 2, 3, 3])
        >>> MovingWindow.of_times([0.0, 0.5, 1.0, 9.0, 9.5], 1.0).alternating_blocks()
        array([0, 0, 1, 2, 3])
        """
        if self._reach is None:
            return np.arange(self.n) // max(1, self._m)
        last, ends = self._reach.last, [max(0, self._reach.largest - 2)]
        while ends[-1] < self.n - 1:
            ends.append(max(ends[-1] + 1, int(last[ends[-1]])))
        found = np.empty(self.n, dtype=np.int64)
        found[self._reach.order] = np.searchsorted(np.array(ends), np.arange(self.n))
        return found

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        whole = not self._m or self._m >= self.n - 1
        if method == "quilt" and adversary == "informed" and not whole:
            reason = "records far apart may depend on each other once records between them are known"
            raise RouteUnavailable(method, reason, ("best", "group"))
        if self._reach is not None:
            return self._by_reach(self._reach, method, epsilon)
        reach = self._m if method == "quilt" else self.n - 1 if self._m else 0
        if not isinstance(epsilon, float):
            return Profile.of(_range_sums(epsilon, *_even_window(self.n, reach)))
        if reach >= self.n - 1:
            return Profile.constant(epsilon if self.n == 1 else up(self.n * epsilon, 1), self.n)
        ends = min(reach, (self.n - 1) // 2)
        at = np.concatenate([np.arange(ends + 1), np.arange(self.n - ends, self.n)])
        first, last = np.maximum(at - reach, 0), np.minimum(at + reach, self.n - 1)
        sizes = (last - first + 1).astype(np.float64)
        values = np.where(sizes == 1, epsilon, up(sizes * epsilon, 1))
        return Profile.ends(values[:ends], float(values[ends]), values[ends + 1 :], self.n)

    def _by_reach(self, reach: Reach, method: str, epsilon: float | FloatArray) -> Profile:
        """Return the leakages of records with different ranges."""
        budgets = np.broadcast_to(np.asarray(epsilon), (self.n,)).astype(np.float64)
        if not budgets.any():
            return Profile.constant(0.0, self.n)
        first, last = reach.first, reach.last
        if method == "group":
            component = reach.component
            ends = np.flatnonzero(reach.last == np.arange(self.n))
            first, last = np.r_[0, ends[:-1] + 1][component], ends[component]
        values = np.empty(self.n)
        values[reach.order] = _range_sums(budgets[reach.order], first, last)
        return Profile.of(values)

    def _inflation(self, method: str) -> float:
        if method == "mixing":
            found = even_block_inflation(self.n, self._m) if self._m else 1.0
            return found if self._reach is None else min(found, uneven_block_inflation(self._reach.last))
        if self._reach is not None:
            if method == "colouring":
                return up(int(self._reach.crowds.sum()) / self.n, 1)
            return int(np.sum(self._sizes(self._reach) ** 2)) / self.n * (1 + 2**-51)
        if method == "colouring":
            return float(self._m + 1)
        return float(self.n) if self._m else 1.0

    def effective_records(self) -> float:
        """Compute the effective sample size for bounds by relative entropy (Chernoff bounds).

        See `DependenceModel.effective_records` for the bound that holds with it.

        Returns
        -------
        float
            The ratio n / (m + 1): records whose positions are equal modulo m + 1 are independent of each other.
        """
        return self.n / min(self._m + 1, self.n)

    def _content(self) -> Mapping[str, Any]:
        if self._reach is not None:
            return {"n": self.n, "order": self._reach.order, "last": self._reach.last}
        return {"n": self.n, "m": self._m}

    def independent_groups(self) -> IntArray | None:
        """Return the sizes of the independent groups of records.

        Returns
        -------
        ndarray of int, or None
            Ones if m is 0, otherwise the sizes of groups of records that are far apart in time. None if all records are
            connected.
        """
        if not self._m:
            return np.ones(self.n, dtype=np.int64)
        sizes = None if self._reach is None else self._sizes(self._reach)
        return sizes if sizes is not None and len(sizes) > 1 else None

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Bound how many records change with each block when records are revealed block after block.

        See `DependenceModel.revealed_blocks` for the definition and for `missed`.

        Returns
        -------
        RevealedBlocks
            Attribute `changes` holds the numbers of records that change with a block, `counts` the number of such
            blocks. The blocks are stretches about as long as the range of the dependence. Each changes as many records
            after it.
        """
        if self._reach is not None:
            found = RevealedBlocks.of_reach(self._reach.last), RevealedBlocks.of_groups(self._sizes(self._reach))
            return min(found, key=lambda blocks: blocks.squares)
        return RevealedBlocks.of_series(self.n, min(self._m, self.n - 1))

    @staticmethod
    def _sizes(reach: Reach) -> IntArray:
        return np.bincount(reach.component).astype(np.int64)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic series of zeros and ones with this range of dependence.

        A record is 1 if the sum of the standard normal numbers in its window is positive, otherwise 0.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Value of each record, 0 or 1. With a range in steps, there is one normal number per step, and m + 1 of them
            in each window. With a range in time, there is one per record.
        """
        reach = self._reach
        if reach is None:
            sums = np.cumsum(np.r_[0.0, rng.standard_normal(self.n + self._m)])
            return (sums[self._m + 1 :] > sums[: self.n]).astype(np.int64)
        sums = np.cumsum(np.r_[0.0, rng.standard_normal(self.n)])
        found = np.empty(self.n, dtype=np.int64)
        found[reach.order] = sums[reach.last + 1] > sums[: self.n]
        return found

    def describe(self) -> str:
        """Describe the model in one line of text."""
        if self._reach is not None:
            return f"{self.n} records in time, at most {self._m + 1} in any window of {self._length}"
        return f"{self.n} records in a series, independent when more than {self._m} apart"

    def _remainder(self, known: BoolArray) -> MovingWindow:
        reach = Reach.even(self.n, self._m) if self._reach is None else self._reach
        return MovingWindow._reaching(reach.given(known))


def _even_window(n: int, reach: int) -> tuple[IntArray, IntArray]:
    """Return the first and the last record of the window around each."""
    at = np.arange(n)
    return np.maximum(at - reach, 0), np.minimum(at + reach, n - 1)


def _range_sums(epsilon: FloatArray, first: IntArray, last: IntArray) -> FloatArray:
    """Return the sum of the budgets from one place to another for each record, rounded up."""
    amounts, unit = charges(epsilon)
    sums = np.r_[0, np.cumsum(amounts)]
    found: FloatArray = up(((sums[last + 1] - sums[first]) * unit).astype(np.float64), 1)
    return np.where(first == last, epsilon, found)
