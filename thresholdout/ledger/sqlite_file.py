"""A ledger's file: making it, recognising it, and one connection to it that survives forks and errors.

Two of SQLite's rules shape this module ["How To Corrupt An SQLite Database File", 2.2 and 2.6]. Closing any
descriptor of the file drops the locks that the process holds on it, so the file is only ever read through
SQLite: it is recognised through an immutable connection, which takes no locks and writes nothing. And a
connection must not cross a fork, not even to be closed, so it is closed before the fork, and opened again on
either side when it is next needed.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from thresholdout.errors import LedgerError, LedgerUnusable
from thresholdout.ledger import migrations, schema
from thresholdout.ledger.checks import earlier_format
from thresholdout.ledger.database import Database
from thresholdout.ledger.place import check_names, check_place

__all__ = ["SQLiteFile"]

_REASONS: Final[dict[int, str]] = {
    sqlite3.SQLITE_BUSY: "another process keeps it locked; try again",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it can't be written; check the permissions of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened; check the permissions of the file and its folder",
    sqlite3.SQLITE_PERM: "it can't be opened; check the permissions of the file and its folder",
    sqlite3.SQLITE_IOERR: "the disk failed; check it for space and health",
    sqlite3.SQLITE_NOTADB: "it is not a ledger",
    sqlite3.SQLITE_CORRUPT: "it is damaged; its holdout should not be used again",
}
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class SQLiteFile(Database):
    """A ledger's file, and one connection to it that all threads share.

    One connection behind a lock is faster than one for each thread: SQLite lets one writer in at a time, and
    makes the others sleep and try again where a lock wakes them up.

    Parameters
    ----------
    location : str
        The file's path.
    must_exist : bool
        Refuse to make a new file.
    timeout : float
        Seconds to wait while another process holds the file.

    Raises
    ------
    LedgerUnusable
        The file is not a ledger, can be read by others, or can't be read and written.
    """

    def __init__(self, location: str, *, must_exist: bool, timeout: float) -> None:
        self.location = location
        self.statements = schema.statements("sqlite")
        self._path = Path(location).absolute()
        self._name = str(self._path)
        self._timeout = timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._asking = False
        self._closed = False
        if not must_exist and not os.path.lexists(self._path):
            self._make()
        self._identity = self._recognise()
        _open_files.add(self)
        with self.transaction() as cursor:
            self._bring_up_to_date(cursor)
            # Changes nothing, but tells now when the file can't be written.
            cursor.execute(self.statements.set_state, ("", 0, "", None))

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor for one statement.

        Raises
        ------
        LedgerUnusable
            The statement fails.
        """
        with self._lock:
            cursor = self._ready()
            try:
                yield cursor
            except sqlite3.Error as error:
                self._disconnect()
                raise self._unusable(error) from None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Lend a cursor for statements that are stored together, durably, or not at all.

        The transaction has the file for itself from its start, so that what it reads stays true until it ends.

        Raises
        ------
        LedgerUnusable
            A statement or the commit fails.
        """
        with self._lock:
            cursor = self._ready()
            self._asking = True
            try:
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                cursor.execute("COMMIT")
            except sqlite3.Error as error:
                self._disconnect()  # rolls back, and the next use starts from what the file says
                raise self._unusable(error) from None
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._asking = False

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def __del__(self, getpid: Callable[[], int] = os.getpid) -> None:
        # Uses no name of a module: at the interpreter's exit they may be gone.
        connection = getattr(self, "_connection", None)
        self._connection = None
        if connection is not None and getpid() == self._process:
            self._cursor.close()
            connection.close()

    def _ready(self) -> sqlite3.Cursor:
        """Return a cursor of a connection that this process may use now."""
        if self._closed:
            raise LedgerUnusable(self.location, "it is closed")
        if os.getpid() != self._process:
            if self._connection is not None:
                raise LedgerUnusable(
                    self.location, "this process was forked in the middle of a question; fork outside of one"
                )
            self._process = os.getpid()
        if self._asking:
            raise LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")
        self._roll_back()  # a transaction may be left when an interrupt hits the handling of another one
        if self._connection is None:
            self._connection = self._connect()
        self._check_identity()
        return self._cursor

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = _connect(self._path, "mode=rw", self._timeout)
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache too
                connection.execute("PRAGMA foreign_keys = ON")
            except BaseException:
                connection.close()
                raise
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        if mode != "wal":
            connection.close()
            raise LedgerUnusable(self.location, "its file system can't hold a write-ahead log; use a local disk")
        self._cursor = connection.cursor()
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and os.getpid() == self._process:
            self._cursor.close()  # a statement that is left open would keep the connection, and its lock, alive
            connection.close()

    def _roll_back(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _check_identity(self) -> None:
        """Refuse to spend a budget in a file that no longer has its name."""
        try:
            now = os.stat(self._name)
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise LedgerUnusable(self.location, "its file was moved, deleted or replaced while in use; open it again")
        check_names(self.location, now.st_nlink)

    def _make(self) -> None:
        """Make the file whole under another name, readable by its owner only, and then give it its name."""
        for suffix in ("-wal", "-shm", "-journal"):
            if os.path.lexists(f"{self._path}{suffix}") and not os.path.lexists(self._path):
                raise LedgerUnusable(
                    self.location,
                    f"the file is gone, but its log {self._path.name}{suffix} is there and holds what was spent; put "
                    "the file back beside it, or remove the log if that holdout will never be asked again",
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
                with suppress(FileExistsError):  # another process was faster, and its file is as good
                    os.link(draft, self._path)
            finally:
                for suffix in ("", "-journal", "-wal", "-shm"):
                    Path(f"{draft}{suffix}").unlink(missing_ok=True)
            _sync_folder(self._path.parent)
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        except OSError as error:
            raise LedgerUnusable(self.location, f"it can't be made: {error.strerror}") from None

    def _recognise(self) -> tuple[int, int]:
        """Return the file's device and number, after checking that it is a ledger; touches nothing."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise LedgerUnusable(self.location, "there is no such file; check its name, or create it") from None
        except OSError as error:
            raise LedgerUnusable(self.location, f"it can't be opened: {error.strerror}") from None
        if not stat.S_ISREG(found.st_mode):
            raise LedgerUnusable(self.location, "it is not a file")
        check_place(self.location, self._path, found)
        try:
            with closing(_connect(self._path, "mode=ro&immutable=1", self._timeout)) as connection:
                connection.execute("PRAGMA writable_schema = ON")  # a process died in a checkpoint: no damage
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                (found_format,) = connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        if application == schema.UNRELEASED_ID:
            raise earlier_format(self.location)
        if application != schema.APPLICATION_ID:
            raise LedgerUnusable(self.location, "it is not a ledger")
        migrations.check_format(self.location, found_format)
        if os.name == "posix" and found.st_mode & _OTHERS:
            raise LedgerUnusable(
                self.location,
                f"others can use it (mode {stat.S_IMODE(found.st_mode):04o}), and it holds secrets; "
                f"run: chmod 600 {self.location}",
            )
        if not os.access(self._path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise LedgerUnusable(self.location, _REASONS[sqlite3.SQLITE_READONLY])
        return found.st_dev, found.st_ino

    def _bring_up_to_date(self, cursor: sqlite3.Cursor) -> None:
        """Give the tables of an earlier format this program's, in the transaction that is under way.

        The format is read again: the log may hold a later one than the file's header, and another process may
        have been faster.
        """
        (found,) = cursor.execute("PRAGMA user_version").fetchone()
        migrations.check_format(self.location, found)
        migrations.migrate(cursor, self.statements, found)
        if found < schema.FORMAT:
            cursor.execute(f"PRAGMA user_version = {schema.FORMAT}")

    def _unusable(self, error: sqlite3.Error) -> LedgerUnusable:
        """Return an error that says what happened, and what to do."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            return LedgerUnusable(self.location, str(error))
        reason = _REASONS.get(code & 0xFF, f"the database failed: {error}")
        return LedgerUnusable(self.location, f"{reason} ({error.sqlite_errorname})")


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
_fork_lock = threading.RLock()
_held: list[SQLiteFile] = []


def _before_fork() -> None:
    """Wait until no question is under way, and close every connection."""
    _fork_lock.acquire()
    for file in list(_open_files):
        file._lock.acquire()
        _held.append(file)
        if file._connection is not None and not file._connection.in_transaction:
            file._disconnect()


def _after_fork() -> None:
    """Let the questions go on."""
    while _held:
        _held.pop()._lock.release()
    _fork_lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
