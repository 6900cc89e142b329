"""Encryption on a PostgreSQL server, and guards that move there and back."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.errors import LedgerClosed, LedgerDamaged, LedgerEncrypted
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.cipher import new_key
from thresholdout.ledger.encryption import encrypt, rotate_key
from thresholdout.ledger.transfer import export_history, import_history, move, verify_export

KEY = new_key()
ROOT = Path(__file__).parents[3]


def fill(where: Path | str, key: str | None = None) -> None:
    with SQLLedger(where, key=key) as ledger:
        ledger.create(GUARD, {"budget": 2}, FIRST, {"labels": SECRET, "path": "C:\\0\\n"})
        for query in "abc":
            ledger.ask(GUARD, query, 0.5, "accuracy", Mechanism())


def assert_whole(ledger: SQLLedger, count: int = 3) -> None:
    assert_consistent(ledger)
    assert ledger.verify(GUARD) == count
    assert ledger.document(GUARD, "labels") == SECRET
    assert ledger.document(GUARD, "path") == "C:\\0\\n"


@pytest.mark.slow
def test_a_guard_moves_to_a_server_and_on(server: Server, tmp_path: Path) -> None:
    where, file, last = server.new_database(), tmp_path / "a.db", tmp_path / "b.db"
    fill(file)
    with SQLLedger(file) as old, SQLLedger(where) as new:
        checkpoint = old.checkpoint(GUARD)
        for _ in range(2):
            move(old, new, GUARD)
        assert new.checkpoint(GUARD) == checkpoint
        assert_whole(new)
        with pytest.raises(LedgerClosed, match="it was moved to postgresql://") as caught:
            old.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert "password" not in caught.value.why
        new.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        exported = export_history(new, GUARD, tmp_path / "history.jsonl")
        with SQLLedger(last, key=KEY) as third:
            move(new, third, GUARD)
            assert_whole(third, 4)
            assert third.checkpoint(GUARD) == exported.checkpoint
    assert verify_export(tmp_path / "history.jsonl", checkpoint).count == 4
    with SQLLedger(server.new_database()) as audit:
        import_history(audit, tmp_path / "history.jsonl")
        assert audit.verify(GUARD, checkpoint) == 4
        assert audit.closed(GUARD) is not None


@pytest.mark.slow
def test_changing_the_key(server: Server) -> None:
    where, new = server.new_database(), new_key()
    fill(where)
    assert encrypt(where)  # it is encrypted already, and nothing of earlier rows is left
    with pytest.raises(LedgerEncrypted, match="another key"):
        encrypt(where, key=KEY)
    with SQLLedger(where) as earlier:
        rotate_key(where, new_key=new)
        with pytest.raises(LedgerDamaged, match=r"[Oo]pen it again"):
            earlier.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        with pytest.raises(LedgerEncrypted):
            earlier.create("other", {}, FIRST)
        with pytest.raises(LedgerEncrypted):
            earlier.put_document(GUARD, "more", SECRET)
    with pytest.raises(LedgerEncrypted):
        SQLLedger(where)
    with SQLLedger(where, key=new) as ledger:
        assert_whole(ledger)
        rows = ledger._read("SELECT state FROM guards UNION ALL SELECT text FROM documents")
        assert len(rows) == 3
        assert all(text.startswith("encrypted:1:") for (text,) in rows)
        with pytest.raises(LedgerDamaged, match="cannot be decrypted"):
            ledger._decrypt(
                ledger._read("SELECT state FROM guards")[0][0], GUARD, "state", "2", ledger.checkpoint(GUARD)
            )


@pytest.mark.slow
def test_a_server_s_ledger_without_the_mark_of_its_key_is_damaged(server: Server) -> None:
    """Whoever takes it away, to have secrets read that are not encrypted, or to have the next ones stored so."""
    where = server.new_database()
    fill(where)
    database = where.split("/")[3].partition("?")[0]
    server.run("DELETE FROM thresholdout.settings WHERE name = 'encryption'", database)
    server.run("UPDATE thresholdout.guards SET state = 'forged'", database)
    for use in (SQLLedger, encrypt):
        with pytest.raises(LedgerDamaged, match="no trace of its key"):
            use(where)


@pytest.mark.slow
def test_guards_made_while_the_key_is_changed_are_encrypted_with_it_or_refused(server: Server) -> None:
    """Whoever makes guards with the old key meanwhile is seen by the change, or sees it."""
    where, new = server.new_database(), new_key()
    fill(where)
    made: list[str] = []
    busy = threading.Event()

    def make(thread: int) -> None:
        with SQLLedger(where) as ledger:
            for number in range(1000):
                guard = f"{thread} {number}"
                try:
                    ledger.create(guard, {}, FIRST, {"labels": SECRET})
                except LedgerEncrypted:
                    return
                made.append(guard)
                if number == 5:
                    busy.set()

    threads = [threading.Thread(target=make, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    assert busy.wait(PATIENCE)
    rotate_key(where, new_key=new)
    for thread in threads:
        thread.join()
    assert 6 <= len(made) < 2000
    with SQLLedger(where, key=new) as ledger:
        assert sorted(ledger.guards()) == sorted([GUARD, *made])
        for guard in made:
            assert ledger.state(guard) == FIRST
            assert ledger.document(guard, "labels") == SECRET


@pytest.mark.slow
def test_moves_to_a_server_are_killed_at_every_step(server: Server, tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.ledger.killed_steps", "moves", str(tmp_path)]
    words.append(server.address("DATABASE"))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    steps, *found = done.stdout.split()
    assert found == ["source", "none", "target"]
    assert int(steps) > 30
