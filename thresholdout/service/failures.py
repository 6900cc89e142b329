"""Refused tables are free, up to a rate for each key that everybody may know: nobody probes for nothing all day."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from thresholdout.service.shown import Principal
    from thresholdout.service.store.tables import Store

__all__ = ["Failures"]

_HOUR: Final = 3600

_COUNT: Final = "SELECT count FROM service_failures WHERE key = ? AND hour = ?"
_ADD: Final = """INSERT INTO service_failures (key, hour, count) VALUES (?, ?, 1)
ON CONFLICT (key, hour) DO UPDATE SET count = service_failures.count + 1 RETURNING count"""
_FORGET: Final = "DELETE FROM service_failures WHERE key = ? AND hour < ?"


class Failures:
    """How many tables of each key were refused in this hour.

    Parameters
    ----------
    store : Store
        Where they are counted, for all processes together.
    most : int
        Refused tables of one key in an hour, after which its requests wait for the next hour.
    """

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most

    def check(self, by: Principal) -> None:
        """Refuse a key with too many refused tables in this hour."""
        rows = self._store.read(_COUNT, (by.key, int(time.time() // _HOUR)))
        if rows and int(rows[0][0]) >= self._most:
            raise self._refusal()

    def count(self, by: Principal) -> None:
        """Count a refused table of a key that is not beyond its rate; refuse one that is, whoever else counts now."""
        self.check(by)
        hour = int(time.time() // _HOUR)
        store = self._store
        with store.database.transaction() as cursor:
            cursor.execute(store.statement(_FORGET), (by.key, hour))
            cursor.execute(store.statement(_ADD), (by.key, hour))
            if int(cursor.fetchone()[0]) > self._most:
                raise self._refusal()  # which takes back the count

    def _refusal(self) -> ServiceRefused:
        wait = int(_HOUR - time.time() % _HOUR) + 1
        return ServiceRefused("rate", retry_after=wait, failures_per_hour=self._most)
