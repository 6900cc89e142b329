"""A guard's history as a table."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from thresholdout.ledger import Entry

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["history_frame"]


def history_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per question; nothing in it is secret.

    Columns: ``query``, ``key``, ``name``, ``train``, ``value``, ``half_width``, ``source``, ``remaining`` (missing
    where no budget was declared), ``lower`` and ``upper``.

    Examples
    --------
    >>> entry = Entry(1, "a", "accuracy", 0.8, 0.79, 0.05, "holdout", 9, 0.0, 1.0)
    >>> history_frame([entry])[["query", "name", "value", "source", "remaining"]]
       query      name  value   source  remaining
    0      1  accuracy   0.79  holdout          9
    """
    import pandas as pd

    names = Entry.__slots__
    frame = pd.DataFrame(map(attrgetter(*names), entries), columns=list(names))
    return frame.astype({"query": "Int64", "remaining": "Int64"})
