"""The threads that work on submissions: so many at once, so many that wait for them, and no more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from thresholdout.service.refusals import ServiceRefused

__all__ = ["Crew"]

Result = TypeVar("Result")


class Crew:
    """Threads that do jobs.

    Parameters
    ----------
    at_once : int
        How many jobs are done at the same time.
    most_waiting : int
        How many more may wait.

    Examples
    --------
    >>> crew = Crew(at_once=2, most_waiting=8)
    >>> crew.start(lambda: 3).result()
    3
    >>> crew.stop()
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
