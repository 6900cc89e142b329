"""Small interactions with the guard, enumerated: all records, all histories, and the noise's whole law.

Records are fair bits that are independent, or come in identical pairs. A query flips some of the bits: its value in
a state is the mean of the bits that agree with its mask, so its truth is 1/2 whatever the mask. The guard answers by
the train value 1/2 unless the noisy distance exceeds the threshold, and otherwise with a noisy mean, rounded to a grid.
Nothing here draws noise or uses the certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Masks = NDArray[np.int64]

Answer = int | None  # a point of the answer grid, or None for the train value
History = tuple[Answer, ...]
Analyst = Callable[[History, Floats], int]


@dataclass(frozen=True)
class Law:
    """A law of integer noise: probabilities of -reach, ..., reach."""

    probabilities: Floats

    @classmethod
    def discrete_laplace(cls, scale: float, reach: int) -> Law:
        """Return the discrete Laplace law, its tails beyond the reach moved to the ends."""
        weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
        weights[[0, -1]] /= -np.expm1(-1 / scale)
        return cls(weights / weights.sum())

    @classmethod
    def none(cls) -> Law:
        """Return the law of no noise."""
        return cls(np.ones(1))

    @property
    def values(self) -> Masks:
        reach = len(self.probabilities) // 2
        return np.arange(-reach, reach + 1)

    def at_least(self, k: Masks) -> Floats:
        """``P(L >= k)``."""
        tails = np.r_[np.cumsum(self.probabilities[::-1])[::-1], 0.0]
        reach = len(self.probabilities) // 2
        return np.asarray(tails[np.clip(k + reach, 0, len(self.probabilities))])


@dataclass(frozen=True)
class Round:
    """An answered round: what had happened, the query, its answer, and how likely all this is in each state."""

    history: History
    mask: int
    answer: Answer
    likelihood: Floats
    hits: int


@dataclass(frozen=True)
class SmallGuard:
    """n records in groups of identical bits; means are integers from 0 to n, and so are threshold and noise.

    ``levels`` is K: answers are clipped to [0, n] and rounded to multiples of n/(K-1).
    """

    n: int
    threshold: int
    noises: tuple[Law, Law, Law]
    budget: int
    rounds: int
    levels: int
    group: int = 1

    @cached_property
    def states(self) -> Masks:
        """All states that the records can be in, one row of bits each."""
        free = self.n // self.group
        bits = (np.arange(1 << free)[:, None] >> np.arange(free)) & 1
        return np.repeat(bits, self.group, axis=1)

    def sums(self, mask: int) -> Masks:
        """n times the value of a query in each state."""
        flips = (mask >> np.arange(self.n)) & 1
        return np.asarray((self.states ^ flips).sum(axis=1))

    def truth(self) -> float:
        return 0.5

    def play(self, analyst: Analyst) -> Iterator[Round]:
        """Yield every answered round of every possible interaction."""
        thresholds = self.noises[0].probabilities
        start = np.broadcast_to(thresholds, (len(self.states), len(thresholds)))
        yield from self._after((), 0, start, analyst)

    def _after(self, history: History, hits: int, joint: Floats, analyst: Analyst) -> Iterator[Round]:
        """Continue from a history; ``joint[x, d]`` = P(history, threshold noise d | state x)."""
        if len(history) == self.rounds or hits == self.budget:
            return
        mask = analyst(history, joint.sum(axis=1))
        sums = self.sums(mask)
        gaps = np.abs(2 * sums - self.n)
        hit = self.noises[1].at_least(2 * self.threshold + 2 * self.noises[0].values[None, :] - gaps[:, None] + 1)
        stay = joint * (1.0 - hit)
        if stay.any():
            yield Round(history, mask, None, stay.sum(axis=1), hits)
            yield from self._after((*history, None), hits, stay, analyst)
        passed = (joint * hit).sum(axis=1)
        noisy = np.clip(sums[:, None] + self.noises[2].values[None, :], 0, self.n)
        answers = np.floor(noisy * (self.levels - 1) / self.n + 0.5).astype(np.int64)
        for answer in range(self.levels):
            given = ((answers == answer) * self.noises[2].probabilities).sum(axis=1)
            likelihood = passed * given
            if not likelihood.any():
                continue
            yield Round(history, mask, answer, likelihood, hits)
            fresh = likelihood[:, None] * self.noises[0].probabilities[None, :]
            yield from self._after((*history, answer), hits + 1, fresh, analyst)


def overfitter(guard: SmallGuard) -> Analyst:
    """Return the analyst who asks what his posterior makes most of; random masks while he knows nothing."""

    def ask(history: History, likelihood: Floats) -> int:
        ones = guard.states.T.astype(np.float64) @ likelihood / likelihood.sum()
        flips = np.where(np.abs(ones - 0.5) > 1e-9, ones < 0.5, np.arange(guard.n) % (len(history) + 2) == 0)
        return int(flips @ (1 << np.arange(guard.n)))

    return ask
