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
    """Caller of a method of the service: the holder of an API token, or a visitor.

    Attributes
    ----------
    token : str
        Public identity of the API token; empty for a visitor.
    role : {"admin", "team", "viewer"}
        Rights of the caller.
    team : str
        Name of the team; empty for other roles.
    """

    token: str
    role: Role
    team: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """API token in a list of tokens. Its text is shown once, when it is made, and only its digest is stored.

    Attributes
    ----------
    id : str
        Public identity of the token, the first characters of its text.
    role, team, note : str
        Rights of the holder, name of the team, and purpose of the token.
    made, revoked : float
        Times in POSIX seconds; `revoked` is None for a valid token.
    """

    id: str
    role: Role
    team: str
    note: str
    made: float
    revoked: float | None


@dataclass(frozen=True, slots=True)
class Holdout:
    """Description of a holdout, as its page shows it.

    Attributes
    ----------
    name, title : str
        Name in addresses, and name that is shown.
    identity : str
        Identity of the guard in the ledger.
    metric : str
        Metric of the scores, with `greater_is_better` and its range from `lower` to `upper`.
    feedback, phase : str
        Kind of answer, and whether submissions are accepted and answers shown; see `EvaluationService.create_holdout`.
    public : bool
        Whether visitors see the leaderboard.
    records, rows : int
        Number of records of the holdout, and of both parts. A table with more than about twice as many rows is refused.
    confidence : float
        Probability that all intervals hold at once.
    mechanism, estimand, promise : str
        Mechanism of the answers, and the target and the guarantee of the intervals in words.
    asked, remaining : int
        Number of answers so far, and of answers that remain; None if there is no fixed number, or it is hidden.
    information_released : float
        Information released by all answers, in nats; None if unknown or hidden.
    quota, quota_days : int, float
        Maximum number of submissions of each team, and the number of days that it is counted over; None if unlimited.
    checkpoint : str
        Digest of the last entry of the history; empty if hidden.
    made : float
        Time of creation in POSIX seconds.
    notes : tuple of str
        Later events, such as corrections, with their effect on the guarantee.
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
    """Submission or comparison, as its team sees it.

    Attributes
    ----------
    id : str
        Identity, made from the holdout, the team and the Idempotency-Key.
    holdout, team, name : str
        Name of the holdout, the team, and the team's name for the submission.
    kind : {"score", "comparison"}
        Whether predictions are scored, or compared with the team's champion.
    state : {"running", "answered", "hidden", "refused", "interrupted"}
        State; a hidden answer is shown when the blind phase ends, and an interrupted request may be repeated at no
        cost.
    received : float
        Time in POSIX seconds.
    query : int
        Number of the query in the holdout's history.
    value, low, high : float
        Score or difference with its interval; None where the feedback does not show them.
    verdict : str
        Result of a comparison: "better", "worse", "not settled", or "first" if there was no champion.
    refusal : str
        Code of the refusal, one of `thresholdout.service.refusals`.
    repeated : bool
        Whether the answer was stored before, so that this request charged nothing.
    receipt : str
        Signed receipt, if the service makes them.
    number : int
        Position among the team's submissions, from 1; in an administrator's list, among all submissions.
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

    Attributes
    ----------
    answers : int
        Number of recent answers that the forecast is based on.
    nats : float
        Information that these answers released on average.
    half_width : float
        Half-width of the next answer to a new team whose anticipated score is right.
    ahead : int
        Number of further answers that the forecast is about.
    later, exact : float
        The same half-width after them, at the present price, and if all anticipated scores are right.
    """

    answers: int
    nats: float
    half_width: float
    ahead: int
    later: float
    exact: float


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Leaderboard with certified ranks.

    Attributes
    ----------
    holdout : Holdout
        Description of the holdout.
    rows : tuple of Standing
        One object for each team, the best first.
    mine : str
        Team of the caller; empty for other callers.
    """

    holdout: Holdout
    rows: tuple[Standing, ...]
    mine: str = ""
