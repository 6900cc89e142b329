"""Encryption of a ledger's secrets in its tables.

In an encrypted ledger every secret is encrypted for its place: a document for its guard and name, a state for its
guard, the number of queries asked and the checkpoint of the history. So a value that is moved, or put back from an
earlier time, cannot be decrypted, nor can a state beside a changed history. A ledger that is put back as a whole, with
its history, is not detected: keep the checkpoint elsewhere, and `verify` it.

A ledger on a server is always encrypted. A file without a key keeps its secrets in plain text. A plain text that looks
encrypted gets a prefix, so that a process which has the ledger open while another one encrypts it does not take
ciphertext for a secret.
"""

from __future__ import annotations

import hmac
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from thresholdout.errors import (
    InputError,
    LedgerDamaged,
    LedgerEncrypted,
    LedgerMismatch,
    LedgerUnusable,
    UnencryptedLedgerWarning,
)
from thresholdout.ledger.cipher import Cipher, DecryptionError, Key, is_encrypted

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor, Database

__all__ = [
    "RECEIPT_KEYS",
    "SECRET",
    "SECRETS",
    "SETTING",
    "TIMEOUT",
    "Encryption",
    "check_encryption",
    "encrypt",
    "open_encryption",
    "rotate_key",
]

SETTING: Final = "encryption"
"""Setting of an encrypted ledger: a known text, encrypted with its key, which tells a wrong key."""

SECRET: Final = "secret"
"""Setting with a ledger's own secret, which keys the digests of its guards' records."""

RECEIPT_KEYS: Final = "receipt_keys"
"""Setting with the keys that sign receipts; see `thresholdout.service.receipts`."""

SECRETS: Final = (SECRET, RECEIPT_KEYS)
"""Settings that are encrypted."""

TIMEOUT: Final = 30.0
"""Seconds to wait for other processes, as in `SQLLedger`."""

_KNOWN: Final = "thresholdout"
_PLAIN: Final = "plain:"
_WANTED: Final = "Pass its key as key= or key_file=, or set THRESHOLDOUT_KEY or THRESHOLDOUT_KEY_FILE."


class Encryption:
    """Encrypts and decrypts a ledger's secrets, or passes them through."""

    __slots__ = ("_cipher", "_location")

    def __init__(self, location: str, cipher: Cipher | None) -> None:
        self._location = location
        self._cipher = cipher

    @property
    def is_on(self) -> bool:
        """Whether the ledger is encrypted."""
        return self._cipher is not None

    def setting(self) -> str:
        """Return the value of `SETTING` for this key."""
        return self.put(_KNOWN, SETTING)

    def fits(self, setting: str | None) -> bool:
        """Whether a ledger with this value of `SETTING`, or none, is encrypted with this key, or not at all."""
        if self._cipher is None or setting is None:
            return self._cipher is None and setting is None
        try:
            return self._cipher.decrypt(setting, SETTING) == _KNOWN
        except DecryptionError:
            return False

    def put(self, text: str, *about: str) -> str:
        """Return a secret in its stored form."""
        if self._cipher is not None:
            return self._cipher.encrypt(text, *about)
        return _PLAIN + text if is_encrypted(text) or text.startswith(_PLAIN) else text

    def get(self, stored: str, *about: str) -> str:
        """Return a secret from its stored form."""
        if self._cipher is None:
            if is_encrypted(stored):
                raise LedgerEncrypted(
                    self._location, f"It was encrypted while it was open here. Open it again. {_WANTED}"
                )
            return stored.removeprefix(_PLAIN)
        with suppress(DecryptionError):
            return self._cipher.decrypt(stored, *about)
        guard, kind, *rest = about
        what = f"Document {rest[0]!r}" if kind == "document" else "The state"
        what = f"{what} of guard {guard[:12]!r}..." if rest else "The ledger's secret"
        raise LedgerDamaged(
            self._location,
            None,
            f"{what} cannot be decrypted. If the key was rotated while the ledger was open here, open it again. "
            "Otherwise the ledger or a part of it was changed, or restored from an earlier time: do not use the "
            "holdout again.",
        )

    def __repr__(self) -> str:
        return f"<Encryption: {'on' if self.is_on else 'off'}>"


def open_encryption(database: Database, key: Key | None) -> Encryption:
    """Return the encryption of a ledger that is being opened; an empty one is encrypted with the key."""
    location = database.location
    setting = _kept(database)
    if setting is None and key is not None:
        setting = _encrypt_if_empty(database, key)
    if setting is not None:
        return _fitting(location, setting, key)
    if database.on_server:
        raise LedgerDamaged(
            location,
            None,
            "It has guards but no trace of its key, unlike every ledger on a server. So it was changed: do not use its "
            "holdouts again.",
        )
    if key is not None and key.given:
        raise LedgerMismatch(
            location,
            "It is not encrypted, but a key was passed. Run `thresholdout ledger encrypt` first, or pass no key.",
        )
    if key is not None:
        warnings.warn(
            f"Ledger {location} keeps its secrets in plain text, although {key.origin} is set. "
            "Run `thresholdout ledger encrypt` to encrypt it.",
            UnencryptedLedgerWarning,
            stacklevel=4,
        )
    return Encryption(location, None)


def check_encryption(database: Database, cursor: Cursor, encryption: Encryption) -> None:
    """Refuse to store new secrets in a ledger whose encryption was changed while it was open here.

    Only statements that read nothing need this, since a secret of another key cannot be decrypted. It comes after the
    new rows in their transaction, which then waits for a running encryption and sees its result.
    """
    if not encryption.fits(_setting(database, cursor)):
        raise LedgerEncrypted(
            database.location, f"Its key was rotated while it was open here. Open it again. {_WANTED}"
        )


def keyed_digest(secret: str, content: str) -> str:
    """Return the digest by which a ledger finds a guard: 64 hexadecimal digits."""
    return hmac.new(bytes.fromhex(secret), content.encode(), "sha256").hexdigest()


def secret_of(database: Database, encryption: Encryption) -> str:
    """Return a ledger's secret, 256 random bits in hexadecimal digits; it is made on first use."""
    statements = database.statements
    rows = database.read(statements.setting, (SECRET,))
    if not rows:

        def put(cursor: Cursor) -> None:
            cursor.execute(statements.put_setting, (SECRET, encryption.put(secrets.token_hex(32), "setting", SECRET)))
            check_encryption(database, cursor, encryption)

        database.transact(put)
        rows = database.read(statements.setting, (SECRET,))  # another process may have stored one meanwhile
    return encryption.get(str(rows[0][0]), "setting", SECRET)


def encrypt(
    where: str | os.PathLike[str], *, key: str | None = None, key_file: str | os.PathLike[str] | None = None
) -> str:
    """Encrypt the secrets of a ledger that stores them in plain text, and remove the plain text.

    The secrets are the states and documents of guards, such as the noisy threshold and the labels of a holdout. Use
    `rotate_key` for a ledger that is already encrypted with another key.

    Parameters
    ----------
    where : str or path
        File or address of the ledger, which must exist.
    key : str, optional
        Key to encrypt with, as made by `new_key`.
    key_file : str or path, optional
        File with the key, as made by `make_key_file`. If neither is given, the environment variables
        ``THRESHOLDOUT_KEY`` and ``THRESHOLDOUT_KEY_FILE`` are used.

    Returns
    -------
    str
        Location of the ledger, for messages.

    Raises
    ------
    InputError
        If there is no key.
    LedgerEncrypted
        If the ledger is already encrypted with another key.
    LedgerUnusable
        If the ledger cannot be used, or another process keeps its log from being emptied. In the second case the
        secrets are encrypted, but the plain text remains in the log until this function is called again.

    Notes
    -----
    All secrets are encrypted in one transaction. Then the tables are rewritten, so that no page of the file and no
    part of its log holds the plain text. Copies, backups, a server's archived log, and the file's former places on a
    disk are out of reach. On an encrypted ledger, only the second step is done. A process that has the ledger open
    meanwhile is refused from then on, and has to open it again with the key.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import new_key, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> open_ledger(file).close()
    >>> key = new_key()
    >>> location = encrypt(file, key=key)
    >>> with open_ledger(file, key=key) as ledger:
    ...     print(ledger.encrypted)
    True
    >>> folder.cleanup()
    """
    found = Key.find(key, key_file)
    if found is None:
        raise InputError(
            "key", "none", "a key", "Make one with `thresholdout ledger new-key FILE` and pass it as key_file=FILE."
        )
    with _database(where, found) as database:
        setting = _kept(database)
        if database.on_server:
            open_encryption(database, found)  # a server's ledger is encrypted from the start
        elif setting is None:
            _rewrite(database, Encryption(database.location, None), Encryption(database.location, found.cipher()))
        else:
            _fitting(database.location, setting, found)
        _forget(database)
        return database.location


def rotate_key(
    where: str | os.PathLike[str],
    *,
    new_key: str | None = None,
    new_key_file: str | os.PathLike[str] | None = None,
    key: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> str:
    """Replace the key of an encrypted ledger, and encrypt its secrets with the new key.

    Parameters
    ----------
    where : str or path
        File or address of the ledger, which must exist.
    new_key : str, optional
        New key, as made by `new_key`. Pass either `new_key` or `new_key_file`.
    new_key_file : str or path, optional
        File with the new key.
    key : str, optional
        Present key.
    key_file : str or path, optional
        File with the present key. If neither is given, the environment variables ``THRESHOLDOUT_KEY`` and
        ``THRESHOLDOUT_KEY_FILE`` are used.

    Returns
    -------
    str
        Location of the ledger, for messages.

    Raises
    ------
    InputError
        If a key is missing.
    LedgerMismatch
        If the ledger is not encrypted.
    LedgerEncrypted
        If the present key is a different one.

    Notes
    -----
    All secrets are encrypted in one transaction, and nothing that was encrypted with the old key remains in the file.
    After an interruption, repeat the same call.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresholdout.ledger import new_key, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> old, new = new_key(), new_key()
    >>> open_ledger(file, key=old).close()
    >>> location = rotate_key(file, new_key=new, key=old)
    >>> with open_ledger(file, key=new) as ledger:
    ...     print(ledger.encrypted)
    True
    >>> folder.cleanup()
    """
    if (new_key is None) == (new_key_file is None):
        raise InputError(
            "new_key",
            "none" if new_key is None else "a key beside a new_key_file",
            "a key, or None beside new_key_file=",
        )
    new, old = Key.find(new_key, new_key_file), Key.find(key, key_file)
    with _database(where, old) as database:
        setting = _kept(database)
        if setting is None:
            raise LedgerMismatch(
                database.location, "It is not encrypted. Run `thresholdout ledger encrypt` with the new key."
            )
        assert new is not None
        replacement = Encryption(database.location, new.cipher())
        if not replacement.fits(setting):
            _rewrite(database, _fitting(database.location, setting, old), replacement)
        _forget(database)
        return database.location


def _fitting(location: str, setting: str, key: Key | None) -> Encryption:
    """Return the encryption of an encrypted ledger; refuse a missing or wrong key."""
    if key is None:
        raise LedgerEncrypted(location, f"Its secrets are encrypted. {_WANTED}")
    found = Encryption(location, key.cipher())
    if not found.fits(setting):
        raise LedgerEncrypted(
            location, f"Its secrets are encrypted with another key than the one from {key.origin}. {_WANTED}"
        )
    return found


def _encrypt_if_empty(database: Database, key: Key) -> str | None:
    """Encrypt a ledger without guards, and return its value of `SETTING`."""
    statements = database.statements
    if database.read(statements.guards):
        return None
    made = Encryption(database.location, key.cipher())

    def put(cursor: Cursor) -> str | None:
        for statement in statements.lock_secrets:
            cursor.execute(statement)
        if cursor.execute(statements.guards).fetchone() is None:
            cursor.execute(statements.put_setting, (SETTING, made.setting()))
        return _setting(database, cursor)  # another process may have stored one meanwhile

    return database.transact(put)


def _kept(database: Database) -> str | None:
    rows = database.read(database.statements.setting, (SETTING,))
    return str(rows[0][0]) if rows else None


def _setting(database: Database, cursor: Cursor) -> str | None:
    row = cursor.execute(database.statements.setting, (SETTING,)).fetchone()
    return None if row is None else str(row[0])


@contextmanager
def _database(where: str | os.PathLike[str], key: Key | None) -> Iterator[Database]:
    from thresholdout.ledger.address import connect

    database = connect(where, must_exist=True, timeout=TIMEOUT, encrypted=key is not None)
    try:
        yield database
    finally:
        database.close()


def _rewrite(database: Database, old: Encryption, new: Encryption) -> None:
    """Encrypt all secrets of a ledger again, in one transaction."""
    statements = database.statements

    def rewrite(cursor: Cursor) -> None:
        for statement in (*statements.lock_secrets, statements.allow_rewriting):
            cursor.execute(statement)
        check_encryption(database, cursor, old)
        for (guard,) in cursor.execute(statements.guards).fetchall():
            guard_id, state, _, asked, checkpoint, _ = cursor.execute(statements.lock_guard, (guard,)).fetchone()
            about = (guard, "state", str(asked), checkpoint)
            text = new.put(old.get(state, *about), *about)
            cursor.execute(statements.set_state, (text, asked, checkpoint, guard_id))
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
        cursor.execute(statements.refuse_rewriting)

    database.transact(rewrite)


def _forget(database: Database) -> None:
    """Remove the remains of earlier rows."""
    for statement in database.statements.forget:
        rows = database.read(statement)
        if "checkpoint" in statement and rows[0][0]:
            raise LedgerUnusable(
                database.location,
                "Its secrets are encrypted now, but its log still holds the plain text, because another process uses "
                "it. Stop that process, and run the same command again.",
            )
