"""Simulated queues against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.service_load.queues import Arrivals, Store, Workers, answered, arrivals, read
from tests.cases import for_each


def erlang_wait(rate: float, mean: float, servers: int) -> float:
    """Mean wait in M/M/c (Erlang C)."""
    load = rate * mean
    last = load**servers / math.factorial(servers) / (1.0 - load / servers)
    waits = last / (sum(load**k / math.factorial(k) for k in range(servers)) + last)
    return waits * mean / (servers - load)


@pytest.mark.slow
@for_each(("servers", "load"), [(1, 0.5), (3, 0.7), (8, 0.75)])
def test_workers_are_the_queue_of_erlang(servers: int, load: float) -> None:
    rng = np.random.default_rng(servers)
    drawn = arrivals(rng, load * servers, 60_000.0)
    drawn = Arrivals(drawn.times, drawn.holdouts, rng.exponential(1.0, drawn.times.size))
    waits = read(drawn, Workers(servers))[0] - drawn.work - drawn.times
    assert waits.mean() == pytest.approx(erlang_wait(load * servers, 1.0, servers), rel=0.05)


@pytest.mark.slow
@for_each("load", [0.3, 0.6, 0.85])
def test_one_holdout_is_a_queue_with_fixed_times(load: float) -> None:
    """M/D/1: the mean wait is load / (2 (1 - load)) times the time (Pollaczek and Khinchine)."""
    drawn = arrivals(np.random.default_rng(1), load, 60_000.0)
    waits = answered(drawn.times, drawn.holdouts, Store(commit=1.0)) - 1.0 - drawn.times
    assert waits.mean() == pytest.approx(load / (2.0 * (1.0 - load)), rel=0.05)


@pytest.mark.slow
@for_each("load", [0.3, 1.0, 5.0])
def test_answers_in_one_commit_wait_for_half_a_commit_at_most(load: float) -> None:
    """All that wait go into one commit of time 1: one is under way for a share r / (r + exp(-r)) of the time.

    A run of commits ends when none arrived during one, so it has exp(r) of them on average, and 1 / r passes until the
    next; whoever arrives during one waits for the rest of it, half of it on average.
    """
    drawn = arrivals(np.random.default_rng(2), load, 40_000.0)
    waits = answered(drawn.times, drawn.holdouts, Store(commit=1.0, batch=10**9)) - 1.0 - drawn.times
    assert waits.mean() == pytest.approx(0.5 * load / (load + math.exp(-load)), rel=0.03)
    assert waits.max() <= 1.0


@pytest.mark.slow
def test_slots_of_many_holdouts_are_servers() -> None:
    """With holdouts that nobody shares, one slot is M/D/1; two are as two servers that take turns (fixed times)."""
    drawn = arrivals(np.random.default_rng(3), 0.6, 40_000.0)
    alone = np.arange(drawn.times.size)
    waits = answered(drawn.times, alone, Store(commit=1.0, slots=1)) - 1.0 - drawn.times
    assert waits.mean() == pytest.approx(0.6 / (2.0 * 0.4), rel=0.06)
    turns = answered(drawn.times, alone, Store(commit=1.0, slots=1, parts=2))
    assert turns == pytest.approx(answered(drawn.times, alone, Store(commit=1.0, slots=2)), abs=1e-6)


def test_a_holdout_is_answered_one_after_another_and_others_beside_it() -> None:
    ready, holdouts = np.array([0.0, 0.1, 0.2, 0.3]), np.array([7, 7, 8, 7])
    assert answered(ready, holdouts, Store(commit=1.0)).tolist() == [1.0, 2.0, 1.2, 3.0]
    assert answered(ready, holdouts, Store(commit=1.0, batch=2)).tolist() == [1.0, 2.0, 1.2, 2.0]
    assert answered(ready, holdouts, Store(commit=1.0, each=0.5, batch=2)).tolist() == [1.5, 3.5, 1.7, 3.5]
    assert answered(ready, holdouts, Store(commit=1.0, slots=1)).tolist() == [1.0, 3.0, 2.0, 4.0]
    by_worker = np.array([0, 1, 0, 0])
    assert answered(ready, np.zeros(4, dtype=int), Store(1.0, batch=9), by_worker).tolist() == [1.0, 2.0, 3.0, 3.0]


def test_a_worker_opens_what_it_does_not_keep() -> None:
    times, holdouts = np.arange(6.0), np.array([0, 1, 0, 2, 0, 1])
    drawn = Arrivals(times, holdouts, np.full(6, 0.1))
    took = read(drawn, Workers(1, cached=2, opening=0.5))[0] - times
    assert took == pytest.approx([0.6, 0.6, 0.1, 0.6, 0.1, 0.6])
    apart = read(drawn, Workers(2, opening=0.5, routed=True))[0] - times
    assert apart == pytest.approx([0.6, 0.6, 0.1, 0.6, 0.1, 0.1])


def test_arrivals_have_the_rate_and_the_shares() -> None:
    drawn = arrivals(np.random.default_rng(4), 50.0, 2000.0, holdouts=4, skew=1.0, surge=20.0)
    assert np.all(np.diff(drawn.times) >= 0)
    shares = np.array([1.0, 1 / 2, 1 / 3, 1 / 4]) / (25 / 12)
    wanted = 100_000 * shares + np.array([20_000, 0, 0, 0])
    counts = np.bincount(drawn.holdouts)
    assert np.all(np.abs(counts - wanted) < 6.2 * np.sqrt(wanted))
    late = drawn.times > 1000.0
    assert abs(int((drawn.holdouts[late] == 0).sum()) - wanted[0] / 2 - 10_000) < 6.2 * np.sqrt(wanted[0])
