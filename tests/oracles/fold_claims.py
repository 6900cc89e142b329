"""All analysts and all learners on small models: the largest probability that some claim about folds is false.

Nothing is drawn. Records are coins; a query is a learner, which maps the records outside of a fold to a prediction
for it, so that its truth, the average risk of its models, is a function of the records, as its average is. A set of
outcomes is an integer with a bit for each. By backward induction the best analyst is found for a rule of outcomes
(`FoldLetters`), or for the program itself (`FoldProgram`), which is stepped with every outcome.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.oracles.risk_left import coins
from thresholdout.mechanisms import ClaimsState, FoldClaims, Known
from thresholdout.noise.sources import SeededNoise

__all__ = ["SOUND", "FoldOutcomes", "FoldProgram", "FoldRule", "Split", "truths_and_counts"]

Split = tuple[float, float, float]
"""Level of the claim, and what is left after it is confirmed, and after it is not."""


def truths_and_counts(folds: Sequence[int], p: float) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Return, for all learners that predict a label for each fold, the number of records that are right, and the truth.

    Both for each of the 2^n outcomes; record i is bit i.
    """
    n, outcomes = len(folds), range(1 << len(folds))
    each: list[list[tuple[tuple[int, ...], tuple[float, ...]]]] = []
    for fold in sorted(set(folds)):
        inside = [i for i in range(n) if folds[i] == fold]
        outside = [i for i in range(n) if folds[i] != fold]
        seen = [sum((x >> i & 1) << k for k, i in enumerate(outside)) for x in outcomes]
        learners = []
        for labels in itertools.product((0, 1), repeat=1 << len(outside)):
            right = tuple(sum((x >> i & 1) == labels[seen[x]] for i in inside) for x in outcomes)
            risk = tuple(len(inside) * (p if labels[seen[x]] else 1 - p) / n for x in outcomes)
            learners.append((right, risk))
        each.append(learners)
    found: dict[tuple[tuple[int, ...], tuple[float, ...]], None] = {}
    for parts in itertools.product(*each):
        counts = tuple(map(sum, zip(*(right for right, _ in parts), strict=True)))
        truth = tuple(round(sum(risks), 12) for risks in zip(*(risk for _, risk in parts), strict=True))
        found[counts, truth] = None
    return list(found)


@dataclass(frozen=True)
class FoldRule:
    """How a rule shares R: ``splits(risk, level)`` are the ways, for the level that a claim needs.

    ``two_sided`` is whether both sides of a claim are paid together, or the more probable one alone.
    """

    splits: Callable[[float, float], list[Split]]
    two_sided: bool = True


def _shared(risk: float, level: float) -> list[Split]:
    rest = risk - level
    return [(level, rest, 0.0), (level, 0.0, rest), (level, rest / 2, rest / 2)]


SOUND = FoldRule(_shared)


@dataclass
class FoldOutcomes:
    """The best analyst against a rule: any learner, any edges, any claim, any split."""

    folds: tuple[int, ...]
    p: float
    rule: FoldRule
    _memo: dict[tuple[int, float, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._law = coins([self.p] * len(self.folds))
        self._masses = [sum(q for x, q in enumerate(self._law) if mask >> x & 1) for mask in range(1 << len(self._law))]
        found: dict[tuple[int, int], float] = {}
        for counts, truth in truths_and_counts(self.folds, self.p):
            ends = [-1.0, *sorted(set(truth)), 2.0]
            for lo, hi in itertools.combinations_with_replacement(range(len(self.folds) + 1), 2):
                inside = sum(1 << x for x, k in enumerate(counts) if lo <= k <= hi)
                for low, high in itertools.combinations_with_replacement(ends, 2):
                    below = inside & sum(1 << x for x, r in enumerate(truth) if r < low)
                    above = inside & sum(1 << x for x, r in enumerate(truth) if r > high)
                    sides = self._masses[below], self._masses[above]
                    level = sum(sides) if self.rule.two_sided else max(sides)
                    key = (inside, below | above)
                    found[key] = min(level, found.get(key, 2.0))
        self._claims = [(inside, false, level) for (inside, false), level in found.items()]

    def worst(self, risk: float, depth: int) -> float:
        """Return the largest probability of a false claim within so many nodes."""
        return self._value((1 << len(self._law)) - 1, risk, depth)

    def _value(self, seen: int, risk: float, depth: int) -> float:
        if depth == 0 or not seen or risk < 0.0:
            return 0.0
        key = (seen, round(risk, 12), depth)
        if key not in self._memo:
            best = 0.0
            for inside, false, level in self._claims:
                if level > risk + 1e-12:
                    continue
                lost = self._masses[seen & false]
                if depth == 1:
                    best = max(best, lost)
                    continue
                for _, left, other in self.rule.splits(risk, level):
                    best = max(
                        best,
                        lost
                        + self._value(seen & inside & ~false, left, depth - 1)
                        + self._value(seen & ~inside, other, depth - 1),
                    )
            self._memo[key] = best
        return self._memo[key]


@dataclass
class FoldProgram:
    """The best analyst against `FoldClaims` itself: any learner, expected value and failure."""

    folds: tuple[int, ...]
    p: float
    mechanism: FoldClaims
    expected: tuple[float | None, ...] = (None, 0.0, 0.5, 1.0)
    _memo: dict[tuple[int, int, int], float] = field(default_factory=dict)
    _steps: dict[tuple[int, float | None, int], tuple[int, tuple[float, float]]] = field(default_factory=dict)
    _states: list[ClaimsState] = field(default_factory=list)
    _numbers: dict[ClaimsState, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._law = coins([self.p] * len(self.folds))
        self._noise = SeededNoise(0)
        self._queries = truths_and_counts(self.folds, self.p)

    def worst(self, depth: int) -> float:
        """Return the largest probability of a false interval within so many queries."""
        return self._value((1 << len(self._law)) - 1, self._number(self.mechanism.start(self._noise)), depth)

    def _number(self, state: ClaimsState) -> int:
        """Return a state's place: states are keys very often, and slow ones."""
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state]

    def worst_list(self, depth: int, reserve: float = 0.5) -> float:
        """Return the largest probability of a false interval in a list of two, and so many queries after it."""
        start, whole = self.mechanism.start(self._noise), range(len(self._law))
        listed: dict[tuple[object, ...], tuple[int, tuple[tuple[float, float], ...]]] = {}
        best = 0.0
        for given in itertools.product(self.expected, repeat=2):
            for pair in itertools.combinations_with_replacement(self._queries, 2):
                total, children = 0.0, dict[tuple[int, object], int]()
                for x in whole:
                    asked = tuple(counts[x] for counts, _ in pair)
                    key = given, asked
                    if key not in listed:
                        listed[key] = self._list(start, given, asked, reserve)
                    after, intervals = listed[key]
                    truths = [truth[x] for _, truth in pair]
                    if all(low <= truth <= high for (low, high), truth in zip(intervals, truths, strict=True)):
                        children[after, intervals] = children.get((after, intervals), 0) | 1 << x
                    else:
                        total += self._law[x]
                later = sum(self._value(part, after, depth) for (after, _), part in children.items())
                best = max(best, total + later)
        return best

    def _list(
        self, state: ClaimsState, given: Sequence[float | None], counts: Sequence[int], reserve: float
    ) -> tuple[int, tuple[tuple[float, float], ...]]:
        n, asked = len(self.folds), []
        for expected, count in zip(given, counts, strict=True):
            known = Known(vague=expected is None)
            reading = self.mechanism.read(np.arange(n) < count, n, (0, 1), "values", known)
            asked.append((0.5 if expected is None else expected, reading))
        after, outcomes = self.mechanism.step_all(state, asked, self._noise, reserve)
        intervals = [one.interval for one in outcomes if one.interval is not None]
        assert len(intervals) == len(asked)
        return self._number(after), tuple(intervals)

    def _step(self, state: int, expected: float | None, count: int) -> tuple[int, tuple[float, float]]:
        key = (state, expected, count)
        if key not in self._steps:
            n = len(self.folds)
            known = Known(vague=expected is None)
            reading = self.mechanism.read(np.arange(n) < count, n, (0, 1), "values", known)
            train = 0.5 if expected is None else expected
            after, outcome = self.mechanism.step(self._states[state], train, reading, self._noise)
            assert outcome.interval is not None
            self._steps[key] = self._number(after), outcome.interval
        return self._steps[key]

    def _value(self, seen: int, state: int, depth: int) -> float:
        if depth == 0 or not seen or self.mechanism.refusal(self._states[state]) is not None:
            return 0.0
        key = (seen, state, depth)
        if key not in self._memo:
            asked = itertools.product(self._queries, self.expected)
            self._memo[key] = max(self._asked(seen, state, depth, *query, expected) for query, expected in asked)
        return self._memo[key]

    def _asked(
        self,
        seen: int,
        state: int,
        depth: int,
        counts: tuple[int, ...],
        truth: tuple[float, ...],
        expected: float | None,
    ) -> float:
        children: dict[tuple[int, tuple[float, float]], int] = {}
        total = 0.0
        for x, mass in enumerate(self._law):
            if not seen >> x & 1:
                continue
            shown = self._step(state, expected, counts[x])
            if shown[1][0] <= truth[x] <= shown[1][1]:
                children[shown] = children.get(shown, 0) | 1 << x
            else:
                total += mass
        return total + sum(self._value(part, after, depth - 1) for (after, _), part in children.items())
