"""Interface of a ledger to its database, which `SQLiteFile` and `PostgresServer` implement."""

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
    """The part of Python's database interface (PEP 249) that is used."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the last statement changed."""

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
        """Thread that holds the lock."""
        self.clean = True
        """Whether the last use ended regularly."""


class Forking:
    """Holds the locks of connections while a process forks, so that no other thread is in the middle of a query."""

    def __init__(self, connections: Callable[[], Sequence[Connection]]) -> None:
        self._connections = connections
        self._held: list[Connection] = []

    def begin(self) -> None:
        """Take all locks except those of the forking thread, or none: holding some of them could block others."""
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
        """Release all locks."""
        while self._held:
            self._held.pop().lock.release()


class Database(ABC):
    """A place for tables, safe to use from several threads.

    Errors have this package's words and neither cause nor context, since a driver's own errors can show a row.

    Work is passed as a function and not as the body of a `with`. An exception can be thrown into a thread from outside
    (``KeyboardInterrupt``, ``PyThreadState_SetAsyncExc``) after any call, even the one that takes a lock; only a `with`
    of the lock itself is safe [CPython, issue 29988].
    """

    location: str
    statements: Statements
    on_server: ClassVar[bool]

    def check_not_asking(self) -> None:
        """Refuse a thread that is inside a `transact`: most likely the mechanism uses the ledger."""
        if self._is_asking(get_ident()):
            raise LedgerError(
                self.location,
                "The mechanism used the ledger while it computed an answer, which it must not. Nothing was stored.",
            )

    @abstractmethod
    def _is_asking(self, thread: int) -> bool:
        """Whether a thread is inside a `transact`."""

    @abstractmethod
    def read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of one reading statement."""

    @abstractmethod
    def transact(self, work: Callable[[Cursor], Result]) -> Result:
        """Call a function with a cursor; its statements are stored together, durably, or not at all.

        An exception or an interrupt undoes everything. A row that `Statements.lock_guard` returned is not changed by
        other transactions until the end.
        """

    @abstractmethod
    def close(self) -> None:
        """Release all resources; every later use except another `close` raises `LedgerUnusable`."""
