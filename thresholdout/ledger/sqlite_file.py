"""A ledger's file: its creation and recognition, and connections that survive forks and errors.

Two of SQLite's rules shape this module ["How To Corrupt An SQLite Database File", 2.2 and 2.6]. Closing any descriptor
of the file drops the process's locks on it, so the file is read only through SQLite: it is recognised through an
immutable connection, which takes no locks and writes nothing. And a connection must not cross a fork, not even to be
closed, so it is closed before the fork and opened again on either side when it is needed.
"""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import stat
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, Final, Self
from urllib.parse import quote

from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import schema
from thresholdout.ledger.database import Connection, Cursor, Database, Forking, Result
from thresholdout.ledger.file_location import check_names, check_place

if sys.platform != "win32":
    import fcntl

__all__ = ["FileQueue", "SQLiteFile"]

_REASONS: Final[dict[int, str]] = {
    sqlite3.SQLITE_ERROR: "Its tables are not those of a ledger.",
    sqlite3.SQLITE_BUSY: "Another process keeps the file locked. Try again.",
    sqlite3.SQLITE_FULL: "The disk is full.",
    sqlite3.SQLITE_READONLY: "The file cannot be written. Check the permissions of the file and its folder.",
    sqlite3.SQLITE_CANTOPEN: "The file cannot be opened. Check the permissions of the file and its folder.",
    sqlite3.SQLITE_PERM: "The file cannot be opened. Check the permissions of the file and its folder.",
    sqlite3.SQLITE_IOERR: "The disk failed. Check its free space and its health.",
    sqlite3.SQLITE_CONSTRAINT: "A new row contradicts the stored ones. Run `thresholdout ledger verify`.",
    sqlite3.SQLITE_NOTADB: "The file is not a ledger.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged. Do not use its holdout again.",
}
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


_UNREADABLE: Final = "The file holds text that cannot be decoded, so it is damaged. Do not use its holdout again."
_CLOSED: Final = "The connection was closed while in use, and nothing was stored."


_PAUSE: Final = 0.001
"""Mean seconds between two attempts."""

_PATIENCE: Final = 0.2
"""Seconds after which a process tries out of turn, in case that the first one hangs."""

_DIGITS: Final = 8
_FIRST: Final = 16
"""Offset of the locked bytes; before them are the last number, and the byte that is locked to draw one."""


class FileQueue:
    """Queue of the processes that wait for the file, in order of arrival; for one thread at a time.

    SQLite gives the file to whoever tries at the right moment. A process that asks without a pause wants the file again
    as soon as it has released it, while others sleep longer and longer between attempts and can starve. So a process
    that finds the file taken draws a number, and later processes queue behind it.

    Numbers are drawn from a small file beside the ledger, which exists only while somebody waits. A process keeps the
    byte of its number locked, and is the first if no earlier byte is locked by another process. A process that dies
    loses its lock, and one that hangs is passed after a while. Only fairness depends on this: SQLite's own lock decides
    who writes.
    """

    def __init__(self, file: Path) -> None:
        self._path = f"{file}-queue"
        self._place: _Place | None = None

    def wait(self, attempt: Callable[[], bool], seconds: float) -> bool:
        """Repeat an attempt in this process's turns until it succeeds or time is up."""
        self.leave()  # an interrupt of an earlier wait may have left a place
        if not os.path.lexists(self._path) and attempt():
            return True
        began = passed = time.monotonic()
        try:
            self._place = _Place.at_the_end(self._path)
            while True:
                now = time.monotonic()
                if self._place is None or self._place.is_first() or now > passed + _PATIENCE:
                    if attempt():
                        return True
                    passed = now
                if now > began + seconds:
                    return False
                time.sleep(random.uniform(0.5, 1.5) * _PAUSE)
        finally:
            self.leave()

    def leave(self) -> None:
        """Give up the place, and delete the file if nobody is behind it."""
        place, self._place = self._place, None
        if place is not None:
            place.leave()


class _Place:
    """A drawn number."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._number = 0

    @classmethod
    def at_the_end(cls, path: str) -> _Place | None:
        """Draw a number; None if that is impossible, so that all processes try without order."""
        if sys.platform == "win32":
            return None
        for _ in range(100):
            try:
                place = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            except OSError:
                return None
            if place._draw():
                return place
            place._close()
            time.sleep(random.uniform(0.5, 1.5) * _PAUSE)
        return None

    def _draw(self) -> bool:
        if not self._lock(_DIGITS, 1) or not self._is_there():
            return False
        try:
            number = int.from_bytes(os.pread(self._descriptor, _DIGITS, 0), "big") + 1
            os.pwrite(self._descriptor, number.to_bytes(_DIGITS, "big"), 0)
        except OSError:
            return False
        self._number = number
        drawn = self._lock(_FIRST + number, 1)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _DIGITS)
        return drawn

    def is_first(self) -> bool:
        """Whether no other process has a smaller number."""
        return self._number == 1 or self._lock(_FIRST + 1, self._number - 1)

    def leave(self) -> None:
        """Release the place to the next one."""
        if self._lock(_DIGITS, 1) and self._lock(_FIRST + self._number + 1, 0) and self._is_there():
            with suppress(OSError):
                os.unlink(self._path)
        self._close()

    def _lock(self, start: int, length: int) -> bool:
        """Lock some bytes unless another process has one of them; a length of 0 has no end."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError:
            return False
        return True

    def _is_there(self) -> bool:
        """Whether the file still has its name, and was not deleted meanwhile."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)  # releases all its locks


class _Cursor(sqlite3.Cursor):
    """A cursor with this package's errors; SQLite's own can show a row.

    They are raised outside of any handler, so that they have no other error as context.
    """

    location = ""

    def execute(self, statement: str, parameters: Any = (), /) -> Self:
        """Run a statement."""
        self._plainly(super().execute, statement, parameters)
        return self

    def executemany(self, statement: str, rows: Any, /) -> Self:
        """Run a statement for each row of parameters."""
        self._plainly(super().executemany, statement, rows)
        return self

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._plainly(super().fetchone)

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        rows: list[Any] = self._plainly(super().fetchall)
        return rows

    def begin(self) -> bool:
        """Begin an exclusive transaction, unless another process has one."""
        try:
            super().execute("BEGIN IMMEDIATE")
            return True
        except sqlite3.Error as error:
            reason = None if _code(error) == sqlite3.SQLITE_BUSY else _reason(error)
        if reason is not None:
            raise LedgerUnusable(self.location, reason)
        return False

    def _plainly(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return method(*arguments)
        except sqlite3.Error as error:
            reason = _reason(error)
        raise LedgerUnusable(self.location, reason)


class _Connection(Connection):
    """One connection to the file."""

    def __init__(self) -> None:
        super().__init__()
        self.open: sqlite3.Connection | None = None
        self.cursor: _Cursor | None = None

    def disconnect(self) -> None:
        """Close the connection, which undoes uncommitted work; an interrupted call may be repeated."""
        if self.cursor is not None:
            with suppress(sqlite3.Error):
                self.cursor.close()  # an open statement would keep the connection and its lock alive
        if self.open is not None:
            self.open.close()
        self.open = self.cursor = None


class SQLiteFile(Database):
    """A ledger's file, with one connection that writes and one that reads, shared by all threads.

    A connection behind a lock is faster than one for each thread: SQLite admits one writer at a time and makes the
    others sleep and retry, whereas a lock wakes them. Readers never wait for a writer, in any process.
    """

    on_server = False

    def __init__(self, location: str, *, must_exist: bool, timeout: float) -> None:
        super().__init__()
        self.location = location
        self.statements = schema.statements("sqlite")
        self._path = Path(location).absolute()
        self._name = str(self._path)
        self._timeout = timeout
        self._writer = _Connection()
        self._reader = _Connection()
        self._queue = FileQueue(self._path)
        self._process = os.getpid()
        self._closed = False
        if not must_exist and not os.path.lexists(self._path):
            self._make()
        self._identity = self._recognise()
        _open_files.add(self)
        self.transact(self._check_tables)

    def read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a statement; see `Database.read`."""
        return self._use(self._reader, lambda cursor: cursor.execute(statement, parameters).fetchall())

    def transact(self, work: Callable[[Cursor], Result]) -> Result:
        """Call a function whose statements are stored together, durably, or not at all; see `Database.transact`.

        The transaction locks the file from its start, so that everything that it reads stays true until it ends.
        """

        def stored(cursor: _Cursor) -> Result:
            if not self._queue.wait(cursor.begin, self._timeout):
                raise LedgerUnusable(self.location, f"{_REASONS[sqlite3.SQLITE_BUSY]} (SQLITE_BUSY)")
            result = work(cursor)
            self._check_process()
            cursor.execute("COMMIT")
            return result

        return self._use(self._writer, stored)

    def _use(self, connection: _Connection, work: Callable[[_Cursor], Result]) -> Result:
        """Call a function with a connection that no other thread uses meanwhile; a failure closes it.

        A `with` statement of C code takes and releases the lock, within which Python raises no exception from outside,
        so no interrupt leaves it locked. An interrupt in the middle of the clean-up leaves `clean` false for the next
        use.
        """
        self._check_usable()
        with connection.lock:
            connection.holder = get_ident()
            try:
                cursor = self._ready(connection)
                connection.clean = False
                result = work(cursor)
                connection.clean = True
                return result
            except BaseException:
                self._disconnect(connection)  # the next use starts from the file
                connection.clean = True
                raise
            finally:
                connection.holder = None

    def close(self) -> None:
        """Close the connections permanently, after other threads' uses."""
        if self._crossed_a_fork():
            self._closed = True  # the connections belong to the parent
            return
        self.check_not_asking()
        for connection in (self._writer, self._reader):
            with connection.lock:
                self._closed = True
                self._disconnect(connection)

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # Uses no name of a module: at the interpreter's exit they may be gone.
        for name in ("_writer", "_reader"):
            connection = getattr(self, name, None)
            if connection is not None and connection.open is not None and getpid() == self._process:
                connection.cursor.close()
                connection.open.close()
                connection.open = None

    def _is_asking(self, thread: int) -> bool:
        return self._writer.holder == thread and self._writer.lock.locked()

    def _check_usable(self) -> None:
        """Refuse a closed ledger, a foreign process, and a thread inside a transaction."""
        if self._closed:
            raise LedgerUnusable(self.location, "This ledger object was closed. Open the ledger again.")
        self._check_process()
        self.check_not_asking()

    def _crossed_a_fork(self) -> bool:
        """Whether a connection of the parent process is open."""
        if os.getpid() == self._process:
            return False
        if self._writer.open is None and self._reader.open is None:
            self._process = os.getpid()
        return os.getpid() != self._process

    def _check_process(self) -> None:
        """Refuse a process that was forked in the middle of a query."""
        if self._crossed_a_fork():
            raise LedgerUnusable(self.location, "This process was forked during a query. Fork between queries.")

    def _ready(self, connection: _Connection) -> _Cursor:
        """Return a cursor without an open transaction."""
        if self._closed:
            raise LedgerUnusable(self.location, "This ledger object was closed. Open the ledger again.")
        if not connection.clean:
            connection.disconnect()
        if connection.cursor is None:
            connection.open = self._connect()
            connection.cursor = connection.open.cursor(_Cursor)
            connection.cursor.location = self.location
            if connection is self._writer:
                connection.cursor.execute("PRAGMA busy_timeout = 0")  # the queue waits instead
        self._check_identity()
        return connection.cursor

    def _connect(self) -> sqlite3.Connection:
        failure = None
        try:
            connection = _connect(self._path, "mode=rw", self._timeout)
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA fullfsync = ON")  # on macOS fsync does not flush the drive's cache
                connection.execute("PRAGMA foreign_keys = ON")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            failure = _reason(error)
        if failure is not None:
            raise LedgerUnusable(self.location, failure)
        if mode != "wal":
            connection.close()
            raise LedgerUnusable(self.location, "Its file system does not support a write-ahead log. Use a local disk.")
        return connection

    def _disconnect(self, connection: _Connection) -> None:
        if os.getpid() == self._process:
            connection.disconnect()
        else:
            _strays.append(connection.open)  # a connection that crossed a fork must not be closed
            connection.open = connection.cursor = None

    def _check_identity(self) -> None:
        """Refuse a file that was moved or replaced, whose budget may be spent elsewhere."""
        try:
            now = os.stat(self._name)
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise LedgerUnusable(self.location, "The file was moved, deleted or replaced while in use. Open it again.")
        check_names(self.location, now.st_nlink)

    def _make(self) -> None:
        """Create the complete file under another name, readable by its owner only, and then give it its name."""
        for suffix in ("-wal", "-shm", "-journal"):
            if os.path.lexists(f"{self._path}{suffix}") and not os.path.lexists(self._path):
                raise LedgerUnusable(
                    self.location,
                    f"The file is missing, but its log {self._path.name}{suffix} exists and records the spent budget. "
                    "Put the file back beside it, or delete the log if that holdout will never be used again.",
                )
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            try:
                with closing(_connect(draft, "mode=rw", self._timeout)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    for statement in self.statements.create:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
                    connection.execute("COMMIT")
                    connection.execute("PRAGMA journal_mode = WAL")
                with suppress(FileExistsError):  # another process's file is as good
                    os.link(draft, self._path)
            finally:
                for suffix in ("", "-journal", "-wal", "-shm"):
                    Path(f"{draft}{suffix}").unlink(missing_ok=True)
            _sync_folder(self._path.parent)
            return
        except sqlite3.Error as error:
            reason = _reason(error)
        except OSError as error:
            reason = f"The file cannot be created: {error.strerror}."
        raise LedgerUnusable(self.location, reason)

    def _recognise(self) -> tuple[int, int]:
        """Return the file's device and number, after checks that it is a ledger; nothing is written."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise LedgerUnusable(self.location, "The file does not exist. Check its name, or create it.") from None
        except OSError as error:
            raise LedgerUnusable(self.location, f"The file cannot be opened: {error.strerror}.") from None
        if not stat.S_ISREG(found.st_mode):
            raise LedgerUnusable(self.location, "It is not a regular file.")
        check_place(self.location, self._path, found)
        reason = None
        try:
            with closing(_connect(self._path, "mode=ro&immutable=1", self._timeout)) as connection:
                connection.execute("PRAGMA writable_schema = ON")  # accepts a file whose writer died in a checkpoint
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                (found_format,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            reason = _reason(error)
        if reason is not None:
            raise LedgerUnusable(self.location, reason)
        if application != schema.APPLICATION_ID:
            raise LedgerUnusable(self.location, "The file is not a ledger.")
        schema.check_format(self.location, found_format)
        if os.name == "posix" and found.st_mode & _OTHERS:
            raise LedgerUnusable(
                self.location,
                f"Other users can access the file (mode {stat.S_IMODE(found.st_mode):04o}), which holds secrets. "
                f"Run `chmod 600 {self.location}`.",
            )
        if not os.access(self._path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise LedgerUnusable(self.location, _REASONS[sqlite3.SQLITE_READONLY])
        return found.st_dev, found.st_ino

    def _check_tables(self, cursor: Cursor) -> None:
        """Refuse tables of another format, which the log may hold, and a file that cannot be written."""
        (found,) = cursor.execute("PRAGMA user_version").fetchone()
        schema.check_format(self.location, found)
        cursor.execute(self.statements.set_state, ("", 0, "", None))  # changes nothing


def _code(error: sqlite3.Error) -> int | None:
    """Return the kind of a failure; None for Python's own errors about values."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _reason(error: sqlite3.Error) -> str:
    """Return an error's reason and advice; SQLite's own words may quote a row."""
    code = _code(error)
    if code is None:
        return _CLOSED if isinstance(error, sqlite3.ProgrammingError) else _UNREADABLE
    if code == sqlite3.SQLITE_CONSTRAINT and str(error) in schema.REFUSALS:
        return f"The database refused the change: {error} ({error.sqlite_errorname})."
    return f"{_REASONS.get(code, 'The database failed.')} ({error.sqlite_errorname})"


def _connect(path: Path, options: str, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?{options}", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_open_files: weakref.WeakSet[SQLiteFile] = weakref.WeakSet()
_strays: list[sqlite3.Connection | None] = []
_forking = Forking(lambda: [line for file in list(_open_files) for line in (file._writer, file._reader)])


def _before_fork() -> None:
    """Wait for the queries of other threads, and close every connection."""
    _forking.begin()
    for file in list(_open_files):
        for connection in (file._writer, file._reader):
            if connection.holder != get_ident():
                file._disconnect(connection)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_forking.end, after_in_child=_forking.end)
