"""What stands between a ledger's secrets and its tables.

In a sealed ledger every secret is sealed for its place: a document for its guard and name, a state for its guard, the
number of questions asked and the head of the history. So a value that is put elsewhere, or put back from an earlier
time, does not open; nor does a state beside a history that was changed. What this can't see is a ledger that is put
back as a whole, with its history: for that, keep the head elsewhere, and `verify` it.

A ledger on a server is always sealed. A file that is not keeps its secrets as they are. A text that would look sealed
gets a prefix there, so that a process which has the ledger open while another one seals it does not take what is sealed
for a secret.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from thresholdout.errors import (
    InputError,
    LedgerDamaged,
    LedgerMismatch,
    LedgerSealed,
    LedgerUnusable,
    UnsealedLedgerWarning,
)
from thresholdout.ledger.cipher import Cipher, Key, UnsealError, is_sealed

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor, Database

__all__ = [
    "RECEIPT_KEYS",
    "SECRET",
    "SECRETS",
    "SETTING",
    "TIMEOUT",
    "Seal",
    "check_seal",
    "open_seal",
    "rekey",
    "seal",
]

SETTING: Final = "seal"
"""Name of the setting that a sealed ledger has: a known text, sealed with its key."""

SECRET: Final = "secret"
"""Name of the setting that holds a ledger's own secret; see `thresholdout.ledger.recognition`."""

RECEIPT_KEYS: Final = "receipt_keys"
"""Name of the setting that holds the keys with which receipts are signed; see `thresholdout.service.receipts`."""

SECRETS: Final = (SECRET, RECEIPT_KEYS)
"""Settings that are sealed."""

TIMEOUT: Final = 30.0
"""Seconds to wait while others use the ledger."""

_KNOWN: Final = "thresholdout"
_PLAIN: Final = "plain:"
_WANTED: Final = "give its key as key= or key_file=, or set THRESHOLDOUT_KEY or THRESHOLDOUT_KEY_FILE"


class Seal:
    """Seals a ledger's secrets, or lets them through.

    Parameters
    ----------
    location : str
        The ledger, for messages.
    cipher : Cipher or None
        What the ledger is sealed with; None when it is not sealed.
    """

    __slots__ = ("_cipher", "_location")

    def __init__(self, location: str, cipher: Cipher | None) -> None:
        self._location = location
        self._cipher = cipher

    @property
    def is_on(self) -> bool:
        """Whether the ledger is sealed."""
        return self._cipher is not None

    def setting(self) -> str:
        """Return the value of `SETTING` for this key."""
        return self.put(_KNOWN, SETTING)

    def fits(self, setting: str | None) -> bool:
        """Whether a ledger with this value of `SETTING`, or none, is sealed in just this way."""
        if self._cipher is None or setting is None:
            return self._cipher is None and setting is None
        try:
            return self._cipher.unseal(setting, SETTING) == _KNOWN
        except UnsealError:
            return False

    def put(self, text: str, *about: str) -> str:
        """Return a secret as it is stored.

        Parameters
        ----------
        text : str
            The secret.
        *about : str
            What it belongs to: a guard's identity, and ``"document"`` with its name, or ``"state"`` with the number
            and the digest of the last entry; or ``"setting"`` with its name.
        """
        if self._cipher is not None:
            return self._cipher.seal(text, *about)
        return _PLAIN + text if is_sealed(text) or text.startswith(_PLAIN) else text

    def get(self, stored: str, *about: str) -> str:
        """Return a secret from what is stored.

        Raises
        ------
        LedgerDamaged
            It was changed, or put back from an earlier time.
        LedgerSealed
            The ledger was sealed while it was open here.
        """
        if self._cipher is None:
            if is_sealed(stored):
                raise LedgerSealed(
                    self._location, f"it was sealed while it was open here; open it again, and {_WANTED}"
                )
            return stored.removeprefix(_PLAIN)
        with suppress(UnsealError):
            return self._cipher.unseal(stored, *about)
        guard, kind, *rest = about
        what = f"document {rest[0]!r}" if kind == "document" else "the state"
        what = f"{what} of guard {guard[:12]!r}..." if rest else "its secret"
        raise LedgerDamaged(
            self._location,
            None,
            f"{what} does not open. If the key was changed while the ledger was open here, "
            "open it again. Otherwise it was changed, or put back from an earlier time, or the history beside it was: "
            "the holdout should not be used again",
        )

    def __repr__(self) -> str:
        return f"<Seal: {'on' if self.is_on else 'off'}>"


def open_seal(database: Database, key: Key | None) -> Seal:
    """Return the seal of a ledger that is being opened; a ledger that holds nothing yet is sealed with the key now.

    Parameters
    ----------
    database : Database
        Where the ledger is.
    key : Key or None
        The key that is there.

    Raises
    ------
    LedgerSealed
        The ledger is sealed, and there is no key or another one.
    LedgerMismatch
        The ledger is not sealed, and a key was given for it.
    LedgerDamaged
        It is on a server, where every ledger is sealed, and is not.

    Warns
    -----
    UnsealedLedgerWarning
        The ledger is not sealed, and the environment has a key. The variable is there for all ledgers of a process,
        and those that are older than the key go on: opening one shows nobody anything new, and refusing it would stop
        services at the moment when a key is introduced.
    """
    location = database.location
    with database.reading() as cursor:
        setting = _setting(database, cursor)
    if setting is None and key is not None:
        setting = _seal_if_empty(database, key)
    if setting is not None:
        return _fitting(location, setting, key)
    if database.on_server:
        raise LedgerDamaged(
            location,
            None,
            "it holds guards but not the mark of its key, which every ledger on a server has: it was changed, and its "
            "holdouts should not be used again",
        )
    if key is not None and key.given:
        raise LedgerMismatch(
            location, "it is not sealed, and a key was given; run `thresholdout seal` on it first, or give no key"
        )
    if key is not None:
        warnings.warn(
            f"ledger {location} keeps its secrets in plain text, though {key.origin} is set; "
            "run `thresholdout seal` on it",
            UnsealedLedgerWarning,
            stacklevel=4,
        )
    return Seal(location, None)


def check_seal(database: Database, cursor: Cursor, seal: Seal) -> None:
    """Refuse to store new secrets in a ledger whose key was changed, or that was sealed, while it was open here.

    Only what reads nothing needs this: a secret that was sealed otherwise does not open. It comes after the new rows in
    their transaction, which then waits for a sealing that is under way, and sees what it did.

    Parameters
    ----------
    database : Database
        Where the ledger is.
    cursor : Cursor
        Of the transaction.
    seal : Seal
        What the new secrets were sealed with.
    """
    if not seal.fits(_setting(database, cursor)):
        raise LedgerSealed(
            database.location, f"its key was changed while it was open here; open it again, and {_WANTED}"
        )


def seal(
    where: str | os.PathLike[str], *, key: str | None = None, key_file: str | os.PathLike[str] | None = None
) -> str:
    """Seal the secrets of a ledger that kept them in plain text, and leave no plain text behind.

    Parameters
    ----------
    where : str or path
        The ledger; it must exist.
    key, key_file
        The key, as for `open_ledger`; the environment's by default.

    Returns
    -------
    str
        The ledger's location, for messages.

    Raises
    ------
    InputError
        There is no key.
    LedgerSealed
        The ledger is sealed with another key.
    LedgerUnusable
        It can't be used, or another process keeps its log from being emptied: then the secrets are sealed, but the
        plain text is still in there until this is called again.

    Notes
    -----
    All secrets are sealed in one transaction, and then the tables are written anew, so that no page of the file and no
    part of its log holds the plain text. Copies, backups, a server's archived log, and the places on a disk where the
    file was before are out of reach. Calling it again on a sealed ledger only does the second part. Whoever has the
    ledger open meanwhile is refused from then on, and has to open it again with the key.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import new_key, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> open_ledger(file).close()
    >>> key = new_key()
    >>> location = seal(file, key=key)
    >>> with open_ledger(file, key=key) as ledger:
    ...     print(ledger.sealed)
    True
    >>> folder.cleanup()
    """
    found = Key.find(key, key_file)
    if found is None:
        raise InputError("key", "none", "a key; make one with `thresholdout key FILE` and give it as key_file=")
    with _database(where, found) as database:
        with database.reading() as cursor:
            setting = _setting(database, cursor)
        if database.on_server:
            open_seal(database, found)  # it was sealed from the start
        elif setting is None:
            _rewrite(database, Seal(database.location, None), Seal(database.location, found.cipher()))
        else:
            _fitting(database.location, setting, found)
        _forget(database)
        return database.location


def rekey(
    where: str | os.PathLike[str],
    *,
    new_key: str | None = None,
    new_key_file: str | os.PathLike[str] | None = None,
    key: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> str:
    """Seal a ledger's secrets with another key.

    Parameters
    ----------
    where : str or path
        The ledger; it must exist.
    new_key, new_key_file
        The key to seal with from now on; one of the two.
    key, key_file
        The present key, as for `open_ledger`; the environment's by default.

    Returns
    -------
    str
        The ledger's location, for messages.

    Raises
    ------
    InputError
        A key is missing.
    LedgerMismatch
        The ledger is not sealed.
    LedgerSealed
        The present key is another one.

    Notes
    -----
    As for `seal`, all is done in one transaction, and what was sealed with the old key is gone from the file. When it
    was interrupted, call it again in the same way.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import new_key, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> old, new = new_key(), new_key()
    >>> open_ledger(file, key=old).close()
    >>> location = rekey(file, new_key=new, key=old)
    >>> with open_ledger(file, key=new) as ledger:
    ...     print(ledger.sealed)
    True
    >>> folder.cleanup()
    """
    if (new_key is None) == (new_key_file is None):
        raise InputError("new_key", "none" if new_key is None else "a key beside a new_key_file", "one of the two")
    new, old = Key.find(new_key, new_key_file), Key.find(key, key_file)
    with _database(where, old) as database:
        with database.reading() as cursor:
            setting = _setting(database, cursor)
        if setting is None:
            raise LedgerMismatch(database.location, "it is not sealed; run `thresholdout seal` with the new key")
        assert new is not None
        sealed_anew = Seal(database.location, new.cipher())
        if not sealed_anew.fits(setting):
            _rewrite(database, _fitting(database.location, setting, old), sealed_anew)
        _forget(database)
        return database.location


def _fitting(location: str, setting: str, key: Key | None) -> Seal:
    """Return the seal of a ledger that is sealed, after checking that the key is the right one."""
    if key is None:
        raise LedgerSealed(location, f"its secrets are sealed; {_WANTED}")
    found = Seal(location, key.cipher())
    if not found.fits(setting):
        raise LedgerSealed(
            location, f"its secrets are sealed with another key than the one from {key.origin}; {_WANTED}"
        )
    return found


def _seal_if_empty(database: Database, key: Key) -> str | None:
    """Seal a ledger that holds no guard yet, and return its value of `SETTING`."""
    statements = database.statements
    with database.reading() as cursor:
        if cursor.execute(statements.guards).fetchone() is not None:
            return None
    made = Seal(database.location, key.cipher())
    with database.transaction() as cursor:
        for statement in statements.lock_secrets:
            cursor.execute(statement)
        if cursor.execute(statements.guards).fetchone() is None:
            cursor.execute(statements.put_setting, (SETTING, made.setting()))
        return _setting(database, cursor)  # another process may have put one there a moment earlier


def _setting(database: Database, cursor: Cursor) -> str | None:
    row = cursor.execute(database.statements.setting, (SETTING,)).fetchone()
    return None if row is None else str(row[0])


@contextmanager
def _database(where: str | os.PathLike[str], key: Key | None) -> Iterator[Database]:
    from thresholdout.ledger.address import connect

    database = connect(where, must_exist=True, timeout=TIMEOUT, sealed=key is not None)
    try:
        yield database
    finally:
        database.close()


def _rewrite(database: Database, old: Seal, new: Seal) -> None:
    """Seal all secrets of a ledger anew, in one transaction."""
    statements = database.statements
    with database.transaction() as cursor:
        for statement in (*statements.lock_secrets, *statements.allow_resealing):
            cursor.execute(statement)
        check_seal(database, cursor, old)
        for (guard,) in cursor.execute(statements.guards).fetchall():
            guard_id, state, _, asked, head, _ = cursor.execute(statements.lock_guard, (guard,)).fetchone()
            about = (guard, "state", str(asked), head)
            text = new.put(old.get(state, *about), *about)
            cursor.execute(statements.set_state, (text, asked, head, guard_id))
            for (name,) in cursor.execute(statements.documents, (guard,)).fetchall():
                (document,) = cursor.execute(statements.document, (guard_id, name)).fetchone()
                text = new.put(old.get(document, guard, "document", name), guard, "document", name)
                cursor.execute(statements.set_document, (text, guard_id, name))
        for name in SECRETS:
            row = cursor.execute(statements.setting, (name,)).fetchone()
            if row is not None:
                text = new.put(old.get(str(row[0]), "setting", name), "setting", name)
                cursor.execute(statements.set_setting, (text, name))
        cursor.execute(statements.put_setting, (SETTING, new.setting()))
        cursor.execute(statements.set_setting, (new.setting(), SETTING))
        for statement in statements.refuse_resealing:
            cursor.execute(statement)


def _forget(database: Database) -> None:
    """Leave nothing of what the rows held before."""
    for statement in database.statements.forget:
        with database.reading() as cursor:
            cursor.execute(statement)
            if "checkpoint" in statement and cursor.fetchone()[0]:
                raise LedgerUnusable(
                    database.location,
                    "its secrets are sealed now, but its log still holds what was there before, since another process "
                    "uses it; stop that, and run the same again",
                )
