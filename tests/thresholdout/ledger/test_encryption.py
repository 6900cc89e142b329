"""Encrypted ledgers: no secret is in the file, and none opens elsewhere or later."""

from __future__ import annotations

import logging
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.thresholdout.ledger.contract import LedgerContract
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, SECRET, Mechanism, assert_consistent
from thresholdout.errors import (
    InputError,
    LedgerDamaged,
    LedgerEncrypted,
    LedgerError,
    LedgerMismatch,
    LedgerUnusable,
    UnencryptedLedgerWarning,
)
from thresholdout.ledger import Ledger, MemoryLedger, SQLLedger, open_ledger
from thresholdout.ledger.cipher import KEY_FILE_VARIABLE, KEY_VARIABLE, make_key_file, new_key
from thresholdout.ledger.encryption import encrypt, rotate_key

KEY = new_key()
OTHER = "another guard"
LABELS = f"{SECRET} labels"


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)


@pytest.mark.slow
class TestEncryptedSQLiteLedger(LedgerContract):
    def make(self, folder: Path) -> Ledger:
        return SQLLedger(folder / "guard.db", key=KEY)


def fill(where: Path | str, key: str | None) -> Path | str:
    with SQLLedger(where, key=key) as ledger:
        for guard in (GUARD, OTHER):
            ledger.create(guard, {}, FIRST, {"labels": f"{LABELS} {guard}", "more": SECRET})
            for query in "abc":
                ledger.ask(guard, query, 0.5, "accuracy", Mechanism())
    return where


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(fill(tmp_path / "guard.db", KEY))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return Path(fill(tmp_path / "plain.db", None))


def assert_whole(where: Path | str, key: str | None) -> None:
    with SQLLedger(where, must_exist=True, key=key) as ledger:
        assert ledger.encrypted == (key is not None)
        for guard in (GUARD, OTHER):
            assert_consistent(ledger, guard)
            assert ledger.verify(guard) == 3
            assert ledger.document(guard, "labels") == f"{LABELS} {guard}"
            assert ledger.document(guard, "more") == SECRET


def raw(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def change(file: Path, statement: str, *parameters: object) -> None:
    """Do what somebody does who may write the file."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement, parameters).rowcount >= 1


def get(file: Path, statement: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchall()


# What is in the file


def test_no_secret_is_in_a_encrypted_file(tmp_path: Path) -> None:
    with SQLLedger(tmp_path / "guard.db", key=KEY) as ledger:
        ledger.create(GUARD, {"public": "parameter"}, FIRST, {"labels": LABELS})
        ledger.put_document(GUARD, "more", SECRET)
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        assert {path.name for path in tmp_path.iterdir()} == {"guard.db", "guard.db-wal", "guard.db-shm"}
        assert SECRET.encode() not in raw(tmp_path)
        assert b"parameter" in raw(tmp_path)  # so what is written can be found
    assert SECRET.encode() not in raw(tmp_path)
    assert KEY.encode() not in raw(tmp_path)
    fill(tmp_path / "plain.db", None)
    assert SECRET.encode() in raw(tmp_path)


@pytest.mark.parametrize("open_elsewhere", [False, True])
def test_encryption_leaves_no_plain_text(tmp_path: Path, plain: Path, open_elsewhere: bool) -> None:
    with SQLLedger(plain) as ledger:
        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        if open_elsewhere:
            assert SECRET.encode() in raw(tmp_path)
            encrypt(plain, key=KEY)
            assert SECRET.encode() not in raw(tmp_path)
    encrypt(plain, key=KEY)
    assert SECRET.encode() not in raw(tmp_path)
    assert_whole(plain, KEY)
    with SQLLedger(plain, key=KEY) as ledger, pytest.raises(LedgerUnusable, match="documents of a ledger never change"):
        ledger._read("UPDATE documents SET text = 'x'")


@pytest.mark.slow
def test_a_log_that_is_in_use_is_told(tmp_path: Path, plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresholdout.ledger.encryption.TIMEOUT", 0.2)
    with closing(sqlite3.connect(plain, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM guards").fetchall()
        with pytest.raises(LedgerUnusable, match=r"(still holds|locked).*"):
            encrypt(plain, key=KEY)
    encrypt(plain, key=KEY)
    assert SECRET.encode() not in raw(tmp_path)
    assert_whole(plain, KEY)


# Opening


def test_a_encrypted_ledger_opens_with_its_key_only(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()
    with pytest.raises(
        LedgerEncrypted, match=r"Its secrets are encrypted. Pass its key as key= or key_file=, or set THRESH"
    ):
        SQLLedger(file)
    other = new_key()
    with pytest.raises(LedgerEncrypted, match=r"encrypted with another key than the one from key\.") as caught:
        SQLLedger(file, key=other)
    assert other not in str(caught.value)
    monkeypatch.setenv(KEY_VARIABLE, other)
    with pytest.raises(LedgerEncrypted, match=rf"another key than the one from {KEY_VARIABLE}\."):
        open_ledger(file)
    assert file.read_bytes() == before
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert_whole(file, KEY)
    with open_ledger(file) as ledger:
        assert ledger.encrypted
    key_file = tmp_path / "guard.key"
    make_key_file(key_file)
    with open_ledger(tmp_path / "new.db", key_file=key_file) as ledger:
        ledger.create(GUARD, {}, FIRST)
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(key_file))
    with open_ledger(tmp_path / "new.db") as ledger:
        assert ledger.state(GUARD) == FIRST


def test_no_key_is_ignored(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plain.read_bytes()
    with pytest.raises(LedgerMismatch, match=r"not encrypted, but a key was passed. Run `thresholdout ledger encrypt`"):
        SQLLedger(plain, key=KEY)
    assert plain.read_bytes() == before
    for where in (None, MemoryLedger()):
        with pytest.raises(InputError, match="a key beside"):
            open_ledger(where, key=KEY)
    with pytest.raises(InputError, match=r"key must be .*; got a text of 3 characters"):
        open_ledger(tmp_path / "new.db", key="abc")
    assert not (tmp_path / "new.db").exists()
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.warns(
        UnencryptedLedgerWarning, match=f"plain.db keeps its secrets in plain text, although {KEY_VARIABLE}"
    ):
        SQLLedger(plain).close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with open_ledger(plain) as ledger:
            assert not ledger.encrypted
            assert_consistent(ledger)
    assert [warning.filename for warning in caught] == [__file__]


def test_an_empty_ledger_is_new(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    SQLLedger(file).close()
    with SQLLedger(file) as earlier, SQLLedger(file, key=KEY) as ledger:
        ledger.create(GUARD, {}, FIRST, {"labels": LABELS})
        with pytest.raises(LedgerEncrypted, match="was encrypted while it was open here"):
            earlier.state(GUARD)
        with pytest.raises(LedgerEncrypted, match="Its key was rotated while it was open here"):
            earlier.create(OTHER, {}, FIRST)
        assert ledger.guards() == [GUARD]
    with pytest.raises(LedgerEncrypted):
        SQLLedger(file)


def test_texts_that_look_encrypted_stay_what_they_are(tmp_path: Path) -> None:
    state = "encrypted:1:x"
    with SQLLedger(tmp_path / "guard.db") as ledger:
        ledger.create(GUARD, {}, state, {"a": "plain:x", "b": "plain:encrypted:1:x"})
        assert ledger.state(GUARD) == state
        assert ledger.document(GUARD, "a") == "plain:x"
        assert ledger.document(GUARD, "b") == "plain:encrypted:1:x"
    encrypt(tmp_path / "guard.db", key=KEY)
    with SQLLedger(tmp_path / "guard.db", key=KEY) as ledger:
        assert ledger.state(GUARD) == state
        assert ledger.document(GUARD, "b") == "plain:encrypted:1:x"


# What somebody could do who may write the file


def refused(file: Path, use: Callable[[Ledger], object], words: str = "cannot be decrypted") -> None:
    with SQLLedger(file, key=KEY) as ledger:
        with pytest.raises(LedgerDamaged, match=words) as caught:
            use(ledger)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def ask(ledger: Ledger) -> object:
    mechanism = Mechanism()
    try:
        return ledger.ask(GUARD, None, 0.5, "accuracy", mechanism)
    finally:
        assert mechanism.states == []


def test_encrypted_values_can_not_be_swapped(file: Path) -> None:
    change(file, "UPDATE guards SET state = (SELECT state FROM guards g WHERE g.identity = ?)", OTHER)
    refused(file, ask)
    refused(file, lambda ledger: ledger.state(GUARD))
    with SQLLedger(file, key=KEY) as ledger:
        assert_consistent(ledger, OTHER)
    change(file, "UPDATE documents SET text = (SELECT text FROM documents d WHERE d.name = 'more' AND d.guard = 1)")
    refused(file, lambda ledger: ledger.document(GUARD, "labels"), "Document 'labels' of guard")
    refused(file, lambda ledger: ledger.document(OTHER, "more"))
    with SQLLedger(file, key=KEY) as ledger:
        assert ledger.document(GUARD, "more") == SECRET


def test_an_old_state_can_not_be_put_back(file: Path) -> None:
    ((old,),) = get(file, "SELECT state FROM guards WHERE id = 1")
    with SQLLedger(file, key=KEY) as ledger:
        ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())
    change(file, "UPDATE guards SET state = ? WHERE id = 1", old)
    refused(file, ask)
    change(file, "UPDATE guards SET asked = 3 WHERE id = 1")  # the checkpoint still tells
    refused(file, ask)


def test_a_history_that_was_written_anew_does_not_fit_the_state(file: Path) -> None:
    with SQLLedger(file, key=KEY) as ledger:
        entries = ledger.entries(GUARD)
        with SQLLedger(file.with_name("forged.db"), key=KEY) as forged:
            changed = [replace(entry, name="forged") if entry.query == 2 else entry for entry in entries]
            forged.restore(GUARD, {}, FIRST, {}, changed)
            checkpoint = forged.checkpoint(GUARD)
    change(file, "UPDATE guards SET checkpoint = ? WHERE id = 1", checkpoint)
    refused(file, ask)


@pytest.mark.slow
@pytest.mark.parametrize("value", ["", "plain text", "plain:x", "encrypted:1:", "encrypted:1:AAAA", "encrypted:2:AAAA"])
def test_what_is_not_encrypted_does_not_open_in_an_encrypted_ledger(file: Path, value: str) -> None:
    change(file, "UPDATE guards SET state = ?", value)
    change(file, "UPDATE documents SET text = ?", value)
    refused(file, ask)
    refused(file, lambda ledger: ledger.document(GUARD, "labels"))


def test_a_damaged_guard_harms_no_other(file: Path) -> None:
    change(file, "UPDATE guards SET state = 'x' WHERE identity = ?", OTHER)
    with SQLLedger(file, key=KEY) as ledger:
        assert ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())[1]
        ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())
        assert_consistent(ledger)


def test_taking_the_encryption_away_opens_nothing(file: Path) -> None:
    change(file, "DELETE FROM settings WHERE name = 'encryption'")
    with SQLLedger(file) as ledger:
        for use in (ask, lambda ledger: ledger.state(GUARD), lambda ledger: ledger.document(GUARD, "labels")):
            with pytest.raises(LedgerEncrypted):
                use(ledger)


# Keys that change


def test_changing_the_key(file: Path, tmp_path: Path) -> None:
    old_values = [value for (value,) in get(file, "SELECT state FROM guards UNION ALL SELECT text FROM documents")]
    new = new_key()
    rotate_key(file, new_key=new, key=KEY)
    assert_whole(file, new)
    with pytest.raises(LedgerEncrypted):
        SQLLedger(file, key=KEY)
    assert len(old_values) == 6
    assert not any(value.encode() in raw(tmp_path) for value in old_values)
    rotate_key(file, new_key=new, key=KEY)  # as after an interruption: it is done already
    assert_whole(file, new)


def test_keys_that_can_not_be_changed(file: Path, plain: Path) -> None:
    before = file.read_bytes(), plain.read_bytes()
    with pytest.raises(LedgerEncrypted, match=r"another key than the one from key\."):
        rotate_key(file, new_key=new_key(), key=new_key())
    with pytest.raises(LedgerEncrypted, match="Its secrets are encrypted"):
        rotate_key(file, new_key=new_key())
    with pytest.raises(InputError, match=r"new_key must be .*; got none"):
        rotate_key(file, key=KEY)
    with pytest.raises(InputError, match=r"new_key must be .*; got a key beside a new_key_file"):
        rotate_key(file, new_key=KEY, new_key_file="x", key=KEY)
    with pytest.raises(LedgerMismatch, match="Run `thresholdout ledger encrypt` with the new key"):
        rotate_key(plain, new_key=KEY)
    with pytest.raises(LedgerEncrypted, match=r"another key than the one from key\."):
        encrypt(file, key=new_key())
    with pytest.raises(
        InputError, match=r"key must be a key; got none\. Make one with `thresholdout ledger new-key FILE`"
    ):
        encrypt(plain)
    for operation in (encrypt, rotate_key):
        with pytest.raises(LedgerUnusable, match="does not exist"):
            operation(file.with_name("none.db"), **({"key": KEY} if operation is encrypt else {"new_key": KEY}))
    assert (file.read_bytes(), plain.read_bytes()) == before


def test_who_has_the_ledger_open_meanwhile_stores_nothing(file: Path, plain: Path) -> None:
    uses: list[Callable[[Ledger], object]] = [
        ask,
        lambda ledger: ledger.state(GUARD),
        lambda ledger: ledger.document(GUARD, "labels"),
        lambda ledger: ledger.put_document(GUARD, "third", "text"),
        lambda ledger: ledger.create("third", {}, FIRST),
    ]
    for where, old, new in ((plain, None, KEY), (file, KEY, new_key())):
        with SQLLedger(where, key=old) as ledger:
            ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
            if old is None:
                encrypt(where, key=new)
            else:
                rotate_key(where, new_key=new, key=old)
            for use in uses:
                with pytest.raises((LedgerEncrypted, LedgerDamaged), match=r"[Oo]pen it again"):
                    use(ledger)
        assert_whole(where, new)


def test_an_interrupted_change_changes_nothing(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break off after each of the encryptions; the ledger is encrypted as a whole or not at all."""
    from thresholdout.ledger.cipher import Cipher

    whole = Cipher.encrypt
    last = count = 0

    def breaking(self: Cipher, text: str, *about: str) -> str:
        nonlocal count
        count += 1
        if count > last:
            raise KeyboardInterrupt
        return whole(self, text, *about)

    for last in range(20):  # noqa: B007 - `breaking` uses it
        count = 0

        monkeypatch.setattr(Cipher, "encrypt", breaking)
        with suppress(KeyboardInterrupt):
            encrypt(plain, key=KEY)
            break
        monkeypatch.setattr(Cipher, "encrypt", whole)
        assert_whole(plain, None)
    monkeypatch.setattr(Cipher, "encrypt", whole)
    assert last == 8  # two states, four documents, and the setting for its two statements
    assert_whole(plain, KEY)


# What shows


def test_nothing_shows_a_key_or_a_secret(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with SQLLedger(file, key=KEY) as ledger:
        ledger.ask(GUARD, None, 0.5, "accuracy", Mechanism())
        shown = [repr(ledger), str(vars(ledger)), *map(str, ledger.entries(GUARD))]
        shown += [repr(value) for value in vars(ledger).values()]
        shown += [repr(getattr(ledger._encryption, name)) for name in ledger._encryption.__slots__]
        with pytest.raises(LedgerError) as caught:
            ledger.state("none")
        shown.append(str(caught.value))
    for text in (*shown, caplog.text):
        assert KEY not in text
        assert SECRET not in text
