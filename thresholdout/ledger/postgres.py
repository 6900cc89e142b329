"""A ledger's tables on a PostgreSQL server: making them, and the connections that a process has to it.

Writers and readers have connections of their own, and transactions about different guards run at the same time: a
guard that another process keeps locked makes those wait who ask this guard, and nobody else.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError, LedgerUnusable, ThresholdoutError
from thresholdout.ledger import schema
from thresholdout.ledger.database import Cursor, Database
from thresholdout.ledger.lease import Claim, Forking, Waiting
from thresholdout.ledger.postgres_line import Line, Site, Use

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresServer"]

SCHEMA: Final = "thresholdout"
"""Name of the schema that holds the tables."""

_LINES: Final = 16
"""Connections that a process opens at most to write, and as many to read."""


class _Pool:
    """Lines, each of which one call at a time may use."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.waiting = Waiting()


class PostgresServer(Database):
    """A database of a PostgreSQL server, and the connections to it that all threads share.

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
    same way. After any of them, give `thresholdout.ledger.Ledger.verify` the checkpoint that was kept elsewhere before
    anybody asks; where it is not in the history, close the guard.

    Examples
    --------
    >>> PostgresServer("postgresql://guard:secret@/answers?host=/nowhere", must_exist=True, timeout=1)
    Traceback (most recent call last):
    thresholdout.errors.LedgerUnusable: ledger postgresql://guard@/answers?host=/nowhere: it can't be reached: ...
    """

    on_server = True

    def __init__(self, address: str, *, must_exist: bool, timeout: float) -> None:
        super().__init__()
        self._driver = _driver()
        self.location, connect = self._read(address, timeout)
        self.statements = schema.statements("postgresql")
        self._site = Site(self.location, self._driver, connect, timeout)
        self._writers = _Pool()
        self._readers = _Pool()
        self._closed = False
        _open_servers.add(self)
        try:
            self._make(must_exist)
        except BaseException:
            self.close()
            raise

    def reading(self) -> AbstractContextManager[Cursor]:
        """Lend a cursor for one statement; see `Database.reading`."""
        return Use(self, Claim(sys._getframe(1)), None)

    def transaction(self) -> AbstractContextManager[Cursor]:
        """Lend a cursor for statements that are stored together, durably, or not at all; see `Database.transaction`."""
        return Use(self, Claim(sys._getframe(1)), self.statements.add_entry)

    def close(self) -> None:
        """Close the connections for good; waits until nobody uses them."""
        if os.getpid() != self._site.process:
            self._closed = True  # they are the parent's
            return
        self.check_not_asking()
        self._closed = True
        for pool in (self._writers, self._readers):
            for line in list(pool.lines):
                claim = Claim(sys._getframe())
                line.lease.take(claim)
                line.disconnect()
                line.lease.give_back(claim)

    def __del__(self) -> None:
        for name in ("_writers", "_readers"):
            pool = getattr(self, name, None)
            for line in [] if pool is None else pool.lines:
                line.disconnect()

    def lend(self, claim: Claim, writes: bool) -> tuple[Line, psycopg.Connection[Any], Claim]:
        """Return a line, its connection, on which nothing is going on, and the call's claim that has the line."""
        self._check_usable()
        self._end_what_was_lost(claim)
        pool = self._writers if writes else self._readers
        may_open = True
        while True:
            line = self._free(pool, claim, may_open)
            others = [other for other in list(pool.lines) if other is not line and other.connection is not None]
            try:
                return line, self._prepared(line, claim, writes, patient=not others), claim
            except LedgerUnusable as error:
                failure = error
            following = claim.again()
            line.abandon()
            pool.lines.remove(line)
            self.give_back(line, claim)
            if not others or self._closed:
                raise failure
            claim, may_open = following, False  # the server has no room for one more, so another has to do

    def _prepared(self, line: Line, claim: Claim, writes: bool, patient: bool) -> psycopg.Connection[Any]:
        """Return the connection of a line that a claim has, on which nothing is going on."""
        if not claim.clean:
            line.abandon()
        connection: psycopg.Connection[Any] = line.guarded(line.ready, patient)
        if self._closed:
            line.disconnect()
            raise LedgerUnusable(self.location, "it is closed")
        if writes:
            self._asking[claim.thread] = claim
        return connection

    def give_back(self, line: Line | None, claim: Claim) -> None:
        """Let others have a line."""
        if self._asking.get(claim.thread) is claim:
            del self._asking[claim.thread]
        if line is None:
            claim.end()
        else:
            line.lease.give_back(claim)
        for pool in (self._writers, self._readers):
            pool.waiting.wake()

    def _free(self, pool: _Pool, claim: Claim, may_open: bool) -> Line:
        """Return a line whose lease the claim has; a new one if none is free, and it may be opened."""
        found: list[Line] = []

        def attempt(thorough: bool) -> bool:
            for line in list(pool.lines):
                if line.lease.try_take(claim, thorough):
                    found.append(line)
                    return True
            if (pool.lines and not may_open) or len(pool.lines) >= _LINES or _forking.is_under_way():
                return False
            line = Line(self._site)
            line.lease.try_take(claim)
            pool.lines.append(line)
            if _forking.is_under_way():  # it may not have seen this one
                pool.lines.remove(line)
                return False
            found.append(line)
            return True

        pool.waiting.until(claim, attempt)
        return found[0]

    def _end_what_was_lost(self, claim: Claim) -> None:
        """Leave the connections of calls that are over without having said so, since they may keep a guard locked."""
        for pool in (self._writers, self._readers):
            for line in list(pool.lines):
                if line.lease.is_lost():
                    mine = claim.again()
                    if line.lease.try_take(mine):
                        line.abandon()
                        line.lease.give_back(mine)

    def _check_usable(self) -> None:
        """Refuse what this process, or this thread, may not do now."""
        if self._closed:
            raise LedgerUnusable(self.location, "it is closed")
        if os.getpid() != self._site.process:
            raise LedgerUnusable(
                self.location, "this process was forked in the middle of a question; fork outside of one"
            )
        self.check_not_asking()

    def _make(self, must_exist: bool) -> None:
        """Recognise the tables, or make them; one process at a time."""
        with self.reading() as cursor:
            found = self._format(cursor)
        if found is None and must_exist:
            raise LedgerUnusable(self.location, "there is no ledger in this database; check its name, or create it")
        if found is None:
            with self.transaction() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (schema.APPLICATION_ID,))
                found = self._format(cursor)  # another process may have been faster
                if found is None:
                    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                    for statement in self.statements.create:
                        cursor.execute(statement)
                    cursor.execute(self.statements.put_setting, ("format", str(schema.FORMAT)))
                    return
        schema.check_format(self.location, found)

    def _format(self, cursor: Cursor) -> int | None:
        """Return the format of the tables, or None when there are none."""
        query = "SELECT to_regclass(%s) IS NOT NULL, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = %s)"
        known, taken = cursor.execute(query, (f"{SCHEMA}.settings", SCHEMA)).fetchone() or (False, False)
        if not taken:
            return None
        row = cursor.execute(self.statements.setting, ("format",)).fetchone() if known else None
        if row is None or not str(row[0]).isdecimal():
            raise LedgerUnusable(self.location, f"its schema {SCHEMA} is not a ledger")
        return int(row[0])

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


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ThresholdoutError(
            "ledgers on PostgreSQL need the library psycopg: pip install 'thresholdout[postgres]'"
        ) from None
    return psycopg


_open_servers: weakref.WeakSet[PostgresServer] = weakref.WeakSet()


def _lines(server: PostgresServer) -> list[Line]:
    return [*server._writers.lines, *server._readers.lines]


_forking = Forking(lambda: [line.lease for server in list(_open_servers) for line in _lines(server)])


def _after_fork_in_child() -> None:
    """Let go of the parent's connections without a word to the server, which would end the parent's session."""
    for server in list(_open_servers):
        server._site.abandoned = set()
        for pool in (server._writers, server._readers):
            pool.waiting.clear()
        asking = bool(server._asking)
        for line in _lines(server):
            line.forget()
            if line.connection is not None:
                nowhere = os.open(os.devnull, os.O_RDWR)
                with suppress(Exception):
                    os.dup2(nowhere, line.connection.fileno())
                os.close(nowhere)
                if not asking:
                    line.connection.close()
                    line.connection = None
        if not asking:
            server._site.process = os.getpid()
    _forking.end(in_child=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking.begin, after_in_parent=_forking.end, after_in_child=_after_fork_in_child)
