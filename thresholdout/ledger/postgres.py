"""A ledger's tables on a PostgreSQL server, and a process's connections to it.

Writers and readers have connections of their own, and transactions about different guards run at the same time: a guard
that another process has locked delays only queries to it. psycopg_pool is not used: it lends by `with` bodies and by
locks of Python code, which an exception from outside can leave locked, and it drops the reason when a server cannot be
reached.
"""

from __future__ import annotations

import _thread
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thresholdout.errors import InputError, LedgerUnusable, ThresholdoutError
from thresholdout.ledger import schema
from thresholdout.ledger.database import Connection, Cursor, Database, Forking, Result

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresServer"]

SCHEMA: Final = "thresholdout"
"""Name of the schema that holds the tables."""

_CONNECTIONS: Final = 16
"""Maximum number of a process's connections to write, and to read."""

_REASONS: Final[dict[str, str]] = {
    "55P03": "Another process keeps it locked. Try again.",
    "57014": "A statement took too long, or was cancelled. Try again.",
    "40P01": "Another process changed it at the same time. Try again.",
    "40001": "Another process changed it at the same time. Try again.",
    "42501": "The role of this connection lacks privileges. It needs CREATE on the database once, for the schema "
    "thresholdout, then USAGE of this schema, and SELECT, INSERT and UPDATE on its tables.",
    "25006": "The connection is read-only. Connect to a server that accepts writes.",
    "53100": "The server's disk is full.",
    "53300": "The server has no free connection. Try again.",
    "23505": "A new row contradicts the stored ones. Run `thresholdout ledger verify`.",
    "23001": "The database refused the change: the entries of a ledger never change.",
}
_LOST: Final = "The connection was lost, and nothing was stored. Try again."
_UNREADABLE: Final = "It holds text that cannot be decoded, so it is damaged. Do not use its holdouts again."
_SETTINGS: Final = (
    "SET search_path = thresholdout, pg_temp",
    "SET client_encoding = 'UTF8'",
    "SET client_min_messages = error",
    "SET extra_float_digits = 1",  # floats come back exactly
    "SET log_parameter_max_length_on_error = 0",
    "SET idle_in_transaction_session_timeout = '10min'",
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_ABOUT_SERVER: Final = """SELECT pg_backend_pid(), extract(epoch FROM backend_start)::text,
    current_setting('fsync'), current_setting('synchronous_commit')
    FROM pg_stat_activity WHERE pid = pg_backend_pid()"""
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_END: Final = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid = %s AND extract(epoch FROM backend_start)::text = %s"""
_STORED: Final = "SELECT digest FROM entries WHERE guard = %s AND query = %s"

Session: TypeAlias = tuple[int, str]
"""The server's identity of a connection: its process, and the start of that."""


@dataclass(slots=True)
class _Address:
    """The way to connect to a server, and the sessions of lost connections.

    It refers to no connection, so that the end of a server object ends its connections.
    """

    location: str
    driver: Any
    open: Callable[[], psycopg.Connection[Any]]
    timeout: float
    process: int = field(default_factory=os.getpid)
    """Process that owns the connections."""
    abandoned: set[Session] = field(default_factory=set)
    """Sessions in an unknown state, which must end first."""
    was_there: bool = False
    """Whether a connection has succeeded before."""


class _Connection(Connection):
    """One connection, opened on first use.

    It can fail when nobody can tell whether its last commit was done. The server decides that at the latest when it
    ends the connection's session. So sessions in an unknown state are ended, and waited for, before anything else is
    done. Afterwards an entry with the digest that was to be stored exists, or never will.
    """

    def __init__(self, address: _Address) -> None:
        super().__init__()
        self.open: psycopg.Connection[Any] | None = None
        self._address = address
        self._session: Session | None = None

    def ready(self, patient: bool) -> psycopg.Connection[Any]:
        """Return a connection without an open transaction; if patient, wait for a server that was reachable before."""
        if not self.clean:
            self.abandon()
        if self.open is not None and _has_ended(self.open):
            self.disconnect()
        return self._connected(patient)

    def tidy(self) -> None:
        """End an open transaction, or abandon a connection with a running statement."""
        connection, driver = self.open, self._address.driver
        if connection is None or os.getpid() != self._address.process:
            return
        status = connection.info.transaction_status
        if status == driver.pq.TransactionStatus.IDLE:
            return
        try:
            if status == driver.pq.TransactionStatus.ACTIVE or connection.broken:
                self.abandon()
            else:
                connection.execute("ROLLBACK")
        except driver.Error:
            self.abandon()

    def abandon(self) -> None:
        """Abandon a connection; nothing else is done until the server has ended its session."""
        if self._session is not None and self.open is not None:
            self._address.abandoned.add(self._session)
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; an interrupted call may be repeated."""
        if self.open is not None and os.getpid() == self._address.process:
            self.open.close()
        self.open = None

    def cross_fork(self, asking: bool) -> None:
        """Drop the parent's connection without a message to the server, which would end the parent's session."""
        self._session = None
        if self.open is not None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            with suppress(Exception):
                os.dup2(nowhere, self.open.fileno())
            os.close(nowhere)
            if not asking:
                self.open.close()
                self.open = None

    def commit(self, connection: psycopg.Connection[Any], cursor: _Cursor) -> None:
        """Commit, and after a failure find out whether it was done."""
        address = self._address
        done = None
        try:
            done = connection.execute("COMMIT", prepare=False).statusmessage
        except address.driver.Error:
            self.abandon()
        if done == "COMMIT":
            return
        if done is not None:  # a statement had failed, so the server has rolled back
            raise LedgerUnusable(address.location, "The database refused a statement, and nothing was stored.")
        if cursor.last_entry is None:
            if not cursor.wrote:
                return
            raise LedgerUnusable(
                address.location, "The connection was lost during a commit. Check whether it was stored, or repeat it."
            )
        guard_id, number, digest = cursor.last_entry
        if self._stored_digest(guard_id, number) != (digest,):
            raise LedgerUnusable(address.location, _LOST)

    def _stored_digest(self, guard_id: int, number: int) -> tuple[str] | None:
        """Search for an entry after the end of the session that was to store it, even if connections are lost again."""
        until = time.monotonic() + self._address.timeout
        while True:
            try:
                found: tuple[str] | None = self._connected(patient=True).execute(_STORED, (guard_id, number)).fetchone()
                return found
            except (LedgerUnusable, self._address.driver.Error):
                self.disconnect()
                if time.monotonic() > until:
                    break
        raise LedgerUnusable(
            self._address.location,
            "The connection was lost while an answer was stored, and the server cannot be reached again. The answer "
            "was not returned, but it may be stored and charged. Ask again with the same key.",
        )

    def _connected(self, patient: bool) -> psycopg.Connection[Any]:
        """Return a connection, after the end of abandoned sessions."""
        if self.open is None:
            self.open = _undisturbed(lambda: self._connect(patient))
        until = time.monotonic() + self._address.timeout
        for session in list(self._address.abandoned):
            self._end(session, self.open, until)
        return self.open

    def _end(self, session: Session, connection: psycopg.Connection[Any], until: float) -> None:
        """Wait until the server has ended a session, which decides about its last commit."""
        abandoned = self._address.abandoned
        while session in abandoned:
            if connection.execute(_END, session).fetchone() is None:
                abandoned.discard(session)
            elif time.monotonic() > until:
                raise LedgerUnusable(self._address.location, "The server keeps a lost connection open. Try again.")
            else:
                time.sleep(0.002)

    def _connect(self, patient: bool) -> psycopg.Connection[Any]:
        """Open a connection; wait for a server that was reachable before."""
        address = self._address
        until = time.monotonic() + (address.timeout if address.was_there and patient else 0.0)
        said = None
        while True:
            try:
                connection = address.open()
                break
            except address.driver.Error as error:
                if time.monotonic() > until:
                    said = " ".join(str(error).split())  # has no password, and no statement was sent yet
            if said is not None:
                raise LedgerUnusable(address.location, f"The server cannot be reached: {said.rstrip('.')}.")
            time.sleep(0.05)
        try:
            self._set_timeouts(connection)
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
                address.location,
                "The server runs with fsync = off, and could lose answers at a power failure. Set fsync = on.",
            )
        self._session = (process, started)
        address.was_there = True
        return connection

    def _set_timeouts(self, connection: psycopg.Connection[Any]) -> None:
        """Set the timeouts of statements; a short default can end the very statement that sets one."""
        address = self._address
        until = time.monotonic() + address.timeout
        for setting, seconds in (("statement_timeout", 10 * address.timeout), ("lock_timeout", address.timeout)):
            while True:
                try:
                    connection.execute(f"SET {setting} = {max(1, round(1000 * seconds))}")
                    break
                except address.driver.errors.QueryCanceled:
                    if time.monotonic() > until:
                        raise

    def reason(self, error: Exception) -> str:
        """Return an error's reason and advice; the server's own words can quote a row."""
        if isinstance(error, UnicodeError):
            return _UNREADABLE
        code = getattr(error, "sqlstate", None)
        if code == "22021":
            return f"{_UNREADABLE} ({code})"
        if code is None or (code not in _REASONS and code[:2] in ("08", "57")):
            return _LOST
        return f"{_REASONS.get(code, 'The database failed. See the log of the server.')} ({code})"

    def guarded(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call the driver, with this package's errors, which are raised outside of any handler."""
        try:
            return method(*arguments)
        except (self._address.driver.Error, UnicodeError) as error:
            reason = self.reason(error)
        raise LedgerUnusable(self._address.location, reason)


class _Cursor:
    """A cursor that records whether it wrote, and the last entry that it added."""

    def __init__(self, line: _Connection, connection: psycopg.Connection[Any], add_entry: str | None) -> None:
        self._connection = line
        self._cursor = connection.cursor()
        self._add_entry = add_entry
        self.wrote = False
        self.last_entry: tuple[int, int, str] | None = None

    @property
    def rowcount(self) -> int:
        """Number of rows that the last statement changed."""
        return self._cursor.rowcount

    def execute(self, statement: Any, parameters: Sequence[Any] = (), /) -> _Cursor:
        """Run a statement."""
        self.wrote = self.wrote or not statement.startswith("SELECT")
        if statement == self._add_entry:
            self._remember(parameters)
        self._connection.guarded(self._cursor.execute, statement, parameters or None)
        return self

    def executemany(self, statement: Any, rows: Iterable[Sequence[Any]], /) -> _Cursor:
        """Run a statement for each row."""
        self.wrote = True
        adding = statement == self._add_entry
        self._connection.guarded(self._cursor.executemany, statement, map(self._remember, rows) if adding else rows)
        return self

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._connection.guarded(self._cursor.fetchone)

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        rows: list[Any] = [] if self._cursor.description is None else self._connection.guarded(self._cursor.fetchall)
        return rows

    def _remember(self, row: Sequence[Any]) -> Sequence[Any]:
        self.last_entry = (row[0], row[1], row[-1])
        return row


def _has_ended(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has closed an idle connection; does not wait."""
    try:
        connection.pgconn.consume_input()  # a last message may precede the end
        connection.pgconn.consume_input()
    except Exception:
        return True
    return False


def _undisturbed(connect: Callable[[], psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
    """Connect in a thread without signal handlers, so that no interrupt leaves an open connection behind."""
    if threading.get_ident() != threading.main_thread().ident:
        return connect()
    made: list[psycopg.Connection[Any]] = []
    failures: list[BaseException] = []
    end: dict[str, bool] = {}
    done = threading.Lock()

    def work() -> None:
        try:
            made.append(connect())
        except BaseException as error:
            failures.append(error)
        if not end.setdefault("wanted", True):
            for connection in made:
                connection.close()
        done.release()

    done.acquire()
    try:
        # A `threading.Thread` waits for its start with a condition, which an interrupt can leave locked.
        _thread.start_new_thread(work, ())
        done.acquire()
    except BaseException:
        if end.setdefault("wanted", False):
            for connection in made:
                connection.close()
        raise
    if failures:
        raise failures.pop()
    return made.pop()


class PostgresServer(Database):
    """A database of a PostgreSQL server, and the connections that all threads share.

    The address is read by libpq: options such as ``?host=/run/postgresql``, environment variables, a password file. The
    timeout covers other processes, the server, and its recovery.

    All tables are in a schema of their own, created on first use. Commits wait for the server's disk, also if the
    defaults of the server, the database or the role differ. A server with ``fsync = off`` is refused: it loses answers
    at a power failure, and no session can change that. A pool of connections in front of the server must keep one
    session for each client.

    A commit is durable on this server. An asynchronous replica that takes over may lack it, and the budget is spent
    again: make commits wait for it (``synchronous_standby_names``). Recovery to a point in time, and a restored dump,
    put budgets back as well: verify with a checkpoint that was kept elsewhere before anybody asks.
    """

    on_server = True

    def __init__(self, address: str, *, must_exist: bool, timeout: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise ThresholdoutError(
                "A ledger on PostgreSQL needs the library psycopg: pip install 'thresholdout[postgres]'."
            ) from None
        self._driver = psycopg
        self.location, connect = self._read(address, timeout)
        self.statements = schema.statements("postgresql")
        self._address = _Address(self.location, self._driver, connect, timeout)
        self._writers = [_Connection(self._address) for _ in range(_CONNECTIONS)]
        self._readers = [_Connection(self._address) for _ in range(_CONNECTIONS)]
        self._turns = itertools.count()
        self._closed = False
        _open_servers.add(self)
        try:
            self._make(must_exist)
        except BaseException:
            self.close()
            raise

    def read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a statement; see `Database.read`."""
        return self._use(self._readers, lambda cursor: cursor.execute(statement, parameters).fetchall())

    def transact(self, work: Callable[[Cursor], Result]) -> Result:
        """Call a function whose statements are stored together, durably, or not at all; see `Database.transact`."""
        return self._use(self._writers, work)

    def close(self) -> None:
        """Close the connections permanently, after other threads' uses."""
        if os.getpid() != self._address.process:
            self._closed = True  # the connections belong to the parent
            return
        self.check_not_asking()
        self._closed = True
        for connection in self._connections():
            with connection.lock:
                connection.disconnect()

    def __del__(self) -> None:
        for name in ("_writers", "_readers"):
            for connection in getattr(self, name, ()):
                connection.disconnect()

    def _use(self, pool: list[_Connection], work: Callable[[_Cursor], Result]) -> Result:
        """Call a function with a connection that no other thread uses meanwhile.

        A `with` statement of C code takes and releases the lock, within which Python raises no exception from outside,
        so no interrupt leaves it locked. An interrupt in the middle of the clean-up leaves `clean` false for the next
        use.
        """
        self._check_usable()
        may_open = True
        while True:
            line = self._chosen(pool, may_open)
            with line.lock:
                line.holder = threading.get_ident()
                try:
                    others = [other for other in pool if other is not line and other.open is not None]
                    try:
                        connection: psycopg.Connection[Any] = line.guarded(line.ready, not others)
                    except LedgerUnusable:
                        line.abandon()
                        if not others or self._closed:
                            raise
                        may_open = False  # the server has no room for one more, so wait for an open one
                        continue
                    line.clean = False
                    result = self._done(line, connection, work, pool is self._writers)
                    line.clean = True
                    return result
                except BaseException:
                    line.tidy()
                    line.clean = True
                    raise
                finally:
                    line.holder = None

    def _done(
        self, line: _Connection, connection: psycopg.Connection[Any], work: Callable[[_Cursor], Result], writes: bool
    ) -> Result:
        """Call a function, in a transaction if it writes."""
        if self._closed:
            line.disconnect()
            raise LedgerUnusable(self.location, "This ledger object was closed. Open the ledger again.")
        cursor = _Cursor(line, connection, self.statements.add_entry)
        if not writes:
            return work(cursor)
        line.guarded(lambda: connection.execute(_BEGIN, prepare=False))
        result = work(cursor)
        self._check_process()
        line.commit(connection, cursor)
        return result

    def _chosen(self, pool: list[_Connection], may_open: bool) -> _Connection:
        """Return the connection to wait for: a free one, first of all one with an unfinished transaction."""
        opened = [connection for connection in pool if connection.open is not None]
        free = [connection for connection in opened if not connection.lock.locked()]
        if free:
            return min(free, key=lambda connection: connection.clean)
        if may_open:
            for connection in pool:
                if connection.open is None and not connection.lock.locked():
                    return connection
        candidates = opened or pool
        return candidates[next(self._turns) % len(candidates)]

    def _connections(self) -> list[_Connection]:
        return [*self._writers, *self._readers]

    def _is_asking(self, thread: int) -> bool:
        return any(line.holder == thread and line.lock.locked() for line in self._writers)

    def _check_usable(self) -> None:
        """Refuse a closed ledger, a foreign process, and a thread inside a transaction."""
        if self._closed:
            raise LedgerUnusable(self.location, "This ledger object was closed. Open the ledger again.")
        self._check_process()
        self.check_not_asking()

    def _check_process(self) -> None:
        if os.getpid() != self._address.process:
            raise LedgerUnusable(self.location, "This process was forked during a query. Fork between queries.")

    def _make(self, must_exist: bool) -> None:
        """Recognise the tables, or create them; one process at a time."""
        found = self._use(self._readers, self._format)
        if found is None and must_exist:
            raise LedgerUnusable(self.location, "This database has no ledger. Check its name, or create the ledger.")
        schema.check_format(self.location, self.transact(self._made) if found is None else found)

    def _made(self, cursor: Cursor) -> int:
        """Create the tables unless another process has done so, and return their format."""
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (schema.APPLICATION_ID,))
        found = self._format(cursor)
        if found is None:
            cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            for statement in self.statements.create:
                cursor.execute(statement)
            cursor.execute(self.statements.put_setting, ("format", str(schema.FORMAT)))
        return schema.FORMAT if found is None else found

    def _format(self, cursor: Cursor) -> int | None:
        """Return the format of the tables, or None if there are none."""
        query = "SELECT to_regclass(%s) IS NOT NULL, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s)"
        known, taken = cursor.execute(query, (f"{SCHEMA}.settings", SCHEMA)).fetchone() or (False, False)
        if not taken:
            return None
        row = cursor.execute(self.statements.setting, ("format",)).fetchone() if known else None
        if row is None or not str(row[0]).isdecimal():
            raise LedgerUnusable(self.location, f"Its schema {SCHEMA} is not a ledger.")
        return int(row[0])

    def _read(self, address: str, timeout: float) -> tuple[str, Callable[[], psycopg.Connection[Any]]]:
        """Return the address without its password, for messages, and a function that connects."""
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
                "like postgresql://user@host:5432/database, with special characters as %40",
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

        def connect() -> psycopg.Connection[Any]:  # a reference to this object would keep it alive
            connection: psycopg.Connection[Any] = driver.connect(address, autocommit=True, **options)
            return connection

        return location, connect


_open_servers: weakref.WeakSet[PostgresServer] = weakref.WeakSet()
_forking = Forking(lambda: [line for server in list(_open_servers) for line in server._connections()])


def _after_fork_in_child() -> None:
    for server in list(_open_servers):
        server._address.abandoned = set()
        asking = server._is_asking(threading.get_ident())
        for connection in server._connections():
            connection.cross_fork(asking)
        if not asking:
            server._address.process = os.getpid()
    _forking.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking.begin, after_in_parent=_forking.end, after_in_child=_after_fork_in_child)
