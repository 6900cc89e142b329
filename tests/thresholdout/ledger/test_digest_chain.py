"""Whatever is done to a history in its file, `verify` says where; and the tables refuse to do it by mistake."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import for_each
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism
from thresholdout.errors import LedgerDamaged, LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.digest_chain import first_digest, next_digest
from thresholdout.ledger.entry import CONTENT, Entry

OTHER = "another guard"
ENTRY = Entry(1, "a", "accuracy", 0.5, 0.25, 0.2, 0.3, "holdout", 9, 0.0, 1.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        for guard in (GUARD, OTHER):
            ledger.create(guard, {"threshold": 0.1}, FIRST, {"labels": "text", CONTENT: guard})
            for number in range(1, 8):
                ledger.ask(guard, f"key {number}", 0.5, "accuracy", Mechanism())
    return file


def tamper(file: Path, *statements: str) -> None:
    """Change a file as somebody who knows it would: without the triggers."""
    with closing(sqlite3.connect(file)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


REST = "name, 1, 1, 1, 1, source, 1, 0, 1, NULL, NULL, '', '', 5.0, digest FROM entries"
OF_4 = "WHERE guard = 1 AND query = 4"
CUT = (
    "DELETE FROM entries WHERE guard = 1 AND query > 4",
    f"UPDATE guards SET asked = 4, checkpoint = (SELECT digest FROM entries {OF_4}) WHERE id = 1",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statements", "query"),
    [
        *[((f"UPDATE entries SET {field} = {field} + 1 {OF_4}",), 4) for field in ("train", "value", "low", "high")],
        *[((f"UPDATE entries SET {field} = {field} + 1e-15 {OF_4}",), 4) for field in ("lower", "upper")],
        ((f"UPDATE entries SET key = 'new' {OF_4}",), 4),
        ((f"UPDATE entries SET name = 'new' {OF_4}",), 4),
        ((f"UPDATE entries SET source = 'train' {OF_4}",), 4),
        ((f"UPDATE entries SET remaining = 3 {OF_4}",), 4),
        ((f"UPDATE entries SET log_error_budget = -1.5 {OF_4}",), 4),
        ((f"UPDATE entries SET list = 4 {OF_4}",), 4),
        ((f"UPDATE entries SET candidate = 'new' {OF_4}",), 4),
        ((f"UPDATE entries SET client = 'new' {OF_4}",), 4),
        ((f"UPDATE entries SET time = time + 1 {OF_4}",), 4),
        ((f"UPDATE entries SET time = NULL {OF_4}",), 4),
        ((f"UPDATE entries SET digest = (SELECT digest FROM entries WHERE guard = 2 AND query = 4) {OF_4}",), 4),
        ((f"UPDATE entries SET query = 8 {OF_4}",), 4),
        ((f"DELETE FROM entries {OF_4}",), 4),
        ((f"DELETE FROM entries {OF_4}", "UPDATE entries SET query = query - 1 WHERE guard = 1 AND query > 4"), 4),
        (
            (
                f"DELETE FROM entries {OF_4}",
                "UPDATE entries SET query = query - 1 WHERE guard = 1 AND query > 4",
                "UPDATE guards SET asked = 6 WHERE id = 1",
            ),
            4,
        ),
        (
            (
                f"UPDATE entries SET query = 100 {OF_4}",
                "UPDATE entries SET query = 4 WHERE guard = 1 AND query = 5",
                "UPDATE entries SET query = 5 WHERE guard = 1 AND query = 100",
            ),
            4,
        ),
        (("DELETE FROM entries WHERE guard = 1 AND query = 7",), 7),
        (("DELETE FROM entries WHERE guard = 1",), 1),
        (
            ("UPDATE guards SET checkpoint = (SELECT digest FROM entries WHERE guard = 1 AND query = 6) WHERE id = 1",),
            7,
        ),
        (("UPDATE guards SET asked = 6 WHERE id = 1",), 7),
        (
            (f"INSERT INTO entries SELECT 1, 8, 'n', {REST} LIMIT 1",),
            8,
        ),
        (("UPDATE guards SET parameters = '{}' WHERE id = 1",), 1),
        (("DELETE FROM entries WHERE guard = 1", "UPDATE guards SET asked = 0 WHERE id = 1"), None),
    ],
)
def test_a_history_that_was_changed_shows(file: Path, statements: tuple[str, ...], query: int | None) -> None:
    tamper(file, *statements)
    with SQLLedger(file) as ledger:
        with pytest.raises(LedgerDamaged) as caught:
            ledger.verify(GUARD)
        assert caught.value.query == query
        assert GUARD[:12] in str(caught.value)
        assert ledger.verify(OTHER) == 7


def test_a_history_that_was_cut_with_its_checkpoint_shows_to_who_kept_one(file: Path) -> None:
    with SQLLedger(file) as ledger:
        checkpoints = [ledger._links(GUARD, number, 1)[0][1] for number in range(1, 8)]
    tamper(file, *CUT)
    with SQLLedger(file) as ledger:
        assert ledger.verify(GUARD) == 4  # by itself it can't be seen
        assert [ledger.verify(GUARD, checkpoint) for checkpoint in checkpoints[:4]] == [4] * 4
        for checkpoint in checkpoints[4:]:
            with pytest.raises(LedgerDamaged, match="cut or replaced"):
                ledger.verify(GUARD, checkpoint)


def test_a_history_that_was_written_anew_shows_to_who_kept_a_checkpoint(file: Path) -> None:
    with SQLLedger(file) as ledger:
        entries, kept = ledger.entries(GUARD), ledger.checkpoint(GUARD)
    file.unlink()
    with SQLLedger(file) as ledger:
        ledger.restore(GUARD, {"threshold": 0.1}, FIRST, {}, [replace(entries[0], value=0.125), *entries[1:]])
        assert ledger.verify(GUARD) == 7
        with pytest.raises(LedgerDamaged, match="cut or replaced"):
            ledger.verify(GUARD, kept)


def test_a_long_history_is_read_in_parts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SQLLedger(file) as ledger:
        for size in (1, 2, 3, 6, 7, 8):
            monkeypatch.setattr("thresholdout.ledger.digest_chain._CHUNK", size)
            told: list[int] = []
            assert ledger.verify(GUARD, ledger.checkpoint(GUARD), told.append) == 7
            assert told == [*range(size, 7, size), 7]
    tamper(file, f"DELETE FROM entries {OF_4}")
    with SQLLedger(file) as ledger:
        for size in (1, 2, 3, 4, 6, 8):
            monkeypatch.setattr("thresholdout.ledger.digest_chain._CHUNK", size)
            with pytest.raises(LedgerDamaged, match=r"Entry 4 of guard .* is missing"):
                ledger.verify(GUARD)


def test_queries_that_are_asked_meanwhile_do_no_harm(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresholdout.ledger.digest_chain._CHUNK", 2)
    with SQLLedger(file) as ledger:
        assert ledger.verify(GUARD, None, lambda _: ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())) == 7
        assert ledger.verify(GUARD) == 11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE entries SET value = 0.5", "entries of a ledger never change"),
        ("UPDATE OR REPLACE entries SET query = 2 WHERE query = 1", "entries of a ledger never change"),
        ("DELETE FROM entries WHERE query = 7", "entries of a ledger are never deleted"),
        ("INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE query = 7", "follow each other"),
        (
            f"INSERT OR REPLACE INTO entries SELECT guard, 8, key, {REST} WHERE query = 3",
            "each with a key of its own",
        ),
        (
            f"INSERT INTO entries SELECT guard, 9, 'n', {REST} LIMIT 1",
            "follow each other",
        ),
        ("UPDATE documents SET text = 'forged'", "documents of a ledger never change"),
        ("DELETE FROM documents", "documents of a ledger are never deleted"),
        ("INSERT OR REPLACE INTO documents SELECT guard, name, 'forged' FROM documents", "documents .* never change"),
        ("UPDATE guards SET parameters = '{}'", "what a guard is never changes"),
        ("UPDATE guards SET identity = 'other' WHERE id = 1", "what a guard is never changes"),
        ("UPDATE guards SET content = NULL WHERE id = 1", "what a guard is never changes"),
        ("UPDATE guards SET id = 3 WHERE id = 1", "what a guard is never changes"),
        ("DELETE FROM guards", "guards of a ledger are never deleted"),
        ("INSERT OR REPLACE INTO guards SELECT * FROM guards WHERE id = 1", "guards of a ledger are never replaced"),
        (
            "INSERT OR REPLACE INTO guards SELECT 3, identity, NULL, 'fresh', '{}', 0, '', NULL FROM guards "
            "WHERE id = 1",
            "guards of a ledger are never replaced",
        ),
        (
            "INSERT OR REPLACE INTO guards SELECT 3, 'new', content, 'fresh', '{}', 0, '', NULL FROM guards "
            "WHERE id = 1",
            "guards of a ledger are never replaced",
        ),
        (
            "INSERT OR REPLACE INTO guards SELECT 1, 'new', NULL, 'fresh', '{}', 0, '', NULL FROM guards WHERE id = 1",
            "guards of a ledger are never replaced",
        ),
        ("UPDATE guards SET closed = NULL WHERE id = 2", "a guard that was closed stays so"),
    ],
)
def test_the_tables_refuse_mistakes(file: Path, statement: str, message: str) -> None:
    with SQLLedger(file) as ledger:
        ledger.close_guard(OTHER, "for the test")
        entries = ledger.entries(GUARD)
    with closing(sqlite3.connect(file)) as connection, pytest.raises(sqlite3.IntegrityError, match=message):
        connection.execute(statement)
    with SQLLedger(file) as ledger:
        assert ledger.entries(GUARD) == entries
        assert (ledger.verify(GUARD), ledger.verify(OTHER)) == (7, 7)
        assert ledger.closed(OTHER) == "for the test"


def test_an_answer_beside_a_forged_one_is_not_stored(file: Path) -> None:
    """An entry that somebody added by hand takes the number that the next query needs."""
    tamper(
        file,
        f"INSERT INTO entries SELECT 1, 8, 'n', {REST} LIMIT 1",
    )
    with SQLLedger(file) as ledger:
        state = ledger.state(GUARD)
        with pytest.raises(LedgerUnusable, match=r"contradicts the stored ones. Run `thresholdout ledger verify`"):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert ledger.state(GUARD) == state


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)


@given(st.tuples(texts, texts, texts), st.tuples(texts, texts, texts))
def test_different_texts_have_different_digests(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    digests = [next_digest("0" * 64, guard, replace(ENTRY, key=key, name=name)) for guard, key, name in (one, two)]
    assert (digests[0] == digests[1]) == (one == two)


@for_each(
    ("one", "two"),
    [
        (replace(ENTRY, query=11, remaining=1), replace(ENTRY, query=1, remaining=11)),
        (replace(ENTRY, remaining=None), replace(ENTRY, remaining=0)),
        (replace(ENTRY, lower=0.0, upper=1.0), replace(ENTRY, lower=1.0, upper=0.0)),
        (replace(ENTRY, low=0.0, high=1.0), replace(ENTRY, low=1.0, high=0.0)),
        (replace(ENTRY, value=0.1 + 0.2), replace(ENTRY, value=0.3)),
        (replace(ENTRY, log_error_budget=None), replace(ENTRY, log_error_budget=0.0)),
        (replace(ENTRY, log_error_budget=-math.inf), replace(ENTRY, log_error_budget=-1.7e308)),
        (replace(ENTRY, remaining=None, list=9), ENTRY),
        (replace(ENTRY, time=None), replace(ENTRY, time=0.0)),
        (replace(ENTRY, log_error_budget=-1.0, time=None), replace(ENTRY, log_error_budget=None, time=-1.0)),
        (replace(ENTRY, candidate="a"), replace(ENTRY, client="a")),
        (replace(ENTRY, source="b 1:c"), replace(ENTRY, source="b", candidate="c")),
        (replace(ENTRY, name="b 1:c"), replace(ENTRY, name="b", source="c")),
    ],
)
def test_different_entries_have_different_digests(one: Entry, two: Entry) -> None:
    start = first_digest(GUARD, "{}")
    assert next_digest(start, GUARD, one) != next_digest(start, GUARD, two)
    assert next_digest(start, GUARD, one) == next_digest(start, GUARD, replace(one))


def test_a_guard_and_its_parameters_are_told_apart() -> None:
    makers: list[Callable[[], str]] = [lambda: first_digest("a", "b c"), lambda: first_digest("a b", "c")]
    assert len({make() for make in makers}) == 2
