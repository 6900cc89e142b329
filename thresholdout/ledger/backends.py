"""Which ledger keeps a guard: one in memory, a file, or a database."""

from __future__ import annotations

import os

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from thresholdout.errors import InputError, InputTypeError
from thresholdout.ledger.contract import Ledger
from thresholdout.ledger.database import Database
from thresholdout.ledger.memory import MemoryLedger

__all__ = ["connect", "open_ledger"]


def open_ledger(
    where: str | os.PathLike[str] | Ledger | None,
    *,
    must_exist: bool = False,
    key: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> Ledger:
    """Open a ledger, or make one.

    Parameters
    ----------
    where : str, path, Ledger or None
        A file, or an address such as ``"sqlite:///guard.db"`` or ``"postgresql://user@host/database"``; None for a
        new ledger in memory; a ledger is returned as it is.
    must_exist : bool, default False
        Refuse to make a new file.
    key, key_file : optional
        Key of an encrypted ledger, or a file that holds it; see `SQLLedger`. The environment's by default.

    Returns
    -------
    Ledger
        `MemoryLedger`, `SQLLedger`, or the one given.

    Raises
    ------
    InputError
        An address of another kind of database.
    LedgerEncrypted, LedgerMismatch
        It is encrypted and the key is missing or another one; or a key was given, and it is not encrypted.
    LedgerUnusable
        The file is not a ledger, can't be read and written, or is missing and must exist.

    Examples
    --------
    >>> open_ledger(None)
    MemoryLedger('memory')
    """
    if (key is not None or key_file is not None) and (where is None or isinstance(where, Ledger)):
        seen = "a key beside " + ("no file" if where is None else "a Ledger that is open")
        raise InputError("key", seen, "a key for the ledger of a file or an address")
    if isinstance(where, Ledger):
        return where
    if where is None:
        if must_exist:
            raise InputError("ledger", None, "the file of a ledger that exists")
        return MemoryLedger()
    if not isinstance(where, str | os.PathLike):
        raise InputTypeError("ledger", f"a {type(where).__name__}", "a path, a Ledger, or None for one in memory")
    from thresholdout.ledger.sql import SQLLedger

    return SQLLedger(where, must_exist=must_exist, key=key, key_file=key_file)


_EXPECTED = "a file, or an address like sqlite:///guard.db or postgresql://user@host/database"
_WANTED = (
    "a key, to encrypt the secrets with before they leave: make one with `thresholdout ledger new-key guard.key`, or "
    "make_key_file('guard.key'), and set THRESHOLDOUT_KEY_FILE=guard.key, or call "
    "open_ledger(address, key_file='guard.key')"
)
_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")


def connect(where: str | os.PathLike[str], *, must_exist: bool, timeout: float, encrypted: bool) -> Database:
    """Open the database that a ledger is in, or make it."""
    path = os.fspath(where)
    if not isinstance(path, str):
        raise InputTypeError("ledger", f"a {type(path).__name__}", "a path that is a string")
    if path.startswith(_POSTGRES):
        if not encrypted:
            raise InputError("key", "none, for a ledger on a server, which writes what it is told into logs", _WANTED)
        from thresholdout.ledger.postgres import PostgresServer

        _, _, rest = path.partition("://")
        return PostgresServer(f"postgresql://{rest}", must_exist=must_exist, timeout=timeout)
    if "://" in path:
        try:
            url = make_url(path)
        except ArgumentError:
            raise InputError("ledger", "an address that can't be read", _EXPECTED) from None
        if url.drivername not in ("sqlite", "sqlite+pysqlite"):
            raise InputError("ledger", f"a {url.drivername} address", _EXPECTED)
        if url.query:
            raise InputError("ledger", "an address with options", _EXPECTED)
        path = url.database or ""
    if path in ("", ":memory:") or "\0" in path:
        raise InputError("ledger", repr(path), "the name of a file, or None for a ledger in memory")
    from thresholdout.ledger.sqlite_file import SQLiteFile

    return SQLiteFile(path, must_exist=must_exist, timeout=timeout)
