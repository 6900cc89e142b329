import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from starlette.requests import Request

from tests.patience import PATIENCE, wait_until
from thresholdout.service.http import admission as admission_control
from thresholdout.service.http.admission import Admission, announced, receive
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused

KEYS = itertools.count()
"""Each request is one of another key."""

LIMITS = Limits(most_bytes=100, at_once=2, most_waiting=6)


def run(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(PATIENCE):
            return await work

    return asyncio.run(bounded())


async def refusal_of(work: Awaitable[Any]) -> ServiceRefused:
    with pytest.raises(ServiceRefused) as error:
        await work
    return error.value


def test_bytes_are_bounded_whatever_the_number_of_clients() -> None:
    async def many() -> None:
        admission = Admission(LIMITS)
        most = 0

        async def client(size: int) -> None:
            nonlocal most
            async with admission.room(f"k{next(KEYS)}", size):
                most = max(most, admission.bytes_held)
                await asyncio.sleep(0)

        await asyncio.gather(*(client(size) for size in [100, 1, 70, 100, 30, 99, 2] * 30))
        assert 100 < most <= 200
        assert admission.bytes_held == 0
        admission.close()

    run(many())


def test_room_is_given_in_the_order_of_requests() -> None:
    async def ordered() -> list[int]:
        admission = Admission(LIMITS)
        seen = []

        async def client(number: int, size: int) -> None:
            async with admission.room(f"k{next(KEYS)}", size):
                seen.append(number)
                await asyncio.sleep(0.01)

        await asyncio.gather(*(client(number, 100 if number % 3 else 5) for number in range(12)))
        admission.close()
        return seen

    assert run(ordered()) == list(range(12))


def test_whoever_goes_away_gives_room_back() -> None:
    async def going() -> None:
        admission = Admission(LIMITS)

        async def client() -> None:
            async with admission.room(f"k{next(KEYS)}", 100):
                await asyncio.sleep(PATIENCE)

        async def settled() -> None:
            for _ in range(100):  # turns of the loop
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(client()) for _ in range(6)]
        await settled()
        assert admission.bytes_held == 200
        for task in (tasks[4], tasks[0], tasks[2]):
            task.cancel()
            await asyncio.sleep(0)
        await settled()
        assert admission.bytes_held == 200  # the second one, and the fourth
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert admission.bytes_held == 0
        admission.close()

    run(going())


def test_places_are_bounded_and_one_key_leaves_some() -> None:
    async def places() -> None:
        admission = Admission(LIMITS)
        async with admission.place("a"), admission.place("a"):
            assert (await refusal_of(admission.place("a").__aenter__())).code == "busy"
            async with (
                admission.place("b"),
                admission.place("b"),
                admission.place("c"),
                admission.place("c"),
                admission.place("d"),
            ):
                async with admission.place("d"):
                    refused = await refusal_of(admission.place("e").__aenter__())
                    assert (refused.code, refused.retry_after) == ("busy", 1)
                async with admission.place("e"):
                    pass
        assert admission.places_taken == 0
        admission.stop()
        assert (await refusal_of(admission.place("a").__aenter__())).code == "stopping"
        assert (await refusal_of(admission.work(lambda: 1))).code == "stopping"
        admission.close()

    run(places())


def test_threads_are_bounded_and_the_loop_goes_on() -> None:
    now = most = 0
    lock, go = threading.Lock(), threading.Event()

    def job() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        assert go.wait(PATIENCE)
        time.sleep(0.001)
        with lock:
            now -= 1

    async def busy() -> int:
        admission = Admission(LIMITS)
        work = asyncio.gather(*(admission.work(job) for _ in range(20)))
        shown = await admission.read(lambda: 3)  # while the others wait
        await asyncio.to_thread(wait_until, lambda: now == LIMITS.at_once)
        assert not work.done()
        go.set()
        await work
        admission.close()
        return shown

    assert run(busy()) == 3
    assert most == LIMITS.at_once


def test_what_was_begun_is_finished_when_the_service_stops() -> None:
    done, begun = [], threading.Event()

    def job() -> None:
        begun.set()
        time.sleep(0.1)
        done.append(True)

    async def stopping() -> None:
        admission = Admission(LIMITS)
        work = asyncio.create_task(admission.work(job))
        await asyncio.to_thread(begun.wait, PATIENCE)
        await asyncio.to_thread(admission.close)
        await work

    run(stopping())
    assert done == [True]


def request(chunks: list[bytes], headers: dict[str, str] | None = None, pause: float = 0.0) -> Request:
    sent = iter(chunks)

    async def received() -> dict[str, Any]:
        await asyncio.sleep(pause)
        chunk = next(sent, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    raw = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": raw}, received)


def test_a_body_is_read_up_to_a_limit() -> None:
    assert run(receive(request([b"ab", b"c"]), 3)) == b"abc"
    assert run(receive(request([b"ab", b"c"], {"Content-Length": "3"}), 3)) == b"abc"
    refused = run(refusal_of(receive(request([b"ab", b"cd", b"ef"]), 3)))
    assert (refused.code, refused.details) == ("too_large", {"what": "bytes", "most": 3})


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Length": "4"}, "too_large"),
        ({"Content-Length": "9" * 4000}, "too_large"),
        ({"Content-Length": "-1"}, "bad_request"),
        ({"Content-Length": "1e3"}, "bad_request"),
        ({"Content-Encoding": "gzip"}, "unsupported"),
        ({"Content-Encoding": "identity, br"}, "unsupported"),
    ],
)
def test_what_a_request_announces(headers: dict[str, str], code: str) -> None:
    with pytest.raises(ServiceRefused) as error:
        announced(request([], headers), 3)
    assert error.value.code == code
    assert announced(request([]), 3) == 3


def test_a_body_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission_control, "_PATIENCE", 0.05)
    assert run(refusal_of(receive(request([b"a"] * 100, pause=0.02), 1000))).code == "too_slow"


def test_a_client_that_goes_away_while_its_body_comes() -> None:
    async def gone() -> AsyncIterator[dict[str, str]]:
        yield {"type": "http.disconnect"}

    messages = gone()
    asked = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, messages.__anext__)

    async def reading() -> None:
        from starlette.requests import ClientDisconnect

        with pytest.raises(ClientDisconnect):
            await receive(asked, 10)

    run(reading())


def test_slow_uploads_of_one_key_leave_room_for_others() -> None:
    """Four of ann's hold what one key may; bob's come in at once, and ann's fifth in its turn."""

    async def shared() -> list[str]:
        admission = Admission(Limits(most_bytes=100, at_once=8, most_waiting=60))
        seen: list[str] = []
        gone = asyncio.Event()

        async def slow(number: int) -> None:
            async with admission.room("ann", 100):
                seen.append(f"ann {number}")
                await gone.wait()

        async def quick() -> None:
            async with admission.room("bob", 100):
                seen.append("bob")

        tasks = [asyncio.create_task(slow(number)) for number in range(5)]
        await asyncio.sleep(0)
        await quick()
        before = list(seen)
        assert admission.bytes_held == 200  # a quarter of 800
        gone.set()
        await asyncio.gather(*tasks)
        assert admission.bytes_held == 0
        assert not admission._bytes_of_tokens
        admission.close()
        return before

    assert run(shared()) == ["ann 0", "ann 1", "bob"]


def test_a_key_may_send_one_body_that_is_larger_than_its_share() -> None:
    async def one() -> None:
        admission = Admission(LIMITS)
        async with admission.room("ann", 200):
            assert admission.bytes_held == 200
        admission.close()

    run(one())


def test_patience_is_for_bytes_that_came_and_not_for_those_that_were_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of 50 MB that comes byte by byte is given up as soon as one of a kilobyte."""
    monkeypatch.setattr(admission_control, "_PATIENCE", 0.1)
    announced_much = {"Content-Length": str(50 * 2**20)}
    begun = time.monotonic()
    slow = request([b"a"] * 10_000, announced_much, pause=0.01)
    assert run(refusal_of(receive(slow, 50 * 2**20))).code == "too_slow"
    assert time.monotonic() - begun < PATIENCE / 2
    steady = request([b"a" * 2**20] * 8, announced_much, pause=0.03)
    assert len(run(receive(steady, 50 * 2**20))) == 8 * 2**20
