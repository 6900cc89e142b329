"""Backup of a ledger's file while the ledger is in use.

A copy by the file system is no backup: the last answers are in the log beside the file, and a copy during a commit is
inconsistent. SQLite's own backup copies pages while others write, and starts again when they do; its result is the
state after a whole number of commits.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from thresholdout.errors import InputError, LedgerUnusable
from thresholdout.ledger.sql import SQLLedger

__all__ = ["back_up"]

_TIMEOUT: Final = 30.0  # seconds to wait for other processes, as in SQLLedger


def back_up(source: str | os.PathLike[str], file: str | os.PathLike[str]) -> dict[str, tuple[int, str]]:
    """Copy a ledger's file to a new one that only its owner can read; verify it, and return its guards' checkpoints.

    The copy is the ledger, with all its secrets and its budget: whoever asks it spends the budget a second time. A
    service whose witness knows of later answers refuses it.
    """
    target = Path(file)
    if "://" in os.fspath(source) and not os.fspath(source).startswith("sqlite:"):
        advice = "On a server, pg_dump copies the schema thresholdout at one moment."
        raise InputError("ledger", "a ledger on a server", "a SQLite file", advice)
    if os.path.lexists(target):
        raise InputError("file", f"{target}, which exists", "the name of a new file")
    with SQLLedger(source, must_exist=True) as ledger:
        location = Path(ledger.location)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        _copy(location, draft)
        with SQLLedger(draft, must_exist=True) as copy:
            found = {guard: (copy.verify(guard), copy.checkpoint(guard)) for guard in copy.guards()}
        _sync(draft)
        try:
            os.link(draft, target)  # unlike a rename, it never replaces a file
        except FileExistsError:
            raise InputError("file", f"{target}, which exists", "the name of a new file") from None
    except OSError as error:
        raise LedgerUnusable(str(target), f"The file cannot be written: {error.strerror}.") from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(f"{draft}{suffix}")
    _sync(target.parent)
    return found


def _copy(source: Path, draft: Path) -> None:
    """Copy all pages of a database at one moment."""
    reason = None
    try:
        address = f"file:{quote(str(source.absolute()))}?mode=ro"
        with (
            closing(sqlite3.connect(address, uri=True, timeout=_TIMEOUT)) as old,
            closing(sqlite3.connect(draft, timeout=_TIMEOUT)) as new,
        ):
            old.backup(new)  # in one step, so that writers cannot make it start again and again
    except sqlite3.Error as error:
        reason = f"The file cannot be copied ({error.sqlite_errorname})."
    if reason is not None:
        raise LedgerUnusable(str(source), reason)


def _sync(path: Path) -> None:
    """Wait until a file, or a new name in a folder, is on the disk."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
