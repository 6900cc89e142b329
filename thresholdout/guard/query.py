"""A query: its training value, identity and range, and the conversion of its outcome to the user's units."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final, Literal, cast, get_args

from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.query_keys import check_own
from thresholdout.ledger.entry import ContentKey, Entry
from thresholdout.mechanisms import UNKNOWN, Known, Outcome
from thresholdout.mechanisms.base import AnswerSource

__all__ = ["Query"]

_OTHER_KEY: Final = "A key names one query: use another one, or None."
_UNIT: Final = (0.0, 1.0)
_ANSWERED: Final = frozenset(get_args(AnswerSource))


class Query:
    """A query as the ledger records it.

    ``train`` is in units of the range, ``shown`` in the user's units. ``quota`` and ``since`` limit the queries of its
    client, ``slack`` is added to both ends of the interval for values that are not exact, and ``corrected`` names the
    labels that the holdout's values are computed with (see `GuardState`).
    """

    __slots__ = (
        "candidate",
        "corrected",
        "estimand",
        "key",
        "known",
        "limits",
        "name",
        "quota",
        "shown",
        "since",
        "slack",
        "train",
    )

    def __init__(
        self,
        train: float,
        limits: tuple[float, float],
        name: str,
        key: str | None,
        known: Known = UNKNOWN,
        estimand: str = "",
    ) -> None:
        check_own(key)
        self.train = train
        self.limits = limits
        self.name = name
        self.key = key
        self.known = known
        self.estimand = estimand
        self.candidate = ""
        self.quota: int | None = None
        self.since: float | None = None
        self.corrected = ""
        self.slack = 0.0
        self.shown = train if limits == _UNIT else limits[0] + (limits[1] - limits[0]) * train

    def asked_by(self, client: str, quota: int | None, since: float | None = None) -> Query:
        """Set the client, and how many queries it may have asked after this one since a time; return the query."""
        if client != self.known.client:
            self.known = replace(self.known, client=client)
        self.quota, self.since = quota, since
        return self

    @classmethod
    def recalled(cls, entry: Entry, key: str, estimand: str = "") -> Query:
        """Return a query from its stored answer, with all that the answer needs."""
        return cls(entry.train, (entry.lower, entry.upper), entry.name, key, estimand=estimand)

    def about(self, candidate: str) -> Query:
        """Return the same query with the candidate's name in the history."""
        other = Query(self.train, self.limits, self.name, self.key, self.known, self.estimand)
        other.candidate, other.corrected, other.slack = candidate, self.corrected, self.slack
        return other

    def standing_for(self, name: str, key: str | None) -> Query:
        """Return the query that represents a list of which this is the first."""
        other = Query(self.train, self.limits, name, key, self.known)
        other.slack = self.slack
        return other

    def without_key(self) -> Query:
        """Return the same query with a new key, which the ledger makes."""
        return Query(self.train, self.limits, self.name, None, self.known, self.estimand)

    def entry(self, outcome: Outcome, remaining: int | None, interval: tuple[float, float] | None = None) -> Entry:
        """Return the history's entry of an outcome, in the user's units; by default with the outcome's own interval.

        The interval is extended by ``slack``, and in other units also by the rounding of the conversion.
        """
        interval = interval or outcome.interval
        assert interval is not None
        lower, upper = self.limits
        width = upper - lower
        rounding = self.slack + (0.0 if self.limits == _UNIT else 2.0 * math.ulp(max(abs(lower), abs(upper))))
        value = self.shown if outcome.source == "failed" else lower + width * outcome.value
        low = max(lower, lower + width * interval[0] - rounding)
        high = min(upper, lower + width * interval[1] + rounding)
        value = min(max(value, low), high)
        return Entry(
            query=outcome.asked,
            key=str(self.key or ""),
            name=self.name,
            train=self.shown,
            value=value,
            low=low,
            high=high,
            source=outcome.source,
            remaining=remaining,
            lower=lower,
            upper=upper,
            log_error_budget=outcome.log_error_budget,
            candidate=self.candidate,
            client=self.known.client,
        )

    def decided(self, verdict: str, claim: tuple[float, float], value: float, query: int, **rest: Any) -> Entry:
        """Return the history's entry of a verdict about a candidate, with the claimed limits of its gain."""
        low, high = claim
        return Entry(
            query=query,
            key=str(self.key or ""),
            name=self.name,
            train=self.shown,
            value=min(max(value, low), high),
            low=low,
            high=high,
            source=verdict,
            lower=self.limits[0],
            upper=self.limits[1],
            candidate=self.candidate,
            client=self.known.client,
            **rest,
        )

    def check(self, entry: Entry, repeated: bool) -> None:
        """Refuse a stored entry of another query, or of a failure."""
        known = isinstance(self.key, ContentKey)
        if repeated and not known and ((entry.lower, entry.upper) != self.limits or entry.name != self.name):
            was = f"{entry.key!r}, the key of {entry.name!r} with values in [{entry.lower:g}, {entry.upper:g}]"
            raise InputError("key", was, "the key of this query", _OTHER_KEY)
        if entry.source == "failed":
            seen = f"{entry.key!r}, the key of a query that failed on the holdout and was charged"
            advice = "Use it for a query that works on both parts."
            if known:
                seen = "None for a query that failed on the holdout and was charged"
                advice = "Change the query so that it works on both parts. A key of your own asks it once more."
            raise InputError("key", seen, "another key", advice)

    def answer(
        self, entry: Entry, repeated: bool, about: Literal["query", "best"], *, approximate: bool = False
    ) -> Answer:
        """Return the stored answer; refuse an entry of another query, of a failure or of a gate."""
        self.check(entry, repeated)
        if entry.source not in _ANSWERED:
            seen = f"{entry.key!r}, the key of a candidate ({entry.name!r})"
            raise InputError("key", seen, "the key of this query", _OTHER_KEY)
        return Answer(
            value=entry.value,
            interval=(entry.low, entry.high),
            source=cast(AnswerSource, entry.source),
            query=entry.query,
            remaining=entry.remaining,
            lower=entry.lower,
            upper=entry.upper,
            name=entry.name,
            repeated=repeated,
            about=about,
            candidate=entry.candidate,
            estimand=self.estimand,
            approximate=approximate,
        )
