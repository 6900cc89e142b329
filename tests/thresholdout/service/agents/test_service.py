"""Agents and a real service: what the tools say is what it answered, and what one team sees is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mcp import Client

from thresholdout.client.tables import Table, as_table, content_key
from thresholdout.service.agents.holdouts import ServiceHoldouts
from thresholdout.service.agents.server import make_server
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http.uploads import read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.schemas import Principal

N = 2000
LIMITS = Limits(failures_per_hour=3)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[EvaluationService]:
    opened = EvaluationService.open(tmp_path / "leaderboard.db", limits=LIMITS)
    try:
        admin = opened.authenticate(opened.first_admin_token())
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"id": range(2 * N), "x": rng.normal(size=2 * N), "y": rng.integers(0, 2, 2 * N)})
        opened.create_holdout(admin, "intervals", table[:N], table[N:], label="y", quota=4)
        other = table.assign(id=table["id"] + 10 * N)
        opened.create_holdout(admin, "verdicts", other[:N], other[N:], label="y", feedback="verdict")
        yield opened
    finally:
        opened.close()


def predictions(right: float, offset: int = 0) -> str:
    """Return predictions that are right for the first part of all records, made with the labels of the fixture."""
    rng = np.random.default_rng(0)
    rng.normal(size=2 * N)
    labels = rng.integers(0, 2, 2 * N)[N:]
    table = pd.DataFrame({"id": np.arange(N, 2 * N) + offset, "prediction": labels})
    wrong = np.arange(N) >= right * N
    table.loc[wrong, "prediction"] = 1 - labels[wrong]
    return as_table(table).body.decode()


def told(service: EvaluationService, team: str, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    asked = ServiceHoldouts(service, lambda: Principal(f"k-{team}", "team", team), partial(read_upload, limits=LIMITS))

    async def run() -> list[dict[str, Any]]:
        async with Client(make_server(asked)) as client:
            answers = [await client.call_tool(name, arguments) for name, arguments in calls]
            return [answer.structured_content or {} for answer in answers]

    return asyncio.run(run())


def test_a_score_is_answered_once_for_each_content(service: EvaluationService) -> None:
    asked = ("submit", {"holdout": "intervals", "predictions": predictions(0.9), "expected": 0.9, "title": "forest"})
    first, again, history = told(service, "ann", asked, asked, ("my_history", {"holdout": "intervals"}))
    assert first["low"] <= 0.9 <= first["high"]
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert {**again, "repeated": False} == first
    assert [one["name"] for one in history["result"]] == ["forest"]
    ann = Principal("k-ann", "team", "ann")
    table = Table(predictions(0.9).encode())
    key = content_key("submissions", "intervals", table, {"expected": "0.9", "title": "forest"})
    read = read_upload(table.body, table.content_type, LIMITS)
    known = service.submit(ann, "intervals", read, idempotency_key=key, expected=0.9, title="forest")
    assert (known.id, known.repeated) == (first["id"], True)


def test_teams_do_not_see_each_other(service: EvaluationService) -> None:
    asked = ("submit", {"holdout": "intervals", "predictions": predictions(0.9), "expected": 0.9})
    (ann,) = told(service, "ann", asked)
    bob, history = told(service, "bob", asked, ("my_history", {"holdout": "intervals"}))
    assert bob["id"] != ann["id"]
    assert not bob["repeated"]
    assert [one["id"] for one in history["result"]] == [bob["id"]]


@pytest.mark.slow
def test_verdicts_show_no_number_and_say_when_they_were_given(service: EvaluationService) -> None:
    calls = [
        ("submit", {"holdout": "verdicts", "predictions": predictions(right, 10 * N)})
        for right in (0.6, 0.9, 0.6, 0.9, 0.7)
    ]
    first, better, again, repeated, rejected = told(service, "ann", *calls)
    assert [one["verdict"] for one in (first, better, rejected)] == ["first", "better", "not settled"]
    assert (again["id"], repeated["id"]) == (first["id"], better["id"])
    assert [one["repeated"] for one in (first, better, again, repeated)] == [False, False, True, True]
    assert better["says"] == "Better than the champion, which it replaces."
    assert repeated["says"].startswith("Judged before: better than the champion of that time")
    assert again["says"].startswith("Sent before")
    assert [one[name] for one in (first, better, rejected) for name in ("value", "low", "high")] == [None] * 9


@pytest.mark.slow
def test_a_quota_and_the_rate_of_failures(service: EvaluationService) -> None:
    asked = [("submit", {"holdout": "intervals", "predictions": predictions(0.9 - k / 100)}) for k in range(5)]
    *taken, refused = told(service, "ann", *asked)
    assert [one["state"] for one in taken] == ["answered"] * 4
    assert refused["code"] == "quota"
    junk = ("submit", {"holdout": "intervals", "predictions": "not a table"})
    codes = [one["code"] for one in told(service, "bob", *[junk] * 5)]
    assert codes == ["bad_table"] * 3 + ["rate"] * 2
    assert told(service, "zoe", junk)[0]["code"] == "bad_table"
