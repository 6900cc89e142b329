"""Leaderboards that are kept up to date say what a leaderboard from the whole history says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import for_each
from tests.thresholdout.service.evaluations import ADMIN, made, right_in, team
from thresholdout.service import leaderboards
from thresholdout.service.leaderboards import Leaderboards
from thresholdout.service.standings import standings


@pytest.mark.slow
@for_each("slice_", [1, 2, 3, 2000])
def test_reading_on_and_going_on_elsewhere_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_: int
) -> None:
    """Two processes look in turn, one of them anew each time; the history in one piece says the same."""
    monkeypatch.setattr(leaderboards, "_SLICE", slice_)
    service = made(tmp_path / "leaderboard.db")
    teams = [team(service, name) for name in ("ann", "bob", "zoe")]
    identity = service.holdout(ADMIN, "cells").identity
    other = Leaderboards(service.ledger)
    for k in range(9):
        share = 0.5 + 0.05 * ((3 * k) % 7)
        service.submit(teams[k % 3], "cells", right_in(share, k), idempotency_key=f"{k}", expected=share)
        row = service._holdouts.find("cells")
        assert row is not None
        expected = tuple(standings(service.ledger.entries(identity), "accuracy", greater_is_better=True))
        assert service.leaderboard(ADMIN, "cells").rows == expected
        assert Leaderboards(service.ledger).rows(row) == expected
        if k % 4 == 3:
            assert other.rows(row) == expected
    service.close()


def test_a_leaderboard_that_is_behind_a_blind_phase_shows_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process has kept beyond the beginning of a blind phase is not used for leaderboards of that phase."""
    monkeypatch.setattr(leaderboards, "_SLICE", 1)
    service = made(tmp_path / "leaderboard.db")
    ann = team(service, "ann")
    for k in range(3):
        service.submit(ann, "cells", right_in(0.6 + 0.1 * k), idempotency_key=f"{k}", expected=0.7)
    assert service.leaderboard(ann, "cells").rows[0].submissions == 3
    row = service._holdouts.find("cells")
    assert row is not None
    service._holdouts.set_phase(row.number, "blind", 2)  # as when it began before the third was answered
    assert service.leaderboard(ann, "cells").rows[0].submissions == 2
    service.close()
