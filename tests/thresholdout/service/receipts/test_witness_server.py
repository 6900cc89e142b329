"""An address that keeps checkpoints: what it takes, what it gives back, and that a service can rely on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from tests.cases import for_each
from tests.patience import PATIENCE, wait_until
from tests.thresholdout.cli.running import run
from tests.thresholdout.service.receipts.leaderboards import asked, copied
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts.errors import LedgerOutdated, WitnessUnusable
from thresholdout.service.receipts.rollback_detection import check_newest
from thresholdout.service.receipts.witness import KEY_VARIABLE, FileWitness, checkpoint_line, torn_line, witness_at
from thresholdout.service.receipts.witness_server import witness_app

KEY = "k" * 44
LINE = checkpoint_line("ledger", "guard", 1, "0" * 64, "now") + "\n"
OTHER = checkpoint_line("other", "guard", 1, "0" * 64, "now") + "\n"


@contextmanager
def serving(file: Path, key: str | None = KEY) -> Iterator[str]:
    config = uvicorn.Config(witness_app(FileWitness(file), key), host="127.0.0.1", port=0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/checkpoints"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def headers(key: str | None = KEY) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


@pytest.mark.slow
def test_lines_come_back(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.jsonl"
    with serving(file) as where:
        assert httpx.post(where, content=LINE + OTHER, headers=headers(), timeout=PATIENCE).status_code == 204
        assert httpx.get(where, params={"ledger": "ledger"}, headers=headers(), timeout=PATIENCE).text == LINE
        assert httpx.get(where, headers=headers(), timeout=PATIENCE).text == ""
    assert file.read_text() == LINE + OTHER


@pytest.mark.slow
@for_each("sent", [None, "x", KEY[:-1], KEY + "k"])
def test_without_the_key_nothing_is_taken_or_told(tmp_path: Path, sent: str | None) -> None:
    file = tmp_path / "checkpoints.jsonl"
    file.write_text(LINE)
    with serving(file) as where:
        assert httpx.post(where, content=LINE, headers=headers(sent), timeout=PATIENCE).status_code == 401
        found = httpx.get(where, params={"ledger": "ledger"}, headers=headers(sent), timeout=PATIENCE)
        assert (found.status_code, "checkpoint" in found.text) == (401, False)
    assert file.read_text() == LINE


@pytest.mark.slow
@for_each(
    ("body", "status"),
    [
        ("", 400),
        ("{}\n", 400),
        (LINE + "x\n", 400),
        (LINE.replace("guard", "guarb"), 400),
        (torn_line(b"") + "\n", 400),
        (LINE * 9000, 413),
    ],
)
def test_what_no_service_writes_is_not_kept(tmp_path: Path, body: str, status: int) -> None:
    with serving(tmp_path / "checkpoints.jsonl") as where:
        assert httpx.post(where, content=body, headers=headers(), timeout=PATIENCE).status_code == status
    assert not (tmp_path / "checkpoints.jsonl").exists()


def test_a_file_that_cannot_be_written_is_no_success(tmp_path: Path) -> None:
    with serving(tmp_path / "missing" / "checkpoints.jsonl") as where:
        assert httpx.post(where, content=LINE, headers=headers(), timeout=PATIENCE).status_code == 503


@pytest.mark.slow
def test_a_service_relies_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    leaderboard, file = tmp_path / "leaderboard.db", tmp_path / "checkpoints.jsonl"
    with serving(file) as where:
        with SQLLedger(leaderboard) as ledger:
            check_newest(asked(ledger, 2), witness_at(where))
        copied(leaderboard, tmp_path / "copy.db")
        with file.open("ab") as out:
            out.write(b"cut off")  # the machine of the witness went down
        with SQLLedger(leaderboard) as ledger:
            check_newest(asked(ledger, 1, start=2), witness_at(where))
            check_newest(ledger, witness_at(where))
        with SQLLedger(tmp_path / "copy.db") as ledger, pytest.raises(LedgerOutdated) as refused:
            check_newest(ledger, witness_at(where))
        assert next(iter(refused.value.behind.values())) == (3, 2)
        monkeypatch.setenv(KEY_VARIABLE, "another")
        with SQLLedger(leaderboard) as ledger, pytest.raises(WitnessUnusable, match="401"):
            check_newest(ledger, witness_at(where))


def test_an_open_address_needs_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    file = str(tmp_path / "checkpoints.jsonl")
    assert KEY_VARIABLE in run("ledger", "witness", file, "--host", "0.0.0.0", "--port", "0", code=4).output
