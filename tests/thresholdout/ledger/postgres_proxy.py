"""Stands between a ledger and its server, and cuts the line when a transaction is committed."""

from __future__ import annotations

import random
import select
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

NAME = ".s.PGSQL.5432"

Cut = Literal["before", "late", "while", "after"]
"""Whether the commit is lost, reaches the server when the client is gone, or only its answer is lost."""

CUTS: tuple[Cut, ...] = ("before", "late", "while", "after")


class Proxy:
    """Forwards the connections of a server's socket until told to cut one.

    Parameters
    ----------
    folder : path
        Where the server's socket is.
    """

    def __init__(self, folder: Path) -> None:
        self._server = str(folder / NAME)
        self.folder = Path(tempfile.mkdtemp(prefix="proxy-"))
        self.cut_commits: list[Cut] = []
        """How each of the next commits is cut."""
        self.cut_anywhere: Callable[[], bool] = lambda: False
        """Asked for every piece of data, on its way to the server or back, whether to cut there."""
        self.cuts = 0
        self._open = True
        self._refusing = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / NAME))
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def refuse(self, refusing: bool = True) -> None:
        """Let nobody in any more, or again."""
        self._refusing = refusing

    def close(self) -> None:
        self._open = False
        self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                source, target = (client, server) if client in ready else (server, client)
                try:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is client and b"COMMIT\0" in data and self.cut_commits:
                        self._cut_commit(self.cut_commits.pop(0), data, client, server)
                        return
                    if self.cut_anywhere():
                        self.cuts += 1
                        return
                    target.sendall(data)
                except OSError:
                    return

    def _cut_commit(self, cut: Cut, data: bytes, client: socket.socket, server: socket.socket) -> None:
        self.cuts += 1
        if cut == "after":
            server.sendall(data)
            server.recv(1 << 16)
        elif cut == "while":
            server.sendall(data)
            client.close()
        elif cut == "late":
            client.close()
            time.sleep(0.1)
            server.sendall(data)


def at_random(seed: int, chance: float) -> Callable[[], bool]:
    """Return a choice that comes true now and then."""
    generator = random.Random(seed)
    return lambda: generator.random() < chance
