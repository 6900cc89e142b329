"""Logs of one JSON object a line, in which no key, label, prediction, or word of an error is.

Of errors the kind and the places in the code are written: what they say can quote what was sent.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO

__all__ = ["LOGGERS", "JsonLines", "log_to", "places_of"]

LOGGERS: Final = ("thresholdout", "uvicorn", "uvicorn.error", "mcp", "asyncio")

_MOST_PLACES: Final = 12


def places_of(error: BaseException) -> list[str]:
    """Return where an error was raised, the innermost place last.

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
    """Let this process, its server included, log to a stream in this form."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False
