"""One connection to a PostgreSQL server, which survives failures, and what is lent of it.

A connection can fail when nobody can tell whether its last commit was done. The server decides that at the latest
when it lets the connection's session end. So whatever was left behind in an unknown condition is ended, and waited
for, before anything else is done; afterwards an entry with the digest that was to be stored is there, or never will
be.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from thresholdout.errors import LedgerUnusable
from thresholdout.ledger.database import Cursor
from thresholdout.ledger.lease import Claim, Lease

if TYPE_CHECKING:
    import psycopg

__all__ = ["Line", "LineCursor", "Site", "Use"]

_REASONS: Final[dict[str, str]] = {
    "55P03": "another process keeps it locked; try again",
    "57014": "it took too long, or was cancelled; try again",
    "40P01": "another process was in the way; try again",
    "40001": "another process was in the way; try again",
    "42501": "this role has not the rights that a ledger needs: to make the schema thresholdout once, then to use it, "
    "and to select, insert and update in its tables",
    "25006": "it can only be read; use the server that is written to",
    "53100": "the server's disk is full",
    "53300": "the server has no room for another connection; try again",
    "23505": "what it holds does not fit what was to be stored; verify its guards",
    "23001": "the database refused: what a ledger keeps never changes",
}
_LOST: Final = "the connection was lost; nothing was stored"
_UNREADABLE: Final = "it holds text that can't be read, and is damaged; its holdout should not be used again"
_SETTINGS: Final = (
    "SET search_path = thresholdout, pg_temp",
    "SET client_encoding = 'UTF8'",
    "SET client_min_messages = error",
    "SET extra_float_digits = 1",  # numbers come back exactly
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
"""What the server knows a connection by: its process, and when that started."""


@dataclass(slots=True)
class Site:
    """What all lines to a server share; refers to no line, so that whoever drops the server drops the lines."""

    location: str
    driver: Any
    open: Callable[[], psycopg.Connection[Any]]
    timeout: float
    process: int = field(default_factory=os.getpid)
    """The process that the connections belong to."""
    abandoned: set[Session] = field(default_factory=set)
    """Sessions that were left in an unknown condition, and must end first."""
    was_there: bool = False
    """Whether anybody could connect before."""


class Line:
    """One connection, which one call at a time may use.

    Parameters
    ----------
    site : Site
        The server.
    """

    def __init__(self, site: Site) -> None:
        self.lease = Lease()
        self.connection: psycopg.Connection[Any] | None = None
        self._site = site
        self._session: Session | None = None

    def ready(self, patient: bool) -> psycopg.Connection[Any]:
        """Return a connection on which no transaction is open.

        Parameters
        ----------
        patient : bool
            Whether to wait for a server that was there before.
        """
        self.tidy()  # a transaction may be left when an interrupt hits the handling of another one
        if self.connection is not None and _has_ended(self.connection):
            self.disconnect()
        return self._connected(patient)

    def tidy(self) -> None:
        """End an open transaction, or leave a connection on which something is still going on."""
        connection, driver = self.connection, self._site.driver
        if connection is None or os.getpid() != self._site.process:
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
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Leave a connection; nothing else is done until the server has ended its session."""
        if self._session is not None and self.connection is not None:
            self._site.abandoned.add(self._session)
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection."""
        connection, self.connection = self.connection, None
        if connection is not None and os.getpid() == self._site.process:
            connection.close()

    def forget(self) -> None:
        """In a process that was forked off: the connection and its session are the parent's."""
        self._session = None

    def commit(self, connection: psycopg.Connection[Any], cursor: LineCursor) -> None:
        """Commit, and find out whether it was done when that fails."""
        site = self._site
        done = None
        try:
            done = connection.execute("COMMIT", prepare=False).statusmessage
        except site.driver.Error:
            self.abandon()
        if done == "COMMIT":
            return
        if done is not None:  # a statement had failed, so the server took everything back
            raise LedgerUnusable(site.location, "the database refused a statement; nothing was stored")
        if cursor.last_entry is None:
            if not cursor.wrote:
                return
            raise LedgerUnusable(
                site.location, "the connection was lost while this was stored; look whether it was, or do it again"
            )
        guard_id, number, digest = cursor.last_entry
        if self._stored_digest(guard_id, number) != (digest,):
            raise LedgerUnusable(site.location, _LOST)

    def _stored_digest(self, guard_id: int, number: int) -> tuple[str] | None:
        """Look an entry up when the session that was to store it has ended, however often the connection is lost."""
        until = time.monotonic() + self._site.timeout
        while True:
            try:
                found: tuple[str] | None = self._connected(patient=True).execute(_STORED, (guard_id, number)).fetchone()
                return found
            except (LedgerUnusable, self._site.driver.Error):
                self.disconnect()
                if time.monotonic() > until:
                    break
        raise LedgerUnusable(
            self._site.location,
            "the connection was lost while an answer was stored, and the server does not come back: the answer "
            "did not leave, but may have been charged, and is in the history then; ask again with the same key",
        )

    def _connected(self, patient: bool) -> psycopg.Connection[Any]:
        """Return a connection, after the end of what was abandoned."""
        if self.connection is None:
            self.connection = _undisturbed(lambda: self._connect(patient))
        until = time.monotonic() + self._site.timeout
        for session in list(self._site.abandoned):
            self._end(session, self.connection, until)
        return self.connection

    def _end(self, session: Session, connection: psycopg.Connection[Any], until: float) -> None:
        """Wait until the server has ended a session, and with it decided about its last commit."""
        abandoned = self._site.abandoned
        while session in abandoned:
            if connection.execute(_END, session).fetchone() is None:
                abandoned.discard(session)
            elif time.monotonic() > until:
                raise LedgerUnusable(self._site.location, "a lost connection does not end on the server; try again")
            else:
                time.sleep(0.002)

    def _connect(self, patient: bool) -> psycopg.Connection[Any]:
        """Open a connection; a server that was there before may take some time to come back."""
        site = self._site
        until = time.monotonic() + (site.timeout if site.was_there and patient else 0.0)
        said = None
        while True:
            try:
                connection = site.open()
                break
            except site.driver.Error as error:
                if time.monotonic() > until:
                    said = " ".join(str(error).split())  # shows no password, and no statement was sent yet
            if said is not None:
                raise LedgerUnusable(site.location, f"it can't be reached: {said}")
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
                site.location,
                "the server runs with fsync = off, and would lose answers at a power failure; switch it on",
            )
        self._session = (process, started)
        site.was_there = True
        return connection

    def _set_timeouts(self, connection: psycopg.Connection[Any]) -> None:
        """Set how long statements may take; a shorter default can end the very statement that sets it."""
        site = self._site
        until = time.monotonic() + site.timeout
        for setting, seconds in (("statement_timeout", 10 * site.timeout), ("lock_timeout", site.timeout)):
            while True:
                try:
                    connection.execute(f"SET {setting} = {max(1, round(1000 * seconds))}")
                    break
                except site.driver.errors.QueryCanceled:
                    if time.monotonic() > until:
                        raise

    def reason(self, error: Exception) -> str:
        """Return what happened and what to do, in words of this package; the server's own can quote a row."""
        if isinstance(error, UnicodeError):
            return _UNREADABLE
        code = getattr(error, "sqlstate", None)
        if code == "22021":
            return f"{_UNREADABLE} ({code})"
        if code is None or (code not in _REASONS and code[:2] in ("08", "57")):
            return _LOST
        return f"{_REASONS.get(code, 'the database failed; its own log says more')} ({code})"

    def guarded(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call the driver; its errors become this package's, raised where no other error is being handled."""
        try:
            return method(*arguments)
        except (self._site.driver.Error, UnicodeError) as error:
            reason = self.reason(error)
        raise LedgerUnusable(self._site.location, reason)


class LineCursor:
    """A cursor that remembers whether it wrote, and the last entry that it added."""

    def __init__(self, line: Line, connection: psycopg.Connection[Any], add_entry: str | None) -> None:
        self._line = line
        self._cursor = connection.cursor()
        self._add_entry = add_entry
        self.wrote = False
        self.last_entry: tuple[int, int, str] | None = None

    @property
    def rowcount(self) -> int:
        """How many rows the last statement touched."""
        return self._cursor.rowcount

    def execute(self, statement: Any, parameters: Sequence[Any] = (), /) -> LineCursor:
        """Run a statement."""
        self.wrote = self.wrote or not statement.startswith("SELECT")
        if statement == self._add_entry:
            self._remember(parameters)
        self._line.guarded(self._cursor.execute, statement, parameters or None)
        return self

    def executemany(self, statement: Any, rows: Iterable[Sequence[Any]], /) -> LineCursor:
        """Run a statement for each row."""
        self.wrote = True
        adding = statement == self._add_entry
        self._line.guarded(self._cursor.executemany, statement, map(self._remember, rows) if adding else rows)
        return self

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._line.guarded(self._cursor.fetchone)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        rows: list[Any] = self._line.guarded(self._cursor.fetchall)
        return rows

    def _remember(self, row: Sequence[Any]) -> Sequence[Any]:
        self.last_entry = (row[0], row[1], row[-1])
        return row


class Lender(Protocol):
    """What lends lines to calls."""

    def lend(self, claim: Claim, writes: bool) -> tuple[Line, psycopg.Connection[Any], Claim]:
        """Return a line, its connection, on which nothing is going on, and the call's claim that has the line."""

    def give_back(self, line: Line | None, claim: Claim) -> None:
        """Let others have a line."""


class Use:
    """A cursor that is lent to a call.

    Parameters
    ----------
    server : Lender
        Where lines come from.
    claim : Claim
        The call's.
    add_entry : str or None
        The statement that adds an entry; None for a use that only reads.
    """

    def __init__(self, server: Lender, claim: Claim, add_entry: str | None) -> None:
        self._server = server
        self._claim = claim
        self._add_entry = add_entry
        self._line: Line | None = None
        self._connection: Any = None
        self._cursor: LineCursor | None = None

    def __enter__(self) -> Cursor:
        try:
            writes = self._add_entry is not None
            line, connection, self._claim = self._server.lend(self._claim, writes)
            self._line, self._connection = line, connection
            self._cursor = cursor = LineCursor(line, connection, self._add_entry)
            if writes:
                line.guarded(
                    lambda: connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", prepare=False)
                )
        except BaseException:
            self._end()
            raise
        return cursor

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None and self._add_entry is not None and self._line is not None and self._cursor is not None:
                self._line.commit(self._connection, self._cursor)
        finally:
            self._end()

    def _end(self) -> None:
        """Give the line back, without a transaction."""
        line = self._line
        if line is not None and line.connection is self._connection:
            line.tidy()
        self._server.give_back(line, self._claim)


def _has_ended(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has closed a connection that nobody used; does not wait."""
    try:
        connection.pgconn.consume_input()  # its last words
        connection.pgconn.consume_input()
    except Exception:
        return True
    return False


def _undisturbed(connect: Callable[[], psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
    """Connect where no signal handler runs, so that no interrupt leaves a connection that nobody knows of."""
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
        # A `threading.Thread` waits for its start with a condition, which an interrupt leaves in disorder.
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
