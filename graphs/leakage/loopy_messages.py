"""Messages on a graph with loops: all of them updated together, from above."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from graphs.leakage.largest_budget import keep, kept, settled_at
from graphs.leakage.segment_sums import BLOCK, Contraction, Map, Segments
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import charges, up
from graphs.structure.spanning_forest import Branches, grouped

__all__ = ["ROUNDS", "Rounds", "contracted", "settled"]

#: Rounds of updates, unless the messages settle before.
ROUNDS = 200


class Rounds:
    """Synchronous updates of all messages.

    Parameters
    ----------
    sources, targets : ndarray of shape (2E,)
        All links in one direction, then all in the other, in the same order.
    diameters : ndarray of shape (2E,)
        Diameter that a message from source to target passes, possibly infinite.
    component : ndarray of shape (n,)
        Number of the connected component of each vertex.
    passed : type of Map
        What links make of messages.
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
        """Return the sum of all messages that each vertex receives, rounded up.

        Parameters
        ----------
        budgets : ndarray of shape (n,)
            What each vertex adds to the messages that pass it, nats.
        rounds : int
            Most rounds of updates.

        Returns
        -------
        ndarray of shape (n,)
        """
        found = np.zeros(self._size)
        if budgets.any():
            messages = self._messages(budgets, rounds)
            found[self._segments.keys] = self._segments.sums(messages)
        return found

    def messages(self, budgets: FloatArray, rounds: int = ROUNDS) -> FloatArray:
        """Return what arrives over each link, shape (2E,), rounded up."""
        found = np.zeros(len(self._sources))
        if budgets.any():
            found[self._order] = self._messages(budgets, rounds)
        return found

    def _messages(self, budgets: FloatArray, rounds: int) -> FloatArray:
        amounts, unit = charges(budgets)
        caps = up(self._branches.weights(amounts)[self._answers].astype(np.float64) * unit, 2)
        own = budgets[self._targets]
        start = kept(self, budgets)
        if start is None:
            start = contracted(self._contraction, caps)[self._reverse]
        found = settled(lambda messages: self._updated(messages, own, caps), start, rounds)
        keep(self, budgets, found)
        return found

    def _updated(self, messages: FloatArray, own: FloatArray, caps: FloatArray) -> FloatArray:
        """Return what all messages become, rounded up: block by block, each with what the blocks before have sent.

        `own` and `caps` are those of the messages that answer the given ones.
        """
        found = messages.copy()
        for rows, leakages in self._segments.others_by_block(found):
            leakages += own[rows]
            behind = np.minimum(up(leakages, 1), caps[rows])
            found[self._reverse[rows]] = self._contraction.apply(behind, rows)
        return found


def contracted(contraction: Map, leakages: FloatArray) -> FloatArray:
    """Return what all links of a contraction leave of leakages, in blocks."""
    found = np.empty(len(leakages))
    for rows in blocks(len(found)):
        found[rows] = contraction.apply(leakages[rows], rows)
    return found


def blocks(size: int) -> Iterator[slice]:
    """Yield the places of an array, a few at a time."""
    for start in range(0, size, BLOCK):
        yield slice(start, min(start + BLOCK, size))


def settled(update: Callable[[FloatArray], FloatArray], messages: FloatArray, rounds: int) -> FloatArray:
    """Return messages updated until they settle.

    Parameters
    ----------
    update : callable
        One round of updates, increasing, rounded up.
    messages : ndarray
        Valid messages to start from.
    rounds : int
        Most rounds.

    Returns
    -------
    ndarray
        Valid messages, none larger than at the start.
    """
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
    """Guesses where slowly falling messages will end, to be verified.

    Close to the end every update takes the same share of what is left. A guess goes nine tenths of the way; it is
    accepted when an update does not raise any message (`graphs/PROOFS.md`, super-solutions of messages).
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._since, self._wait = 0, 4

    def guess(self, messages: FloatArray, change: FloatArray) -> FloatArray | None:
        """Return a guess, when it is time for one."""
        total = float(change.sum())
        rate = total / self._last if self._last > 0 else 1.0
        self._last = total
        self._since += 1
        if self._since < self._wait or not 0.3 < rate < 1:
            return None
        self._since = 0
        guess = messages - change * (0.9 * rate / (1 - rate))
        return guess if (guess > 0.2 * messages).all() else None

    def judge(self, accepted: bool) -> bool:
        """Note whether the last guess was accepted, and return it."""
        self._last = 0.0 if accepted else self._last
        self._wait = max(self._wait // 2, 4) if accepted else min(self._wait * 2, 32)
        return accepted
