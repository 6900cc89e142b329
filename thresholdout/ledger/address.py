"""Connect to the database of a ledger's file name or address."""

from __future__ import annotations

import os

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from thresholdout.errors import InputError, InputTypeError
from thresholdout.ledger.database import Database

__all__ = ["connect"]

_EXPECTED = "a file, or an address like sqlite:///guard.db or postgresql://user@host/database"
_WANTED = (
    "A key encrypts the secrets before they leave. Make one with `thresholdout ledger new-key guard.key`, or "
    "make_key_file('guard.key'), and set THRESHOLDOUT_KEY_FILE=guard.key, or call "
    "open_ledger(address, key_file='guard.key')."
)
_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")


def connect(where: str | os.PathLike[str], *, must_exist: bool, timeout: float, encrypted: bool) -> Database:
    """Open the database of a ledger, or create it."""
    path = os.fspath(where)
    if not isinstance(path, str):
        raise InputTypeError("ledger", f"a {type(path).__name__}", "a path as a string")
    if path.startswith(_POSTGRES):
        if not encrypted:
            raise InputError("key", "none, for a ledger on a server, which logs its input", "a key", _WANTED)
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
