"""A year of changes that are made from earlier outcomes: no author beats the promise, and without the price all do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sizes import sizes
from tests.statistical.rejection import too_many
from thresholdout.evaluations.account import Account
from thresholdout.limits.binomial import log_one_law_tail

pytestmark = pytest.mark.statistical

BETA = 0.05
ITEMS = 1000
CHECKS = 300
TOUCHED = 0.05
"""Share of items that one harmless change wins, and loses."""

Signs = NDArray[np.int8]


@dataclass
class World:
    """A hidden gate part and its account. A harmless change wins and loses items at random: its truth is 0."""

    rng: np.random.Generator
    account: Account
    false: int = 0

    def harmless(self) -> Signs:
        return self.rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=ITEMS, p=[TOUCHED, 1 - 2 * TOUCHED, TOUCHED])

    def harm(self, points: float) -> Signs:
        """A change that loses a share of the items: its truth is known to its author."""
        return -(self.rng.random(ITEMS) < points).astype(np.int8)

    def worse(self, changes: list[Signs], truly: bool) -> bool:
        """Check the sum of some changes against the baseline."""
        total = np.clip(np.sum(changes, axis=0), -1, 1)
        losses, wins = int(np.count_nonzero(total < 0)), int(np.count_nonzero(total > 0))
        alarm = log_one_law_tail(losses, losses + wins, 0.5) <= self.account.log_level
        self.account = self.account.after(alarm)
        self.false += alarm and not truly
        return alarm


Author = Callable[[World], None]


def red(world: World) -> None:
    """Stacks what alarmed; adds harm until half of the checks alarm."""
    kept: list[Signs] = []
    points = 0.02
    while not world.account.exhausted and not world.false:
        change = world.harmless()
        if world.worse([change, world.harm(points)], truly=True):
            kept.append(change)
            points *= 0.9
            if len(kept) > 1 and not world.account.exhausted:
                world.worse(kept, truly=False)
        else:
            points *= 1.1


def threshold(world: World) -> None:
    """Keeps one harmful change near the threshold, probes harmless ones beside it, and tests their sum at the end."""
    kept: list[Signs] = []
    ballast = world.harm(0.03)
    while not world.account.exhausted and world.account.done < CHECKS - 10:
        change = world.harmless()
        if world.worse([change, ballast], truly=True):
            kept.append(change)
        elif world.account.done % 10 == 9 and len(kept) < 2:
            ballast = world.harm(0.03 + 0.002 * (world.account.done // 10))
    for count in (len(kept), len(kept) // 2, 4, 3, 2):
        if len(kept) >= count > 0 and not world.account.exhausted:
            world.worse(kept[:count], truly=False)


def green(world: World) -> None:
    """Takes silence for evidence: stacks the changes that did not alarm beside a harmful one, reversed."""
    kept: list[Signs] = []
    while not world.account.exhausted and not world.false:
        change = world.harmless()
        if not world.worse([change, world.harm(0.045)], truly=True):
            kept.append(np.negative(change))
        if len(kept) > 4 and world.account.done % 5 == 0 and not world.account.exhausted:
            world.worse(kept, truly=False)


def bisecting(world: World) -> None:
    """Spends its few alarms where they tell most: adjusts the harm to a chance of one half at the present level."""
    kept: list[Signs] = []
    while not world.account.exhausted and not world.false:
        change = world.harmless()
        reach = math.sqrt(-2.0 * world.account.log_level) * math.sqrt(2 * TOUCHED / ITEMS)
        harm = world.harm(min(0.9, reach))
        if world.worse([change, harm], truly=True):
            kept.append(change)
        else:
            kept.append(np.negative(change))
        if not world.account.exhausted and world.account.done % 3 == 0:
            world.worse(kept[-60:], truly=False)


AUTHORS: tuple[Author, ...] = (red, green, threshold, bisecting)


def beaten(author: Author, number: int, account: Account) -> bool:
    return too_many((_year(author, seed, account) for seed in range(number)), number, BETA)


def _year(author: Author, seed: int, account: Account) -> bool:
    world = World(np.random.default_rng([seed, AUTHORS.index(author)]), account)
    author(world)
    return world.false > 0


def priced(surprises: int) -> Account:
    return Account(CHECKS, surprises, False, "year", math.log(BETA))


@sizes("number", 30, 100)
@pytest.mark.parametrize("surprises", [5, CHECKS])
@pytest.mark.parametrize("author", AUTHORS)
def test_no_author_beats_the_promise(author: Author, surprises: int, number: int) -> None:
    """Also where surprises are not limited, and the price alone keeps it."""
    assert not beaten(author, number, priced(surprises))


@sizes("number", 30, 100)
@pytest.mark.parametrize("author", AUTHORS)
def test_the_twin_without_the_price_is_beaten(author: Author, number: int) -> None:
    planned = replace(priced(CHECKS), promise="each")
    assert beaten(author, number, planned)
