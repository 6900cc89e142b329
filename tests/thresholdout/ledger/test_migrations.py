"""Formats of the tables: earlier ones become this one by steps, whatever the database; others are refused."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger, migrations, schema
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.schema import Statements

UNRELEASED = "it was made before the first release, in a format that is not read any more; make a new guard"


def number_of(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


def settings_of(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute("SELECT name, value FROM settings"))


def made_up_step(cursor: Cursor, statements: Statements) -> None:
    """A step as a later format might have: it works in every dialect."""
    cursor.execute("ALTER TABLE settings ADD COLUMN note TEXT")
    cursor.execute(statements.put_setting, ("made up", "step"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger of format 1 with a history."""
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {"threshold": 0.1}, FIRST)
        for _ in range(3):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    return file


@pytest.fixture
def format_2(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this program had a second format, and the file is of the first."""
    monkeypatch.setattr(schema, "FORMAT", 2)
    monkeypatch.setattr(migrations, "STEPS", [made_up_step])


def test_there_is_a_step_to_every_format_but_the_first() -> None:
    assert len(migrations.STEPS) == schema.FORMAT - 1


@pytest.mark.usefixtures("format_2")
def test_an_earlier_format_becomes_this_one_once_and_no_answer_changes(file: Path) -> None:
    assert number_of(file) == 1
    for _ in range(2):
        with SQLLedger(file) as ledger:
            assert ledger.verify(GUARD) == 3
            assert_consistent(ledger)
        assert number_of(file) == 2
        assert settings_of(file)["made up"] == "step"
    with SQLLedger(file) as ledger:
        assert ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0].query == 4


@pytest.mark.usefixtures("format_2")
def test_a_new_file_takes_no_step(tmp_path: Path) -> None:
    SQLLedger(tmp_path / "new.db").close()
    assert number_of(tmp_path / "new.db") == 2
    assert "made up" not in settings_of(tmp_path / "new.db")


@pytest.mark.usefixtures("format_2")
def test_a_step_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(cursor: Cursor, statements: Statements) -> None:
        made_up_step(cursor, statements)
        raise KeyboardInterrupt

    before = settings_of(file)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", [failing])
        with pytest.raises(KeyboardInterrupt):
            SQLLedger(file)
    assert (number_of(file), settings_of(file)) == (1, before)
    with SQLLedger(file) as ledger:
        assert ledger.verify(GUARD) == 3
    assert number_of(file) == 2


@pytest.mark.usefixtures("format_2")
def test_threads_that_open_at_once_take_each_step_once(file: Path) -> None:
    """The made-up step fails when it is taken twice: the column is there then."""
    together, errors = threading.Barrier(4), []

    def run() -> None:
        together.wait()
        try:
            with SQLLedger(file) as ledger:
                ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        except LedgerUnusable as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with SQLLedger(file) as ledger:
        assert ledger.verify(GUARD) == 7
        assert_consistent(ledger)


@pytest.mark.parametrize("number", [0, 2, 1000])
def test_formats_that_nobody_knows_are_refused(file: Path, number: int) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(LedgerUnusable, match=f"format {number}, this program knows formats up to 1"):
        SQLLedger(file)
    assert number_of(file) == number


def test_a_later_format_in_the_log_only_is_refused(file: Path) -> None:
    """As while a newer program has the file open, and has migrated it a moment ago."""
    with closing(sqlite3.connect(file, isolation_level=None)) as newer:
        newer.execute("PRAGMA user_version = 2")
        with pytest.raises(LedgerUnusable, match="format 2"):
            SQLLedger(file)


@pytest.mark.parametrize("number", [1, 2])
def test_a_file_of_before_the_first_release_is_refused(tmp_path: Path, number: int) -> None:
    file = tmp_path / "guard.db"
    file.touch(mode=0o600)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE guards (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE)")
        connection.execute("PRAGMA application_id = 0x74686F75")
        connection.execute(f"PRAGMA user_version = {number}")
    before = file.read_bytes()
    for must_exist in (False, True):
        with pytest.raises(LedgerUnusable, match=UNRELEASED):
            SQLLedger(file, must_exist=must_exist)
    assert (file.read_bytes(), [f.name for f in tmp_path.iterdir()]) == (before, ["guard.db"])
    SQLLedger(tmp_path / "another.db").close()  # what the message names
