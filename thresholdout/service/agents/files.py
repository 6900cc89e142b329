"""Files that a server on the user's machine may read for a model: those of one folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from thresholdout.client.tables import CSV, PARQUET, Table
from thresholdout.service.refusals import ServiceRefused

__all__ = ["Folder"]

_KINDS = {".csv": CSV, ".parquet": PARQUET}


class Folder:
    """A folder, and what is in it.

    Parameters
    ----------
    path : Path
        The folder.
    most_bytes : int
        Of one file.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._root = path.resolve(strict=True)
        self._most = most_bytes

    def read(self, name: str) -> Table:
        """Read a table of the folder; links that lead out of it, and what is no file, are not there."""
        try:
            path = (self._root / name).resolve(strict=True)
            if not path.is_relative_to(self._root):
                raise ServiceRefused("not_found")
            return self._opened(path)
        except (OSError, ValueError):
            raise ServiceRefused("not_found") from None

    def _opened(self, path: Path) -> Table:
        kind = _KINDS.get(path.suffix.lower())
        if kind is None:
            raise ServiceRefused("unsupported", expected=", ".join(_KINDS))
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ServiceRefused("not_found")
            content = file.read(self._most + 1)
        if len(content) > self._most:
            raise ServiceRefused("too_large", most_bytes=self._most)
        return Table(content, kind)
