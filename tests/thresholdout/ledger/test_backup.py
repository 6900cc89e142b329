"""Copies of a ledger that is in use, for both databases, and what comes back from them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.thresholdout.cli.running import run
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, PARAMETERS, SECRET, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import Server, programs
from thresholdout.errors import InputError, LedgerDamaged, LedgerEncrypted, LedgerUnusable
from thresholdout.ledger import SQLLedger, encrypt, new_key
from thresholdout.ledger.backup import back_up
from thresholdout.ledger.cipher import KEY_VARIABLE


@pytest.fixture
def leaderboard(tmp_path: Path) -> Path:
    with SQLLedger(tmp_path / "leaderboard.db") as ledger:
        ledger.create(GUARD, PARAMETERS, FIRST, {"labels": SECRET})
        ask(ledger, 3)
    return tmp_path / "leaderboard.db"


def ask(ledger: SQLLedger, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        ledger.ask(GUARD, f"key {number}", 0.5, "accuracy", Mechanism())


def test_a_copy_is_the_ledger(leaderboard: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with SQLLedger(leaderboard) as ledger:
        ask(ledger, 2, start=3)  # in the log, not in the file
        assert back_up(leaderboard, copy) == {GUARD: (5, ledger.checkpoint(GUARD))}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert copy.stat().st_nlink == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "leaderboard.db"]
    with SQLLedger(copy) as restored, SQLLedger(leaderboard) as ledger:
        assert restored.identity() == ledger.identity()
        assert restored.entries(GUARD) == ledger.entries(GUARD)
        assert restored.document(GUARD, "labels") == SECRET
        ask(restored, 1, start=5)
        assert_consistent(restored)


@pytest.mark.slow
def test_copies_of_a_ledger_that_answers_are_of_one_moment(leaderboard: Path, tmp_path: Path) -> None:
    stop = threading.Event()

    def answer() -> None:
        number = 3
        while not stop.is_set() and number < 2000:
            ask(ledger, 1, start=number)
            number += 1

    with SQLLedger(leaderboard) as ledger:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            counts = [back_up(leaderboard, tmp_path / f"copy{number}.db")[GUARD][0] for number in range(5)]
        finally:
            stop.set()
            thread.join()
        assert counts == sorted(counts)
        for number, count in enumerate(counts):
            with SQLLedger(tmp_path / f"copy{number}.db") as copy:
                assert_consistent(copy)
                assert copy.entries(GUARD) == ledger.entries(GUARD, 1, count)


def test_nothing_is_replaced(leaderboard: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    with pytest.raises(InputError, match="file"):
        back_up(leaderboard, other)
    with pytest.raises(InputError, match="file"):
        back_up(leaderboard, leaderboard)
    os.symlink("nowhere", tmp_path / "link")
    with pytest.raises(InputError, match="file"):
        back_up(leaderboard, tmp_path / "link")
    assert other.read_text() == "mine"


def test_what_cannot_be_copied_is_said(leaderboard: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnusable, match="does not exist"):
        back_up(tmp_path / "missing.db", tmp_path / "copy.db")
    with pytest.raises(LedgerUnusable, match="cannot be written"):
        back_up(leaderboard, tmp_path / "missing" / "copy.db")
    with pytest.raises(InputError, match="pg_dump"):
        back_up("postgresql://guard@localhost/guard", tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == [leaderboard]


def test_a_damaged_ledger_has_no_backup(leaderboard: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(leaderboard)) as connection, connection:
        connection.execute("DROP TRIGGER entries_update")
        connection.execute("UPDATE entries SET value = 0.9 WHERE query = 2")
    with pytest.raises(LedgerDamaged):
        back_up(leaderboard, tmp_path / "copy.db")
    assert {path.name.removeprefix(leaderboard.name) for path in tmp_path.iterdir()} <= {"", "-wal", "-shm"}


def test_a_encrypted_ledger_stays_encrypted(leaderboard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key()
    encrypt(leaderboard, key=key)
    with pytest.raises(LedgerEncrypted):
        back_up(leaderboard, tmp_path / "copy.db")
    monkeypatch.setenv(KEY_VARIABLE, key)
    back_up(leaderboard, tmp_path / "copy.db")
    assert SECRET.encode() not in (tmp_path / "copy.db").read_bytes()
    with SQLLedger(tmp_path / "copy.db", key=key) as copy:
        assert copy.document(GUARD, "labels") == SECRET


def test_the_command(leaderboard: Path, tmp_path: Path) -> None:
    said = run("ledger", "backup", str(leaderboard), str(tmp_path / "copy.db")).output
    with SQLLedger(leaderboard) as ledger:
        assert f"3 entries, unchanged\ncheckpoint {ledger.checkpoint(GUARD)}" in said
    assert "which exists" in run("ledger", "backup", str(leaderboard), str(tmp_path / "copy.db"), code=4).output


@pytest.mark.slow
def test_a_server_comes_back_from_pg_dump(server: Server, server_key: str, tmp_path: Path) -> None:
    """The commands of docs/operation.md."""
    folder = programs()
    assert folder is not None
    if not (folder / "pg_dump").exists():
        pytest.skip("needs pg_dump")
    source, target = server.new_database(), server.new_database()
    with SQLLedger(source) as ledger:
        ledger.create(GUARD, PARAMETERS, FIRST, {"labels": SECRET})
        ask(ledger, 3)
        dump = tmp_path / "leaderboard.dump"
        _works(folder / "pg_dump", "--format=custom", "--schema=thresholdout", "--file", str(dump), source)
        ask(ledger, 1, start=3)
        identity = ledger.identity()
    assert SECRET.encode() not in dump.read_bytes()
    _works(folder / "pg_restore", "--exit-on-error", "--no-owner", f"--dbname={target}", str(dump))
    with SQLLedger(target, must_exist=True) as restored:
        assert restored.verify(GUARD) == 3
        assert restored.identity() == identity
        assert restored.document(GUARD, "labels") == SECRET
        ask(restored, 1, start=3)
        assert_consistent(restored)
    assert urlsplit(source).path != urlsplit(target).path


def _works(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_copy_by_name_is_no_backup(leaderboard: Path, tmp_path: Path) -> None:
    """Why there is a command: the last answers are in the log beside the file."""
    with SQLLedger(leaderboard) as ledger:
        ask(ledger, 2, start=3)
        shutil.copy(leaderboard, tmp_path / "copied.db")
    os.chmod(tmp_path / "copied.db", 0o600)
    with SQLLedger(tmp_path / "copied.db") as copy:
        assert copy.count(GUARD) < 5
