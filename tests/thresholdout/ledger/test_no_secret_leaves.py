"""No secret is told to a server as it is, and no error shows one: neither its text nor what it came from."""

from __future__ import annotations

import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.ledger import postgres_server
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import KEY, Server
from thresholdout.errors import InputError, LedgerDamaged, LedgerUnusable
from thresholdout.ledger import Ledger, SQLLedger, encrypt, make_key_file, move, open_ledger, rotate_key
from thresholdout.ledger.cipher import KEY_FILE_VARIABLE, KEY_VARIABLE, new_key
from thresholdout.ledger.entry import CONTENT

LABELS = f"{SECRET}-labels"
DOCUMENTS = {"labels": LABELS, CONTENT: f"{SECRET}-records"}


# What a server is told


@pytest.fixture
def talkative() -> Iterator[Server]:
    """A server that logs every statement with all its parameters."""
    reason = postgres_server.missing()
    if reason is not None:
        pytest.skip(reason)
    server = Server(
        log_min_duration_statement="0",
        log_statement="all",
        log_parameter_max_length="-1",
        log_parameter_max_length_on_error="-1",
        log_min_error_statement="debug5",
    )
    yield server
    server.stop()


@pytest.mark.slow
def test_no_secret_is_in_the_log_of_a_server(talkative: Server, tmp_path: Path) -> None:
    where, new = talkative.new_database(), new_key()
    with SQLLedger(where, key=KEY) as ledger:
        ledger.create(GUARD, {"public": "parameter"}, FIRST, DOCUMENTS)
        for number in range(8):  # the driver prepares what comes often, and tells it in another way
            ledger.ask(GUARD, f"key {number}", 0.5, "a public name", Mechanism())
        ledger.put_document(GUARD, "more", LABELS)
        assert ledger.known(DOCUMENTS[CONTENT]) == GUARD
        assert ledger.document(GUARD, "labels") == LABELS
        row = (1, "labels", ledger._encrypt(f"{SECRET} again", "labels"))
        with pytest.raises(LedgerUnusable) as caught:
            ledger.database.transact(lambda cursor: cursor.execute(ledger._sql.add_document, row))
        assert "23505" in str(caught.value)
        secret = ledger._secret
    rotate_key(where, new_key=new, key=KEY)
    encrypt(where, key=new)
    with SQLLedger(tmp_path / "guard.db") as file:
        file.create("moved", {}, FIRST, {"labels": LABELS})
        file.ask("moved", None, 0.5, "accuracy", Mechanism())
        with SQLLedger(where, key=new) as ledger:
            move(file, ledger, "moved")
            assert_consistent(ledger, "moved")
            assert_consistent(ledger)
    log = talkative.log()
    for public in ("a public name", '"parameter"', "encrypted:1:", "key 7", "documents_pkey", "moved"):
        assert public in log  # so what it is told can be found
    assert secret is not None
    for hidden in (SECRET, secret, KEY, new):
        assert hidden not in log
    assert SECRET not in str(talkative.run("SELECT query FROM pg_stat_activity"))


@pytest.mark.slow
def test_a_server_gets_nothing_without_a_key(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the refusal says what works: a key from a file, or from the environment."""
    monkeypatch.delenv(KEY_VARIABLE)
    where = server.emptied_database()
    for use in (open_ledger, SQLLedger):
        with pytest.raises(
            InputError, match=r"key must be .*; got none, for a ledger on a server, which logs its input"
        ) as caught:
            use(where)
        for words in (
            "thresholdout ledger new-key guard.key",
            "make_key_file('guard.key')",
            "THRESHOLDOUT_KEY_FILE=guard.key",
        ):
            assert words in str(caught.value)
        assert "open_ledger(address, key_file='guard.key')" in str(caught.value)
    with pytest.raises(InputError, match=r"key must be .*; got none"):
        rotate_key(where, new_key=KEY)
    assert server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'thresholdout'", "emptied") == []
    monkeypatch.chdir(tmp_path)
    make_key_file("guard.key")
    with open_ledger(where, key_file="guard.key") as ledger:
        ledger.create(GUARD, {}, FIRST)
    monkeypatch.setenv(KEY_FILE_VARIABLE, "guard.key")
    with open_ledger(where) as ledger:
        assert ledger.encrypted
        assert ledger.state(GUARD) == FIRST


# What errors show


def everything(error: BaseException) -> str:
    """Return all that an error shows, with what it came from, whether or not a traceback prints that."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    texts = ["".join(traceback.format_exception(error))]
    while waiting:
        each = waiting.pop()
        if each is None or each in seen:
            continue
        seen.append(each)
        texts += [str(each), repr(each), repr(each.args), repr(vars(each))]
        if isinstance(each, UnicodeError):
            texts.append(repr(each.object))  # type: ignore[attr-defined]
        waiting += [each.__cause__, each.__context__]
    return "\n".join(texts)


USES: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism()),
    lambda ledger: ledger.state(GUARD),
    lambda ledger: ledger.document(GUARD, "labels"),
    lambda ledger: ledger.put_document(GUARD, "labels", "text"),
    lambda ledger: ledger.create(GUARD, {}, FIRST),
    lambda ledger: ledger.close_guard(GUARD, "for the test"),
]


@pytest.mark.slow
@for_each("use", USES)
def test_a_byte_that_is_no_text_shows_nothing_of_a_file(tmp_path: Path, use: Callable[[Ledger], object]) -> None:
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST, {"labels": LABELS})
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        for (trigger,) in other.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            other.execute(f"DROP TRIGGER {trigger}")
        other.execute("UPDATE guards SET state = CAST(? || x'ff' AS TEXT)", (FIRST,))
        other.execute("UPDATE documents SET text = CAST(? || x'c3' AS TEXT)", (LABELS,))
    with SQLLedger(file) as ledger, pytest.raises((LedgerUnusable, LedgerDamaged)) as caught:
        use(ledger)
    assert SECRET not in everything(caught.value)
    assert "holds text that cannot be decoded, so it is damaged. Do not use its holdout" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.slow
@pytest.mark.parametrize("use", corners(USES, 0, len(USES) - 1))
def test_a_byte_that_is_no_text_shows_nothing_of_a_server(server: Server, use: Callable[[Ledger], object]) -> None:
    """In a database without an encoding, which takes every byte."""
    name = f"bytes_{os.urandom(4).hex()}"
    server.run(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0")
    where = server.address(name)
    with SQLLedger(where) as ledger:
        ledger.create(GUARD, {"name": "Jürgen"}, FIRST, {"labels": LABELS})
        assert ledger.parameters(GUARD) == {"name": "Jürgen"}
    server.run("ALTER TABLE thresholdout.documents DISABLE TRIGGER USER", name)
    server.run("SET client_encoding = 'SQL_ASCII'; UPDATE thresholdout.guards SET state = state || E'\\xff'", name)
    server.run("SET client_encoding = 'SQL_ASCII'; UPDATE thresholdout.documents SET text = text || E'\\xc3'", name)
    with SQLLedger(where) as ledger, pytest.raises((LedgerUnusable, LedgerDamaged)) as caught:
        use(ledger)
    assert SECRET not in everything(caught.value)
    assert "holds text that cannot be decoded, so it is damaged. Do not use its holdout" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_a_database_refuses_shows_no_row(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "guard.db") as ledger:
        ledger.create(GUARD, {}, FIRST, {"labels": LABELS})
        statements = ledger.database.statements
        attempts: list[tuple[str, tuple[object, ...]]] = [
            (statements.add_document, (1, "labels", LABELS)),
            (statements.set_state, (object(), LABELS, "", 1)),
            (f"UPDATE nothing SET state = '{LABELS}'", ()),
            (f"SELECT '{LABELS}' FROM", ()),
        ]
        for statement, parameters in attempts:
            with pytest.raises(LedgerUnusable) as caught:
                ledger.database.transact(lambda cursor: cursor.execute(statement, parameters))  # noqa: B023
            assert SECRET not in everything(caught.value)
            assert caught.value.__context__ is None
        assert_consistent(ledger)


def test_what_a_server_refuses_shows_no_row(server: Server) -> None:
    with SQLLedger(server.emptied_database()) as ledger:
        ledger.create(GUARD, {}, FIRST, {"labels": LABELS})
        attempts: list[tuple[str, tuple[object, ...]]] = [
            (ledger._sql.add_document, (1, "labels", LABELS)),
            (ledger._sql.set_state, (LABELS, LABELS, "", 1)),
            ("SELECT %s::bigint", (LABELS,)),
            (f"UPDATE nothing SET state = '{LABELS}'", ()),
            (ledger._sql.set_state, (f"{LABELS}\ud800", 1, "", 1)),
            (ledger._sql.set_state, (f"{LABELS}\0", 1, "", 1)),
        ]
        for statement, parameters in attempts:
            with pytest.raises(LedgerUnusable) as caught:
                ledger.database.transact(lambda cursor: cursor.execute(statement, parameters))  # noqa: B023
            assert SECRET not in everything(caught.value)
            assert caught.value.__context__ is None
        assert_consistent(ledger)
