"""Limits of tables, tokens and concurrent work.

All limits are public, and none depends on labels. Refused tables are free up to a rate for each token, which bounds
probing at no cost.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from thresholdout.service.refusals import ServiceRefused

if TYPE_CHECKING:
    from thresholdout.ledger.database import Cursor
    from thresholdout.service.schemas import Principal
    from thresholdout.service.store.tables import Store

__all__ = ["Failures", "Limits"]

_HOUR: Final = 3600

_COUNT: Final = "SELECT count FROM service_failures WHERE token = ? AND hour = ?"
# One statement adds and returns the count, so that no process loses another's.
_ADD: Final = """INSERT INTO service_failures (token, hour, count) VALUES (?, ?, 1)
ON CONFLICT (token, hour) DO UPDATE SET count = service_failures.count + 1 RETURNING count"""
_FORGET: Final = "DELETE FROM service_failures WHERE token = ? AND hour < ?"


class Failures:
    """Counter of the tables of each token that were refused in this hour, for all processes together."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most

    def check(self, by: Principal) -> None:
        """Refuse an API token with too many refused tables in this hour."""
        rows = self._store.read(_COUNT, (by.token, int(time.time() // _HOUR)))
        if rows and int(rows[0][0]) >= self._most:
            raise self._refusal()

    def count(self, by: Principal) -> None:
        """Count a refused table of an API token; refuse a token beyond its rate, in the same transaction."""
        self.check(by)
        hour = int(time.time() // _HOUR)
        store = self._store

        def add(cursor: Cursor) -> None:
            cursor.execute(store.statement(_FORGET), (by.token, hour))
            cursor.execute(store.statement(_ADD), (by.token, hour))
            if int(cursor.fetchone()[0]) > self._most:
                raise self._refusal()  # rolls the count back

        store.database.transact(add)

    def _refusal(self) -> ServiceRefused:
        wait = int(_HOUR - time.time() % _HOUR) + 1
        return ServiceRefused("rate", retry_after=wait, failures_per_hour=self._most)


_MEBIBYTE = 2**20


def _twice_the_cores() -> int:
    return 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a service, to be passed to `EvaluationService.open`.

    Parameters
    ----------
    most_bytes : int, default 50 MiB
        Maximum size of a table as it is sent.
    most_decompressed : int, default 1 GiB
        Maximum size of a table in memory.
    most_rows : int, default 2,000,000
        Maximum number of rows of a table.
    most_columns : int, default 2000
        Maximum number of columns of a table.
    failures_per_hour : int, default 60
        Number of refused tables of one API token that are free within an hour.
    wait : float, default 10
        Number of seconds that a submission waits for its answer, unless the request prefers another time.
    at_once : int, optional
        Number of tables in memory at the same time, each with a thread. By default twice the number of processors.
    most_waiting : int, default 64
        Number of further requests that wait. Others are refused as busy.
    """

    most_bytes: int = 50 * _MEBIBYTE
    most_decompressed: int = 1024 * _MEBIBYTE
    most_rows: int = 2_000_000
    most_columns: int = 2000
    failures_per_hour: int = 60
    wait: float = 10.0
    at_once: int = field(default_factory=_twice_the_cores)
    most_waiting: int = 64

    def of_holdout(self, rows: int | None) -> Limits:
        """Return the limits of a table for a holdout, with more rows than it has, so that errors name mistakes.

        Examples
        --------
        >>> Limits().of_holdout(500).most_rows, Limits(most_rows=100).of_holdout(500).most_rows
        (2000, 100)
        """
        return self if rows is None else replace(self, most_rows=min(self.most_rows, 2 * rows + 1000))
