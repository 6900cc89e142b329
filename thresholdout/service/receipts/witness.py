"""Witnesses that keep checkpoints, so that a rollback of the ledger is detected: a growing file, or an address.

A witness protects as far as it is separate from the ledger. A file beside the ledger detects a restore of the ledger
alone, another disk a restore of the machine's disk, and an address of another party a restore by the administrator.
"""

from __future__ import annotations

import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.service.receipts.errors import WitnessUnusable

if TYPE_CHECKING:
    import httpx

__all__ = [
    "LONGEST",
    "AddressWitness",
    "FileWitness",
    "Said",
    "Witness",
    "accepted_line",
    "checkpoint_line",
    "ledger_of",
    "mark_of",
    "read_lines",
    "started_line",
    "torn_line",
    "witness_at",
]

# Most bytes of a line.
LONGEST: Final = 1 << 16

_CHECKPOINT: Final = re.compile(r"[0-9a-f]{64}")
_CHECKPOINTS: Final = {"ledger", "guard", "query", "checkpoint", "time"}
_STARTED: Final = {"ledger", "started", "time"}
_NUMBERS: Final = {"query", "started"}
_ACCEPTED: Final = {"ledger", "accepted", "time"}


@dataclass(frozen=True, slots=True)
class Said:
    """The content of a line; `reason` is that of an acceptance or of damage, `mark` the ledger's digest of the line."""

    about: Literal["checkpoint", "started", "accepted", "torn", "damaged"]
    ledger: str = ""
    guard: str = ""
    query: int = 0
    checkpoint: str = ""
    reason: str = ""
    mark: str = ""


def checkpoint_line(ledger: str, guard: str, query: int, checkpoint: str, time: str) -> str:
    """Return the line of a history's checkpoint."""
    return _checked({"ledger": ledger, "guard": guard, "query": query, "checkpoint": checkpoint, "time": time})


def started_line(ledger: str, guards: int, time: str) -> str:
    """Return the line of a service's start with a ledger of so many guards."""
    return _checked({"ledger": ledger, "started": guards, "time": time})


def accepted_line(ledger: str, reason: str, time: str) -> str:
    """Return the line of a ledger's acceptance though it contradicts earlier lines."""
    return _checked({"ledger": ledger, "accepted": reason, "time": time})


def torn_line(fragment: bytes) -> str:
    """Return the line which says that the one before it was cut off."""
    return _checked({"torn": sha256(fragment).hexdigest()})


def mark_of(line: str) -> str:
    """Return the ledger's digest of a line."""
    return sha256(line.encode()).hexdigest()


def read_lines(location: str, lines: Iterable[bytes]) -> Iterator[Said]:
    """Yield the contents of lines."""
    unread: tuple[int, bytes] | None = None
    for number, whole in enumerate(lines, 1):
        if len(whole) > LONGEST:
            raise WitnessUnusable(location, f"Line {number} is too long for a line of a service.")
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
    """Return the ledger of a line; empty when it concerns none, ``None`` when no service wrote it."""
    said = _read(line.removesuffix(b"\n"))
    return None if said is None else str(said.get("ledger", ""))


def _foreign(number: int) -> Said:
    return Said("damaged", reason=f"Line {number} was not written by a service")


def _said(said: dict[str, Any], line: bytes) -> Said:
    """Return the content of parsed fields."""
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
    """Return the fields of a line; ``None`` for one that was changed."""
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


# Variable with the bearer token for an address.
KEY_VARIABLE: Final = "THRESHOLDOUT_WITNESS_KEY"

# Seconds of one step of a request, and steps that all lines together may take.
_SECONDS: Final = 5.0
_STEPS: Final = 60
# Bytes at the end of a file in which a cut line begins: as many as a line may have.
_TAIL: Final = 1 << 16


class Witness(ABC):
    """Keeper of lines; `location` appears in messages, never with a password."""

    location: str

    @abstractmethod
    def lines(self, ledger: str) -> Iterator[bytes]:
        """Yield the lines about a ledger with their ends, in the order of their arrival; others are allowed."""

    @abstractmethod
    def append(self, lines: Sequence[str]) -> None:
        """Append lines durably."""


class FileWitness(Witness):
    r"""A file to which several processes may append lines; made when it is missing, and never shortened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.location = os.fspath(path)

    def lines(self, ledger: str) -> Iterator[bytes]:
        """Yield all lines; none when there is no file."""
        del ledger
        try:
            with open(self._path, "rb") as file:
                while line := file.readline(LONGEST + 1):
                    yield line
        except FileNotFoundError:
            return
        except OSError as error:
            raise WitnessUnusable(self.location, f"It cannot be read: {error.strerror}.") from None

    def append(self, lines: Sequence[str]) -> None:
        """Append lines durably; mark a line before them that was cut off."""
        try:
            new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "rb+", buffering=0) as file, _locked(file):
                torn = _fragment(file)
                text = f"\n{torn_line(torn)}\n" if torn else ""
                raw = (text + "".join(f"{line}\n" for line in lines)).encode()
                if file.write(raw) != len(raw):
                    raise WitnessUnusable(
                        self.location, "Only a part of a line was written. Check whether the disk is full."
                    )
                os.fsync(descriptor)
            if new:
                _sync_folder(self._path.parent)
        except OSError as error:
            raise WitnessUnusable(self.location, f"It cannot be written: {error.strerror}.") from None

    def __repr__(self) -> str:
        return f"FileWitness({self.location!r})"


class AddressWitness(Witness):
    """An HTTP address that keeps lines.

    Notes
    -----
    ``POST`` of lines of JSON keeps them, and answers with a status from 200 to 299 once they are kept. ``GET`` with
    ``?ledger=IDENTITY`` returns those about a ledger, in their order. The variable ``THRESHOLDOUT_WITNESS_KEY`` is sent
    as a bearer token, where it is set. Each step of a request may take `seconds`, all lines together 60 times as long.
    """

    def __init__(self, address: str, *, seconds: float = _SECONDS) -> None:
        try:
            import httpx
        except ImportError:
            raise ThresholdoutError(
                "A witness at an address needs httpx: pip install 'thresholdout[service]'."
            ) from None
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL:
            raise InputError("witness", "an invalid address", "a file, or an address of http or https") from None
        if url.userinfo:
            raise InputError(
                "witness",
                "an address with a password",
                "an address without a password",
                f"Set its key in the variable {KEY_VARIABLE}.",
            )
        self.location = address
        self._seconds = seconds

    def lines(self, ledger: str) -> Iterator[bytes]:
        """Yield the address's lines about a ledger."""
        import httpx

        try:
            with self._client() as client, client.stream("GET", self.location, params={"ledger": ledger}) as answer:
                self._check(answer)
                until = time.monotonic() + _STEPS * self._seconds
                for line in _split(answer):
                    if time.monotonic() > until:
                        raise WitnessUnusable(
                            self.location, f"Reading its lines takes longer than {_STEPS * self._seconds:g} s."
                        )
                    yield line
        except httpx.HTTPError as error:
            raise WitnessUnusable(self.location, f"It cannot be read: {type(error).__name__}.") from None

    def append(self, lines: Sequence[str]) -> None:
        """Send lines, and wait until the address has kept them."""
        import httpx

        body = "".join(f"{line}\n" for line in lines)
        try:
            with self._client() as client:
                answer = client.post(self.location, content=body, headers={"Content-Type": "application/x-ndjson"})
                self._check(answer)
        except httpx.HTTPError as error:
            raise WitnessUnusable(self.location, f"It cannot be reached: {type(error).__name__}.") from None

    def _client(self) -> httpx.Client:
        import httpx

        key = os.environ.get(KEY_VARIABLE)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(timeout=self._seconds, headers=headers)

    def _check(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            raise WitnessUnusable(self.location, f"It answered with status {answer.status_code}.")

    def __repr__(self) -> str:
        return f"AddressWitness({self.location!r})"


def witness_at(where: str | os.PathLike[str]) -> Witness:
    """Return the witness in a file or at an address."""
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return AddressWitness(where)
    if isinstance(where, str) and "://" in where:
        raise InputError("witness", "an address of another kind", "a file, or an address of http or https")
    return FileWitness(where)


def _split(answer: httpx.Response) -> Iterator[bytes]:
    """Yield the lines of a response, with one of them in memory."""
    rest = b""
    for part in answer.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(rest) > LONGEST:
            break
    if rest:
        yield rest


def _fragment(file: IO[bytes]) -> bytes:
    """Return the bytes behind the last line end."""
    end = file.seek(0, os.SEEK_END)
    start = max(0, end - _TAIL)
    file.seek(start)
    tail = file.read(end - start)
    return tail.rpartition(b"\n")[2]


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Keep other processes from appending at the same time, where the system can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
