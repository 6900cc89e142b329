"""Receipts and their keys on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.thresholdout.cli.running import run
from tests.thresholdout.ledger.mechanism import GUARD
from tests.thresholdout.service.receipts.leaderboards import asked, receipt_of
from thresholdout.cli import main
from thresholdout.ledger import SQLLedger
from thresholdout.service.receipts.signing_keys import Signer


@pytest.fixture
def receipt(folder: Path) -> str:
    """A receipt of the second of three answers, beside the public keys and the history."""
    with SQLLedger("leaderboard.db") as ledger:
        text = receipt_of(asked(ledger, 3), 2).signed(Signer(ledger))
    run("ledger", "receipt", "keys", "leaderboard.db", "--output", "keys.json")
    run("ledger", "export", "leaderboard.db", "history.jsonl")
    (folder / "receipt.txt").write_text(f"{text}\n")
    return text


def test_a_genuine_receipt(receipt: str) -> None:
    said = run(
        "ledger", "receipt", "verify", "receipt.txt", "--public-key", "keys.json", "--history", "history.jsonl"
    ).output
    assert said.startswith("genuine, signed with key ")
    assert "query 2, team ann" in said
    assert "history.jsonl is complete, and contains this checkpoint" in said
    assert run("ledger", "receipt", "verify", receipt, "--public-key", "keys.json").output in said
    piped = CliRunner().invoke(main, ["ledger", "receipt", "verify", "-", "--public-key", "keys.json"], input=receipt)
    assert (piped.exit_code, piped.output) == (
        0,
        run("ledger", "receipt", "verify", receipt, "--public-key", "keys.json").output,
    )


def test_nothing_but_public_keys_is_shown(receipt: str) -> None:
    with SQLLedger("leaderboard.db") as ledger:
        stored = json.loads(json.dumps(ledger.database.statements.setting)) and _stored(ledger)
    shown = run("ledger", "receipt", "keys", "leaderboard.db").output
    assert json.loads(shown) == json.loads(Path("keys.json").read_text())
    assert json.loads(stored)["private"] not in shown


def _stored(ledger: SQLLedger) -> str:
    return str(ledger.database.read(ledger.database.statements.setting, ("receipt_keys",))[0][0])


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["ann", "bob"])
def test_a_forged_receipt(receipt: str, changed: str) -> None:
    with SQLLedger("other.db") as other:
        forged = receipt_of(asked(other, 3), 2).signed(Signer(other)) if changed == "bob" else receipt[:-4] + "AAAA"
    said = run("ledger", "receipt", "verify", forged, "--public-key", "keys.json", code=1).output
    assert "The receipt is not valid" in said


def test_a_receipt_that_the_history_does_not_know(receipt: str) -> None:
    Path("history.jsonl").unlink()
    Path("leaderboard.db").rename("old.db")
    with SQLLedger("leaderboard.db") as ledger:
        asked(ledger, 3)
    run("ledger", "export", "leaderboard.db", "history.jsonl")
    said = run(
        "ledger", "receipt", "verify", receipt, "--public-key", "keys.json", "--history", "history.jsonl", code=1
    ).output
    assert "the history contradicts it" in said


def test_what_is_no_answer_about_the_receipt(receipt: str, folder: Path) -> None:
    run("ledger", "receipt", "verify", receipt, code=2)
    assert (
        "missing.txt" in run("ledger", "receipt", "verify", "missing.txt", "--public-key", "keys.json", code=4).output
    )
    (folder / "empty.json").write_text("")
    assert "not JSON" in run("ledger", "receipt", "verify", receipt, "--public-key", "empty.json", code=4).output
    history = folder / "history.jsonl"
    history.write_text(history.read_text().replace('"ann"', '"eve"'))
    run("ledger", "receipt", "verify", receipt, "--public-key", "keys.json", "--history", "history.jsonl", code=4)


@pytest.mark.slow
def test_keys_that_change(receipt: str) -> None:
    (first,) = json.loads(Path("keys.json").read_text())["keys"]
    changed = json.loads(run("ledger", "receipt", "keys", "leaderboard.db", "--change").output)["keys"]
    assert changed[1:] == [first]
    withdrawn = json.loads(run("ledger", "receipt", "keys", "leaderboard.db", "--withdraw", first["kid"]).output)[
        "keys"
    ]
    assert withdrawn == changed[:1]
    withdrawn = ("ledger", "receipt", "keys", "leaderboard.db", "--withdraw", first["kid"])
    assert "--withdraw must be one of" in run(*withdrawn, code=2).output
    run("ledger", "receipt", "keys", "leaderboard.db", "--change", "--withdraw", first["kid"], code=2)
    run("ledger", "receipt", "keys", "missing.db", code=4)
    assert not Path("missing.db").exists()


def test_retiring(receipt: str) -> None:
    assert "is closed: an older copy" in run("guard", "close", "leaderboard.db", "--reason", "an older copy").output
    with SQLLedger("leaderboard.db") as ledger:
        assert ledger.closed(GUARD) == "an older copy"
    run("guard", "close", "leaderboard.db", code=2)
    assert "closed" in run("guard", "close", "leaderboard.db", "--reason", "another one", code=4).output
