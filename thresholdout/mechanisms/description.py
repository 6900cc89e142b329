"""What a question is worth that was chosen from few earlier answers: description length.

An analyst's question is a function of the answers so far. When these can be told in ``nats`` (their natural code
length), the question is one of few that are fixed in advance, weighted by ``exp(-nats)``, and a bound for one fixed
question that fails with probability ``beta * exp(-nats)`` holds for all of them at once, whatever the analyst does.
PROOFS.md, "Guess and check", has the proof; mechanisms differ in what a history is and how it is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["FixedQuestion", "choice_nats", "index_nats"]

_SAFE = 1.0 + 1e-12
_NATS = 1e-9  # added to every code length: far more than what its floating-point sums are off
_VARIANCE_SHARE = 1.0 / 16.0
_BISECTIONS = 60


def index_nats(index: int, limit: int | None) -> float:
    """Return the length of a code for a number from 1.

    Parameters
    ----------
    index : int
        The number, at least 1 and at most the limit.
    limit : int or None
        The largest number that can occur; ``None`` if any can.

    Returns
    -------
    float
        ``ln(limit)``; without a limit ``-ln w_i``, ``w_i = 1/log2(i+1) - 1/log2(i+2)``, which sum to 1: about
        ``ln i + 2 ln ln i``. Rounded up.

    Examples
    --------
    >>> round(index_nats(1000, None), 3), round(index_nats(1000, 1000), 3)
    (11.141, 6.908)
    """
    if limit is not None:
        return math.log(limit) * _SAFE
    ratio = math.log1p(1.0 / (index + 1)) / math.log(2.0)
    return -math.log(ratio / (math.log2(index + 1) * math.log2(index + 2))) * _SAFE


def choice_nats(rounds: int, marked: int) -> float:
    """Return ``ln C(rounds, marked)``, rounded up: the length of a code for which rounds are marked.

    Examples
    --------
    >>> round(choice_nats(5, 2), 9) == round(math.log(10), 9)
    True
    """
    if marked in (0, rounds):
        return 0.0
    log = math.lgamma
    exact = log(rounds + 1) - log(marked + 1) - log(rounds - marked + 1)
    return max(0.0, exact) + 1e-14 * log(rounds + 2)


class FixedQuestion:
    """Error bounds for the mean of n records' values, for a question that is fixed in advance.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    beta : float
        Probability that any bound fails, in (0, 1); a question of ``nats`` fails with ``beta * exp(-nats)``.
    inflation : float
        Lambda, at least 1: fixed questions are off by t or more with probability at most ``2 exp(-2 n t^2/Lambda)``.
        Exactly 1 stands for independent records; bounds then use the mean and the variance that are seen too.

    Notes
    -----
    *Hoeffding:* ``r = sqrt(Lambda (ln(2/beta) + nats)/(2n))``. For independent records two sharper bounds hold, for
    records that need not be identically distributed: ``n kl(c, p) <= ln(2/beta_1) + nats`` for the mean c and its
    expectation p (Hoeffding 1963, Theorem 1), with 15/16 of beta, and the empirical Bernstein bound of Maurer and
    Pontil (2009, Theorem 10 and Bernstein's inequality) with the rest.

    Examples
    --------
    >>> fixed = FixedQuestion(10_000, 0.05)
    >>> round(fixed.radius(0.0), 4)
    0.0137
    >>> round(fixed.half_width(0.01, 0.0, 0.0), 4), round(fixed.half_width(0.5, 0.0, 0.0), 4)
    (0.003, 0.0137)
    """

    __slots__ = ("_bernstein", "_hoeffding", "_kl", "independent", "inflation", "n")

    def __init__(self, n: int, beta: float, inflation: float = 1.0) -> None:
        self.n = n
        self.inflation = inflation
        self.independent = inflation == 1.0
        self._hoeffding = math.log(2.0 / beta) + _NATS
        self._kl = math.log(2.0 / ((1.0 - _VARIANCE_SHARE) * beta)) + _NATS
        self._bernstein = math.log(3.0 / (_VARIANCE_SHARE * beta)) + _NATS

    def radius(self, nats: float) -> float:
        """Bound the error of every mean by one number."""
        cost = self._kl if self.independent else self._hoeffding
        return math.sqrt(self.inflation * (cost + nats) / (2.0 * self.n)) * _SAFE

    def within(self, mean: float, nats: float, centre: float, reach: float, variance: Callable[[], float]) -> bool:
        """Whether the bounds say that the truth is within ``reach`` of ``centre``.

        Parameters
        ----------
        mean : float
            c, the mean that is seen.
        nats : float
            Code length of the question.
        centre, reach : float
            Claimed interval.
        variance : callable
            Returns the sample variance that is seen; called only when it can make a difference.
        """
        distance = abs(mean - centre)
        if distance > reach:
            return False
        if not self.independent:
            return distance + self.radius(nats) <= reach
        target = (self._kl + nats) * _SAFE / self.n
        low, high = centre - reach, centre + reach
        if (low <= 0.0 or _divergence(mean, low) >= target) and (high >= 1.0 or _divergence(mean, high) >= target):
            return True
        return self.n > 1 and distance + self._bernstein_radius(variance(), nats) <= reach

    def half_width(self, value: float, half_step: float, nats: float) -> float:
        """Bound the distance of the truth from ``value`` when the mean is within ``half_step`` of it."""
        if not self.independent:
            return min(1.0, self.radius(nats) + half_step)
        target = (self._kl + nats) * _SAFE / self.n
        above = _farthest(min(1.0, value + half_step), target) - value
        below = _farthest(min(1.0, 1.0 - value + half_step), target) - (1.0 - value)
        return min(1.0, max(above, below, half_step) + 1e-15)

    def _bernstein_radius(self, variance: float, nats: float) -> float:
        cost = self._bernstein + nats
        deviation = math.sqrt(variance * _SAFE) + math.sqrt(2.0 * cost / (self.n - 1))
        return (math.sqrt(2.0 * cost / self.n) * deviation + cost / (3.0 * self.n)) * _SAFE


def _divergence(c: float, p: float) -> float:
    """Relative entropy of a coin of probability c from one of probability p, in (0, 1)."""
    first = c * math.log(c / p) if c > 0.0 else 0.0
    return first + ((1.0 - c) * math.log((1.0 - c) / (1.0 - p)) if c < 1.0 else 0.0)


def _farthest(mean: float, target: float) -> float:
    """Largest p above the mean whose divergence from it is at most the target, rounded up."""
    if mean >= 1.0:
        return 1.0
    low, high = mean, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if _divergence(mean, middle) <= target else (low, middle)
    return high
