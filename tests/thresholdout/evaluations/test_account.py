"""The price of outcomes: every adversary on a small space, and twins that exceed the promise."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import pytest

from tests.cases import for_each
from thresholdout.evaluations.account import Account

POINTS = 32
"""Equally likely outcomes of the hidden data."""


class Rules(Hashable, Protocol):
    @property
    def log_level(self) -> float: ...
    @property
    def exhausted(self) -> bool: ...
    def after(self, claimed: bool) -> Rules: ...


def most_false(rules: Rules) -> float:
    """The largest probability of a false claim, over all adversaries who see outcomes and choose each next event.

    A history is reached by some of the points. A false claim is published on an event of at most the level, a true one
    on any event. The events of different histories may be any sets, so numbers of points are enough.
    """

    @cache
    def value(reached: int, rules: Rules) -> int:
        if reached == 0 or rules.exhausted:
            return 0
        event = min(reached, math.floor(POINTS * math.exp(rules.log_level) + 1e-6))
        best = event + value(reached - event, rules.after(False)) if event else 0
        for claimed in range(reached + 1):
            best = max(best, value(claimed, rules.after(True)) + value(reached - claimed, rules.after(False)))
        return best

    return value(POINTS, rules) / POINTS


@dataclass(frozen=True)
class Twin:
    """An account that is broken in one place."""

    account: Account
    broken: Callable[[Account, bool], Account]

    @property
    def log_level(self) -> float:
        return self.account.log_level

    @property
    def exhausted(self) -> bool:
        return self.account.exhausted

    def after(self, claimed: bool) -> Twin:
        return Twin(self.broken(self.account, claimed), self.broken)


def account(checks: int, beta: float, claim_expected: bool = False, surprises: int = 9) -> Account:
    return Account(checks, min(surprises, checks), claim_expected, "year", math.log(beta))


@pytest.mark.slow
@for_each("claim_expected", [False, True])
@for_each("beta", [0.25, 0.5, 0.75])
@for_each("checks", [1, 2, 3, 4])
def test_no_adversary_exceeds_the_promise(checks: int, beta: float, claim_expected: bool) -> None:
    assert most_false(account(checks, beta, claim_expected)) <= beta


def test_the_promise_is_reached() -> None:
    assert most_false(account(3, 0.75)) == 0.75


def free_claims(account: Account, claimed: bool) -> Account:
    """A claim leaves what was there."""
    after = account.after(claimed)
    return replace(after, log_left=account.log_left) if claimed else after


def both_free(account: Account, claimed: bool) -> Account:
    """Nothing leaves what was there, and so does a claim."""
    return replace(account.after(claimed), log_left=account.log_left)


def free_nothing(account: Account, claimed: bool) -> Account:
    """Nothing is said for free where a claim was expected."""
    return account.after(claimed) if claimed else replace(account.after(claimed), log_left=account.log_left)


@pytest.mark.slow
@for_each(
    ("broken", "claim_expected"), [(free_claims, False), (both_free, False), (free_nothing, True), (both_free, True)]
)
def test_twins_exceed_it(broken: Callable[[Account, bool], Account], claim_expected: bool) -> None:
    beta = 0.25
    assert most_false(Twin(account(4, beta, claim_expected), broken)) > 1.2 * beta


def test_each_exceeds_it_for_adaptive_changes() -> None:
    planned = replace(account(4, 0.5), promise="each")
    assert most_false(planned) > 0.5


def test_levels_of_a_year() -> None:
    """By hand: .05/300 while nothing was said; after one alarm at the k-th, .05/300/(300 - k)."""
    year = account(300, 0.05)
    for _ in range(149):
        year = year.after(False)
    assert math.exp(year.log_level) == pytest.approx(0.05 / 300, rel=1e-9)
    year = year.after(True)
    assert math.exp(year.log_level) == pytest.approx(0.05 / 300 / 150, rel=1e-9)
    assert (year.done, year.surprised) == (150, 1)


def test_expected_proofs_are_nearly_free() -> None:
    year = account(300, 0.05, claim_expected=True)
    for _ in range(300):
        assert math.exp(year.log_level) > 0.05 / math.e * 0.99
        year = year.after(True)
    assert (year.surprised, year.exhausted) == (0, True)


def test_the_account_is_used_up_by_surprises() -> None:
    year = account(300, 0.05, surprises=2)
    year = year.after(True)
    assert not year.exhausted
    assert year.after(True).exhausted


def test_it_is_kept_as_text() -> None:
    year = account(2, 0.05).after(False).after(False)
    assert year.log_left == -math.inf
    assert Account.from_dict(year.as_dict()) == year
