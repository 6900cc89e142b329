"""Queues of a service: workers that read submissions, and a store that answers those of one holdout one after another.

A submission is read by a worker (processor time; more where the worker has to open the holdout first), and then
answered by the store: a transaction holds its holdout, and one of so many slots of its part of the store, for the time
of a durable commit. Those that wait for the same holdout can be answered by one transaction.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrivals", "Store", "Workers", "answered", "arrivals", "read"]

Times = NDArray[np.float64]

_SPREAD, _MODULUS = 48_271, 2**31 - 1  # which worker a holdout goes to says nothing about how often it is asked


@dataclass(frozen=True)
class Arrivals:
    """Submissions in the order of their times.

    Attributes
    ----------
    times : ndarray
        Seconds.
    holdouts : ndarray
        Which holdout each is for.
    work : ndarray
        Seconds of a processor that reading takes.
    """

    times: Times
    holdouts: NDArray[np.int64]
    work: Times


@dataclass(frozen=True)
class Workers:
    """Processes that read submissions, each with one processor and without state of its own but a cache.

    Attributes
    ----------
    count : int
        How many.
    cached : int
        Holdouts that a worker keeps open; the one that was not used for longest makes place.
    opening : float
        Seconds of a processor to open a holdout.
    routed : bool
        Whether all submissions for one holdout go to one worker; otherwise to the one that is free first.
    """

    count: int
    cached: int = 10**9
    opening: float = 0.0
    routed: bool = False


@dataclass(frozen=True)
class Store:
    """What answers and keeps the answers.

    Attributes
    ----------
    commit : float
        Seconds of a durable commit.
    each : float
        Seconds that each answer adds to it.
    batch : int
        How many submissions of one worker for one holdout one transaction answers at most.
    parts : int
        Servers that holdouts are spread over.
    slots : int
        Transactions that one of them does at once.
    """

    commit: float
    each: float = 0.0
    batch: int = 1
    parts: int = 1
    slots: int = 10**9


def arrivals(
    rng: np.random.Generator,
    rate: float,
    seconds: float,
    *,
    holdouts: int = 1,
    skew: float = 0.0,
    work: Times | float = 0.0,
    surge: float = 0.0,
) -> Arrivals:
    """Draw submissions of a Poisson process.

    Parameters
    ----------
    rng : Generator
        Of everything.
    rate : float
        Submissions a second.
    seconds : float
        For how long.
    holdouts : int
        How many there are.
    skew : float
        The k-th most asked holdout has a share proportional to ``k ** -skew``.
    work : float or ndarray
        Seconds that reading takes; of several, each submission draws one.
    surge : float
        Submissions a second that come to the first holdout besides, in the second half: the hour before its end.
    """
    usual = np.sort(rng.random(rng.poisson(rate * seconds))) * seconds
    more = seconds * (0.5 + 0.5 * np.sort(rng.random(rng.poisson(surge * seconds / 2))))
    shares = np.arange(1, holdouts + 1) ** -skew
    wanted = np.searchsorted(np.cumsum(shares) / shares.sum(), rng.random(usual.size))
    times = np.concatenate([usual, more])
    order = np.argsort(times, kind="stable")
    which = np.concatenate([np.minimum(wanted, holdouts - 1), np.zeros(more.size, dtype=np.int64)])[order]
    return Arrivals(times[order], which, rng.choice(np.atleast_1d(np.asarray(work)), times.size))


def read(submissions: Arrivals, workers: Workers) -> tuple[Times, NDArray[np.int64]]:
    """Return when each submission has been read, and by which worker; a free one takes the first that waits."""
    free = [(0.0, worker) for worker in range(workers.count)]
    until = [0.0] * workers.count
    opened: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(workers.count)]
    ends, readers = np.empty(submissions.times.size), np.empty(submissions.times.size, dtype=np.int64)
    listed = zip(submissions.times.tolist(), submissions.holdouts.tolist(), submissions.work.tolist(), strict=True)
    for place, (time, holdout, work) in enumerate(listed):
        if workers.routed:
            worker = holdout * _SPREAD % _MODULUS % workers.count
            start = max(time, until[worker])
        else:
            since, worker = heapq.heappop(free)
            start = max(time, since)
        end = start + work + (0.0 if _found(opened[worker], holdout, workers.cached) else workers.opening)
        until[worker] = ends[place] = end
        readers[place] = worker
        if not workers.routed:
            heapq.heappush(free, (end, worker))
    return ends, readers


def _found(opened: OrderedDict[int, None], holdout: int, most: int) -> bool:
    """Use a holdout of a cache; return whether it was there."""
    there = holdout in opened
    opened[holdout] = None
    opened.move_to_end(holdout)
    if len(opened) > most:
        opened.popitem(last=False)
    return there


def answered(
    ready: Times, holdouts: NDArray[np.int64], store: Store, readers: NDArray[np.int64] | None = None
) -> Times:
    """Return when each submission that was read is answered.

    Parameters
    ----------
    ready : ndarray
        When it was read; in any order.
    holdouts : ndarray
        Which holdout it is for.
    store : Store
        What answers.
    readers : ndarray, optional
        Which worker has read it: a transaction answers what one worker has. By default there is only one.
    """
    readers = np.zeros(ready.size, dtype=np.int64) if readers is None else readers
    ends, order = np.empty(ready.size), np.argsort(ready, kind="stable")
    waiting: dict[int, deque[int]] = {}
    turns: list[deque[int]] = [deque() for _ in range(store.parts)]  # holdouts that wait for a slot
    used = [0] * store.parts
    under_way: list[tuple[float, int, int]] = []  # end, holdout, part

    def begin(now: float, part: int) -> None:
        while turns[part] and used[part] < store.slots:
            holdout = turns[part].popleft()
            batch = _together(waiting[holdout], readers, store.batch)
            end = now + store.commit + store.each * len(batch)
            ends[batch] = end
            used[part] += 1
            heapq.heappush(under_way, (end, holdout, part))

    def finish(until: float) -> None:
        while under_way and under_way[0][0] <= until:
            end, holdout, part = heapq.heappop(under_way)
            used[part] -= 1
            if waiting[holdout]:
                turns[part].append(holdout)
            else:
                del waiting[holdout]
            begin(end, part)

    for place in order.tolist():
        now, holdout = float(ready[place]), int(holdouts[place])
        finish(now)
        part = holdout % store.parts
        if holdout in waiting:  # it is under way, or has its turn
            waiting[holdout].append(place)
        else:
            waiting[holdout] = deque([place])
            turns[part].append(holdout)
            begin(now, part)
    finish(float("inf"))
    return ends


def _together(waiting: deque[int], readers: NDArray[np.int64], most: int) -> list[int]:
    """Take the first that waits, and those that the same worker has."""
    if most == 1:
        return [waiting.popleft()]
    reader = readers[waiting[0]]
    batch = [place for place in waiting if readers[place] == reader][:most]
    taken = set(batch)
    left = [place for place in waiting if place not in taken]
    waiting.clear()
    waiting.extend(left)
    return batch
