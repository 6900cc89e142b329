"""Every attack on `ClaimsMechanism` by single queries, on every kind of values with every noise, in many sessions.

See `claims_attackers` for what a broken session is. Sessions are counted for each kind and noise, for all noises of a
kind, and all together. The last count sees a mechanism that is a little wrong everywhere: a tenth of the sessions may
be broken, and a sixth is rejected. The counts of an attack share the 1e-9 with which a valid mechanism is rejected.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.statistical.claims_attackers import RATE, SHAPES, broken_sessions, most_broken

pytestmark = pytest.mark.statistical

NOISES = (0.0, 0.05, 1.0)
SESSIONS = 120


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["just outside", "misleading", "repeated"])
def test_no_attack_breaks_more_of_many_sessions(attack: str) -> None:
    broken = np.array([[broken_sessions(attack, kind, noise, SESSIONS) for noise in NOISES] for kind in SHAPES])
    rate = RATE / (broken.size + len(SHAPES) + 1)
    assert broken.max() <= most_broken(SESSIONS, rate)
    assert broken.sum(axis=1).max() <= most_broken(SESSIONS * len(NOISES), rate)
    assert broken.sum() <= most_broken(SESSIONS * broken.size, rate)
