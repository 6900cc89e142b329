"""What a ledger needs of a database; `SQLiteFile` and `PostgresServer` provide it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from thresholdout.errors import LedgerError

if TYPE_CHECKING:
    from thresholdout.ledger.schema import Statements

__all__ = ["Connection", "Cursor", "Database", "Forking", "Result"]

Result = TypeVar("Result")


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


class Connection:
    """A connection, for one thread at a time."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.holder: int | None = None
        """The thread that has the lock."""
        self.clean = True
        """Whether the last use ended as it should."""


class Forking:
    """Holds the locks of connections while a process forks, so that no other thread is in the middle of a query."""

    def __init__(self, connections: Callable[[], Sequence[Connection]]) -> None:
        self._connections = connections
        self._held: list[Connection] = []

    def begin(self) -> None:
        """Take all locks but those of the thread that forks, all at once: holding some of them could stop others."""
        while True:
            for connection in self._connections():
                if connection.holder == get_ident():
                    continue
                if not connection.lock.acquire(timeout=0.02):
                    break
                self._held.append(connection)
            else:
                return
            self.end()

    def end(self) -> None:
        """Leave all locks."""
        while self._held:
            self._held.pop().lock.release()


class Database(ABC):
    """A place where tables are kept, safe to use from several threads.

    Notes
    -----
    Errors say in words of this package what went wrong, and have neither cause nor context: a driver's own errors can
    show what a row holds.

    Work is given as a function, and not as the body of a `with`: an exception can be thrown into a thread from outside
    (``KeyboardInterrupt``, ``PyThreadState_SetAsyncExc``) after any call, also the one that takes a lock. Only a `with`
    of a lock itself is safe from that [CPython, issue 29988].
    """

    location: str
    statements: Statements
    on_server: ClassVar[bool]

    def check_not_asking(self) -> None:
        """Refuse a thread that is in the middle of a `transact`: most likely the mechanism uses the ledger."""
        if self._is_asking(get_ident()):
            raise LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")

    @abstractmethod
    def _is_asking(self, thread: int) -> bool:
        """Whether a thread is in the middle of a `transact`."""

    @abstractmethod
    def read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of one statement that reads."""

    @abstractmethod
    def transact(self, work: Callable[[Cursor], Result]) -> Result:
        """Do work, given a cursor, whose statements are stored together, durably, or not at all; return its result.

        Whatever it raises, or interrupts it, takes everything back. What `Statements.lock_guard` returned stays true
        until the end: no other transaction changes that guard in between.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what it holds; every later use but another `close` raises `LedgerUnusable`."""
