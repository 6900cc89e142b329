"""Evidence of a holdout against a number, for statistics that are not means; and its expected strength.

A claim about an estimand r is an interval. Against its lower end L stands a number s(L) >= 0 of nats with

    P(s(L) >= x) <= exp(-x)    for every x, under every declared law with r <= L,

and against its upper end the same of 1 - r. So a claim with both ends at ``s >= ln(1/w)`` is a test at level w for each
side. Denominators (the numbers of records that are positive, or were predicted so) stay in `Evidence`, which is secret.
The ends are placed by `Expected`, which is public. PROOFS.md, "Statistics that are not means", S1 to S5.

*Counts.* Independent records of one law, each of which does not count, wins or loses: given their number K the wins
are binomial. *Bets.* Independent records (or groups) of any laws: ``sum ln(1 + l (a_i - L b_i))`` for the ratio of the
expected sums of a_i and b_i, with l fixed by the history; where single records win or lose, two counts are enough.
*Entropy.* ``N kl(f, L)`` for an area under the curve, with the matchings' N. *Dependent records.* A ratio is at most L
where the mean of ``a - L b + L`` is expected to be.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from graphs.numerics.bisection import bisect
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.entropy import coin_divergence, entropy_lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from thresholdout.limits.bets import Moments

__all__ = [
    "LUCK",
    "Bets",
    "Counts",
    "Dependent",
    "Entropy",
    "Evidence",
    "Expected",
    "ExpectedBets",
    "ExpectedCounts",
    "ExpectedDependent",
    "ExpectedEntropy",
    "ExpectedHoeffding",
    "Hoeffding",
    "MomentBets",
    "WinBets",
    "cautious_bet",
    "of_share",
    "to_share",
]

_UP: Final = 1.0 + 1e-12  # far above the rounding of an end
_LESS: Final = 1.0 - 1e-9  # of the nats: more than arithmetic can be off
_SLACK: Final = 1e-9  # nats, and ends below are 0
# The following place ends and bets. They cost width at most, never validity.
_SMALLEST: Final = -690.0  # logarithm of the smallest level that the incomplete beta function is inverted at
_BOLD: Final = 0.9  # of the largest bet
_FEWER: Final = 0.7  # of the expected number, after a claim that was too narrow
_MORE: Final = 1.5  # of the expected squares, then
LUCK: Final = 2.0
"""Standard deviations by which mean squares may be larger than expected."""
_ROUNDS: Final = 4  # of a fixed point: the bet depends on the end, and the end on the bet
_HALVINGS: Final = 50  # of [0, 1]: to 1e-15
_GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)


def to_share(ratio: float, weight: float) -> float:
    """Return the win rate J of a ratio ``w J / (1 + (w - 1) J)``, in which a win has the weight w."""
    return ratio / (weight - (weight - 1.0) * ratio)


def of_share(share: float, weight: float) -> float:
    """Return the ratio of a win rate, the inverse of `to_share`."""
    return weight * share / (1.0 + (weight - 1.0) * share)


class Evidence(ABC):
    """The holdout's evidence about one statistic, whose `value` is in [0, 1]. Secret."""

    value: float

    @abstractmethod
    def against(self, end: float, bet: float) -> float:
        """Return the nats against estimands of at most `end`, rounded down; at most 0 where there are none."""

    @abstractmethod
    def mirrored(self) -> Evidence:
        """Return the evidence about one minus the statistic."""


@dataclass(frozen=True)
class Counts(Evidence):
    """Wins and losses among the records that count: independent, of one law."""

    wins: int = field(repr=False)
    losses: int = field(repr=False)
    weight: float = 1.0

    @property
    def value(self) -> float:  # type: ignore[override]
        """The ratio."""
        return self.weight * self.wins / (self.weight * self.wins + self.losses)

    def against(self, end: float, bet: float) -> float:
        """Return minus the logarithm of the binomial tail."""
        share = min(1.0, to_share(end, self.weight) * _UP)
        return -log_one_law_tail(self.wins, self.wins + self.losses, share)

    def mirrored(self) -> Counts:
        """Return losses as wins."""
        return Counts(self.losses, self.wins, 1.0 / self.weight)


@dataclass(frozen=True)
class Bets(Evidence):
    """Numerators and denominators of independent records or groups, of any laws; ``0 <= a <= b``. Secret.

    `losses` are the largest denominator without a numerator that a unit *can* have, and the largest one that is all
    numerator: by the law, or by the labels where these are given, and not by the sample. A bet that could lose
    everything on such a unit counts for nothing, also where no unit lost. `times` are the numbers of records with each
    pair, where few pairs are different.
    """

    numerators: NDArray[np.float64] = field(repr=False)
    denominators: NDArray[np.float64] = field(repr=False)
    losses: tuple[float, float] = field(repr=False)
    times: NDArray[np.int64] | None = field(repr=False, default=None)

    @property
    def value(self) -> float:  # type: ignore[override]
        """The ratio."""
        a, b = (one if self.times is None else one * self.times for one in (self.numerators, self.denominators))
        return min(1.0, float(np.sum(a)) / float(np.sum(b)))

    def against(self, end: float, bet: float) -> float:
        """Return the logarithm of the wealth."""
        if bet * end * self.losses[0] >= 1.0 - 1e-6:  # closer to 1 rounding could not be bounded
            return -math.inf
        terms = np.log1p(bet * (self.numerators - end * self.denominators))
        if self.times is not None:  # a product and an addition are off by 2^-52 of the sum of absolute values at most
            several = terms * self.times
            return float(np.sum(several)) - _SLACK - 2.0**-50 * terms.size * float(np.sum(np.abs(several)))
        # 8 units in the last place of the largest term, for the rounding of each term and of the sum
        return float(np.sum(terms)) - _SLACK - 2.0**-50 * terms.size * float(np.max(np.abs(terms)))

    def mirrored(self) -> Bets:
        """Return the ratio of the rest."""
        return replace(self, numerators=self.denominators - self.numerators, losses=self.losses[::-1])


@dataclass(frozen=True)
class MomentBets(Evidence):
    """The evidence of `Bets` for records with denominators 1, from moments of the numerators. Secret.

    `slack` bounds the distance of their mean from that of the numerators; `swapped` moments are of one minus them.
    """

    moments: Moments = field(repr=False)
    slack: float
    swapped: bool = False

    @property
    def value(self) -> float:  # type: ignore[override]
        """The mean."""
        mean = self.moments.mean()
        return 1.0 - mean if self.swapped else mean

    def against(self, end: float, bet: float) -> float:
        """Return a lower bound on the logarithm of the wealth, against a mean that is larger by the slack."""
        null = math.nextafter(end + self.slack, math.inf)
        return -math.inf if bet * null >= 1.0 - 1e-6 else self.moments.log_wealth(bet, null, mirrored=self.swapped)

    def mirrored(self) -> MomentBets:
        """Return the mean of the rest."""
        return replace(self, swapped=not self.swapped)


@dataclass(frozen=True)
class WinBets(Evidence):
    """The evidence of `Bets` for single records that do not count, win or lose: a function of two counts."""

    wins: int = field(repr=False)
    losses: int = field(repr=False)
    units: tuple[float, float]  # denominator of a win, which is its numerator, and of a loss

    @property
    def value(self) -> float:  # type: ignore[override]
        """The ratio."""
        won = self.units[0] * self.wins
        return won / (won + self.units[1] * self.losses)

    def against(self, end: float, bet: float) -> float:
        """Return the logarithm of the wealth."""
        win, loss = self.units
        if bet * end * loss >= 1.0 - 1e-6:
            return -math.inf
        won = self.wins * math.log1p(bet * (win - end * win))
        lost = self.losses * math.log1p(-bet * end * loss)
        return won + lost - _SLACK - 2.0**-50 * (abs(won) + abs(lost))

    def mirrored(self) -> WinBets:
        """Return losses as wins."""
        return WinBets(self.losses, self.wins, self.units[::-1])


@dataclass(frozen=True)
class Entropy(Evidence):
    """A statistic with effective sample size N, such as an area under the curve."""

    value: float = field(repr=False)
    effective: float = field(repr=False)

    def against(self, end: float, bet: float) -> float:
        """Return N times the divergence."""
        if self.value <= end * _UP:
            return 0.0
        divergence = coin_divergence(self.value, min(1.0, end * _UP))
        return self.effective * divergence * _LESS if divergence < math.inf else math.inf

    def mirrored(self) -> Entropy:
        """Return it for one minus the value."""
        return Entropy(1.0 - self.value, self.effective)


@dataclass(frozen=True)
class Hoeffding(Evidence):
    """A statistic f that is d above or below its estimand with at most the probability ``exp(charge - 2 N d^2)``."""

    value: float = field(repr=False)
    records: float
    charge: float = 0.0

    def against(self, end: float, bet: float) -> float:
        """Return the exponent."""
        away = self.value - end - 1e-15  # more than the rounding of the difference
        return max(0.0, 2.0 * self.records * away * away * _LESS - self.charge) if away > 0.0 else 0.0

    def mirrored(self) -> Hoeffding:
        """Return it for one minus the value."""
        return replace(self, value=1.0 - self.value)


@dataclass(frozen=True)
class Dependent(Evidence):
    """Mean numerator and mean denominator of records that depend on each other; ``0 <= a <= b <= 1``."""

    numerator: float = field(repr=False)
    denominator: float = field(repr=False)
    effective: float | None  # N of the entropy limits for means, if the model has one
    records: float  # N of Hoeffding's
    slack: float = 1e-12  # bound on the error of the mean of a - L b

    @property
    def value(self) -> float:  # type: ignore[override]
        """The ratio."""
        return min(1.0, self.numerator / self.denominator)

    def against(self, end: float, bet: float) -> float:
        """Return the nats against a mean of ``a - L b + L`` of at most L."""
        mean = min(1.0, self.numerator - end * self.denominator + end - self.slack)
        if self.effective is None:
            return Hoeffding(mean, self.records).against(end, bet)
        return Entropy(mean, self.effective).against(end, bet)

    def mirrored(self) -> Dependent:
        """Return the ratio of the rest."""
        return replace(self, numerator=max(0.0, self.denominator - self.numerator))


class Expected(ABC):
    """The expected evidence against one side: public numbers, from the training part."""

    @abstractmethod
    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the lower end of a claim, and the bet against it; 0 where nothing is claimed."""

    @abstractmethod
    def mirrored(self) -> Expected:
        """Return the expectation for one minus the statistic."""

    @abstractmethod
    def wider(self) -> Self:
        """Return the expectation after a claim that was too narrow."""


@dataclass(frozen=True)
class ExpectedCounts(Expected):
    """An expected number of records that count."""

    number: float  # of records that win or lose
    weight: float  # of a win
    exact: bool  # whether the evidence is `Counts`, and not `Bets`
    unit: float = 1.0  # denominator of a loss, in `Bets`

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the limit from the expected number, by the binomial tail or by the best bet."""
        share = to_share(min(1.0, edge), self.weight)
        if share <= 0.0:
            return 0.0, 0.0
        if self.exact:
            return self._exact(share, log_level)
        low = _largest(lambda end: self._wins(share, end) >= -log_level, share)
        if low <= 0.0:
            return 0.0, 0.0
        scale = (1.0 + (self.weight - 1.0) * low) / (self.weight * self.unit)
        return of_share(low, self.weight), _best(share, low) * scale

    def _exact(self, share: float, log_level: float) -> tuple[float, float]:
        from scipy.special import betaincinv

        if log_level < _SMALLEST:
            return of_share(entropy_lower(share, self.number, log_level), self.weight), 0.0
        wins = self.number * share
        found = float(betaincinv(wins, self.number - wins + 1.0, math.exp(log_level)))
        return (of_share(found, self.weight), 0.0) if 0.0 < found < 1.0 else (0.0, 0.0)

    def _wins(self, share: float, end: float) -> float:
        bet = _best(share, end)
        won = share * math.log1p(bet * (1.0 - end)) if share > 0.0 else 0.0
        return self.number * (won + ((1.0 - share) * math.log1p(-bet * end) if share < 1.0 else 0.0))

    def mirrored(self) -> ExpectedCounts:
        """Return it for losses."""
        return replace(self, weight=1.0 / self.weight, unit=self.unit * self.weight)

    def wider(self) -> ExpectedCounts:
        """Expect fewer records."""
        return replace(self, number=max(1.0, _FEWER * self.number))


def _best(share: float, end: float) -> float:
    """Return the bet against shares of at most `end` that wins most with this share."""
    return min((share - end) / (end * (1.0 - end)), _BOLD / end)


@dataclass(frozen=True)
class ExpectedBets(Expected):
    """Ratios of sums of bounded values of independent records, or groups.

    ``ln(1 + l z) >= l z - l^2 z^2 psi(l m)`` for ``z >= -m``, ``psi(u) = (-ln(1-u) - u)/u^2``, since the quotient
    increases. So with a mean z of at least ``t/l + l s psi(l m)``, s the mean square and t the nats for each unit, the
    bet l is expected to win enough. The end is where this is so for the best l.
    """

    units: int  # records, or groups
    share: float  # mean denominator of a unit
    squares: float  # mean of (a - r b)^2 of a unit, r the ratio
    wild: float  # standard deviation of these squares
    most: float  # largest denominator of a unit, about
    margin: float = 1.0  # by which a claim is wider than a good bet is expected to need

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the edge, less the expected radius of a good bet."""
        needed = -log_level / self.units
        padded = self.squares + LUCK * self.wild / math.sqrt(self.units)
        end, bet = min(1.0, edge), 0.0
        for _ in range(_ROUNDS):
            if end <= _SLACK:
                return 0.0, 0.0
            bet, radius = cautious_bet(needed, padded, self.loss(end))
            end = edge - self.margin * radius / self.share
        return (end, bet) if end > _SLACK and bet * self.loss(end) < 1.0 - 1e-6 else (0.0, 0.0)

    def loss(self, end: float) -> float:
        """Return the largest expected loss of a unit."""
        return end * self.most

    def mirrored(self) -> Self:
        """Return the same: squares and denominators are those of the rest, too."""
        return self

    def wider(self) -> Self:
        """Expect larger squares, and less luck."""
        return replace(self, squares=_MORE * self.squares, most=_MORE * self.most, margin=1.1 * self.margin)


def cautious_bet(
    needed: float, squares: float, loss: float, more: Callable[[float], float] = lambda bet: 0.0
) -> tuple[float, float]:
    """Return a bet and the mean gain with which it wins: golden sections of the logarithm of the bet."""

    def gain(bet: float) -> float:
        u = bet * loss
        psi = (-math.log1p(-u) - u) / (u * u) if u > 1e-4 else 0.5 + u / 3.0  # below, the closed form cancels
        return needed / bet + bet * squares * psi + more(bet)

    top = math.log(_BOLD / loss)
    middle = min(0.5 * math.log(2.0 * needed / squares), top)  # the best bet where psi is 1/2
    low, high = middle - 2.0, min(middle + 0.5, top)
    while high - low > 1e-4:
        inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if gain(math.exp(inner)) <= gain(math.exp(outer)):
            high = outer
        else:
            low = inner
    bet = math.exp(0.5 * (low + high))
    return bet, gain(bet)


@dataclass(frozen=True)
class ExpectedEntropy(Expected):
    """An expected effective sample size."""

    number: float

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the limit from the expected number."""
        return entropy_lower(min(1.0, edge), self.number, log_level), 0.0

    def mirrored(self) -> ExpectedEntropy:
        """Return the same."""
        return self

    def wider(self) -> ExpectedEntropy:
        """Expect fewer records."""
        return ExpectedEntropy(max(1.0, _FEWER * self.number))


@dataclass(frozen=True)
class ExpectedHoeffding(Expected):
    """N records in the sense of Hoeffding's inequality; they are known."""

    records: float
    charge: float = 0.0

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the limit."""
        needed = (self.charge - log_level) / _LESS / (2.0 * self.records)
        return max(0.0, edge - math.sqrt(needed) - 1e-12), 0.0

    def mirrored(self) -> ExpectedHoeffding:
        """Return the same."""
        return self

    def wider(self) -> ExpectedHoeffding:
        """Return the same: nothing is guessed."""
        return self


@dataclass(frozen=True)
class ExpectedDependent(Expected):
    """An expected mean denominator, for records that depend on each other."""

    share: float
    effective: float | None
    records: float

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the limit from the expected denominator."""
        needed = -log_level

        def refuted(end: float) -> bool:
            return Dependent(edge * self.share, self.share, self.effective, self.records).against(end, 0.0) >= needed

        low = _largest(refuted, min(1.0, edge))
        return low, 0.0

    def mirrored(self) -> ExpectedDependent:
        """Return the same."""
        return self

    def wider(self) -> ExpectedDependent:
        """Expect fewer records."""
        return replace(self, share=_FEWER * self.share)


def _largest(refuted: Callable[[float], bool], top: float) -> float:
    """Return the largest end that is refuted, near enough; 0 where there is none."""
    return bisect(lambda end: end > 0.0 and refuted(end), top, 0.0, halvings=_HALVINGS)
