"""Responses of a service as frozen values; unknown fields are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from thresholdout.client.errors import ServiceUnavailable

__all__ = ["Holdout", "Leaderboard", "Standing", "Submission", "holdout_of", "leaderboard_of", "submission_of"]


@dataclass(frozen=True, slots=True)
class Holdout:
    """A holdout, as its service describes it; times are POSIX seconds.

    Notes
    -----
    `feedback` is ``"interval"``, ``"verdict"`` or ``"best"``; `phase` is ``"open"``, ``"blind"`` or ``"closed"``.
    `estimand` and `promise` are the target and the guarantee of the intervals in words. `information_released` is in
    nats. `rows` counts the records of both parts: a table with more than about twice as many rows is refused unread.
    """

    name: str
    metric: str
    greater_is_better: bool
    feedback: str
    phase: str
    title: str = ""
    identity: str = ""
    lower: float | None = None
    upper: float | None = None
    public: bool = False
    records: int | None = None
    confidence: float | None = None
    mechanism: str = ""
    estimand: str = ""
    promise: str = ""
    asked: int | None = None
    remaining: int | None = None
    information_released: float | None = None
    quota: int | None = None
    quota_days: float | None = None
    checkpoint: str = ""
    made: float | None = None
    notes: tuple[str, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission or a comparison with its answer; times are POSIX seconds.

    Notes
    -----
    `state` is ``"answered"``; ``"hidden"`` until a blind phase ends; ``"running"`` or ``"interrupted"``, which the same
    call finishes at no second charge; or ``"refused"``, with the code in `refusal`. `value`, `low` and `high` are
    ``None`` where they are hidden. `verdict` is ``"better"``, ``"worse"``, ``"not settled"``, or ``"first"`` without a
    champion. `repeated`: the answer was stored before, and this call charged nothing. `number` counts the team's
    submissions from 1.
    """

    id: str
    state: str
    holdout: str = ""
    team: str = ""
    name: str = ""
    kind: str = "score"
    received: float | None = None
    query: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str | None = None
    refusal: str | None = None
    repeated: bool = False
    receipt: str | None = field(default=None, repr=False)
    number: int = 0

    @property
    def done(self) -> bool:
        """Whether the service has decided."""
        return self.state not in ("running", "interrupted")


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of one team: its possible ranks, and the interval of its best submission."""

    team: str
    first: int
    last: int
    low: float
    high: float
    submissions: int = 0
    best: str = ""
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A leaderboard, as far as it is certified."""

    holdout: Holdout
    rows: tuple[Standing, ...]
    mine: str = ""


def holdout_of(sent: object) -> Holdout:
    """Read a holdout."""
    return _read(Holdout, sent)


def submission_of(sent: object) -> Submission:
    """Read a submission.

    Examples
    --------
    >>> submission_of({"id": "s1", "state": "answered", "received": "2026-01-02T00:00:00Z", "new": 1}).received
    1767312000.0
    """
    return _read(Submission, sent)


def leaderboard_of(sent: object) -> Leaderboard:
    """Read a leaderboard."""
    if not isinstance(sent, Mapping) or not isinstance(rows := sent.get("rows"), list):
        raise _unread("a leaderboard")
    return Leaderboard(
        holdout_of(sent.get("holdout")), tuple(_read(Standing, row) for row in rows), sent.get("mine") or ""
    )


_Value = TypeVar("_Value", Holdout, Submission, Standing)
_TIMES = {"received", "made"}


def _read(kind: type[_Value], sent: object) -> _Value:
    if not isinstance(sent, Mapping):
        raise _unread(f"a {kind.__name__.lower()}")
    known: dict[str, Any] = {}
    for one in fields(kind):
        if one.name in sent:
            known[one.name] = _value(one.name, sent[one.name])
        elif one.default is MISSING:
            raise _unread(f"a {kind.__name__.lower()} with {one.name!r}")
    return kind(**known)


def _value(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:
            raise _unread("a time as of RFC 3339") from None
    return tuple(value) if isinstance(value, list) else value


def _unread(expected: str) -> ServiceUnavailable:
    return ServiceUnavailable("", f"The service's answer must be {expected}.")
