"""However calls fail and are made again, one content is charged once, and no call is made sooner than is asked for."""

from __future__ import annotations

import contextlib
import itertools

import httpx
import pandas as pd
import pytest

from tests.cases import for_each
from tests.sizes import corners
from tests.thresholdout.client.service_double import ServiceDouble, refused
from thresholdout.client import Client, LimitReached, ServiceError, ServiceUnavailable
from thresholdout.client.client import Attempts, RetryPolicy, seconds_of

PREDICTIONS = pd.DataFrame({"id": [1, 2], "prediction": [0, 1]})
EVENTS = ["", "before", "after", "busy", "stopping", "unavailable", "rate", "proxy", "later", "stop"]


class Clock:
    """Time that passes in pauses only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def patience(self, seconds: float = 1000.0) -> RetryPolicy:
        return RetryPolicy(seconds, pause=self.pause, clock=lambda: self.now)


def client(service: ServiceDouble, clock: Clock, seconds: float = 1000.0) -> Client:
    return Client("http://127.0.0.1:1", "key", transport=service.transport, patience=clock.patience(seconds))


@pytest.mark.slow
@pytest.mark.parametrize("length", corners([1, 2, 3, 4], 0, 1, 2))
def test_every_sequence_of_failures_is_charged_once_and_answered(length: int) -> None:
    """All of up to three, and every seventh of four, with each three that follow each other."""
    for events in itertools.islice(itertools.product(EVENTS, repeat=length), 0, None, 1 if length < 4 else 7):
        service = ServiceDouble(events)
        answer = client(service, Clock()).submit("digits", PREDICTIONS)
        assert (answer.state, answer.low, answer.high) == ("answered", 0.86, 0.91), events
        assert list(service.charged.values()) == [1], events


def test_keys_that_are_not_made_from_the_content_are_charged_twice() -> None:
    """The broken twin: a fresh key for each call of a program that crashed in between."""
    service = ServiceDouble(["after", "before"])
    for key in ("1", "2"):
        try:
            client(service, Clock(), 0.0).submit("digits", PREDICTIONS, key=key)
        except ServiceUnavailable:
            client(service, Clock()).submit("digits", PREDICTIONS, key=key + "again")
    assert sum(service.charged.values()) > 1


@for_each("crash", EVENTS)
def test_a_program_that_starts_anew_finds_its_answer(crash: str) -> None:
    service = ServiceDouble([crash])
    with contextlib.suppress(ServiceError):
        client(service, Clock(), 0.0).submit("digits", PREDICTIONS, wait=0.0)
    answer = client(service, Clock()).submit("digits", PREDICTIONS)
    assert (answer.state, list(service.charged.values())) == ("answered", [1])


@for_each("code", ["quota", "allowance", "exhausted", "closed", "key_used", "bad_table", "unknown_token"])
def test_what_stays_refused_is_not_asked_again(code: str) -> None:
    service, clock = ServiceDouble([code]), Clock()
    with pytest.raises(ServiceError) as caught:
        client(service, clock).submit("digits", PREDICTIONS)
    assert (caught.value.code, len(service.requests), clock.pauses) == (code, 1, [])


def test_retry_after_is_kept() -> None:
    service, clock = ServiceDouble(["busy", "before", "rate"]), Clock()
    client(service, clock).submit("digits", PREDICTIONS)
    assert [clock.pauses[0], clock.pauses[2]] == [7.0, 7.0]
    assert 0.1 <= clock.pauses[1] <= 0.4


def test_a_pause_that_is_longer_than_patience_is_not_begun() -> None:
    transport = httpx.MockTransport(lambda request: refused("rate", 3600))
    clock = Clock()
    asked = Client("http://h", "key", transport=transport, patience=clock.patience(60.0))
    with asked, pytest.raises(LimitReached) as caught:
        asked.submit("digits", PREDICTIONS)
    assert (caught.value.retry_after, clock.pauses) == (3600.0, [])


def test_patience_ends() -> None:
    service, clock = ServiceDouble(itertools.repeat("before")), Clock()
    with pytest.raises(ServiceUnavailable, match=r"not reached \(ConnectError\)"):
        client(service, clock, 30.0).submit("digits", PREDICTIONS)
    assert 15.0 < clock.now <= 30.0
    assert len({request.headers["Idempotency-Key"] for request in service.requests}) == 1


def test_pauses_double_up_to_the_longest() -> None:
    clock = Clock()
    tries = Attempts(clock.patience())
    for _ in range(9):
        assert tries.waited(None)
    limits = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(clock.pauses, limits, strict=True))


@for_each("said", ["-1", "1.5", "nan", "inf", "Wed, 21 Oct 2015 07:28:00 GMT", "9" * 400, "٣", ""])
def test_a_retry_after_that_is_no_number_of_seconds_is_none(said: str) -> None:
    assert seconds_of({"retry-after": said}) is None


def test_reading_calls_are_made_again_too() -> None:
    service = ServiceDouble(["before", "proxy", "unavailable"])
    assert client(service, Clock()).status("digits").name == "digits"
