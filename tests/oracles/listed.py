"""The best analyst against `ClaimsMechanism` itself who also asks lists of two, the best of two, or the last query."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tests.oracles.risk_left import Program
from thresholdout.mechanisms import Known, Outcome
from thresholdout.mechanisms.claims.reading import Reading

__all__ = ["ListProgram"]

Interval = tuple[float, float]
Shown = tuple[int, tuple[Interval, ...]]
"""The place of the best, or -1 for all, and intervals."""

_Queries = tuple[tuple[tuple[int, ...], float], tuple[tuple[int, ...], float]]


@dataclass
class ListProgram(Program):
    """As `Program`; the list's training values are ``pairs``, what it keeps for later queries is one of ``keeps``."""

    keeps: tuple[float, ...] = (0.0, 0.5)
    pairs: tuple[tuple[float, float], ...] = ((0.5, 0.5), (0.0, 1.0))
    _lists: dict[tuple[object, ...], tuple[int, Shown]] = field(default_factory=dict)
    _finals: dict[tuple[int, float, int], Interval] = field(default_factory=dict)

    def _value(self, seen: int, state: int, depth: int) -> float:
        if depth == 0 or not seen or self.mechanism.refusal(self._states[state]) is not None:
            return 0.0
        key = (seen, state, depth)
        if key not in self._memo:
            best = super()._value(seen, state, depth)
            two = itertools.combinations(self._parts, 2)
            for (a, b), trains, reserve in itertools.product(two, self.pairs, self.keeps if depth > 1 else (0.0,)):
                best = max(best, self._listed(seen, state, depth, (a, b), trains, reserve, best_only=False))
                best = max(best, self._listed(seen, state, depth, (a, b), trains, reserve, best_only=True))
            for (parts, truth), train in itertools.product(self._parts, self.trains):
                best = max(best, self._checked(seen, state, parts, truth, train))
            self._memo[key] = best
        return self._memo[key]

    def _checked(self, seen: int, state: int, parts: tuple[int, ...], truth: float, train: float) -> float:
        """A final check, after which nothing is answered."""
        total = 0.0
        for count, part in enumerate(parts):
            key = (state, train, count)
            if seen & part and key not in self._finals:
                _, outcome = self.mechanism.final(self._states[state], train, self._reading(count), self._noise)
                self._finals[key] = _stated([outcome])[0]
            if seen & part and not self._finals[key][0] <= truth <= self._finals[key][1]:
                total += self._mass_of(seen & part)
        return total

    def _told(
        self, state: int, counts: tuple[int, int], trains: tuple[float, float], reserve: float, best_only: bool
    ) -> tuple[int, Shown]:
        """Return the state after a list, and what is shown: intervals, or the best one and its place."""
        key = (state, counts, trains, reserve, best_only)
        if key not in self._lists:
            asked = [(train, self._reading(count)) for train, count in zip(trains, counts, strict=True)]
            if best_only:
                after, outcome, place = self.mechanism.step_best(self._states[state], asked, self._noise, reserve, True)
                self._lists[key] = self._number(after), (place, _stated([outcome]))
            else:
                after, outcomes = self.mechanism.step_all(self._states[state], asked, self._noise, reserve)
                self._lists[key] = self._number(after), (-1, _stated(outcomes))
        return self._lists[key]

    def _reading(self, count: int) -> Reading:
        n = len(self.model.expectations)
        values: NDArray[np.bool_] = np.arange(n) < count
        return self.mechanism.read(values, n, (0, 1), "values", Known(binary=True))

    def _listed(
        self,
        seen: int,
        state: int,
        depth: int,
        queries: _Queries,
        trains: tuple[float, float],
        reserve: float,
        *,
        best_only: bool,
    ) -> float:
        children: dict[tuple[int, Shown], int] = {}
        (first, _), (second, _) = queries
        for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(second)):
            if seen & a & b:
                told = self._told(state, (i, j), trains, reserve, best_only)
                children[told] = children.get(told, 0) | (seen & a & b)
        total = 0.0
        for (after, shown), part in children.items():
            total += self._value(part, after, depth - 1) if _holds(shown, queries) else self._mass_of(part)
        return total

    def _mass_of(self, part: int) -> float:
        return sum(p for x, p in enumerate(self._law) if part >> x & 1)


def _stated(outcomes: Sequence[Outcome]) -> tuple[Interval, ...]:
    return tuple(outcome.interval for outcome in outcomes if outcome.interval is not None)


def _holds(shown: Shown, queries: _Queries) -> bool:
    """Whether all intervals contain their truths, or that of the best one does, and no other truth is above it."""
    place, intervals = shown
    truths = [truth for _, truth in queries]
    if place < 0:
        return all(low <= truth <= high for (low, high), truth in zip(intervals, truths, strict=True))
    ((low, high),) = intervals
    return low <= truths[place] and max(truths) <= high
