"""Where checkpoints are kept so that a ledger can't be put back unseen: a file that only grows, or an address.

A witness protects as far as it is somewhere else than the ledger: a file beside the ledger survives that the ledger is
restored alone, another disk survives more, and an address of somebody else's machine survives the administrator.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from thresholdout.errors import InputError, ThresholdoutError
from thresholdout.service.receipts.errors import WitnessUnusable
from thresholdout.service.receipts.witness_lines import LONGEST, torn_line

if TYPE_CHECKING:
    import httpx

__all__ = ["AddressWitness", "FileWitness", "Witness", "witness_at"]

KEY_VARIABLE: Final = "THRESHOLDOUT_WITNESS_KEY"
"""What an address is sent as a bearer token."""

_SECONDS: Final = 5.0
_STEPS: Final = 60
_TAIL: Final = 1 << 16


class Witness(ABC):
    """Keeps lines, and gives them back; see `thresholdout.service.receipts.witness_lines`.

    Attributes
    ----------
    location : str
        Where, for messages; never with a password.
    """

    location: str

    @abstractmethod
    def lines(self, ledger: str) -> Iterator[bytes]:
        """Give the lines about a ledger with their ends, in the order in which they came, and those of others or not.

        Raises
        ------
        WitnessUnusable
            They can't be read, or not in time.
        """

    @abstractmethod
    def append(self, lines: Sequence[str]) -> None:
        """Keep lines, durably, behind all others.

        Raises
        ------
        WitnessUnusable
            They may not have been kept.
        """


class FileWitness(Witness):
    r"""A file to which lines are appended; made when it is missing, and never shortened.

    Parameters
    ----------
    path : str or path
        The file. Several processes may write to it at the same time.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> witness = FileWitness(Path(folder.name, "checkpoints.jsonl"))
    >>> witness.append(["one", "two"])
    >>> list(witness.lines("5f"))
    [b'one\n', b'two\n']
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self.location = os.fspath(path)

    def lines(self, ledger: str) -> Iterator[bytes]:
        """Give all lines; none when there is no file."""
        del ledger
        try:
            with open(self._path, "rb") as file:
                while line := file.readline(LONGEST + 1):
                    yield line
        except FileNotFoundError:
            return
        except OSError as error:
            raise WitnessUnusable(self.location, f"it can't be read: {error.strerror}") from None

    def append(self, lines: Sequence[str]) -> None:
        """Keep lines durably; one that was cut off before them is noted as such."""
        try:
            new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "rb+", buffering=0) as file, _locked(file):
                torn = _fragment(file)
                text = f"\n{torn_line(torn)}\n" if torn else ""
                raw = (text + "".join(f"{line}\n" for line in lines)).encode()
                if file.write(raw) != len(raw):
                    raise WitnessUnusable(self.location, "the disk took a part of a line only; is it full?")
                os.fsync(descriptor)
            if new:
                _sync_folder(self._path.parent)
        except OSError as error:
            raise WitnessUnusable(self.location, f"it can't be written: {error.strerror}") from None

    def __repr__(self) -> str:
        return f"FileWitness({self.location!r})"


class AddressWitness(Witness):
    """An address that keeps lines.

    Parameters
    ----------
    address : str
        Of HTTP or HTTPS. ``POST`` of lines of JSON keeps them and answers with a status from 200 to 299 once they are
        kept; ``GET`` with ``?ledger=IDENTITY`` returns those about a ledger, in their order. The variable
        ``THRESHOLDOUT_WITNESS_KEY`` is sent as a bearer token, where it is set.
    seconds : float, default 5
        How long each step of a request may take; all lines together may take 60 times as long.
    """

    def __init__(self, address: str, *, seconds: float = _SECONDS) -> None:
        try:
            import httpx
        except ImportError:
            raise ThresholdoutError(
                "a witness at an address needs httpx: pip install 'thresholdout[service]'"
            ) from None
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL:
            raise InputError("witness", "an address that can't be read", "a file, or an address of http") from None
        if url.userinfo:
            raise InputError("witness", "an address with a password", f"its key in the variable {KEY_VARIABLE}")
        self.location = address
        self._seconds = seconds

    def lines(self, ledger: str) -> Iterator[bytes]:
        """Give the lines that the address has about a ledger."""
        import httpx

        try:
            with self._client() as client, client.stream("GET", self.location, params={"ledger": ledger}) as answer:
                self._check(answer)
                until = time.monotonic() + _STEPS * self._seconds
                for line in _split(answer):
                    if time.monotonic() > until:
                        raise WitnessUnusable(self.location, f"its lines take longer than {_STEPS * self._seconds:g} s")
                    yield line
        except httpx.HTTPError as error:
            raise WitnessUnusable(self.location, f"it can't be read: {type(error).__name__}") from None

    def append(self, lines: Sequence[str]) -> None:
        """Send lines, and wait until the address has kept them."""
        import httpx

        body = "".join(f"{line}\n" for line in lines)
        try:
            with self._client() as client:
                answer = client.post(self.location, content=body, headers={"Content-Type": "application/x-ndjson"})
                self._check(answer)
        except httpx.HTTPError as error:
            raise WitnessUnusable(self.location, f"it can't be reached: {type(error).__name__}") from None

    def _client(self) -> httpx.Client:
        import httpx

        key = os.environ.get(KEY_VARIABLE)
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.Client(timeout=self._seconds, headers=headers)

    def _check(self, answer: httpx.Response) -> None:
        if not answer.is_success:
            raise WitnessUnusable(self.location, f"it answered with status {answer.status_code}")

    def __repr__(self) -> str:
        return f"AddressWitness({self.location!r})"


def witness_at(where: str | os.PathLike[str]) -> Witness:
    """Return the witness in a file or at an address.

    Parameters
    ----------
    where : str or path
        A file's name, or an address that begins with ``http://`` or ``https://``.

    Examples
    --------
    >>> witness_at("checkpoints.jsonl")
    FileWitness('checkpoints.jsonl')
    """
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return AddressWitness(where)
    if isinstance(where, str) and "://" in where:
        raise InputError("witness", "an address of another kind", "a file, or an address of http or https")
    return FileWitness(where)


def _split(answer: httpx.Response) -> Iterator[bytes]:
    """Give the lines of an answer, without holding more than one of them."""
    rest = b""
    for part in answer.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(rest) > LONGEST:
            break
    if rest:
        yield rest


def _fragment(file: IO[bytes]) -> bytes:
    """Return what stands behind the last end of a line."""
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
