"""What a ledger needs of a database; `SQLiteFile` and `PostgresServer` provide it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from thresholdout.ledger.schema import Statements

__all__ = ["Cursor", "Database"]


class Cursor(Protocol):
    """What is used of a cursor of Python's database interface (PEP 249)."""

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""

    def execute(self, statement: Any, parameters: Sequence[Any] = ..., /) -> Any:
        """Run a statement."""

    def executemany(self, statement: Any, rows: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each row of parameters."""

    def fetchone(self) -> Any:
        """Return the next row as a tuple, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""


class Database(ABC):
    """A place where tables are kept, safe to use from several threads.

    Attributes
    ----------
    location : str
        Where it is, for messages; never with a password.
    statements : Statements
        The ledger's statements in this database's dialect.
    """

    location: str
    statements: Statements

    @abstractmethod
    def reading(self) -> AbstractContextManager[Cursor]:
        """Lend a cursor for one statement that reads.

        Raises
        ------
        LedgerUnusable
            The statement fails, or the database is closed.
        LedgerError
            The calling thread is in the middle of a `transaction`.
        """

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Cursor]:
        """Lend a cursor for statements that are stored together, durably, or not at all.

        Whatever raises inside, or interrupts, takes everything back. What `Statements.lock_guard` returned stays
        true until the end: no other transaction changes that guard in between.

        Raises
        ------
        LedgerUnusable
            A statement or the commit fails, or the database is closed; nothing was stored.
        LedgerError
            The calling thread is in the middle of a `transaction` already.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what it holds; every later use but another `close` raises `LedgerUnusable`."""
