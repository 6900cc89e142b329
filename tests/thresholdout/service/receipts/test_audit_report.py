"""What a rules committee reads: every answer, whom it went to, what it was charged, and which records it is about."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.thresholdout.cli.running import run
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, right_in, team
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger import SQLLedger
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.receipts.audit_report import audit_report, ids_digest
from thresholdout.service.receipts.receipt import written_time

PARTS = {"train": TRAIN, "holdout": HOLDOUT}
NOISY = SparseVectorParameters(0.1, 0.01, budget=2, queries=10)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[EvaluationService]:
    service = EvaluationService.open(tmp_path / "leaderboard.db")
    service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y")
    yield service
    service.close()


def ask(service: EvaluationService, *teams: str) -> None:
    for number, name in enumerate(teams):
        told = right_in(0.7 + 0.02 * number, seed=number)
        service.submit(team(service, name), "cells", told, idempotency_key=f"try {number}", expected=0.5, title="mine")


def test_it_says_what_every_team_was_told(service: EvaluationService) -> None:
    ask(service, "ann", "bob", "ann")
    found = audit_report(service.ledger)
    guard = service.holdout(ADMIN, "cells")
    assert (found.holdout, found.guard, found.records, found.checkpoint) == (
        "cells",
        guard.identity,
        400,
        guard.checkpoint,
    )
    entries = service.ledger.entries(guard.identity)
    assert [signal.query for signal in found.signals] == [1, 2, 3]
    for signal, entry in zip(found.signals, entries, strict=True):
        assert (signal.team, signal.value, signal.low, signal.high) == (
            entry.client,
            entry.value,
            entry.low,
            entry.high,
        )
        assert entry.time is not None
        assert signal.time == written_time(entry.time)
    assert [(one.team, one.answers) for one in found.teams] == [("ann", 2), ("bob", 1)]
    assert (found.teams[0].first, found.teams[0].last) == (found.signals[0].time, found.signals[2].time)


def test_charges_have_the_sum_that_the_guard_says(service: EvaluationService) -> None:
    ask(service, "ann", "bob", "ann", "bob")
    found = audit_report(service.ledger)
    told = PredictionGuard.open(service.ledger).guard.status.information_released
    assert told is not None
    assert told > 0
    assert found.nats is not None
    assert found.nats == pytest.approx(told, rel=1e-9)
    assert found.nats >= told
    of_teams = [one.nats for one in found.teams]
    assert math.fsum(nats for nats in of_teams if nats is not None) == pytest.approx(told, rel=1e-9)


def test_a_guard_that_counts_no_nats_says_none(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "guard.db") as ledger:
        guard = PredictionGuard.create(ledger, TRAIN, HOLDOUT, label="y", mechanism=NOISY)
        guard.ask(right_in(0.8), expected=0.8, client="ann")
        found = audit_report(ledger)
        assert (found.holdout, found.nats, found.signals[0].nats, found.teams[0].nats) == ("", None, None, None)


def test_epsilon_is_per_record_and_with_dependants(tmp_path: Path) -> None:
    """The paper's 9 B / (4 n sigma) per record, and twice as much for pairs, each of which holds one dependant."""
    path = tmp_path / "guard.db"
    pairs = [table.assign(pair=[f"{part}{k // 2}" for k in range(len(table))]) for part, table in PARTS.items()]
    with SQLLedger(path) as ledger:
        PredictionGuard.create(ledger, *pairs, label="y", groups="pair", mechanism=NOISY)
        found = audit_report(ledger)
    one = 9 * 2 / (4 * len(HOLDOUT) * 0.01)
    assert found.epsilon == pytest.approx(one, rel=1e-9)
    assert found.bayesian_epsilon == pytest.approx(2 * one, rel=1e-9)
    assert found.epsilon is not None
    assert found.epsilon >= one
    page = run("admin", "audit-report", str(path)).output
    assert "Epsilon of all answers: 1.13 per record, 2.26 with dependants under the declared dependence" in page


def test_a_leaderboard_bounds_no_epsilon(service: EvaluationService, tmp_path: Path) -> None:
    found = audit_report(service.ledger)
    assert (found.epsilon, found.bayesian_epsilon) == (None, None)
    assert "Epsilon" not in run("admin", "audit-report", str(tmp_path / "leaderboard.db")).output


def test_records_are_named_by_a_digest_that_others_can_compute(service: EvaluationService, tmp_path: Path) -> None:
    found = audit_report(service.ledger)
    lines = "".join(f"{id}\n" for id in sorted(HOLDOUT["id"]))
    assert found.ids == hashlib.sha256(lines.encode()).hexdigest()
    HOLDOUT["id"].sample(frac=1, random_state=1).to_csv(tmp_path / "ids", index=False, header=False)
    if shutil.which("sort") is None or shutil.which("sha256sum") is None:
        pytest.skip("needs coreutils")
    said = subprocess.run(
        "LC_ALL=C sort ids | sha256sum", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert said.split()[0] == found.ids
    assert ids_digest(["a", "b"]) != ids_digest(["ab"])


def test_nothing_secret_is_in_it(service: EvaluationService) -> None:
    ask(service, "ann")
    text = audit_report(service.ledger).to_json()
    assert not any(id in text for id in HOLDOUT["id"])
    assert set(json.loads(text)) == {
        "format", "version", "service", "holdout", "guard", "made", "records", "ids", "mechanism", "estimand",
        "promise", "shown", "checkpoint", "nats", "epsilon", "bayesian_epsilon", "teams", "signals", "notes",
    }  # fmt: skip


def test_in_a_blind_phase_there_is_none(service: EvaluationService) -> None:
    service.set_phase(ADMIN, "cells", "blind")
    ask(service, "ann")
    with pytest.raises(InputError, match="blind phase"):
        audit_report(service.ledger)
    service.set_phase(ADMIN, "cells", "closed")
    assert len(audit_report(service.ledger).signals) == 1


def test_of_a_changed_history_there_is_none(service: EvaluationService) -> None:
    ask(service, "ann", "bob")
    database = service.ledger.database
    database.transact(lambda cursor: cursor.execute("DROP TRIGGER entries_update"))
    database.transact(lambda cursor: cursor.execute("UPDATE entries SET client = 'eve' WHERE query = 1"))
    with pytest.raises(LedgerDamaged):
        audit_report(service.ledger)


def test_the_command(service: EvaluationService, tmp_path: Path) -> None:
    ask(service, "ann", "bob")
    leaderboard = str(tmp_path / "leaderboard.db")
    page = run("admin", "audit-report", leaderboard).output
    said = json.loads(run("admin", "audit-report", leaderboard, "--json").output)
    assert page.startswith("Audit report of holdout cells")
    assert said["ids"] in page
    assert said["checkpoint"] in page
    assert "mine (accuracy)" in page
    assert [signal["team"] for signal in said["signals"]] == ["ann", "bob"]
    assert "does not exist" in run("admin", "audit-report", str(tmp_path / "missing.db"), code=4).output
