"""Commands that keep ledgers; the same words as the library."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.thresholdout.cli.running import create, run
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout import Claims, Thresholdout
from thresholdout.ledger import open_ledger
from thresholdout.ledger.cipher import KEY_FILE_VARIABLE, KEY_VARIABLE, new_key

LABELS = '"holdout"'
"""Part of the document with the labels."""


@pytest.fixture
def asked(folder: Path) -> Path:
    create()
    run("guard", "score", "guard.db", "right.csv")
    run("guard", "score", "guard.db", "overfitted.csv")
    return folder


def checkpoint(*command: str) -> str:
    (line,) = (line for line in run(*command).output.splitlines() if line.startswith("checkpoint "))
    return line.split()[1]


def damage(file: str, statement: str = "UPDATE entries SET value = 0.9 WHERE query = 2", *values: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement, values).rowcount == 1


@pytest.mark.slow
def test_verifying(asked: Path) -> None:
    output = run("ledger", "verify", "guard.db").output
    assert "2 entries, unchanged" in output
    kept = checkpoint("ledger", "verify", "guard.db")
    assert checkpoint("guard", "status", "guard.db") == kept
    with open_ledger("guard.db") as ledger:
        assert ledger.checkpoint(ledger.guards()[0]) == kept
    run("guard", "score", "guard.db", "right.csv", "--metric", "brier_score")
    assert checkpoint("ledger", "verify", "guard.db", "--checkpoint", kept) != kept
    assert "the checkpoint that was kept is in it" in run("ledger", "verify", "guard.db", "--checkpoint", kept).output
    refused = run("ledger", "verify", "guard.db", "--checkpoint", "0" * 64, code=4).output
    assert "has the checkpoint that was kept" in refused
    assert refused.count("\n") == 1
    assert "64 hexadecimal digits" in run("ledger", "verify", "guard.db", "--checkpoint", "x", code=2).output
    damage("guard.db")
    refused = run("ledger", "verify", "guard.db", code=4).output
    assert "Entry 2 of guard" in refused
    assert refused.count("\n") == 1


@pytest.mark.slow
def test_a_history_goes_out_and_in(asked: Path) -> None:
    kept = checkpoint("ledger", "verify", "guard.db")
    assert "2 entries" in run("ledger", "export", "guard.db", "history.jsonl").output
    assert checkpoint("ledger", "export", "guard.db", "history.jsonl") == kept
    assert "history.jsonl: guard" in run("ledger", "verify", "history.jsonl").output
    assert checkpoint("ledger", "verify", "history.jsonl", "--checkpoint", kept) == kept
    assert "imported for reading only" in run("ledger", "import", "audit.db", "history.jsonl").output
    assert checkpoint("ledger", "verify", "audit.db", "--checkpoint", kept) == kept
    status = run("guard", "status", "audit.db").output
    assert "2 entries\nclosed: it is an imported history" in status
    assert run("guard", "history", "audit.db").output == run("guard", "history", "guard.db").output
    assert "has no guard with labels" in run("guard", "score", "audit.db", "right.csv", code=4).output
    assert "already" in run("ledger", "import", "audit.db", "history.jsonl", code=4).output
    Path("history.jsonl").write_text(Path("history.jsonl").read_text().replace("overfitted", "").replace("0.5", "0.4"))
    assert "is damaged" in run("ledger", "verify", "history.jsonl", code=4).output
    assert "is damaged" in run("ledger", "import", "other.db", "history.jsonl", code=4).output
    assert "not an exported history" in run("ledger", "import", "other.db", "train.csv", code=4).output
    assert "No such file" in run("ledger", "export", "guard.db", "none/history.jsonl", code=4).output
    damage("guard.db")
    assert "do not match their checkpoint" in run("ledger", "export", "guard.db", "other.jsonl", code=4).output


@pytest.mark.slow
def test_moving(asked: Path) -> None:
    kept = checkpoint("ledger", "verify", "guard.db")
    for _ in range(2):
        assert "now answers here; its history remains in guard.db" in run("ledger", "move", "guard.db", "new.db").output
    assert checkpoint("ledger", "verify", "new.db") == kept
    assert "repeated" in run("guard", "score", "guard.db", "right.csv").output  # an answer that was given stays
    refused = run("guard", "score", "guard.db", "right.csv", "--metric", "zero_one_loss", code=4).output
    assert f"it was moved to {asked / 'new.db'}" in refused
    assert "closed: it was moved to" in run("guard", "status", "guard.db").output
    assert "repeated: free of charge" in run("guard", "score", "new.db", "overfitted.csv").output
    assert "1 answer from the holdout left" in run("guard", "status", "new.db").output
    assert "closed" not in run("guard", "status", "new.db").output
    assert run("guard", "history", "new.db").output == run("guard", "history", "guard.db").output
    assert "moved to" in run("ledger", "move", "guard.db", "third.db", code=4).output
    assert (
        "TARGET must be another ledger; got new.db, the source itself."
        in run("ledger", "move", "new.db", "new.db", code=2).output
    )
    assert "does not exist" in run("ledger", "move", "none.db", "new.db", code=4).output


@pytest.mark.slow
def test_guards_are_chosen_by_their_first_characters(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with open_ledger("several.db") as ledger:
        for _ in range(2):
            guard = Thresholdout(rng.normal(size=1000), queries=5, mechanism=Claims(holdout_answers=1), ledger=ledger)
            guard.ask(0.5, np.ones(1000), name="all")
        first, second = ledger.guards()
    assert run("ledger", "verify", "several.db").output.count("1 entry, unchanged") == 2
    for command in (
        ("ledger", "export", "several.db", "x.jsonl"),
        ("ledger", "move", "several.db", "x.db"),
        ("guard", "history", "several.db"),
    ):
        output = run(*command, code=2).output
        assert f"holds 2 guards. Choose one with --guard: {first[:12]}, {second[:12]}" in output
        assert "no such guard" in run(*command, "--guard", "x", code=4).output
    run("ledger", "export", "several.db", "x.jsonl", "--guard", second[:12])
    assert second[:12] in run("ledger", "verify", "x.jsonl").output
    assert " all " in run("guard", "history", "several.db", "--guard", first[:12]).output
    assert run("guard", "status", "several.db").output.count("guard ") == 2
    with open_ledger("empty.db"):
        pass
    assert "no guard yet" in run("guard", "status", "empty.db").output
    assert "holds no guard" in run("ledger", "export", "empty.db", "x.jsonl", code=4).output


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*.db*"))


@pytest.mark.slow
def test_a_ledger_is_encrypted_while_there_is_a_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a new key" in run("ledger", "new-key", "guard.key").output
    if os.name == "posix":
        assert stat.S_IMODE(Path("guard.key").stat().st_mode) == 0o600
    secret = Path("guard.key").read_text().strip()
    assert "File exists" in run("ledger", "new-key", "guard.key", code=4).output
    assert Path("guard.key").read_text().strip() == secret
    monkeypatch.setenv(KEY_FILE_VARIABLE, "guard.key")
    outputs = [
        create().output,
        run("guard", "score", "guard.db", "overfitted.csv").output,
        run("guard", "status", "guard.db").output,
    ]
    assert "secrets encrypted with a key" in outputs[-1]
    assert LABELS.encode() not in contents(folder)
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    for command in (("guard", "status"), ("guard", "history"), ("ledger", "verify")):
        outputs.append(run(*command, "guard.db", code=4).output)
        assert "Its secrets are encrypted. Pass its key" in outputs[-1]
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    assert (
        "another key than the one from THRESHOLDOUT_KEY"
        in run("guard", "score", "guard.db", "right.csv", code=4).output
    )
    monkeypatch.setenv(KEY_VARIABLE, secret)
    assert "repeated" in run("guard", "score", "guard.db", "overfitted.csv").output
    assert not any(secret in output for output in outputs)


@pytest.mark.slow
def test_verifying_opens_what_is_encrypted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    create()
    with closing(sqlite3.connect("guard.db")) as connection:
        ((old,),) = connection.execute("SELECT state FROM guards").fetchall()
    run("guard", "score", "guard.db", "overfitted.csv")
    assert "1 entry, unchanged" in run("ledger", "verify", "guard.db").output
    damage("guard.db", "UPDATE guards SET state = ?", old)
    refused = run("ledger", "verify", "guard.db", code=4).output
    assert "The state of guard" in refused
    assert "restored from an earlier time" in refused
    assert refused.count("\n") == 1


@pytest.mark.slow
def test_encryption_and_changing_the_key(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("ledger", "new-key", "a.key")
    run("ledger", "new-key", "b.key")
    assert "secrets in plain text" in run("guard", "status", "guard.db").output
    assert LABELS.encode() in contents(asked)
    assert "Make one with `thresholdout ledger new-key FILE`" in run("ledger", "encrypt", "guard.db", code=4).output
    monkeypatch.setenv(KEY_FILE_VARIABLE, "a.key")
    output = run("guard", "score", "guard.db", "right.csv").output
    assert "note: Ledger guard.db keeps its secrets in plain text" in output
    assert output.count("note: ") == 1
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    assert (
        "encrypted; it now opens only with its key"
        in run("ledger", "encrypt", "guard.db", "--key-file", "a.key").output
    )
    assert LABELS.encode() not in contents(asked)
    monkeypatch.setenv(KEY_FILE_VARIABLE, "a.key")
    assert "secrets encrypted with a key" in run("guard", "status", "guard.db").output
    run("ledger", "rotate-key", "guard.db", "--new-key-file", "b.key")
    assert "another key" in run("guard", "status", "guard.db", code=4).output
    output = run("ledger", "move", "guard.db", "new.db", "--key-file", "b.key").output  # a.key is the target's
    assert "now answers here" in output
    assert "repeated" in run("guard", "score", "new.db", "right.csv").output
    if os.name == "posix":
        os.chmod("a.key", 0o644)
        assert "chmod 600 a.key" in run("guard", "status", "new.db", code=4).output


@pytest.mark.slow
def test_everything_on_a_server(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    where = server.new_database()
    parts = (
        "--train",
        "train.csv",
        "--holdout",
        "holdout.csv",
        "--label",
        "y",
        "--queries",
        "100",
        "--holdout-answers",
        "2",
    )
    refused = run("guard", "create", where, *parts, code=4).output
    assert "Make one with `thresholdout ledger new-key guard.key`" in refused
    assert "set THRESHOLDOUT_KEY_FILE=guard.key" in refused
    run("ledger", "new-key", "guard.key")
    monkeypatch.setenv(KEY_FILE_VARIABLE, "guard.key")
    assert "1500 independent records" in run("guard", "create", where, *parts).output
    run("guard", "score", where, "overfitted.csv")
    assert "repeated" in run("guard", "score", where, "overfitted.csv").output
    kept = checkpoint("guard", "status", where)
    assert "overfitted" not in run("guard", "history", where).output
    run("ledger", "export", where, "history.jsonl")
    assert checkpoint("ledger", "verify", "history.jsonl") == kept
    run("ledger", "move", where, "guard.db")
    assert checkpoint("ledger", "verify", "guard.db", "--checkpoint", kept) == kept
    assert "it was moved to" in run("guard", "score", where, "right.csv", code=4).output
    assert "repeated" in run("guard", "score", "guard.db", "overfitted.csv").output
