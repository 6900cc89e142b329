"""Attackers with known truth against lists of queries to `ClaimsMechanism`, and against the best of a list.

See `claims_attackers` for what a broken session is; a valid mechanism is rejected with probability at most 1e-9.
"""

from __future__ import annotations

import math

import pytest

import thresholdout.mechanisms.claims.mechanism as mechanism_module
from tests.statistical.claims_attackers import RATE, SHAPES, broken_sessions, most_broken

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(("attack", "kind"), [("listed", "binary"), ("listed", "bets"), ("best of many", "binary")])
def test_lists_break_no_more_sessions_than_promised(attack: str, kind: str) -> None:
    sessions = 120
    assert broken_sessions(attack, kind, 0.05, sessions) <= most_broken(sessions)


@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_at_the_level_of_one_query_are_rejected(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail: no level is shared over a list, and all of the risk is left."""
    monkeypatch.setattr(mechanism_module, "list_level", lambda risk, k, keep: risk - math.log(2.0))
    monkeypatch.setattr(mechanism_module, "after_list", lambda risk, keep, told: risk)
    sessions = 120
    assert broken_sessions(attack, "binary", 0.05, sessions) > most_broken(sessions)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_break_no_more_of_many_sessions(attack: str) -> None:
    """Those of each kind, and those of all kinds together: eight counts, which share the error rate."""
    sessions = 100
    broken = [broken_sessions(attack, kind, 0.05, sessions) for kind in SHAPES]
    assert max(broken) <= most_broken(sessions, RATE / (len(SHAPES) + 1))
    assert sum(broken) <= most_broken(sessions * len(SHAPES), RATE / (len(SHAPES) + 1))
