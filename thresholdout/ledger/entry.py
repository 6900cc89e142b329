"""One line of a guard's history, the query that it answers, and a history as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isclose, isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from thresholdout.errors import InputError, InputTypeError, LedgerClosed, LedgerDamaged, LedgerError, LedgerMismatch
from thresholdout.limits.rounded_intervals import larger_side

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CONTENT",
    "JSON",
    "LARGEST_COUNT",
    "LONGEST_TEXT",
    "MADE",
    "Asked",
    "ContentKey",
    "Entry",
    "Refusals",
    "SpareKey",
    "check_creation",
    "check_document",
    "check_entry",
    "check_history",
    "check_key",
    "check_queries",
    "check_query",
    "check_repeat",
    "check_since",
    "check_slice",
    "check_texts",
    "fresh_key",
    "history_frame",
    "is_since",
    "parameters_text",
    "read_parameters",
    "scoped_key",
]

CONTENT: Final = "holdout/content"
"""Name of the document that says which records a guard is for; the guard is found by it again."""

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


LONGEST_TEXT: Final = 10_000
"""The most characters of a key, a name, or another text of an entry."""

MADE: Final = "content:"
"""How keys begin that a guard has made from the content of a query."""

LARGEST_COUNT: Final = 2**63 - 1
"""The largest number of a query that every database takes."""


def fresh_key() -> str:
    """Return a key that no other query has: 128 random bits as 32 hexadecimal digits."""
    return os.urandom(16).hex()


def scoped_key(key: str | None, client: str) -> str | None:
    """Return the key under which a client's query is stored: no other client's query has it."""
    if key is None or not client:
        return None if key is None else str(key)  # no text of a kind of its own
    return f"client {sha256(client.encode()).hexdigest()[:32]}: {key}"


class ContentKey(str):
    """A key that a guard has made from the content of a query."""

    __slots__ = ()


class SpareKey(str):
    """A key that another process has chosen, in case that the query cannot be known by its content."""

    __slots__ = ()


def check_entry(entry: Entry) -> None:
    """Refuse an entry that no ledger could store."""
    numbers = (entry.train, entry.value, entry.low, entry.high, entry.lower, entry.upper)
    if not isfinite(sum(numbers)):
        for value in numbers:  # a sum may overflow
            if not isfinite(value):
                raise InputError("entry", f"a value is {value}", "finite numbers")
    for count in (entry.remaining, entry.list):
        if count is not None and not 0 <= count <= LARGEST_COUNT:
            raise InputError("entry", "a count that is negative or too large", f"0 to {LARGEST_COUNT}, or None")
    if entry.low > entry.high:
        raise InputError("entry", f"an interval from {entry.low} to {entry.high}", "its lower end first")
    if entry.time is not None and not isfinite(entry.time):
        raise InputError("entry", f"a time of {entry.time}", "POSIX seconds, or None")
    if entry.log_error_budget is not None and not entry.log_error_budget <= 0.0:
        raise InputError("entry", f"a risk whose logarithm is {entry.log_error_budget}", "at most 0, or None")
    check_short_texts(source=entry.source, candidate=entry.candidate, client=entry.client)


def check_history(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries that are to be stored, after checking each; see `Ledger.restore`."""
    keys: set[str] = set()
    together: int | None = None
    for number, entry in enumerate(entries, 1):
        if entry.query != number:
            raise InputError("entries", f"entry {entry.query} as number {number}", "all entries from 1 on, in order")
        if entry.key in keys:
            raise InputError("entries", f"entry {number} has the key of an earlier one", "a key for each")
        keys.add(entry.key)
        if entry.list not in (None, number, together):
            seen = f"entry {number} belongs to list {entry.list}"
            raise InputError("entries", seen, "the number of the list's first query, and no other entry between")
        together = entry.list
        check_query(entry.key, entry.train, entry.name)
        check_entry(entry)
        yield entry


def check_since(since: float | None) -> None:
    """Refuse what is no time; see `Ledger.ask`."""
    if since is not None and not (isinstance(since, float | int) and isfinite(since)):
        raise InputError("since", repr(since), "a time in POSIX seconds, or None")


def is_since(entry: Entry, since: float | None) -> bool:
    """Whether an entry was stored at a time or later; one without a time is older than any."""
    return since is None or (entry.time is not None and entry.time >= since)


def check_slice(start: int, count: int | None) -> int:
    """Refuse a part of a history that can't be, and return the number of its last entry; see `Ledger.entries`."""
    if not isinstance(start, int) or start < 1:
        raise InputError("start", repr(start), "the number of an entry, at least 1")
    if count is None:
        return 2**62
    if not isinstance(count, int) or count < 0:
        raise InputError("count", repr(count), "a number of entries, or None for all")
    return start + count - 1


def check_texts(**texts: str) -> None:
    """Refuse what is not text that every ledger can store, without repeating it."""
    for argument, text in texts.items():
        _check_text(argument, text)


def check_short_texts(**texts: str) -> None:
    """Refuse what is no text of an entry; see `check_texts`."""
    for argument, text in texts.items():
        if isinstance(text, str) and len(text) > LONGEST_TEXT:
            raise InputError(argument, f"a text of {len(text):,} characters", f"one of at most {LONGEST_TEXT:,}")
        if text != "":
            _check_text(argument, text)


def check_queries(asked: Iterable[Asked]) -> None:
    """Refuse queries that no ledger could store, or that are no list; see `Ledger.ask_all`."""
    keys: set[str] = set()
    count = 0
    for count, query in enumerate(asked, 1):  # noqa: B007 - counted for the check below
        check_query(query.key, query.train, query.name, query.client, query.quota, query.since)
        if query.key in keys:
            raise InputError("asked", f"two queries with the key {query.key!r}", "a key for each")
        if query.key is not None:
            keys.add(query.key)
    if not count:
        raise InputError("asked", "no queries", "at least one")


def check_query(
    key: str | None,
    train: float,
    name: str,
    client: str = "",
    quota: int | None = None,
    since: float | None = None,
) -> None:
    """Refuse a query that no ledger could store; see `Ledger.ask`."""
    check_since(since)
    check_short_texts(name=name, client=client)
    if quota is not None and not (isinstance(quota, int) and 0 <= quota <= LARGEST_COUNT):
        raise InputError("quota", repr(quota), "a number of queries, or None for any number")
    if key is not None:
        check_short_texts(key=key)
        check_short_texts(key=scoped_key(key, client) or key)
        if not key:
            raise InputError("key", "an empty string", "a text of your own, or None for a new key")
    if not isinstance(train, float | int):
        raise InputTypeError("train", f"a {type(train).__name__}", "a number")
    if not isfinite(train):
        raise InputError("train", train, "a finite number")


def check_repeat(stored: Entry, train: float) -> None:
    """Refuse a key that is used for another query.

    The order of a sum may differ between runs, so training values are the same when they agree to nine digits. A key
    that was made from the content of a query says that it is the same one; its training value may come from fits
    that are others each time.
    """
    if not stored.key.startswith(MADE) and not isclose(stored.train, train, rel_tol=1e-9, abs_tol=1e-9):
        raise InputError(
            "key",
            f"{stored.key!r} was asked with train value {stored.train!r}, now {train!r}",
            "a key names one query; use another key, or None",
        )


def check_key(stored: Entry, key: str) -> None:
    """Refuse a key whose digest is another's, where the database finds keys by their digests."""
    if stored.key != key:
        raise InputError("key", f"{key!r}, which has the MD5 digest of {stored.key!r}", "another key")


def parameters_text(parameters: Mapping[str, JSON]) -> str:
    """Return parameters as JSON text."""
    try:
        text = json.dumps(dict(parameters), allow_nan=False)
        same = bool(json.loads(text) == dict(parameters))
    except (TypeError, ValueError) as error:
        raise InputTypeError("parameters", str(error), "values that JSON can hold") from None
    except RecursionError:
        raise InputError("parameters", "values within values without end", "values that JSON can hold") from None
    if not same:
        raise InputTypeError("parameters", "they change when written as JSON", "names that are strings, and lists")
    return text


def read_parameters(text: str) -> dict[str, JSON]:
    """Return what `parameters_text` wrote."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("parameters", "a text of another form", "a JSON object")
    return found


def check_creation(guard: str, state: str, documents: Iterable[tuple[str, str]]) -> None:
    """Refuse a guard that no ledger could store; see `Ledger.create`."""
    check_texts(guard=guard, state=state)
    if not guard:
        raise InputError("guard", "an empty string", "a name, such as `fresh_key` makes")
    for name, text in documents:
        check_texts(name=name, document=text)


def check_document(name: str, text: str) -> None:
    """Refuse a document that no ledger could add to a guard; see `Ledger.put_document`."""
    check_texts(name=name, text=text)
    if name == CONTENT:
        raise InputError("name", repr(name), "another name; a guard is created with this document, or never has it")


def _check_text(argument: str, text: object) -> None:
    """Refuse what is not text that every ledger can store; see `check_texts`."""
    if not isinstance(text, str):
        raise InputTypeError(argument, f"a {type(text).__name__}", "a string")
    if "\0" in text:
        raise InputError(argument, "text with a NUL character", "text without, since not every database takes it")
    if not text.isascii():
        _check_encodable(argument, text)


def _check_encodable(argument: str, text: str) -> None:
    """Refuse text with lone surrogates; the error that Python raises would carry the text itself."""
    try:
        text.encode()
    except UnicodeEncodeError:
        encodable = False
    else:
        encodable = True
    if not encodable:
        raise InputError(argument, "text with lone surrogates", "text that UTF-8 can encode")


class Refusals:
    """The refusals that all ledgers have in common."""

    location: str

    def _parsed(self, guard: str, parameters: str) -> dict[str, JSON]:
        """Return stored parameters as they were given."""
        try:
            return read_parameters(parameters)
        except InputError:
            pass
        raise LedgerDamaged(self.location, None, f"guard {guard[:12]!r}...: its parameters can't be read")

    def _unknown(self, guard: str) -> LedgerMismatch:
        """Error for a guard that is not here."""
        return LedgerMismatch(
            self.location, f"holds no guard {guard[:12]!r}...; it was made for other data, or not created yet"
        )

    def _check_closed(self, closed: str | None) -> None:
        """Refuse what would change a guard that was closed."""
        if closed is not None:
            raise LedgerClosed(self.location, closed)

    def _same_records(self, known: str) -> LedgerMismatch:
        """Error for a second guard for the same records."""
        return LedgerMismatch(
            self.location,
            f"holds guard {known[:12]!r}... for the same records; both would answer about them, so "
            "keep the one that is there, or restore this one in another ledger",
        )

    def _there_already(self, guard: str) -> LedgerMismatch:
        """Error for a history that would be joined to another."""
        return LedgerMismatch(
            self.location, f"holds guard {guard[:12]!r}... already, with a history of its own; restore it elsewhere"
        )

    def _check_parameters(self, guard: str, stored: Mapping[str, JSON], given: Mapping[str, JSON]) -> None:
        """Refuse parameters that differ from the stored ones."""
        names = [
            name
            for name in dict.fromkeys([*stored, *given])
            if name not in stored or name not in given or stored[name] != given[name]
        ]
        if names:
            seen = ", ".join(f"{name} is {stored.get(name)!r}, not {given.get(name)!r}" for name in names)
            raise LedgerMismatch(
                self.location,
                f"holds guard {guard[:12]!r}... with other parameters: {seen}; "
                "use these, or new data with a ledger of its own",
            )

    def _check_document(self, name: str, stored: str, given: str) -> None:
        """Refuse a document that would change the stored one."""
        if stored != given:
            raise LedgerMismatch(self.location, f"has a document {name!r} with another text; documents never change")

    def _reentered(self) -> LedgerError:
        """Error for a mechanism that uses the ledger while it is asked."""
        return LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")


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
        """Return the entry as it is stored: with the query as it was asked, a key, a list and a time."""
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


def history_frame(entries: Iterable[Entry], approximation: str = "") -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per query; nothing in it is secret.

    Columns: ``name``, ``value``, ``candidate``, ``low``, ``high``, ``key``, ``lower``, ``upper``, ``risk`` and ``list``
    (missing where there is none), ``client``, ``time`` (in POSIX seconds, missing where none was kept), ``train``,
    ``remaining`` (missing where no budget was declared), ``query``, ``half_width`` and ``source``; see
    `thresholdout.ledger.Entry`. Where intervals are approximate, ``attrs["approximation"]`` says how.

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
    if approximation:
        frame.attrs["approximation"] = approximation
    return frame.astype(
        {"query": "Int64", "remaining": "Int64", "log_error_budget": "float64", "list": "Int64", "time": "float64"}
    )
