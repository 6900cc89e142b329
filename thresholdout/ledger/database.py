"""What a ledger needs of a database; `SQLiteFile` and `PostgresServer` provide it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from thresholdout.errors import LedgerError

if TYPE_CHECKING:
    from thresholdout.ledger.lease import Claim
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
    on_server : bool
        Whether it is a server, which lets transactions about different guards run at the same time, and may write what
        it is told into logs that others read.

    Notes
    -----
    What is lent belongs to the function that has the ``with``: it must not be a generator that pauses inside.

    Errors say in words of this package what went wrong, and have neither cause nor context: a driver's own errors can
    show what a row holds.
    """

    location: str
    statements: Statements
    on_server: ClassVar[bool]

    def __init__(self) -> None:
        self._asking: dict[int, Claim] = {}

    def check_not_asking(self) -> None:
        """Refuse a thread that is in the middle of a `transaction`.

        Raises
        ------
        LedgerError
            Most likely the mechanism uses the ledger that asks it.
        """
        claim = self._asking.get(get_ident())
        if claim is not None and claim.is_running():
            raise LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")

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
