"""What the service shows to those who ask: frozen values that HTTP, agents and pages put into their own words.

Nothing in them is secret to whom they are shown; who may see which is decided where they are made.
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

Role = Literal["admin", "team", "viewer"]
"""Rights of an API token: all but submissions; submissions of one team; reading leaderboards that are not public."""

Feedback = Literal["interval", "verdict", "best"]
"""What a submission is told: a certified interval, whether it is better than the champion, or the best so far."""

Phase = Literal["open", "blind", "closed"]
"""Answers at once; submissions now and answers when it is closed; no more submissions."""

State = Literal["running", "answered", "hidden", "refused", "interrupted"]
"""Of a submission. A hidden one is answered, and shown when the blind phase ends; an interrupted one was cut off by a
stop of the service, and the same request again finishes it at no second charge."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: the holder of an API token.

    Attributes
    ----------
    token : str
        Public identity of the token; empty for a visitor without one.
    role : {"admin", "team", "viewer"}
        Purpose of the token.
    team : str
        Whose it is; empty unless the role is "team".

    Examples
    --------
    >>> Principal("k3", "team", "ann").team
    'ann'
    """

    token: str
    role: Role
    team: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """An API token as it is listed; its text is shown once, when it is made, and only its digest is kept.

    Attributes
    ----------
    id : str
        Public identity, the first characters of the token's text.
    role, team : str
        As of `Principal`.
    note : str
        What it is for, in words of who made it.
    made : float
        When, in POSIX seconds.
    revoked : float or None
        Since when it is refused, in POSIX seconds.

    Examples
    --------
    >>> Token("k3", "team", "ann", "laptop", 1.7e9, None).revoked is None
    True
    """

    id: str
    role: Role
    team: str
    note: str
    made: float
    revoked: float | None


@dataclass(frozen=True, slots=True)
class Holdout:
    """A holdout, as its page says it.

    Attributes
    ----------
    name : str
        What addresses call it: lower-case letters, digits and hyphens.
    title : str
        What people call it.
    identity : str
        What the ledger calls its guard.
    metric : str
        What submissions are scored by.
    greater_is_better : bool
        Whether that is a score, and no loss.
    lower, upper : float
        Range of the metric.
    feedback : {"interval", "verdict", "best"}
        What a submission is told.
    phase : {"open", "blind", "closed"}
        Whether it takes submissions, and tells what they are worth.
    public : bool
        Whether the leaderboard is shown to visitors without a token.
    records : int
        Records of the holdout.
    confidence : float
        Probability that all intervals hold.
    mechanism : str
        How queries are answered.
    estimand, promise : str
        What the intervals are about, and what they are worth, in words.
    asked : int
        Queries so far.
    remaining : int or None
        Queries that are left; None for any number.
    information_released : float or None
        Nats that the answers so far can have released; None where no number is known, or nothing is shown.
    quota : int or None
        Submissions of each team in `quota_days` days, or at all; None for any number.
    quota_days : float or None
        Over how many days the quota counts; None for all of the time.
    checkpoint : str
        Digest of the last entry of its history.
    made : float
        When, in POSIX seconds.
    notes : tuple of str
        What happened to it since, such as labels that were corrected, and what the promise is worth then.
    rows : int or None
        Records of both parts: more rows than twice as many are read of no table.
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

    Attributes
    ----------
    id : str
        Its address; made from the holdout, the team and the Idempotency-Key.
    holdout, team : str
        Where, and whose.
    name : str
        What the team calls it.
    kind : {"score", "comparison"}
        Whether it is about a score, or about a difference to the team's champion.
    state : {"running", "answered", "hidden", "refused", "interrupted"}
        How far it is.
    received : float
        When, in POSIX seconds.
    query : int or None
        Number of its query in the holdout's history.
    value, low, high : float or None
        The answer and its certified interval; None where the feedback does not show them.
    verdict : {"better", "worse", "not settled", "first"} or None
        Of a comparison with the champion; "first" where there was none.
    refusal : str or None
        Code of the refusal, as in `thresholdout.service.refusals`.
    repeated : bool
        Whether the answer was stored before, and this request charged nothing.
    receipt : str or None
        The signed receipt, as text.
    number : int
        Which of the team's submissions to this holdout, from 1; in an administrator's list of all, which of these. A
        history goes on after it.
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
    """How the intervals of a leaderboard will widen, for its administrator.

    Attributes
    ----------
    answers : int
        Of which the price is known: the last ones.
    nats : float
        Information released by each of them, on the average.
    half_width : float
        Of the next team whose guess is right.
    ahead : int
        Further answers.
    later, exact : float
        The half-width after these at that price, and if all guesses were right.
    """

    answers: int
    nats: float
    half_width: float
    ahead: int
    later: float
    exact: float


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Who leads, as far as it is certified.

    Attributes
    ----------
    holdout : Holdout
        Which leaderboard.
    rows : tuple of Standing
        From the best certified on.
    mine : str
        The team that looks at it; empty for others.
    """

    holdout: Holdout
    rows: tuple[Standing, ...]
    mine: str = ""
