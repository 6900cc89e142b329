"""Attackers with known truth against lists of queries to `ClaimsMechanism`, and against the best of a list.

See `claims_attackers` for what a broken session is; a valid mechanism is rejected with probability at most 1e-9.
"""

from __future__ import annotations

import math

import pytest

import thresholdout.mechanisms.claims.mechanism as mechanism_module
from tests.statistical.claims_attackers import BETA, SHAPES, broken_sessions
from tests.statistical.rejection import RATE, Kept, too_many

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(("attack", "kind"), [("listed", "binary"), ("listed", "bets"), ("best of many", "binary")])
def test_lists_break_no_more_sessions_than_promised(attack: str, kind: str) -> None:
    assert not too_many(broken_sessions(attack, kind, 0.05), 120, BETA)


@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_at_the_level_of_one_query_are_rejected(attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail: no level is shared over a list, and all of the risk is left."""
    monkeypatch.setattr(mechanism_module, "list_level", lambda risk, k, keep: risk - math.log(2.0))
    monkeypatch.setattr(mechanism_module, "after_list", lambda risk, keep, told: risk)
    assert too_many(broken_sessions(attack, "binary", 0.05), 120, BETA)


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["listed", "best of many"])
def test_lists_break_no_more_of_many_sessions(attack: str) -> None:
    """Those of each kind, and those of all kinds together: eight counts, which share the error rate."""
    broken = [Kept(broken_sessions(attack, kind, 0.05)) for kind in SHAPES]
    sessions, rate = 100, RATE / (len(SHAPES) + 1)
    for one in broken:
        assert not too_many((one[k] for k in range(sessions)), sessions, BETA, rate)
    everything = (one[k] for k in range(sessions) for one in broken)
    assert not too_many(everything, sessions * len(SHAPES), BETA, rate)
