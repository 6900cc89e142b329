"""Bodies of requests: no more bytes than the service takes, no slower than they may come, and no compression."""

from __future__ import annotations

import asyncio
import io
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO, Final

from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from thresholdout.service.refusals import ServiceRefused

__all__ = ["Spooled", "announced", "check_is_form", "parsed_form", "receive", "receive_form", "spooled"]

_log: Final = logging.getLogger("thresholdout.service.http")

_PATIENCE: Final = 30.0
_SLOWEST: Final = 256 * 1024
"""Bytes a second, beyond the first seconds."""

_IN_MEMORY: Final = 64 * 1024
"""Bytes of a body that comes, before it goes to a file: times all places, a few megabytes."""

_LONGEST_FIELD: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Spooled:
    """A body that came, and its size."""

    file: IO[bytes]
    size: int


def announced(request: Request, most: int) -> int:
    """Return how many bytes a request announces, or the most that it may have where it announces nothing.

    Raises
    ------
    ServiceRefused
        "too_large" where it announces more, "unsupported" where it is compressed.
    """
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
    """Read a body.

    Parameters
    ----------
    request : Request
        Whose body is read.
    most : int
        Bytes that it may have, whatever it announces.

    Raises
    ------
    ServiceRefused
        "too_large" as soon as there are more, "too_slow" when they do not come.
    """
    content = io.BytesIO()
    await _receive_into(content, request, most)
    return content.getvalue()


@asynccontextmanager
async def spooled(request: Request, most: int) -> AsyncIterator[Spooled]:
    """Read a body into a file without a name, so that a slow one holds no memory; see `receive`."""
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
                patience.reschedule(begun + _PATIENCE + held / _SLOWEST)  # for what came, not for what was announced
    except TimeoutError:
        raise ServiceRefused("too_slow", bytes_a_second=_SLOWEST) from None
    except OSError as error:
        if isinstance(error, ConnectionError):
            raise
        _log.error("a body was not kept: %s", error.strerror)
        raise ServiceRefused("unavailable", retry_after=5) from None


class _InMemory(MultiPartParser):
    """Keeps files where they are counted: labels are written to no temporary file of this machine."""

    spool_max_size = 2**62


async def receive_form(request: Request, most: int, *, files: int, fields: int) -> FormData:
    """Read a form; names of files in it mean nothing, and none is opened by them.

    Parameters
    ----------
    request : Request
        Whose body is ``multipart/form-data``.
    most : int
        Bytes that it may have.
    files, fields : int
        How many of both.

    Raises
    ------
    ServiceRefused
        As `receive`; "unsupported" for another kind of body, "bad_request" for one that is no form.
    """
    check_is_form(request)
    return await parsed_form(request, await receive(request, most), files=files, fields=fields)


def check_is_form(request: Request) -> None:
    """Refuse a body of another kind."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "multipart/form-data":
        raise ServiceRefused("unsupported", seen=request.headers.get("content-type", "")[:100])


async def parsed_form(request: Request, content: bytes, *, files: int, fields: int) -> FormData:
    """Return the form that a body is; see `receive_form`."""

    async def again() -> AsyncGenerator[bytes, None]:
        yield content

    parser = _InMemory(request.headers, again(), max_files=files, max_fields=fields, max_part_size=_LONGEST_FIELD)
    try:
        return await parser.parse()
    except (MultiPartException, HTTPException, FormParserError, ValueError):
        raise ServiceRefused("bad_request", argument="body", expected="multipart/form-data") from None
