"""Every attack on `ClaimsMechanism` by single queries, on every kind of values with every noise, in many sessions.

See `claims_attackers` for what a broken session is. The sessions of each noise are counted, and those of all noises
together, which sees a mechanism that is a little wrong with each of them: four counts, each with a quarter of the 1e-9
with which a valid mechanism is rejected.
"""

from __future__ import annotations

import pytest

from tests.statistical.claims_attackers import RATE, SHAPES, broken_sessions, most_broken

pytestmark = pytest.mark.statistical

NOISES = (0.0, 0.05, 1.0)
SESSIONS = 700


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(SHAPES))
@pytest.mark.parametrize("attack", ["just outside", "misleading", "repeated"])
def test_no_attack_breaks_more_of_many_sessions(attack: str, kind: str) -> None:
    broken = [broken_sessions(attack, kind, noise, SESSIONS) for noise in NOISES]
    assert max(broken) <= most_broken(SESSIONS, RATE / 4)
    assert sum(broken) <= most_broken(SESSIONS * len(NOISES), RATE / 4)
