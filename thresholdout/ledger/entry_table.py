"""Entries of a ledger as a table."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from thresholdout.ledger.entry import Entry

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history_frame"]


def history_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per question; nothing in it is secret.

    Columns: ``query``, ``key``, ``name``, ``train``, ``value``, ``low``, ``high``, ``half_width``, ``source``,
    ``remaining`` (missing where no budget was declared), ``lower``, ``upper``, ``risk`` and ``list`` (missing where
    there is none), ``candidate``, ``asker`` and ``time`` (in POSIX seconds, missing where none was kept); see
    `thresholdout.ledger.Entry`.

    Examples
    --------
    >>> entry = Entry(1, "a", "accuracy", 0.8, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)
    >>> history_frame([entry])[["query", "name", "value", "source", "remaining"]]
       query      name  value   source  remaining
    0      1  accuracy   0.79  holdout          9
    """
    import pandas as pd

    names = list(Entry.__slots__)
    names.insert(names.index("high") + 1, "half_width")
    values = attrgetter(*names)
    frame = pd.DataFrame(map(values, entries), columns=names)
    return frame.astype({"query": "Int64", "remaining": "Int64", "risk": "float64", "list": "Int64", "time": "float64"})
