"""Frozen values that the service shows; HTTP, agents and pages put them into their own words.

Nothing in them is secret from their recipients; the methods that make them decide who these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from thresholdout.service.standings import Standing

__all__ = [
    "Feedback",
    "Holdout",
    "Leaderboard",
    "Outlook",
    "Phase",
    "Principal",
    "Role",
    "State",
    "Submission",
    "Token",
]

# Rights of an API token: all but submissions; submissions of one team; reading leaderboards that are not public.
Role = Literal["admin", "team", "viewer"]

# Answer of a submission: a certified interval, whether it beats the champion, or the best score so far.
Feedback = Literal["interval", "verdict", "best"]

# Answers at once; submissions now and answers when it is closed; no more submissions.
Phase = Literal["open", "blind", "closed"]

# State of a submission. A hidden one is answered, and shown when the blind phase ends. An interrupted one was cut off
# by a stop of the service, and the same request again finishes it at no second charge.
State = Literal["running", "answered", "hidden", "refused", "interrupted"]


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a method: the holder of an API token, or a visitor, whose `token` is empty."""

    token: str
    role: Role
    team: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """An API token as it is listed; its text is shown once, when it is made, and only its digest is kept.

    Notes
    -----
    `id` is public: the first characters of the text. `made` and `revoked` are in POSIX seconds.
    """

    id: str
    role: Role
    team: str
    note: str
    made: float
    revoked: float | None


@dataclass(frozen=True, slots=True)
class Holdout:
    """A holdout, as its page shows it.

    Notes
    -----
    `name` is that of its address and `title` the displayed one. `lower` and `upper` are the range of the metric.
    `confidence` is the probability that all intervals hold at once, `estimand` and `promise` the target and the
    guarantee of
    the intervals in words. `information_released` is in nats; ``None`` where unknown or hidden. `quota` submissions of
    each
    team are allowed in `quota_days` days, or in all. `checkpoint` is the digest of the last entry. `notes` are later
    events,
    such as corrections, with their effect on the guarantee. `rows` counts the records of both parts: a table of more
    than
    about twice as many rows is refused.
    """

    name: str
    title: str
    identity: str
    metric: str
    greater_is_better: bool
    lower: float
    upper: float
    feedback: Feedback
    phase: Phase
    public: bool
    records: int
    confidence: float
    mechanism: str
    estimand: str
    promise: str
    asked: int
    remaining: int | None
    information_released: float | None
    quota: int | None
    quota_days: float | None
    checkpoint: str
    made: float
    notes: tuple[str, ...] = ()
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission or a comparison, as its team sees it.

    Notes
    -----
    `id` is made from the holdout, the team and the Idempotency-Key; `query` is its number in the holdout's history.
    `value`,
    `low` and `high` are ``None`` where the feedback does not show them. The verdict is "first" where there was no
    champion.
    `refusal` is a code of `thresholdout.service.refusals`. `repeated`: the answer was stored before, and this request
    charged
    nothing. `number` counts the team's submissions from 1, and all submissions in an administrator's list; `after`
    continues
    a history behind it.
    """

    id: str
    holdout: str
    team: str
    name: str
    kind: Literal["score", "comparison"]
    state: State
    received: float
    query: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Literal["better", "worse", "not settled", "first"] | None = None
    refusal: str | None = None
    repeated: bool = False
    receipt: str | None = field(default=None, repr=False)
    number: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of the intervals of a leaderboard, for its administrator.

    Notes
    -----
    The last `answers` released `nats` each on average. `half_width` is that of the next team whose guess is right;
    after
    `ahead` further answers it is `later` at the same price, and `exact` if all guesses are right.
    """

    answers: int
    nats: float
    half_width: float
    ahead: int
    later: float
    exact: float


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A leaderboard, as far as it is certified, the best first; `mine` is the viewer's team."""

    holdout: Holdout
    rows: tuple[Standing, ...]
    mine: str = ""
