"""The lines that a witness keeps: checkpoints of histories, and what was accepted in spite of them.

Each line is a JSON object with a check of its own, so that a line that was changed shows::

    {"ledger": L, "guard": G, "query": 120, "checkpoint": D, "time": T, "check": C}
    {"ledger": L, "started": N, "time": T, "check": C}
    {"ledger": L, "accepted": REASON, "time": T, "check": C}
    {"torn": F, "check": C}

The first says that a guard's history had a checkpoint after a question, the second that a service has started with a
ledger of N guards, the third that an administrator let a ledger go on that fits the lines before it no more: from then
on they count no more for that ledger. A line that was cut off when the machine or the disk failed in the middle of it
says nothing; the next one who writes says so behind it, with the SHA-256 of what is there, since nothing is ever taken
away. C is the first 16 hexadecimal digits of the SHA-256 of the line as it would be without the check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from thresholdout.service.receipts.errors import WitnessUnusable

__all__ = [
    "LONGEST",
    "Said",
    "accepted_line",
    "checkpoint_line",
    "ledger_of",
    "mark_of",
    "read_lines",
    "started_line",
    "torn_line",
]

LONGEST: Final = 1 << 16
"""Bytes that a line may have."""

_CHECKPOINT: Final = re.compile(r"[0-9a-f]{64}")
_CHECKPOINTS: Final = {"ledger", "guard", "query", "checkpoint", "time"}
_STARTED: Final = {"ledger", "started", "time"}
_NUMBERS: Final = {"query", "started"}
_ACCEPTED: Final = {"ledger", "accepted", "time"}


@dataclass(frozen=True, slots=True)
class Said:
    """What a line says.

    Attributes
    ----------
    about : {"checkpoint", "started", "accepted", "torn", "damaged"}
        What kind of line it is.
    ledger : str
        The ledger's identity; empty where it is about none.
    guard, query, checkpoint : str, int, str
        Of a checkpoint.
    reason : str
        Of an acceptance, or what is wrong with a line that nobody wrote so.
    mark : str
        What a ledger remembers of the line.
    """

    about: Literal["checkpoint", "started", "accepted", "torn", "damaged"]
    ledger: str = ""
    guard: str = ""
    query: int = 0
    checkpoint: str = ""
    reason: str = ""
    mark: str = ""


def checkpoint_line(ledger: str, guard: str, query: int, checkpoint: str, time: str) -> str:
    """Return a line that says what the checkpoint of a history is.

    Parameters
    ----------
    ledger : str
        The ledger's identity.
    guard : str
        What it calls the guard.
    query : int
        Number of the last question; 0 when there was none.
    checkpoint : str
        Digest of its entry.
    time : str
        When this is said.
    """
    return _checked({"ledger": ledger, "guard": guard, "query": query, "checkpoint": checkpoint, "time": time})


def started_line(ledger: str, guards: int, time: str) -> str:
    """Return a line that says that a service has started with a ledger of so many guards."""
    return _checked({"ledger": ledger, "started": guards, "time": time})


def accepted_line(ledger: str, reason: str, time: str) -> str:
    """Return a line that says that a ledger goes on though it does not fit the lines before this one."""
    return _checked({"ledger": ledger, "accepted": reason, "time": time})


def torn_line(fragment: bytes) -> str:
    """Return a line that says that the one before it was cut off."""
    return _checked({"torn": sha256(fragment).hexdigest()})


def mark_of(line: str) -> str:
    """Return what a ledger remembers of a line."""
    return sha256(line.encode()).hexdigest()


def read_lines(location: str, lines: Iterable[bytes]) -> Iterator[Said]:
    """Give what lines say.

    Parameters
    ----------
    location : str
        The witness, for messages.
    lines : iterable of bytes
        All lines with their ends; what has none was cut off, and says nothing.

    Raises
    ------
    WitnessUnusable
        A line is longer than any that was written.
    """
    unread: tuple[int, bytes] | None = None
    for number, whole in enumerate(lines, 1):
        if len(whole) > LONGEST:
            raise WitnessUnusable(location, f"line {number} is longer than any that a service writes; it is no witness")
        line = whole.removesuffix(b"\n")
        if line == whole:
            break
        said = _read(line)
        if unread is not None and said != {"torn": sha256(unread[1]).hexdigest()}:
            yield _foreign(unread[0])
        unread = (number, line) if said is None else None
        if said is not None:
            yield _said(said, line)
    if unread is not None:
        yield _foreign(unread[0])


def ledger_of(line: bytes) -> str | None:
    """Return which ledger a line is about; empty when it is about none, None when no service wrote it so."""
    said = _read(line.removesuffix(b"\n"))
    return None if said is None else str(said.get("ledger", ""))


def _foreign(number: int) -> Said:
    return Said("damaged", reason=f"line {number} is not one that a service wrote")


def _said(said: dict[str, Any], line: bytes) -> Said:
    """Return what a line says that was read."""
    mark = sha256(line).hexdigest()
    if "torn" in said:
        return Said("torn", mark=mark)
    if "accepted" in said:
        return Said("accepted", said["ledger"], reason=said["accepted"], mark=mark)
    if "started" in said:
        return Said("started", said["ledger"], mark=mark)
    return Said("checkpoint", said["ledger"], said["guard"], said["query"], said["checkpoint"], mark=mark)


def _checked(said: dict[str, Any]) -> str:
    return json.dumps({**said, "check": _check(said)})


def _check(said: dict[str, Any]) -> str:
    return sha256(json.dumps(said).encode()).hexdigest()[:16]


def _read(line: bytes) -> dict[str, Any] | None:
    """Return what a line says; None for one that is not as it was written."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.pop("check", None) != _check(said):
        return None
    names = set(said)
    if names == {"torn"}:
        return said
    if not all(type(said[name]) is (int if name in _NUMBERS else str) for name in names):
        return None
    if names == _CHECKPOINTS:
        return said if said["query"] >= 0 and _CHECKPOINT.fullmatch(said["checkpoint"]) else None
    return said if names in (_STARTED, _ACCEPTED) else None
