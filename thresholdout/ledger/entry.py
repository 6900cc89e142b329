"""Entries of a guard's history, their checks, and the history as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isclose, isfinite
from operator import attrgetter
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeAlias

from thresholdout.errors import (
    BudgetExhausted,
    InputError,
    InputTypeError,
    LedgerClosed,
    LedgerDamaged,
    LedgerError,
    LedgerMismatch,
    SharingError,
)
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
"""Name of the document that identifies a guard's records; the guard is found by it."""

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


LONGEST_TEXT: Final = 10_000
"""Maximum characters of a key, a name, or another text of an entry, so that no history can fill a disk."""

MADE: Final = "content:"
"""Prefix of keys that a guard has made from the content of a query."""

LARGEST_COUNT: Final = 2**63 - 1
"""Largest number of a query that every database can store."""


def fresh_key() -> str:
    """Return a new unique key: 128 random bits as 32 hexadecimal digits."""
    return os.urandom(16).hex()


def scoped_key(key: str | None, client: str) -> str | None:
    """Return the key under which a client's query is stored, which differs from all other clients' keys."""
    if key is None or not client:
        return None if key is None else str(key)  # a plain text, without a subclass
    return f"client {sha256(client.encode()).hexdigest()[:32]}: {key}"


class ContentKey(str):
    """A key that a guard has made from the content of a query."""

    __slots__ = ()


class SpareKey(str):
    """A key that another process has chosen, for a query without a key of its content."""

    __slots__ = ()


def check_entry(entry: Entry) -> None:
    """Refuse an entry that no ledger could store."""
    numbers = (entry.train, entry.value, entry.low, entry.high, entry.lower, entry.upper)
    if not isfinite(sum(numbers)):
        for value in numbers:  # the sum of finite numbers may overflow
            if not isfinite(value):
                raise InputError("entry", f"the value {value}", "an entry of finite numbers")
    for count in (entry.remaining, entry.list):
        if count is not None and not 0 <= count <= LARGEST_COUNT:
            raise InputError(
                "entry",
                "a count that is negative or too large",
                f"an entry with counts of 0 to {LARGEST_COUNT}, or None",
            )
    if entry.low > entry.high:
        raise InputError("entry", f"an interval from {entry.low} to {entry.high}", "an entry with low <= high")
    if entry.time is not None and not isfinite(entry.time):
        raise InputError("entry", f"a time of {entry.time}", "an entry with a time in POSIX seconds, or None")
    if entry.log_error_budget is not None and not entry.log_error_budget <= 0.0:
        raise InputError(
            "entry", f"a log_error_budget of {entry.log_error_budget}", "an entry with one of at most 0, or None"
        )
    check_short_texts(source=entry.source, candidate=entry.candidate, client=entry.client)


def check_history(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield entries to be stored, each after its checks; see `Ledger.restore`."""
    keys: set[str] = set()
    together: int | None = None
    for number, entry in enumerate(entries, 1):
        if entry.query != number:
            raise InputError(
                "entries", f"entry {entry.query} as number {number}", "all entries from number 1 on, in order"
            )
        if entry.key in keys:
            raise InputError(
                "entries", f"an entry {number} with the key of an earlier one", "entries with different keys"
            )
        keys.add(entry.key)
        if entry.list not in (None, number, together):
            seen = f"an entry {number} of list {entry.list}"
            raise InputError("entries", seen, "lists without gaps, with the number of their first query", _LISTS)
        together = entry.list
        check_query(entry.key, entry.train, entry.name)
        check_entry(entry)
        yield entry


_LISTS: Final = "No other entry may be between two of a list."


def check_since(since: float | None) -> None:
    """Refuse a value that is no time; see `Ledger.ask`."""
    if since is not None and not (isinstance(since, float | int) and isfinite(since)):
        raise InputError("since", repr(since), "a time in POSIX seconds, or None")


def is_since(entry: Entry, since: float | None) -> bool:
    """Whether an entry was stored at a time or later; one without a time is older than any."""
    return since is None or (entry.time is not None and entry.time >= since)


def check_slice(start: int, count: int | None) -> int:
    """Return the number of a slice's last entry; see `Ledger.entries`."""
    if not isinstance(start, int) or start < 1:
        raise InputError("start", repr(start), "the number of an entry, at least 1")
    if count is None:
        return 2**62
    if not isinstance(count, int) or count < 0:
        raise InputError("count", repr(count), "a number of entries, or None for all")
    return start + count - 1


def check_texts(**texts: str) -> None:
    """Refuse a text that some ledger cannot store, without showing it."""
    for argument, text in texts.items():
        _check_text(argument, text)


def check_short_texts(**texts: str) -> None:
    """Refuse a text that is too long for an entry; see `check_texts`."""
    for argument, text in texts.items():
        if isinstance(text, str) and len(text) > LONGEST_TEXT:
            raise InputError(argument, f"a text of {len(text):,} characters", f"a text of at most {LONGEST_TEXT:,}")
        if text != "":
            _check_text(argument, text)


def check_queries(asked: Iterable[Asked]) -> None:
    """Refuse an empty list, equal keys, and queries that no ledger can store; see `Ledger.ask_all`."""
    keys: set[str] = set()
    count = 0
    for count, query in enumerate(asked, 1):  # noqa: B007 - counted for the check below
        check_query(query.key, query.train, query.name, query.client, query.quota, query.since)
        if query.key in keys:
            raise InputError("asked", f"two queries with the key {query.key!r}", "queries with different keys")
        if query.key is not None:
            keys.add(query.key)
    if not count:
        raise InputError("asked", "no queries", "at least one query")


def check_query(
    key: str | None,
    train: float,
    name: str,
    client: str = "",
    quota: int | None = None,
    since: float | None = None,
) -> None:
    """Refuse a query that no ledger can store; see `Ledger.ask`."""
    check_since(since)
    check_short_texts(name=name, client=client)
    if quota is not None and not (isinstance(quota, int) and 0 <= quota <= LARGEST_COUNT):
        raise InputError("quota", repr(quota), "a number of queries, or None for any number")
    if key is not None:
        check_short_texts(key=key)
        check_short_texts(key=scoped_key(key, client) or key)
        if not key:
            raise InputError("key", "an empty string", "a text, or None for a new key")
    if not isinstance(train, float | int):
        raise InputTypeError("train", f"a {type(train).__name__}", "a number")
    if not isfinite(train):
        raise InputError("train", train, "a finite number")


def check_repeat(stored: Entry, train: float) -> None:
    """Refuse a key that was used for another query.

    The order of a sum may differ between runs, so training values are equal if they agree to nine digits. A key that
    was made from a query's content identifies it, and its training value may come from different fits each time.
    """
    if not stored.key.startswith(MADE) and not isclose(stored.train, train, rel_tol=1e-9, abs_tol=1e-9):
        raise InputError(
            "key",
            f"{stored.key!r}, which was asked with train value {stored.train!r}, now {train!r}",
            "a new key, or None, for another query",
        )


def check_key(stored: Entry, key: str) -> None:
    """Refuse a key with the digest of another one, in databases that find keys by digests."""
    if stored.key != key:
        raise InputError("key", f"{key!r}, with the MD5 digest of {stored.key!r}", "another key")


def parameters_text(parameters: Mapping[str, JSON]) -> str:
    """Return parameters as JSON text."""
    try:
        text = json.dumps(dict(parameters), allow_nan=False)
        same = bool(json.loads(text) == dict(parameters))
    except (TypeError, ValueError) as error:
        raise InputTypeError("parameters", f"other values ({error})", "values of JSON") from None
    except RecursionError:
        raise InputError("parameters", "values that are nested without end", "values of JSON") from None
    if not same:
        raise InputTypeError(
            "parameters", "values that JSON changes", "values with strings as names, and lists in place of tuples"
        )
    return text


def read_parameters(text: str) -> dict[str, JSON]:
    """Return the parameters of a text from `parameters_text`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("parameters", "another text", "the text of a JSON object")
    return found


def check_creation(guard: str, state: str, documents: Iterable[tuple[str, str]]) -> None:
    """Refuse a guard that no ledger can store; see `Ledger.create`."""
    check_texts(guard=guard, state=state)
    if not guard:
        raise InputError("guard", "an empty string", "a name, such as `fresh_key` makes")
    for name, text in documents:
        check_texts(name=name, document=text)


def check_document(name: str, text: str) -> None:
    """Refuse a document that no ledger can add to a guard; see `Ledger.put_document`."""
    check_texts(name=name, text=text)
    if name == CONTENT:
        raise InputError("name", repr(name), "another name", "A guard is created with this document, or never has it.")


def _check_text(argument: str, text: object) -> None:
    """Refuse a text that some ledger cannot store; see `check_texts`."""
    if not isinstance(text, str):
        raise InputTypeError(argument, f"a {type(text).__name__}", "a string")
    if "\0" in text:
        raise InputError(
            argument, "text with a NUL character", "text without NUL", "Not every database stores that character."
        )
    if not text.isascii():
        _check_encodable(argument, text)


def _check_encodable(argument: str, text: str) -> None:
    """Refuse text with lone surrogates; Python's own error would show the text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        encodable = False
    else:
        encodable = True
    if not encodable:
        raise InputError(argument, "text with lone surrogates", "text that UTF-8 can encode")


class Refusals:
    """Refusals and checks that all ledgers share."""

    location: str

    def _parsed(self, guard: str, parameters: str) -> dict[str, JSON]:
        """Return parameters from their stored text."""
        try:
            return read_parameters(parameters)
        except InputError:
            pass
        raise LedgerDamaged(self.location, None, f"The parameters of guard {guard[:12]!r}... cannot be read.")

    def _unknown(self, guard: str) -> LedgerMismatch:
        """Return the error for a guard that is not in the ledger."""
        return LedgerMismatch(self.location, f"It has no guard {guard[:12]!r}.... Use the ledger it was created in.")

    def _check_closed(self, closed: str | None) -> None:
        """Refuse to change a closed guard."""
        if closed is not None:
            raise LedgerClosed(self.location, closed)

    def _same_records(self, known: str) -> LedgerMismatch:
        """Return the error for a second guard for the same records."""
        return LedgerMismatch(
            self.location,
            f"It has guard {known[:12]!r}... for the same records already, and two guards would spend two budgets. "
            "Use the existing guard, or restore this one in another ledger.",
        )

    def _there_already(self, guard: str) -> LedgerMismatch:
        """Return the error for a history that would be joined to another."""
        return LedgerMismatch(
            self.location,
            f"It has guard {guard[:12]!r}... already, with a history of its own. Restore it in another ledger.",
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
                f"It has guard {guard[:12]!r}... with other parameters: {seen}. "
                "Pass the stored parameters, or use new data and another ledger.",
            )

    def _check_document(self, name: str, stored: str, given: str) -> None:
        """Refuse a document that differs from the stored one."""
        if stored != given:
            raise LedgerMismatch(
                self.location, f"It has a document {name!r} with another text already, and documents never change."
            )

    def _reentered(self) -> LedgerError:
        """Return the error for a mechanism that uses the ledger while it is asked."""
        return LedgerError(
            self.location,
            "The mechanism used the ledger while it computed an answer, which it must not. Nothing was stored.",
        )

    def __reduce__(self) -> NoReturn:
        raise SharingError(
            f"Ledger {self.location} cannot be copied or pickled, because both copies would spend the same budget. "
            "Open its file again instead."
        )

    @staticmethod
    def _check_quotas(asked: Iterable[Asked], count: Callable[[str, float | None], int]) -> None:
        """Refuse new queries beyond their clients' quotas, given a count of a client's entries since a time."""
        new: dict[str, int] = {}
        for query in asked:
            if query.quota is not None:
                new[query.client] = new.get(query.client, 0) + 1
                if count(query.client, query.since) + new[query.client] > query.quota:
                    raise BudgetExhausted("quota", query.quota, query.quota)

    def _settled(
        self, computed: Sequence[Entry], first: int, asked: Sequence[tuple[str, Asked]], together: bool
    ) -> list[Entry]:
        """Return new entries in their stored form, after their checks."""
        if len(computed) != len(asked):
            seen = f"The mechanism answered {len(computed)} of {len(asked)} queries"
            raise LedgerError(self.location, f"{seen}, so nothing was stored.")
        settled, now = [], time()
        for number, (entry, (key, query)) in enumerate(zip(computed, asked, strict=True), first):
            if entry.query != number:
                raise LedgerError(
                    self.location, f"The mechanism numbered query {number} as {entry.query}, so nothing was stored."
                )
            stored = entry.settled(key, query, first if together else None, now)
            check_entry(stored)
            settled.append(stored)
        return settled


_COLUMNS: Final = (
    "name", "value", "candidate", "low", "high", "key", "lower", "upper", "log_error_budget", "list", "client", "time",
    "train", "remaining", "query", "half_width", "source",
)  # fmt: skip
"""Columns of a history. On a narrow screen pandas omits those in the middle, so the most useful ones come first."""


class Asked(NamedTuple):
    """A query on its way into the ledger.

    A key names one query of a client; None makes a new one. ``train`` is the mean on the training part, which must
    agree to nine digits for a repeated key. ``quota`` is the maximum number of this client's queries, with this one,
    since the time ``since`` in POSIX seconds.
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

    Numbers are in the query's own units. ``source`` is "train" or "holdout" for the origin of the value, "failed" for a
    query that could not be computed on the holdout, or another kind. ``remaining`` are the answers from the holdout
    that are left, None without a limit. ``lower`` and ``upper`` bound the query's range. ``log_error_budget`` is the
    natural logarithm of the remaining error budget, minus infinity if nothing is left, and None for mechanisms without
    one. ``list`` is the number of the first query of a list that was asked together. ``time`` is that of storage, in
    POSIX seconds.

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
        """Return the entry in its stored form, with the query, a key, a list and a time."""
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
        """Larger distance from the value to an end of the interval."""
        return larger_side(self.value, self.low, self.high)


def history_frame(entries: Iterable[Entry], approximation: str = "") -> pd.DataFrame:
    """Return entries of a ledger as a data frame, one row per query; nothing in it is secret.

    See `thresholdout.ledger.Entry` for the columns. ``list``, ``time`` and ``remaining`` are missing if an entry has
    none. Approximate intervals are described in ``attrs["approximation"]``.

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
