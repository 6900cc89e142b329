r"""Evidence about an area under the curve: by relative entropy, or by bets on the placements of the rarer class.

The area f is the mean of the *placements* u_i of the a records of one class: the share of the b others that record i is
on the right side of. Placements vary much less than single pairs do. Given the others, records i are independent: the
wealth ``prod (1 + l (u_i - L))`` has a mean of at most ``(1 + l (t - L))^a <= exp(a l (t - L))``, t the mean of what is
expected of the placements. And t is a mean of b independent numbers in [0, 1], one for each of the others, with
the truth f* as its expectation, so ``E exp(a l t) <= (1 - f* + f* exp(a l / b))^b``. Against truths of at most L speak

    sum ln(1 + l (u_i - L)) + a l L - b ln(1 - L + L exp(a l / b))

nats. The bet l is fixed by the history; 0 stands for relative entropy, which serves groups as well (PROOFS.md, S4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from thresholdout.limits.entropy import entropy_lower
from thresholdout.mechanisms.claims.evidence import LUCK, Entropy, Evidence, Expected, cautious_bet

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AreaEvidence", "ExpectedArea"]

_FEWER: Final = 0.7
_MORE: Final = 1.5
_ROUNDS: Final = 4
_NOTHING: Final = 1e-9
_SLACK: Final = 1e-9


def _penalty(rate: float, end: float, others: float) -> float:
    """Return ``b ln(1 - L + L e^(r/b)) - r L`` for the rate r = a l, rounded up."""
    return others * math.log1p(end * math.expm1(rate / others)) * (1.0 + 1e-12) - rate * end * (1.0 - 1e-12)


@dataclass(frozen=True)
class AreaEvidence(Evidence):
    """What the holdout says of an area. Secret.

    Parameters
    ----------
    placements : ndarray of shape (a,)
        In [0, 1].
    others : int
        b.
    effective : float
        N of relative entropy.

    Examples
    --------
    >>> evidence = AreaEvidence(np.full(50, 0.9), 1000, 50.0)
    >>> round(evidence.value, 9), evidence.against(0.8, 0.0) < evidence.against(0.8, 1.0)
    (0.9, True)
    """

    placements: NDArray[np.float64] = field(repr=False)
    others: int = field(repr=False)
    effective: float = field(repr=False)

    @property
    def value(self) -> float:  # type: ignore[override]
        """The area."""
        return min(1.0, float(np.mean(self.placements)))

    def against(self, end: float, bet: float) -> float:
        """Return the logarithm of the wealth, less what the others can add to it; without a bet the divergence."""
        if bet <= 0.0:
            return Entropy(self.value, self.effective).against(end, bet)
        if bet * end >= 1.0 - 1e-6 or bet * self.placements.size > 500.0 * self.others:
            return -math.inf
        terms = np.log1p(bet * (self.placements - end))
        size = self.placements.size
        wealth = float(np.sum(terms)) - _SLACK - 2.0**-50 * size * float(np.max(np.abs(terms)))
        return wealth - _penalty(bet * size, end, self.others)

    def mirrored(self) -> AreaEvidence:
        """Return it for one minus the area."""
        return replace(self, placements=1.0 - self.placements)


@dataclass(frozen=True)
class ExpectedArea(Expected):
    """What is expected of the evidence about an area of independent records.

    Parameters
    ----------
    few, others : float
        Records of the rarer class, and of the other.
    squares, wild : float
        Variance of a placement, and standard deviation of its square.

    Examples
    --------
    >>> end, bet = ExpectedArea(100.0, 1900.0, 0.006, 0.015).end(0.95, -8.0)
    >>> round(end, 2), bet > 0.0, round(entropy_lower(0.95, 100.0, -8.0), 2)
    (0.85, True, 0.82)
    """

    few: float
    others: float
    squares: float
    wild: float

    def end(self, edge: float, log_level: float) -> tuple[float, float]:
        """Return the better of both limits."""
        plain = entropy_lower(min(1.0, edge), self.few, log_level)
        padded = self.squares + LUCK * self.wild / math.sqrt(self.few)
        end, bet = min(1.0, edge), 0.0
        for _ in range(_ROUNDS):
            if end <= _NOTHING:
                return plain, 0.0
            at = end

            def more(bet: float, end: float = at) -> float:
                return _penalty(bet * self.few, end, self.others) / (bet * self.few)

            bet, radius = cautious_bet(-log_level / self.few, padded, end, more)
            end = edge - radius
        return (end, bet) if end > plain else (plain, 0.0)

    def mirrored(self) -> ExpectedArea:
        """Return the same."""
        return self

    def wider(self) -> ExpectedArea:
        """Expect fewer records, and placements that vary more."""
        return replace(self, few=max(1.0, _FEWER * self.few), squares=_MORE * self.squares)
