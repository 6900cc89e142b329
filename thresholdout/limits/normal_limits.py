"""Normal limits for means of independent groups: wealth of bets on group sums, the normal threshold. APPROXIMATE.

Groups have the sizes s_g and ``y_g = sum_{i in g} (x_i - m)``. The exact test of means of at most m requires
``ln(1/w)`` nats of a bet that was fixed before. This test takes the best bet after the fact, and requires less,

    max over 0 <= L <= Lmax of sum_g ln(1 + L y_g)  >=  (K/2) ln(1 + t^2/(K - 1)),    sum_g y_g > 0,

with t Student's quantile at level w with K - 1 degrees of freedom, ``K = (sum s_g^2)^2 / sum s_g^4``. Lmax is one over
``max(min(S m, 1.5 d), S m/b)``: d is the largest loss ``-y_g`` of a holdout or training group, or the largest gain
above the training part's mean, and b is 0.7 times the groups of both parts over those that are tested. Lmax falls as m
rises, so the refuted means are those up to a limit. That is the empirical likelihood ratio [O90] with a limited bet and
Student's threshold. Its level tends to w with many groups of one law, and no theorem bounds it for a finite number.
`NormalTest.allowed` decides by public numbers alone. PROOFS.md of this package, "Normal limits", states the proved
part; benchmarks/normal_limits.py measures single tests.

References
----------
[O90] A. B. Owen, "Empirical likelihood ratio confidence regions", Annals of Statistics 18, 1990.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.limits.group_sums import GroupSizes, GroupSums

__all__ = [
    "ExpectedGroups",
    "NormalTest",
    "TrainingGroups",
    "best_log_wealth",
    "effective_groups",
    "normal_nats",
    "normal_quantile",
]

# Beyond these, skewness makes true levels several times w. They were fixed before the laws of the benchmark were run.
_LEAST_LEVEL: Final = math.log(1e-5)
_HALF: Final = math.log(0.5)
_GROUPS: Final = 8.0  # K is at least so many times the square of the normal quantile
_LOSERS: Final = 2.0  # the effective number of training groups that lose, likewise
# Times the largest observed deviation, gain or loss: the best bet takes losses of this size to be possible. Gains
# count, since groups that win much by a difference of two models may lose as much, and none may be in the sample.
_BEYOND: Final = 1.5
# Times the largest bet of the exact test without training groups; with as many as are tested it is twice that. Groups
# that lose all they can, so rarely that both parts may show none, move the truth by less than such bets can win:
# PROOFS.md, "Normal limits", (4).
_BOLD: Final = 0.7
_STEPS: Final = 40  # of a safeguarded Newton's method; a few suffice
_CLOSE: Final = 1e-9  # relative change of a bet at which it ends
_POINTS: Final = 400  # larger groups are expected to have the means of groups of so many records
_UNLIKE: Final = 1e-6  # correlations nearer to 0 or 1 are taken to be so far away: the beta law needs it


@dataclass(frozen=True, slots=True, eq=False)
class TrainingGroups:
    """Sums of training values in [0, 1] by group, out of fold at best, and their numbers. Public."""

    sums: NDArray[np.float64] = field(repr=False)
    counts: NDArray[np.float64] = field(repr=False)

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return float(self.sums.sum()) / max(1.0, float(self.counts.sum()))

    def farthest(self, mean: float) -> float:
        """Return the largest shortfall of a group's sum from a mean, or its excess over the mean of all groups."""
        below, above = self.counts * mean - self.sums, self.sums - self.counts * self.mean
        return max(0.0, float(below.max(initial=0.0)), float(above.max(initial=0.0)))

    def losers(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each mean N, the effective number of groups that are below it."""
        losses = np.maximum(self.counts * means[:, None] - self.sums, 0.0)
        squares = np.sum(losses * losses, axis=1)
        return np.asarray(np.sum(losses, axis=1) ** 2 / np.where(squares > 0.0, squares, 1.0))

    def mirrored(self) -> TrainingGroups:
        """Return the sums of one less each value."""
        return TrainingGroups(self.counts - self.sums, self.counts)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedGroups(TrainingGroups):
    """Groups that a training part is expected to have: each entry stands for a number of them. For plans only."""

    numbers: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, sizes: GroupSizes, groups: float, mean: float, correlation: float) -> ExpectedGroups:
        """Return the groups of beta-binomial sums of right answers, in the tested groups' sizes."""
        from scipy.special import betaln, gammaln

        alike = min(max(correlation, _UNLIKE), 1.0 - _UNLIKE)
        a, b = mean * (1.0 - alike) / alike, (1.0 - mean) * (1.0 - alike) / alike
        sums, counts, numbers = [], [], []
        for size, number in zip(sizes.sizes.tolist(), sizes.numbers.tolist(), strict=True):
            points = min(int(size), _POINTS)
            right = np.arange(points + 1.0)
            ways = gammaln(points + 1.0) - gammaln(right + 1.0) - gammaln(points - right + 1.0)
            share = np.exp(ways + betaln(right + a, points - right + b) - betaln(a, b))
            sums.append(right * (size / points))
            counts.append(np.full(points + 1, size))
            numbers.append(share * (number * groups / sizes.groups))
        return cls(np.concatenate(sums), np.concatenate(counts), np.concatenate(numbers))

    @property
    def mean(self) -> float:
        """The mean of all values."""
        return float(self.numbers @ self.sums) / float(self.numbers @ self.counts)

    def losers(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each mean N, the expected effective number of groups that are below it."""
        losses = np.maximum(self.counts * means[:, None] - self.sums, 0.0)
        squares = losses * losses @ self.numbers
        return np.asarray((losses @ self.numbers) ** 2 / np.where(squares > 0.0, squares, 1.0))

    def mirrored(self) -> ExpectedGroups:
        """Return the sums of one less each value."""
        return ExpectedGroups(self.counts - self.sums, self.counts, self.numbers)


def effective_groups(sizes: GroupSizes) -> float:
    """Return K, the number of groups of one size whose squares vary as much."""
    return sizes.squares**2 / float(sizes.numbers @ sizes.sizes**4)


@lru_cache(maxsize=512)
def normal_quantile(log_level: float) -> float:
    """Return the upper quantile of the normal law at a level, from its logarithm."""
    from scipy.special import ndtri_exp

    return -float(ndtri_exp(log_level))


@lru_cache(maxsize=512)
def normal_nats(groups: float, log_level: float) -> float:
    """Return the nats that the best bet has to win, from K groups."""
    from scipy.special import stdtrit

    t = -float(stdtrit(groups - 1.0, math.exp(log_level)))
    return 0.5 * groups * math.log1p(t * t / (groups - 1.0))


@dataclass(frozen=True, slots=True)
class NormalTest:
    """The normal test of the mean of the groups of `sizes`, with others like them in `training`."""

    sizes: GroupSizes
    training: TrainingGroups

    @property
    def boldness(self) -> float:
        """The largest bet here, in units of the largest bet of an exact test."""
        return _BOLD * (1.0 + np.count_nonzero(self.training.counts) / self.sizes.groups)

    def nats(self, log_level: float) -> float:
        """Return the nats that the best bet has to win; infinite where level or number of groups refuse the test."""
        if not _LEAST_LEVEL <= log_level < _HALF:
            return math.inf
        groups = effective_groups(self.sizes)
        return normal_nats(groups, log_level) if groups >= _GROUPS * normal_quantile(log_level) ** 2 else math.inf

    def allowed(self, means: NDArray[np.float64], log_level: float) -> NDArray[np.bool_]:
        """Whether this test, not an exact one, is taken of means of at most each of some: from public numbers only."""
        if self.nats(log_level) == math.inf:
            return np.zeros(means.size, dtype=bool)
        return np.asarray(self.training.losers(means) >= _LOSERS * normal_quantile(log_level) ** 2)

    def refutes(self, values: GroupSums, mean: float, log_level: float) -> bool:
        """Whether the groups' sums refute means of at most `mean`, where that is allowed. Approximate."""
        above = values.above(mean)
        seen = max(-float(above.min()), float(values.above(self.training.mean).max()), self.training.farthest(mean))
        possible = self.sizes.largest * mean
        largest = max(min(possible, _BEYOND * seen), possible / self.boldness)
        if float(above.sum()) <= 0.0 or largest <= 0.0:
            return False
        return best_log_wealth(above, largest) >= self.nats(log_level)


def best_log_wealth(above: NDArray[np.float64], largest: float) -> float:
    """Return the largest ``sum ln(1 + L y)`` over L in [0, 1/largest], for y of at least ``-largest`` with sum > 0."""
    low, high = 0.0, 1.0 / largest
    bet = min(0.5 * high, float(above.sum()) / float(above @ above))
    for _ in range(_STEPS):  # Newton's, or a bisection where that leaves the bracket
        shares = above / (1.0 + bet * above)
        slope = float(shares.sum())
        low, high = (bet, high) if slope > 0.0 else (low, bet)
        step = min(bet + slope / float(shares @ shares), 0.5 * (bet + high))  # a group may lose all at the largest bet
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - bet) <= _CLOSE * bet:
            break
        bet = step
    return float(np.log1p(bet * above).sum())
