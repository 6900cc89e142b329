"""The threads that work on submissions, and what is known of those that run longer than their requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from thresholdout.errors import ThresholdoutError
from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from thresholdout.service.store.submissions import Submissions

__all__ = ["LEASE", "Running", "WorkerPool"]

LEASE: Final = 10.0
"""Seconds for which a row is believed."""

_AGAIN: Final = 3.0
"""Seconds after which it is said again."""

_log: Final = logging.getLogger("thresholdout.service")


class Running:
    """The submissions on which this process works while nobody waits for them.

    Parameters
    ----------
    submissions : Submissions
        Where it is said.
    """

    def __init__(self, submissions: Submissions) -> None:
        self._submissions = submissions
        self._work: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, id: str, work: Future[Any]) -> None:
        """Say that a submission is worked on until its work is done."""
        with self._lock:
            self._work[id] = work
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._repeat, name="running submissions", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Say nothing any more."""
        self._stopped.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _repeat(self) -> None:
        """Say it again and again until nothing is left."""
        while not self._stopped.wait(_AGAIN):
            with self._lock:
                self._work = {id: work for id, work in self._work.items() if not work.done()}
                ids = list(self._work)
                if not ids:
                    self._thread = None
                    return
            try:
                self._submissions.put_off(ids, time.time() + LEASE)
            except ThresholdoutError as error:
                _log.warning("what is running was not stored: %s", type(error).__name__)


Result = TypeVar("Result")


class WorkerPool:
    """Threads that do jobs.

    Parameters
    ----------
    at_once : int
        How many jobs are done at the same time.
    most_waiting : int
        How many more may wait.

    Examples
    --------
    >>> pool = WorkerPool(at_once=2, most_waiting=8)
    >>> pool.start(lambda: 3).result()
    3
    >>> pool.stop()
    """

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="submissions")
        self._room = threading.BoundedSemaphore(at_once + most_waiting)
        self._stopping = False

    def start(self, job: Callable[[], Result]) -> Future[Result]:
        """Let a thread do a job as soon as one is free.

        Raises
        ------
        ServiceRefused
            "busy" when too many wait, "stopping" when nothing is begun any more.
        """
        if self._stopping:
            raise ServiceRefused("stopping", retry_after=5)
        if not self._room.acquire(blocking=False):
            raise ServiceRefused("busy", retry_after=1)
        try:
            future = self._threads.submit(job)
        except RuntimeError:  # it was stopped a moment ago
            self._room.release()
            raise ServiceRefused("stopping", retry_after=5) from None
        future.add_done_callback(lambda _: self._room.release())
        return future

    def stop(self) -> None:
        """Begin nothing any more, and wait for what was begun; what waits for a thread is dropped."""
        self._stopping = True
        self._threads.shutdown(wait=True, cancel_futures=True)
