"""Middleware around every request: security headers, a line of the log, metrics, and errors without content."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import sys
import time
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from thresholdout.service.http.access import refusal
from thresholdout.service.http.health import Metrics
from thresholdout.service.refusals import ServiceRefused

__all__ = ["HEADERS", "LOGGERS", "JsonLines", "Observed", "log_to", "places_of"]

# Loggers whose records become lines of JSON.
LOGGERS: Final = ("thresholdout", "uvicorn", "uvicorn.error", "mcp", "asyncio")

# Innermost frames of a logged error.
_MOST_PLACES: Final = 12


def places_of(error: BaseException) -> list[str]:
    """Return the places at which an error was raised, the innermost last.

    Examples
    --------
    >>> try:
    ...     raise ValueError("a secret")
    ... except ValueError as error:
    ...     found = places_of(error)
    >>> "secret" in " ".join(found)
    False
    """
    return _places(error.__traceback__)


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_MOST_PLACES:]
    return [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON; fields come with ``extra={"fields": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": str(record.msg) if record.exc_info else record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = type(record.exc_info[1]).__name__
            line["places"] = _places(record.exc_info[2])
            line["event"] = line["event"].splitlines()[0] if line["event"] else ""
        return json.dumps(line, default=str)


def log_to(stream: TextIO = sys.stderr, level: str = "INFO") -> None:
    """Make this process, its server included, log to a stream in this form."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False


# Default headers of every response.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

# Browsers ignore this header over http (RFC 6797, 8.1).
_ENCRYPTED: Final = ("Strict-Transport-Security", "max-age=31536000")

_log = logging.getLogger("thresholdout.service.http")


class Observed:
    """Middleware that times, counts and logs every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        identity = secrets.token_hex(8)
        status: int | None = None

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(MutableHeaders(scope=message), scope, identity)
            await send(message)

        fields: dict[str, Any] = {}
        try:
            await self._app(scope, receive, sending)
        except ClientDisconnect:
            fields["disconnected"] = True
        except asyncio.CancelledError:
            fields["cancelled"] = True
            raise
        except Exception as error:
            fields |= {"error": type(error).__name__, "places": places_of(error)}
            if status is None:
                await refusal(ServiceRefused("unavailable", retry_after=5))(scope, receive, sending)
        finally:
            self._observe(scope, status or 499, time.perf_counter() - begun, fields | {"request": identity})

    def _observe(self, scope: Scope, status: int, seconds: float, fields: dict[str, Any]) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        state = scope.get("state", {})
        refused, by = state.get("refused"), state.get("by")
        self._metrics.count(method, route, status, seconds, refused)
        if refused is not None:
            fields["refused"] = refused
        if by is not None and by.token:
            fields |= {"token": by.token, "role": by.role}
        holdout = scope.get("path_params", {}).get("name")
        if isinstance(holdout, str):
            fields["holdout"] = holdout[:63]
        fields |= {"method": method, "route": route, "status": status, "ms": round(1000.0 * seconds, 2)}
        level = logging.ERROR if "error" in fields else logging.INFO
        _log.log(level, "request", extra={"fields": fields})


# Other methods are counted as one, so that clients cannot add labels to the metrics.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _add_headers(headers: MutableHeaders, scope: Scope, identity: str) -> None:
    """Add the headers that a response does not set itself."""
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    if scope.get("scheme") == "https":
        headers.setdefault(*_ENCRYPTED)
    headers["X-Request-Id"] = identity
