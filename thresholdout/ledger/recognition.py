"""How a ledger in a database finds the guard of records that it has seen before.

What a guard is called says nothing about its records. Beside the name stands a digest of the records, made with a
secret of the ledger. Without the secret nobody can tell from the digest which records they are, not even
who knows all of them but one label; and the same records have another digest in another ledger.

The records' own identity is a secret document of the guard, `thresholdout.ledger.CONTENT`. A guard that moves takes it
along, and the ledger that it comes to makes a digest with its own secret. A digest that moved as it is could only be
found with the first ledger's secret, which then would serve in two places.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

from thresholdout.ledger.encryption import SECRET, check_encryption

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor, Database
    from thresholdout.ledger.encryption import Encryption

__all__ = ["keyed_digest", "secret_of"]


def keyed_digest(secret: str, content: str) -> str:
    """Return what a ledger finds a guard by: 64 hexadecimal digits.

    Parameters
    ----------
    secret : str
        The ledger's secret, in hexadecimal digits.
    content : str
        Which records it is for.

    Examples
    --------
    >>> keyed_digest("00", "abc") == keyed_digest("01", "abc")
    False
    """
    return hmac.new(bytes.fromhex(secret), content.encode(), "sha256").hexdigest()


def secret_of(database: Database, encryption: Encryption) -> str:
    """Return the secret of a ledger, 256 random bits in hexadecimal digits; made when it is first asked for.

    Parameters
    ----------
    database : Database
        Where the ledger is.
    encryption : Encryption
        What encrypts its secrets.

    Raises
    ------
    LedgerEncrypted, LedgerDamaged
        The secret does not open.
    """
    statements = database.statements
    rows = database.read(statements.setting, (SECRET,))
    if not rows:

        def put(cursor: Cursor) -> None:
            cursor.execute(statements.put_setting, (SECRET, encryption.put(secrets.token_hex(32), "setting", SECRET)))
            check_encryption(database, cursor, encryption)

        database.transact(put)
        rows = database.read(statements.setting, (SECRET,))  # another process may have been faster
    return encryption.get(str(rows[0][0]), "setting", SECRET)
