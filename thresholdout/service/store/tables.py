"""The service's tables, in the ledger's database, and their format.

One database makes one backup one moment. Answers of submissions are stored here too, and compared with the ledger's
entries, which are shown (`thresholdout.service.chained_answers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import LedgerUnusable

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor, Database

__all__ = ["FORMAT", "SETTING", "Store", "prepare"]

# Format of the service's tables; a program refuses those of another one.
FORMAT: Final = 1

# Name of the ledger's setting with the format.
SETTING: Final = "service_format"

# Number of the lock on a server under which the tables are made.
_LOCK: Final = 0x7468_6F73

_CREATE: Final = (
    """CREATE TABLE service_tokens (
    id TEXT PRIMARY KEY, digest TEXT NOT NULL UNIQUE, role TEXT NOT NULL, team TEXT NOT NULL, note TEXT NOT NULL,
    made DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)""",
    """CREATE TABLE service_sessions (
    digest TEXT PRIMARY KEY, token TEXT NOT NULL REFERENCES service_tokens (id), until DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE service_holdouts (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL UNIQUE, settings TEXT NOT NULL,
    facts TEXT, phase TEXT NOT NULL, shown BIGINT, made DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE service_submissions (
    id TEXT PRIMARY KEY, holdout INTEGER NOT NULL REFERENCES service_holdouts (number), team TEXT NOT NULL,
    place BIGINT NOT NULL, turn BIGINT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL,
    against BIGINT, state TEXT NOT NULL, received DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL,
    query BIGINT, value DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION, verdict TEXT, refusal TEXT,
    receipt TEXT)""",
    "CREATE UNIQUE INDEX service_submissions_place ON service_submissions (holdout, place)",
    "CREATE UNIQUE INDEX service_submissions_turn ON service_submissions (holdout, team, turn)",
    """CREATE TABLE service_champions (
    holdout INTEGER NOT NULL REFERENCES service_holdouts (number), team TEXT NOT NULL, number BIGINT NOT NULL,
    submission TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (holdout, team, number))""",
    """CREATE TABLE service_failures (
    token TEXT NOT NULL, hour BIGINT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (token, hour))""",
)


class Store:
    """Access to the service's tables, with one text of each statement for both dialects."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.lock = " FOR UPDATE" if database.on_server else ""
        """Behind a SELECT: nobody changes the row until the transaction ends. A file is locked as a whole."""

    def statement(self, text: str) -> str:
        """Return a statement with the parameter marks of the database's driver."""
        return text.replace("?", "%s") if self.database.on_server else text

    def read(self, text: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a statement."""
        return self.database.read(self.statement(text), parameters)

    def write(self, text: str, parameters: Sequence[object] = ()) -> int:
        """Run a statement in a transaction of its own; return how many rows it changed."""

        def run(cursor: Cursor) -> int:
            cursor.execute(self.statement(text), parameters)
            return cursor.rowcount

        return self.database.transact(run)


def prepare(database: Database) -> Store:
    """Make the service's tables where they are missing."""
    store = Store(database)
    setting = database.statements.setting

    def make(cursor: Cursor) -> None:
        if database.on_server:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        cursor.execute(setting, (SETTING,))
        if cursor.fetchone() is None:  # nobody else made them meanwhile
            for statement in _CREATE:
                cursor.execute(statement)
            cursor.execute(database.statements.put_setting, (SETTING, str(FORMAT)))

    if not store.read(setting, (SETTING,)):
        database.transact(make)
    found = str(store.read(setting, (SETTING,))[0][0])
    if found != str(FORMAT):
        raise LedgerUnusable(
            database.location,
            f"The service's tables have format {found[:20]}, but this version reads format {FORMAT}. "
            "Use the version of thresholdout that created them.",
        )
    return store
