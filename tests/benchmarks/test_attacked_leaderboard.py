"""Teams that attack a leaderboard: no interval of the guard is false more often than promised; those of scores are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.attacked_leaderboard import Behind, Outcome, Plain, Submitted, play, session
from benchmarks.service_load.teams import Records, Told, thirty_teams
from tests.statistical.rejection import too_many

SIZES = [(7, 240, 300, 29), pytest.param(8, 2000, 4000, 18, marks=pytest.mark.slow)]
"""Sessions, submissions of each, records, and teams that attack; a guard is rejected that breaks each session."""


@pytest.mark.statistical
@pytest.mark.parametrize(("sessions", "submissions", "size", "attackers"), SIZES)
def test_attacked_intervals_of_a_guard_hold(sessions: int, submissions: int, size: int, attackers: int) -> None:
    """A session is broken if one interval of any team is false; or an order of two teams, which follows from them.

    One session that is not broken decides: so many that all are broken are never those of a valid guard.
    """

    def broken(seed: int) -> bool:
        behind = Behind(Records.drawn(size, np.random.default_rng(seed)))
        found = session(seed, attackers, lambda _: behind, submissions, size)
        assert found.refused[False] == 0
        assert len(behind.guard.guard.history) == len(found.answered)
        assert behind.failures > submissions / 100
        assert behind.texts_that_differ == 0
        return found.missed > 0 or found.orders()[1] > 0

    assert not too_many((broken(seed) for seed in range(sessions)), sessions, 0.05)


@pytest.mark.parametrize(("sessions", "submissions", "size", "attackers"), SIZES)
def test_attacked_intervals_of_scores_break(sessions: int, submissions: int, size: int, attackers: int) -> None:
    """The other side: the same teams on exact scores, each with its own interval; of 2,000, even those of a list."""
    ask = partial(Plain, scores=submissions if submissions >= 2000 else 1)
    found = (session(seed, attackers, ask, submissions, size) for seed in range(sessions))
    assert too_many((one.missed > 0 for one in found), sessions, 0.05)


def test_truths_are_those_of_fresh_labels() -> None:
    rng = np.random.default_rng(0)
    records = Records.drawn(500, rng)
    predictions, _ = thirty_teams(records, rng, 3)[0].propose()
    fresh = rng.random((4000, 500)) < records.chances
    error = 0.5 / np.sqrt(4000 * 500)
    assert records.truth(predictions) == pytest.approx(float((fresh == predictions).mean()), abs=6.2 * error)


def test_orders_are_counted_pair_by_pair() -> None:
    def told(team: int, truth: float, value: float, half: float) -> Submitted:
        return Submitted(team, False, truth, Told(value, value - half, value + half))

    found = Outcome([told(0, 0.5, 0.9, 0.1), told(1, 0.6, 0.5, 0.1), told(2, 0.3, 0.4, 0.05), told(0, 0.4, 0.3, 0.1)])
    assert found.orders() == (2, 1)  # 0 above 1, wrongly, and above 2
    assert found.score_orders() == (3, 1)
    assert found.missed == 2


def test_who_expects_what_is_true_is_told_so() -> None:
    """Honest teams only: every answer is the cell around the guess, and nobody is refused."""
    records = Records.drawn(1000, np.random.default_rng(1))
    teams = thirty_teams(records, np.random.default_rng(2), 0)
    found = play(records, teams, Behind(records), np.random.default_rng(3), 30)
    assert sorted(one.team for one in found.answered) == list(range(30))
    assert found.missed == 0
