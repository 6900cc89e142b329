"""Claims about a share of wins: among the records on which exactly one of two models is right, how often it is one.

For independent records of one law, the wins of a model are Bin(K, theta) given the number K of such records, and theta
is the probability to win given that the models differ: a number that the law and the models fix. K is a function of the
holdout and secret. It is neither shown nor used to place a claim: claims are intervals of theta, placed by the training
part's wins and losses, and a test compares exact binomial tails at both ends with the level,

    theta is refuted where   P(Bin(K, theta) >= wins) <= w   (from above)   or   P(Bin(K, theta) <= wins) <= w.

A claim whose outside is refuted on both sides is *confirmed*. If the truth is below the lower end, the first tail at
the truth is at most that at the end, so the test passes with at most the probability w, given K and hence on average.
PROOFS.md, "Comparisons and gates" (G5), has the rest. For records of different laws this is about nothing: there the
share of wins given K is no fixed number, and a population difference by bets is what can be asked.
"""

from __future__ import annotations

import math
from typing import Final

from thresholdout.limits.one_law import log_one_law_tail
from thresholdout.mechanisms.claims.interval import Letter, Noise, Scales, TwoEnds
from thresholdout.mechanisms.claims.paired_models import Duel
from thresholdout.mechanisms.claims.predictor import Forecast, Memory, forecast

__all__ = ["WinsTest", "forecast_wins"]

_SAFETY: Final = 1.5  # standard deviations by which K is expected to be smaller than the training part says
_WIDER: Final = 0.8  # of the expected K, after a claim that was too narrow
_MORE: Final = 1e-9
_SMALLEST: Final = -690.0  # logarithm of the smallest level at which something is claimed


class WinsTest(TwoEnds):
    """Claims about a share of wins.

    Parameters
    ----------
    steps : int
        Edges of a claim are from 0 to this: shares on a grid.
    holdout : Duel
        Secret, but for the number of all records.
    expected : float
        K as far as it is public: what the training part says.

    Examples
    --------
    >>> claim = WinsTest(1000, Duel(60, 40, 2000), 100.0)
    >>> [round(limit, 3) for limit in claim.interval(550, 650, -3.0, ())]
    [0.463, 0.729]
    >>> claim.letter(550, 650, -3.0, (), (0, 0, 0)), claim.letter(700, 800, -3.0, (), (0, 0, 0))
    ('confirmed', 'below')
    """

    def __init__(self, steps: int, holdout: Duel, expected: float) -> None:
        self.steps = steps
        self._holdout = holdout
        self._expected = max(1.0, expected)

    def wider(self) -> WinsTest:
        """Return the same test with a smaller number of records to expect."""
        return WinsTest(self.steps, self._holdout, _WIDER * self._expected)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the limits that the edges would have with the expected number of records."""
        low = _lower(self._expected * lo / self.steps, self._expected, log_level)
        high = _lower(self._expected * (self.steps - hi) / self.steps, self._expected, log_level)
        return low, 1.0 if high <= 0.0 else 1.0 - high

    def ends(self, log_level: float, expected: float) -> tuple[int, int]:
        """Return the exact limits of the wins, rounded outwards to the grid."""
        wins, losses = self._holdout.wins, self._holdout.losses
        low, high = (_certain(k, wins + losses, log_level) for k in (wins, losses))
        return math.floor(low * self.steps), self.steps - math.floor(high * self.steps)

    def letter(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        """Compare exact tails at both ends with the level; if one is above, tell where the share of wins is."""
        low, high = self.interval(lo, hi, log_level, scales)
        wins, losses = self._holdout.wins, self._holdout.losses
        number = wins + losses
        # more is refuted than claimed, by more than the subtraction from 1 is off
        above = high >= 1.0 or log_one_law_tail(losses, number, 1.0 - high + _MORE) <= log_level
        if above and (low <= 0.0 or log_one_law_tail(wins, number, low) <= log_level):
            return "confirmed"
        if wins * self.steps > hi * number:
            return "above"
        return "below" if wins * self.steps < lo * number else "wide"


def forecast_wins(train: Duel, records: int) -> tuple[Forecast, float, float]:
    """Forecast the share of wins on the holdout; public numbers only.

    Parameters
    ----------
    train : Duel
        Of the training part, out of fold at best.
    records : int
        Holdout records.

    Returns
    -------
    made : Forecast
        Of the share.
    number : float
        Of the K records that differ on the holdout, as expected.
    cautious : float
        The same, less what it may be smaller.

    Examples
    --------
    >>> made, number, cautious = forecast_wins(Duel(180, 60, 4000), 2000)
    >>> round(made.mean, 3), round(number), round(cautious)
    (0.748, 120, 100)
    """
    seen = train.wins + train.losses
    number, ratio = (seen + 1.0) * records / (train.records + 1.0), records / train.records
    made = forecast(Memory(), train.share, train.share * (1.0 - train.share), number, max(1.0, seen))
    return made, number, number - _SAFETY * math.sqrt(number * (1.0 + ratio))


def _lower(wins: float, number: float, log_level: float) -> float:
    """Return p at which the tail of so many wins is the level; real counts will do."""
    if wins <= 0.0 or log_level < _SMALLEST:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(wins, number - wins + 1.0, math.exp(log_level)))


def _certain(wins: int, number: int, log_level: float) -> float:
    """Return a p that is refuted together with all that are smaller."""
    low = _lower(wins, number, log_level) * (1.0 - _MORE)
    return low if log_one_law_tail(wins, number, low) <= log_level else 0.0
