"""JSON schemas of requests and responses, as in the OpenAPI document; times are of RFC 3339."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from thresholdout.service.schemas import Feedback, Phase, Role, State

__all__ = [
    "Certificate",
    "Checkpoint",
    "HoldoutList",
    "HoldoutSettings",
    "HoldoutView",
    "LeaderboardView",
    "Live",
    "NewPhase",
    "NewToken",
    "Ready",
    "ReceiptKeys",
    "Refused",
    "Remaining",
    "SubmissionList",
    "SubmissionView",
    "TokenList",
    "TokenMade",
    "TokenView",
]


def _time(value: Any) -> Any:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Time = Annotated[datetime, BeforeValidator(_time)]
# A finite number; infinity and hidden values are null.
Number = Annotated[float | None, BeforeValidator(_finite)]


class _Shown(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Refused(BaseModel):
    """The reason for a refusal: a fixed text for each code."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": "bad_table",
                    "text": "The table cannot be used. Nothing was charged.",
                    "details": {"row": 3, "seen": "3 cells", "expected": "2 cells"},
                }
            ]
        }
    )

    code: str = Field(description="Code of the refusal, for programs.")
    text: str = Field(description="Text for people; it depends on the code alone.")
    details: dict[str, Any] = Field(description="Rows, columns and limits, which depend on the request's format.")


class WitnessHealth(BaseModel):
    """Whether the witness of the checkpoints keeps up; answers go on when it does not."""

    waiting: int = Field(description="Holdouts whose last checkpoint it lacks.")
    failing_since: str | None = Field(default=None, description="Time of the first failure; absent while it works.")


class Live(BaseModel):
    """Sign that the process runs."""

    status: Literal["ok"]


class Ready(BaseModel):
    """Whether the service answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok", "damaged", "unavailable"]
    damaged: list[str] | None = Field(default=None, description="Holdouts that failed their check; absent without.")
    witness: WitnessHealth | None = Field(default=None, description="Absent where there is none.")


class HoldoutView(_Shown):
    """A holdout with its guarantee and its remaining budget."""

    name: str = Field(examples=["digits"])
    title: str
    identity: str
    metric: str = Field(examples=["accuracy"])
    greater_is_better: bool
    lower: Number
    upper: Number
    feedback: Feedback
    phase: Phase
    public: bool
    records: int
    confidence: float
    mechanism: str = Field(examples=["leaderboard"])
    estimand: str = Field(description="Estimand of the intervals, in words.")
    promise: str = Field(description="Guarantee of the intervals, in words.")
    asked: int
    remaining: int | None
    information_released: Number
    quota: int | None
    quota_days: Number
    checkpoint: str
    made: Time
    notes: tuple[str, ...]
    rows: int | None


class HoldoutList(BaseModel):
    """The holdouts that this API token may see."""

    holdouts: list[HoldoutView]


class Certificate(_Shown):
    """The guarantee of a holdout's answers."""

    name: str
    records: int
    confidence: float
    mechanism: str
    estimand: str
    promise: str
    notes: tuple[str, ...]


class Remaining(_Shown):
    """The remaining budget of a holdout; null is unlimited, or hidden in this phase."""

    asked: int
    remaining: int | None
    information_released: Number
    quota: int | None
    quota_days: Number


class Checkpoint(_Shown):
    """The digest of the last entry of a holdout's history."""

    checkpoint: str
    asked: int


class HoldoutSettings(BaseModel):
    """Settings of a holdout that is made from two labelled tables."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "digits", "label": "y"}]})

    name: str = Field(description="Name in addresses.", pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    label: str = Field(description="Column of the labels.", min_length=1)
    id: str = Field("id", description="Column that identifies a record.", min_length=1)
    groups: str | None = Field(None, description="Column of groups that may depend on each other arbitrarily.")
    order: str | None = Field(None, description="Column of the order of all rows, beside window.")
    window: int | None = Field(None, description="Rows further apart than this are independent.", ge=0)
    title: str = Field("", max_length=100)
    metric: str = "accuracy"
    feedback: Feedback = "interval"
    phase: Phase = "open"
    public: bool = False
    quota: int | None = Field(None, description="Submissions of each team.", ge=1)
    quota_days: float | None = Field(None, description="In so many days; null is all of the time.", gt=0)
    confidence: float = Field(0.95, ge=0.5, lt=1)
    prior_queries: int | None = Field(None, description="Scores of this holdout that were seen before.", ge=1)
    allow_duplicates: bool = Field(False, description="Whether equal rows of both parts are different records.")


class NewPhase(BaseModel):
    """The phase that begins."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"phase": "closed"}]})

    phase: Phase


class SubmissionView(_Shown):
    """A submission or a comparison, as its team sees it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "3f2a", "holdout": "digits", "team": "ann", "name": "forest", "kind": "score",
                    "state": "answered", "received": "2026-01-02T03:04:05Z", "number": 1, "query": 7, "value": 0.87,
                    "low": 0.85, "high": 0.89, "verdict": None, "refusal": None, "repeated": False, "receipt": None,
                }
            ]
        }
    )  # fmt: skip

    id: str
    holdout: str
    team: str
    name: str
    kind: Literal["score", "comparison"]
    state: State
    received: Time
    number: int
    query: int | None
    value: Number
    low: Number
    high: Number
    verdict: Literal["better", "worse", "not settled", "first"] | None
    refusal: str | None
    repeated: bool
    receipt: str | None


class SubmissionList(BaseModel):
    """Submissions, the oldest first; the next ones come after the number of the last one."""

    submissions: list[SubmissionView]


class StandingView(_Shown):
    """The standing of a team."""

    team: str
    first: int
    last: int
    low: Number
    high: Number
    submissions: int
    best: str
    since: int


class LeaderboardView(_Shown):
    """The leaderboard, as far as it is certified: ranks from first to last are possible for a team."""

    holdout: HoldoutView
    rows: list[StandingView]
    mine: str


class TokenView(_Shown):
    """An API token as it is listed."""

    id: str
    role: Role
    team: str
    note: str
    made: Time
    revoked: Time | None


class TokenList(BaseModel):
    """All API tokens, the oldest first."""

    tokens: list[TokenView]


class NewToken(BaseModel):
    """Owner of a new API token."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"role": "team", "team": "ann"}]})

    role: Role
    team: str = Field("", max_length=63)
    note: str = Field("", max_length=100)


class ReceiptKeys(BaseModel):
    """The public keys of receipts, as a set of JSON Web Keys (RFC 7517, RFC 8037)."""

    keys: list[dict[str, str]]


class TokenMade(BaseModel):
    """A new API token; its text is shown this once."""

    text: str
    token: TokenView
