"""Public numbers of a guard's groups: the group of each record, and the correlation of training values in them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphs.numerics.arguments import as_real
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.limits.normal_limits import TrainingGroups
from thresholdout.mechanisms.base import ALIKE, Blocks, Grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel, Groups, MovingWindow

__all__ = [
    "BlockedRecords",
    "GroupedRecords",
    "bets_win",
    "blocked_records",
    "expected_groups",
    "grouped_records",
    "known_of_sums",
]


_CLEARLY: Final = 0.85  # of the variance that other limits have: bets on blocks are taken where they win by 8 %


def grouped_records(model: DependenceModel, train: Any) -> GroupedRecords | None:
    """Return the groups of both parts; ``None`` where the holdout has none, or groups of single records."""
    from graphs import Groups

    if not isinstance(model, Groups) or model.effective_records() == model.n:
        return None
    return GroupedRecords(model, None if train is None else np.asarray(train))


class GroupedRecords:
    """The groups of both parts of a guard: a model of the holdout's, and the number of each training record's group."""

    def __init__(self, model: Groups, train: NDArray[np.int64] | None) -> None:
        self._index = model.groups
        self._holdout = np.bincount(model.groups).astype(np.float64)
        self._sizes = GroupSizes.of(np.asarray(model.independent_groups()))
        self._train = None if train is None else np.unique(train, return_inverse=True)[1]
        self._counts = None if self._train is None else np.bincount(self._train).astype(np.float64)

    @property
    def holdout_sizes(self) -> NDArray[np.float64]:
        """Sizes of the holdout's groups, in the order of their sums."""
        return self._holdout

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums by group of values of the holdout's records. Secret."""
        return np.asarray(np.bincount(self._index, weights=values))

    def known(
        self,
        values: object,
        bounds: tuple[float, float],
        tested: NDArray[np.intp] | None = None,
        among: NDArray[np.bool_] | None = None,
        differences: bool = False,
    ) -> Grouped:
        """Return the public numbers of a query's groups; for differences, of training records with a count."""
        index, sizes, holdout = self._index, self._sizes, self._holdout
        if among is not None:
            index = np.unique(index[among], return_inverse=True)[1].astype(np.int64)
            counted = np.bincount(index)
            sizes, holdout = GroupSizes.of(counted), counted.astype(np.float64)
        if self._train is None or self._counts is None:
            return expected_groups(index, sizes, 0, holdout)
        if (
            as_real(values) is not None
            or values is None
            or (tested is None and np.asarray(values).size != self._train.size)
        ):
            return expected_groups(index, sizes, self._counts.size, holdout)
        train, counts = self._train, self._counts
        if tested is not None:
            train = train[tested]
            counts = np.bincount(train, minlength=counts.size).astype(np.float64)
        units = np.asarray(values, dtype=np.float64)
        if bounds != (0.0, 1.0):
            units = (units - bounds[0]) / (bounds[1] - bounds[0])
        if differences:
            there = units != 0.5
            train, units = train[there], units[there]
            counts = np.bincount(train, minlength=counts.size).astype(np.float64)
        return Grouped(index, sizes, *_alike(units, train, counts), holdout)


def bets_win(blocks: float, others: float) -> bool:
    """Whether bets on blocks win clearly, from the variances of a mean of blocks and of other limits."""
    return 2.0 * blocks <= _CLEARLY * others  # the root of the wealth costs a factor 2 of the variance


def blocked_records(model: DependenceModel) -> BlockedRecords | None:
    """Return the alternating blocks of a series with a window; ``None`` for other records."""
    from graphs import Independent

    if isinstance(model, Independent):
        return None  # without the modules of other models
    from graphs import MovingWindow

    return BlockedRecords(model) if type(model) is MovingWindow and model.m > 0 else None


class BlockedRecords:
    """The alternating blocks of a guard's holdout, whose records have a moving window."""

    def __init__(self, model: MovingWindow) -> None:
        self._index = model.alternating_blocks()
        self._counts = np.bincount(self._index).astype(np.float64)
        self._sizes = GroupSizes.of(np.bincount(self._index))
        self._length = max(1, round(model.n / self._counts.size))
        self._inflation = model.n / model.effective_records()  # of the limits that do not use the values

    def known(
        self, values: object, bounds: tuple[float, float], tested: NDArray[np.intp] | None = None
    ) -> Blocks | None:
        """Return the public numbers of the blocks; ``None`` where training values do not show that bets on them win.

        The training part is taken to be in the order of the series. All records on which a record may depend are in its
        block and the two neighbours. So the products of their deviations estimate the variance of a mean.
        """
        if as_real(values) is not None or values is None:
            return None
        units = np.asarray(values, dtype=np.float64)
        if tested is not None:
            units = units[np.argsort(tested, kind="stable")]
        if bounds != (0.0, 1.0):
            units = (units - bounds[0]) / (bounds[1] - bounds[0])
        starts = np.arange(0, units.size, self._length)
        if starts.size < 2:
            return None
        sums, ends = np.add.reduceat(units, starts), np.append(starts[1:], units.size)
        counts, mean = (ends - starts).astype(np.float64), float(units.mean())
        correlation = _correlated(float(units.size), mean, float(units @ units), sums, counts)[0]
        if correlation is None:
            return None
        off, within = sums - counts * mean, float(units @ units) - units.size * mean * mean
        coins = units.size * mean * (1.0 - mean)
        if not bets_win(within * (1.0 + (self._length - 1.0) * correlation), coins * self._inflation):
            return None
        joint = float(off @ off) + 2.0 * float(off[1:] @ off[:-1])
        inflation = min(max(1.0, joint / within), self._inflation) if within > 0.0 else 1.0
        return Blocks(
            self._index, self._counts, self._sizes, correlation, float(units.size), inflation, float(starts.size)
        )


def expected_groups(
    index: NDArray[np.int64], sizes: GroupSizes, training_groups: int, holdout: NDArray[np.float64] | None = None
) -> Grouped:
    """Return the public numbers of groups without single training values."""
    training = sizes.effective(ALIKE) * training_groups / sizes.groups
    return Grouped(index, sizes, None, training, float(training_groups), counts=holdout)


def known_of_sums(
    sizes: GroupSizes, n: int, mean: float, square: float, sums: NDArray[np.float64], counts: NDArray[np.float64]
) -> Grouped:
    """Return the public numbers of groups of which no record is in memory."""
    found = _correlated(float(n), mean, square, sums, counts)
    return Grouped(np.zeros(0, dtype=np.int64), sizes, *found, TrainingGroups(sums, counts))


def _alike(
    values: NDArray[np.float64], groups: NDArray[Any], counts: NDArray[np.float64]
) -> tuple[float | None, float, float, TrainingGroups | None]:
    """Return the correlation inside groups, the effective numbers of records and of groups, and the groups' sums."""
    if values.size == 0:
        return None, 1.0, 0.0, None
    sums = np.asarray(np.bincount(groups, weights=values, minlength=counts.size), dtype=np.float64)
    found = _correlated(float(values.size), float(values.mean()), float(values @ values), sums, counts)
    return *found, TrainingGroups(sums, counts)


def _total(squares: NDArray[np.float64]) -> float:
    """Return the sum of numbers that are not negative, the same in every order.

    Multiples of a power of two below the largest number are added up as integers, and their rests as smaller ones.
    """
    exponent = max(-900, math.frexp(float(squares.max()))[1])
    bits = 62 - squares.size.bit_length()
    scaled = squares * math.ldexp(1.0, bits - exponent)
    whole = scaled.astype(np.int64)
    scaled -= whole
    scaled *= 1 << bits
    total = (int(whole.sum()) << bits) + int(scaled.astype(np.int64).sum())
    shift = 2 * bits - exponent
    return total / (1 << shift) if shift >= 0 else float(total << -shift)


def _correlated(
    n: float, mean: float, square: float, sums: NDArray[np.float64], counts: NDArray[np.float64]
) -> tuple[float | None, float, float]:
    """Return the first three results of `_alike`, for any order of the groups.

    The squared deviation of a group's sum has the expectation ``s v (1 + (s - 1) rho)``. All pairs of a group count
    together, so that the variance of a mean over such groups comes out right even if values depend on their sizes.
    """
    deviations = sums - counts * mean
    within, pairs = square - n * mean * mean, float(counts @ counts) - n
    number = n * n / float(counts @ counts)
    if pairs <= 0.0 or not within > 0.0:  # also where a value is no number, which is refused later
        return (0.0 if pairs <= 0.0 else None), n, number
    correlation = min(1.0, max(0.0, (_total(deviations * deviations) - within) * n / (pairs * within)))
    return correlation, n * n / (n + correlation * pairs), number
