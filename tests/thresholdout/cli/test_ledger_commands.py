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
    run("ask", "guard.db", "right.csv")
    run("ask", "guard.db", "overfitted.csv")
    return folder


def checkpoint(*command: str) -> str:
    (line,) = (line for line in run(*command).output.splitlines() if line.startswith("checkpoint "))
    return line.split()[1]


def damage(file: str, statement: str = "UPDATE entries SET value = 0.9 WHERE query = 2", *values: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement, values).rowcount == 1


def test_verifying(asked: Path) -> None:
    output = run("verify", "guard.db").output
    assert "2 entries, unchanged" in output
    kept = checkpoint("verify", "guard.db")
    assert checkpoint("status", "guard.db") == kept
    with open_ledger("guard.db") as ledger:
        assert ledger.checkpoint(ledger.guards()[0]) == kept
    run("ask", "guard.db", "right.csv", "--metric", "brier_score")
    assert checkpoint("verify", "guard.db", "--checkpoint", kept) != kept
    assert "the checkpoint that was kept is in it" in run("verify", "guard.db", "--checkpoint", kept).output
    refused = run("verify", "guard.db", "--checkpoint", "0" * 64, code=1).output
    assert "do not lead to the checkpoint that was kept" in refused
    assert refused.count("\n") == 1
    assert "64 hexadecimal digits" in run("verify", "guard.db", "--checkpoint", "x", code=1).output
    damage("guard.db")
    refused = run("verify", "guard.db", code=1).output
    assert "entry 2" in refused
    assert refused.count("\n") == 1


def test_a_history_goes_out_and_in(asked: Path) -> None:
    kept = checkpoint("verify", "guard.db")
    assert "2 entries" in run("export", "guard.db", "history.jsonl").output
    assert checkpoint("export", "guard.db", "history.jsonl") == kept
    assert "history.jsonl: guard" in run("verify", "history.jsonl").output
    assert checkpoint("verify", "history.jsonl", "--checkpoint", kept) == kept
    assert "imported to be read" in run("import", "audit.db", "history.jsonl").output
    assert checkpoint("verify", "audit.db", "--checkpoint", kept) == kept
    status = run("status", "audit.db").output
    assert "2 entries\nclosed: it is an imported history" in status
    assert run("history", "audit.db").output == run("history", "guard.db").output
    assert "holds no labels" in run("ask", "audit.db", "right.csv", code=1).output
    assert "already" in run("import", "audit.db", "history.jsonl", code=1).output
    Path("history.jsonl").write_text(Path("history.jsonl").read_text().replace("overfitted", "").replace("0.5", "0.4"))
    assert "is damaged" in run("verify", "history.jsonl", code=1).output
    assert "is damaged" in run("import", "other.db", "history.jsonl", code=1).output
    assert "not an exported history" in run("import", "other.db", "train.csv", code=1).output
    assert "No such file" in run("export", "guard.db", "none/history.jsonl", code=1).output
    damage("guard.db")
    assert "do not fit their checkpoint" in run("export", "guard.db", "other.jsonl", code=1).output


def test_moving(asked: Path) -> None:
    kept = checkpoint("verify", "guard.db")
    for _ in range(2):
        assert "answers here now; guard.db keeps its history" in run("move", "guard.db", "new.db").output
    assert checkpoint("verify", "new.db") == kept
    assert "asked before" in run("ask", "guard.db", "right.csv").output  # an answer that was given stays
    refused = run("ask", "guard.db", "right.csv", "--metric", "zero_one_loss", code=1).output
    assert f"it was moved to {asked / 'new.db'}" in refused
    assert "closed: it was moved to" in run("status", "guard.db").output
    assert "asked before: nothing spent" in run("ask", "new.db", "overfitted.csv").output
    assert "1 answers from the holdout left" in run("status", "new.db").output
    assert "closed" not in run("status", "new.db").output
    assert run("history", "new.db").output == run("history", "guard.db").output
    assert "moved to" in run("move", "guard.db", "third.db", code=1).output
    assert "the source itself" in run("move", "new.db", "new.db", code=1).output
    assert "no such file" in run("move", "none.db", "new.db", code=1).output


def test_guards_are_chosen_by_their_first_characters(folder: Path) -> None:
    rng = np.random.default_rng(0)
    with open_ledger("several.db") as ledger:
        for _ in range(2):
            guard = Thresholdout(rng.normal(size=1000), queries=5, mechanism=Claims(holdout_answers=1), ledger=ledger)
            guard.ask(0.5, np.ones(1000), name="all")
        first, second = ledger.guards()
    assert run("verify", "several.db").output.count("1 entry, unchanged") == 2
    for command in (("export", "several.db", "x.jsonl"), ("move", "several.db", "x.db"), ("history", "several.db")):
        output = run(*command, code=1).output
        assert f"holds 2 guards; choose by --guard: {first[:12]}, {second[:12]}" in output
        assert "no such guard" in run(*command, "--guard", "x", code=1).output
    run("export", "several.db", "x.jsonl", "--guard", second[:12])
    assert second[:12] in run("verify", "x.jsonl").output
    assert " all " in run("history", "several.db", "--guard", first[:12]).output
    assert run("status", "several.db").output.count("guard ") == 2
    with open_ledger("empty.db"):
        pass
    assert "no guard yet" in run("status", "empty.db").output
    assert "holds no guard" in run("export", "empty.db", "x.jsonl", code=1).output


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("*.db*"))


def test_a_ledger_is_encrypted_while_there_is_a_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a new key" in run("key", "guard.key").output
    if os.name == "posix":
        assert stat.S_IMODE(Path("guard.key").stat().st_mode) == 0o600
    secret = Path("guard.key").read_text().strip()
    assert "File exists" in run("key", "guard.key", code=1).output
    assert Path("guard.key").read_text().strip() == secret
    monkeypatch.setenv(KEY_FILE_VARIABLE, "guard.key")
    outputs = [create().output, run("ask", "guard.db", "overfitted.csv").output, run("status", "guard.db").output]
    assert "secrets encrypted with a key" in outputs[-1]
    assert LABELS.encode() not in contents(folder)
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    for command in ("status", "history", "verify"):
        outputs.append(run(command, "guard.db", code=1).output)
        assert "its secrets are encrypted; give its key" in outputs[-1]
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    assert "another key than the one from THRESHOLDOUT_KEY" in run("ask", "guard.db", "right.csv", code=1).output
    monkeypatch.setenv(KEY_VARIABLE, secret)
    assert "asked before" in run("ask", "guard.db", "overfitted.csv").output
    assert not any(secret in output for output in outputs)


def test_verifying_opens_what_is_encrypted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    create()
    with closing(sqlite3.connect("guard.db")) as connection:
        ((old,),) = connection.execute("SELECT state FROM guards").fetchall()
    run("ask", "guard.db", "overfitted.csv")
    assert "1 entry, unchanged" in run("verify", "guard.db").output
    damage("guard.db", "UPDATE guards SET state = ?", old)
    refused = run("verify", "guard.db", code=1).output
    assert "the state of guard" in refused
    assert "put back from an earlier time" in refused
    assert refused.count("\n") == 1


def test_encryption_and_changing_the_key(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("key", "a.key")
    run("key", "b.key")
    assert "secrets in plain text" in run("status", "guard.db").output
    assert LABELS.encode() in contents(asked)
    assert "make one with `thresholdout key FILE`" in run("encrypt", "guard.db", code=1).output
    monkeypatch.setenv(KEY_FILE_VARIABLE, "a.key")
    output = run("ask", "guard.db", "right.csv").output
    assert "note: ledger guard.db keeps its secrets in plain text" in output
    assert output.count("note: ") == 1
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    assert (
        "encrypted; from now on it opens with its key only" in run("encrypt", "guard.db", "--key-file", "a.key").output
    )
    assert LABELS.encode() not in contents(asked)
    monkeypatch.setenv(KEY_FILE_VARIABLE, "a.key")
    assert "secrets encrypted with a key" in run("status", "guard.db").output
    run("rotate-key", "guard.db", "--new-key-file", "b.key")
    assert "another key" in run("status", "guard.db", code=1).output
    output = run("move", "guard.db", "new.db", "--key-file", "b.key").output  # a.key is the target's
    assert "answers here now" in output
    assert "asked before" in run("ask", "new.db", "right.csv").output
    if os.name == "posix":
        os.chmod("a.key", 0o644)
        assert "chmod 600 a.key" in run("status", "new.db", code=1).output


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
    refused = run("create", where, *parts, code=1).output
    assert "make one with `thresholdout key guard.key`" in refused
    assert "set THRESHOLDOUT_KEY_FILE=guard.key" in refused
    run("key", "guard.key")
    monkeypatch.setenv(KEY_FILE_VARIABLE, "guard.key")
    assert "1500 independent records" in run("create", where, *parts).output
    run("ask", where, "overfitted.csv")
    assert "asked before" in run("ask", where, "overfitted.csv").output
    kept = checkpoint("status", where)
    assert "overfitted" not in run("history", where).output
    run("export", where, "history.jsonl")
    assert checkpoint("verify", "history.jsonl") == kept
    run("move", where, "guard.db")
    assert checkpoint("verify", "guard.db", "--checkpoint", kept) == kept
    assert "it was moved to" in run("ask", where, "right.csv", code=1).output
    assert "asked before" in run("ask", "guard.db", "overfitted.csv").output
