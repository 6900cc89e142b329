"""Processes that wait for one file, in the order in which they came.

SQLite lets whoever comes at the right moment have the file. A process that asks without a pause has just given it back
when it wants it again, while the others sleep longer and longer between their tries, and can starve. So whoever finds
the file taken draws a number, and everybody who comes then stands behind.

Numbers are drawn from a small file beside the other, which is there only while somebody waits. Who has drawn a number
keeps that byte of it locked, and is the first when no byte before is locked by another process. A process that dies
loses its lock, and one that hangs is passed after a while. Nothing but fairness depends on any of this: SQLite's own
lock decides who writes.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

__all__ = ["FileQueue"]

_PAUSE: Final = 0.001
"""Seconds between two looks, on average."""

_PATIENCE: Final = 0.2
"""Seconds after which the file is tried out of turn, in case that the first one hangs."""

_DIGITS: Final = 8
_FIRST: Final = 16
"""Where the locked bytes begin; before them are the last number, and the byte that is locked to draw one."""


class FileQueue:
    """Those who wait for a file; for one thread at a time.

    Parameters
    ----------
    file : path
        The file that is waited for.
    """

    def __init__(self, file: Path) -> None:
        self._path = f"{file}-queue"
        self._place: _Place | None = None

    def wait(self, attempt: Callable[[], bool], seconds: float) -> bool:
        """Make an attempt when it is this process's turn, until one succeeds.

        Parameters
        ----------
        attempt : callable
            Tries to take the file, does not wait, and says whether it has it.
        seconds : float
            After which to give up.

        Returns
        -------
        bool
            Whether an attempt succeeded.
        """
        self.leave()  # a place may be left when an interrupt hits somebody who waits
        if not os.path.lexists(self._path) and attempt():
            return True
        began = passed = time.monotonic()
        try:
            self._place = _Place.at_the_end(self._path)
            while True:
                now = time.monotonic()
                if self._place is None or self._place.is_first() or now > passed + _PATIENCE:
                    if attempt():
                        return True
                    passed = now
                if now > began + seconds:
                    return False
                time.sleep(random.uniform(0.5, 1.5) * _PAUSE)
        finally:
            self.leave()

    def leave(self) -> None:
        """Give up a place, and clear the file away when nobody stands behind."""
        place, self._place = self._place, None
        if place is not None:
            place.leave()


class _Place:
    """A number that was drawn."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._number = 0

    @classmethod
    def at_the_end(cls, path: str) -> _Place | None:
        """Draw a number; None where that can't be done, and everybody tries as best they can."""
        if sys.platform == "win32":
            return None
        for _ in range(100):
            try:
                place = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            except OSError:
                return None
            if place._draw():
                return place
            place._close()
            time.sleep(random.uniform(0.5, 1.5) * _PAUSE)
        return None

    def _draw(self) -> bool:
        if not self._lock(_DIGITS, 1) or not self._is_there():
            return False
        try:
            number = int.from_bytes(os.pread(self._descriptor, _DIGITS, 0), "big") + 1
            os.pwrite(self._descriptor, number.to_bytes(_DIGITS, "big"), 0)
        except OSError:
            return False
        self._number = number
        drawn = self._lock(_FIRST + number, 1)
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _DIGITS)
        return drawn

    def is_first(self) -> bool:
        """Whether nobody in another process has a smaller number."""
        return self._number == 1 or self._lock(_FIRST + 1, self._number - 1)

    def leave(self) -> None:
        """Let the next one be first."""
        if self._lock(_DIGITS, 1) and self._lock(_FIRST + self._number + 1, 0) and self._is_there():
            with suppress(OSError):
                os.unlink(self._path)
        self._close()

    def _lock(self, start: int, length: int) -> bool:
        """Lock some bytes unless another process has one of them; a length of 0 goes on for ever."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError:
            return False
        return True

    def _is_there(self) -> bool:
        """Whether the file has its name still, and was not cleared away meanwhile."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except OSError:
            return False

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)  # and with it all locks
