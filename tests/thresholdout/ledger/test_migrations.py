"""Formats of the tables: earlier ones become this one by steps, whatever the database; others are refused."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.ledgers.guards import FOLDER
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger, migrations, schema
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.schema import Statements, statements

UNRELEASED = "it was made before the first release, in a format that is not read any more; make a new guard"


def number_of(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


def rows_of(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def settings_of(file: Path) -> dict[str, str]:
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute("SELECT name, value FROM settings"))


def made_up_step(cursor: Cursor, dialect: Statements) -> None:
    """A step as a later format might have: it works in every dialect."""
    cursor.execute("ALTER TABLE settings ADD COLUMN note TEXT")
    cursor.execute(dialect.put_setting, ("made up", "step"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger of this program's format with a history."""
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {"threshold": 0.1}, FIRST)
        for _ in range(3):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    return file


THIS, NEXT = schema.FORMAT, schema.FORMAT + 1


@pytest.fixture
def next_format(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this program had one more format, and the file is of the one before."""
    monkeypatch.setattr(schema, "FORMAT", NEXT)
    monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, made_up_step])


def test_the_tables_of_format_1_become_those_of_this_one(file: Path, tmp_path: Path) -> None:
    """The same columns, in whatever order, indexes and triggers as those that are made new, and the same rows."""
    old = tmp_path / "old.db"
    shutil.copyfile(FOLDER / "format-1" / "algorithm-1.db", old)
    old.chmod(0o600)
    (before,) = rows_of(old, "SELECT count(*), max(query), max(digest) FROM entries")
    SQLLedger(old).close()
    assert rows_of(old, "SELECT count(*), max(query), max(digest) FROM entries") == [before]
    assert rows_of(old, "SELECT DISTINCT time FROM entries") == [(None,)]
    for kind in ("index", "trigger"):
        query = f"SELECT name, sql FROM sqlite_master WHERE type = '{kind}' ORDER BY name"
        assert rows_of(old, query) == rows_of(file, query)
    columns = "SELECT name, type, \"notnull\", pk FROM pragma_table_info('entries') ORDER BY name"
    assert rows_of(old, columns) == rows_of(file, columns)


def test_entries_of_an_asker_are_found_without_the_others(file: Path) -> None:
    for statement in (statements("sqlite").asked_since, statements("sqlite").entries_of):
        count = statement.count("?")
        with closing(sqlite3.connect(file)) as connection:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * count))
        assert "entries_asker (guard=? AND asker=?" in plan, plan


def test_there_is_a_step_to_every_format_but_the_first() -> None:
    assert len(migrations.STEPS) == schema.FORMAT - 1


@pytest.mark.usefixtures("next_format")
def test_an_earlier_format_becomes_this_one_once_and_no_answer_changes(file: Path) -> None:
    assert number_of(file) == THIS
    for _ in range(2):
        with SQLLedger(file) as ledger:
            assert ledger.verify(GUARD) == 3
            assert_consistent(ledger)
        assert number_of(file) == NEXT
        assert settings_of(file)["made up"] == "step"
    with SQLLedger(file) as ledger:
        assert ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())[0].query == 4


@pytest.mark.usefixtures("next_format")
def test_a_new_file_takes_no_step(tmp_path: Path) -> None:
    SQLLedger(tmp_path / "new.db").close()
    assert number_of(tmp_path / "new.db") == NEXT
    assert "made up" not in settings_of(tmp_path / "new.db")


@pytest.mark.usefixtures("next_format")
def test_a_step_that_fails_leaves_the_file_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(cursor: Cursor, dialect: Statements) -> None:
        made_up_step(cursor, dialect)
        raise KeyboardInterrupt

    before = settings_of(file)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", [*migrations.STEPS[:-1], failing])
        with pytest.raises(KeyboardInterrupt):
            SQLLedger(file)
    assert (number_of(file), settings_of(file)) == (THIS, before)
    with SQLLedger(file) as ledger:
        assert ledger.verify(GUARD) == 3
    assert number_of(file) == NEXT


@pytest.mark.usefixtures("next_format")
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


@pytest.mark.parametrize("number", [0, NEXT, 1000])
def test_formats_that_nobody_knows_are_refused(file: Path, number: int) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(LedgerUnusable, match=f"format {number}, this program knows formats up to {THIS}"):
        SQLLedger(file)
    assert number_of(file) == number


def test_a_later_format_in_the_log_only_is_refused(file: Path) -> None:
    """As while a newer program has the file open, and has migrated it a moment ago."""
    with closing(sqlite3.connect(file, isolation_level=None)) as newer:
        newer.execute(f"PRAGMA user_version = {NEXT}")
        with pytest.raises(LedgerUnusable, match=f"format {NEXT}"):
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
