"""A service without a database, whose answers are what a test says; and pages of it that a browser can look at."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from tests.patience import PATIENCE, wait_until
from thresholdout.service.http.app import make_app
from thresholdout.service.limits import Limits
from thresholdout.service.page.routes import routes
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Holdout, Leaderboard, Outlook, Phase, Principal, Role, Submission, Token
from thresholdout.service.standings import Standing

if TYPE_CHECKING:
    from fastapi import FastAPI

    from thresholdout.service.evaluation import EvaluationService

MADE = 1_763_800_000.0  # 2025-11-22 08:26:40 UTC
HOLDOUT = Holdout(
    name="spring",
    title="Spring readmissions",
    identity="7b1f" * 10,
    metric="accuracy",
    greater_is_better=True,
    lower=0.0,
    upper=1.0,
    feedback="interval",
    phase="open",
    public=True,
    records=4000,
    confidence=0.95,
    mechanism="claims",
    estimand="Answers are about what a score is expected to be on these records, given all their features.",
    promise="With probability 0.95 every interval shown here contains its true value, all of them at once, "
    "whoever sees whose answers.",
    asked=1204,
    remaining=796,
    information_released=31.25,
    quota=20,
    quota_days=7.0,
    checkpoint="a3f0" * 16,
    made=MADE,
)
PEOPLE = {
    "admin-key": Principal("tho_0000000000aa", "admin"),
    "ann-key": Principal("tho_0000000000bb", "team", "ann"),
    "viewer-key": Principal("tho_0000000000cc", "viewer"),
}


def ranked(intervals: Sequence[tuple[str, float, float, int]], *, greater_is_better: bool = True) -> list[Standing]:
    """Return standings by counting, pair by pair."""
    rows = []
    for place, (client, low, high, sent) in enumerate(intervals):
        if greater_is_better:
            better = sum(other_low > high for _, other_low, _, _ in intervals)
            worse = sum(other_high < low for _, _, other_high, _ in intervals)
        else:
            better = sum(other_high < low for _, _, other_high, _ in intervals)
            worse = sum(other_low > high for _, other_low, _, _ in intervals)
        best = f"{client}'s best (accuracy)"
        rows.append(Standing(client, 1 + better, len(intervals) - worse, low, high, sent, best, place + 1))
    return sorted(rows, key=lambda row: (row.first, row.last, row.since))


@dataclass
class FakeSessions:
    """Sessions that are kept as they are."""

    kept: dict[str, Principal] = field(default_factory=dict)

    def begin(self, key: str) -> str:
        if key not in PEOPLE:
            raise ServiceRefused("unknown_token")
        session = f"session-{len(self.kept)}"
        self.kept[session] = PEOPLE[key]
        return session

    def holder(self, text: str) -> Principal:
        if text not in self.kept:
            raise ServiceRefused("unknown_token")
        return self.kept[text]

    def end(self, text: str) -> None:
        self.kept.pop(text, None)


@dataclass
class FakeService:
    """What pages ask of a service, answered from values."""

    shown: list[Holdout] = field(default_factory=lambda: [HOLDOUT])
    rows: list[Standing] = field(default_factory=list)
    sent: list[Submission] = field(default_factory=list)
    listed: list[Token] = field(default_factory=list)
    limits: Limits = field(default_factory=lambda: Limits(most_bytes=100_000, at_once=2))
    refusal: ServiceRefused | None = None
    sessions: FakeSessions = field(default_factory=FakeSessions)
    coming: Outlook | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def holdouts(self, by: Principal) -> list[Holdout]:
        return [holdout for holdout in self.shown if by.token or holdout.public]

    def holdout(self, by: Principal, name: str) -> Holdout:
        for holdout in self.holdouts(by):
            if holdout.name == name:
                return holdout
        raise ServiceRefused("not_found")

    def health(self, *, writes: bool = False) -> dict[str, Any]:
        return {"status": "ok", "holdouts": len(self.shown)}

    def close(self) -> None:
        self.calls.append(("close",))

    def admit(self, by: Principal, name: str) -> Holdout:
        if by.role != "team":
            raise ServiceRefused("forbidden" if by.token else "no_token")
        return self.holdout(by, name)

    def leaderboard(self, by: Principal, name: str) -> Leaderboard:
        return Leaderboard(self.holdout(by, name), tuple(self.rows), by.team)

    def history(self, by: Principal, name: str, *, before: int, count: int) -> list[Submission]:
        if by.role == "viewer":
            raise ServiceRefused("forbidden" if by.token else "no_token")
        return [one for one in self.sent if one.number < before][:count]

    def submission(self, by: Principal, name: str, id: str) -> Submission:
        if not by.token:
            raise ServiceRefused("no_token")
        for submission in self.sent:
            if submission.id == id:
                return submission
        raise ServiceRefused("not_found")

    def submit(self, by: Principal, name: str, predictions: pd.DataFrame, **options: Any) -> Submission:
        self.calls.append(("submit", by, name, len(predictions), options))
        if self.refusal is not None:
            raise self.refusal
        made = Submission(f"s{len(self.sent) + 1}", name, by.team, options["title"], "score", "running", time.time())
        self.sent.append(made)
        return made

    def compare(self, by: Principal, name: str, predictions: pd.DataFrame, **options: Any) -> Submission:
        self.calls.append(("compare", by, name, len(predictions), options))
        made = Submission(f"s{len(self.sent) + 1}", name, by.team, options["title"], "comparison", "running", MADE)
        self.sent.append(made)
        return made

    def failed(self, by: Principal, name: str) -> None:
        self.calls.append(("failed", by, name))

    def outlook(self, by: Principal, name: str) -> Outlook | None:
        assert by.role == "admin"
        return self.coming

    def tokens(self, by: Principal) -> list[Token]:
        if by.role != "admin":
            raise ServiceRefused("forbidden" if by.token else "no_token")
        return self.listed

    def new_token(self, by: Principal, role: Role, team: str = "", note: str = "") -> tuple[str, Token]:
        if by.role != "admin":
            raise ServiceRefused("forbidden")
        if role == "team" and not team:
            raise ServiceRefused("bad_name", name=team)
        key = Token(f"tho_{len(self.listed):012x}", role, team, note, MADE, None)
        self.listed.append(key)
        return f"{key.id}_{'x' * 43}", key

    def revoke(self, by: Principal, id: str) -> Token:
        self.tokens(by)
        self.listed = [replace(key, revoked=MADE) if key.id == id else key for key in self.listed]
        return next(key for key in self.listed if key.id == id)

    def set_phase(self, by: Principal, name: str, phase: Phase) -> Holdout:
        if by.role != "admin":
            raise ServiceRefused("forbidden")
        self.shown = [replace(one, phase=phase) if one.name == name else one for one in self.shown]
        return self.holdout(by, name)


def application(service: FakeService) -> FastAPI:
    """Return an application with the pages of a service that is none."""
    return make_app(cast("EvaluationService", service), routers=[routes()])


@contextmanager
def served(service: FakeService) -> Iterator[str]:
    """Serve the pages on this machine."""
    import uvicorn

    config = uvicorn.Config(application(service), host="127.0.0.1", port=0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started, "the server ended"
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
