"""The holdout's value of a query in the form of its claims: a count, or a mean on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.data.parts.totals import Joint, Totals
from thresholdout.data.values import ExactMean, UnitRecords, UnitSums, unit_records
from thresholdout.errors import InputError
from thresholdout.limits.bets import ManyValues, Moments, Sums, ThreeValues
from thresholdout.limits.group_sums import BlockSums, GroupSums
from thresholdout.mechanisms.base import Blocks, Grouped, Known, PairedCounts
from thresholdout.noise.sources import NoiseSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.mechanisms.claims.evidence import Evidence

__all__ = [
    "COARSE",
    "FINE",
    "Reading",
    "bet_on",
    "grid_steps",
    "grid_value",
    "random_order",
    "read_bets",
    "read_groups",
    "read_sums",
    "read_totals",
    "read_values",
    "variance_of",
]

FINE: Final = 64
"""Steps in a standard deviation, at least."""

COARSE: Final = 8
"""The same where steps are coded: half of one is lost at each end, 2 % of an interval, for half as many nats."""

_MANY: Final = 1 << 13
"""Number of values up to which logarithms of all take less time than exact fractions of their sums."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The holdout's values of one query. Secret: the representation shows only their public description.

    `values` are on a grid; or their sums for bets, or their mean where that is enough; counts for a win rate; the
    evidence of a statistic that is not a mean. `known` is their public description.
    """

    values: UnitRecords | Sums | ExactMean | PairedCounts | tuple[Evidence, ...] = field(repr=False)
    known: Known

    @property
    def records(self) -> UnitRecords:
        """The values of a query about a mean."""
        if isinstance(self.values, ManyValues):
            return UnitRecords(self.values.values, self.values.bits)
        assert isinstance(self.values, UnitRecords)
        return self.values

    @property
    def mean(self) -> ExactMean:
        """The mean of a query about a mean."""
        if isinstance(self.values, Sums):
            return ExactMean(self.values.total, self.values.size, self.values.bits)
        return self.values if isinstance(self.values, ExactMean) else self.records.exact_mean()

    @property
    def bet_on(self) -> NDArray[np.float64] | Sums:
        """The values on which bets are placed, or their sums."""
        return self.values if isinstance(self.values, Sums) else self.records.unit()

    @property
    def group_sums(self) -> GroupSums:
        """The sums by group of a query about a mean over groups."""
        assert isinstance(self.values, GroupSums)
        return self.values

    def on_grid(self, steps: int) -> int:
        """Return the mean in steps of a grid: the nearest, upwards from the middle."""
        return grid_value(self.mean, steps)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence about a statistic that is not a mean."""
        assert isinstance(self.values, tuple)
        return self.values

    @property
    def paired_counts(self) -> PairedCounts:
        """The counts of a query about a win rate."""
        assert isinstance(self.values, PairedCounts)
        return self.values

    def signs(self, noise: NoiseSource) -> PairedCounts:
        """Count wins and losses; a difference between them becomes one of them, or a tie, with that expectation."""
        if isinstance(self.values, ThreeValues):
            losses, ties, wins = self.values.counts
            return PairedCounts(wins, losses, losses + ties + wins)
        unit = self.records.unit()
        shown = UnitRecords(np.abs(2.0 * unit - 1.0), self.records.bits).coins(noise)
        wins = int(np.count_nonzero(shown & (unit > 0.5)))
        return PairedCounts(wins, int(np.count_nonzero(shown)) - wins, unit.size)

    def count(self, noise: NoiseSource) -> int:
        """Return the number of ones; other values become coins with that expectation.

        A coin for each record makes of any values in [0, 1] records that are 0 or 1, independent where they were, with
        the same expectations; so limits for such records stay valid for any values.
        """
        if isinstance(self.values, ExactMean):  # of zeros and ones, see `read_sums`
            return self.values.total >> self.values.bits
        count = self.records.ones()
        return self.records.tossed(noise).total if count is None else count


def read_values(values: object, n: int, bounds: tuple[float, float], argument: str, known: Known) -> Reading:
    """Check per-record values and keep them; see `thresholdout.data.values.unit_records`."""
    return Reading(unit_records(values, n, bounds, argument), known)


def read_sums(values: object, n: int, bounds: tuple[float, float], argument: str, known: Known) -> Reading:
    """Check per-record values and keep their mean; the values too where they should be 0 or 1 and are not."""
    sums = UnitSums(values, n, bounds, argument)
    enough = sums.ends or not known.binary
    return Reading(sums.mean, known) if enough else read_values(values, n, bounds, argument, known)


def read_bets(values: object, n: int, bounds: tuple[float, float], argument: str, known: Known) -> Reading:
    """Check per-record values and keep them for bets on each; of many, their sums mostly decide which bets win."""
    if n <= _MANY:
        return read_values(values, n, bounds, argument, known)
    sums = UnitSums(values, n, bounds, argument, "near")
    mean = sums.mean
    return Reading(ManyValues(n, mean.bits, mean.total, sums.squares, lambda: sums.records().unit()), known)


def read_groups(
    values: object, n: int, bounds: tuple[float, float], argument: str, known: Known, groups: Grouped | Blocks
) -> Reading:
    """Check per-record values and keep their sums by group or block, which floats add up without an error."""
    records = unit_records(values, n, bounds, argument)
    count = groups.sizes.groups
    sums = np.bincount(groups.index, weights=records.unit(), minlength=count).astype(np.float64, copy=False)
    sizes = np.bincount(groups.index, minlength=count).astype(np.float64) if groups.counts is None else groups.counts
    return Reading((BlockSums if isinstance(groups, Blocks) else GroupSums)(sums, sizes, records.bits), known)


def read_totals(totals: Totals | Joint, known: Known, bets: bool) -> Reading:
    """Return the reading of values of which only totals are known, with all numbers that a claim needs."""
    found = totals.difference if isinstance(totals, Joint) else totals
    if known.binary and not found.ends:
        raise InputError("values", "values in between", "at the ends of the range", "Pass binary=False for others.")
    if not bets:
        return Reading(found.mean, known)
    if isinstance(totals, Joint):
        return Reading(bet_on(totals), known)
    return Reading(Moments(found.n, found.bits, found.mean.total, found.sum_of_squares), known)


def bet_on(joint: Joint) -> Sums:
    """Return the numbers of two models' difference for bets: counts of its three values, or its moments."""
    found, more = joint.difference, joint.more
    same = found.n - more - joint.less
    moments = Moments(found.n, found.bits, found.mean.total, found.sum_of_squares)
    # values 0 and 1 are ends of the difference's range where the metric's own is (0, 1), and of no wider one
    whole = (same + 2 * more) << (found.bits - 1), (same + 4 * more) << (2 * found.bits - 2)
    three = joint.right_or_wrong and whole == (found.mean.total, found.sum_of_squares)
    return ThreeValues(joint.less, same, more) if three else moments


def grid_value(total: ExactMean, steps: int) -> int:
    """Return the mean in steps of a grid, rounded to the nearest, upwards from the middle."""
    whole = total.n << total.bits
    return (2 * total.total * steps + whole) // (2 * whole)


def grid_steps(deviation: float, fine: int = FINE) -> int:
    """Return a power of two, so that a standard deviation has at least so many steps."""
    return 1 << max(1, math.ceil(math.log2(fine / max(deviation, 1e-9))))  # at most 2**36 steps


def variance_of(mean: float, known: Known, n: float) -> float:
    """Return the variance of a value, at least that of a coin that showed one in n."""
    floor = 1.0 / max(n, 2.0)
    coin = mean * (1.0 - mean)
    return max(floor * (1.0 - floor), coin if known.variance is None else min(known.variance, coin + floor))


def random_order(size: int, noise: NoiseSource) -> NDArray[np.intp]:
    """Draw an order, each with the same probability: words that tie are drawn again."""
    while True:
        words = noise.uniform(64, size)
        order = np.argsort(words)
        if not bool(np.any(words[order[1:]] == words[order[:-1]])):
            return np.asarray(order)
