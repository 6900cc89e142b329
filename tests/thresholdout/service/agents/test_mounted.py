"""The address ``/mcp``: keys are asked for at every call, and nobody's call is taken for another's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.thresholdout.service.agents.service_double import ServiceDouble, read
from thresholdout.service.agents import server as mounted
from thresholdout.service.agents.server import MOST_BYTES, mounted_server

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "submit", "arguments": {"holdout": "digits", "predictions": "id,prediction\n1,0\n"}},
}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


@asynccontextmanager
async def running(service: ServiceDouble) -> AsyncIterator[httpx2.ASGITransport]:
    tools = mounted_server(service, read)
    async with tools.running():
        yield httpx2.ASGITransport(Starlette(routes=[tools.route]))


@asynccontextmanager
async def agent(transport: httpx2.ASGITransport, key: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        Client(streamable_http_client("http://leaderboard.example/mcp", http_client=http)) as client,
    ):
        yield client


async def posted(transport: httpx2.ASGITransport, headers: Mapping[str, str], **body: Any) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=transport) as http:
        return await http.post("http://leaderboard.example/mcp", headers=HEADERS | dict(headers), json=CALL | body)


@pytest.mark.slow
def test_each_call_is_that_of_its_key() -> None:
    service = ServiceDouble()

    async def run() -> list[Any]:
        async with (
            running(service) as transport,
            agent(transport, "ann-key") as ann,
            agent(transport, "bob-key") as bob,
        ):
            for turn in range(3):
                for client in (ann, bob):
                    predictions = f"id,prediction\n1,{turn}\n"
                    await client.call_tool("submit", {"holdout": "digits", "predictions": predictions})
            return [await client.call_tool("my_history", {"holdout": "digits"}) for client in (ann, bob)]

    for team, told in zip(("ann", "bob"), asyncio.run(run()), strict=True):
        assert [row["id"][:3] for row in told.structured_content["result"]] == [team] * 3
    assert [by.team for by, *_ in service.asked] == ["ann", "bob"] * 3


@pytest.mark.slow
def test_calls_at_the_same_time_are_those_of_their_keys() -> None:
    service = ServiceDouble()

    async def run() -> None:
        async with running(service) as transport:

            async def one(key: str, number: int) -> None:
                async with agent(transport, key) as client:
                    arguments = {"holdout": "digits", "predictions": "id,prediction\n1,0\n", "title": f"{key} {number}"}
                    await client.call_tool("submit", arguments)

            await asyncio.gather(*(one(key, number) for number in range(8) for key in ("ann-key", "bob-key")))

    asyncio.run(run())
    assert len(service.asked) == 16
    assert all(title.startswith(by.team) for by, _, _, _, title in service.asked)


@for_each("headers", [{}, {"Authorization": "Bearer eve-key"}, {"Authorization": "Basic YW5uLWtleTo="}])
def test_no_call_without_a_key(headers: dict[str, str]) -> None:
    service = ServiceDouble()

    async def run() -> httpx2.Response:
        async with running(service) as transport:
            return await posted(transport, headers)

    answer = asyncio.run(run())
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert "eve" not in answer.text
    assert service.asked == []


def test_a_call_by_any_name_of_the_host_needs_no_session() -> None:
    service = ServiceDouble()

    async def run() -> httpx2.Response:
        async with running(service) as transport:
            return await posted(transport, {"Authorization": "Bearer ann-key"})

    answer = asyncio.run(run())
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["result"]["structuredContent"]["low"] == 0.86


def test_a_call_that_is_too_large_is_not_read() -> None:
    service = ServiceDouble()

    async def run() -> httpx2.Response:
        async with running(service) as transport:
            return await posted(transport, {"Authorization": "Bearer ann-key"}, padding="x" * MOST_BYTES)

    assert asyncio.run(run()).status_code == 413
    assert service.asked == []


def test_calls_beyond_those_that_there_is_room_for_are_told_so() -> None:
    service, held, at_once, of_one = ServiceDouble(), threading.Event(), 5, 1
    begun: list[bytes] = []

    def slow(content: bytes, content_type: str) -> Any:
        begun.append(content)
        assert held.wait(PATIENCE)
        return read(content, content_type)

    async def run() -> list[int]:
        tools = mounted_server(service, slow, most_at_once=at_once)
        async with tools.running():
            transport = httpx2.ASGITransport(Starlette(routes=[tools.route]))
            ann, bob, eve = ({"Authorization": f"Bearer {name}-key"} for name in ("ann", "bob", "eve"))
            waiting = [asyncio.create_task(posted(transport, key)) for key in (ann, bob)]
            while len(begun) < 2 * of_one:
                await asyncio.sleep(0.01)
            beyond = [await posted(transport, key) for key in (ann, bob, eve)]
            held.set()
            answers = [*await asyncio.gather(*waiting), await posted(transport, ann), *beyond]
            return [answer.status_code for answer in answers]

    assert asyncio.run(run()) == [200, 200, 200, 503, 503, 401]


def test_there_is_no_stream_to_listen_to() -> None:
    async def run() -> list[int]:
        async with running(ServiceDouble()) as transport, httpx2.AsyncClient(transport=transport) as http:
            headers = {"Authorization": "Bearer ann-key", "Accept": "text/event-stream"}
            address = "http://leaderboard.example/mcp"
            return [(await http.request(method, address, headers=headers)).status_code for method in ("GET", "DELETE")]

    assert asyncio.run(run()) == [405, 405]


def test_a_call_that_does_not_come_in_time_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounted, "_PATIENCE", 0.05)
    service = ServiceDouble()

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc": '
        await asyncio.sleep(60)
        yield b'"2.0"}'

    async def run() -> None:
        async with running(service) as transport, httpx2.AsyncClient(transport=transport) as http:
            headers = HEADERS | {"Authorization": "Bearer ann-key", "Content-Type": "application/json"}
            answer = await http.post("http://leaderboard.example/mcp", headers=headers, content=slowly())
            assert answer.status_code >= 400

    asyncio.run(run())
    assert service.asked == []
