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
    """Open a ledger, the storage of guards and their answers, or create a new one.

    A guard answers queries about a holdout and tracks an error budget. Its ledger stores this budget and all
    answers, so that a restarted program cannot spend the budget twice. Use a file on one machine, a PostgreSQL
    server for several machines, and memory for simulations and tests.

    Parameters
    ----------
    where : str, path, Ledger or None
        Place of the ledger: a file, or an address such as ``"sqlite:///guard.db"`` or
        ``"postgresql://user@host/database"``. None makes a new ledger in memory. A ledger is returned as it is.
    must_exist : bool, default False
        Whether a missing file is an error. If False, it is created.
    key : str, optional
        Key of an encrypted ledger, as made by `new_key`. A new ledger with a key is encrypted.
    key_file : str or path, optional
        File with the key, as made by `make_key_file`. If neither is given, the environment variables
        ``THRESHOLDOUT_KEY`` and ``THRESHOLDOUT_KEY_FILE`` are used.

    Returns
    -------
    Ledger
        A `MemoryLedger`, a `SQLLedger`, or the given ledger.

    Raises
    ------
    InputError
        If the address belongs to an unsupported kind of database.
    LedgerEncrypted, LedgerMismatch
        If the ledger is encrypted and the key is missing or a different one, or if a key is given and the ledger is
        not encrypted.
    LedgerUnusable
        If the file is not a ledger, cannot be read and written, or is missing although it must exist.

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
