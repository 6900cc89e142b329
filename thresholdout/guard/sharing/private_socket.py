"""A socket in a folder of its own, which only this user can reach.

Its messages are unpickled, which may run any code. The key that both sides prove to know does not suffice to keep
others out: every pickle of a guard has it, such as a file of ``joblib.dump`` that others may be able to read. Hence no
network, not even the loopback, and a check of the folder on both sides before each use.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from thresholdout.errors import SharingError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

__all__ = ["check_private", "hung_up_after", "listen", "remove"]

_LONGEST: Final = 103
"""Bytes of a socket's name: the limit of macOS is 103, that of Linux 107."""

_NAME: Final = "listener"


def listen(backlog: int) -> Listener:
    """Listen on a new socket in a new folder; ``backlog`` connections may wait."""
    from multiprocessing.connection import Listener
    from tempfile import mkdtemp

    for place in _places() if hasattr(socket, "AF_UNIX") else ():
        try:
            folder = Path(mkdtemp(prefix="tho-", dir=place))
        except OSError:
            continue
        address = str(folder / _NAME)
        try:
            check_private(address)
            return Listener(address, "AF_UNIX", backlog=backlog)
        except (OSError, SharingError):
            remove(address)
    raise SharingError(
        "There is no folder for a socket that only you can reach, which other processes need to use this guard. Set "
        "TMPDIR to a folder of yours with a short name, or ask in this process only, as GuardedSearchCV does."
    )


def check_private(address: str) -> None:
    """Refuse a socket if another user could replace its folder or one above it."""
    folder = Path(address).parent
    found = os.lstat(folder)
    mine = found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    if not mine or not all(map(_is_kept, folder.resolve().parents)):
        raise SharingError(
            f"Others can use or replace the folder {folder}, so the process that listens there may be another one than "
            "the guard's. Make the guard in this process, with the same data and the same ledger (ledger='guard.db')."
        )


def remove(address: str) -> None:
    """Remove a socket and its folder."""
    with contextlib.suppress(OSError):
        Path(address).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        Path(address).parent.rmdir()


@contextlib.contextmanager
def hung_up_after(connection: Connection, seconds: float) -> Iterator[None]:
    """Break a connection after some seconds, even if the other side still sends."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        timer = threading.Timer(seconds, partial(_hang_up, line))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side may have closed it
        line.shutdown(socket.SHUT_RDWR)


def _places() -> Iterator[str]:
    """Yield folders to try: those for temporary files, and others with short names."""
    from tempfile import gettempdir

    for place in (gettempdir(), os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp", "/var/tmp"):
        longest = os.path.join(os.path.abspath(place), "tho-12345678", _NAME)
        if place and len(os.fsencode(longest)) <= _LONGEST:
            yield os.path.abspath(place)


def _is_kept(folder: Path) -> bool:
    """Whether only this user and the system's can rename the entries of a folder."""
    found = os.stat(folder)
    closed = not stat.S_IMODE(found.st_mode) & 0o022 or found.st_mode & stat.S_ISVTX
    return bool(closed) and found.st_uid in (0, os.geteuid())
