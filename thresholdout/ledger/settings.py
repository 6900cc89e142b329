"""What a ledger in a database keeps about itself, beside its guards: texts by name, encrypted where they are secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from thresholdout.ledger.encryption import SECRETS, check_encryption

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor
    from thresholdout.ledger.sql import SQLLedger

__all__ = ["change_setting", "read_setting"]


def read_setting(ledger: SQLLedger, name: str) -> str | None:
    """Return what a ledger keeps under a name, or None.

    Parameters
    ----------
    ledger : SQLLedger
        Where.
    name : str
        What it is called; those of `thresholdout.ledger.encryption.SECRETS` are encrypted with the ledger.
    """
    rows = ledger.database.read(ledger.database.statements.setting, (name,))
    return _opened(ledger, name, str(rows[0][0])) if rows else None


def change_setting(ledger: SQLLedger, name: str, change: Callable[[str | None], str]) -> str:
    """Replace what a ledger keeps under a name, in a transaction in which nobody else does; return the new text.

    Parameters
    ----------
    ledger : SQLLedger
        Where.
    name : str
        As for `read_setting`.
    change : callable
        From the text that is there, or None, to the one to keep. It must not use the ledger.

    Raises
    ------
    LedgerEncrypted, LedgerDamaged
        The text does not open, or the key was changed while the ledger was open here; nothing is changed.
    """
    database = ledger.database
    statements = database.statements

    def put(cursor: Cursor) -> str:
        for statement in statements.lock_secrets:
            cursor.execute(statement)
        row = cursor.execute(statements.setting, (name,)).fetchone()
        text = change(None if row is None else _opened(ledger, name, str(row[0])))
        stored = ledger._encryption.put(text, "setting", name) if name in SECRETS else text
        cursor.execute(statements.put_setting, (name, stored))
        cursor.execute(statements.set_setting, (stored, name))
        if name in SECRETS:
            check_encryption(database, cursor, ledger._encryption)
        return text

    return database.transact(put)


def _opened(ledger: SQLLedger, name: str, stored: str) -> str:
    return ledger._encryption.get(stored, "setting", name) if name in SECRETS else stored
