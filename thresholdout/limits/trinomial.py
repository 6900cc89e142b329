"""Exact tests and limits for a difference of two models that are right or wrong, on independent records of one law.

Each record is won, lost or tied. Outcomes are ordered by their score limit at the level's normal quantile z,

    T = d - z sqrt(K - d^2/n + z^2),    d = wins - losses,  K = wins + losses.

An edge m is refuted where the outcomes from T on have at most the level's probability under every law with a difference
of at most m and a plausible probability of a win or a loss. Laws between grid points are bounded, not sampled. Proof:
PROOFS.md of this package, "The trinomial test of a difference".

References
----------
R. J. Buehler, "Confidence intervals for the product of two binomial parameters", JASA 52, 1957, for limits from an
order of the outcomes; R. L. Berger and D. D. Boos, "P values maximized over a confidence set for the nuisance
parameter", JASA 89, 1994; T. Tango, Statistics in Medicine 17, 1998, for the score.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import UNIT
from thresholdout.limits.binomial import log_one_law_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["difference_lower", "difference_refuted", "placed_difference"]

_SLACK: Final = 1e-8  # of a probability, up to a million records, and in proportion beyond
_MANY: Final = 1e6  # where the binomial law is off by 1e-9; at 1e8 records by 3e-7
_TIES: Final = 1e-9  # of the order, far above its rounding: outcomes that tie belong to the region
_NUISANCE: Final = 1.0 / 256.0  # of the level, for the plausible range of K/n; costs 0.1 % of a limit
_CELLS: Final = 256  # of that range; half a cell is 0.5 % of a limit
_FIRST: Final = 9  # points of that range for the search of a limit, before it is proved
_TRIES: Final = 64  # quarters of a cell by which it then is lowered at most
_MASS: Final = 12.0  # nats below the level to which tails of K are cut; the cut tails are added back
_LEAST: Final = -600.0  # logarithm of the smallest level that floats can prove
_LEAST_QUANTILE: Final = 0.1  # z of levels near a half and above
_HALVINGS: Final = 12  # of the search range: a 4,000th of a standard deviation


def difference_refuted(wins: int, losses: int, records: int, edge: float, log_level: float) -> bool:
    """Whether "the expected difference is at most an edge" is refuted at a level."""
    if wins - losses <= records * edge or log_level < _LEAST:
        return False
    return _Outcome(wins, losses, records, log_level).refutes(edge)


def difference_lower(wins: int, losses: int, records: int, log_level: float) -> float:
    """Return the lower limit for the expected difference."""
    if losses == records or log_level < _LEAST:  # the region is everything, but rounding of a double root may hide it
        return -1.0
    return _Outcome(wins, losses, records, log_level).lower()


def placed_difference(difference: float, discordant: float, records: int, log_level: float) -> float:
    """Return the lower limit that is expected with a mean difference and a share K/n; to place a hypothesis."""
    z = _quantile(log_level)
    variance = max(discordant - difference * difference, 0.0) / records
    return difference - _PLACED * z * math.sqrt(variance + (z / records) ** 2)


_PLACED: Final = 1.02  # times the score limit: the cost of cells and whole numbers of records


class _Outcome:
    """Wins and losses, the outcomes that are ordered from there on, and the plausible shares K/n."""

    def __init__(self, wins: int, losses: int, records: int, log_level: float) -> None:
        self._records, self._log_level = records, log_level
        number, gain, z = wins + losses, wins - losses, _quantile(log_level)
        self._order = gain - z * math.sqrt(number - gain * gain / records + z * z)
        self._least = _least_wins(self._order, records, z)
        log_each = log_level + math.log(0.5 * _NUISANCE)
        self._low = _certain(number, records, log_each)
        self._high = min(1.0, 1.0 - _certain(records - number, records, log_each) + UNIT)
        self._level = math.exp(log_level) * (1.0 - _NUISANCE) * (1.0 - _slack(records))

    def refutes(self, edge: float) -> bool:
        """Whether the bound on each cell is at most the level."""
        half = 0.5 * (self._high - self._low) / _CELLS
        middles = self._low + half * (2.0 * np.arange(_CELLS) + 1.0)
        # ends and middle first: they refuse most of the refused edges
        order = sorted(range(_CELLS), key=lambda cell: (cell % (_CELLS // 4) != 0 and cell != _CELLS - 1, cell))
        return all(self._bound(float(middles[cell]), edge + half) <= self._level for cell in order)

    def lower(self) -> float:
        """Search for the limit at a few shares, and lower it until it is proved."""
        shares = np.linspace(self._low, self._high, _FIRST)

        def refuted(edge: float) -> bool:
            return all(self._bound(float(share), edge) <= self._level for share in shares)

        likely = self._order / self._records
        step = math.sqrt(self._high / self._records)
        bottom, top = likely, min(1.0, likely + step)
        while bottom > -1.0 and not refuted(bottom):
            bottom, top, step = bottom - step, bottom, 2.0 * step
        found = bisect(refuted, top, max(-1.0, bottom), halvings=_HALVINGS)
        cell = (self._high - self._low) / _CELLS
        for tried in range(_TRIES):
            edge = found - (0.5 + 0.25 * tried) * cell - UNIT
            if edge <= -1.0 or self.refutes(edge):
                return max(edge, -1.0)
        return -1.0

    def _bound(self, share: float, edge: float) -> float:
        """Bound the probability of the region for a difference of `edge` and a probability `share` of a win or loss.

        Where no law has both, wins are more probable than in any law of the hypothesis, and losses less.
        """
        win = min(1.0, 0.5 * (share + edge))
        if win <= 0.0:
            return 0.0 if win < 0.0 or self._least[0] > 0 else 1.0
        loss = max(0.0, 0.5 * (share - edge))
        return _probability(self._least, win, loss, self._log_level)


def _probability(least: NDArray[np.int64], win: float, loss: float, log_level: float) -> float:
    """Bound the region's probability from above where a record is won and lost with these probabilities."""
    from scipy.special import bdtr, bdtrc, betainc, gammaln

    records, share = least.size - 1, min(1.0, win + loss)
    reach = math.sqrt(2.0 * (_MASS - log_level))
    spread = reach * math.sqrt(records * share * (1.0 - share)) + reach * reach
    low = max(0, math.floor(records * share - spread))
    high = min(records, math.ceil(records * share + spread))
    number = np.arange(low, high + 1)
    if share >= 1.0:
        mass = (number == records).astype(float)
    else:
        log_mass = gammaln(records + 1) - gammaln(number + 1) - gammaln(records - number + 1)
        mass = np.exp(log_mass + number * math.log(share) + (records - number) * math.log1p(-share))
    wins = least[low : high + 1]
    tail = np.ones(number.size)
    tail[wins > number] = 0.0
    part = (wins > 0) & (wins <= number)
    tail[part] = betainc(wins[part], (number - wins)[part] + 1.0, min(1.0, win / share))
    cut = (float(bdtr(low - 1, records, share)) if low > 0 else 0.0) + (
        float(bdtrc(high, records, share)) if high < records else 0.0
    )
    return (float(mass @ tail) + cut) * (1.0 + _slack(records))


def _slack(records: int) -> float:
    """Return an upper bound on the relative error of a probability."""
    return _SLACK * max(1.0, records / _MANY)


def _least_wins(order: float, records: int, z: float) -> NDArray[np.int64]:
    """Return for each K the least wins of an outcome that is ordered from there on, or K + 1; a monotone region."""
    number = np.arange(records + 1)
    scale = 1.0 + z * z / records
    square = z * z * (scale * (number + z * z) - order * order / records)
    whole = np.where(order < -number, -number, number + 2)  # all outcomes of this K are on one side
    gain = np.where(square >= 0.0, (order + np.sqrt(np.maximum(square, 0.0))) / scale, whole)
    wins = np.clip(np.ceil(0.5 * (number + gain - _TIES * (1.0 + abs(order)))), 0, number + 1).astype(np.int64)
    wins = np.minimum.accumulate(wins[::-1])[::-1]  # a loss less stays inside
    return np.asarray(np.minimum.accumulate(wins - number) + number)  # a win more stays inside


def _certain(ones: int, records: int, log_level: float) -> float:
    """Return a lower limit for the probability of one in a binomial law, 0 where none is proved."""
    from scipy.special import betaincinv

    if ones <= 0:
        return 0.0
    low = float(betaincinv(ones, records - ones + 1.0, math.exp(log_level))) * (1.0 - _TIES)
    return low if log_one_law_tail(ones, records, low) <= log_level else 0.0


def _quantile(log_level: float) -> float:
    """Return the normal quantile of a level, at least a little above 0."""
    from scipy.special import ndtri_exp

    return max(_LEAST_QUANTILE, -float(ndtri_exp(min(log_level, -1e-9))))
