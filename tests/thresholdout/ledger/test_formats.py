"""Formats of the tables: this program's is read, others are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger, schema
from thresholdout.ledger.schema import statements

THIS, NEXT = schema.FORMAT, schema.FORMAT + 1


def number_of(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
    return int(number)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A ledger of this program's format with a history."""
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {"threshold": 0.1}, FIRST)
        for _ in range(3):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
    return file


def test_entries_of_a_client_are_found_without_the_others(file: Path) -> None:
    for statement in (statements("sqlite").asked_since, statements("sqlite").entries_of):
        count = statement.count("?")
        with closing(sqlite3.connect(file)) as connection:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * count))
        assert "entries_client (guard=? AND client=?" in plan, plan


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, NEXT, 1000])
def test_formats_that_nobody_knows_are_refused(file: Path, number: int) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")
    with pytest.raises(LedgerUnusable, match=f"format {number}, but this version reads format {THIS}"):
        SQLLedger(file)
    assert number_of(file) == number


def test_a_later_format_in_the_log_only_is_refused(file: Path) -> None:
    """As while another program has the file open, and has made it its own a moment ago."""
    with closing(sqlite3.connect(file, isolation_level=None)) as newer:
        newer.execute(f"PRAGMA user_version = {NEXT}")
        with pytest.raises(LedgerUnusable, match=f"format {NEXT}"):
            SQLLedger(file)
