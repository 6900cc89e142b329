"""Evidence about an area under the curve: by relative entropy, or by bets on placements.

The area f is the mean of the *placements* u_i of the a records of one class: the share of the b others for which record
i is on the right side. Placements vary much less than single pairs do. Given the others, records i are independent: the
wealth ``prod (1 + l (u_i - L))`` has a mean of at most ``(1 + l (t - L))^a <= exp(a l (t - L))``, t the mean of the
expected placements. And t is a mean of b independent numbers in [0, 1], one for each of the others, with the estimand
f* as its expectation, so ``E exp(a l t) <= (1 - f* + f* exp(a l / b))^b``. Against estimands of at most L stand

    sum ln(1 + l (u_i - L)) + a l L - b ln(1 - L + L exp(a l / b))

nats. The bet l is fixed by the history; 0 stands for relative entropy, which serves groups as well (PROOFS.md, S4).

The charge for the others takes them for coins. A bet with a minus sign charges for the mean square of the others' own
misses instead: 1 - v_j for another record j that is on the right side of the share v_j of the a records. It pays where
both classes have some hundred records or more (PROOFS.md, "Placements of both classes").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from graphs.numerics.bisection import bisect
from thresholdout.limits.entropy import entropy_lower
from thresholdout.mechanisms.claims.evidence import LUCK, Entropy, Evidence, Expected, cautious_bet

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["AreaEvidence", "ExpectedArea"]

_LARGER: Final = 1.2  # times the expected mean square of misses
_FEWER: Final = 0.7  # of the expected records, after a claim that was too narrow
_MORE: Final = 1.5  # times the expected squares, then
_ROUNDS: Final = 4  # of a fixed point: the bet depends on the end, and the end on the bet
_NOTHING: Final = 1e-9  # ends below are 0
_SLACK: Final = 1e-9  # nats
_ASIDE: Final = 1.0 / 16.0  # of the level, for misses that are larger than they seem: the rest costs 0.06 nats
_BETTING: Final = -math.log1p(-_ASIDE)
_STEEPEST: Final = 0.9  # largest bet on one of the others
_HALVINGS: Final = 50  # far below the slack


def _penalty(rate: float, end: float, others: float) -> float:
    """Return ``b ln(1 - L + L e^(r/b)) - r L`` for the rate r = a l, rounded up."""
    return others * math.log1p(end * math.expm1(rate / others)) * (1.0 + 1e-12) - rate * end * (1.0 - 1e-12)


def _largest_misses(misses: float, placements: float, nats: float) -> float:
    """Return a bound on the root mean square of expected misses, except with probability ``e^-nats``."""
    q = math.sqrt(2.0 * nats / placements)
    root = 0.5 * (q + math.sqrt(q * q + 4.0 * math.sqrt(misses)))
    return min(1.0, root * root * (1.0 + 1e-12))


def _charge(step: float, end: float, others: float, misses: float, *, upper: bool) -> float:
    """Return the charge for others by bets of this step on each of them, rounded up; infinite for bold bets."""
    rounding = 2.0**-49 * others * step + _SLACK
    if upper:
        return 0.5 * others * (step * misses) ** 2 + rounding
    if step >= _STEEPEST:
        return math.inf
    squares = (-math.log1p(-step) - step) * misses * misses
    return others * (squares + math.log1p(-step * (1.0 - end)) + step * (1.0 - end)) + rounding


@dataclass(frozen=True)
class AreaEvidence(Evidence):
    """The holdout's evidence about an area, or about one minus it if `upper`. Secret.

    `placements` are those of the a records, `others` is b, `effective` is N of relative entropy, and `misses` is the
    mean square of one minus the others' placements. With `times`, each placement is that of so many records.
    """

    placements: NDArray[np.float64] = field(repr=False)
    others: int = field(repr=False)
    effective: float = field(repr=False)
    misses: float = field(repr=False)
    upper: bool = False
    times: NDArray[np.int64] | None = field(repr=False, default=None)

    @property
    def value(self) -> float:  # type: ignore[override]
        """The area."""
        if self.times is None:
            return min(1.0, float(np.mean(self.placements)))
        return min(1.0, float(np.sum(self.placements * self.times)) / int(self.times.sum()))

    def against(self, end: float, bet: float) -> float:
        """Return the logarithm of the wealth, less the charge for the others; without a bet the divergence."""
        if bet == 0.0:
            return Entropy(self.value, self.effective).against(end, bet)
        both, bet = bet < 0.0, abs(bet)
        size = self.placements.size if self.times is None else int(self.times.sum())
        if bet * end >= 1.0 - 1e-6 or bet * size > 500.0 * self.others:  # the charge's exponential stays finite
            return -math.inf
        terms = np.log1p(bet * (self.placements - end))
        if self.times is not None:
            terms = terms * self.times
        # NumPy adds up in pairs: each term is in fewer than 64 additions.
        wealth = float(np.sum(terms)) - _SLACK - 2.0**-46 * float(np.sum(np.abs(terms)))
        if not both:
            return wealth - _penalty(bet * size, end, self.others)

        def enough(nats: float) -> bool:
            largest = _largest_misses(self.misses, size, nats - math.log(_ASIDE))
            charge = _charge(bet * size / self.others, end, self.others, largest, upper=self.upper)
            return wealth - charge >= nats + _BETTING

        return bisect(enough, wealth, 0.0, halvings=_HALVINGS) if wealth > 0.0 and enough(0.0) else 0.0

    def mirrored(self) -> AreaEvidence:
        """Return it for one minus the area."""
        return replace(self, placements=1.0 - self.placements, upper=not self.upper)


@dataclass(frozen=True)
class ExpectedArea(Expected):
    """The expected evidence about an area of independent records, or about one minus it if `upper`.

    `few` and `others` are the records of the rarer class, and of the other. `squares` and `wild` are the variance of a
    placement, and the standard deviation of its square. `misses` is the mean square of the others' misses.
    """

    few: float
    others: float
    squares: float
    wild: float
    misses: float
    upper: bool = False

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the best of all limits."""
        plain = entropy_lower(min(1.0, edge), self.few, log_level)
        found = [(plain, 0.0)]
        largest = _largest_misses(min(1.0, _LARGER * self.misses), self.few, -log_level - math.log(_ASIDE))

        def for_coins(bet: float, end: float) -> float:
            return _penalty(bet * self.few, end, self.others)

        def for_misses(bet: float, end: float) -> float:
            return _charge(bet * self.few / self.others, end, self.others, largest, upper=self.upper)

        for sign, nats, charge in ((1.0, -log_level, for_coins), (-1.0, -log_level + _BETTING, for_misses)):
            end, bet = self._placed(edge, nats, charge)
            found.append((end, sign * bet))
        return max(found, key=lambda one: one[0])

    def _placed(self, edge: float, nats: float, charge: Callable[[float, float], float]) -> tuple[float, float]:
        """Return the edge, less the expected radius of the best bet; 0 where nothing is claimed."""
        padded = self.squares + LUCK * self.wild / math.sqrt(self.few)
        end, bet = min(1.0, edge), 0.0
        for _ in range(_ROUNDS):
            if end <= _NOTHING:
                return 0.0, 0.0

            def more(bet: float, end: float = end) -> float:
                return charge(bet, end) / (bet * self.few)

            bet, radius = cautious_bet(nats / self.few, padded, end, more)
            end = edge - radius
        return max(0.0, end), bet

    def mirrored(self) -> ExpectedArea:
        """Return the same for one minus the area."""
        return replace(self, upper=not self.upper)

    def wider(self) -> ExpectedArea:
        """Expect fewer records, and placements that vary more."""
        return replace(self, few=max(1.0, _FEWER * self.few), squares=_MORE * self.squares, misses=_MORE * self.misses)
