"""Other private releases at a holdout behind a service: who records them, what they cost, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.cases import for_each
from tests.thresholdout.service.evaluations import ADMIN, made, right_in, team
from thresholdout.errors import InputError
from thresholdout.ledger import open_ledger
from thresholdout.privacy.accounting import BlackBox, GaussianAnswer
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.receipts.audit_report import audit_report
from thresholdout.service.refusals import ServiceRefused


@pytest.mark.slow
@for_each("feedback", ["interval", "best"])
def test_a_look_beside_a_service_that_answers(tmp_path: Path, feedback: Literal["interval", "best"]) -> None:
    """Recorded where the database is, while the service holds the guard: the next submission pays, and all read it."""
    looked, other = (made(tmp_path / name, feedback=feedback) for name in ("looked.db", "other.db"))
    ann, bob = team(looked, "ann"), team(other, "ann")
    for service, who in ((looked, ann), (other, bob)):
        service.submit(who, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert looked.holdout(ann, "cells").notes == ()
    beside = PredictionGuard.open(open_ledger(tmp_path / "looked.db"))
    for release in (BlackBox(0.02), GaussianAnswer(200.0)):
        beside.releases.record(release)
    after = looked.submit(ann, "cells", right_in(0.7), idempotency_key="2", expected=0.7)
    without = other.submit(bob, "cells", right_in(0.7), idempotency_key="2", expected=0.7)
    ends = [one for one in (after.low, after.high, without.low, without.high) if one is not None]
    assert len(ends) == 4
    assert ends[1] - ends[0] > ends[3] - ends[2]
    shown = looked.holdout(ann, "cells")
    assert shown.notes[0].startswith("2 other private releases about these records were recorded")
    assert shown.promise.endswith(shown.notes[0])
    assert [one.query for one in looked.history(ADMIN, "cells")] == [1, 4]
    found = audit_report(looked.ledger)
    assert [(one.team, one.answers) for one in found.teams] == [("ann", 2)]
    assert found.notes == shown.notes


@pytest.mark.slow
def test_a_look_that_leaves_nothing_is_refused_or_ends_the_answers(tmp_path: Path) -> None:
    service = made(tmp_path / "leaderboard.db")
    ann = team(service, "ann")
    beside = PredictionGuard.open(open_ledger(tmp_path / "leaderboard.db"))
    with pytest.raises(InputError, match="Intervals could be the whole range"):
        beside.releases.record(GaussianAnswer(1.0))
    assert service.holdout(ann, "cells").notes == ()
    beside.releases.record(BlackBox(1e300), void=True)
    with pytest.raises(ServiceRefused):
        service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert (
        service.holdout(ann, "cells").notes[0].startswith("One other private release about these records was recorded")
    )
