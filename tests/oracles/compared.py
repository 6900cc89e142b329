"""All analysts of small depth who compare models, against the program itself: the largest probability of a false claim.

Outcomes of the holdout are enumerated with their probabilities. A query has a truth, what is known of it before, and
what the program reads at each outcome; after each, the outcomes part by what was shown, and by whatever else a broken
twin shows. By backward induction the best analyst is found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thresholdout.mechanisms import Known, Outcome, Part
from thresholdout.mechanisms.base import PairedCounts
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsState, Reading
from thresholdout.noise.sources import SeededNoise

__all__ = ["Compared", "Posed", "differences", "drawn", "given_features", "scored", "wins"]

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Posed:
    """A query: its truth in units of the range, and the program's reading of it at each outcome."""

    truth: float
    train: float
    known: Known
    readings: tuple[Hashable, ...]
    made: Callable[[Any], Reading]


def drawn(shares: Sequence[float], n: int) -> tuple[list[Counts], list[float]]:
    """Return how often each value occurs among n records of one law, and the probability of that."""
    counts = [c for c in itertools.product(range(n + 1), repeat=len(shares)) if sum(c) == n]
    chances = [
        math.factorial(n) * math.prod(p**k / math.factorial(k) for p, k in zip(shares, count, strict=True))
        for count in counts
    ]
    return counts, chances


def wins(
    claims: ClaimsMechanism,
    counts: Sequence[Counts],
    shares: Sequence[float],
    kinds: Sequence[int],
    train: PairedCounts,
) -> Posed | None:
    """Return a query about the win rate, each value being a loss (-1), a tie or a win (1)."""
    won, lost = (sum(p for p, kind in zip(shares, kinds, strict=True) if kind == side) for side in (1, -1))
    if won + lost == 0.0:
        return None
    seen = tuple(
        tuple(sum(k for k, kind in zip(count, kinds, strict=True) if kind == side) for side in (1, -1))
        for count in counts
    )
    known, n = Known(difference=True, paired_counts=train), sum(counts[0])
    return Posed(
        won / (won + lost),
        train.share,
        known,
        seen,
        lambda pair: claims.paired_counts(PairedCounts(pair[0], pair[1], n), known),
    )


def differences(
    claims: ClaimsMechanism, counts: Sequence[Counts], shares: Sequence[float], kinds: Sequence[int], train: float
) -> Posed:
    """Return a query about a difference, each value being a loss (-1), a tie or a win (1)."""
    truth = 0.5 * (1.0 + sum(p * kind for p, kind in zip(shares, kinds, strict=True)))
    seen = tuple(
        tuple(sum(k for k, kind in zip(count, kinds, strict=True) if kind == side) for side in (1, -1))
        for count in counts
    )
    known, n = Known(0.1, difference=True, trinomial=True), sum(counts[0])

    def made(pair: Any) -> Reading:
        signs = np.repeat([1.0, -1.0, 0.0], [pair[0], pair[1], n - sum(pair)])
        return claims.read(signs, n, (-1, 1), "values", known)

    return Posed(truth, train, known, seen, made)


def scored(
    claims: ClaimsMechanism, counts: Sequence[Counts], shares: Sequence[float], kinds: Sequence[int], train: float
) -> Posed:
    """Return a query about a mean, each value being 0 or 1."""
    truth = sum(p for p, kind in zip(shares, kinds, strict=True) if kind == 1)
    seen = tuple(sum(k for k, kind in zip(count, kinds, strict=True) if kind == 1) for count in counts)
    known, n = Known(binary=True), sum(counts[0])
    return Posed(truth, train, known, seen, lambda k: claims.read(np.arange(n) < k, n, (0, 1), "values", known))


def given_features(
    claims: ClaimsMechanism, expectations: Sequence[float], differ: Sequence[int], binary: bool, train: float
) -> Posed:
    """Return a query about two models on the records where they differ; 1 and -1 say who is right if the label is 1.

    Labels are 0 or 1, bit i of an outcome that of record i. Without `binary` a label 0 is a tie.
    """
    n = len(expectations)
    inside = [i for i in range(n) if differ[i]]

    def value(i: int, label: int) -> float:
        return 0.5 * (1 + differ[i] * (label or (-1 if binary else 0)))

    truth = sum(p * value(i, 1) + (1 - p) * value(i, 0) for i, p in ((i, expectations[i]) for i in inside)) / len(
        inside
    )
    seen = tuple(tuple(sorted(value(i, x >> i & 1) for i in inside)) for x in range(1 << n))
    part = Part(len(inside), None, 1e3)
    known = Known(None if binary else 0.05, binary, difference=True, part=part)
    size = len(inside)
    return Posed(truth, train, known, seen, lambda x: claims.read(np.array(x), size, (0, 1), "values", known))


@dataclass
class Compared:
    """The best analyst who asks some queries of the program.

    Parameters
    ----------
    claims : Claims
        Without noise.
    chances : sequence of float
        Of the outcomes.
    queries : sequence of Posed
        Whatever may be asked, as often as one likes.
    shows : callable
        What is shown of a reading besides the answer: nothing, but for broken twins.
    """

    claims: ClaimsMechanism
    chances: Sequence[float]
    queries: Sequence[Posed]
    shows: Callable[[Hashable], Hashable] = lambda reading: None
    _values: dict[tuple[int, ClaimsState, int], float] = field(default_factory=dict)
    _steps: dict[tuple[ClaimsState, int, Hashable], tuple[ClaimsState, Outcome]] = field(default_factory=dict)

    def worst(self, depth: int) -> float:
        """Return the largest probability of a false claim within so many queries."""
        return self._value((1 << len(self.chances)) - 1, self.claims.start(SeededNoise(0)), depth)

    def _step(self, state: ClaimsState, number: int, reading: Hashable) -> tuple[ClaimsState, Outcome]:
        key = (state, number, reading)
        if key not in self._steps:
            posed = self.queries[number]
            self._steps[key] = self.claims.step(state, posed.train, posed.made(reading), SeededNoise(0))
        return self._steps[key]

    def _value(self, seen: int, state: ClaimsState, depth: int) -> float:
        key = (seen, state, depth)
        if depth == 0 or not seen:
            return 0.0
        if key not in self._values:
            self._values[key] = max(self._asked(seen, state, depth, k) for k in range(len(self.queries)))
        return self._values[key]

    def _asked(self, seen: int, state: ClaimsState, depth: int, number: int) -> float:
        posed, total = self.queries[number], 0.0
        children: dict[Hashable, tuple[ClaimsState, bool, int]] = {}
        for place, reading in enumerate(posed.readings):
            if seen >> place & 1:
                after, outcome = self._step(state, number, reading)
                assert outcome.interval is not None
                false = not outcome.interval[0] <= posed.truth <= outcome.interval[1]
                shown = (after, outcome, self.shows(reading))
                children[shown] = (after, false, (children[shown][2] if shown in children else 0) | 1 << place)
        for after, false, part in children.values():
            if false:
                total += math.fsum(p for place, p in enumerate(self.chances) if part >> place & 1)
            elif depth > 1:
                total += self._value(part, after, depth - 1)
        return total
