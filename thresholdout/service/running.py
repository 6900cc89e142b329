"""Saying in the store, as long as it is true, that somebody works on a submission.

A process that was killed says nothing any more, so a row is only believed for a few seconds. No process has to know of
the others, and none has anything to do when it starts.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    from thresholdout.service.store.submissions import Submissions

__all__ = ["LEASE", "Running"]

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
