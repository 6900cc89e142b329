"""Sessions of people who signed in with a key: 256 random bits for a day, of which only a digest is kept.

So a browser never keeps a key, and who reads the database can begin no session. A session ends with its key.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from thresholdout.errors import ThresholdoutError
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.shown import Principal

if TYPE_CHECKING:
    from thresholdout.service.keys import Keys
    from thresholdout.service.store.tables import Store

__all__ = ["MOST_OF_A_KEY", "SESSION_SECONDS", "Sessions"]

SESSION_SECONDS: Final = 24 * 3600
"""How long a session lasts."""

MOST_OF_A_KEY: Final = 50
"""Sessions of one key at the same time; the oldest end first."""

_FORM: Final = re.compile(r"[A-Za-z0-9_-]{43}")

_HOLDER: Final = (
    "SELECT service_keys.id, service_keys.role, service_keys.team FROM service_sessions JOIN service_keys "
    "ON service_keys.id = service_sessions.key "
    "WHERE service_sessions.digest = ? AND service_sessions.until > ? AND service_keys.revoked IS NULL"
)


_OLDEST: Final = (
    "DELETE FROM service_sessions WHERE key = ? AND digest NOT IN "
    "(SELECT digest FROM service_sessions WHERE key = ? ORDER BY until DESC, digest LIMIT ?)"
)

_log: Final = logging.getLogger("thresholdout.service")

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _closed(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let nothing but refusals out."""

    @functools.wraps(method)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return method(*given, **named)
        except ServiceRefused:
            raise
        except ThresholdoutError as error:
            _log.error("a session was not looked up: %s", type(error).__name__)
        raise ServiceRefused("unavailable", retry_after=5)

    return checked


class Sessions:
    """The sessions of a service.

    Parameters
    ----------
    store : Store
        Where they are kept.
    keys : Keys
        Whose holders may begin one.
    """

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    @_closed
    def begin(self, key: str) -> str:
        """Begin a session of who holds a key, given its text; return the session's text, which is not kept.

        Raises
        ------
        ServiceRefused
            "unknown_key": it is unknown, or was revoked.
        """
        holder = self._keys.holder(key)
        text, now = secrets.token_urlsafe(32), time.time()
        self._store.write("DELETE FROM service_sessions WHERE until <= ?", (now,))
        self._store.write(_OLDEST, (holder.key, holder.key, MOST_OF_A_KEY - 1))
        insert = "INSERT INTO service_sessions (digest, key, until) VALUES (?, ?, ?)"
        self._store.write(insert, (_digest(text), holder.key, now + SESSION_SECONDS))
        return text

    @_closed
    def holder(self, text: str) -> Principal:
        """Return whose session it is.

        Raises
        ------
        ServiceRefused
            There is no such session, it is over, or its key was revoked; which of these is not said.
        """
        known = _FORM.fullmatch(text) is not None
        rows = self._store.read(_HOLDER, (_digest(text), time.time())) if known else []
        if not rows:
            raise ServiceRefused("unknown_key")
        id, role, team = rows[0]
        return Principal(id, role, team)

    @_closed
    def end(self, text: str) -> None:
        """End a session; nothing happens where there is none."""
        self._store.write("DELETE FROM service_sessions WHERE digest = ?", (_digest(text),))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
