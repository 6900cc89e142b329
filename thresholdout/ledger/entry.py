"""One line of a guard's history, the query that it answers, and a history as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from thresholdout.limits.rounded_intervals import larger_side

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Asked", "Entry", "history_frame"]

_COLUMNS: Final = (
    "name", "value", "candidate", "low", "high", "key", "lower", "upper", "log_error_budget", "list", "client", "time",
    "train", "remaining", "query", "half_width", "source",
)  # fmt: skip
"""Where a screen has no room for all of them, pandas leaves out those in the middle, and shows four at least."""


class Asked(NamedTuple):
    """A query on its way into the ledger.

    Parameters
    ----------
    key : str or None
        The query's identity; None makes a new one.
    train : float
        Mean on the training part; must be the same, to nine digits, when a key is repeated.
    name : str
        What is asked, for the history.
    client : str
        Who asks; a key names one query of a client.
    quota : int or None
        How many queries this client may have asked after it, so that it is not answered beyond; None for any number.
    since : float or None
        From which time on a quota counts, in POSIX seconds; None for all queries.
    """

    key: str | None
    train: float
    name: str
    client: str = ""
    quota: int | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One query and its answer, as the ledger keeps it; nothing in it is secret.

    Parameters
    ----------
    query : int
        Number of the query, 1 for the first that the guard answered.
    key : str
        The query's identity: asking again with the same key gives this entry again.
    name : str
        What was asked, in the user's words, such as ``"accuracy"``.
    train : float
        Mean on the training part, in the query's own units.
    value : float
        The answer, in the query's own units.
    low, high : float
        The certified interval, in the query's own units.
    source : str
        What kind of answer it is: "train" and "holdout" say where the value comes from, "failed" that the query
        could not be computed on the holdout. Other kinds may follow.
    remaining : int or None
        Answers from the holdout that are left after this one; None when there is no limit.
    lower, upper : float
        Bounds of the query's range.
    log_error_budget : float or None
        Natural logarithm of the remaining error budget after this entry, at most 0, and minus infinity when nothing is;
        None where the mechanism has no such number.
    list : int or None
        For queries that were asked together, the number of the first of them; None for a query asked alone.
    candidate : str
        What the query was about, such as a model or a proposal.
    client : str
        Who asked.
    time : float or None
        When it was stored, by the clock of whoever stored it, in POSIX seconds; None before it is stored.

    Examples
    --------
    >>> entry = Entry(1, "first", "accuracy", 0.8, 0.75, 0.25, 1.0, "holdout", 9, 0.0, 1.0)
    >>> entry.remaining, entry.half_width
    (9, 0.5)
    """

    query: int
    key: str
    name: str
    train: float
    value: float
    low: float
    high: float
    source: str
    remaining: int | None
    lower: float
    upper: float
    log_error_budget: float | None = None
    list: int | None = None
    candidate: str = ""
    client: str = ""
    time: float | None = None

    def settled(self, key: str, asked: Asked, together: int | None, time: float) -> Entry:
        """Return the entry as it is stored: with the query as it was asked, a key, a list and a time.

        Parameters
        ----------
        key : str
            The query's identity.
        asked : Asked
            The query.
        together : int or None
            Number of the first query of its list.
        time : float
            When it is stored.
        """
        return Entry(
            self.query,
            key,
            asked.name,
            asked.train,
            self.value,
            self.low,
            self.high,
            self.source,
            self.remaining,
            self.lower,
            self.upper,
            self.log_error_budget,
            together,
            self.candidate,
            asked.client,
            time,
        )

    @property
    def half_width(self) -> float:
        """The larger of the two sides of the interval, seen from the value."""
        return larger_side(self.value, self.low, self.high)


def history_frame(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per query; nothing in it is secret.

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
    return frame.astype(
        {"query": "Int64", "remaining": "Int64", "log_error_budget": "float64", "list": "Int64", "time": "float64"}
    )
