"""A service without data: two teams, one holdout, and failures with words that must not get out."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Holdout, Principal, Submission

SECRET = "label of record 17 is malignant"

DIGITS = Holdout(
    name="digits",
    title="Digits",
    identity="0123",
    metric="accuracy",
    greater_is_better=True,
    lower=0.0,
    upper=1.0,
    feedback="interval",
    phase="open",
    public=False,
    records=4000,
    confidence=0.95,
    mechanism="claims",
    estimand="labels given features",
    promise="all intervals hold",
    asked=3,
    remaining=None,
    information_released=1.0,
    quota=20,
    quota_days=7.0,
    checkpoint="abcd",
    made=1.7e9,
    notes=("12 labels were corrected",),
)


@dataclass
class ServiceDouble:
    """Answers for two teams; `fails` is what the next submissions raise."""

    fails: list[Exception] = field(default_factory=list)
    asked: list[tuple[Principal, str, str, float | None, str]] = field(default_factory=list)
    rows: dict[str, Submission] = field(default_factory=dict)
    failures: int = 0

    def authenticate(self, text: str | None) -> Principal:
        if text not in ("ann-key", "bob-key"):
            raise ServiceRefused("unknown_token")
        team = text.removesuffix("-key")
        return Principal(f"k-{team}", "team", team)

    def holdouts(self, by: Principal) -> Sequence[Holdout]:
        return [DIGITS]

    def holdout(self, by: Principal, name: str) -> Holdout:
        if name != "digits":
            raise ServiceRefused("not_found")
        return DIGITS

    def admit(self, by: Principal, name: str) -> Holdout:
        return self.holdout(by, name)

    def submit(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        return self._taken(by, "score", idempotency_key, expected, title, 0.86, 0.91, None)

    def compare(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        return self._taken(by, "comparison", idempotency_key, expected, title, None, None, "better")

    def history(self, by: Principal, name: str, *, after: int = 0, count: int = 100) -> Sequence[Submission]:
        return [row for row in self.rows.values() if row.team == by.team][after : after + count]

    def failed(self, by: Principal, name: str) -> None:
        self.failures += 1

    def _taken(self, by, kind, key, expected, title, low, high, verdict) -> Submission:  # type: ignore[no-untyped-def]
        if self.fails:
            raise self.fails.pop(0)
        self.asked.append((by, kind, key, expected, title))
        id = f"{by.team}-{key[-6:]}"
        again = id in self.rows
        self.rows[id] = Submission(
            id, "digits", by.team, title, kind, "answered", 1.7e9, None, None, low, high, verdict, None, again
        )
        return self.rows[id]


def read(content: bytes, content_type: str) -> pd.DataFrame:
    """Read a table, or refuse it."""
    try:
        return pd.read_csv(io.BytesIO(content))
    except ValueError:
        raise ServiceRefused("bad_table", row=1) from None
