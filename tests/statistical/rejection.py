"""Run sessions until it is decided whether more of them are broken than a valid mechanism breaks.

A valid mechanism breaks a session with probability at most ``share``. It is rejected where more than `most_broken` of a
fixed number of sessions are broken, with probability at most ``rate``. The test ends before the last session

- where the sessions that are left cannot change its decision;
- at each sixteenth of the sessions, where so few are broken that rejection is out of the question.

The second rule only accepts, so the error rate holds. Let q be the share of broken sessions at which all sessions
reject but for a probability of 1e-6. A mechanism that breaks a share of q or more is missed with probability at most
2e-6: one half by all sessions, the other by the early ends together. Mechanisms that break less are missed at most
0.003 more often than by all sessions. `test_rejection` computes the numbers exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from scipy.optimize import brentq
from scipy.stats import binom

RATE = 1e-9
MISSED = 1e-6
PARTS = 16


class Kept:
    """Sessions at which several counts look; each is run once, when the first count asks for it."""

    def __init__(self, broken: Iterator[bool]) -> None:
        self._next = broken
        self._broken: list[bool] = []

    def __getitem__(self, place: int) -> bool:
        while len(self._broken) <= place:
            self._broken.append(next(self._next))
        return self._broken[place]


def most_broken(sessions: int, share: float, rate: float = RATE) -> int:
    """Return how many broken sessions a valid mechanism exceeds with at most this probability."""
    return int(binom.isf(rate, sessions, share))


@cache
def surely_rejected(sessions: int, share: float, rate: float = RATE) -> float:
    """Return the share of broken sessions that all sessions together miss with a probability of `MISSED`."""
    most = most_broken(sessions, share, rate)
    if most >= sessions:
        raise ValueError(f"sessions must be so many that some number of broken ones rejects; got {sessions}.")
    return float(brentq(lambda q: binom.cdf(most, sessions, q) - MISSED, share, 1.0, xtol=1e-12))


@cache
def early_ends(sessions: int, share: float, rate: float = RATE) -> dict[int, int]:
    """Return, by the number of sessions that were run, up to how many broken ones end the test."""
    q = surely_rejected(sessions, share, rate)
    ends = {}
    for run in (sessions * part // PARTS for part in range(1, PARTS)):
        few = int(binom.ppf(MISSED / (PARTS - 1), run, q))  # the smallest with a larger probability
        if few > 0:
            ends[run] = few - 1
    return ends


def too_many(broken: Iterable[bool], sessions: int, share: float, rate: float = RATE) -> bool:
    """Run at most so many sessions; return whether more are broken than a valid mechanism breaks."""
    most, ends = most_broken(sessions, share, rate), early_ends(sessions, share, rate)
    found = 0
    for run, one in enumerate(broken, 1):
        found += one
        if found > most:
            return True
        if found + sessions - run <= most or found <= ends.get(run, -1):
            return False
    raise ValueError(f"there must be {sessions} sessions; got fewer.")
