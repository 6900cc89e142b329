"""All analysts of small depth against rules for nodes with many outcomes: lists, other private releases, statistics.

Nothing is drawn. Outcomes are equally likely, and risk is counted in outcomes: every event has a whole number of them,
so a rule that leaves a fraction leaves as much as its whole part, and the best analyst needs no other numbers. A set of
outcomes is an integer with a bit for each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

__all__ = ["Channel", "ListRule", "Lists", "Releases", "ReleasesRule", "Statistics", "StatisticsRule"]


@dataclass(frozen=True)
class ListRule:
    """What is broken, if anything, in a rule for queries that were fixed together.

    ``level``: "all of it" gives every query of a list the level of the whole list. ``left``: "not reduced" leaves to
    all outcomes together what there was before the list; "each all of it" leaves to every outcome what was kept.
    ``best``: "one level" gives the best query the level of a single one; "place for nothing" leaves to every place a
    share of its own. ``partial``: every confirmation of some claims leaves the level of all of them.
    """

    level: str = "shared"
    left: str = "shared"
    best: str = "as a list"
    partial: bool = False


@dataclass
class Lists:
    """The best analyst against a rule for lists of two queries, on ``2^n`` outcomes of n fair coins."""

    n: int
    rule: ListRule = ListRule()
    signed: bool = True
    _memo: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _gained: dict[tuple[int, int, int, int], tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def outcomes(self) -> int:
        return 1 << self.n

    @cached_property
    def counts(self) -> list[tuple[int, ...]]:
        """For each query its value at each outcome."""
        kinds = ((0, 0), (0, 1), (1, 0), (1, 1)) if self.signed else ((0, 0), (0, 1))
        found = {
            tuple(sum(g[x >> i & 1] for i, g in enumerate(each)) for x in range(self.outcomes))
            for each in itertools.product(kinds, repeat=self.n)
        }
        return sorted(found)

    @cached_property
    def lists(self) -> list[tuple[int, ...]]:
        """Outcomes of every list: the sets of outcomes with the same two values."""
        pairs = itertools.combinations_with_replacement(self.counts, 2)
        return sorted({_parts(zip(a, b, strict=True)) for a, b in pairs})

    @cached_property
    def best_lists(self) -> list[tuple[tuple[int, ...], ...]]:
        """For every list, the outcomes of each place: where a query is the best, by its value."""
        found = set()
        for a, b in itertools.combinations(self.counts, 2):
            first = [(x, a[x]) for x in range(self.outcomes) if a[x] >= b[x]]
            second = [(x, b[x]) for x in range(self.outcomes) if a[x] < b[x]]
            found.add((_grouped(first), _grouped(second)))
        return sorted(found)

    @cached_property
    def _pairs(self) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """For each pair of queries the sets of outcomes with one value of each, and where the first is the best."""
        return [
            (_parts(a), _parts(b), sum(1 << x for x in range(self.outcomes) if a[x] >= b[x]))
            for a, b in itertools.combinations(self.counts, 2)
        ]

    def worst(self, risk: int, depth: int) -> int:
        """Return how many outcomes have a false claim within so many nodes."""
        return self._value((1 << self.outcomes) - 1, risk, depth)

    def _value(self, seen: int, risk: int, depth: int) -> int:
        if depth == 0 or not seen or risk <= 0:
            return 0
        key = (seen, risk, depth)
        if key not in self._memo:
            self._memo[key] = self._best(seen, risk, depth)
        return self._memo[key]

    def _best(self, seen: int, risk: int, depth: int) -> int:
        best = max(self._shared(outcomes, seen, risk, depth) for outcomes in self.lists)
        for places in self.best_lists:
            outcomes = places[0] + places[1]
            best = max(best, self._shared(outcomes, seen, risk, depth))
            if self.rule.best == "place for nothing":
                best = max(best, sum(self._shared(place, seen, risk, depth) for place in places))
        if self.rule.left != "shared":
            best = max(best, *(self._more_left(outcomes, seen, risk, depth) for outcomes in self.lists))
        if self.rule.level == "all of it" or self.rule.best == "one level" or self.rule.partial:
            best = max(best, *(self._broken(*pair, seen, risk, depth) for pair in self._pairs))
        return best

    def _shared(self, outcomes: Sequence[int], seen: int, risk: int, depth: int) -> int:
        """Every outcome is false, for as many outcomes as it has, or true, and leaves any share."""
        parts = ((seen & outcome, outcome.bit_count()) for outcome in outcomes)
        return _split(tuple(sorted(self._gains(part, size, risk, depth) for part, size in parts if part)), risk)

    def _gains(self, part: int, size: int, risk: int, depth: int) -> tuple[int, ...]:
        """Return what an outcome gains with each risk: it is true, or false if there is enough for its size."""
        key = (part, size, risk, depth)
        if key not in self._gained:
            gains = [self._value(part, left, depth - 1) for left in range(risk + 1)]
            if size <= risk:
                gains[size] = max(gains[size], part.bit_count())
            self._gained[key] = tuple(gains)
        return self._gained[key]

    def _more_left(self, outcomes: Sequence[int], seen: int, risk: int, depth: int) -> int:
        """What was spent on the list is left all the same, or every outcome has all that was kept."""
        best = 0
        for level in range(risk + 1):
            false = 0
            for outcome in sorted(outcomes, key=lambda outcome: (seen & outcome).bit_count() / -outcome.bit_count()):
                if (false | outcome).bit_count() <= level:
                    false |= outcome
            true = [outcome for outcome in outcomes if not outcome & false]
            gain = (seen & false).bit_count()
            if self.rule.left == "not reduced":
                best = max(best, gain + self._shared(true, seen & ~false, risk, depth))
            else:
                best = max(best, gain + sum(self._value(seen & outcome, risk - level, depth - 1) for outcome in true))
        return best

    def _broken(self, first: Sequence[int], second: Sequence[int], wins: int, seen: int, risk: int, depth: int) -> int:
        """Single values of two queries for which their claims are false."""
        best = 0
        for a, b in itertools.product(first, second):
            if self.rule.partial and a.bit_count() <= risk // 2:  # b's claim is true, and confirmed by every outcome
                best = max(best, (seen & a).bit_count() + self._value(seen & ~a, risk, depth - 1))
            if max(a.bit_count(), b.bit_count()) > risk:
                continue
            if self.rule.level == "all of it":
                best = max(best, (seen & (a | b)).bit_count())
            if self.rule.best == "one level":
                best = max(best, (seen & (a & wins | b & ~wins)).bit_count())
        return best


@cache
def _split(gains: tuple[tuple[int, ...], ...], risk: int) -> int:
    """Return the largest sum of gains, one of each, whose risks are at most the given one together."""
    most = [0] * (risk + 1)
    for each in gains:
        most = [max(most[r - left] + each[left] for left in range(r + 1)) for r in range(risk + 1)]
    return most[risk]


def _grouped(pairs: Iterable[tuple[int, object]]) -> tuple[int, ...]:
    found: dict[object, int] = {}
    for x, value in pairs:
        found[value] = found.get(value, 0) | 1 << x
    return tuple(sorted(found.values()))


def _parts(values: Iterable[object]) -> tuple[int, ...]:
    """Return the sets of outcomes with the same value."""
    return _grouped(enumerate(values))


@dataclass(frozen=True)
class Channel:
    """The law of a private release: ``law[x][z]``, the probability of z at outcome x; outcomes are equally likely."""

    law: tuple[tuple[float, ...], ...]

    @classmethod
    def randomized_response(cls, outcomes: int, ratio: float) -> Channel:
        """Tell the outcome, ``ratio`` times as likely as any other one."""
        total = ratio + outcomes - 1
        return cls(tuple(tuple((ratio if x == z else 1.0) / total for z in range(outcomes)) for x in range(outcomes)))

    @classmethod
    def erasure(cls, outcomes: int, delta: float) -> Channel:
        """Tell the outcome with probability delta, and nothing otherwise."""
        rows = [[delta * (x == z) for z in range(outcomes)] + [1 - delta] for x in range(outcomes)]
        return cls(tuple(tuple(row) for row in rows))

    def of(self, records: int) -> Channel:
        """Return the channel that treats each of several records by itself."""
        law = self.law
        for _ in range(records - 1):
            law = tuple(tuple(p * q for p in one for q in other) for one in law for other in self.law)
        return Channel(law)

    @cached_property
    def _atoms(self) -> list[tuple[float, float]]:
        """For outcome and release, their probability, and what it is if they are independent; likely ones first."""
        n = len(self.law)
        releases = [sum(row[z] for row in self.law) / n for z in range(len(self.law[0]))]
        atoms = [(row[z] / n, q / n) for row in self.law for z, q in enumerate(releases) if q > 0.0]
        return sorted(atoms, key=lambda atom: -atom[0] / atom[1])

    def fresh(self, risk: float) -> float:
        """Return b: what has at most probability b for an independent release has at most ``risk`` for this one."""
        joint = product = 0.0
        for p, q in self._atoms:
            if joint + p > risk:
                return product + q * (risk - joint) / p
            joint, product = joint + p, product + q
        return 1.0


@dataclass(frozen=True)
class ReleasesRule:
    """What is broken: looks are for nothing, or each is priced at the risk there was before the first."""

    free: bool = False
    at_the_start: bool = False


@dataclass
class Releases:
    """The best analyst who may look through a channel, make claims that are false on any event, or split the risk."""

    channel: Channel
    rule: ReleasesRule = ReleasesRule()
    _memo: dict[tuple[tuple[float, ...], float, int], float] = field(default_factory=dict)

    def worst(self, risk: float, depth: int) -> float:
        """Return the largest probability of a false claim within so many nodes."""
        n = len(self.channel.law)
        self._factor = self.channel.fresh(risk) / risk
        self._memo.clear()
        return self._value((1.0 / n,) * n, risk, depth)

    def _value(self, weights: tuple[float, ...], risk: float, depth: int) -> float:
        if depth == 0 or risk <= 0.0:
            return 0.0
        key = (tuple(round(w, 14) for w in weights), round(risk, 14), depth)
        if key not in self._memo:
            self._memo[key] = self._best(weights, risk, depth)
        return self._memo[key]

    def _best(self, weights: tuple[float, ...], risk: float, depth: int) -> float:
        n = len(weights)
        order = sorted(range(n), key=lambda x: -weights[x])
        whole = min(n, math.floor(risk * n + 1e-9))
        best = sum(weights[x] for x in order[:whole])
        if depth == 1:
            return best
        for size in range(1, whole + 1):  # some of it now, and the rest where that did not happen
            rest = tuple(0.0 if x in order[:size] else weights[x] for x in range(n))
            best = max(best, sum(weights[x] for x in order[:size]) + self._value(rest, risk - size / n, depth - 1))
        if self.rule.free:
            left = risk
        else:
            left = risk * self._factor if self.rule.at_the_start else self.channel.fresh(risk)
        law = self.channel.law
        looked = (tuple(w * row[z] for w, row in zip(weights, law, strict=True)) for z in range(len(law[0])))
        return max(best, sum(self._value(seen, left, depth - 1) for seen in looked))


@dataclass(frozen=True)
class StatisticsRule:
    """What is broken: the numbers of records are shown for nothing, or nothing is given up for truths given labels."""

    counts_for_nothing: bool = False
    halved: bool = True


@dataclass
class Statistics:
    """The best analyst who makes claims about means and about truths that labels fix.

    An outcome is a label vector, one of ``labels``, and one of ``others`` values of everything else. ``counts[y]`` is
    what widths show of label vector y: once that is paid it is known.
    """

    labels: int
    others: int
    counts: tuple[int, ...]
    rule: StatisticsRule = StatisticsRule()
    _memo: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    _claimed_memo: dict[tuple[int, int, int, bool, bool], int] = field(default_factory=dict)

    def worst(self, risk: int, depth: int) -> int:
        """Return how many outcomes have a false claim within so many nodes."""
        return self._value((1 << self.labels * self.others) - 1, risk, depth, False)

    @cached_property
    def _rows(self) -> list[int]:
        return [((1 << self.others) - 1) << y * self.others for y in range(self.labels)]

    @cached_property
    def _events(self) -> range:
        return range(1 << self.labels * self.others)

    @cached_property
    def _claims(self) -> dict[bool, set[tuple[int, int, int, int]]]:
        """Claims about a mean, and about a statistic, which is false on a union of rows.

        Each is the level, where it is false, where it is confirmed and true, and where it is not confirmed.
        """
        subsets = itertools.product((False, True), repeat=self.labels)
        unions = [sum(row for row, chosen in zip(self._rows, each, strict=True) if chosen) for each in subsets]
        every = self._events[-1]
        found: dict[bool, set[tuple[int, int, int, int]]] = {False: set(), True: set()}
        for event, wrong in itertools.product(self._events, [every, 0]):
            found[False].add(((event & wrong).bit_count(), event & wrong, event & ~wrong, every & ~event))
        for event, wrong in itertools.product(self._events, unions):
            level = self.labels * max((event & wrong & row).bit_count() for row in self._rows)
            found[True].add((level, event & wrong, event & ~wrong, every & ~event))
        return found

    def _value(self, seen: int, risk: int, depth: int, given: bool) -> int:
        if depth == 0 or not seen or risk <= 0:
            return 0
        key = (seen, risk, depth, given)
        if key not in self._memo:
            first = 0 if given else self._first(seen, risk, depth)
            self._memo[key] = max(first, self._claimed(seen, risk, depth, given, False))
            if given:
                self._memo[key] = max(self._memo[key], self._claimed(seen, risk, depth, given, True))
        return self._memo[key]

    def _first(self, seen: int, risk: int, depth: int) -> int:
        """The first statistic: truths are given the labels from now on, and widths show their counts."""
        left = risk // 2 if self.rule.halved else risk
        shown = [
            sum(row for row, count in zip(self._rows, self.counts, strict=True) if count == value)
            for value in sorted(set(self.counts))
        ]
        if self.rule.counts_for_nothing:
            return sum(self._asked(seen & part, left, depth) for part in shown)
        most = [0] * (left + 1)
        for part in shown:
            gains = [self._asked(seen & part, r, depth) for r in range(left + 1)]
            most = [max(most[r - used] + gains[used] for used in range(r + 1)) for r in range(left + 1)]
        return most[left]

    def _asked(self, seen: int, risk: int, depth: int) -> int:
        return self._claimed(seen, risk, depth, True, True) if risk > 0 and seen else 0

    def _claimed(self, seen: int, risk: int, depth: int, given: bool, statistic: bool) -> int:
        """One claim: confirmed on an event, with what was set aside left in one direction elsewhere."""
        key = (seen, risk, depth, given, statistic)
        if key not in self._claimed_memo:
            self._claimed_memo[key] = self._best(*key)
        return self._claimed_memo[key]

    def _best(self, seen: int, risk: int, depth: int, given: bool, statistic: bool) -> int:
        best = 0
        for level, bad, true, elsewhere in self._claims[statistic]:
            if level > risk:
                continue
            false = (seen & bad).bit_count()
            if depth == 1:
                best = max(best, false)
                continue
            for aside in range((risk - level) // 2 + 1):
                right = self._value(seen & true, risk - 2 * aside, depth - 1, given)
                off = self._value(seen & elsewhere, aside, depth - 1, given)
                best = max(best, false + right + off)
        return best
