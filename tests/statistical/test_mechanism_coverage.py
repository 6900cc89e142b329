"""Coverage of the mechanisms that state half-widths.

Every record is a row of fair signs, so every attribute, and every majority of attributes, is right about half of the
records in truth. The analyst adapts: she asks about attributes, and then for the majority of the attributes turned by
what she saw. A run is broken when any answer is off by more than its half-width. `rejection` says how many broken runs
reject a mechanism; a valid one is rejected with probability at most 1e-9. Each mechanism has a deliberately broken twin
that must be rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphs import Groups
from tests.sizes import corners
from tests.statistical.rejection import too_many
from thresholdout.errors import BudgetExhausted
from thresholdout.limits.group_sums import GroupSizes
from thresholdout.mechanisms import (
    Known,
    Ladder,
    LadderParameters,
    LadderState,
    Mechanism,
    Outcome,
)
from thresholdout.noise.sources import SeededNoise

pytestmark = pytest.mark.statistical

RUNS = 150
BETA = 0.1
N = 2000

Signs = NDArray[np.int64]
AnyMechanism = Mechanism[Any, Any]
HalfWidth = Callable[[Outcome], float]


def stated(outcome: Outcome) -> float:
    assert outcome.interval is not None
    return max(outcome.value - outcome.interval[0], outcome.interval[1] - outcome.value)


GROUP = 20


def signs_of(rng: np.random.Generator, records: int, group: int) -> Signs:
    """One attribute: a fair sign for every group of records."""
    return np.repeat(2 * rng.integers(0, 2, records // group) - 1, group)


class Analyst:
    """Sums attributes up, turned by the answers, and asks for the sign of the sum after each of them."""

    def __init__(self, rng: np.random.Generator, records: int, often: int, group: int) -> None:
        self.rng = rng
        self.total = np.zeros(records)
        self.often = often
        self.group = group

    def broken(self, mechanism: AnyMechanism, half_width: HalfWidth, queries: int, seed: int) -> bool:
        """Run one interaction; whether any answer was off by more than its half-width."""
        noise, n = SeededNoise(seed), self.total.size
        state = mechanism.start(noise)
        for query in range(queries):
            asks_for_all = query % self.often == self.often - 1
            fresh = signs_of(self.rng, n, self.group)
            signs = np.where(self.total == 0, fresh, np.sign(self.total)) if asks_for_all else fresh
            # Forces an answer from the records, then invites a confirmation of a value that is too large.
            train = 0.62 if asks_for_all else 0.0
            try:
                state, outcome = mechanism.step(state, train, mechanism.read(signs > 0, n, (0.0, 1.0), "v"), noise)
            except BudgetExhausted:
                return False
            if abs(outcome.value - 0.5) > half_width(outcome):
                return True
            if not asks_for_all:
                self.total += np.clip(outcome.value - 0.5, -0.05, 0.05) * signs
        return False


class Climber:
    """Shows small changes of her best query to a leaderboard, and keeps those that were shown as better."""

    def __init__(self, rng: np.random.Generator, records: int, often: int, group: int) -> None:
        self.rng = rng
        self.total = np.zeros(records)

    def broken(self, mechanism: AnyMechanism, half_width: HalfWidth, queries: int, seed: int) -> bool:
        """Run one interaction; whether the best truth, a half, was ever outside of the interval."""
        noise, n, best = SeededNoise(seed), self.total.size, -1.0
        state = mechanism.start(noise)
        for _ in range(queries):
            fresh = self.total + self.fresh()
            reading = mechanism.read(fresh > 0, n, (0.0, 1.0), "v", Known(binary=True))
            state, outcome = mechanism.step(state, 0.5, reading, noise)
            if outcome.interval is None or not outcome.interval[0] <= 0.5 <= outcome.interval[1]:
                return True
            if outcome.value > best:
                best, self.total = outcome.value, fresh
        return False

    def fresh(self) -> NDArray[np.float64]:
        """Return a small change."""
        return self.rng.normal(size=self.total.size)


# 805 groups: 400 of 1 to 51 records with a heavy tail, and 405 of one
HEAVY = np.minimum(60, np.floor(1.5 / (1.0 - np.linspace(0.0, 0.99, 2000)) ** 0.8)).astype(np.int64)
HEAVY = np.sort(HEAVY)[:: HEAVY.sum() // 2000 + 1]
HEAVY = np.append(HEAVY, np.ones(N - HEAVY.sum(), dtype=np.int64))


class GroupClimber(Climber):
    """The same over groups whose records are right or wrong as one: few groups have most of the records."""

    def fresh(self) -> NDArray[np.float64]:
        return np.repeat(self.rng.normal(size=HEAVY.size), HEAVY)


def rejected(
    mechanism: AnyMechanism,
    half_width: HalfWidth,
    queries: int,
    often: int = 10,
    attack: type[Analyst] | type[Climber] = Analyst,
    group: int = 1,
) -> bool:
    """Return whether more runs are broken than those of a valid mechanism."""
    rng = np.random.default_rng(1)
    broken = (attack(rng, N, often, group).broken(mechanism, half_width, queries, seed) for seed in range(RUNS))
    return too_many(broken, RUNS, BETA)


class TestLadder:
    @pytest.mark.parametrize("random_estimands", corners([False, True], 0))
    def test_intervals_hold(self, random_estimands: bool) -> None:
        mechanism = Ladder(LadderParameters(1 - BETA, random_estimands=random_estimands), N)
        assert not rejected(mechanism, stated, 100, attack=Climber)

    def test_intervals_hold_for_groups_of_heavy_tailed_sizes(self) -> None:
        """Groups are right or wrong as one; a ladder that takes their records for independent is rejected."""
        groups = Groups(np.repeat(np.arange(HEAVY.size), HEAVY))
        guarded = Ladder(
            LadderParameters(
                1 - BETA,
                inflation=groups.variance_inflation(),
                effective=groups.effective_records(),
                sizes=GroupSizes.of(HEAVY).counts,
            ),
            N,
        )
        assert not rejected(guarded, stated, 40, attack=GroupClimber)
        assert rejected(Ladder(LadderParameters(1 - BETA), N), stated, 40, attack=GroupClimber)

    def test_a_heuristic_step_is_rejected(self) -> None:
        """About half a standard deviation as step, and as claim, whatever was shown before."""

        class Heuristic(Ladder):
            def step(self, state: LadderState, *rest: Any) -> tuple[LadderState, Outcome]:
                after, outcome = super().step(state, *rest)
                return replace(after, log_error_budget=math.log(0.5)), outcome

        mechanism = Heuristic(LadderParameters(1 - BETA), N)
        assert rejected(mechanism, stated, 100, attack=Climber)
