"""Synchronous message passing on a graph with loops, from above."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from graphs.leakage.chain_budgets import gain
from graphs.leakage.largest_budget import FEWEST, keep, kept, settled_at
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import FUNCTION_ULPS, UNIT, charges, up
from graphs.structure.spanning_forest import Branches, grouped

__all__ = ["BLOCK", "ROUNDS", "Contraction", "Map", "Rounds", "Segments", "Shrinkage", "contracted", "settled"]

#: Added to every contracted message: exceeds any loss to underflow.
TINY = 2.0**-1000

#: Enlargement for one rounded product, with a margin.
ONE_PRODUCT = 1 + 6 * UNIT

#: phi is 2 log1p(t V / (1 + r V)), V = expm1(alpha / 2). No map in it enlarges relative errors; 22 units in all.
ENLARGE = 1 + 2 * 26 * UNIT


#: Entries handled at a time, so that intermediate results stay in the processor's cache.
BLOCK = 1 << 14


class Segments:
    """Sums over the other members of each segment of an array; equal keys, not decreasing, make a segment."""

    def __init__(self, keys: IntArray) -> None:
        self.starts: IntArray = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]][: len(keys)])
        self.keys: IntArray = keys[self.starts]
        self.lengths: IntArray = np.diff(np.r_[self.starts, len(keys)])
        self.grow: FloatArray = 1 + 2 * (self.lengths.astype(np.float64) + 4) * UNIT
        self._alone = np.repeat(self.lengths == 1, self.lengths)
        self._blocks = list(self._cut(len(keys)))

    def _cut(self, size: int) -> Iterator[_Block]:
        """Yield blocks of whole segments, of about `BLOCK` entries each."""
        marks = np.append(self.starts, size)
        edges = np.unique(np.searchsorted(marks, np.arange(0, size + BLOCK, BLOCK)).clip(max=len(self.starts)))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            rows, parts = slice(int(marks[first]), int(marks[last])), slice(first, last)
            segment = np.repeat(np.arange(last - first), self.lengths[parts])
            yield _Block(rows, self.starts[parts] - rows.start, self.grow[parts], segment, self._alone[rows])

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of each segment, rounded up; `values` are not negative."""
        if not len(values):
            return np.zeros(0)
        found: FloatArray = np.add.reduceat(values, self.starts) * self.grow
        return found

    def others(self, values: FloatArray) -> FloatArray:
        """Return, for each entry, the sum of the other entries of its segment, rounded up.

        Subtracting an entry from the sum of all loses digits when it is most of the sum. At most one entry of a
        segment is more than half of the (enlarged) sum; the others of that segment are added up without it.
        """
        found = np.empty(len(values))
        for rows, others in self.others_by_block(values):
            found[rows] = others
        return found

    def others_by_block(self, values: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the same for blocks of whole segments; values not yet yielded may be changed."""
        for block in self._blocks:
            yield block.rows, block.others(values[block.rows])


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole segments processed together, small enough for the processor's cache."""

    rows: slice
    starts: IntArray
    grow: FloatArray
    segment: IntArray
    alone: npt.NDArray[np.bool_]

    def others(self, values: FloatArray) -> FloatArray:
        """Return the sums of the other entries of each segment."""
        out = (np.add.reduceat(values, self.starts) * self.grow)[self.segment]
        most = values > 0.5 * out  # subtraction would lose digits; these sums are formed without the entry
        rest = np.add.reduceat(np.where(most, 0.0, values), self.starts) * self.grow
        out -= values
        out *= 1 + 2 * UNIT
        np.copyto(out, rest[self.segment], where=most)
        out[self.alone] = 0.0
        return out


class Map(Protocol):
    """Map that links apply to messages: increasing, concave, not above the message, 0 at 0."""

    def __init__(self, diameters: FloatArray) -> None: ...

    def apply(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return the maps of some rows applied to values, rounded up."""

    def one(self, position: int, value: float) -> float:
        """Return the same for one link and one value."""

    def slopes(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return the slopes of the maps of some rows at values, approximately."""


class Contraction:
    """The map alpha -> phi(Delta, alpha) for many diameters at once."""

    def __init__(self, diameters: FloatArray) -> None:
        self.diameters = diameters
        self.t, self.r = gain(diameters)

    @cached_property
    def _scalars(self) -> tuple[list[float], list[float], list[float]]:
        return self.t.tolist(), self.r.tolist(), self.diameters.tolist()

    def one(self, position: int, leakage: float) -> float:
        """Return phi(Delta, alpha) for one diameter, rounded up."""
        t, r, diameters = self._scalars
        bound: float = min(leakage, diameters[position])
        if leakage > 1000:  # expm1 would overflow
            return bound
        value = math.expm1(0.5 * leakage)
        contracted = math.log1p(t[position] * value / (1 + r[position] * value))
        return min(bound, 2 * ENLARGE * contracted + TINY)

    def apply(self, leakages: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return phi(Delta, alpha) for the diameters of some rows, rounded up.

        Where V overflows, or infinity is multiplied by zero, the smaller of both arguments remains.
        """
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            value = np.expm1(0.5 * leakages)
            below = self.r[rows] * value
            below += 1
            value *= self.t[rows]
            value /= below
            np.log1p(value, out=value)
            value *= 2 * ENLARGE
            value += TINY
            np.fmin(value, leakages, out=value)
            return np.fmin(value, self.diameters[rows], out=value)

    def slopes(self, leakages: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return t e^(alpha/2) / ((1 + r V) (1 + (r + t) V)), the slope of phi(Delta, .) at alpha; 0 far out."""
        t, r = self.t[rows], self.r[rows]
        value = np.expm1(0.5 * np.minimum(leakages, 100.0))
        found: FloatArray = t * (1 + value) / ((1 + r * value) * (1 + (r + t) * value))
        return np.where(leakages < 100.0, found, 0.0)


class Shrinkage:
    """The map w -> tanh(Delta / 4) w for many diameters at once: the slope of phi(Delta, .) at 0.

    >>> Shrinkage(np.array([4.0, np.inf])).apply(np.array([1.0, 1.0])).round(6)
    array([0.761594, 1.      ])
    """

    def __init__(self, diameters: FloatArray) -> None:
        self.factors: FloatArray = np.minimum(up(np.tanh(diameters / 4), FUNCTION_ULPS + 2), 1.0)

    @cached_property
    def _scalars(self) -> list[float]:
        found: list[float] = self.factors.tolist()
        return found

    def apply(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return tanh(Delta / 4) w for the diameters of some rows, rounded up."""
        return np.minimum(up(values * self.factors[rows], 1) + TINY, values)

    def one(self, position: int, value: float) -> float:
        """Return tanh(Delta / 4) w for one diameter, rounded up."""
        return min(value * self._scalars[position] * ONE_PRODUCT + TINY, value)

    def slopes(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Return tanh(Delta / 4) for the diameters of some rows."""
        return self.factors[rows]


#: Most rounds of updates; every iterate is a bound, so stopping early is valid.
ROUNDS = 200

#: Relative residual and most iterations of the linear solver of a Newton step, and the lift of its result for each unit
#: of the largest relative change; the least lift is far above rounding. They decide about speed only: each step is
#: verified.
NEWTON, MOST_SOLVED, LIFT, LEAST_LIFT = 1e-6, 500, 1e-3, 1e-13

#: Relative change that the first step, from zero, is lifted for: the next steps are smaller.
FIRST = 0.1

#: Most steps that do not halve the largest relative change; rounds of updates follow.
MOST_SLOW = 4


class Rounds:
    """Synchronous updates of all messages.

    Links come first all in one direction, then all in the other, in the same order.
    """

    def __init__(
        self,
        sources: IntArray,
        targets: IntArray,
        diameters: FloatArray,
        component: IntArray,
        passed: type[Map] = Contraction,
    ) -> None:
        order = grouped(targets, len(component))
        half, size = len(order) // 2, len(order)
        place = np.empty(size, dtype=np.int64)
        place[order] = np.arange(size)
        self._order = order
        self._answers = np.where(order < half, order + half, order - half)
        self._reverse = place[self._answers]
        self._sources, self._targets = sources[order], targets[order]
        self._size = len(component)
        self._contraction = passed(diameters[self._answers])
        self._segments = Segments(self._targets)
        self._branches = Branches(sources, targets, component)

    def totals(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the sum of all messages that each vertex receives, rounded up."""
        found = np.zeros(self._size)
        if budgets.any():
            messages = self._messages(budgets, rounds)
            found[self._segments.keys] = self._segments.sums(messages)
        return found

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return the message over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._sources))
        if budgets.any():
            found[self._order] = self._messages(budgets, rounds)
        return found

    def _messages(self, budgets: FloatArray, rounds: int) -> FloatArray:
        amounts, unit = charges(budgets)
        caps = up(self._branches.weights(amounts)[self._answers].astype(np.float64) * unit, 2)
        own = budgets[self._targets]
        before = kept(self, budgets)
        start = contracted(self._contraction, caps)[self._reverse] if before is None else before
        if len(start) < FEWEST:
            return settled(lambda messages: self._updated(messages, own, caps), start, rounds)
        found = self._by_newton(start, own, caps, rounds, before is not None)
        keep(self, budgets, found)
        return found

    def _by_newton(
        self, messages: FloatArray, own: FloatArray, caps: FloatArray, rounds: int, warm: bool
    ) -> FloatArray:
        """Return messages lowered by Newton steps, each verified by an update, or by the update alone.

        The update T is increasing and concave, so a Newton step from T(y) <= y ends at such a y again, up to the error
        of the linear solution. A step is kept only where T(y) <= y in arithmetic that rounds up (`graphs/PROOFS.md`,
        super-solutions of messages). Hence a wrong slope, or a solution that is far off, costs time and no validity.
        """

        def update(sent: FloatArray) -> FloatArray:
            return self._updated(sent, own, caps)

        enough, slow, before = settled_at(len(messages)), 0, math.inf
        if not warm:
            # from zero a step of a concave map ends above the fixed point, if slopes there are small enough
            nothing = np.zeros(len(messages))
            found = _verified(update, self._leap(nothing, *self._linearised(nothing, own, caps), FIRST))
            if found is not None:
                messages = np.minimum(found, messages)
            elif isinstance(self._contraction, Shrinkage):  # with large slopes everywhere steps would be slow
                return settled(update, messages, rounds)
        while slow < min(rounds, MOST_SLOW):
            change, slopes = self._linearised(messages, own, caps)
            largest = float(np.divide(change, messages, out=np.zeros(len(change)), where=messages > 0).max())
            if largest <= enough:
                return np.minimum(update(messages), messages)
            found = _verified(update, self._leap(messages, change, slopes, largest))
            messages = np.minimum(update(messages) if found is None else found, messages)
            slow += largest > 0.5 * before
            before = largest
        return settled(update, messages, rounds)

    def _linearised(self, messages: FloatArray, own: FloatArray, caps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much an update of all messages at once lowers each, and the slopes of its maps."""
        change, slopes = np.empty((2, len(messages)))
        for rows, leakages in self._segments.others_by_block(messages):
            leakages += own[rows]
            behind = np.minimum(leakages, caps[rows])
            change[self._reverse[rows]] = self._contraction.apply(behind, rows)
            slopes[self._reverse[rows]] = np.where(leakages < caps[rows], self._contraction.slopes(behind, rows), 0.0)
        return messages - change, slopes

    def _leap(self, messages: FloatArray, change: FloatArray, slopes: FloatArray, largest: float) -> FloatArray | None:
        """Return the end of a Newton step, a little above; None where the linear solver fails.

        The step d of the message i -> j has d_ij = r_ij + a_ij (s_i - d_ji), r the (negative) change, a the slope and
        s_i the sum of all steps into i. Both directions of a link together give d_ij (1 - a_ij a_ji) =
        r_ij - a_ij r_ji + a_ij s_i - a_ij a_ji s_j. So the sums s solve a linear system over vertices.
        """
        from scipy import sparse
        from scipy.sparse.linalg import LinearOperator, bicgstab

        both = slopes * slopes[self._reverse]
        if float(both.max()) > 1 - 1e-6:
            return None
        scale = 1 / (1 - both)
        fixed = (slopes * change[self._reverse] - change) * scale
        into, out = slopes * scale, both * scale
        size = self._size
        starts = np.r_[0, np.cumsum(np.bincount(self._targets, minlength=size))]
        passed = sparse.csr_array((into, self._sources, starts), shape=(size, size))
        weights = 1 + np.bincount(self._targets, weights=out, minlength=size)
        right = np.bincount(self._targets, weights=fixed, minlength=size) / weights
        operator = LinearOperator((size, size), matvec=lambda s: s - (passed @ s) / weights, dtype=np.float64)
        with np.errstate(all="ignore"):
            sums, _ = bicgstab(operator, right, x0=right.copy(), rtol=NEWTON, atol=0.0, maxiter=MOST_SOLVED)
        if not np.isfinite(sums).all():
            return None
        guess = messages + fixed + into * sums[self._sources] - out * sums[self._targets]
        # the lift makes up for the solver's error, and leaves that share of the way to the next step
        guess *= 1 + max(LIFT * largest, LEAST_LIFT)
        return np.maximum(guess, 0.0)

    def _updated(self, messages: FloatArray, own: FloatArray, caps: FloatArray) -> FloatArray:
        """Return the updated messages, rounded up: block by block, each with the new values of the blocks before.

        `own` and `caps` are those of the messages that answer the given ones.
        """
        found = messages.copy()
        for rows, leakages in self._segments.others_by_block(found):
            leakages += own[rows]
            behind = np.minimum(up(leakages, 1), caps[rows])
            found[self._reverse[rows]] = self._contraction.apply(behind, rows)
        return found


def _verified(update: Callable[[FloatArray], FloatArray], guess: FloatArray | None) -> FloatArray | None:
    """Return the update of a guess that no update raises, so that both are bounds; None for any other guess."""
    if guess is None:
        return None
    found = update(guess)
    return found if (found <= guess).all() else None


def contracted(contraction: Map, leakages: FloatArray) -> FloatArray:
    """Return a contraction of leakages over all links, in blocks."""
    found = np.empty(len(leakages))
    for rows in blocks(len(found)):
        found[rows] = contraction.apply(leakages[rows], rows)
    return found


def blocks(size: int) -> Iterator[slice]:
    """Yield slices of an array, `BLOCK` entries at a time."""
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))


def settled(update: Callable[[FloatArray], FloatArray], messages: FloatArray, rounds: int) -> FloatArray:
    """Return messages updated until they converge."""
    leaps = _Leaps()
    done, enough = 0, settled_at(len(messages))
    while done < rounds:
        updated = update(messages)
        np.minimum(updated, messages, out=updated)
        done += 1
        change = np.subtract(messages, updated, out=messages)
        messages = updated
        if not any((change[rows] > enough * messages[rows]).any() for rows in blocks(len(messages))):
            break
        guess = leaps.guess(messages, change) if done < rounds else None
        if guess is not None:
            found = update(guess)
            done += 1
            if leaps.judge(bool((found <= guess).all())):
                messages = found
    return messages


class _Leaps:
    """Extrapolations of slowly falling messages, to be verified.

    Near the fixed point every update removes the same share of the remaining distance. A guess goes nine tenths of the
    way. It is accepted when an update does not raise any message (`graphs/PROOFS.md`, super-solutions of messages).
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._since, self._wait = 0, 4

    def guess(self, messages: FloatArray, change: FloatArray) -> FloatArray | None:
        """Return a guess when one is due."""
        total = float(change.sum())
        rate = total / self._last if self._last > 0 else 1.0
        self._last = total
        self._since += 1
        # a rate below 0.3 converges fast enough without extrapolation
        if self._since < self._wait or not 0.3 < rate < 1:
            return None
        self._since = 0
        # a geometric series of changes; nine tenths of it, so that the guess stays above the fixed point
        guess = messages - change * (0.9 * rate / (1 - rate))
        return guess if (guess > 0.2 * messages).all() else None

    def judge(self, accepted: bool) -> bool:
        """Record whether the last guess was accepted, and return it."""
        self._last = 0.0 if accepted else self._last
        self._wait = max(self._wait // 2, 4) if accepted else min(self._wait * 2, 32)
        return accepted
