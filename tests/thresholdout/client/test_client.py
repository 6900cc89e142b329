"""What a client asks for, how it reads the answers, and what it makes of refusals."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import httpx
import pandas as pd
import pytest

from tests.cases import for_each
from tests.thresholdout.client.service_double import ServiceDouble, refused
from thresholdout.client import (
    BadRequest,
    Client,
    Conflict,
    LimitReached,
    NothingThere,
    ServiceError,
    ServiceUnavailable,
    TokenRefused,
    received,
)
from thresholdout.client.client import RetryPolicy
from thresholdout.client.tables import as_table
from thresholdout.errors import InputError
from thresholdout.service import schemas as shown
from thresholdout.service import standings
from thresholdout.service.refusals import REFUSALS

PREDICTIONS = pd.DataFrame({"id": [1, 2], "prediction": [0, 1]})


def client(service: ServiceDouble | httpx.MockTransport, **options: object) -> Client:
    transport = service.transport if isinstance(service, ServiceDouble) else service
    return Client("http://127.0.0.1:1/", "key", transport=transport, **options)  # type: ignore[arg-type]


class TestRequests:
    def test_a_submission_is_the_raw_file_with_its_type_and_options(self) -> None:
        service = ServiceDouble()
        with client(service) as asked:
            answer = asked.submit("digits", PREDICTIONS, expected=0.1, title="forest")
        (request,) = service.requests
        assert (request.method, request.url.path) == ("POST", "/v1/holdouts/digits/submissions")
        assert dict(request.url.params) == {"expected": "0.1", "title": "forest"}
        assert request.content == b"id,prediction\n1,0\n2,1\n"
        assert request.headers["Content-Type"] == "text/csv"
        assert request.headers["Authorization"] == "Bearer key"
        assert request.headers["Prefer"] == "wait=10"
        assert 1 <= len(request.headers["Idempotency-Key"]) <= 200
        assert (answer.low, answer.high, answer.received) == (0.86, 0.91, 1767312000.0)

    def test_a_file_is_sent_as_it_is(self, tmp_path: Path) -> None:
        service = ServiceDouble()
        for name, kind in (("a.csv", "text/csv"), ("b.PARQUET", "application/vnd.apache.parquet")):
            (tmp_path / name).write_bytes(b"\x00bytes")
            client(service).compare("digits", tmp_path / name)
            request = service.requests[-1]
            assert request.url.path.endswith("/comparisons")
            assert (request.content, request.headers["Content-Type"]) == (b"\x00bytes", kind)

    def test_a_table_that_is_sent_has_the_numbers_that_it_had(self) -> None:
        numbers = [0.1, 1 / 3, 1e-300, 0.1 + 0.2]
        sent = as_table(pd.DataFrame({"id": range(4), "prediction": numbers})).body.decode().split("\n")[1:-1]
        assert [float(line.split(",")[1]) for line in sent] == numbers

    def test_names_cannot_leave_their_place_in_an_address(self) -> None:
        service = ServiceDouble()
        with pytest.raises(NothingThere):
            client(service).status("../../keys?x#y")
        assert service.requests[0].url.raw_path == b"/v1/holdouts/..%2F..%2Fkeys%3Fx%23y"

    def test_what_is_read(self) -> None:
        asked = client(ServiceDouble())
        (holdout,) = asked.holdouts()
        assert holdout == asked.status("digits")
        assert (holdout.made, holdout.notes, holdout.quota) == (1767312000.0, ("12 labels were corrected",), 20)
        assert asked.history("digits") == []
        leaderboard = asked.leaderboard("digits")
        assert (leaderboard.mine, [(row.team, row.first, row.last) for row in leaderboard.rows]) == (
            "ann",
            [("ann", 1, 2)],
        )

    def test_pages_of_the_history_are_asked_for(self) -> None:
        service = ServiceDouble()
        client(service).history("digits", after=100, count=7)
        assert dict(service.requests[0].url.params) == {"after": "100", "count": "7"}


class TestKeysOfContent:
    def key(self, *changes: int, kind: str = "submit", holdout: str = "digits", **options: object) -> str:
        service = ServiceDouble()
        table = PREDICTIONS.assign(prediction=list(changes)) if changes else PREDICTIONS
        getattr(client(service), kind)(holdout, table, **options)
        return str(service.requests[0].headers["Idempotency-Key"])

    def test_equal_requests_have_equal_keys_and_others_have_others(self) -> None:
        assert self.key() == self.key()
        others = [
            self.key(1, 1),
            self.key(kind="compare"),
            self.key(holdout="other"),
            self.key(expected=0.5),
            self.key(title="forest"),
        ]
        assert len({self.key(), *others}) == 6

    def test_a_key_of_ones_own(self) -> None:
        assert self.key(key="mine") == "mine"

    @pytest.mark.slow
    def test_the_same_in_another_process(self) -> None:
        code = (
            "import pandas as pd; from tests.thresholdout.client.test_client import TestKeysOfContent;"
            "print(TestKeysOfContent().key())"
        )
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert other.stdout.strip() == self.key()


class TestRefusals:
    KINDS: ClassVar = {
        400: BadRequest,
        401: TokenRefused,
        403: TokenRefused,
        404: NothingThere,
        405: BadRequest,
        408: ServiceUnavailable,
        409: Conflict,
        413: BadRequest,
        415: BadRequest,
        429: LimitReached,
        503: ServiceUnavailable,
    }

    @pytest.mark.parametrize("code", REFUSALS)
    def test_each_code_is_an_error_of_its_kind(self, code: str) -> None:
        asked = client(httpx.MockTransport(lambda request: refused(code, 5, row=3)), patience=0.0)
        with pytest.raises(ServiceError) as caught:
            asked.submit("digits", PREDICTIONS)
        error = caught.value
        assert type(error) is self.KINDS[REFUSALS[code].status]
        assert (error.code, error.text, str(error)) == (code, REFUSALS[code].text, f"{REFUSALS[code].text} (row: 3)")
        assert (error.status, error.details, error.retry_after) == (REFUSALS[code].status, {"row": 3}, 5.0)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), vars(again)) == (type(error), vars(error))

    @pytest.mark.parametrize(
        "answer",
        [
            httpx.Response(200, text="<html>"),
            httpx.Response(200, content=b"\xff\xfe"),
            httpx.Response(200, json=[1]),
            httpx.Response(200, json={"id": "s1"}),
            httpx.Response(200, json={"id": "s1", "state": "answered", "received": "yesterday"}),
            httpx.Response(302, headers={"Location": "http://elsewhere/"}),
            httpx.Response(500, json={"code": 3, "text": "no"}),
        ],
    )
    def test_what_is_no_answer_of_a_service(self, answer: httpx.Response) -> None:
        with pytest.raises(ServiceUnavailable):
            client(httpx.MockTransport(lambda request: answer)).submit("digits", PREDICTIONS)

    @for_each("key", ["", "two words", "kay\n", "schlüssel"])
    def test_an_error_about_a_key_does_not_show_it(self, key: str) -> None:
        if key == "kay\n":
            Client("http://h", key).close()
            return
        with pytest.raises(InputError) as caught:
            Client("http://h", key)
        assert not key or key not in str(caught.value)

    @for_each(
        ("url", "predictions", "argument"),
        [("ftp://h", PREDICTIONS, "url"), ("http://h", "a.xlsx", "predictions"), ("http://h", 3, "predictions")],
    )
    def test_arguments(self, url: str, predictions: object, argument: str) -> None:
        with pytest.raises(InputError) as caught:
            Client(url).submit("digits", predictions)  # type: ignore[arg-type]
        assert caught.value.argument == argument

    def test_a_holdout_without_a_name(self) -> None:
        with pytest.raises(InputError, match="holdout"):
            client(ServiceDouble()).status("")


def test_a_submission_that_takes_longer_than_the_wait_is_returned_as_it_is() -> None:
    running = httpx.Response(202, json={"id": "s1", "state": "running"})
    time = [0.0]

    def passed(seconds: float) -> None:
        time[0] += seconds

    patience = RetryPolicy(pause=passed, clock=lambda: time[0])
    asked = client(httpx.MockTransport(lambda request: running), patience=patience)
    found = asked.submit("digits", PREDICTIONS, wait=30.0)
    assert (found.state, found.done) == ("running", False)
    assert 15.0 < time[0] <= 30.0


@for_each(
    ("mine", "theirs"),
    [
        (received.Holdout, shown.Holdout),
        (received.Submission, shown.Submission),
        (received.Standing, standings.Standing),
        (received.Leaderboard, shown.Leaderboard),
    ],
)
def test_every_field_that_the_service_shows_is_read(mine: type, theirs: type) -> None:
    assert {one.name for one in dataclasses.fields(theirs)} == {one.name for one in dataclasses.fields(mine)}


def test_the_client_loads_no_service() -> None:
    code = "import sys, thresholdout.client.client; print([n for n in sys.modules if n.startswith('thresholdout.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "thresholdout.client.client" in found
    assert "service" not in found
    assert "guard" not in found
