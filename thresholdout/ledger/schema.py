"""Tables of a ledger in a database, and the statements that use them.

SQLAlchemy Core writes the statements once for each dialect, and the database's driver runs them. With an engine, the
statements of a query take 310 µs instead of 56 in a file in memory, and a logging level could print a row with a state.

Triggers refuse changes of immutable rows. They protect against mistakes and other programs; anyone who may write the
database can remove them, which the chain of digests detects.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, Literal, cast

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import ClauseElement

from thresholdout.errors import LedgerUnusable

__all__ = ["APPLICATION_ID", "FORMAT", "REFUSALS", "DialectName", "Statements", "check_format", "statements"]

APPLICATION_ID: Final = 0x7468_6F6C
"""Marks a database as a ledger: the letters "thol" in an SQLite file's header."""

FORMAT: Final = 1
"""Format of the tables; a program refuses a ledger of another one."""

DialectName = Literal["sqlite", "postgresql"]

_metadata = MetaData()

_guards = Table(
    "guards",
    _metadata,
    Column("id", Integer, primary_key=True),
    Column("identity", Text, nullable=False, unique=True),
    Column("content", Text, unique=True, comment="digest of the records, made with the ledger's secret"),
    Column("state", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("asked", BigInteger, nullable=False, comment="number of the last entry"),
    Column("checkpoint", Text, nullable=False, comment="digest of the last entry"),
    Column("closed", Text, comment="why it answers no more"),
)

_entries = Table(
    "entries",
    _metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("query", BigInteger, primary_key=True),
    Column("key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("train", Double, nullable=False),
    Column("value", Double, nullable=False),
    Column("low", Double, nullable=False),
    Column("high", Double, nullable=False),
    Column("source", Text, nullable=False),
    Column("remaining", BigInteger),
    Column("lower", Double, nullable=False),
    Column("upper", Double, nullable=False),
    Column("log_error_budget", Double, comment="natural logarithm of the remaining error budget"),
    Column("list", BigInteger, comment="number of the first entry of a list of queries"),
    Column("candidate", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("time", Double, comment="when it was stored, in POSIX seconds"),
    Column("digest", Text, nullable=False),
    sqlite_with_rowid=False,
)

_clients = Table(
    "clients",
    _metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("name", Text, primary_key=True, comment="digest of the client's name"),
    Column("state", Text, nullable=False, comment="public numbers of the guard's state about this client"),
)

_documents = Table(
    "documents",
    _metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("text", Text, nullable=False),
)

_settings = Table(
    "settings",
    _metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

_BY_CLIENT: Final[dict[DialectName, str]] = {
    "sqlite": "CREATE INDEX entries_client ON entries (guard, client, query, time)",
    "postgresql": "CREATE INDEX entries_client ON entries (guard, md5(client), query, time)",
}
_INDEXES: Final[dict[DialectName, tuple[str, ...]]] = {
    "sqlite": ('CREATE UNIQUE INDEX entries_key ON entries (guard, "key")', _BY_CLIENT["sqlite"]),
    # PostgreSQL's indexes hold no long texts, so they have digests; statements also compare the texts themselves.
    "postgresql": ('CREATE UNIQUE INDEX entries_key ON entries (guard, md5("key"))', _BY_CLIENT["postgresql"]),
}

_REFUSALS: Final = (
    ("entries", "UPDATE", "entries of a ledger never change"),
    ("entries", "DELETE", "entries of a ledger are never deleted"),
    ("documents", "UPDATE", "documents of a ledger never change"),
    ("documents", "DELETE", "documents of a ledger are never deleted"),
    ("guards", "UPDATE OF id, identity, content, parameters", "what a guard is never changes"),
    ("guards", "DELETE", "guards of a ledger are never deleted"),
    ("guards", "UPDATE OF closed", "a guard that was closed stays so"),
)
"""Table, event, and the database's message of refusal."""

_SQLITE_INSERTS: Final = (
    # INSERT OR REPLACE deletes rows without firing their triggers, so it must not find any to replace.
    """CREATE TRIGGER entries_insert BEFORE INSERT ON entries
    WHEN NEW.query <> 1 + ifnull((SELECT max(query) FROM entries WHERE guard = NEW.guard), 0)
    OR EXISTS (SELECT 1 FROM entries WHERE guard = NEW.guard AND "key" = NEW."key")
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger follow each other, each with a key of its own'); END""",
    """CREATE TRIGGER documents_insert BEFORE INSERT ON documents
    WHEN EXISTS (SELECT 1 FROM documents WHERE guard = NEW.guard AND name = NEW.name)
    BEGIN SELECT RAISE(ABORT, 'documents of a ledger never change'); END""",
    """CREATE TRIGGER guards_insert BEFORE INSERT ON guards
    WHEN EXISTS (SELECT 1 FROM guards WHERE id = NEW.id OR identity = NEW.identity OR content = NEW.content)
    BEGIN SELECT RAISE(ABORT, 'guards of a ledger are never replaced'); END""",
)

REFUSALS: Final = frozenset(message for *_, message in _REFUSALS) | frozenset(
    re.findall(r"RAISE\(ABORT, '(.*?)'\)", " ".join(_SQLITE_INSERTS))
)
"""All messages of the triggers; they contain nothing of a row."""

_POSTGRESQL_FUNCTION: Final = """CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'restrict_violation'; END $$"""


def check_format(location: str, found: int) -> None:
    """Refuse tables of another format than this program's."""
    if found != FORMAT:
        raise LedgerUnusable(
            location,
            f"Its tables have format {found}, but this version reads format {FORMAT}. Use the version that created it.",
        )


class Statements:
    """A ledger's statements in one dialect; parameters are positional, in the order given at each."""

    def __init__(self, dialect: DialectName) -> None:
        rules = _dialect(dialect)

        def compiled(statement: ClauseElement) -> str:
            return str(statement.compile(dialect=rules))

        def new(table: Table, *columns: str) -> Any:
            """Insert a row unless its key is there."""
            values: dict[str, Any] = {name: bindparam(name) for name in columns}
            if dialect == "sqlite":
                return sqlite_insert(table).values(values).on_conflict_do_nothing()
            return postgresql_insert(table).values(values).on_conflict_do_nothing()

        fields = [column for column in _entries.c if column.name not in ("guard", "digest")]
        guard = select(
            _guards.c.id, _guards.c.state, _guards.c.parameters, _guards.c.asked, _guards.c.checkpoint, _guards.c.closed
        ).where(_guards.c.identity == bindparam("guard"))
        key: Any = bindparam("asked_key")
        same_key = _entries.c.key == key if dialect == "sqlite" else func.md5(_entries.c.key) == func.md5(key)
        between = _entries.c.query.between(bindparam("first"), bindparam("last"))
        of_guard = _entries.c.guard == bindparam("guard_id")
        of_client = _of_client(dialect)
        columns = ("identity", "content", "state", "parameters", "asked", "checkpoint")
        last = select(func.max(_entries.c.query)).where(_entries.c.guard == _guards.c.id).scalar_subquery()
        # Make the tables, indexes and triggers.
        self.create = tuple(compiled(CreateTable(table)) for table in _metadata.sorted_tables) + _guarded(dialect)
        # Parameters: identity, content, state, parameters, asked, checkpoint. Changes no row if it exists.
        self.add_guard = compiled(new(_guards, *columns))
        # Parameter: identity. Row: id, state, parameters, asked, checkpoint, closed.
        self.guard = compiled(guard)
        # The same, and no other transaction changes the row until this one ends.
        self.lock_guard = compiled(guard.with_for_update())
        # Rows: identity.
        self.guards = compiled(select(_guards.c.identity).order_by(_guards.c.id))
        # Parameter: content. Row: identity.
        self.known = compiled(select(_guards.c.identity).where(_guards.c.content == bindparam("digest")))
        # Parameters: state, number and digest of the last entry, id.
        self.set_state = compiled(
            update(_guards)
            .values(state=bindparam("new_state"), asked=bindparam("new_asked"), checkpoint=bindparam("new_checkpoint"))
            .where(_guards.c.id == bindparam("guard_id"))
        )
        # Parameters: id, name. Row: state.
        self.client = compiled(
            select(_clients.c.state).where(
                _clients.c.guard == bindparam("guard_id"), _clients.c.name == bindparam("client")
            )
        )
        # Parameter: id. Rows: name, state.
        self.clients = compiled(
            select(_clients.c.name, _clients.c.state).where(_clients.c.guard == bindparam("guard_id"))
        )
        # Parameters: id, name, state.
        self.set_client = compiled(_upsert(dialect))
        # Parameters: why, id.
        self.close = compiled(
            update(_guards).values(closed=bindparam("why")).where(_guards.c.id == bindparam("guard_id"))
        )
        # Parameters: id, an entry's fields in their order, its digest.
        self.add_entry = compiled(insert(_entries))
        # Parameters: id, key. Row: an entry's fields in their order.
        self.entry = compiled(select(*fields).where(of_guard, same_key))
        # Parameters: id, first and last number. Rows: an entry's fields in their order.
        self.entries = compiled(select(*fields).where(of_guard, between).order_by(_entries.c.query))
        # Parameters: client, id, first number, how many at most, how many are left out before. Rows as of `entries`.
        self.entries_of = compiled(
            select(*fields)
            .where(*of_client, of_guard, _entries.c.query >= bindparam("first"))
            .order_by(_entries.c.query)
            .limit(bindparam("most", type_=BigInteger))
            .offset(bindparam("skipped", type_=BigInteger))  # SQLite's dialect always writes an offset
        )
        # Parameters: client, id. Row: how many entries the client has.
        self.asked_by = compiled(select(func.count(_entries.c.query)).where(*of_client, of_guard))
        # Parameters: client, id, time. Row: how many entries the client has from then on.
        self.asked_since = compiled(
            select(func.count(_entries.c.query)).where(*of_client, of_guard, _entries.c.time >= bindparam("since"))
        )
        # As `entries`, with the digest behind the fields.
        self.chain = compiled(select(*fields, _entries.c.digest).where(of_guard, between).order_by(_entries.c.query))
        # Parameter: identity. Row: id, parameters, asked, checkpoint, number of the last entry or None; at one moment.
        self.extent = compiled(
            select(_guards.c.id, _guards.c.parameters, _guards.c.asked, _guards.c.checkpoint, last).where(
                _guards.c.identity == bindparam("guard")
            )
        )
        # Parameters: id, last number. Rows: source, how many entries up to that number have it.
        self.sources = compiled(
            select(_entries.c.source, func.count())
            .where(of_guard, _entries.c.query <= bindparam("last"))
            .group_by(_entries.c.source)
        )
        # Parameters: id, name, text.
        self.add_document = compiled(insert(_documents))
        # Parameters: id, name. Row: text.
        self.document = compiled(
            select(_documents.c.text).where(
                _documents.c.guard == bindparam("guard_id"), _documents.c.name == bindparam("document")
            )
        )
        # Parameter: identity. Rows: name.
        self.documents = compiled(
            select(_documents.c.name)
            .join(_guards, _documents.c.guard == _guards.c.id)
            .where(_guards.c.identity == bindparam("guard"))
        )
        # Parameters: name, value. Changes no row if the setting exists.
        self.put_setting = compiled(new(_settings, "name", "value"))
        # Parameter: name. Row: value.
        self.setting = compiled(select(_settings.c.value).where(_settings.c.name == bindparam("setting")))
        # Parameters: text, id, name.
        self.set_document = compiled(
            update(_documents)
            .values(text=bindparam("new_text"))
            .where(_documents.c.guard == bindparam("guard_id"), _documents.c.name == bindparam("document"))
        )
        # Parameters: value, name.
        self.set_setting = compiled(
            update(_settings).values(value=bindparam("new_value")).where(_settings.c.name == bindparam("setting"))
        )
        # Until the transaction ends, no other one stores a secret or begins to.
        self.lock_secrets: tuple[str, ...] = ()  # a transaction of SQLite locks the whole file
        # Allow changes of documents in this transaction, which must end with `refuse_rewriting`.
        self.allow_rewriting = "DROP TRIGGER documents_update"
        self.refuse_rewriting = next(s for s in self.create if s.startswith("CREATE TRIGGER documents_update "))
        # Outside of a transaction: rewrite the tables, so that nothing is left of earlier rows.
        self.forget: tuple[str, ...] = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
        if dialect == "postgresql":
            self.lock_secrets = tuple(f"LOCK TABLE {table} IN EXCLUSIVE MODE" for table in ("guards", "documents"))
            self.allow_rewriting = "ALTER TABLE documents DISABLE TRIGGER documents_update"
            self.refuse_rewriting = "ALTER TABLE documents ENABLE TRIGGER documents_update"
            self.forget = tuple(f"VACUUM (FULL) {table}" for table in ("guards", "documents", "settings"))


@cache
def statements(dialect: DialectName) -> Statements:
    """Return the statements of a ledger."""
    return Statements(dialect)


def _upsert(dialect: DialectName) -> Any:
    """Return the statement that stores a client's row."""
    new = (sqlite_insert if dialect == "sqlite" else postgresql_insert)(_clients)
    return new.on_conflict_do_update(index_elements=["guard", "name"], set_={"state": new.excluded.state})


def _of_client(dialect: DialectName) -> tuple[Any, ...]:
    """Return the conditions for entries of one client, whose name is the first parameter of a statement."""
    client: Any = bindparam("client", type_=Text)
    if dialect == "sqlite":
        return (_entries.c.client == client,)
    asked = select(client.cast(Text).label("name")).subquery("asked")  # read twice, given once
    return func.md5(_entries.c.client) == func.md5(asked.c.name), _entries.c.client == asked.c.name


def _dialect(name: DialectName) -> Dialect:
    from sqlalchemy.dialects import postgresql, sqlite

    if name == "sqlite":
        return sqlite.dialect(paramstyle="qmark")
    return cast(Dialect, postgresql.dialect(paramstyle="format"))  # type: ignore[no-untyped-call]


def _guarded(dialect: DialectName) -> tuple[str, ...]:
    """Return the statements that make the index and the triggers."""
    triggers = []
    for table, event, message in _REFUSALS:
        closing = event.endswith("closed")
        name = f"{table}_closed" if closing else f"{table}_{event.split()[0].lower()}"
        start = f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW"
        if closing:
            start += " WHEN (OLD.closed IS NOT NULL)"
        text = message.replace("'", "''")
        if dialect == "sqlite":
            triggers.append(f"{start} BEGIN SELECT RAISE(ABORT, '{text}'); END")
        else:
            triggers.append(f"{start} EXECUTE FUNCTION ledger_refuses('{text}')")
    if dialect == "sqlite":
        return (*_INDEXES[dialect], *triggers, *_SQLITE_INSERTS)
    truncates = [
        f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} "
        f"EXECUTE FUNCTION ledger_refuses('{table} of a ledger are never deleted')"
        for table in ("guards", "entries", "documents")
    ]
    return (*_INDEXES[dialect], _POSTGRESQL_FUNCTION, *triggers, *truncates)
