"""From the tables of an earlier version to those of this one.

A migration is numbered by the version that it starts from, and only ever adds to this list. It runs inside the
transaction that opens the ledger, so that a ledger has the tables of one version or the other, and no answer
changes. A program that knew the earlier version only, and has the file open meanwhile, can charge nothing
afterwards: it stores entries without a digest, and the tables refuse them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

from thresholdout.ledger.chain import Chain, first_digest
from thresholdout.ledger.entry import Entry
from thresholdout.ledger.schema import statements

__all__ = ["migrate"]

_FIELDS: Final = attrgetter(*Entry.__slots__)


def migrate(cursor: sqlite3.Cursor, version: int) -> None:
    """Give a file's tables the version of this program.

    Parameters
    ----------
    cursor : sqlite3.Cursor
        Of a transaction that has the file for itself.
    version : int
        The version that its tables have, at least 1.
    """
    for number in range(version, max(_MIGRATIONS) + 1):
        _MIGRATIONS[number](cursor)


def _chain_histories(cursor: sqlite3.Cursor) -> None:
    """Version 1 had no digests: entries get theirs, and guards the number and the digest of their last entry."""
    for table in ("documents", "entries", "guards"):
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    new = statements("sqlite")
    for statement in new.create:
        cursor.execute(statement)
    guards = cursor.execute("SELECT id, fingerprint, state, parameters FROM guards_1 ORDER BY id").fetchall()
    for guard_id, guard, state, parameters in guards:
        head = first_digest(guard, parameters)
        cursor.execute(
            "INSERT INTO guards (id, fingerprint, state, parameters, asked, head) VALUES (?, ?, ?, ?, 0, ?)",
            (guard_id, guard, state, parameters, head),
        )
        rows = cursor.connection.execute(
            'SELECT "query", "key", name, train, value, half_width, source, remaining, lower, upper '
            'FROM entries_1 WHERE guard = ? ORDER BY "query"',
            (guard_id,),
        )
        chain = Chain(guard, head, (Entry(*row) for row in rows))
        cursor.executemany(new.add_entry, ((guard_id, *_FIELDS(entry), digest) for entry, digest in chain))
        cursor.execute(new.set_state, (state, chain.asked, chain.head, guard_id))
    cursor.execute("INSERT INTO documents (guard, name, text) SELECT guard, name, text FROM documents_1")
    for table in ("documents", "entries", "guards"):  # whatever refers to another table goes before it
        cursor.execute(f"DROP TABLE {table}_1")


_MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Cursor], None]]] = {1: _chain_histories}
