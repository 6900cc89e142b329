"""Simulated teams of a leaderboard: honest ones, and those that attack the holdout by what they are told.

A team proposes predictions and says what it expects of them, and learns what it is told. Records have a known
probability of the label 1 given their features, so that the truth of any predictions is known. Some records are easy;
the others are nearly coins, and whoever predicts them well on the holdout does not do so elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Boosting",
    "Climbing",
    "Copying",
    "Honest",
    "Junk",
    "OneRecord",
    "Pool",
    "Records",
    "Team",
    "Told",
    "thirty_teams",
]

Predictions = NDArray[np.int64]


@dataclass(frozen=True)
class Records:
    """Records of a holdout.

    Attributes
    ----------
    chances : ndarray
        Probability that a record's label is 1, given its features.
    labels : ndarray
        The labels that came out.
    """

    chances: NDArray[np.float64]
    labels: Predictions

    @classmethod
    def drawn(cls, n: int, rng: np.random.Generator, easy: float = 0.6) -> Records:
        """Draw records, a share of which has a label that features nearly tell."""
        sure = np.where(rng.random(n) < 0.5, 0.05, 0.95)
        chances = np.where(rng.random(n) < easy, sure, 0.4 + 0.2 * rng.random(n))
        return cls(chances, (rng.random(n) < chances).astype(np.int64))

    def truth(self, predictions: Predictions) -> float:
        """Return the expected accuracy of predictions, given the features."""
        return float(np.mean(np.where(predictions == 1, self.chances, 1.0 - self.chances)))

    def score(self, predictions: Predictions) -> float:
        """Return the accuracy on the holdout."""
        return float(np.mean(predictions == self.labels))


@dataclass(frozen=True)
class Told:
    """What a team learns of a submission that is answered."""

    value: float
    low: float
    high: float


class Team(Protocol):
    """Who submits."""

    @property
    def attacks(self) -> bool:
        """Whether it is after the holdout rather than a good model."""

    def propose(self) -> tuple[Predictions, float]:
        """Return predictions, and what the team expects of them."""

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        """Take notice of an answer."""


@dataclass
class Honest:
    """Submits better and better models, and expects their scores on as many other records.

    With ``skill`` it predicts a record's more probable label, otherwise a coin's.
    """

    records: Records
    rng: np.random.Generator
    skill: float
    attacks: bool = False

    def propose(self) -> tuple[Predictions, float]:
        self.skill = min(0.98, self.skill + 0.01 * float(self.rng.random()))
        probable, n = (self.records.chances > 0.5).astype(np.int64), self.records.labels.size
        predictions = np.where(self.rng.random(n) < self.skill, probable, self.rng.integers(0, 2, n))
        return predictions, self.rng.binomial(n, self.records.truth(predictions)) / n

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        return None


@dataclass
class Junk:
    """Submits coins, and expects that all of them are right."""

    records: Records
    rng: np.random.Generator
    attacks: bool = True

    def propose(self) -> tuple[Predictions, float]:
        return self.rng.integers(0, 2, self.records.labels.size), 1.0

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        return None


@dataclass
class Climbing:
    """Changes a twentieth of its best submission at random, and keeps what is told a higher value."""

    records: Records
    rng: np.random.Generator
    attacks: bool = True
    value: float = 0.5
    best: Predictions = field(init=False)

    def __post_init__(self) -> None:
        self.best = (self.records.chances > 0.5).astype(np.int64)

    def propose(self) -> tuple[Predictions, float]:
        changed = self.rng.random(self.best.size) < 0.05
        return np.where(changed, 1 - self.best, self.best), self.value

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        if told is not None and told.value > self.value:
            self.best, self.value = predictions, told.value


@dataclass
class Pool:
    """What teams that work together have been told: how much each nearly random record moved the score."""

    records: Records
    weights: NDArray[np.float64] = field(init=False)
    values: list[float] = field(default_factory=list)
    reach: float = 0.02

    def __post_init__(self) -> None:
        self.weights = np.zeros(self.records.labels.size)

    @property
    def middle(self) -> float:
        """The mean of what was told."""
        return float(np.mean(self.values)) if self.values else 0.7


@dataclass
class Boosting:
    """Learns labels from answers: many submissions that are random on hard records, then the vote of the better ones.

    What it expects lies so that the end of the certified interval is where half of its submissions are.
    """

    records: Records
    rng: np.random.Generator
    pool: Pool
    attacks: bool = True
    turn: int = 0

    def propose(self) -> tuple[Predictions, float]:
        self.turn += 1
        chances, n = self.records.chances, self.records.labels.size
        probable, hard = (chances > 0.5).astype(np.int64), np.abs(chances - 0.5) < 0.2
        if self.turn % 8 == 0:
            scale = np.abs(self.pool.weights).max() or 1.0
            vote = (chances - 0.5) + self.pool.weights / scale
            return np.where(hard, (vote > 0).astype(np.int64), probable), min(1.0, self.pool.middle + 0.05)
        tried = np.where(hard, self.rng.integers(0, 2, n), probable)
        return tried, min(1.0, self.pool.middle + self.pool.reach)

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        if told is None or self.turn % 8 == 0:
            return
        self.pool.values.append(told.value)
        self.pool.reach = 0.5 * (told.high - told.low)
        hard = np.abs(self.records.chances - 0.5) < 0.2
        self.pool.weights += np.where(hard, (told.value - self.pool.middle) * (2 * predictions - 1), 0.0)


@dataclass
class Copying:
    """Submits another team's predictions under its own name, and expects something else each time.

    Two answers about the same predictions would tell more than one, were they not two answers about one number.
    """

    records: Records
    rng: np.random.Generator
    copied: Honest
    attacks: bool = True

    def propose(self) -> tuple[Predictions, float]:
        predictions, expected = self.copied.propose()
        return predictions, float(np.clip(expected + 0.03 * self.rng.normal(), 0.0, 1.0))

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        return None


@dataclass
class OneRecord:
    """Changes one record of its first submission at a time, and expects the very end of the last interval."""

    records: Records
    rng: np.random.Generator
    attacks: bool = True
    expected: float = 0.75
    record: int = 0

    def propose(self) -> tuple[Predictions, float]:
        self.record += 1
        predictions = (self.records.chances > 0.5).astype(np.int64)
        predictions[self.record] = 1 - predictions[self.record]
        return predictions, self.expected

    def learn(self, predictions: Predictions, told: Told | None) -> None:
        if told is not None:
            self.expected = told.high


def thirty_teams(records: Records, rng: np.random.Generator, attackers: int) -> list[Team]:
    """Return 30 teams, of which so many attack: of six, two boost together.

    The others send junk, climb, submit what an honest team did, and change single records. All boosters work together.
    """
    together = Pool(records)
    honest = [Honest(records, rng, skill) for skill in np.linspace(0.7, 0.1, 30 - attackers).tolist()]
    kinds: cycle[Callable[[], Team]] = cycle(
        (
            lambda: Boosting(records, rng, together),
            lambda: Junk(records, rng),
            lambda: Climbing(records, rng),
            lambda: Boosting(records, rng, together),
            lambda: Copying(records, rng, honest[0]),
            lambda: OneRecord(records, rng),
        )
    )
    return [*honest, *(make() for make in islice(kinds, attackers))]
