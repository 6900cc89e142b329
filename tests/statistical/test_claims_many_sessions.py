"""Every attack on `ClaimsMechanism` by single queries, on every kind of values with every noise, in many sessions.

See `claims_attackers` for what a broken session is. Sessions are counted for each kind and noise, for all noises of a
kind, and all together. The last count sees a mechanism that is a little wrong everywhere: a tenth of the sessions may
be broken, and 0.177 of them are rejected. The counts of an attack share the 1e-9 with which a valid mechanism is
rejected.
"""

from __future__ import annotations

import pytest

from tests.statistical.claims_attackers import BETA, SHAPES, broken_sessions
from tests.statistical.rejection import RATE, Kept, surely_rejected, too_many

pytestmark = pytest.mark.statistical

NOISES = (0.0, 0.05, 1.0)
SESSIONS = 120
CASES = [(kind, noise) for kind in SHAPES for noise in NOISES]
COUNTS = len(CASES) + len(SHAPES) + 1


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["just outside", "misleading", "repeated"])
def test_no_attack_breaks_more_of_many_sessions(attack: str) -> None:
    broken = {case: Kept(broken_sessions(attack, *case)) for case in CASES}
    for kind in SHAPES:
        of_kind = [broken[kind, noise] for noise in NOISES]
        for one in of_kind:
            assert not too_many((one[k] for k in range(SESSIONS)), SESSIONS, BETA, RATE / COUNTS)
        together = (one[k] for k in range(SESSIONS) for one in of_kind)
        assert not too_many(together, SESSIONS * len(NOISES), BETA, RATE / COUNTS)
    everything = (one[k] for k in range(SESSIONS) for one in broken.values())
    assert not too_many(everything, SESSIONS * len(CASES), BETA, RATE / COUNTS)


def test_a_share_that_is_rejected_with_certainty() -> None:
    assert surely_rejected(SESSIONS * len(CASES), BETA, RATE / COUNTS) < 0.177
