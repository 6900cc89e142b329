"""How much the service takes: of one table, of one key, and at one moment.

All of them are public, and none depends on labels.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

__all__ = ["Limits"]

_MEBIBYTE = 2**20


def _twice_the_cores() -> int:
    return 2 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a service takes.

    Attributes
    ----------
    most_bytes : int
        Of one table, as it is sent.
    most_decompressed : int
        Bytes of one table in memory, once it is decompressed.
    most_rows, most_columns : int
        Of one table.
    failures_per_hour : int
        Refused tables of one key that are free, in each hour; further requests wait.
    wait : float
        Seconds for which a submission waits for its answer, unless the request prefers another time.
    at_once : int
        Tables that are held in memory at the same time, and threads that work on them.
    most_waiting : int
        Further requests that wait for these; others are told that the service is busy.

    Examples
    --------
    >>> Limits(most_rows=1000).most_rows
    1000
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
        """Return the limits of a table for a holdout: some more rows than both parts have, so that what is wrong shows.

        Examples
        --------
        >>> Limits().of_holdout(500).most_rows, Limits(most_rows=100).of_holdout(500).most_rows
        (2000, 100)
        """
        return self if rows is None else replace(self, most_rows=min(self.most_rows, 2 * rows + 1000))
