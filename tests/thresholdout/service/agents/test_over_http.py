"""One service, asked by the client, by tools and by optimisers: one content is one submission over every way in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
import numpy as np
import pandas as pd
import pytest
from mcp import Client as AgentClient
from mcp.client.streamable_http import streamable_http_client

from tests.patience import PATIENCE
from thresholdout.client import BadRequest, Client, LimitReached, NothingThere, TokenRefused
from thresholdout.client.evaluate_server import EvaluateServer
from thresholdout.client.scoring_command import ScoringCommand
from thresholdout.client.tables import as_table
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.serving import serving_here

N = 1500


@dataclass(frozen=True)
class Leaderboard:
    """A service that listens, the keys of two teams, and the labels, which no team has."""

    url: str
    ann: str
    bob: str
    labels: np.ndarray[Any, Any]

    def predictions(self, right: float) -> pd.DataFrame:
        """Return predictions that are right for so many of the records."""
        wrong = np.arange(N) >= right * N
        return pd.DataFrame({"id": np.arange(N, 2 * N), "prediction": np.where(wrong, 1 - self.labels, self.labels)})


@pytest.fixture(scope="module")
def leaderboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaderboard]:
    service = EvaluationService.open(tmp_path_factory.mktemp("leaderboard") / "leaderboard.db")
    admin = service.authenticate(service.first_admin_token())
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(2 * N), "x": rng.normal(size=2 * N), "y": rng.integers(0, 2, 2 * N)})
    service.create_holdout(admin, "digits", table[:N], table[N:], label="y", quota=5)
    keys = [service.new_token(admin, "team", team)[0] for team in ("ann", "bob")]
    with serving_here(service) as url:
        yield Leaderboard(url, keys[0], keys[1], table["y"].to_numpy()[N:])


def told(leaderboard: Leaderboard, key: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool says."""

    async def run() -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
            AgentClient(streamable_http_client(f"{leaderboard.url}/mcp", http_client=http)) as client,
        ):
            return (await client.call_tool(name, arguments)).structured_content or {}

    return asyncio.run(run())


def evaluated(leaderboard: Leaderboard, key: str, candidate: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    address = f"{leaderboard.url}/v1/holdouts/digits/evaluate"
    return httpx.post(address, json={"candidate": candidate}, headers=headers, trust_env=False, timeout=PATIENCE)


@pytest.mark.slow
def test_one_content_is_one_submission(leaderboard: Leaderboard) -> None:
    predictions = leaderboard.predictions(0.9)
    text = as_table(predictions).body.decode()
    with Client(leaderboard.url, leaderboard.ann) as client:
        first = client.submit("digits", predictions)
        again = client.submit("digits", predictions)
        tool = told(leaderboard, leaderboard.ann, "submit", {"holdout": "digits", "predictions": text})
        evaluation = evaluated(leaderboard, leaderboard.ann, text).json()
        assert len(client.history("digits")) == first.number == 1
        assert client.submission("digits", first.id).low == first.low
        assert client.leaderboard("digits").mine == "ann"
        holdout = client.status("digits")
    assert first.low is not None
    assert first.high is not None
    assert first.low <= 0.9 <= first.high
    assert {first.id, again.id, tool["id"], evaluation["info"]["id"]} == {first.id}
    assert [first.repeated, again.repeated, tool["repeated"], evaluation["info"]["repeated"]] == [False] + [True] * 3
    assert evaluation["score"] == tool["low"] == first.low
    assert evaluation["budget"] == {"exhausted": False, "max_evals": 5, "days": None, "remaining": None}
    assert (holdout.quota, holdout.records, holdout.greater_is_better) == (5, N, True)


def test_a_candidate_program_is_run_here_and_its_predictions_are_submitted(leaderboard: Leaderboard) -> None:
    text = as_table(leaderboard.predictions(0.8)).body.decode()
    with Client(leaderboard.url, leaderboard.ann) as client:
        server = EvaluateServer(client, "digits", ScoringCommand.parse("cp {candidate} {predictions}"))
        status, evaluation = server.evaluate({"candidate": text})
        failed, refused = server.evaluate({"candidate": "no table"})
        server.close()
    assert (status, failed, refused["code"]) == (200, 400, "bad_table")
    assert evaluation["score"] <= 0.8 <= evaluation["info"]["high"]


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"candidate": 3}', b"\xff", b"[" * 100_000])
def test_a_request_that_is_no_candidate(leaderboard: Leaderboard, body: bytes) -> None:
    address = f"{leaderboard.url}/v1/holdouts/digits/evaluate"
    headers = {"Authorization": f"Bearer {leaderboard.bob}"}
    answer = httpx.post(address, content=body, headers=headers, trust_env=False, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


@pytest.mark.slow
def test_a_quota_ends_all_ways_in(leaderboard: Leaderboard) -> None:
    with Client(leaderboard.url, leaderboard.bob) as client:
        for k in range(5):
            client.submit("digits", leaderboard.predictions(0.5 + k / 100))
        beyond = leaderboard.predictions(0.7)
        with pytest.raises(LimitReached) as caught:
            client.submit("digits", beyond)
        text = as_table(beyond).body.decode()
        assert caught.value.code == "quota"
        assert (
            told(leaderboard, leaderboard.bob, "submit", {"holdout": "digits", "predictions": text})["code"] == "quota"
        )
        answer = evaluated(leaderboard, leaderboard.bob, text)
        assert (answer.status_code, answer.json()["code"]) == (429, "quota")
        assert client.submit("digits", leaderboard.predictions(0.5)).repeated


@pytest.mark.slow
def test_refusals_over_the_client(leaderboard: Leaderboard) -> None:
    with Client(leaderboard.url, leaderboard.ann) as client:
        with pytest.raises(NothingThere):
            client.status("other")
        with pytest.raises(BadRequest) as caught:
            client.submit("digits", leaderboard.predictions(0.9)[:-1])
        assert caught.value.code == "bad_table"
    with Client(leaderboard.url, "wrong-key") as client, pytest.raises(TokenRefused):
        client.submit("digits", leaderboard.predictions(0.9))
