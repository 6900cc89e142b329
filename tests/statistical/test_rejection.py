"""Tests that end early reject no more often than all sessions do, and miss as little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from tests.sizes import corners
from tests.statistical.rejection import MISSED, RATE, early_ends, most_broken, surely_rejected, too_many


def chance(sessions: int, share: float, rate: float, q: float) -> tuple[float, float]:
    """Return the probability of rejection, and the sessions that are run on average, by the law of the counts."""
    law, rejected, run = np.array([1.0]), 0.0, 0.0
    most, ends = most_broken(sessions, share, rate), early_ends(sessions, share, rate)
    for k in range(1, sessions + 1):
        run += float(law.sum())
        law = np.concatenate([law, [0.0]]) * (1.0 - q) + np.concatenate([[0.0], law]) * q
        rejected += float(law[most + 1 :].sum())
        law[most + 1 :] = 0.0
        law[: max(0, most - sessions + k + 1)] = 0.0
        law[: ends.get(k, -1) + 1] = 0.0
    return rejected, run


@pytest.mark.parametrize(
    ("sessions", "share", "rate"),
    corners([(8, 0.05, RATE), (40, 0.1, RATE), (120, 0.1, RATE / 29), (800, 0.05, RATE), (2520, 0.1, RATE / 29)], 0, 1),
)
def test_the_error_rate_and_what_is_missed(sessions: int, share: float, rate: float) -> None:
    assert chance(sessions, share, rate, share)[0] <= binom.sf(most_broken(sessions, share, rate), sessions, share)
    assert binom.sf(most_broken(sessions, share, rate), sessions, share) <= rate
    q = surely_rejected(sessions, share, rate)
    for more in (q, 0.5 * (1.0 + q)):
        assert chance(sessions, share, rate, more)[0] >= 1.0 - 2.0 * MISSED
    for less in np.linspace(share, q, 15):
        whole = binom.sf(most_broken(sessions, share, rate), sessions, less)
        assert whole - 0.003 <= chance(sessions, share, rate, float(less))[0] <= whole * (1.0 + 1e-9)


def test_attacks_without_success_take_a_part_of_the_sessions() -> None:
    assert chance(800, 0.05, RATE, 0.01)[1] < 150
    assert chance(40, 0.1, RATE, 0.01)[1] < 12


def test_sessions_end_where_the_decision_is_clear() -> None:
    ran = itertools.count()

    def all_of(broken: bool) -> list[bool]:
        return [broken for _ in zip(range(8), ran, strict=False)]

    assert too_many(all_of(True), 8, 0.05)
    assert not too_many((False for _ in range(1)), 8, 0.05)
    assert too_many((True for _ in range(most_broken(800, 0.05) + 1)), 800, 0.05)
    with pytest.raises(ValueError, match="got fewer"):
        too_many([True] * 7, 8, 0.05)
    with pytest.raises(ValueError, match="some number of broken ones"):
        too_many([], 5, 0.05)
