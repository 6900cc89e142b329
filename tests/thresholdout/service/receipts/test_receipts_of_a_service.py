"""A service gives receipts, hides them while it is blind, and does not go on from an older copy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.thresholdout.ledger.postgres_server import Server, programs
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, right_in, team
from tests.thresholdout.service.receipts.leaderboards import copied
from thresholdout.ledger import export_history
from thresholdout.ledger.backup import back_up
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.receipts.audit_report import audit_report
from thresholdout.service.receipts.errors import LedgerOutdated, ReceiptInvalid, WitnessUnusable
from thresholdout.service.receipts.receipt import Receipt, key_digest, read_receipt, verify_in_history
from thresholdout.service.receipts.signing_keys import public_keys, published_keys, withdraw_key
from thresholdout.service.receipts.witness import FileWitness
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Submission


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    return tmp_path / "leaderboard.db"


def opened(leaderboard: Path, **more: Any) -> EvaluationService:
    witness = FileWitness(leaderboard.parent / "elsewhere.jsonl")
    return EvaluationService.open(leaderboard, receipts=True, witness=witness, **more)


def made(leaderboard: Path, **settings: Any) -> EvaluationService:
    service = opened(leaderboard)
    service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y", **settings)
    return service


@pytest.fixture
def service(leaderboard: Path) -> Iterator[EvaluationService]:
    service = made(leaderboard)
    yield service
    service.close()


def submitted(service: EvaluationService, by: Principal, seed: int = 1, key: str = "try 1") -> Submission:
    return service.submit(by, "cells", right_in(0.8, seed), idempotency_key=key, expected=0.8)


def read(service: EvaluationService, told: Submission) -> Receipt:
    assert told.receipt is not None
    return read_receipt(told.receipt, public_keys(published_keys(service.ledger)))[0]


def test_a_receipt_says_what_the_team_was_told(service: EvaluationService, tmp_path: Path) -> None:
    ann = team(service, "ann")
    submitted(service, team(service, "bob"))
    told = submitted(service, ann)
    receipt = read(service, told)
    assert (receipt.team, receipt.query, receipt.holdout) == ("ann", 2, "cells")
    assert (receipt.value, receipt.low, receipt.high) == (told.value, told.low, told.high)
    assert receipt.checkpoint == service.holdout(ann, "cells").checkpoint
    assert receipt.idempotency == key_digest("try 1")
    export_history(service.ledger, receipt.guard, tmp_path / "history.jsonl")
    verify_in_history(receipt, tmp_path / "history.jsonl")
    again = submitted(service, ann)
    assert (again.repeated, again.receipt) == (True, told.receipt)
    assert service.submission(ann, "cells", told.id).receipt == told.receipt
    assert [one.receipt for one in service.history(ann, "cells")] == [told.receipt]


def test_where_a_team_is_shown_one_bit_its_receipt_shows_one_bit(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard, feedback="verdict")
    ann = team(service, "ann")
    tables = [pd.concat([TRAIN.rename(columns={"y": "prediction"}), right_in(0.8, seed)]) for seed in (1, 2)]
    first, told = (
        service.submit(ann, "cells", table[["id", "prediction"]], idempotency_key=f"try {number}")
        for number, table in enumerate(tables)
    )
    assert first.receipt is None  # it became the champion, and nothing was asked
    receipt = read(service, told)
    assert (receipt.kind, receipt.verdict) == ("comparison", told.verdict)
    assert (receipt.value, receipt.low, receipt.high) == (None, None, None)
    export_history(service.ledger, receipt.guard, tmp_path / "history.jsonl")
    verify_in_history(receipt, tmp_path / "history.jsonl")
    service.close()


def test_a_receipt_of_the_best_so_far(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard, feedback="best")
    told = submitted(service, team(service, "ann"))
    receipt = read(service, told)
    export_history(service.ledger, receipt.guard, tmp_path / "history.jsonl")
    verify_in_history(receipt, tmp_path / "history.jsonl")
    service.close()


def test_in_a_blind_phase_nobody_has_a_receipt(leaderboard: Path) -> None:
    service = made(leaderboard, phase="blind")
    ann = team(service, "ann")
    told = submitted(service, ann)
    for by in (ann, ADMIN):
        assert service.submission(by, "cells", told.id).receipt is None
        assert [one.receipt for one in service.history(by, "cells")] == [None]
        assert service.holdout(by, "cells").checkpoint == ""
    assert told.receipt is None
    service.set_phase(ADMIN, "cells", "closed")
    receipt = read(service, service.submission(ann, "cells", told.id))
    assert receipt.checkpoint == service.holdout(ann, "cells").checkpoint
    service.close()


def test_what_a_withdrawn_key_has_signed_is_signed_anew(leaderboard: Path) -> None:
    service = made(leaderboard)
    ann = team(service, "ann")
    told = submitted(service, ann)
    before = read(service, told)
    (stolen,) = published_keys(service.ledger)["keys"]
    withdraw_key(service.ledger, stolen["kid"])
    with pytest.raises(ReceiptInvalid):
        read(service, told)
    service.close()
    service = opened(leaderboard)
    assert told.receipt is not None
    for again in (
        service.submission(ann, "cells", told.id),
        service.history(ann, "cells")[0],
        submitted(service, ann),
    ):
        assert again.receipt != told.receipt
        assert read(service, again) == before
    service.close()


@pytest.mark.slow
def test_checkpoints_follow_the_answers(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard)
    ann = team(service, "ann")
    for number in range(3):
        submitted(service, ann, seed=number, key=f"try {number}")
    assert set(service.health()["witness"]) == {"waiting", "failing_since"}
    service.close()
    service.close()
    last = json.loads((tmp_path / "elsewhere.jsonl").read_text().splitlines()[-1])
    assert last["query"] == 3


@pytest.mark.slow
def test_a_service_from_an_older_copy_does_not_start(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard)
    ann = team(service, "ann")
    submitted(service, ann)
    back_up(leaderboard, tmp_path / "copy.db")
    lost = submitted(service, ann, seed=2, key="try 2")
    service.close()
    copied(tmp_path / "copy.db", leaderboard)
    with pytest.raises(LedgerOutdated) as refused:
        opened(leaderboard)
    guard = refused.value.behind.popitem()
    assert guard[1] == (2, 1)
    service = opened(leaderboard, accept_rollback="the disk broke")
    (note,) = service.holdout(ADMIN, "cells").notes
    assert "the disk broke" in note
    assert "Other answers after number 1 are not guaranteed" in note
    assert note in service.holdout(ADMIN, "cells").promise
    rows = service.leaderboard(ADMIN, "cells").rows
    assert [row.submissions for row in rows] == [1]
    assert read(service, lost).query == 2  # what was told before stays proved
    told = service.submit(ann, "cells", right_in(0.99), idempotency_key="try 3", expected=0.99)
    assert told.state == "answered"
    assert service.leaderboard(ADMIN, "cells").rows == rows  # nothing is promised of it, and no leaderboard counts it
    service.close()
    opened(leaderboard).close()


def test_the_witness_is_told_of_corrections(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard)
    back_up(leaderboard, tmp_path / "copy.db")
    labels = HOLDOUT[["id", "y"]][:2].rename(columns={"y": "label"})
    service.correct(ADMIN, "cells", labels.assign(label=1 - labels["label"]), "two labels were mixed up")
    report = audit_report(service.ledger)
    assert [(one.query, one.kind) for one in report.signals] == [(1, "note")]
    assert (report.teams, report.records) == ((), 400)
    assert "two labels were mixed up" in report.notes[0]
    service.close()
    copied(tmp_path / "copy.db", leaderboard)
    with pytest.raises(LedgerOutdated):
        opened(leaderboard)


@pytest.mark.slow
def test_a_backup_of_a_service_brings_all_of_it_back(leaderboard: Path, tmp_path: Path) -> None:
    service = made(leaderboard)
    text, _ = service.new_token(ADMIN, "team", "ann")
    told = submitted(service, service.authenticate(text))
    back_up(leaderboard, tmp_path / "copy.db")
    service.close()
    leaderboard.unlink()
    copied(tmp_path / "copy.db", leaderboard)
    service = opened(leaderboard)
    ann = service.authenticate(text)
    assert service.submission(ann, "cells", told.id) == told
    assert submitted(service, ann).repeated
    service.close()


def test_keys_are_looked_after_without_the_witness(leaderboard: Path) -> None:
    made(leaderboard).close()
    with pytest.raises(WitnessUnusable, match="no witness was named"):
        EvaluationService.open(leaderboard)
    service = EvaluationService.open(leaderboard, answering=False)
    ann = team(service, "ann")
    with pytest.raises(ServiceRefused, match="cannot be used now"):
        submitted(service, ann)
    service.close()
    service = opened(leaderboard)
    assert submitted(service, ann).query == 1
    service.close()


@pytest.mark.slow
def test_a_service_on_a_server_comes_back_and_is_refused(server: Server, server_key: str, tmp_path: Path) -> None:
    """The commands of docs/operation.md, and what the witness says to what they bring back."""
    folder = programs()
    if folder is None or not (folder / "pg_dump").exists():
        pytest.skip("needs pg_dump")
    source, target, dump = server.new_database(), server.new_database(), str(tmp_path / "leaderboard.dump")
    witness = FileWitness(tmp_path / "elsewhere.jsonl")
    service = EvaluationService.open(source, receipts=True, witness=witness)
    service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y")
    text, _ = service.new_token(ADMIN, "team", "ann")
    told = submitted(service, service.authenticate(text))
    subprocess.run(
        [str(folder / "pg_dump"), "--format=custom", "--schema=thresholdout", "--file", dump, source], check=True
    )
    submitted(service, service.authenticate(text), seed=2, key="try 2")
    service.close()
    restoring = [str(folder / "pg_restore"), "--exit-on-error", "--no-owner", f"--dbname={target}", dump]
    subprocess.run(restoring, check=True)
    with pytest.raises(LedgerOutdated):
        EvaluationService.open(target, receipts=True, witness=witness)
    service = EvaluationService.open(target, receipts=True, witness=witness, accept_rollback="the server broke")
    ann = service.authenticate(text)
    assert service.submission(ann, "cells", told.id) == told
    assert submitted(service, ann).repeated
    service.close()
