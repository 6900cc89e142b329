"""Claims about a mean of values whose groups are independent: tested by bets on group sums, or by each group's size.

`BlockBetTest` does so for a series whose alternating blocks are independent. Where normal limits were declared,
`GroupNormalTest` takes these wherever public numbers allow; they are approximate.

Public numbers choose the test of an end: the one with the better expected limit at the claim's edge and level. So both
are events that the history fixes. PROOFS.md of `thresholdout.limits`, "Bets on group sums" and "Own sizes".
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np

from thresholdout.data.values import ExactMean
from thresholdout.limits.bets import Sums, bet_lower
from thresholdout.limits.binomial import log_laplace_moment
from thresholdout.limits.group_sums import GroupSums, group_bet
from thresholdout.limits.normal_limits import NormalTest
from thresholdout.limits.own_sizes import own_sizes_lower
from thresholdout.mechanisms.base import ALIKE, Grouped
from thresholdout.mechanisms.claims.interval import UNITS, ClaimOutcome, Limit, MeanTest, Noise, Scales, TwoEnds, mirror
from thresholdout.mechanisms.claims.reading import grid_value

if TYPE_CHECKING:
    from thresholdout.limits.group_sums import BlockSums, GroupSizes
    from thresholdout.mechanisms.base import Blocks

__all__ = ["BlockBetTest", "GroupBetTest", "GroupNormalTest", "own_sizes"]

_LUCK: Final = 1.0  # standard deviations of the groups' squares, in a claim
_WIDER: Final = 1.7  # times the variance, after a claim that was too narrow
_ROUNDS: Final = 3  # of a fixed point: the noise's charge depends on the bet, and the bet on the charge
_NOTHING: Final = 1e-9  # ends below are 0
_FEW: Final = 20  # training groups, below which their correlation is no guide
_SPARE: Final = 0.02  # of a stated limit's level, for an exact one where normal ones are not allowed at its distance
_FAR: Final = 2.0  # times the distance of an end from the mean: stated normal limits are sought up to there
_ROOM: Final = 0.7  # times that distance, by which the run reaches beyond the end: else a surprise costs a wide limit
_NORMAL: Final = -1.0  # in place of a bet: the normal test
_CLEARLY: Final = 0.7  # of the distance that a normal law with correlation 1 gives: bets that reach it are taken


def own_sizes(steps: int, sizes: GroupSizes) -> Limit:
    """Return the limits from each group's own size; edges are of the mean rounded to the grid."""
    return lambda lo, level, scales: own_sizes_lower(
        (lo - 0.5) / steps, sizes, level, tuple(steps * scale for scale in scales), steps
    )


class GroupBetTest(TwoEnds):
    """Claims about a mean over groups of records.

    `values` are ``None`` for public numbers only. Without a `variance` values are 0 or 1, and the mean determines it;
    otherwise most records are expected to have the value `common`. `times` multiplies the variance.
    """

    _root: ClassVar[float] = 1.0  # power of the groups' wealth that is tested

    def __init__(
        self,
        steps: int,
        values: GroupSums | None,
        grouped: Grouped,
        variance: float | None,
        common: float,
        times: float = 1.0,
    ) -> None:
        self.steps = steps
        self._values = values
        self._grouped = grouped
        self._variance = variance
        self._common = common
        self._times = times
        self._limit = own_sizes(steps, grouped.sizes)
        self._placed: dict[tuple[float, float, Scales, bool], tuple[float, float]] = {}

    def wider(self) -> Self:
        """Return the same test for a larger variance."""
        return type(self)(self.steps, self._values, self._grouped, self._variance, self._common, _WIDER * self._times)

    def by_sizes(self, value: int) -> MeanTest:
        """Return the tests of claims by the groups' sizes alone."""
        return MeanTest(self.steps, value, self._limit)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the ends of the edges, each by the better test."""
        low = self._place(lo / self.steps, log_level, scales, upper=False)[0]
        return low, mirror(self._place(hi / self.steps, log_level, scales, upper=True)[0])

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the limits of both sides, rounded conservatively to the grid."""
        limits = [self._stated(log_level, expected, upper=upper) for upper in (False, True)]
        return math.floor(limits[0] * self.steps), self.steps - math.floor(limits[1] * self.steps)

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Test both ends; if one of them is not refuted, compare the mean with the edges."""
        assert self._values is not None
        edge, upper, lower = noise
        if self._wins(hi, log_level, scales, edge - upper, upper=True) and self._wins(
            lo, log_level, scales, edge - lower, upper=False
        ):
            return "confirmed"
        mean = float(self._values.mean())
        if hi < self.steps and mean + (upper - edge) / UNITS > hi / self.steps:
            return "above"
        return "below" if lo > 0 and mean + (edge - lower) / UNITS < lo / self.steps else "wide"

    def _place(self, mean: float, log_level: float, scales: Scales, *, upper: bool) -> tuple[float, float]:
        """Return the end of an interval with this edge, and the bet against it; 0 for the test by sizes.

        For an upper edge, both are those of the mirrored values.
        """
        key = mean, log_level, scales, upper
        if key not in self._placed:
            self._placed[key] = self._best(1.0 - mean if upper else mean, log_level, scales, upper, _LUCK)
        return self._placed[key]

    def _best(self, mean: float, log_level: float, scales: Scales, upper: bool, luck: float) -> tuple[float, float]:
        """Return the better end of both tests, and the bet; 0 for the test by sizes."""
        sizes, n = self._grouped.sizes, self._grouped.sizes.n
        if mean <= _NOTHING:
            return 0.0, 0.0
        inside = min(mean, 1.0 - 0.5 / n)
        end, bet, charge = 0.0, 0.0, 0.0
        for _ in range(_ROUNDS if scales else 1):
            end, bet = self._bet(inside, charge - log_level, upper, luck, scales)
            charge = self._charge(bet, scales)
        reach = math.sqrt(-2.0 * log_level * inside * (1.0 - inside) * sizes.squares) / n
        if end > 0.0 and inside - end < _CLEARLY * reach:
            return end, bet
        other = self._limit(round(mean * self.steps), log_level, scales)
        return (end, bet) if end > other else (other, 0.0)

    def _bet(
        self,
        mean: float,
        needed: float,
        upper: bool,
        luck: float,
        scales: Scales = (),
        correlation: float | None = None,
    ) -> tuple[float, float]:
        grouped = self._grouped
        if correlation is None:
            correlation = ALIKE if grouped.correlation is None else grouped.correlation
        most = 0.5 / (grouped.sizes.n * max(scales)) if scales else math.inf
        common, variance = 1.0 - self._common if upper else self._common, self._variance
        if variance is None:
            common, variance = mean, mean * (1.0 - mean)
        return group_bet(
            mean,
            variance,
            common,
            correlation,
            grouped.sizes,
            needed / self._root,
            most,
            luck,
            self._times,
            grouped.training_groups or math.inf,
        )

    def _wins(self, edge: int, log_level: float, scales: Scales, noise: int, *, upper: bool) -> bool:
        """Whether the test against means beyond an end passes."""
        assert self._values is not None
        end, bet = self._place(edge / self.steps, log_level, scales, upper=upper)
        if end <= 0.0:
            return True  # nothing is claimed
        if bet == 0.0:
            value = grid_value(_exact(self._values), self.steps)
            outside = value - edge if upper else edge - value
            return outside * UNITS <= noise * self.steps
        moved = self._root * bet * self._values.size * (noise / UNITS)
        # E W e^moved <= e^charge, so the level holds for the moved wealth; 1e-9 covers the rounding of the sum
        needed = -log_level + self._charge(bet, scales) + 1e-9 * (1.0 + abs(moved))
        return self._values.wins(bet, end, needed - moved, mirrored=upper)

    def _stated(self, log_level: float, expected: float, *, upper: bool) -> float:
        """Return a limit that is stated directly, by the test that is better where the mean is as expected."""
        mean = 1.0 - expected if upper else expected
        return self._exactly(mean, log_level, upper, *self._best(mean, log_level, (), upper, 0.0))

    def _exactly(self, mean: float, log_level: float, upper: bool, end: float, bet: float) -> float:
        """Return the limit of an exact test whose expected place is an end; a bet of 0 stands for own sizes."""
        if self._values is None:
            return end
        if bet == 0.0:
            value = grid_value(_exact(self._values), self.steps)
            return self._limit(self.steps - value if upper else value, log_level, ())
        few = self._grouped.correlation is None or self._grouped.training_groups < _FEW
        if not few:
            return bet_lower(self._values, bet, log_level, mirrored=upper)
        found = (self._bet(mean, -log_level, upper, 0.0, correlation=rho)[1] for rho in self._correlations())
        bets = sorted({one for one in found if one > 0.0} or {bet})
        return bet_lower(_Mixture(self._values, tuple(bets)), bets[0], log_level, mirrored=upper)

    def _correlations(self) -> list[float]:
        """Return correlations from 1 to 0 whose bets are about a factor 2 apart."""
        largest = self._grouped.sizes.largest
        steps = max(1, math.ceil(0.5 * math.log2(max(2, largest))))
        inflations = [largest ** (step / steps) for step in range(steps + 1)]
        return [(inflation - 1.0) / max(1, largest - 1) for inflation in inflations]

    def _charge(self, bet: float, scales: Scales) -> float:
        """Return the noise's charge on the logarithm of the required wealth."""
        slope = self._root * bet * self._grouped.sizes.n
        return sum(log_laplace_moment(slope, scale) for scale in scales)


class BlockBetTest(GroupBetTest):
    """Claims about a mean over a series, of which every second block is independent of the others like it.

    Either the root of the wealth of bets on block sums tests an end, or `limit`, which does not use the values: public
    numbers choose. PROOFS.md of `thresholdout.limits`, "Alternating blocks". Other parameters as for `GroupBetTest`.
    """

    _root: ClassVar[float] = 0.5

    def __init__(
        self,
        steps: int,
        values: BlockSums | None,
        blocks: Blocks,
        limit: Limit,
        variance: float | None,
        common: float,
        times: float = 1.0,
    ) -> None:
        training = blocks.training / blocks.inflation
        grouped = Grouped(blocks.index, blocks.sizes, blocks.correlation, training, blocks.training_blocks)
        super().__init__(steps, values, grouped, variance, common, times)
        self._blocks, self._limit, self._sums = blocks, limit, values

    def wider(self) -> Self:
        """Return the same test for a larger variance."""
        times = _WIDER * self._times
        return type(self)(self.steps, self._sums, self._blocks, self._limit, self._variance, self._common, times)


class GroupNormalTest(GroupBetTest):
    """Claims that are tested by normal limits where public numbers allow, and as in `GroupBetTest` elsewhere.

    Edges have no noise. APPROXIMATE: PROOFS.md of `thresholdout.limits`, "Normal limits".
    """

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Test both ends; see `GroupBetTest.outcome`."""
        return super().outcome(lo, hi, log_level, (), (0, 0, 0))

    def _normal(self, upper: bool) -> NormalTest | None:
        """Return the normal test of one side; ``None`` where no single training values are known."""
        trained = self._grouped.trained
        if trained is None:
            return None
        return NormalTest(self._grouped.sizes, trained.mirrored() if upper else trained)

    def _seen(self, upper: bool) -> GroupSums:
        assert self._values is not None
        return self._values.mirrored() if upper else self._values

    def _best(self, mean: float, log_level: float, scales: Scales, upper: bool, luck: float) -> tuple[float, float]:
        """Return the end of the chosen test, and the bet."""
        test = self._normal(upper)
        if test is not None and mean > _NOTHING and (nats := test.nats(log_level)) < math.inf:
            end, _ = self._bet(min(mean, 1.0 - 0.5 / self._grouped.sizes.n), nats, upper, luck)
            if end > 0.0 and test.allowed(np.array([end]), log_level)[0]:
                return end, _NORMAL
        return super()._best(mean, log_level, scales, upper, luck)

    def _wins(self, edge: int, log_level: float, scales: Scales, noise: int, *, upper: bool) -> bool:
        """Whether the test against means beyond an end passes."""
        end, bet = self._place(edge / self.steps, log_level, scales, upper=upper)
        if bet != _NORMAL:
            return super()._wins(edge, log_level, scales, noise, upper=upper)
        test = self._normal(upper)
        assert test is not None
        return test.refutes(self._seen(upper), end, log_level)

    def _stated(self, log_level: float, expected: float, *, upper: bool) -> float:
        """Return the largest refuted edge of a run of edges that allow normal limits; below the run, an exact limit.

        The run is fixed before the records are evaluated. The limit is above the estimand only where the smallest edge
        above the estimand is refuted. A small share of the level is for the exact limit.
        """
        mean, test = 1.0 - expected if upper else expected, self._normal(upper)
        level = log_level + math.log1p(-_SPARE)
        end, bet = self._best(mean, level, (), upper, 0.0)
        first, last = self._run(test, mean, end, level) if test is not None and bet == _NORMAL else (1, 0)
        if test is None or first > last or first / self.steps > end - _ROOM * (mean - end):
            return self._exactly(mean, log_level, upper, *super()._best(mean, log_level, (), upper, 0.0))
        if self._values is None:
            return end
        values = self._seen(upper)
        if not test.refutes(values, first / self.steps, level):
            spare = log_level + math.log(_SPARE)
            return self._exactly(mean, spare, upper, *super()._best(mean, spare, (), upper, 0.0))
        while first < last:  # edges that are refuted are followed by edges that are not
            middle = (first + last + 1) // 2
            if test.refutes(values, middle / self.steps, level):
                first = middle
            else:
                last = middle - 1
        return first / self.steps

    def _run(self, test: NormalTest, mean: float, end: float, log_level: float) -> tuple[int, int]:
        """Return the first and the last of the edges around an end that follow each other and allow normal limits."""
        reach, place = _FAR * (mean - end), math.floor(end * self.steps)
        first = max(1, math.floor((end - reach) * self.steps))
        last = min(self.steps - 1, math.ceil((mean + reach) * self.steps))
        refused = np.flatnonzero(~test.allowed(np.arange(first, last + 1) / self.steps, log_level)) + first
        below, above = refused[refused <= place], refused[refused > place]
        return int(below.max(initial=first - 1)) + 1, int(above.min(initial=last + 1)) - 1


class _Mixture(Sums):
    """The mean wealth of several bets, with one of them named; all have the same weight."""

    __slots__ = ("_bets", "_values")

    def __init__(self, values: GroupSums, bets: tuple[float, ...]) -> None:
        super().__init__(values.size, values.bits, values.total)
        self._values, self._bets = values, bets

    def log_wealth(self, bet: float, mean: float, *, mirrored: bool = False) -> float:
        """Return the logarithm of the mean wealth; a bet that could lose everything counts as lost."""
        logs = [self._values.log_wealth(one, mean, mirrored=mirrored) for one in self._bets]
        top = max(logs)
        if top == -math.inf:
            return top
        return top + math.log(math.fsum(math.exp(one - top) for one in logs) / len(logs)) - 1e-9


def _exact(values: Sums) -> ExactMean:
    return ExactMean(values.total, values.size, values.bits)
