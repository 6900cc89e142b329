"""A ledger in a database file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from operator import attrgetter
from typing import Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from thresholdout.errors import InputError, InputTypeError
from thresholdout.ledger import schema
from thresholdout.ledger.contract import (
    JSON,
    Compute,
    Ledger,
    check_creation,
    check_question,
    check_repeat,
    check_texts,
    fresh_key,
    parameters_text,
)
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.sqlite_file import SQLiteFile

__all__ = ["SQLLedger"]

_FIELDS: Final = attrgetter(*Entry.__slots__)


class SQLLedger(Ledger):
    """A ledger in an SQLite file, which survives crashes and which several processes can use at once.

    Parameters
    ----------
    where : str or path
        The file, or its address such as ``"sqlite:///guard.db"``. Made when missing, and then readable and
        writable by its owner only.
    must_exist : bool, default False
        Refuse to make a new file.
    timeout : float, default 30
        Seconds to wait while another process holds the file.

    Raises
    ------
    InputError
        An address of another kind of database.
    LedgerUnusable
        The file is not a ledger, others can read it, or it can't be read and written. It is left as it is.

    Notes
    -----
    SQLite with a write-ahead log, synchronised with the disk at each commit. A question is one transaction
    that has the file for itself from the start, so that no other process can answer from the same state.
    Beside the file stand ``-wal`` and ``-shm`` files while it is open; they belong to it, and must move with
    it. A file that is copied, or put back from an older copy, spends its budget again: nothing here can see
    that. The file is not encrypted; whoever reads it knows the noisy threshold and the documents.

    A process that is forked off may go on using the ledger. It must not be forked by the mechanism in the
    middle of a question.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "guard.db")
    >>> with SQLLedger(file) as ledger:
    ...     ledger.create("fingerprint", {"threshold": 0.04}, "state 0")
    >>> with SQLLedger(file, must_exist=True) as ledger:
    ...     ledger.parameters("fingerprint")
    {'threshold': 0.04}
    >>> folder.cleanup()
    """

    def __init__(self, where: str | os.PathLike[str], *, must_exist: bool = False, timeout: float = 30.0) -> None:
        self.location = _location(where)
        self._file = SQLiteFile(self.location, must_exist=must_exist, timeout=timeout)

    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> None:
        """Store a new guard, unless it is there already; see `Ledger.create`."""
        documents = dict(documents or {})
        check_creation(guard, state, documents.items())
        text = parameters_text(parameters)
        with self._file.transaction() as cursor:
            row = cursor.execute(schema.GUARD, (guard,)).fetchone()
            if row is not None:
                self._check_parameters(guard, json.loads(row[2]), parameters)
                return
            guard_id = cursor.execute(schema.ADD_GUARD, (guard, state, text)).lastrowid
            for name, document in documents.items():
                cursor.execute(schema.ADD_DOCUMENT, (guard_id, name, document))

    def ask(self, guard: str, key: str | None, train: float, name: str, compute: Compute) -> tuple[Entry, bool]:
        """Answer a question once, and store the answer before it leaves; see `Ledger.ask`."""
        check_question(key, train, name)
        with self._file.transaction() as cursor:
            row = cursor.execute(schema.LOOK_UP, (key, guard)).fetchone()
            if row is None:
                raise self._unknown(guard)
            guard_id, state, last, *fields = row
            if fields[0] is not None:
                stored = Entry(*fields)
                check_repeat(stored, train)
                return stored, True
            state, entry = compute(state)
            check_texts(state=state)
            entry = self._settled(entry, (last or 0) + 1, key or fresh_key(), train, name)
            cursor.execute(schema.SET_STATE, (state, guard_id))
            cursor.execute(schema.ADD_ENTRY, (guard_id, *_FIELDS(entry)))
        return entry, False

    def state(self, guard: str) -> str:
        """Return a guard's present state; see `Ledger.state`."""
        _, state, _ = self._find(guard)
        return state

    def parameters(self, guard: str) -> dict[str, JSON]:
        """Return what a guard was made with."""
        _, _, text = self._find(guard)
        parameters: dict[str, JSON] = json.loads(text)
        return parameters

    def entries(self, guard: str) -> list[Entry]:
        """Return a guard's history, in the order of its questions."""
        self._find(guard)
        with self._file.reading() as cursor:
            rows = cursor.execute(schema.ENTRIES, (guard,)).fetchall()
        return [Entry(*row) for row in rows]

    def guards(self) -> list[str]:
        """Return the guards' identities, in the order of their creation."""
        with self._file.reading() as cursor:
            return [guard for (guard,) in cursor.execute(schema.GUARDS).fetchall()]

    def put_document(self, guard: str, name: str, text: str) -> None:
        """Keep a text with a guard; see `Ledger.put_document`."""
        check_texts(name=name, text=text)
        with self._file.transaction() as cursor:
            row = cursor.execute(schema.GUARD, (guard,)).fetchone()
            if row is None:
                raise self._unknown(guard)
            stored = cursor.execute(schema.DOCUMENT, (row[0], name)).fetchone()
            if stored is None:
                cursor.execute(schema.ADD_DOCUMENT, (row[0], name, text))
            else:
                self._check_document(name, stored[0], text)

    def document(self, guard: str, name: str) -> str | None:
        """Return a text kept with a guard, or None; see `Ledger.document`."""
        guard_id, _, _ = self._find(guard)
        with self._file.reading() as cursor:
            row = cursor.execute(schema.DOCUMENT, (guard_id, name)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        """Close the file; see `Ledger.close`."""
        self._file.close()

    def _find(self, guard: str) -> tuple[int, str, str]:
        """Return a guard's number in the tables, its state and its parameters."""
        with self._file.reading() as cursor:
            rows: list[tuple[int, str, str]] = cursor.execute(schema.GUARD, (guard,)).fetchall()
        if not rows:
            raise self._unknown(guard)
        return rows[0]


def _location(where: str | os.PathLike[str]) -> str:
    """Return the path of a file from its path or address, never with a password in a message."""
    path = os.fspath(where)
    if not isinstance(path, str):
        raise InputTypeError("ledger", f"a {type(path).__name__}", "a path that is a string")
    expected = "a file, or an address like sqlite:///guard.db; only SQLite files are supported so far"
    if "://" in path:
        try:
            url = make_url(path)
        except ArgumentError:
            raise InputError("ledger", "an address that can't be read", expected) from None
        if url.drivername not in ("sqlite", "sqlite+pysqlite"):
            raise InputError("ledger", f"a {url.drivername} address", expected)
        if url.query:
            raise InputError("ledger", "an address with options", expected)
        path = url.database or ""
    if path in ("", ":memory:") or "\0" in path:
        raise InputError("ledger", repr(path), "the name of a file, or None for a ledger in memory")
    return path
