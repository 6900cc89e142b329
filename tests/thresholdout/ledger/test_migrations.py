"""A file of version 1 becomes one of this version when it is opened, and no answer changes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent, next_state
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import Entry, SQLLedger, chain, migrations, open_ledger

OTHER = "a guard that was never asked"
PARAMETERS = {"threshold": 0.1, "name": "größe"}

VERSION_1 = """
CREATE TABLE guards (
    id INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL,
    parameters TEXT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (fingerprint)
);
CREATE TABLE documents (
    guard INTEGER NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (guard, name),
    FOREIGN KEY(guard) REFERENCES guards (id)
);
CREATE TABLE entries (
    guard INTEGER NOT NULL,
    "query" INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    name TEXT NOT NULL,
    train DOUBLE NOT NULL,
    value DOUBLE NOT NULL,
    half_width DOUBLE NOT NULL,
    source TEXT NOT NULL,
    remaining INTEGER,
    lower DOUBLE NOT NULL,
    upper DOUBLE NOT NULL,
    PRIMARY KEY (guard, "query"),
    UNIQUE (guard, "key"),
    FOREIGN KEY(guard) REFERENCES guards (id)
) WITHOUT ROWID;
PRAGMA application_id = 0x74686F75;
PRAGMA user_version = 1;
"""
INSERT_1 = (
    'INSERT INTO entries (guard, "query", "key", name, train, value, half_width, source, remaining, lower, upper)'
)


def make_version_1(file: Path, count: int = 5) -> list[Entry]:
    """Write a file as version 1 did, and return its entries."""
    file.touch(mode=0o600)
    entries = [
        Entry(i, f"key {i}", "größe", i / 7, i / 3, 1e-5, "holdout", None if i % 2 else 9, -1.0, 2.0**60)
        for i in range(1, count + 1)
    ]
    state = FIRST
    for entry in entries:
        state = next_state(state, entry.value)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(VERSION_1)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        add = "INSERT INTO guards (fingerprint, state, parameters) VALUES (?, ?, ?)"
        connection.execute(add, (GUARD, state, json.dumps(PARAMETERS)))
        connection.execute(add, (OTHER, FIRST, "{}"))
        connection.execute("INSERT INTO documents VALUES (1, 'labels', ?)", (SECRET,))
        connection.executemany(
            f"{INSERT_1} VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.query, e.key, e.name, e.train, e.value, e.half_width, e.source, e.remaining, e.lower, e.upper)
                for e in entries
            ],
        )
        connection.execute("COMMIT")
    return entries


def tables(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def version(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


def test_no_answer_changes(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    entries = make_version_1(file)
    for _ in range(2):  # migrated, and as it is then
        with open_ledger(file, must_exist=True) as ledger:
            assert ledger.guards() == [GUARD, OTHER]
            assert ledger.entries(GUARD) == entries
            assert ledger.parameters(GUARD) == PARAMETERS
            assert ledger.document(GUARD, "labels") == SECRET
            assert ledger.retired(GUARD) is None
            assert (ledger.verify(GUARD), ledger.verify(OTHER)) == (5, 0)
            mechanism = Mechanism()
            assert ledger.ask(GUARD, "key 2", 2 / 7, "größe", mechanism) == (entries[1], True)
            assert mechanism.states == []
            assert_consistent(ledger)
            assert_consistent(ledger, OTHER)
    with open_ledger(file) as ledger:
        head = ledger.head(GUARD)
        assert ledger.ask(GUARD, None, 0.5, "next", Mechanism())[0].query == 6
        assert ledger.verify(GUARD, head) == 6
        assert_consistent(ledger)


def test_a_migrated_file_is_like_a_new_one(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    make_version_1(old)
    SQLLedger(old).close()
    SQLLedger(new).close()
    assert tables(old) == tables(new)
    assert version(old) == version(new) == 2
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("step", range(6))
def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    class Crash(BaseException):
        pass

    file = tmp_path / "guard.db"
    entries = make_version_1(file)
    before = tables(file)
    digest: Callable[..., str] = chain.next_digest
    calls = 0

    def crashing(*arguments: object) -> str:
        nonlocal calls
        calls += 1
        if calls == step:
            raise Crash
        return digest(*arguments)

    if step:
        monkeypatch.setattr(chain, "next_digest", crashing)
    else:
        monkeypatch.setattr(migrations, "first_digest", lambda *_: 1 / 0)
    with pytest.raises((Crash, ZeroDivisionError)):
        SQLLedger(file)
    assert (tables(file), version(file)) == (before, 1)
    monkeypatch.undo()
    with SQLLedger(file) as ledger:
        assert ledger.entries(GUARD) == entries
        assert ledger.verify(GUARD) == 5


def test_processes_that_open_at_once_migrate_once(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    entries = make_version_1(file, 3000)
    code = (
        "import sys; from thresholdout.ledger import open_ledger; from tests.thresholdout.ledger.mechanism import *\n"
        "sys.stdin.readline()\n"
        "with open_ledger(sys.argv[1]) as ledger: print(ledger.ask(GUARD, None, .5, '', Mechanism())[0].query)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, file],
            cwd=Path(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    numbers = sorted(int(process.communicate(timeout=60)[0]) for process in processes)
    assert numbers == [3001, 3002, 3003]
    with SQLLedger(file) as ledger:
        assert ledger.entries(GUARD, 1, 3000) == entries
        assert ledger.verify(GUARD) == 3003
        assert_consistent(ledger)


def test_a_program_of_version_1_that_has_the_file_open_can_charge_nothing(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    entries = make_version_1(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        assert old.execute("SELECT max(query) FROM entries").fetchone() == (5,)
        with SQLLedger(file) as ledger:
            old.execute("BEGIN IMMEDIATE")
            old.execute("UPDATE guards SET state = 'next' WHERE id = 1")
            with pytest.raises(sqlite3.IntegrityError, match=r"entries\.digest"):
                old.execute(f"{INSERT_1} VALUES (1, 6, 'new', '', 0, 0, 0, 'train', NULL, 0, 1)")
            old.execute("ROLLBACK")
            assert ledger.entries(GUARD) == entries
            assert_consistent(ledger)


@pytest.mark.parametrize("number", [0, 3, 1000])
def test_versions_that_nobody_knows_are_refused(tmp_path: Path, number: int) -> None:
    file = tmp_path / "guard.db"
    make_version_1(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(LedgerUnusable, match=f"version {number}, this program knows versions up to 2"):
        SQLLedger(file)
    assert version(file) == number


def test_a_later_version_in_the_log_only_is_refused(tmp_path: Path) -> None:
    """As while a newer program has the file open, and has migrated it a moment ago."""
    file = tmp_path / "guard.db"
    SQLLedger(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 3")
        with pytest.raises(LedgerUnusable, match="version 3"):
            SQLLedger(file)
