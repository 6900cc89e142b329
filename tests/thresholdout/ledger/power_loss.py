"""What may be on a disk after a power loss, from a log of everything that was done to a folder.

``power_loss.c`` is compiled and preloaded into the processes that use the folder; they log their writes,
truncations, names and synchronisations in one order, and beside them the moments that matter to the test. A power
loss at some place of the log leaves everything that was synchronised before, and of the rest any part: of the
writes none, all, some, or some of their sectors; of the names that were made and removed some.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

HEADER = struct.Struct("<ciQqI")
MARK = b"A"

Loss = Literal["none", "all", "some", "sectors of 512", "sectors of 4096"]
LOSSES: tuple[Loss, ...] = ("none", "all", "some", "sectors of 512", "sectors of 4096")
"""How much of what was not synchronised is kept."""


def compiled(folder: Path) -> Path | None:
    """Return the compiled library, or None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "power_loss.so"
    source = Path(__file__).with_name("power_loss.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
    return library


def environment(library: Path, folder: Path, log: Path) -> dict[str, str]:
    """Return the environment of a process whose work in the folder is logged."""
    chosen = {"LD_PRELOAD": str(library), "POWER_LOSS_FOLDER": str(folder), "POWER_LOSS_LOG": str(log)}
    return {**os.environ, **chosen}


def kill_at(step: int) -> None:
    """Kill this process, whose work is logged, before its n-th step on the disk from now."""
    ctypes.CDLL(None).power_loss_kill_at(ctypes.c_long(step))


def mark(text: str) -> None:
    """Log a moment, from within a process whose work is logged."""
    data = text.encode()
    with open(os.environ["POWER_LOSS_LOG"], "ab", buffering=0) as log:
        log.write(HEADER.pack(MARK, os.getpid(), 0, 0, len(data)) + data)


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the log: its kind, as ``power_loss.c`` names it, and what it is about."""

    kind: str
    process: int
    file: int
    offset: int
    data: bytes

    @property
    def names(self) -> list[str]:
        """The names in the data of an event about names."""
        return [name.decode() for name in self.data.split(b"\0")[:-1]]


def read_log(log: Path) -> Iterator[Event]:
    """Yield the events of a log in their order."""
    data = log.read_bytes()
    place = 0
    while place < len(data):
        kind, process, file, offset, length = HEADER.unpack_from(data, place)
        place += HEADER.size
        yield Event(kind.decode(), process, file, offset, data[place : place + length])
        place += length


@dataclass(eq=False)
class File:
    """What is surely in a file, and the changes since then, each with its number."""

    number: int
    content: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, Event]] = field(default_factory=list)


def _change(content: bytearray, event: Event, sector: int | None = None, chance: random.Random | None = None) -> None:
    """Write or truncate, or write only some sectors."""
    if event.kind == "T":
        if event.offset < len(content):
            del content[event.offset :]
        content.extend(bytes(event.offset - len(content)))
        return
    place, end = event.offset, event.offset + len(event.data)
    while place < end:
        stop = end if sector is None else min(end, (place // sector + 1) * sector)
        if chance is None or chance.random() < 0.5:
            content.extend(bytes(max(0, stop - len(content))))
            content[place:stop] = event.data[place - event.offset : stop - event.offset]
        place = stop


class Disk:
    """A disk that takes events one by one, and can tell after each what may be left if the power fails now."""

    def __init__(self) -> None:
        self._names: dict[str, File] = {}
        self._sure_names: dict[str, File] = {}
        self._renames: list[tuple[int, dict[str, File | None]]] = []
        self._files: dict[int, File] = {}
        self._begun: dict[tuple[int, int], list[int]] = {}
        self._count = 0

    def take(self, event: Event) -> None:
        """Let an event happen."""
        self._count += 1
        match event.kind:
            case "O":
                (name,) = event.names
                known = self._names.get(name)
                if known is None or known.number != event.file:
                    self._files[event.file] = File(event.file)
                    self._rename({name: self._files[event.file]})
            case "W" | "T":
                self._files[event.file].changes.append((self._count, event))
            case "L":
                source, target = event.names
                self._rename({target: self._names[source]})
            case "R":
                source, target = event.names
                self._rename({target: self._names[source], source: None})
            case "U":
                (name,) = event.names
                self._rename({name: None})
            case "s":
                self._begun.setdefault((event.process, event.file), []).append(self._count)
            case "S":
                self._settle(event.file, self._begun[event.process, event.file].pop(0))

    def left(self, loss: Loss, chance: random.Random) -> dict[str, bytes]:
        """Return the folder after a power loss: its files by name."""
        names = dict(self._sure_names)
        for _, change in self._renames:
            if loss == "all" or (loss != "none" and chance.random() < 0.5):
                _apply(names, change)
        return {name: bytes(self._content(file, loss, chance)) for name, file in names.items()}

    def _content(self, file: File, loss: Loss, chance: random.Random) -> bytearray:
        content = bytearray(file.content)
        for _, event in file.changes:
            if loss == "all" or (loss == "some" and chance.random() < 0.5):
                _change(content, event)
            elif loss.startswith("sectors") and (event.kind == "W" or chance.random() < 0.5):
                _change(content, event, int(loss.split()[-1]), chance)
        return content

    def _rename(self, change: dict[str, File | None]) -> None:
        _apply(self._names, change)
        self._renames.append((self._count, change))

    def _settle(self, number: int, until: int) -> None:
        """Make sure of everything that came before a synchronisation began."""
        if number == 0:
            for count, change in self._renames:
                if count <= until:
                    _apply(self._sure_names, change)
            self._renames = [(count, change) for count, change in self._renames if count > until]
            return
        file = self._files[number]
        for count, event in file.changes:
            if count <= until:
                _change(file.content, event)
        file.changes = [(count, event) for count, event in file.changes if count > until]


def _apply(names: dict[str, File], change: Mapping[str, File | None]) -> None:
    for name, file in change.items():
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file
