from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import system_packages
from tests.cases import for_each
from tests.thresholdout.ledger import postgres_server
from tests.thresholdout.ledger.contract import LedgerContract
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import KEY, Server
from thresholdout.errors import InputError, LedgerMismatch, LedgerUnusable, ThresholdoutError
from thresholdout.ledger import Ledger, SQLLedger, open_ledger
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.schema import FORMAT, statements


@pytest.mark.slow
class TestPostgresLedger(LedgerContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: Server) -> None:
        self.server = server

    def make(self, folder: Path) -> Ledger:
        return SQLLedger(self.server.emptied_database())


@pytest.fixture
def empty(server: Server) -> str:
    return server.emptied_database()


@pytest.fixture
def address(empty: str) -> str:
    with SQLLedger(empty) as ledger:
        ledger.create(GUARD, {"threshold": 0.1}, FIRST, {"labels": SECRET})
        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
    return empty


def setting(ledger: SQLLedger, name: str) -> str:
    return str(ledger.database.read("SELECT current_setting(%s)", (name,))[0][0])


# Opening


def test_a_ledger_continues(address: str) -> None:
    with open_ledger(address, must_exist=True) as ledger:
        (entry,) = ledger.entries(GUARD)
        assert ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism()) == (entry, True)
        assert ledger.parameters(GUARD) == {"threshold": 0.1}
        assert ledger.document(GUARD, "labels") == SECRET
        with pytest.raises(LedgerMismatch):
            ledger.create(GUARD, {"threshold": 0.2}, FIRST)


def test_all_ways_to_write_an_address(address: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", str(server.folder))
    monkeypatch.setenv("PGUSER", "guard")
    _, _, rest = address.partition("://")
    for where in (f"postgres://{rest}", f"postgresql+psycopg://{rest}", "postgresql:///emptied"):
        with open_ledger(where) as ledger:
            assert ledger.guards() == [GUARD]


def test_no_ledger_where_one_must_be(empty: str, server: Server) -> None:
    with pytest.raises(LedgerUnusable, match="This database has no ledger"):
        open_ledger(empty, must_exist=True)
    assert server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'thresholdout'", "emptied") == []
    with pytest.raises(LedgerUnusable, match=r"The server cannot be reached: .* database \"nothing\" does not exist"):
        open_ledger(server.address("nothing"))
    with pytest.raises(LedgerUnusable, match=r"The server cannot be reached: .* No such file"):
        open_ledger("postgresql://guard@/db?host=/nowhere")


def test_a_schema_that_is_not_a_ledger_is_left_alone(empty: str, server: Server) -> None:
    server.run("CREATE SCHEMA thresholdout", "emptied")
    server.run("CREATE TABLE thresholdout.settings (name text, value text)", "emptied")
    for must_exist in (False, True):
        with pytest.raises(LedgerUnusable, match="Its schema thresholdout is not a ledger"):
            open_ledger(empty, must_exist=must_exist)
    tables = server.run("SELECT tablename FROM pg_tables WHERE schemaname = 'thresholdout'", "emptied")
    assert tables == [("settings",)]


def test_tables_of_a_later_version_are_refused(address: str, server: Server) -> None:
    server.run(f"UPDATE thresholdout.settings SET value = '{FORMAT + 1}' WHERE name = 'format'", "emptied")
    with pytest.raises(LedgerUnusable, match=f"format {FORMAT + 1}, but this version reads format {FORMAT}"):
        open_ledger(address)


def test_many_make_the_tables_at_once(empty: str) -> None:
    ledgers: list[SQLLedger] = []
    threads = [threading.Thread(target=lambda: ledgers.append(SQLLedger(empty))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(ledgers) == 8
    for ledger in ledgers:
        with ledger:
            ledger.create(GUARD, {}, FIRST)
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
            assert_consistent(ledger)


@pytest.fixture
def role(server: Server) -> Iterator[str]:
    """A user without rights, who needs a password."""
    server.run("CREATE ROLE careful LOGIN PASSWORD 'right-hunter2'")
    yield "careful"
    server.run("DROP OWNED BY careful", "emptied")
    server.run("DROP ROLE careful")


@pytest.mark.slow
def test_a_role_without_rights(address: str, server: Server, role: str) -> None:
    where = server.address("emptied", role, "right-hunter2")
    with pytest.raises(LedgerUnusable, match=r"lacks privileges. It needs CREATE on the database once.*\(42501\)"):
        open_ledger(where)
    server.emptied_database()
    with pytest.raises(LedgerUnusable, match=r"lacks privileges.*\(42501\)"):
        open_ledger(where)


@pytest.mark.slow
def test_a_role_that_may_only_read(address: str, server: Server, role: str) -> None:
    server.run(f"GRANT USAGE ON SCHEMA thresholdout TO {role}", "emptied")
    server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA thresholdout TO {role}", "emptied")
    with open_ledger(server.address("emptied", role, "right-hunter2")) as ledger:
        assert len(ledger.entries(GUARD)) == 1
        mechanism = Mechanism()
        with pytest.raises(LedgerUnusable, match="lacks privileges"):
            ledger.ask(GUARD, "b", 0.5, "accuracy", mechanism)
        assert mechanism.states == []


@pytest.mark.slow
@pytest.mark.parametrize("password", ["hunter2", "hunter2@x", "hunter2:x", "hunter2/x", "hunter2?x=1", "%"])
def test_no_password_is_shown(
    server: Server, empty: str, role: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    addresses = [
        f"postgresql://{role}:{password}@/emptied?host={server.folder}",
        f"postgresql://{role}:{password}@localhost:1/emptied",
        f"postgresql://{role}@/emptied?host={server.folder}&password={password}",
    ]
    for address in addresses:
        with pytest.raises((LedgerUnusable, InputError)) as caught:
            open_ledger(address)
        assert "hunter2" not in "".join(traceback.format_exception(caught.value))
        assert "hunter2" not in repr(caught.value) + caplog.text
    with open_ledger(server.address("emptied", "guard", "hunter2")) as ledger:
        assert isinstance(ledger, SQLLedger)
        shown = repr(ledger) + repr(vars(ledger)) + repr(vars(ledger.database)) + ledger.location
        assert "hunter2" not in shown
        assert ledger.location == f"postgresql://guard@/emptied?host={server.folder}"


@for_each("address", ["postgresql://hunter2@host:port/db", "postgresql://u:hun@ter2@host/db", "postgres://[::"])
def test_addresses_that_cannot_be_read(address: str) -> None:
    with pytest.raises(InputError, match=r"ledger must be .*; got an address that can't be read") as caught:
        open_ledger(address, key=KEY)
    assert "hun" not in str(caught.value)


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ThresholdoutError, match=r"needs the library psycopg: pip install 'thresholdout\[postgres\]'"):
        open_ledger("postgresql://guard@host/db", key=KEY)


# Durability


def test_commits_wait_for_the_disk(address: str, server: Server) -> None:
    for default, used in (("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")):
        server.run(f"ALTER DATABASE emptied SET synchronous_commit = {default}")
        with SQLLedger(address) as ledger:
            assert setting(ledger, "synchronous_commit") == used
    server.run("ALTER DATABASE emptied RESET synchronous_commit")


@pytest.mark.slow
def test_a_server_that_does_not_write_to_the_disk_is_refused(server: Server) -> None:
    careless = Server(fsync="off")
    try:
        with pytest.raises(LedgerUnusable, match="runs with fsync = off"):
            open_ledger(careless.new_database())
    finally:
        careless.stop()


def test_other_defaults_do_no_harm(address: str, server: Server) -> None:
    for name, value in (
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
        ("statement_timeout", "1"),
        ("search_path", "pg_catalog"),
        ("DateStyle", "German"),
        ("extra_float_digits", "-15"),
    ):
        server.run(f"ALTER DATABASE emptied SET {name} = {value}")
    try:
        with SQLLedger(address) as one, SQLLedger(address) as other:
            for _ in range(3):
                for ledger in (one, other):
                    entry, _ = ledger.ask(GUARD, None, 0.1 + 0.2, "accuracy", Mechanism())
                    assert ledger.entries(GUARD)[-1] == entry
            assert_consistent(one)
            one.verify(GUARD)
    finally:
        server.run("ALTER DATABASE emptied RESET ALL")


def test_a_default_that_ends_the_statement_that_sets_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = 3

    class Hasty(psycopg.Connection[tuple[object, ...]]):
        def execute(self, *arguments: Any, **options: Any) -> psycopg.Cursor[tuple[object, ...]]:
            nonlocal refusals
            if refusals and str(arguments[0]).startswith("SET statement_timeout"):
                refusals -= 1
                raise psycopg.errors.QueryCanceled
            return super().execute(*arguments, **options)

    monkeypatch.setattr(psycopg, "connect", Hasty.connect)
    with SQLLedger(address, timeout=7) as ledger:
        assert refusals == 0
        assert setting(ledger, "statement_timeout") == "70s"
        assert setting(ledger, "lock_timeout") == "7s"
    refusals = sys.maxsize
    with pytest.raises(LedgerUnusable, match="took too long, or was cancelled"):
        SQLLedger(address, timeout=0.2)


# Use


def test_two_ledgers_on_one_database(address: str) -> None:
    with SQLLedger(address) as one, SQLLedger(address) as two:
        for ledger in (one, two, one, two):
            ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        entry, _ = one.ask(GUARD, "shared", 0.5, "accuracy", Mechanism())
        assert two.ask(GUARD, "shared", 0.5, "accuracy", Mechanism()) == (entry, True)
        one.close()
        two.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert_consistent(two)


def test_guards_do_not_wait_for_each_other(address: str) -> None:
    with SQLLedger(address, timeout=5) as ledger, psycopg.connect(address) as other:
        ledger.create("another", {}, FIRST)
        other.execute("SELECT 1 FROM thresholdout.guards WHERE identity = %s FOR UPDATE", (GUARD,))
        ledger.ask("another", None, 0.5, "accuracy", Mechanism())
        other.rollback()
        assert_consistent(ledger, "another")


def test_the_tables_refuse_changes(address: str, server: Server) -> None:
    for statement in (
        "UPDATE entries SET value = 0",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "UPDATE guards SET parameters = '{}'",
        "DELETE FROM guards",
        "DELETE FROM documents",
    ):
        with psycopg.connect(address, options="-c search_path=thresholdout") as other:
            with pytest.raises(psycopg.errors.RestrictViolation, match="never"):
                other.execute(statement)
            other.rollback()


def test_a_dropped_ledger_leaves_no_session(address: str, server: Server) -> None:
    ledger = SQLLedger(address)
    ledger.guards()
    del ledger
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'thresholdout'"
    until = time.monotonic() + 60
    while server.run(waiting) != [(0,)]:
        assert time.monotonic() < until


# The tests' own server


def test_what_is_said_about_the_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert postgres_server.install(1).endswith("found")
    done: list[list[str]] = []

    def works(words: list[str], seconds: float) -> bool:
        done.append(words)
        if "install" in words:
            monkeypatch.setattr(postgres_server, "programs", lambda: tmp_path)
        return True

    monkeypatch.setattr(postgres_server, "programs", lambda: None)
    monkeypatch.setattr(postgres_server, "version", lambda folder: "17")
    for module in (postgres_server, system_packages):
        monkeypatch.setattr(module, "works", works)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert postgres_server.install(1) == "PostgreSQL 17 installed"
    assert any("update" in words for words in done)
    monkeypatch.setattr(postgres_server, "programs", lambda: None)
    for module in (postgres_server, system_packages):
        monkeypatch.setattr(module, "works", lambda words, seconds: False)
    assert postgres_server.install(1) == ("no PostgreSQL and no way to install it here: its tests will be skipped")
    assert "make system-packages" in (postgres_server.missing() or "")


def test_entries_of_a_client_are_found_without_the_others(address: str) -> None:
    def explained(cursor: Cursor) -> str:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {statements('postgresql').asked_since}", ("ann", 1, 5.0))
        return " ".join(row[0] for row in cursor.fetchall())

    with SQLLedger(address) as ledger:
        plan = ledger.database.transact(explained)
    assert "entries_client" in plan
    assert "md5(client)" in plan.partition("Index Cond")[2].partition("Filter")[0]
