"""Delivery of checkpoints to a witness, in a thread beside the answers.

An answer is stored and returned; its checkpoint follows to the witness at once. Waiting for the witness would make each
answer as slow and unreliable as the witness, for little gain: any missing checkpoint reveals an older copy, so only a
copy without the answers of the last moments before a crash stays undetected. While a witness fails, answers go on; the
failure is in `Witnessing.status`, which the service shows under ``/ready``, and checkpoints are sent again until they
are kept.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from thresholdout.service.receipts.errors import WitnessUnusable
from thresholdout.service.receipts.receipt import written_time
from thresholdout.service.receipts.witness import checkpoint_line

if TYPE_CHECKING:
    from thresholdout.service.receipts.witness import Witness

__all__ = ["MOST_LINES", "WitnessStatus", "Witnessing", "in_parts"]

_log: Final = logging.getLogger("thresholdout.service")

# Lines that are appended at once.
MOST_LINES: Final = 100

# Seconds before a failed delivery is repeated: twice as long after each failure, up to the longest.
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True, slots=True)
class WitnessStatus:
    """Whether a witness keeps up: holdouts whose last checkpoint it lacks, and the time and reason of a failure."""

    waiting: int
    failing_since: float | None
    reason: str


class Witnessing:
    """Sender of the last checkpoint of each history to a witness."""

    def __init__(self, witness: Witness, ledger: str) -> None:
        self._witness = witness
        self._ledger = ledger
        self._changed = threading.Condition()
        self._waiting: dict[str, tuple[int, str]] = {}
        self._told: dict[str, int] = {}
        self._telling = 0
        self._failing_since: float | None = None
        self._reason = ""
        self._closing = False
        self._last_line = ""
        self._thread: threading.Thread | None = None

    @property
    def last_line(self) -> str:
        """The last line that the witness kept; empty before the first."""
        return self._last_line

    def note(self, guard: str, query: int, checkpoint: str) -> None:
        """Queue a checkpoint for the witness; return at once."""
        with self._changed:
            if query <= self._told.get(guard, -1) or query <= self._waiting.get(guard, (-1, ""))[0]:
                return
            self._waiting[guard] = (query, checkpoint)
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._tell, name="witness", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def status(self) -> WitnessStatus:
        """Return whether the witness keeps up."""
        with self._changed:
            return WitnessStatus(len(self._waiting) + self._telling, self._failing_since, self._reason)

    def settle(self, seconds: float) -> bool:
        """Wait at most so many seconds until everything is sent; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._telling, seconds)

    def close(self, seconds: float = 5.0) -> bool:
        """Send the queue within so many seconds, and stop; return whether everything was sent."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)
        with self._changed:
            return not self._waiting and not self._telling

    def _tell(self) -> None:
        """Send the queue again and again."""
        pause = _FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closing)
                if not self._waiting:
                    return
                part = dict(list(self._waiting.items())[:MOST_LINES])
                for guard in part:
                    del self._waiting[guard]
                self._telling = len(part)
            failure = self._told_now(part)
            if (failure is None) is not (self._failing_since is None):
                _log.warning("the witness %s", "is told again" if failure is None else f"was not told: {failure}")
            with self._changed:
                self._telling = 0
                if failure is None:
                    pause = _FIRST_PAUSE
                    self._told.update((guard, query) for guard, (query, _) in part.items())
                    self._failing_since, self._reason = None, ""
                else:
                    self._waiting = {**part, **self._waiting}  # entries of the queue are later
                    self._failing_since = self._failing_since or time.time()
                    self._reason = failure
                self._changed.notify_all()
                if failure is not None:
                    if self._closing:
                        return
                    self._changed.wait_for(lambda: self._closing, pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)

    def _told_now(self, part: dict[str, tuple[int, str]]) -> str | None:
        """Send checkpoints; return the reason of a failure, or None."""
        now = written_time(time.time())
        lines = [
            checkpoint_line(self._ledger, guard, query, checkpoint, now) for guard, (query, checkpoint) in part.items()
        ]
        try:
            self._witness.append(lines)
        except WitnessUnusable as error:
            return error.reason
        except Exception as error:
            return f"It failed with {type(error).__name__}."
        self._last_line = lines[-1]
        return None


def in_parts(lines: list[str]) -> list[list[str]]:
    """Return lines in parts that may be appended at once.

    Examples
    --------
    >>> [len(part) for part in in_parts(["line"] * 250)]
    [100, 100, 50]
    """
    return [lines[start : start + MOST_LINES] for start in range(0, len(lines), MOST_LINES)]
