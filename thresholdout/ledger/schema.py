"""The tables of a ledger in a database, and the statements that use them.

The statements are written with SQLAlchemy Core, compiled once, and run by the database's driver without
SQLAlchemy in between. That is faster, and no logging level makes SQLAlchemy print a row that holds a state.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import ClauseElement

__all__ = [
    "ADD_DOCUMENT",
    "ADD_ENTRY",
    "ADD_GUARD",
    "APPLICATION_ID",
    "CREATE_TABLES",
    "DOCUMENT",
    "ENTRIES",
    "GUARD",
    "GUARDS",
    "LOOK_UP",
    "SET_STATE",
    "VERSION",
]

APPLICATION_ID: Final = 0x7468_6F75
"""Marks a database as a ledger: the letters "thou" in the file's header."""

VERSION: Final = 1
"""Version of the tables; a program refuses a ledger of a later version than it knows."""

_metadata = MetaData()

_guards = Table(
    "guards",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("parameters", Text, nullable=False),
)

_entries = Table(
    "entries",
    _metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("query", Integer, primary_key=True),
    Column("key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("train", Double, nullable=False),
    Column("value", Double, nullable=False),
    Column("half_width", Double, nullable=False),
    Column("source", Text, nullable=False),
    Column("remaining", Integer),
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
    UniqueConstraint("guard", "key"),
    sqlite_with_rowid=False,
)

_documents = Table(
    "documents",
    _metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

_entry_columns = list(_entries.c)[1:]
_earlier = _entries.alias()


def _compiled(statement: ClauseElement) -> str:
    """Return a statement's text, with a question mark for each parameter in the order of appearance."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="qmark")))


CREATE_TABLES: Final = tuple(_compiled(CreateTable(table)) for table in _metadata.sorted_tables)

GUARD: Final = _compiled(
    select(_guards.c.id, _guards.c.state, _guards.c.parameters).where(_guards.c.fingerprint == bindparam("guard"))
)
"""Parameter: fingerprint. Row: id, state, parameters."""

GUARDS: Final = _compiled(select(_guards.c.fingerprint).order_by(_guards.c.id))

ADD_GUARD: Final = _compiled(
    insert(_guards).values(fingerprint=bindparam("guard"), state=bindparam("state"), parameters=bindparam("parameters"))
)
"""Parameters: fingerprint, state, parameters."""

LOOK_UP: Final = _compiled(
    select(
        _guards.c.id,
        _guards.c.state,
        select(func.max(_earlier.c.query)).where(_earlier.c.guard == _guards.c.id).scalar_subquery(),
        *_entry_columns,
    )
    .select_from(
        _guards.outerjoin(_entries, and_(_entries.c.guard == _guards.c.id, _entries.c.key == bindparam("asked")))
    )
    .where(_guards.c.fingerprint == bindparam("owner"))
)
"""Parameters: key, fingerprint. Row: id, state, number of the last entry or None, the key's entry or Nones."""

SET_STATE: Final = _compiled(
    update(_guards).values(state=bindparam("new")).where(_guards.c.id == bindparam("guard_id"))
)
"""Parameters: state, id."""

ADD_ENTRY: Final = _compiled(insert(_entries))
"""Parameters: id, then an entry's fields in their order."""

ENTRIES: Final = _compiled(
    select(*_entry_columns)
    .select_from(_entries.join(_guards))
    .where(_guards.c.fingerprint == bindparam("owner"))
    .order_by(_entries.c.query)
)
"""Parameter: fingerprint. Rows: an entry's fields in their order."""

ADD_DOCUMENT: Final = _compiled(insert(_documents))
"""Parameters: id, name, text."""

DOCUMENT: Final = _compiled(
    select(_documents.c.text).where(
        _documents.c.guard == bindparam("guard_id"), _documents.c.name == bindparam("document")
    )
)
"""Parameters: id, name. Row: text."""
