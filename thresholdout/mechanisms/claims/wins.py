"""Claims about a share of wins: among the records on which exactly one of two models is right, how often it is one.

For independent records of one law, the wins of a model are Bin(K, theta) given the number K of such records, and theta
is the probability to win given that the models differ: a number that the law and the models fix. K is a function of the
holdout and secret. It is neither shown nor used to place a claim: claims are intervals of theta, placed by the training
part's wins and losses, and a test compares exact binomial tails at both ends with the level,

    theta is refuted where   P(Bin(K, theta) >= wins) <= w   (from above)   or   P(Bin(K, theta) <= wins) <= w.

A claim whose outside is refuted on both sides is *confirmed*. If the truth is below the lower end, the first tail at
the truth is at most that at the end, so the test passes with at most the probability w, given K and hence on average.
PROOFS.md, "Comparisons and gates", has the rest. For records of different laws this is about nothing: there the share
of wins given K is no fixed number, and a population difference by bets is what can be asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from thresholdout.errors import InputError
from thresholdout.limits.one_law import log_one_law_tail
from thresholdout.mechanisms.claims.guess import Memory, forecast, learn
from thresholdout.mechanisms.claims.interval import Claim, Letter, Noise, Scales
from thresholdout.mechanisms.claims.reading import grid_steps
from thresholdout.mechanisms.claims.score import first_window, search
from thresholdout.mechanisms.precision import check_count

__all__ = ["Duel", "Wins", "WinsState", "WinsTest", "compare_wins", "settling_records"]

_SAFETY: Final = 1.5  # standard deviations by which K is expected to be smaller than the training part says
_WIDER: Final = 0.8  # of the expected K, after a claim that was too narrow
_ROOM: Final = 3.0  # standard deviations by which a claim reaches beyond what is expected
_MORE: Final = 1e-9
_SMALLEST: Final = -690.0  # logarithm of the smallest level at which something is claimed


@dataclass(frozen=True, slots=True)
class Duel:
    """Records of one part on which exactly one of two models is right.

    Parameters
    ----------
    wins, losses : int
        Records on which the one is right and the other wrong, and the reverse.
    records : int
        All records of the part.

    Examples
    --------
    >>> Duel(30, 10, 1000)
    Duel(wins=30, losses=10, records=1000)
    """

    wins: int
    losses: int
    records: int

    def __post_init__(self) -> None:
        if self.wins < 0 or self.losses < 0 or self.wins + self.losses > check_count("records", self.records):
            seen = f"{self.wins} wins and {self.losses} losses of {self.records} records"
            raise InputError("wins", seen, "counts that are not negative, together at most the number of records")


@dataclass(frozen=True, slots=True)
class WinsState:
    """What is remembered between two comparisons; public.

    Attributes
    ----------
    log_risk : float
        Natural logarithm of R, the risk that is left.
    asked : int
        Comparisons so far.
    memory : Memory
        What earlier comparisons say.
    """

    log_risk: float
    asked: int = 0
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, slots=True)
class Wins:
    """What a comparison says about theta, the share of wins.

    Attributes
    ----------
    value : float
        Estimate of theta.
    interval : tuple of float
        Confirmed.
    verdict : {"better", "worse", "not settled"}
        Whether the interval lies above or below one half.
    settling : int or None
        Holdout records that would settle it, about, were the estimate true; ``None`` where it is settled, or where the
        estimate is one half.
    letters : int
        Letters before the claim was confirmed.
    """

    value: float
    interval: tuple[float, float]
    verdict: Literal["better", "worse", "not settled"]
    settling: int | None
    letters: int


class WinsTest(Claim):
    """Claims about a share of wins.

    Parameters
    ----------
    steps : int
        Edges of a claim are from 0 to this: shares on a grid.
    wins, losses : int
        Of the holdout. Secret, and so is their sum.
    expected : float
        K as far as it is public: what the training part says.

    Examples
    --------
    >>> claim = WinsTest(1000, 60, 40, 100.0)
    >>> [round(limit, 3) for limit in claim.interval(550, 650, -3.0, ())]
    [0.463, 0.729]
    >>> claim.letter(550, 650, -3.0, (), (0, 0, 0)), claim.letter(700, 800, -3.0, (), (0, 0, 0))
    ('confirmed', 'below')
    """

    others: int = 3

    def __init__(self, steps: int, wins: int, losses: int, expected: float) -> None:
        self.steps = steps
        self._wins = wins
        self._losses = losses
        self._expected = max(1.0, expected)

    def wider(self) -> WinsTest:
        """Return the same test with a smaller number of records to expect."""
        return WinsTest(self.steps, self._wins, self._losses, _WIDER * self._expected)

    def interval(self, lo: int, hi: int, log_level: float, scales: Scales) -> tuple[float, float]:
        """Return the limits that the edges would have with the expected number of records."""
        high = self._end(self.steps - hi, log_level)
        return self._end(lo, log_level), 1.0 if high <= 0.0 else 1.0 - high

    def letter(self, lo: int, hi: int, log_level: float, scales: Scales, noise: Noise) -> Letter:
        """Compare exact tails at both ends with the level; if one is above, tell where the share of wins is."""
        low, high = self.interval(lo, hi, log_level, scales)
        number = self._wins + self._losses
        # more is refuted than claimed, by more than the subtraction from 1 is off
        above = high >= 1.0 or log_one_law_tail(self._losses, number, 1.0 - high + _MORE) <= log_level
        if above and (low <= 0.0 or log_one_law_tail(self._wins, number, low) <= log_level):
            return "confirmed"
        if self._wins * self.steps > hi * number:
            return "above"
        return "below" if self._wins * self.steps < lo * number else "wide"

    def _end(self, lo: int, log_level: float) -> float:
        """Return the lower limit of an edge: p at which a binomial tail is the level; real counts will do."""
        if lo <= 0:
            return 0.0
        from scipy.special import betaincinv

        if log_level < _SMALLEST:
            return 0.0
        wins = self._expected * lo / self.steps
        return float(betaincinv(wins, self._expected - wins + 1.0, math.exp(log_level)))


def compare_wins(state: WinsState, train: Duel, holdout: Duel, queries: int | None = None) -> tuple[WinsState, Wins]:
    """Compare two models by the share of wins.

    Parameters
    ----------
    state : WinsState
        After the comparisons before.
    train : Duel
        Of out-of-fold predictions on the training part; public.
    holdout : Duel
        Secret, except for the number of all records.
    queries : int, optional
        Declared number of comparisons.

    Examples
    --------
    >>> state, said = compare_wins(WinsState(math.log(0.05)), Duel(180, 60, 4000), Duel(85, 35, 2000))
    >>> said.verdict, [round(limit, 2) for limit in said.interval]
    ('better', [0.55, 0.91])
    """
    number = train.wins + train.losses
    share = (train.wins + 1.0) / (number + 2.0)
    expected = (number + 1.0) * holdout.records / (train.records + 1.0)
    ratio = holdout.records / train.records
    spread = math.sqrt(expected * (1.0 + ratio))
    variance = share * (1.0 - share)
    made = forecast(state.memory, share, variance, expected, max(1.0, number))
    steps = grid_steps(made.deviation)
    window = first_window(made.mean * steps, made.deviation * steps, steps, state.asked, queries)
    claim: WinsTest = WinsTest(steps, holdout.wins, holdout.losses, expected - _SAFETY * spread)

    def ask(lo: int, hi: int, log_level: float) -> Letter:
        nonlocal claim
        letter = claim.letter(lo, hi, log_level, (), (0, 0, 0))
        claim = claim.wider() if letter == "wide" else claim
        return letter

    found = search(window, steps, state.log_risk, ask, 1, claim.others)
    low, high = claim.interval(found.lo, found.hi, found.log_level, ())
    value = made.mean if not found.letters else 0.5 * (found.lo + found.hi) / steps
    value = min(max(value, low), high)
    memory = learn(state.memory, made, (found.lo - 0.5) / steps, (found.hi + 0.5) / steps)
    verdict: Literal["better", "worse", "not settled"] = (
        "better" if low > 0.5 else "worse" if high < 0.5 else "not settled"
    )
    settling = None
    if verdict == "not settled":
        settling = settling_records(2.0 * value - 1.0, 1.0, found.log_level, holdout.records / expected)
    return (
        WinsState(found.log_risk, state.asked + 1, memory),
        Wins(value, (low, high), verdict, settling, found.letters),
    )


def settling_records(
    difference: float, variance: float, log_level: float, each: float = 1.0, most: float = 1e12
) -> int | None:
    """Return how many records would settle which of two models is better, were the difference true.

    Parameters
    ----------
    difference, variance : float
        Of one record's difference.
    log_level : float
        Natural logarithm of the level of the claim.
    each : float
        Records for each one that counts.
    most : float
        More than this are as good as none.

    Returns
    -------
    int or None
        Where ``sqrt(2 ln(1/w) v / n)`` and the three standard deviations that a claim reaches beyond what is expected
        are less than the difference.

    Examples
    --------
    >>> settling_records(0.01, 0.05, -8.0), settling_records(0.0, 0.05, -8.0) is None
    (24500, True)
    """
    needed = variance * (math.sqrt(-2.0 * log_level) + _ROOM) ** 2 * each
    return None if difference * difference * most <= needed else math.ceil(needed / (difference * difference))
