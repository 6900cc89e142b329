"""Messages with memory: no message returns to a vertex that it has left a few steps before.

Proofs: `graphs/PROOFS.md`, section 3, messages with memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.leakage.largest_budget import keep, kept
from graphs.leakage.loopy_messages import ROUNDS, Map, contracted, settled
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import UNIT, charges, up
from graphs.structure.spanning_forest import Branches

__all__ = ["MOST_WALKS", "SelfAvoiding", "Walks"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Walks:
    """Walks on a graph, as a directed graph: each walk with the walks that may follow it.

    The first 2E walks are the links of the graph.
    """

    last: IntArray  # shape (N,): the link that each walk ends with
    rows: IntArray  # shape (A,): a walk, not decreasing
    # shape (A,): the walk that follows it: the longest kept walk that ends like the first one with one vertex more
    followers: IntArray
    complete: bool  # whether longer cycles add no information
    work: int  # number of walks and arcs visited

    @classmethod
    def within(cls, sources: IntArray, targets: IntArray, barred: BoolArray, longest: int, most: int) -> Walks | None:
        """Return the walks on cycles as long as a limit on the work allows.

        Where they would be too many, walks of more than one link do not pass the vertices of highest degree.
        """
        # pairs of links through a vertex; the work is spent on vertices of low degree first
        degrees = np.bincount(sources, minlength=len(barred))
        ways = np.sort(degrees * (degrees - 1))
        affordable = np.searchsorted(np.cumsum(ways), most // 4, side="right")
        passable = degrees * (degrees - 1) <= (ways[affordable - 1] if affordable else -1)
        best, left, length = None, 4 * most, 2
        while length <= max(longest, 2):
            found = cls.along(sources, targets, barred, passable, length, min(most, left))
            if found is None:
                break
            best, left = found, left - found.work
            if found.complete:
                break
            # without a short cycle the length grows faster
            step = 1 if len(found.last) > len(sources) else length // 4
            length = min(length + max(step, 1), max(longest, length + 1))
        return best

    @classmethod
    def along(
        cls, sources: IntArray, targets: IntArray, barred: BoolArray, passable: BoolArray, length: int, most: int
    ) -> Walks | None:
        """Return the walks that lie on cycles of at most `length` vertices."""
        return _Growth(sources, targets, barred, passable, length, most).walks()


@dataclass(frozen=True, slots=True)
class _Level:
    """Walks of one number of links.

    Walks are numbered through all levels, from `start` on in this one. Each has a first vertex and a last link;
    `suffix` is the walk without its first vertex, `prefix` the one without its last. An arc leads from a walk of this
    level (`rows`, counted within the level) to a vertex (`enters`) and the next walk. `closes` says whether the first
    vertex forbids an arc of the suffix.
    """

    start: int
    first: IntArray
    last: IntArray
    suffix: IntArray
    prefix: IntArray
    rows: IntArray
    enters: IntArray
    followers: IntArray
    closes: BoolArray


class _Growth:
    """Growth of walks by levels, each walk from the one without its first vertex and the one without its last."""

    def __init__(
        self, sources: IntArray, targets: IntArray, barred: BoolArray, passable: BoolArray, length: int, most: int
    ) -> None:
        self._sources, self._targets = sources, targets
        self._barred, self._passable = barred, passable
        self._length, self._most = length, most
        self._size = len(barred)
        self._keys = sources * self._size + targets
        self._near: list[IntArray] = [np.zeros(0, dtype=np.int64), self._keys]
        self._complete, self._work = True, 0

    def walks(self) -> Walks | None:
        """Return the walks with more information than their last link."""
        levels = self._levels()
        if levels is None:
            return None
        total = sum(len(level.last) for level in levels)
        # a walk matters if its first vertex forbids a step, or if a longer walk that starts with it matters
        useful = np.zeros(total, dtype=np.bool_)
        for level in reversed(levels):
            useful[level.start : level.start + len(level.last)] |= level.closes
            if level.start:
                useful[level.prefix[useful[level.start : level.start + len(level.last)]]] = True
        links = len(self._sources)
        useful[:links] = True
        # other walks are replaced by their longest useful suffix, which forbids fewer vertices: a larger bound
        standing = np.arange(total)
        for level in levels[1:]:
            own = slice(level.start, level.start + len(level.last))
            standing[own] = np.where(useful[own], standing[own], standing[level.suffix])
        number = np.cumsum(useful) - 1
        rows, followers, last = [], [], []
        for level in levels:
            kept = useful[level.start : level.start + len(level.last)]
            chosen = kept[level.rows]
            rows.append(number[level.start + level.rows[chosen]])
            followers.append(number[standing[level.followers[chosen]]])
            last.append(level.last[kept])
        arcs = np.concatenate(rows), np.concatenate(followers)
        return Walks(np.concatenate(last), *arcs, self._complete, self._work)

    def _levels(self) -> list[_Level] | None:
        """Return the walks of every number of links, or None when there are too many."""
        degrees = np.bincount(self._sources, minlength=self._size)
        self._work += len(self._sources) + int(degrees @ degrees)
        if self._work > self._most:
            return None
        level = self._links()
        levels = [level]
        while len(levels) + 1 < self._length:
            links = len(levels) + 1
            arcs = np.flatnonzero(self._may_grow(level, links))
            starts = np.searchsorted(level.rows, np.arange(len(level.last) + 1))
            self._work += len(arcs) + int(np.diff(starts)[level.followers[arcs] - level.start].sum())
            if self._work > self._most:
                return None
            if not len(arcs):
                break
            level = self._longer(level, arcs, starts)
            # pairs of vertices joined by walks of up to `links` links: the other half of a short cycle
            if 2 * links < self._length:
                pairs = level.first * self._size + self._targets[level.last]
                self._near.append(np.union1d(self._near[-1], pairs))
                self._work += len(self._near[-1])
            levels.append(level)
        self._complete &= not bool((level.followers >= level.start).any())
        return levels

    def _links(self) -> _Level:
        """Return the walks of one link, each followed by links that do not lead back."""
        starts = np.searchsorted(self._sources, np.arange(self._size + 1))
        rows, followers = _expanded(starts, self._targets)
        enters = self._targets[followers]
        free = ~self._forbidden(self._sources[rows], enters)
        arcs = rows[free], enters[free], followers[free]
        count = len(self._sources)
        none = np.zeros(0, dtype=np.int64)
        return _Level(0, self._sources, np.arange(count), none, none, *arcs, np.zeros(count, dtype=np.bool_))

    def _may_grow(self, level: _Level, links: int) -> BoolArray:
        """Return which arcs of a level lead to a walk of one more link that may lie on a short cycle."""
        whole = level.followers >= level.start
        chosen: BoolArray = whole & self._passable[self._targets[level.last]][level.rows]
        if 2 * links > self._length:  # the cycle has to close with the remaining links
            places = np.flatnonzero(chosen)
            pairs = level.first[level.rows[places]] * self._size + level.enters[places]
            chosen[places] = _within(pairs, self._near[self._length - links])
        self._complete &= bool((whole == chosen).all())
        return chosen

    def _longer(self, level: _Level, arcs: IntArray, starts: IntArray) -> _Level:
        """Return the walks that arcs of a level make: the walk at their start with the last vertex of their end.

        `starts` are the places at which the arcs of each walk of the level begin.
        """
        start = level.start + len(level.last)
        prefix, suffix = level.rows[arcs], level.followers[arcs] - level.start
        level.followers[arcs] = start + np.arange(len(arcs))
        first, last = level.first[prefix], level.last[suffix]
        rows, places = _expanded(starts, suffix)
        free = ~self._forbidden(first[rows], level.enters[places])
        closes = np.zeros(len(arcs), dtype=np.bool_)
        closes[rows[~free]] = True
        rows, places = rows[free], places[free]
        onwards = rows, level.enters[places], level.followers[places]
        return _Level(start, first, last, suffix + level.start, prefix + level.start, *onwards, closes)

    def _forbidden(self, left: IntArray, entered: IntArray) -> BoolArray:
        """Return whether a walk that has left one vertex may not enter another."""
        found: BoolArray = left == entered
        barred = np.flatnonzero(self._barred[left] & ~found)
        if len(barred):
            found[barred] = _within(left[barred] * self._size + entered[barred], self._keys)
        return found


def _expanded(starts: IntArray, groups: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for each of several groups of places, the number of the group in the list and every place in it."""
    counts = np.diff(starts)[groups]
    rows = np.repeat(np.arange(len(groups)), counts)
    offsets = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - offsets[rows] + starts[groups][rows]


def _within(keys: IntArray, ordered: IntArray) -> BoolArray:
    """Return which keys are in an ordered array."""
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    found: BoolArray = keys == ordered[place]
    return found


#: About the most walks and arcs between them (half a second for each privacy budget, and 200 MB).
MOST_WALKS = 1_000_000

#: Most walks and arcs for each link, and at least so many in all: small networks take no longer than others.
FOR_EACH_LINK, AT_LEAST = 150, 50_000


class SelfAvoiding:
    """Updates of all messages along self-avoiding walks.

    Links come first all in one direction, then all in the other, in the same order, no two with the same ends. Behind a
    vertex that stands for a factor all its members but one are known. `walks` is None where there would be more than
    `most` walks and arcs.
    """

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        diameters: FloatArray,
        component: IntArray,
        passed: type[Map],
        is_factor: npt.NDArray[np.bool_],
        most: int | None = None,
    ) -> None:
        from scipy import sparse

        self._size = size = len(component)
        self.walks: Walks | None = None
        if most is None:
            most = min(MOST_WALKS, max(AT_LEAST, FOR_EACH_LINK * len(sources)))
        if len(sources) > most:
            return
        order = np.lexsort((targets, sources))
        self._sources, ends = sources[order], targets[order]
        self.walks = walks = Walks.within(self._sources, ends, is_factor, int(np.bincount(component).max()), most)
        if walks is None:
            return
        back = np.searchsorted(self._sources * size + ends, ends * size + self._sources)[walks.last]
        self._ends, self._back = ends[walks.last], order[back]
        self._arriving = self._back[: len(order)]
        self._contraction = passed(diameters[self._back])
        self._branches = Branches(sources, targets, component)
        count = len(walks.last)
        entries = np.ones(len(walks.rows)), (walks.rows, walks.followers)
        self._follow = sparse.csr_array(entries, shape=(count, count))
        self._grow = _enlargement(np.bincount(walks.rows, minlength=count))

    @property
    def remembers(self) -> bool:
        """Whether any walk has more than one link."""
        return self.walks is not None and len(self.walks.last) > len(self._sources)

    def totals(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up."""
        if not budgets.any():
            return np.zeros(self._size)
        messages = self._messages(budgets, rounds)
        received = np.bincount(self._sources, weights=messages, minlength=self._size).astype(np.float64)
        received *= _enlargement(np.bincount(self._sources, minlength=self._size))
        return received

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the message over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._sources))
        if budgets.any():
            found[self._arriving] = self._messages(budgets, rounds)
        return found

    def _messages(self, budgets: FloatArray, rounds: int) -> FloatArray:
        """Return the message to the source of each link from its end, in the order of links."""
        amounts, unit = charges(budgets)
        caps = up(self._branches.weights(amounts)[self._back].astype(np.float64) * unit, 2)
        own = budgets[self._ends]

        def updated(messages: FloatArray) -> FloatArray:
            leakages = np.asarray(self._follow @ messages) * self._grow
            leakages += own
            return contracted(self._contraction, np.minimum(up(leakages, 1), caps))

        links = len(self._sources)
        start = kept(self, budgets)
        found = settled(updated, contracted(self._contraction, caps) if start is None else start, rounds)
        keep(self, budgets, found)
        return found[:links]


def _enlargement(terms: IntArray) -> FloatArray:
    """Return the factors that make up for the rounding of sums of so many terms."""
    return 1 + 2 * (terms.astype(np.float64) + 4) * UNIT
