"""Checks that a ledger's file has one name only, and is on a disk with working locks.

SQLite's log and its locks depend on the file's name. A file that is opened under two names, by hard links or because it
is mounted as a single file, has two logs, and each spends the whole budget ["How To Corrupt An SQLite Database File",
2.5]. Symbolic links and mounted folders are safe: SQLite follows the former, and the log is the same in the latter.
"""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final

from thresholdout.errors import LedgerPlaceWarning, LedgerUnusable

__all__ = ["check_names", "check_place"]

MOUNTS: Final = "/proc/self/mountinfo"
"""List of mounts on Linux; other systems mount no single files."""

_NETWORK: Final = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"),
        *("ocfs2", "orangefs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs"),
        *("fuse.ceph", "fuse.glusterfs", "fuse.gcsfuse", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    }
)
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def check_names(location: str, names: int) -> None:
    """Refuse a file with more than one name."""
    if names > 1:
        raise LedgerUnusable(
            location,
            f"The file has {names} names (hard links), and each would spend the whole budget. Keep one of them: find "
            f"the others by `find / -xdev -samefile {location}`, and delete them. Symbolic links (`ln -s`) may replace "
            "them.",
        )


def check_place(location: str, path: Path, found: os.stat_result) -> None:
    """Refuse a file that can be opened under two names; warn if locks may not hold."""
    if found.st_nlink > 1:
        _finish_making(path, found)
        check_names(location, os.stat(path).st_nlink)
    _check_log(location, path)
    real = os.path.realpath(path)
    mounts = _mounts()
    if real in mounts:
        raise LedgerUnusable(
            location,
            "It is mounted as a single file, so it has another name elsewhere, and each would spend the whole "
            "budget. Mount its folder instead, for a container by `-v /data/ledger:/ledger` for example.",
        )
    kind = _kind_of(real, mounts)
    if kind in _NETWORK:
        warnings.warn(
            f"Ledger {location} is on a network file system ({kind}), whose locks may not hold between machines, so a "
            "budget could be spent twice. Use a local disk, or a server: ledger='postgresql://user@host/database'.",
            LedgerPlaceWarning,
            stacklevel=2,
        )


def _check_log(location: str, path: Path) -> None:
    """Refuse a file without a log beside a log without a file: after a crash and a renaming they may be a pair."""
    own = Path(f"{os.path.realpath(path)}-wal")
    if own.exists():
        return
    for log in own.parent.glob("*-wal"):
        with suppress(FileNotFoundError):
            if log.stat().st_size and not log.with_name(log.name.removesuffix("-wal")).exists():
                raise LedgerUnusable(
                    location,
                    f"The log {log.name} lies beside it without its own file, and may hold the last answers. If the "
                    f"ledger was called {log.name.removesuffix('-wal')} before, rename the log too (`mv {log} {own}`). "
                    "Otherwise move the log to another folder.",
                )


def _finish_making(path: Path, found: os.stat_result) -> None:
    """Delete the draft names of this file, which exist for a moment or after a crash."""
    for draft in path.parent.glob(f".{path.name}.*"):
        if re.fullmatch(r"[0-9a-f]{16}", draft.name.rpartition(".")[2]):
            with suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(draft), found):
                    draft.unlink()


def _mounts() -> dict[str, str]:
    """Return the mount points with their kinds of file systems; the last mount of a place counts."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split(" ") for line in file]
    except OSError:
        return {}
    return {
        _ESCAPED.sub(lambda digits: chr(int(digits[1], 8)), words[4]): words[words.index("-") + 1]
        for words in lines
        if len(words) > 6 and "-" in words[6:-1]
    }


def _kind_of(real: str, mounts: dict[str, str]) -> str:
    """Return the kind of a path's file system."""
    within = [place for place in mounts if real.startswith(place.rstrip("/") + "/")]
    return mounts[max(within, key=len)] if within else ""
