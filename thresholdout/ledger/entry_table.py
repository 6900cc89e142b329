"""Entries of a ledger as a table."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from thresholdout.ledger.entry import Entry

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history_frame"]

_COLUMNS: Final = (
    "name", "value", "candidate", "low", "high", "key", "lower", "upper", "risk", "list", "client", "time", "train",
    "remaining", "query", "half_width", "source",
)  # fmt: skip
"""Where a screen has no room for all of them, pandas leaves out those in the middle, and shows four at least."""


def history_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per question; nothing in it is secret.

    Columns: ``name``, ``value``, ``candidate``, ``low``, ``high``, ``key``, ``lower``, ``upper``, ``risk`` and ``list``
    (missing where there is none), ``client``, ``time`` (in POSIX seconds, missing where none was kept), ``train``,
    ``remaining`` (missing where no budget was declared), ``query``, ``half_width`` and ``source``; see
    `thresholdout.ledger.Entry`.

    Examples
    --------
    >>> entry = Entry(1, "a", "accuracy", 0.8, 0.79, 0.74, 0.84, "holdout", 9, 0.0, 1.0)
    >>> history_frame([entry])[["query", "name", "value", "source", "remaining"]]
       query      name  value   source  remaining
    0      1  accuracy   0.79  holdout          9
    """
    import pandas as pd

    values = attrgetter(*_COLUMNS)
    frame = pd.DataFrame(map(values, entries), columns=list(_COLUMNS))
    return frame.astype({"query": "Int64", "remaining": "Int64", "risk": "float64", "list": "Int64", "time": "float64"})
