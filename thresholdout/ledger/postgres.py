"""A ledger's tables on a PostgreSQL server: making them, and one connection that survives forks and failures.

A connection can fail when nobody can tell whether its last commit was done. The server decides that at the latest
when it lets the connection's session end. So whatever was left behind in an unknown condition is ended, and waited
for, before anything else is done; afterwards an entry with the digest that was to be stored is there, or never will
be.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thresholdout.errors import InputError, LedgerError, LedgerUnusable, ThresholdoutError
from thresholdout.ledger import migrations, schema
from thresholdout.ledger.checks import earlier_format
from thresholdout.ledger.database import Cursor, Database

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresServer"]

SCHEMA: Final = "thresholdout"
"""Name of the schema that holds the tables."""

_REASONS: Final[dict[str, str]] = {
    "55P03": "another process keeps it locked; try again",
    "57014": "it took too long, or was cancelled; try again",
    "40P01": "another process was in the way; try again",
    "40001": "another process was in the way; try again",
    "42501": "this role has not the rights that a ledger needs",
    "25006": "it can only be read; use the server that is written to",
    "53100": "the server's disk is full",
    "53300": "the server has no room for another connection; try again",
}
_LOST: Final = "the connection was lost; nothing was stored"
_SETTINGS: Final = (
    "SET search_path = thresholdout, pg_temp",
    "SET client_min_messages = error",
    "SET extra_float_digits = 1",  # numbers come back exactly
    "SET log_parameter_max_length_on_error = 0",  # a state must not get into the server's log
    "SET idle_in_transaction_session_timeout = '10min'",
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_ABOUT_SERVER: Final = """SELECT pg_backend_pid(), extract(epoch FROM backend_start)::text,
    current_setting('fsync'), current_setting('synchronous_commit')
    FROM pg_stat_activity WHERE pid = pg_backend_pid()"""
_END: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s"""
_STORED: Final = "SELECT digest FROM entries WHERE guard = %s AND query = %s"

Session: TypeAlias = tuple[int, str]
"""What the server knows a connection by: its process, and when that started."""


class PostgresServer(Database):
    """A database of a PostgreSQL server, and one connection to it that all threads share.

    Parameters
    ----------
    address : str
        Such as ``"postgresql://user@host/database"``, with all that libpq reads: options such as
        ``?host=/run/postgresql``, environment variables, and a password file.
    must_exist : bool
        Refuse to make new tables.
    timeout : float
        Seconds to wait for others, for the server, and for a server that is gone to come back.

    Raises
    ------
    ThresholdoutError
        The library ``psycopg`` is missing.
    InputError
        The address can't be read.
    LedgerUnusable
        The server can't be reached, refuses this user, holds other tables, or does not write its log to the disk.

    Notes
    -----
    Everything is in a schema of its own, made when it is first used. Commits wait for the server's disk, whatever
    the defaults of the server, the database or the role. A server that runs with ``fsync = off`` is refused: it
    loses answers at a power failure, and no session can change that.

    A pool of connections in front of the server must keep one session for each client.

    A commit is durable on this server. A replica that takes over must have it too, or answers that were given are
    missing there and their budget is spent again: let commits wait for it (``synchronous_standby_names``), and let no
    asynchronous replica take over. Recovery to a point in time, and a dump that is restored, put budgets back in the
    same way. After any of them, give `thresholdout.ledger.Ledger.verify` the head that was kept elsewhere before
    anybody asks; where it is not in the history, retire the guard.

    Examples
    --------
    >>> PostgresServer("postgresql://guard:secret@/answers?host=/nowhere", must_exist=True, timeout=1)
    Traceback (most recent call last):
    thresholdout.errors.LedgerUnusable: ledger postgresql://guard@/answers?host=/nowhere: it can't be reached: ...
    """

    def __init__(self, address: str, *, must_exist: bool, timeout: float) -> None:
        self._driver = _driver()
        self.location, self._open = self._read(address, timeout)
        self.statements = schema.statements("postgresql")
        self._timeout = timeout
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._session: Session | None = None
        self._abandoned: set[Session] = set()
        self._process = os.getpid()
        self._asking = False
        self._closed = False
        _open_servers.add(self)
        try:
            self._make(must_exist)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Cursor]:
        """Lend a cursor for one statement; see `Database.reading`."""
        with self._lock:
            self._check_usable()
            try:
                yield _Cursor(self._ready(), None)
            except self._driver.Error as error:
                self._tidy()
                raise self._unusable(error) from None
            except BaseException:
                self._tidy()
                raise

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """Lend a cursor for statements that are stored together, durably, or not at all; see `Database.transaction`."""
        with self._lock:
            self._check_usable()
            try:
                connection = self._ready()
                cursor = _Cursor(connection, self.statements.add_entry)
                self._asking = True
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", prepare=False)
                yield cursor
                self._commit(connection, cursor)
            except self._driver.Error as error:
                self._tidy()
                raise self._unusable(error) from None
            except BaseException:
                self._tidy()
                raise
            finally:
                self._asking = False

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self._disconnect()

    def _commit(self, connection: psycopg.Connection[Any], cursor: _Cursor) -> None:
        """Commit, and find out whether it was done when that fails."""
        try:
            done = connection.execute("COMMIT", prepare=False).statusmessage
        except self._driver.Error:
            self._abandon()
        else:
            if done != "COMMIT":  # a statement had failed, so the server took everything back
                raise LedgerUnusable(self.location, "the database refused a statement; nothing was stored")
            return
        if cursor.last_entry is None:
            if not cursor.wrote:
                return
            raise LedgerUnusable(
                self.location, "the connection was lost while this was stored; look whether it was, or do it again"
            )
        guard_id, number, digest = cursor.last_entry
        found = self._stored_digest(guard_id, number)
        if found != (digest,):
            raise LedgerUnusable(self.location, _LOST)

    def _stored_digest(self, guard_id: int, number: int) -> tuple[str] | None:
        """Look an entry up when the session that was to store it has ended, however often the connection is lost."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                found: tuple[str] | None = self._connected().execute(_STORED, (guard_id, number)).fetchone()
                return found
            except (LedgerUnusable, self._driver.Error):
                self._disconnect()
                if time.monotonic() > until:
                    break
        raise LedgerUnusable(
            self.location,
            "the connection was lost while an answer was stored, and the server does not come back: the answer "
            "did not leave, but may have been charged, and is in the history then; ask again with the same key",
        )

    def _check_usable(self) -> None:
        """Refuse what this process, or this thread, may not do now."""
        if self._closed:
            raise LedgerUnusable(self.location, "it is closed")
        if os.getpid() != self._process:
            raise LedgerUnusable(
                self.location, "this process was forked in the middle of a question; fork outside of one"
            )
        if self._asking:
            raise LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")

    def _ready(self) -> psycopg.Connection[Any]:
        """Return a connection on which no transaction is open."""
        self._tidy()  # a transaction may be left when an interrupt hits the handling of another one
        if self._connection is not None and _has_ended(self._connection):
            self._disconnect()
        return self._connected()

    def _connected(self) -> psycopg.Connection[Any]:
        """Return a connection, after the end of what was abandoned."""
        if self._connection is None:
            self._connection = self._connect()
        until = time.monotonic() + self._timeout
        for session in list(self._abandoned):
            self._end(session, self._connection, until)
        return self._connection

    def _end(self, session: Session, connection: psycopg.Connection[Any], until: float) -> None:
        """Wait until the server has ended a session, and with it decided about its last commit."""
        while session in self._abandoned:
            if connection.execute(_END, session).fetchone() is None:
                self._abandoned.remove(session)
            elif time.monotonic() > until:
                raise LedgerUnusable(self.location, "a lost connection does not end on the server; try again")
            else:
                time.sleep(0.002)

    def _connect(self) -> psycopg.Connection[Any]:
        """Open a connection; a server that was there before may take some time to come back."""
        until = time.monotonic() + (self._timeout if self._session is not None else 0.0)
        while True:
            try:
                connection = self._open()
                break
            except self._driver.Error as error:
                if time.monotonic() > until:
                    said = " ".join(str(error).split())  # shows no password
                    raise LedgerUnusable(self.location, f"it can't be reached: {said}") from None
                time.sleep(0.05)
        try:
            for setting, seconds in (("statement_timeout", 10 * self._timeout), ("lock_timeout", self._timeout)):
                connection.execute("SELECT set_config(%s, %s, false)", (setting, f"{max(1, round(1000 * seconds))}ms"))
            for statement in _SETTINGS:
                connection.execute(statement)
            process, started, fsync, commit = connection.execute(_ABOUT_SERVER).fetchone() or (0, "", "", "")
            if commit in ("off", "local"):
                connection.execute("SET synchronous_commit = on")
        except BaseException:
            connection.close()
            raise
        if fsync == "off":
            connection.close()
            raise LedgerUnusable(
                self.location,
                "the server runs with fsync = off, and would lose answers at a power failure; switch it on",
            )
        self._session = (process, started)
        return connection

    def _make(self, must_exist: bool) -> None:
        """Recognise the tables, or make them; one process at a time."""
        try:
            connection = self._ready()
            found = self._format(connection)
            if found is None and must_exist:
                raise LedgerUnusable(self.location, "there is no ledger in this database; check its name, or create it")
            if found != schema.FORMAT:
                connection.execute("BEGIN")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (schema.APPLICATION_ID,))
                self._bring_up_to_date(connection)
                connection.execute("COMMIT")
        except self._driver.Error as error:
            self._tidy()
            raise self._unusable(error) from None
        except BaseException:
            self._tidy()
            raise

    def _bring_up_to_date(self, connection: psycopg.Connection[Any]) -> None:
        """Make the tables, or give those of an earlier format this program's, in the transaction under way."""
        cursor = _Cursor(connection, None)
        found = self._format(connection)  # another process may have been faster
        if found is None:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            for statement in self.statements.create:
                cursor.execute(statement)
            cursor.execute(self.statements.put_setting, ("format", str(schema.FORMAT)))
        else:
            migrations.check_format(self.location, found)
            migrations.migrate(cursor, self.statements, found)
            cursor.execute(self.statements.set_setting, (str(schema.FORMAT), "format"))

    def _format(self, connection: psycopg.Connection[Any]) -> int | None:
        """Return the format of the tables, or None when there are none."""
        query = "SELECT to_regclass(%s) IS NOT NULL, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s)"
        known, taken = connection.execute(query, (f"{SCHEMA}.settings", SCHEMA)).fetchone() or (False, False)
        if not taken:
            return None
        cursor = _Cursor(connection, None)
        row = cursor.execute(self.statements.setting, ("format",)).fetchone() if known else None
        if known and row is None and cursor.execute(self.statements.setting, ("version",)).fetchone() is not None:
            raise earlier_format(self.location)
        if row is None or not str(row[0]).isdecimal():
            raise LedgerUnusable(self.location, f"its schema {SCHEMA} is not a ledger")
        return int(row[0])

    def _tidy(self) -> None:
        """End an open transaction, or leave a connection on which something is still going on."""
        connection = self._connection
        if connection is None or os.getpid() != self._process:
            return
        status = connection.info.transaction_status
        if status == self._driver.pq.TransactionStatus.IDLE:
            return
        try:
            if status == self._driver.pq.TransactionStatus.ACTIVE or connection.broken:
                self._abandon()
            else:
                connection.execute("ROLLBACK")
        except self._driver.Error:
            self._abandon()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Leave a connection; nothing else is done until the server has ended its session."""
        if self._session is not None:
            self._abandoned.add(self._session)
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and os.getpid() == self._process:
            connection.close()

    def _unusable(self, error: psycopg.Error) -> LedgerUnusable:
        """Return an error that says what happened, and what to do; never with a statement's parameters."""
        code = error.sqlstate
        if code is None or (code not in _REASONS and code[:2] in ("08", "57")):
            return LedgerUnusable(self.location, _LOST)
        said = " ".join((error.diag.message_primary or "").split())
        return LedgerUnusable(self.location, f"{_REASONS.get(code, 'the database failed')} ({code}: {said})")

    def _read(self, address: str, timeout: float) -> tuple[str, Callable[[], psycopg.Connection[Any]]]:
        """Return the address without its password, for messages, and how to connect."""
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = conninfo_to_dict(address)
        except self._driver.Error:
            given = {"port": "?"}
        host = str(given.get("host", ""))
        port = str(given.get("port", "0")).replace(",", "")
        if "@" in host or not port.isdecimal():
            raise InputError(
                "ledger",
                "an address that can't be read (and is not shown: it may hold a password)",
                "one such as postgresql://user@host:5432/database, with special characters as %40",
            )
        location = "postgresql://"
        if "user" in given:
            location += f"{given['user']}@"
        if not host.startswith("/"):
            location += host
        if "port" in given:
            location += f":{given['port']}"
        location += f"/{given.get('dbname', '')}"
        if host.startswith("/"):
            location += f"?host={host}"
        options: dict[str, Any] = {"connect_timeout": max(2, round(timeout)), "application_name": "thresholdout"}
        options = {name: value for name, value in options.items() if name not in given}

        driver = self._driver

        def connect() -> psycopg.Connection[Any]:  # does not refer to this object, which would keep it alive
            connection: psycopg.Connection[Any] = driver.connect(address, autocommit=True, **options)
            return connection

        return location, connect


class _Cursor:
    """A cursor that remembers whether it wrote, and the last entry that it added."""

    def __init__(self, connection: psycopg.Connection[Any], add_entry: str | None) -> None:
        self._cursor = connection.cursor()
        self._add_entry = add_entry
        self.fetchone = self._cursor.fetchone
        self.fetchall = self._cursor.fetchall
        self.wrote = False
        self.last_entry: tuple[int, int, str] | None = None

    @property
    def rowcount(self) -> int:
        """How many rows the last statement touched."""
        return self._cursor.rowcount

    def execute(self, statement: Any, parameters: Sequence[Any] = (), /) -> _Cursor:
        """Run a statement."""
        self.wrote = self.wrote or not statement.startswith("SELECT")
        if statement == self._add_entry:
            self._remember(parameters)
        self._cursor.execute(statement, parameters or None)
        return self

    def executemany(self, statement: Any, rows: Iterable[Sequence[Any]], /) -> _Cursor:
        """Run a statement for each row."""
        self.wrote = True
        adding = statement == self._add_entry
        self._cursor.executemany(statement, map(self._remember, rows) if adding else rows)
        return self

    def _remember(self, row: Sequence[Any]) -> Sequence[Any]:
        self.last_entry = (row[0], row[1], row[-1])
        return row


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ThresholdoutError(
            "ledgers on PostgreSQL need the library psycopg: pip install 'thresholdout[postgres]'"
        ) from None
    return psycopg


def _has_ended(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has closed a connection that nobody used; does not wait."""
    try:
        connection.pgconn.consume_input()  # its last words
        connection.pgconn.consume_input()
    except Exception:
        return True
    return False


_open_servers: weakref.WeakSet[PostgresServer] = weakref.WeakSet()
_fork_lock = threading.RLock()
_held: list[PostgresServer] = []


def _before_fork() -> None:
    """Wait until no question is under way."""
    _fork_lock.acquire()
    for server in list(_open_servers):
        server._lock.acquire()
        _held.append(server)


def _release() -> None:
    """Let the questions go on."""
    while _held:
        _held.pop()._lock.release()
    _fork_lock.release()


def _after_fork_in_child() -> None:
    """Let go of the parent's connections without a word to the server, which would end the parent's session."""
    for server in _held:
        connection = server._connection
        server._session = None
        server._abandoned = set()
        if connection is None:
            server._process = os.getpid()
            continue
        nowhere = os.open(os.devnull, os.O_RDWR)
        with suppress(Exception):
            os.dup2(nowhere, connection.fileno())
        os.close(nowhere)
        if not server._asking:
            connection.close()
            server._connection = None
            server._process = os.getpid()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_after_fork_in_child)
