"""Transactions that the threads of a process share.

A durable commit costs one synchronisation of the disk for any number of queries. While one thread waits for
the disk, the others queue up, and the next one takes the whole queue into its transaction. A single thread waits for
nobody.

An exception from outside may hit the leading thread at any line, so nobody depends on it. A request stays in the queue
until it is done, the leader's lock is released in any case, and waiting threads check from time to time whether there
is a leader. If not, the next one repeats all that is left, and `Work` must recognise the requests that were stored by
then.

Signal handlers, and so a ``KeyboardInterrupt``, run in the main thread. It therefore never queues and never leads: an
interrupt hits its own request only.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeAlias, TypeVar

from thresholdout.errors import LedgerError
from thresholdout.ledger.database import Cursor, Database

__all__ = ["GroupCommit"]

Request = TypeVar("Request")


Work: TypeAlias = Callable[[Cursor, Sequence[Request]], None]


_POLL: Final = 0.02
"""Seconds after which waiting threads check the queue themselves, in case that nobody is left to wake them."""


class _Waiting(Generic[Request]):
    """A request in a queue."""

    __slots__ = ("done", "error", "gate", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.done = False
        self.error: LedgerError | None = None
        self.gate = threading.Lock()
        self.gate.acquire()

    def wake(self) -> None:
        """Let it check whether it is done or the first."""
        with suppress(RuntimeError):  # it was woken already
            self.gate.release()


class _Queue(Generic[Request]):
    """Requests that can share transactions, and the leader's lock."""

    __slots__ = ("lead", "waiting")

    def __init__(self) -> None:
        self.lead = threading.Lock()
        self.waiting: deque[_Waiting[Request]] = deque()

    def is_turn_of(self, waiting: _Waiting[Request], woken: bool) -> bool:
        """Whether a request is the first, or there is no leader to wake it."""
        with suppress(IndexError):
            return self.waiting[0] is waiting or not (woken or self.lead.locked())
        return True


class GroupCommit(Generic[Request]):
    """Runs requests in transactions of a database; requests of several threads share one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queues: dict[str, _Queue[Request]] = {}
        _all.add(self)

    def run(self, request: Request, work: Work[Request], about: str) -> None:
        """Return when a request's transaction is stored durably."""
        self._database.check_not_asking()
        if threading.get_ident() == threading.main_thread().ident:
            self._database.transact(lambda cursor: work(cursor, (request,)))
            return
        queue = self._queues.setdefault(about if self._database.on_server else "", _Queue())
        mine = _Waiting(request)
        woken = True
        try:
            queue.waiting.append(mine)
            while not mine.done:
                if queue.is_turn_of(mine, woken):
                    with queue.lead:
                        if not mine.done:
                            self._lead(queue, work)
                else:
                    woken = mine.gate.acquire(timeout=_POLL)
        finally:
            with suppress(ValueError):
                queue.waiting.remove(mine)
            with suppress(IndexError):  # the next to lead
                queue.waiting[0].wake()
        if mine.error is not None:
            raise mine.error

    def _lead(self, queue: _Queue[Request], work: Work[Request]) -> None:
        """Run all requests that wait when the transaction begins."""
        batch: list[_Waiting[Request]] = []
        failure: LedgerError | None = None

        def do(cursor: Cursor) -> None:
            batch.extend(queue.waiting)
            work(cursor, [waiting.request for waiting in batch])

        try:
            self._database.transact(do)
        except LedgerError as error:
            failure = error
        for waiting in batch or list(queue.waiting):
            if failure is not None:
                waiting.error = _same(failure)
            waiting.done = True
            with suppress(ValueError):
                queue.waiting.remove(waiting)
            waiting.wake()

    def _reset(self) -> None:
        """Empty the queues, in a forked process, which does not have the waiting threads."""
        self._queues = {}


def _same(error: LedgerError) -> LedgerError:
    """Return a copy of an error for each thread, since raising one changes its traceback."""
    kind, arguments = error.__reduce__()
    copy: LedgerError = kind(*arguments)
    return copy


_all: weakref.WeakSet[GroupCommit[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for group in list(_all):
        group._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
