"""API tokens of the service, and sessions of people who signed in with one.

A token consists of public first characters, which list and find it, and of 256 random bits. A session has 256 random
bits and lasts a day: a browser never keeps a token. Only plain digests are stored, since 256 random bits cannot be
found by trial. A session ends with its token and by signing out, also for copies of its text.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from thresholdout.errors import ThresholdoutError
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Role, Token

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor
    from thresholdout.service.store.tables import Store

__all__ = ["MOST_OF_A_TOKEN", "SESSION_SECONDS", "Sessions", "Tokens"]

# Duration of a session in seconds.
SESSION_SECONDS: Final = 24 * 3600

# Sessions of one API token at the same time; the oldest end first.
MOST_OF_A_TOKEN: Final = 50

# The form of `secrets.token_urlsafe(32)`.
_SESSION_FORM: Final = re.compile(r"[A-Za-z0-9_-]{43}")

_HOLDER: Final = (
    "SELECT service_tokens.id, service_tokens.role, service_tokens.team FROM service_sessions JOIN service_tokens "
    "ON service_tokens.id = service_sessions.token "
    "WHERE service_sessions.digest = ? AND service_sessions.until > ? AND service_tokens.revoked IS NULL"
)


_OLDEST: Final = (
    "DELETE FROM service_sessions WHERE token = ? AND digest NOT IN "
    "(SELECT digest FROM service_sessions WHERE token = ? ORDER BY until DESC, digest LIMIT ?)"
)

_log: Final = logging.getLogger("thresholdout.service")

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _closed(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Replace every error by a refusal."""

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
    """The sessions of a service."""

    def __init__(self, store: Store, tokens: Tokens) -> None:
        self._store = store
        self._tokens = tokens

    @_closed
    def begin(self, token: str) -> str:
        """Begin a session for the holder of a token's text; return the session's text, which is not kept."""
        holder = self._tokens.holder(token)
        text, now = secrets.token_urlsafe(32), time.time()
        self._store.write("DELETE FROM service_sessions WHERE until <= ?", (now,))
        self._store.write(_OLDEST, (holder.token, holder.token, MOST_OF_A_TOKEN - 1))
        insert = "INSERT INTO service_sessions (digest, token, until) VALUES (?, ?, ?)"
        self._store.write(insert, (_digest(text), holder.token, now + SESSION_SECONDS))
        return text

    @_closed
    def holder(self, text: str) -> Principal:
        """Return the holder of a session."""
        known = _SESSION_FORM.fullmatch(text) is not None
        rows = self._store.read(_HOLDER, (_digest(text), time.time())) if known else []
        if not rows:
            raise ServiceRefused("unknown_token")
        id, role, team = rows[0]
        return Principal(id, role, team)

    @_closed
    def end(self, text: str) -> None:
        """End a session; do nothing where there is none."""
        self._store.write("DELETE FROM service_sessions WHERE digest = ?", (_digest(text),))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Prefix by which scanners of published source recognise an API token.
_PREFIX: Final = "tho_"

_FORM: Final = re.compile(r"tho_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
# Public characters of a token: the prefix and 12 hexadecimal digits.
_PUBLIC: Final = len(_PREFIX) + 12
# Stands for an unknown API token, as a revoked one.
_NOBODY: Final[tuple[str, Role, str, float | None]] = (hashlib.sha256(b"").hexdigest(), "viewer", "", 0.0)

_FIELDS: Final = "id, role, team, note, made, revoked"


class Tokens:
    """The API tokens of a service."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, role: Role, team: str, note: str) -> tuple[str, Token]:
        """Make an API token; return its text, which is not kept, and the token as it is listed."""
        text, token = _made(role, team, note)
        self._store.write(_INSERT, (token.id, _digest(text), role, team, note, token.made))
        return text, token

    def first(self, note: str) -> str | None:
        """Make an administrator's API token where there was never one; return its text, or None."""
        if self._store.read(_ADMIN):
            return None
        text, token = _made("admin", "", note)

        def put(cursor: Cursor) -> str | None:
            if self._store.database.on_server:
                cursor.execute("LOCK TABLE service_tokens IN EXCLUSIVE MODE")
            cursor.execute(_ADMIN)
            if cursor.fetchone() is not None:
                return None
            values = (token.id, _digest(text), "admin", "", note, token.made)
            cursor.execute(self._store.statement(_INSERT), values)
            return text

        return self._store.database.transact(put)

    def all(self) -> list[Token]:
        """Return all API tokens, the oldest first."""
        return [Token(*row) for row in self._store.read(f"SELECT {_FIELDS} FROM service_tokens ORDER BY made, id")]

    def revoke(self, id: str) -> Token | None:
        """Revoke an API token and return it; ``None`` where there is none. A second time changes nothing."""
        self._store.write("UPDATE service_tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", (time.time(), id))
        rows = self._store.read(f"SELECT {_FIELDS} FROM service_tokens WHERE id = ?", (id,))
        return Token(*rows[0]) if rows else None

    def holder(self, text: str) -> Principal:
        """Return the holder of a token."""
        known = _FORM.fullmatch(text) is not None
        id = text[:_PUBLIC] if known else ""
        rows = self._store.read("SELECT digest, role, team, revoked FROM service_tokens WHERE id = ?", (id,))
        digest, role, team, revoked = rows[0] if rows else _NOBODY
        # An unknown token takes the same time, by the comparison with `_NOBODY`.
        same = hmac.compare_digest(str(digest), _digest(text))
        if not same or revoked is not None:
            raise ServiceRefused("unknown_token")
        return Principal(id, role, team)


_ADMIN: Final = "SELECT id FROM service_tokens WHERE role = 'admin' LIMIT 1"
_INSERT: Final = "INSERT INTO service_tokens (id, digest, role, team, note, made) VALUES (?, ?, ?, ?, ?, ?)"


def _made(role: Role, team: str, note: str) -> tuple[str, Token]:
    id = _PREFIX + secrets.token_hex(6)
    return f"{id}_{secrets.token_urlsafe(32)}", Token(id, role, team, note, time.time(), None)
