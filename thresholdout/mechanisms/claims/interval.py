"""A claim about one mean: its test, and the interval that it stands for.

A claim has edges lo and hi, in steps of a grid from 0 to ``steps`` on which the holdout's value is expected, and stands
for an interval of estimands. Its test has two halves, each with its own noise, and the edges share theirs (delta). For
a count or a mean K, see `thresholdout.limits.binomial`:

    K + gamma > hi + delta:    *above*
    K - gamma' < lo - delta:   *below* (tested only if not above)
    otherwise:                 *confirmed*

If the estimand is above the interval, the claim is confirmed only if ``K <= hi + (delta - gamma)``; the interval is
such that this has at most the probability w, and the same below. A false claim is false on one known side, so both
sides have w. For values of small variance, both halves are bets against the ends of the interval instead, see
`thresholdout.limits.bets`: with an estimand above the upper end, the bet against it has to win 1/w.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

from graphs.numerics.rounding import UNIT
from thresholdout.limits.bets import bet_lower, placed_bet, wins
from thresholdout.limits.binomial import (
    log_laplace_moment,
    noisy_binomial_lower,
    noisy_entropy_lower,
    noisy_hoeffding_lower,
)
from thresholdout.limits.ordered_bets import ordered_lower

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from thresholdout.limits.bets import Sums

__all__ = [
    "UNITS",
    "BetTest",
    "Claim",
    "ClaimOutcome",
    "Limit",
    "MeanTest",
    "Noise",
    "Scales",
    "TwoEnds",
    "better",
    "entropy",
    "hoeffding",
    "mirror",
    "ones",
]

UNITS: Final = 1 << 40
"""Units of noise in the range of a query."""

ClaimOutcome = Literal["confirmed", "above", "below", "wide"]

Noise: TypeAlias = "tuple[int, int, int]"
"""Noise of a test in units of the range: delta of the edges, gamma of the upper half, gamma' of the lower one."""

Scales: TypeAlias = "tuple[float, ...]"
"""Scales of the noises in one edge, in units of the range; empty without noise."""

Limit: TypeAlias = "Callable[[int, float, Scales], float]"
"""From a lower edge in steps, the logarithm of a level and the scales of the noise to a lower limit."""


# Standard deviations of the variance. With 3, and claims that reach a tenth farther than predictions say, fewer claims
# fail, but first comparisons are 7 % wider, the first 20 by 4 %, 100 by nothing (simulated; 3 and 8 % of them differ).
_LUCK: Final = 2.0
_WIDER: Final = 1.7  # times the variance, after a claim that was too narrow
_ROUNDS: Final = 3  # of a fixed point: the noise's charge depends on the bet, and the bet on the charge
_NOTHING: Final = 1e-9  # ends below are 0


class Claim(ABC):
    """The tests of claims about one query, with edges from 0 to `steps` and `others` outcomes besides *confirmed*."""

    steps: int
    others: int = 2

    @abstractmethod
    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the interval of a claim, in units of the range: public numbers only."""

    @abstractmethod
    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Test a claim, with secret numbers."""

    def wider(self) -> Self:
        """Return the tests after a claim that was too narrow."""
        return self


class TwoEnds(Claim):
    """Claims whose test uses more than one number, so that a list states both ends of an interval."""

    others: int = 3

    @abstractmethod
    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return limits from the records at a one-sided level, in steps; `expected` is public, and fixed before."""


class MeanTest(Claim):
    """Claims about a count or a mean K in steps; `lower` has the limit of a lower edge, and the upper is its mirror."""

    def __init__(self, steps: int, value: int, lower: Limit) -> None:
        self.steps = steps
        self._value = value
        self._lower = lower

    @property
    def value(self) -> int:
        """K, in steps. Secret."""
        return self._value

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the limits of both edges."""
        low = 0.0 if lo <= 0 else self._lower(lo, log_level, scales)
        high = 0.0 if hi >= self.steps else self._lower(self.steps - hi, log_level, scales)
        return low, mirror(high)

    def stated(self, log_level: float) -> tuple[int, int, tuple[float, float]]:
        """Return K twice, and the limits from it."""
        return self._value, self._value, self.interval(self._value, self._value, log_level, ())

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Compare K with both edges, exactly, in integers; an edge that is an end of the range claims nothing."""
        edge, upper, lower = noise
        if hi < self.steps and (self._value - hi) * UNITS > (edge - upper) * self.steps:
            return "above"
        below = lo > 0 and (lo - self._value) * UNITS > (edge - lower) * self.steps
        return "below" if below else "confirmed"


class BetTest(TwoEnds):
    """Claims about a mean of independent values, tested by constant bets against both ends.

    A claim that is not confirmed although the mean is inside, by its noisy comparison, is *wide*: the observed variance
    can be larger than expected. So bets are placed for one that is two standard deviations larger, for values that are
    `common`, but for a few that are 0 or 1. `times` multiplies the variance, more after each claim that was too narrow.
    `ordered` are values of one law in a random order: stated limits are then those of predictable bets.
    """

    def __init__(
        self,
        steps: int,
        values: NDArray[np.float64] | Sums,
        variance: float,
        common: float = 0.5,
        times: float = 1.0,
        ordered: NDArray[np.float64] | None = None,
    ) -> None:
        self._ordered = ordered
        self.steps = steps
        self._values = values
        self._variance = variance
        self._common = common
        self._times = times

    def in_order(self, ordered: NDArray[np.float64]) -> BetTest:
        """Return the same test for values of one law, with these in a random order."""
        return BetTest(self.steps, self._values, self._variance, self._common, self._times, ordered)

    def wider(self) -> BetTest:
        """Return the same test for a larger variance."""
        return BetTest(self.steps, self._values, self._variance, self._common, _WIDER * self._times)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the edges, less and plus the expected radius of a good bet."""
        low = self._place(lo / self.steps, log_level, scales)[0]
        return low, mirror(self._place(hi / self.steps, log_level, scales, upper=True)[0])

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the limits of two bets, rounded conservatively to the grid."""
        limits = []
        if self._ordered is not None:
            limits = [
                ordered_lower(self._ordered, expected, self._variance, log_level, mirrored=upper)
                for upper in (False, True)
            ]
            return math.floor(limits[0] * self.steps), self.steps - math.floor(limits[1] * self.steps)
        for upper in (False, True):
            _, bet = self._place(expected, log_level, (), upper=upper)
            limits.append(bet_lower(self._values, bet, log_level, mirrored=upper) if bet > 0.0 else 0.0)
        return math.floor(limits[0] * self.steps), self.steps - math.floor(limits[1] * self.steps)

    def outcome(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> ClaimOutcome:
        """Bet against both ends; if one of the bets is lost, compare the mean with the edges."""
        edge, upper, lower = noise
        if self._wins(hi, log_level, scales, edge - upper, upper=True) and self._wins(
            lo, log_level, scales, edge - lower
        ):
            return "confirmed"
        mean = float(self._values.mean())
        if hi < self.steps and mean + (upper - edge) / UNITS > hi / self.steps:
            return "above"
        return "below" if lo > 0 and mean + (edge - lower) / UNITS < lo / self.steps else "wide"

    def _place(self, mean: float, log_level: float, scales: Scales, *, upper: bool = False) -> tuple[float, float]:
        """Return the end of an interval with this edge, and the bet against it; 0 where nothing is claimed.

        For an upper edge, both are those of the mirrored values.
        """
        mean, common = (1.0 - mean, 1.0 - self._common) if upper else (mean, self._common)
        n = self._values.size
        if mean <= _NOTHING:
            return 0.0, 0.0
        mean = min(mean, 1.0 - 0.5 / n)
        seen = self._times * self._variance + _LUCK * max(mean, 1.0 - mean) * math.sqrt(self._variance / n)
        end, bet, charge = 0.0, 0.0, 0.0
        for _ in range(_ROUNDS if scales else 1):
            end, bet = placed_bet(mean, seen, common, n, charge - log_level, self._most(scales))
            charge = self._charge(bet, scales)
        return end, bet

    def _wins(self, edge: int, log_level: float, scales: Scales, noise: int, *, upper: bool = False) -> bool:
        """Whether a bet against means beyond an end wins one over the level."""
        end, bet = self._place(edge / self.steps, log_level, scales, upper=upper)
        if end <= 0.0:
            return True  # nothing is claimed
        slope = bet * self._values.size
        moved = slope * (noise / UNITS)
        # E W e^moved <= e^charge, so the level holds for the moved wealth; 1e-9 covers the rounding of the sum
        needed = -log_level + self._charge(bet, scales) + 1e-9 * (1.0 + abs(moved)) - moved
        return wins(self._values, bet, end, needed, mirrored=upper)

    def _charge(self, bet: float, scales: Scales) -> float:
        """Return the noise's charge on the logarithm of the required wealth."""
        return sum(log_laplace_moment(bet * self._values.size, scale) for scale in scales)

    def _most(self, scales: Scales) -> float:
        """Return the largest bet for which the moment of the noise is small."""
        return 0.5 / (self._values.size * max(scales)) if scales else math.inf


def ones(n: int) -> Limit:
    """Return the limits for n independent records that are 0 or 1, of any laws; edges are counts."""
    return lambda lo, level, scales: noisy_binomial_lower(lo, n, level, tuple(n * scale for scale in scales))


def entropy(steps: int, effective: float) -> Limit:
    """Return the limits for a mean with N effective records; edges are of the mean rounded to the grid."""
    return lambda lo, level, scales: noisy_entropy_lower(
        (lo - 0.5) / steps, effective, level, tuple(steps * scale for scale in scales), steps
    )


def better(first: Limit, second: Limit) -> Limit:
    """Return the larger of two lower limits: each is valid for the same event, so their maximum is."""
    return lambda lo, level, scales: max(first(lo, level, scales), second(lo, level, scales))


def hoeffding(steps: int, records: float) -> Limit:
    """Return the limits for a mean with a known variance inflation; edges as in `entropy`."""
    return lambda lo, level, scales: noisy_hoeffding_lower(
        (lo - 0.5) / steps, records, level, tuple(steps * scale for scale in scales), steps
    )


def mirror(low: float) -> float:
    """Return ``1 - low``, rounded up."""
    return 1.0 if low <= 0.0 else min(1.0, 1.0 - low + UNIT)
