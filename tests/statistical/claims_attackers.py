"""Attackers of `ClaimsMechanism` that know the truths: which sessions have an interval that misses its truth.

A session is broken where any of its intervals misses its truth, which a valid mechanism allows with probability at
most `BETA`; `rejection` says how many broken sessions are no accident.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from graphs import Groups
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms import Known
from thresholdout.mechanisms.base import Grouped
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsParameters
from thresholdout.noise.sources import SeededNoise

BETA = 0.1


@dataclass
class Session:
    """One holdout of independent uniform numbers, from which queries with any truth are made, and the mechanism."""

    mechanism: ClaimsMechanism
    n: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.noise = SeededNoise(int(self.rng.integers(2**62)))
        self.state = self.mechanism.start(self.noise)
        self.broken = False

    def ask(self, values: NDArray[np.float64], train: float, truth: float, known: Known) -> tuple[float, float]:
        """Ask about values of which the truth is known to the test, and note whether the interval misses it."""
        reading = self.mechanism.read(values, self.n, (0, 1), "values", known)
        self.state, outcome = self.mechanism.step(self.state, min(1.0, max(0.0, train)), reading, self.noise)
        assert outcome.interval is not None
        low, high = outcome.interval
        self.broken |= not low <= truth <= high
        return low, high

    def ask_list(
        self, asked: list[tuple[float, NDArray[np.float64]]], truths: list[float], known: Known, keep: float, best: bool
    ) -> list[tuple[float, float]]:
        """Ask a list, or for its best one, and note whether an interval misses its truth, or a truth is above it."""
        readings = [(train, self.mechanism.read(values, self.n, (0, 1), "values", known)) for train, values in asked]
        if best:
            self.state, outcome, place = self.mechanism.step_best(self.state, readings, self.noise, keep, True)
            assert outcome.interval is not None
            low, high = outcome.interval
            self.broken |= not (low <= truths[place] and truths[place] <= high)
            self.broken |= known.binary and known.groups is None and max(truths) > high
            return [outcome.interval]
        self.state, outcomes = self.mechanism.step_all(self.state, readings, self.noise, keep)
        intervals = [outcome.interval for outcome in outcomes if outcome.interval is not None]
        for (low, high), truth in zip(intervals, truths, strict=True):
            self.broken |= not low <= truth <= high
        return intervals

    def claimed(self, train: float, known: Known) -> tuple[float, float]:
        """Return the interval of the first claim: public, and what an attacker computes before asking."""
        return self.mechanism.first_claim(self.state, train, known).interval


def _just_outside(session: Session, shape: Shape) -> None:
    """Truths a hair outside of what would be claimed, on either side, again and again."""
    n = session.n
    for turn in range(12):
        train = 0.8 if turn % 2 else 0.3
        known = shape.known(train, n)
        low, high = session.claimed(train, known)
        truth = low - 1e-6 if turn % 4 < 2 and low > 0.01 else high + 1e-6
        if not 0.0 < truth < 1.0:
            continue
        session.ask(shape.draw(session.rng, n, truth), train, truth, known)
        if session.broken:
            return


def _harvested(session: Session, shape: Shape) -> None:
    """Useless features, kept where the holdout answered higher, then their majority with a flattering value."""
    n = session.n
    known = shape.known(0.5, n)
    kept = []
    for _ in range(25):
        values = shape.draw(session.rng, n, 0.5)
        low, high = session.ask(values, 0.5, 0.5, known)
        if low + high > 1.0:
            kept.append(values)
    for train in (0.5, 0.7):
        if kept:
            majority = (np.mean(kept, axis=0) > 0.5).astype(float)
            session.ask(majority, train, 0.5, replace(known, variance=None))  # useless features: a coin is a coin


def _misleading(session: Session, shape: Shape) -> None:
    """Training values that have nothing to do with the holdout."""
    for _ in range(15):
        truth = float(session.rng.choice([0.02, 0.5, 0.9, 0.99]))
        train = float(session.rng.random())
        session.ask(shape.draw(session.rng, session.n, truth), train, truth, shape.known(train, session.n))


def _repeated(session: Session, shape: Shape) -> None:
    """One query forty times, by its last answer's end."""
    truth = 0.7
    values, train = shape.draw(session.rng, session.n, truth), 0.72
    for turn in range(40):
        low, high = session.ask(values, train, truth, shape.known(train, session.n))
        train = (low, high, 0.5 * (low + high))[turn % 3]


def _listed(session: Session, shape: Shape) -> None:
    """Lists of useless features, then the majority of those that did well, as a list and as the best of one."""
    n = session.n
    known, kept = shape.known(0.5, n), []
    for turn in range(4):
        features = [shape.draw(session.rng, n, 0.5) for _ in range(6)]
        intervals = session.ask_list([(0.5, values) for values in features], [0.5] * 6, known, 0.3, best=False)
        kept += [values for values, (low, high) in zip(features, intervals, strict=True) if low + high > 1.0]
        if kept:
            majority = (np.mean(kept, axis=0) > 0.5).astype(float)
            coin = replace(known, variance=None)
            session.ask_list([(0.5, majority), (0.7, 1 - majority)], [0.5, 0.5], coin, 0.3, best=turn % 2 > 0)
            session.ask(majority, 0.7, 0.5, coin)


def _best_of_many(session: Session, shape: Shape) -> None:
    """The luckiest of many: all truths are the same, so the best value is always too large."""
    truth = 0.5
    for _ in range(3):
        asked = [(truth, shape.draw(session.rng, session.n, truth)) for _ in range(20)]
        session.ask_list(asked, [truth] * 20, shape.known(truth, session.n), 0.3, best=True)


@dataclass(frozen=True)
class Shape:
    """How values with a truth are drawn, and what is known of them before.

    ``sizes`` are those of declared groups, for a number of records; ``bets`` is whether they are bet on by their sums,
    and ``split`` in how many parts each group is declared: 1 where the declaration is right.
    """

    draw: Callable[[np.random.Generator, int, float], NDArray[np.float64]]
    variance: Callable[[float], float | None]
    binary: bool
    groups: int = 1
    inflation: float | None = None
    sizes: Callable[[int], list[int]] | None = None
    bets: bool = True
    split: int = 1

    def known(self, train: float, n: int) -> Known:
        known = Known(variance=self.variance(train), binary=self.binary)
        if self.sizes is None or not self.bets:
            return known
        labels = _declared(self.sizes, n, self.split)
        sizes = GroupSizes.of(np.bincount(labels))
        return replace(known, groups=Grouped(labels, sizes, 0.3, 200.0, 40.0))

    def mechanism(self, n: int, noise: float) -> ClaimsMechanism:
        if self.sizes is not None:
            plain = ClaimsParameters(noise=noise)
            return ClaimsMechanism(plain.for_records(Groups(_declared(self.sizes, n, self.split)), 1 - BETA), n)
        effective = n / self.groups if self.groups > 1 else None
        inflation = float(self.groups) if self.inflation is None else self.inflation
        parameters = ClaimsParameters(confidence=1 - BETA, noise=noise, effective=effective, inflation=inflation)
        return ClaimsMechanism(parameters, n)


def equal_sizes(n: int) -> list[int]:
    """Groups of eight."""
    return [8] * (n // 8)


def large_sizes(n: int) -> list[int]:
    """Groups of 24."""
    return [24] * (n // 24)


def heavy_sizes(n: int) -> list[int]:
    """Half of the records in groups, the k-th with a k-th of the size of the largest one, n/12; the rest alone."""
    large: list[int] = []
    while sum(large) < n // 2:
        large.append(max(2, n // (12 * (len(large) + 1))))
    return [*large, *[1] * (n - sum(large))]


@cache
def _declared(sizes: Callable[[int], list[int]], n: int, split: int) -> NDArray[np.int64]:
    """Return the declared group of each record."""
    parts = [piece for size in sizes(n) for piece in _parts(size, split)]
    return np.repeat(np.arange(len(parts)), parts)


def _parts(size: int, split: int) -> list[int]:
    number = min(size, split)
    return [size // number + (k < size % number) for k in range(number)]


def clustered(sizes: Callable[[int], list[int]]) -> Callable[[np.random.Generator, int, float], NDArray[np.float64]]:
    """Draw coins: four of five groups are one coin each. Large groups have another share than small ones."""

    def draw(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
        own = np.array(sizes(n))
        large = own > np.mean(own)
        more = min(truth, 1.0 - truth) * abs(2.0 * truth - 1.0) * 0.5 * bool(large.any())
        weight = float(own[large].sum()) / max(1.0, float(own[~large].sum()))
        shares = np.repeat(np.where(large, truth + more, truth - more * min(weight, 1.0)), own)
        if weight > 1.0:
            shares = np.repeat(np.where(large, truth + more / weight, truth - more), own)
        alone, together = rng.random(n), np.repeat(rng.random(own.size), own)
        same = np.repeat(rng.random(own.size) < 0.8, own)
        return np.asarray(np.where(same, together, alone) < shares, dtype=np.float64)

    return draw


def _coins(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    return (rng.random(n) < truth).astype(float)


def _between(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Two values, a third of the way to the ends: a small variance."""
    reach = 0.3 * min(truth, 1 - truth)
    return truth + reach * np.where(rng.random(n) < 0.5, -1.0, 1.0)


def _skewed(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Mostly one value, seldom the far end: what a bet on a small variance fears."""
    rare = 0.02
    if truth < rare:
        return _coins(rng, n, truth)
    return np.where(rng.random(n) < rare, 1.0, (truth - rare) / (1 - rare))


def _differences(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    """Two models that differ on few records: mostly a half, at times 0 or 1."""
    share = max(0.06, 2 * abs(truth - 0.5))
    wins = 0.5 + (truth - 0.5) / share
    return np.where(rng.random(n) < share, (rng.random(n) < wins).astype(float), 0.5)


def _grouped(rng: np.random.Generator, n: int, truth: float) -> NDArray[np.float64]:
    return np.repeat((rng.random(n // 3) < truth).astype(float), 3)


SHAPES = {
    "binary": Shape(_coins, lambda train: None, True),
    "declared binary": Shape(_between, lambda train: None, True),
    "bets": Shape(_between, lambda train: 0.09 * min(train, 1 - train) ** 2, False),
    "bets on a variance that is wrong": Shape(_skewed, lambda train: 1e-4, False),
    "comparisons": Shape(_differences, lambda train: 0.015, False),
    "groups": Shape(_grouped, lambda train: None, True, groups=3),
    "hoeffding": Shape(_grouped, lambda train: None, True, inflation=3.0),
}
GROUPED = {
    "equal groups": Shape(clustered(equal_sizes), lambda train: None, True, sizes=equal_sizes),
    "heavy groups": Shape(clustered(heavy_sizes), lambda train: None, True, sizes=heavy_sizes),
    "heavy groups by their sizes": Shape(
        clustered(heavy_sizes), lambda train: None, True, sizes=heavy_sizes, bets=False
    ),
}
TAKEN_FOR_SINGLE = {
    "equal groups": Shape(clustered(large_sizes), lambda train: None, True, sizes=large_sizes, split=24),
    "heavy groups by their sizes": Shape(
        clustered(large_sizes), lambda train: None, True, sizes=large_sizes, bets=False, split=24
    ),
}
"""Large groups that are declared as single records: what must be rejected."""
ATTACKS = {
    "just outside": _just_outside,
    "harvested": _harvested,
    "misleading": _misleading,
    "repeated": _repeated,
    "listed": _listed,
    "best of many": _best_of_many,
}


def broken_sessions(
    attack: str, kind: str, noise: float, n: int = 60, shapes: dict[str, Shape] = SHAPES
) -> Iterator[bool]:
    """Say of one session after the other whether an attack breaks it; those of two noises or kinds are independent."""
    place = [*SHAPES, *GROUPED].index(kind)
    mechanism = shapes[kind].mechanism(n, noise)
    for seed in count():
        session = Session(mechanism, n, np.random.default_rng([seed, len(attack), place, round(100 * noise)]))
        ATTACKS[attack](session, shapes[kind])
        yield session.broken
