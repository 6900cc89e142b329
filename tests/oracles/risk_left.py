"""All analysts of small depth on small models: the largest probability that some published claim is false.

Nothing is drawn. A set of outcomes (of the records, and of a secret edge noise where there is one) is an integer with a
bit for each; by backward induction over what has been published, the best analyst is found for a rule of outcomes
(`Outcomes`), or for the program itself (`Program`), which is stepped with every holdout.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import comb
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from thresholdout.mechanisms import Known
from thresholdout.mechanisms.claims import ClaimsMechanism, ClaimsState
from thresholdout.noise.sources import SeededNoise

__all__ = ["SOUND", "Model", "Outcomes", "Program", "Rule", "coins"]

Shares = tuple[float, float, float, float]


@dataclass(frozen=True)
class Rule:
    """Levels and what is left of R: (level of confirmed, left after it, level of a direction, left after it).

    ``free`` are partitions that are shown without an outcome: "raised" (a query that fails on some outcomes),
    "width" (a width that depends on the holdout's variance). ``level`` is how the probability of *confirmed* is
    computed.
    """

    shares: Callable[[float, float], Shares]
    free: str | None = None
    level: Literal["exact", "without noise", "one law"] = "exact"


SOUND = Rule(lambda risk, aside: (risk - aside, risk - aside, aside / 2, aside / 2))


def coins(expectations: Sequence[float]) -> list[float]:
    """Return the probability of each of 2^n outcomes of independent records."""
    law = [1.0]
    for p in expectations:
        law = [q * side for side in (1 - p, p) for q in law]  # bit i of the outcome is record i
    return law


@dataclass(frozen=True)
class Model:
    """Records that are 0 or 1, queries (each record's own function of its value), and a secret noise of the edges."""

    expectations: tuple[float, ...]
    signed: bool = True  # also 1 - x, and 1, as functions of a record
    noise: tuple[tuple[int, float], ...] = ((0, 1.0),)

    @cached_property
    def law(self) -> list[float]:
        """Probability of each outcome: records in the low bits, noise outside."""
        return [mass * p for _, mass in self.noise for p in coins(self.expectations)]

    @cached_property
    def queries(self) -> list[tuple[tuple[int, ...], float]]:
        """For each query K at each of the 2^n outcomes of the records, and the expectation of K / n."""
        n = len(self.expectations)
        kinds = ((0, 0), (0, 1), (1, 0), (1, 1)) if self.signed else ((0, 0), (0, 1))
        found = {}
        for each in itertools.product(kinds, repeat=n):
            counts = tuple(sum(g[x >> i & 1] for i, g in enumerate(each)) for x in range(1 << n))
            truth = sum(g[0] * (1 - p) + g[1] * p for g, p in zip(each, self.expectations, strict=True)) / n
            found[counts] = truth
        return list(found.items())


@dataclass
class Outcomes:
    """The best analyst against a rule: at each node any query, any edges, any share set aside, any claims."""

    model: Model
    rule: Rule
    _memo: dict[tuple[int, float, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        outcomes = range(1 << len(self.model.expectations))
        actions: dict[tuple[int, int, int], float] = {}
        self._free: set[tuple[int, ...]] = set()
        for counts, truth in self.model.queries:
            n = len(self.model.expectations)
            widths: dict[int, int] = {}
            for x in outcomes:
                widths[abs(2 * counts[x] - n)] = widths.get(abs(2 * counts[x] - n), 0) | 1 << x
            if self.rule.free == "width":
                self._free.add(tuple(sorted(widths.values())))
            for lo, hi in itertools.combinations_with_replacement(range(n + 1), 2):
                masks = [0, 0, 0]
                for at, (delta, _) in enumerate(self.model.noise):
                    for x in outcomes:
                        bit = 1 << (at * len(outcomes) + x)
                        outcome = 1 if counts[x] > hi + delta else 2 if counts[x] < lo - delta else 0
                        masks[outcome] |= bit
                if self.rule.level == "one law":
                    plain = sum(comb(n, k) * truth**k * (1 - truth) ** (n - k) for k in range(lo, hi + 1))
                else:
                    quiet = zip(outcomes, coins(self.model.expectations), strict=True)
                    plain = sum(p for x, p in quiet if lo <= counts[x] <= hi)
                key = (masks[0], masks[1], masks[2])
                actions[key] = min(actions.get(key, 2.0), plain)
                if self.rule.free == "raised":
                    self._free.add(tuple(sorted(m for m in (masks[0] | masks[2], masks[1]) if m)))
        self._actions = list(actions)
        self._levels = [
            tuple(plain if self.rule.level != "exact" and i == 0 else self._mass(m) for i, m in enumerate(key))
            for key, plain in actions.items()
        ]
        places = np.arange(len(self.model.law), dtype=object)
        self._sets = np.array([[(mask >> places & 1).astype(float) for mask in key] for key in actions])
        self._needed = np.array(self._levels)

    def _mass(self, mask: int) -> float:
        return _mass(mask, tuple(self.model.law))

    def worst(self, risk: float, depth: int) -> float:
        """Return the largest probability of a false claim within so many nodes."""
        return self._value((1 << len(self.model.law)) - 1, risk, depth)

    def _value(self, seen: int, risk: float, depth: int) -> float:
        if depth == 0 or not seen or risk < 0.0:
            return 0.0
        key = (seen, round(risk, 12), depth)
        if key not in self._memo:
            self._memo[key] = self._best(seen, risk, depth)
        return self._memo[key]

    def _last(self, seen: int, risk: float) -> float:
        """Return the largest probability of a false claim at one node, where nothing is set aside."""
        w, _, side, _ = self.rule.shares(risk, 0.0)
        law = np.array([p if seen >> x & 1 else 0.0 for x, p in enumerate(self.model.law)])
        claims = self._needed <= np.array([w, side, side]) + 1e-12
        return float((self._sets @ law * claims).sum(axis=1).max())

    def _best(self, seen: int, risk: float, depth: int) -> float:
        if depth == 1:
            return self._last(seen, risk)
        best = 0.0
        for parts in self._free:
            best = max(best, sum(self._value(seen & part, risk, depth - 1) for part in parts))
        for masks, levels in zip(self._actions, self._levels, strict=True):
            tight = risk - levels[0]
            options = {0.0, risk / 2, risk} | ({tight} if 0.0 < tight < risk else set())
            for aside in options:
                w, left, side, after = self.rule.shares(risk, aside)
                total = 0.0
                for mask, level, allowed, remains in zip(
                    masks, levels, (w, side, side), (left, after, after), strict=True
                ):
                    part = seen & mask
                    if not part:
                        continue
                    false = self._mass(part) if level <= allowed + 1e-12 else 0.0
                    total += max(false, self._value(part, remains, depth - 1))
                best = max(best, total)
        return best


@cache
def _mass(mask: int, law: tuple[float, ...]) -> float:
    total, at = 0.0, 0
    while mask:
        if mask & 1:
            total += law[at]
        mask >>= 1
        at += 1
    return total


@dataclass
class Program:
    """The best analyst against `ClaimsMechanism` itself, without noise: any query, training value and failure."""

    model: Model
    mechanism: ClaimsMechanism
    trains: tuple[float, ...] = (0.0, 0.5, 1.0)
    _memo: dict[tuple[int, int, int], float] = field(default_factory=dict)
    _steps: dict[tuple[int, float, int], tuple[int, tuple[float, float]]] = field(default_factory=dict)
    _states: list[ClaimsState] = field(default_factory=list)
    _numbers: dict[ClaimsState, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.model.expectations)
        self._law = tuple(coins(self.model.expectations))
        self._noise = SeededNoise(0)
        self._parts = [
            (tuple(sum(1 << x for x, k in enumerate(counts) if k == j) for j in range(n + 1)), truth)
            for counts, truth in self.model.queries
        ]

    def worst(self, depth: int) -> float:
        """Return the largest probability of a false interval within so many queries."""
        return self._value((1 << len(self._law)) - 1, self._number(self.mechanism.start(self._noise)), depth)

    def against(self, model: Model) -> Self:
        """Return the best analyst on records with another law; what the mechanism answered is kept."""
        return replace(self, model=model, _memo={})

    def ends(self, train: float, count: int) -> tuple[float, float]:
        """Return the interval of a first query."""
        return self._step(self._number(self.mechanism.start(self._noise)), train, count)[1]

    def _number(self, state: ClaimsState) -> int:
        """Return a state's place: states are keys very often, and slow ones."""
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def _step(self, state: int, train: float, count: int) -> tuple[int, tuple[float, float]]:
        key = (state, train, count)
        if key not in self._steps:
            n = len(self.model.expectations)
            values: NDArray[np.bool_] = np.arange(n) < count
            reading = self.mechanism.read(values, n, (0, 1), "values", Known(binary=True))
            after, outcome = self.mechanism.step(self._states[state], train, reading, self._noise)
            assert outcome.interval is not None
            self._steps[key] = self._number(after), outcome.interval
        return self._steps[key]

    def _value(self, seen: int, state: int, depth: int) -> float:
        if depth == 0 or not seen:
            return 0.0
        key = (seen, state, depth)
        if key not in self._memo:
            best = 0.0
            failed = None
            if depth > 1:
                failed = self._number(self.mechanism.fail(self._states[state], 0.5, self._noise)[0])
            for parts, truth in self._parts:
                for train in self.trains:
                    best = max(best, self._asked(seen, state, depth, parts, truth, train))
                if failed is not None:  # it fails where K is large, and is a dull query elsewhere
                    high = sum(parts[1 + len(parts) // 2 :])
                    calm = self._step(state, 0.5, 0)[0]
                    total = self._value(seen & high, failed, depth - 1) + self._value(seen & ~high, calm, depth - 1)
                    best = max(best, total)
            self._memo[key] = best
        return self._memo[key]

    def _asked(self, seen: int, state: int, depth: int, parts: tuple[int, ...], truth: float, train: float) -> float:
        children: dict[tuple[int, tuple[float, float]], int] = {}
        for count, part in enumerate(parts):
            if seen & part:
                shown = self._step(state, train, count)
                children[shown] = children.get(shown, 0) | (seen & part)
        total = 0.0
        for (after, (low, high)), part in children.items():
            inside = low <= truth <= high
            total += self._value(part, after, depth - 1) if inside else _mass(part, self._law)
        return total
