"""Keys of the service: what they look like, and how a text is recognised as one.

A key is public first characters, by which it is listed and found, and 256 random bits. Only a digest of the whole is
kept; a plain one, since what has 256 random bits is guessed through no digest.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import TYPE_CHECKING, Final

from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.shown import Key, Principal, Role

if TYPE_CHECKING:
    from thresholdout.service.store.tables import Store

__all__ = ["Keys"]

_PREFIX: Final = "tho_"
"""By which scanners of published source recognise a key."""

_FORM: Final = re.compile(r"tho_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
_PUBLIC: Final = len(_PREFIX) + 12
_NOBODY: Final[tuple[str, Role, str, float | None]] = (hashlib.sha256(b"").hexdigest(), "viewer", "", 0.0)
"""What stands for a key that is not there: it was revoked."""

_FIELDS: Final = "id, role, team, note, made, revoked"


class Keys:
    """The keys of a service.

    Parameters
    ----------
    store : Store
        Where they are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, role: Role, team: str, note: str) -> tuple[str, Key]:
        """Make a key; return its text, which is not kept, and the key as it is listed."""
        text, key = _made(role, team, note)
        self._store.write(_INSERT, (key.id, _digest(text), role, team, note, key.made))
        return text, key

    def first(self, note: str) -> str | None:
        """Make a key for an administrator where there was never one; return its text, or None."""
        if self._store.read(_ADMIN):
            return None
        text, key = _made("admin", "", note)
        with self._store.database.transaction() as cursor:
            if self._store.database.on_server:
                cursor.execute("LOCK TABLE service_keys IN EXCLUSIVE MODE")
            cursor.execute(_ADMIN)
            if cursor.fetchone() is not None:
                return None
            values = (key.id, _digest(text), "admin", "", note, key.made)
            cursor.execute(self._store.statement(_INSERT), values)
        return text

    def all(self) -> list[Key]:
        """Return all keys, the oldest first."""
        return [Key(*row) for row in self._store.read(f"SELECT {_FIELDS} FROM service_keys ORDER BY made, id")]

    def revoke(self, id: str) -> Key | None:
        """Refuse a key from now on; return it, or None where there is none. A second time changes nothing."""
        self._store.write("UPDATE service_keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (time.time(), id))
        rows = self._store.read(f"SELECT {_FIELDS} FROM service_keys WHERE id = ?", (id,))
        return Key(*rows[0]) if rows else None

    def holder(self, text: str) -> Principal:
        """Return who holds a key.

        Raises
        ------
        ServiceRefused
            It is unknown or was revoked; which of these is not said.
        """
        known = _FORM.fullmatch(text) is not None
        id = text[:_PUBLIC] if known else ""
        rows = self._store.read("SELECT digest, role, team, revoked FROM service_keys WHERE id = ?", (id,))
        digest, role, team, revoked = rows[0] if rows else _NOBODY
        same = hmac.compare_digest(str(digest), _digest(text))
        if not same or revoked is not None:
            raise ServiceRefused("unknown_key")
        return Principal(id, role, team)


_ADMIN: Final = "SELECT id FROM service_keys WHERE role = 'admin' LIMIT 1"
_INSERT: Final = "INSERT INTO service_keys (id, digest, role, team, note, made) VALUES (?, ?, ?, ?, ?, ?)"


def _made(role: Role, team: str, note: str) -> tuple[str, Key]:
    id = _PREFIX + secrets.token_hex(6)
    return f"{id}_{secrets.token_urlsafe(32)}", Key(id, role, team, note, time.time(), None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
