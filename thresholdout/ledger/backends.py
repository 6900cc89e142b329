"""Opening of ledgers in memory, in files and in databases."""

from __future__ import annotations

import os

from thresholdout.errors import InputError, InputTypeError
from thresholdout.ledger.contract import Ledger
from thresholdout.ledger.memory import MemoryLedger

__all__ = ["open_ledger"]


def open_ledger(
    where: str | os.PathLike[str] | Ledger | None,
    *,
    must_exist: bool = False,
    key: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Open a ledger, or create one.

    Parameters
    ----------
    where : str, path, Ledger or None
        A file, or an address such as ``"sqlite:///guard.db"`` or ``"postgresql://user@host/database"``; None for a new
        ledger in memory. A ledger is returned as it is.
    must_exist : bool, default=False
        Refuse to create a new file.
    key, key_file : optional
        Key of an encrypted ledger, or a file with the key; see `SQLLedger`. The default is the environment's.

    Returns
    -------
    Ledger
        A `MemoryLedger`, a `SQLLedger`, or the given one.

    Raises
    ------
    InputError
        If the address is that of another kind of database.
    LedgerEncrypted, LedgerMismatch
        If it is encrypted and the key is missing or a different one; or if a key is given and it is not encrypted.
    LedgerUnusable
        If the file is no ledger, cannot be read and written, or is missing and must exist.

    Examples
    --------
    >>> open_ledger(None)
    MemoryLedger('memory')
    """
    if (key is not None or key_file is not None) and (where is None or isinstance(where, Ledger)):
        seen = "a key beside " + ("no file" if where is None else "a Ledger that is open")
        raise InputError("key", seen, "None without the file or address of a ledger")
    if isinstance(where, Ledger):
        return where
    if where is None:
        if must_exist:
            raise InputError("ledger", None, "the file of an existing ledger")
        return MemoryLedger()
    if not isinstance(where, str | os.PathLike):
        raise InputTypeError("ledger", f"a {type(where).__name__}", "a path, a Ledger, or None for one in memory")
    from thresholdout.ledger.sql import SQLLedger

    return SQLLedger(where, must_exist=must_exist, key=key, key_file=key_file)
