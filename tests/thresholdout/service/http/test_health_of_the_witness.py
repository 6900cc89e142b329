"""Health says that a witness fails, and that answers go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.patience import wait_until
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, right_in, team
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.app import make_app
from thresholdout.service.receipts.errors import WitnessUnusable
from thresholdout.service.receipts.witness import FileWitness


def test_a_witness_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = FileWitness(tmp_path / "checkpoints.jsonl")
    service = EvaluationService.open(tmp_path / "leaderboard.db", witness=witness)
    service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y")

    def fail(lines: object) -> None:
        raise WitnessUnusable("checkpoints.jsonl", "the disk is full")

    with TestClient(make_app(service)) as client:
        assert client.get("/ready").json() == {"status": "ok", "witness": {"waiting": 0}}
        monkeypatch.setattr(witness, "append", fail)
        told = service.submit(team(service, "ann"), "cells", right_in(0.8), idempotency_key="try 1", expected=0.8)
        assert told.state == "answered"
        wait_until(lambda: service.health()["witness"]["failing_since"])
        assert client.portal is not None
        client.portal.call(client.app.state.health.look)  # type: ignore[attr-defined,call-arg]
        found = client.get("/ready")
        assert (found.status_code, found.json()["status"]) == (200, "ok")
        assert found.json()["witness"]["waiting"] == 1
        assert found.json()["witness"]["failing_since"].endswith("Z")
        monkeypatch.undo()
    assert len(list(witness.lines(""))) == 2  # the start, and the checkpoint, told when the service ended
