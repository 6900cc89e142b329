"""Admission control: bounds on memory and concurrent work, and the reception of bodies.

The event loop only receives and sends. Memory is bounded by the limits of the service, not by the number of its
clients: submissions are spooled to unnamed files, and are read when there is room for them. An administrator's
tables have labels and are received only when there is room in memory. A fixed number of threads parses tables.
"""

from __future__ import annotations

import asyncio
import io
import logging
import tempfile
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Final, ParamSpec, TypeVar

from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

__all__ = ["Admission", "Spooled", "announced", "check_is_form", "parsed_form", "receive", "receive_form", "spooled"]

_log: Final = logging.getLogger("thresholdout.service.http")

# Seconds in which any body may come, before its rate counts.
_PATIENCE: Final = 30.0
# Bytes a second that a body has to reach beyond the first seconds.
_SLOWEST: Final = 256 * 1024

# Bytes of an incoming body in memory before it goes to a file: for all places together, a few megabytes.
_IN_MEMORY: Final = 64 * 1024

# Bytes of a text field of a form.
_LONGEST_FIELD: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Spooled:
    """A received body and its size."""

    file: IO[bytes]
    size: int


def announced(request: Request, most: int) -> int:
    """Return the number of bytes that a request announces, or `most` where it announces none; refuse a larger one."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise ServiceRefused("unsupported", seen=f"Content-Encoding {encoding[:40]}")
    text = request.headers.get("content-length")
    if text is None:
        return most
    if not text.isascii() or not text.isdecimal():
        raise ServiceRefused("bad_request", argument="Content-Length")
    if len(text) > 18 or int(text) > most:
        raise ServiceRefused("too_large", what="bytes", most=most)
    return int(text)


async def receive(request: Request, most: int) -> bytes:
    """Read a body; refuse it if more bytes come than `most`, or if they come too slowly."""
    content = io.BytesIO()
    await _receive_into(content, request, most)
    return content.getvalue()


@asynccontextmanager
async def spooled(request: Request, most: int) -> AsyncIterator[Spooled]:
    """Spool a body to an unnamed file, so that a slow one holds no memory; see `receive`."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        await _receive_into(file, request, most)
        size = file.tell()
        file.seek(0)
        yield Spooled(file, size)


async def _receive_into(file: IO[bytes], request: Request, most: int) -> None:
    announced(request, most)
    held, begun = 0, asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(_PATIENCE) as patience:
            async for chunk in request.stream():
                held += len(chunk)
                if held > most:
                    raise ServiceRefused("too_large", what="bytes", most=most)
                file.write(chunk)
                # Received bytes extend the time, announced ones do not.
                patience.reschedule(begun + _PATIENCE + held / _SLOWEST)
    except TimeoutError:
        raise ServiceRefused("too_slow", bytes_a_second=_SLOWEST) from None
    except OSError as error:
        if isinstance(error, ConnectionError):
            raise
        _log.error("a body was not kept: %s", error.strerror)
        raise ServiceRefused("unavailable", retry_after=5) from None


class _InMemory(MultiPartParser):
    """Keeps files in memory, where they are counted: labels never reach a temporary file."""

    spool_max_size = 2**62


async def receive_form(request: Request, most: int, *, files: int, fields: int) -> FormData:
    """Read a form; file names in it are ignored."""
    check_is_form(request)
    return await parsed_form(request, await receive(request, most), files=files, fields=fields)


def check_is_form(request: Request) -> None:
    """Refuse a body that is not ``multipart/form-data``."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise ServiceRefused("unsupported", seen=request.headers.get("content-type", "")[:100])


async def parsed_form(request: Request, content: bytes, *, files: int, fields: int) -> FormData:
    """Parse the form in a body; see `receive_form`."""

    async def again() -> AsyncGenerator[bytes, None]:
        yield content

    parser = _InMemory(request.headers, again(), max_files=files, max_fields=fields, max_part_size=_LONGEST_FIELD)
    try:
        return await parser.parse()
    except (MultiPartException, HTTPException, FormParserError, ValueError):
        raise ServiceRefused("bad_request", argument="body", expected="multipart/form-data") from None


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Threads for reads: leaderboards, histories, API tokens.
_READERS: Final = 4

# One API token has at most this part of all places and of all bytes: its slow uploads leave room for others.
_PART_OF_ONE: Final = 4


@dataclass(frozen=True, eq=False, slots=True)
class _Turn:
    """A request that waits for room."""

    token: str
    size: int
    came: asyncio.Future[None]


class Admission:
    """Places, bytes and threads of one process.

    Notes
    -----
    ``at_once`` tables are in memory with a thread for each; ``most_waiting`` more requests wait. `bytes_held` and
    `places_taken` count bodies and requests at this moment.
    """

    def __init__(self, limits: Limits) -> None:
        self.bytes_held = 0
        self.places_taken = 0
        self._most_bytes = limits.at_once * limits.most_bytes
        self._most_of_one = max(limits.most_bytes, self._most_bytes // _PART_OF_ONE)
        self._bytes_of_tokens: Counter[str] = Counter()
        self._places = limits.at_once + limits.most_waiting
        self._of_tokens: Counter[str] = Counter()
        self._waiting: deque[_Turn] = deque()
        self._stopping = False
        self._workers = ThreadPoolExecutor(limits.at_once, thread_name_prefix="uploads")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="reading")

    @asynccontextmanager
    async def place(self, token: str) -> AsyncIterator[None]:
        """Take a place for a request with a table; refuse as "busy", or as "stopping" when nothing new is accepted."""
        self._check_running()
        of_one = max(1, self._places // _PART_OF_ONE)
        if self.places_taken >= self._places or self._of_tokens[token] >= of_one:
            raise ServiceRefused("busy", retry_after=1)
        self.places_taken += 1
        self._of_tokens[token] += 1
        try:
            yield
        finally:
            self.places_taken -= 1
            self._of_tokens[token] -= 1
            if not self._of_tokens[token]:
                del self._of_tokens[token]

    @asynccontextmanager
    async def room(self, token: str, size: int) -> AsyncIterator[None]:
        """Wait until the token and the process have room for so many bytes, in the order of requests.

        A request that waits for earlier ones of its own token is overtaken by those of other tokens.
        """
        turn = _Turn(token, min(size, self._most_bytes), asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._wake()
        try:
            await turn.came
        except BaseException:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.came.done() and not turn.came.cancelled():  # granted at the same moment
                self._give_back(turn)
            self._wake()
            raise
        try:
            self._check_running()
            yield
        finally:
            self._give_back(turn)
            self._wake()

    def _wake(self) -> None:
        """Give room to waiting requests, as far as there is some."""
        for turn in list(self._waiting):
            held = self._bytes_of_tokens.get(turn.token, 0)
            # One request of a token always fits, so that none waits for ever.
            if held and held + turn.size > self._most_of_one:
                continue
            if self.bytes_held + turn.size > self._most_bytes:
                return
            self._waiting.remove(turn)
            if not turn.came.cancelled():
                self.bytes_held += turn.size
                self._bytes_of_tokens[turn.token] += turn.size
                turn.came.set_result(None)

    def _give_back(self, turn: _Turn) -> None:
        self.bytes_held -= turn.size
        self._bytes_of_tokens[turn.token] -= turn.size
        if not self._bytes_of_tokens[turn.token]:
            del self._bytes_of_tokens[turn.token]

    def _check_running(self) -> None:
        if self._stopping:
            raise ServiceRefused("stopping", retry_after=5)

    async def work(self, job: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        """Run a job with a table in a worker thread."""
        return await self._in(self._workers, job, *given, **named)

    async def read(self, job: Callable[Arguments, Result], *given: Arguments.args, **named: Arguments.kwargs) -> Result:
        """Run a job that only reads in another thread."""
        return await self._in(self._readers, job, *given, **named)

    async def _in(
        self,
        threads: ThreadPoolExecutor,
        job: Callable[Arguments, Result],
        *given: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Run a job to its end, whether or not its client still waits."""
        self._check_running()
        return await asyncio.get_running_loop().run_in_executor(threads, partial(job, *given, **named))

    def stop(self) -> None:
        """Accept nothing new; running jobs go on."""
        self._stopping = True

    def close(self) -> None:
        """Accept nothing new, and wait for running jobs."""
        self.stop()
        self._workers.shutdown()
        self._readers.shutdown()
