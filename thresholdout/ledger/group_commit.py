"""Transactions that the threads of a process share.

A durable commit costs the disk a synchronisation, whatever the number of questions in it. While one thread
waits for the disk, the others queue up; the next of them takes the whole queue into its transaction. A lone
thread waits for nobody.

Signal handlers, and so a ``KeyboardInterrupt``, run in the main thread. It therefore never queues and never works
for others: an interrupt hits its own request only, which is in no queue that it could leave in disorder.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from thresholdout.errors import LedgerError
from thresholdout.ledger.database import Cursor, Database

__all__ = ["GroupCommit"]

Request = TypeVar("Request")


Work: TypeAlias = Callable[[Cursor, Sequence[Request]], None]


class _Waiting(Generic[Request]):
    """A request in the queue."""

    __slots__ = ("done", "error", "request", "wake")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.done = False
        self.error: LedgerError | None = None
        self.wake = threading.Lock()
        self.wake.acquire()


class GroupCommit(Generic[Request]):
    """Runs requests in transactions of a database, several at a time when several threads have one.

    Parameters
    ----------
    database : Database
        Where the transactions are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._runner: int | None = None
        self._mutex = threading.Lock()
        self._queue: list[_Waiting[Request]] = []
        self._led = False
        _all.add(self)

    def run(self, request: Request, work: Work[Request]) -> None:
        """Return when a request's transaction is stored durably.

        Parameters
        ----------
        request : object
            What is to be done.
        work : callable
            Does several requests inside a transaction; the same for all. A request that fails alone must keep its
            error to itself; what is raised here takes the transaction back, with all requests in it.

        Raises
        ------
        LedgerError
            The transaction failed, or the calling thread is in the middle of one; nothing was stored.
        """
        me = threading.get_ident()
        if self._runner == me:
            raise LedgerError(self._database.location, "was used by the mechanism that it asks; nothing was stored")
        if me == threading.main_thread().ident:
            with self._database.transaction() as cursor:
                self._run(cursor, (request,), work)
            return
        waiting = _Waiting(request)
        with self._mutex:
            self._queue.append(waiting)
            leads = not self._led
            self._led = True
        if not leads:
            waiting.wake.acquire()  # until it is done, or its thread is the next to lead
        if not waiting.done:
            self._lead(waiting, work)
        if waiting.error is not None:
            raise waiting.error

    def _run(self, cursor: Cursor, requests: Sequence[Request], work: Work[Request]) -> None:
        self._runner = threading.get_ident()
        try:
            work(cursor, requests)
        finally:
            self._runner = None

    def _lead(self, mine: _Waiting[Request], work: Work[Request]) -> None:
        """Do all requests that wait when the transaction begins, and appoint the next leader."""
        batch: list[_Waiting[Request]] = []
        done: list[_Waiting[Request]] = [mine]
        try:
            with self._database.transaction() as cursor:
                batch = self._take()
                self._run(cursor, [waiting.request for waiting in batch], work)
            done = batch
        except LedgerError as error:
            done = batch or self._take()
            for waiting in done:
                waiting.error = _same(error)
        finally:
            # After an error that is none of the ledger's, those of the others who were in the batch try again.
            with self._mutex:
                again = [waiting for waiting in batch if waiting not in done]
                self._queue = again + [waiting for waiting in self._queue if waiting not in done]
                successor = self._queue[0] if self._queue else None
                self._led = successor is not None
            for waiting in done:
                waiting.done = True
                waiting.wake.release()
            if successor is not None:
                successor.wake.release()

    def _take(self) -> list[_Waiting[Request]]:
        with self._mutex:
            taken, self._queue = self._queue, []
        return taken

    def _reset(self) -> None:
        """Start with an empty queue, as in a process that is forked off: those who wait are not in it."""
        self._mutex = threading.Lock()
        self._queue = []
        self._led = False


def _same(error: LedgerError) -> LedgerError:
    """Return an error of its own for each thread, since raising one changes its traceback."""
    kind, arguments = error.__reduce__()
    copy: LedgerError = kind(*arguments)
    copy.__suppress_context__ = True
    return copy


_all: weakref.WeakSet[GroupCommit[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for group in list(_all):
        group._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
