"""An interval that is claimed about one mean: how it is tested, and what it says when the test passes.

A claim has edges lo and hi, in steps of a grid from 0 to ``steps`` on which the holdout's value is expected, and stands
for an interval of truths. Its test has two halves, each with its own noise, and the edges share theirs (delta). For a
count or a mean K, see `thresholdout.limits.noisy`:

    K + gamma > hi + delta:    *above*
    K - gamma' < lo - delta:   *below* (looked at only if not above)
    otherwise:                 *confirmed*

If the truth is above the interval, the claim is confirmed only if ``K <= hi + (delta - gamma)``; the interval is such
that this has at most the probability w, and the same below. A false claim is false on one known side, so both sides
have w. For values of which the variance is small, both halves are bets against the ends of the interval instead, see
`thresholdout.limits.bets`: with a truth above the upper end, the bet against it has to win 1/w.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

from thresholdout.limits.bets import bet_lower, bet_size, log_wealth, placed_bet
from thresholdout.limits.noisy import (
    log_laplace_moment,
    noisy_binomial_lower,
    noisy_entropy_lower,
    noisy_hoeffding_lower,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "UNITS",
    "BetTest",
    "Claim",
    "Letter",
    "Limit",
    "MeanTest",
    "Noise",
    "Scales",
    "better",
    "entropy",
    "hoeffding",
    "ones",
]

UNITS: Final = 1 << 40
"""Units of noise in the range of a question."""

Letter = Literal["confirmed", "above", "below", "wide"]

Noise: TypeAlias = "tuple[int, int, int]"
"""Noise of a test in units of the range: delta of the edges, gamma of the upper half, gamma' of the lower one."""

Scales: TypeAlias = "tuple[float, ...]"
"""Scales of the noises in one edge, in units of the range; empty without noise."""

Limit: TypeAlias = "Callable[[int, float, Scales], float]"
"""From a lower edge in steps, the logarithm of a level and the scales of the noise to a lower limit."""


_LUCK: Final = 5.0  # standard deviations of the variance
_BOLD: Final = 0.45  # of the largest bet
_WIDER: Final = 1.3
_ROUNDS: Final = 3
_NOTHING: Final = 1e-9  # ends below are 0


class Claim(ABC):
    """How claims about one question are read and tested.

    Attributes
    ----------
    steps : int
        The edges of a claim are from 0 to this.
    others : int
        Letters besides *confirmed*.
    """

    steps: int
    others: int = 2

    @abstractmethod
    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return what a claim stands for, in units of the range: public numbers only."""

    @abstractmethod
    def letter(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        """Test a claim: secret numbers too."""

    def wider(self) -> Self:
        """Return how claims are read and tested after one that was too narrow."""
        return self


class MeanTest(Claim):
    """Claims about a count or a mean.

    Parameters
    ----------
    steps : int
        Steps in the range.
    value : int
        K, in steps. Secret.
    lower : callable
        The lower limit of an edge; the upper one is its mirror.

    Examples
    --------
    >>> claim = MeanTest(1000, 950, ones(1000))
    >>> claim.letter(940, 960, -4.0, (), (0, 0, 0)), claim.letter(900, 949, -4.0, (), (0, 0, 0))
    ('confirmed', 'above')
    >>> claim.letter(900, 949, -4.0, (), (UNITS // 500, 0, 0))  # an edge that noise has moved by two steps
    'confirmed'
    """

    def __init__(self, steps: int, value: int, lower: Limit) -> None:
        self.steps = steps
        self._value = value
        self._lower = lower

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the limits of both edges."""
        low = 0.0 if lo <= 0 else self._lower(lo, log_level, scales)
        high = 0.0 if hi >= self.steps else self._lower(self.steps - hi, log_level, scales)
        return low, _mirror(high)

    def stated(self, log_level: float) -> tuple[int, int, tuple[float, float]]:
        """Return K twice, and the limits from it."""
        return self._value, self._value, self.interval(self._value, self._value, log_level, ())

    def letter(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        """Compare K with both edges, exactly, in integers; an edge that is an end of the range claims nothing."""
        edge, upper, lower = noise
        if hi < self.steps and (self._value - hi) * UNITS > (edge - upper) * self.steps:
            return "above"
        below = lo > 0 and (lo - self._value) * UNITS > (edge - lower) * self.steps
        return "below" if below else "confirmed"


class BetTest(Claim):
    """Claims about a mean of independent values, tested by constant bets against both ends.

    Parameters
    ----------
    steps : int
        Steps in the range.
    values : ndarray of shape (n,)
        In [0, 1]. Secret, except for their number.
    variance : float
        Expected of a value; public.
    margin : float
        By how much intervals are wider than a good bet is expected to need: more after each claim that was too narrow,
        since the variance is larger than expected then.

    Notes
    -----
    A claim that is not confirmed although the mean is inside, as far as its noise tells, is *wide*. The variance that
    is seen can be larger than expected, and bets suffer from it by its product with l^2: they are placed for one that
    is five standard deviations larger, for values near the mean but for a few, and are not bold. (At 30 records that
    differ this is three times the variance; and still intervals are narrower in the end than those of bets that fail.)
    """

    others: int = 3

    def __init__(self, steps: int, values: NDArray[np.float64], variance: float, margin: float = 1.0, common: float = 0.5) -> None:
        self.steps = steps
        self._values = values
        self._variance = variance
        self._margin = margin
        self._common = common

    def wider(self) -> BetTest:
        """Return the same test with a larger margin."""
        return BetTest(self.steps, self._values, self._variance, _WIDER * self._margin, self._common)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the edges, less and plus what a good bet needs."""
        return self._place(lo, log_level, scales, self._common)[0], _mirror(self._place(self.steps - hi, log_level, scales, 1.0-self._common)[0])

    def stated(self, log_level: float) -> tuple[int, int, tuple[float, float]]:
        """Return the limits of two bets, rounded outwards to the grid, and the middle third between them."""
        bet = bet_size(1.0, self._variance, self._values.size, log_level)
        low = math.floor(bet_lower(self._values, bet, log_level) * self.steps)
        high = math.ceil((1.0 - bet_lower(1.0 - self._values, bet, log_level)) * self.steps)
        third = (high - low) // 3
        return low + third, high - third, (low / self.steps, min(1.0, high / self.steps))

    def letter(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        """Bet against both ends; if one of the bets is lost, compare the mean with the edges."""
        edge, upper, lower = noise
        if self._wins(1.0 - self._values, self.steps - hi, log_level, scales, edge - upper, 1.0 - self._common) and self._wins(
            self._values, lo, log_level, scales, edge - lower, self._common
        ):
            return "confirmed"
        mean = float(self._values.mean())
        if hi < self.steps and mean + (upper - edge) / UNITS > hi / self.steps:
            return "above"
        return "below" if lo > 0 and mean + (edge - lower) / UNITS < lo / self.steps else "wide"

    def _place(self, lo: int, log_level: float, scales: Scales, common: float) -> tuple[float, float]:
        """Return the end of an interval with this edge, and the bet against it; 0 where nothing is claimed."""
        mean, n = lo / self.steps, self._values.size
        if mean <= _NOTHING:
            return 0.0, 0.0
        mean = min(mean, 1.0 - 0.5 / n)
        seen = self._variance * self._margin + _LUCK * max(mean, 1.0 - mean) * math.sqrt(self._variance / n)
        end, bet, charge, most = 0.0, 0.0, 0.0, _BOLD
        for _ in range(_ROUNDS):
            end, bet = placed_bet(mean, seen, common, n, charge - log_level, most)
            charge = self._charge(bet, scales)
        if bet > self._most(scales):
            return 0.0, 0.0
        return end, bet

    def _wins(self, values: NDArray[np.float64], lo: int, log_level: float, scales: Scales, noise: int, common: float) -> bool:
        """Whether a bet against means below the lower end wins one over the level."""
        end, bet = self._place(lo, log_level, scales, common)
        if end <= 0.0:
            return True  # nothing is claimed
        slope = bet * values.size
        wealth = log_wealth(values, bet, end) + slope * (noise / UNITS)
        return wealth >= -log_level + self._charge(bet, scales) + 1e-9 * (1.0 + abs(slope * noise / UNITS))

    def _charge(self, bet: float, scales: Scales) -> float:
        """Return what the noise adds to the logarithm of the wealth that is needed."""
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
    """Return the limits for a mean of which a variance inflation is known; edges as in `entropy`."""
    return lambda lo, level, scales: noisy_hoeffding_lower(
        (lo - 0.5) / steps, records, level, tuple(steps * scale for scale in scales), steps
    )


def _mirror(low: float) -> float:
    """Return ``1 - low``, rounded up."""
    return 1.0 if low <= 0.0 else min(1.0, 1.0 - low + 2.0**-53)
