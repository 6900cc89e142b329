import gc
import io
import json
import logging
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from starlette.testclient import TestClient

from tests.cases import for_each
from tests.patience import wait_until
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, LABELS, N, made, right_in
from tests.thresholdout.service.http.applications import Calls, csv, opened, parquet, running, settings_form
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.http import submission_routes
from thresholdout.service.http.app import make_app
from thresholdout.service.http.logs import HEADERS, LOGGERS, JsonLines
from thresholdout.service.http.uploads import CSV, PARQUET, read_upload
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import REFUSALS
from thresholdout.service.schemas import Principal


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    with opened(tmp_path_factory.mktemp("leaderboard"), public=True) as found:
        yield found


def check_refused(answer: Any, code: str) -> dict[str, Any]:
    assert answer.json() | {"details": {}} == {"code": code, "text": REFUSALS[code].text, "details": {}}
    assert answer.status_code == REFUSALS[code].status
    details: dict[str, Any] = answer.json()["details"]
    return details


@pytest.mark.slow
def test_a_submission_is_answered_stored_and_repeated_free(calls: Calls) -> None:
    first = calls.submit("ann", csv(), "first", params={"expected": 0.8, "title": "forest"})
    assert first.status_code == 200
    told = first.json()
    assert (told["state"], told["repeated"], told["name"], told["team"]) == ("answered", False, "forest", "ann")
    assert told["low"] <= 0.8 <= told["high"]
    assert told["received"].endswith("Z")
    again = calls.submit("ann", csv(), "first", params={"expected": 0.8, "title": "forest"})
    assert again.json() == told | {"repeated": True}
    other = calls.submit("ann", csv(), "other name", params={"expected": 0.8})
    assert {key: other.json()[key] for key in ("low", "high", "query", "repeated")} == {
        "low": told["low"], "high": told["high"], "query": told["query"], "repeated": True,
    }  # fmt: skip
    found = calls("ann", "GET", f"/v1/holdouts/cells/submissions/{told['id']}")
    assert found.json() == told
    details = check_refused(calls.submit("ann", csv(0.7), "first"), "key_used")
    assert details == {}


@pytest.mark.parametrize("path", ["submissions", "comparisons"])
def test_a_misspelled_option_is_refused_and_charges_nothing(calls: Calls, path: str) -> None:
    def asked() -> int:
        return int(calls("", "GET", "/v1/holdouts/cells/remaining").json()["asked"])

    before = asked()
    for option in ({"expcted": 0.8}, {"wait": 5}):
        headers = {"Idempotency-Key": "misspelled", "Content-Type": "text/csv"}
        sent = calls(
            "bob",
            "POST",
            f"/v1/holdouts/cells/{path}",
            content=csv(0.55),
            params=option | {"title": "t"},
            headers=headers,
        )
        details = check_refused(sent, "bad_request")
        assert details == {
            "errors": [{"where": f"query.{next(iter(option))}", "rule": "extra_forbidden"}],
            "expected": "expected, title",
        }
    assert asked() == before


def test_parquet_and_csv_of_the_same_predictions_are_one_query(calls: Calls) -> None:
    table = right_in(0.6)
    sent = calls.submit("bob", table.to_csv(index=False).encode(), "csv")
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    again = calls.submit("bob", parquet(table), "parquet", headers=headers)
    assert again.json()["repeated"]
    assert again.json()["query"] == sent.json()["query"]


@for_each(
    ("body", "headers", "code"),
    [
        (b"id,prediction\nr1,1\n\0", {}, "bad_table"),
        (b"id,prediction\nr400\n", {}, "bad_table"),
        (b"id,prediction\nnobody,1\n", {}, "bad_table"),
        (b"name,prediction\nr400,1\n", {}, "bad_table"),
        (b"", {}, "bad_table"),
        (b"{}", {"Content-Type": "application/json"}, "unsupported"),
        (b"id,prediction\n", {"Content-Encoding": "gzip"}, "unsupported"),
        (b"id,prediction\n", {"Idempotency-Key": ""}, "bad_request"),
        (b"id,prediction\n", {"Idempotency-Key": "x" * 201}, "bad_request"),
        (b"id,prediction\n", {"Idempotency-Key": "a\tb"}, "bad_request"),
        (b"id,prediction\n", {"Content-Length": "99999999999999999999"}, "too_large"),
    ],
)
def test_what_is_refused_costs_nothing(calls: Calls, body: bytes, headers: dict[str, str], code: str) -> None:
    asked = calls("", "GET", "/v1/holdouts/cells").json()["asked"]
    check_refused(calls.submit("ann", body, headers=headers), code)
    assert calls("", "GET", "/v1/holdouts/cells").json()["asked"] == asked


def test_a_row_that_is_wrong_is_named(calls: Calls) -> None:
    lines = csv().split(b"\n")
    lines[7] = b"r406,1,1"
    details = check_refused(calls.submit("ann", b"\n".join(lines)), "bad_table")
    assert details == {"row": 7, "seen": "3 cells", "expected": "2 cells"}
    lines = csv().split(b"\n")
    lines[7] = b"r406,maybe"
    details = check_refused(calls.submit("ann", b"\n".join(lines)), "bad_table")
    assert details["seen"] == "text in column 'prediction', row 7"


@pytest.mark.slow
@for_each("text", ["=1+1", "@SUM(A1)", "<script>alert(1)</script>", "\u202eevil", "../../etc/passwd"])
def test_text_that_somebody_could_run_stays_text_or_is_refused(calls: Calls, text: str) -> None:
    table = right_in(0.8).assign(prediction=text)
    check_refused(calls.submit("ann", table.to_csv(index=False).encode()), "bad_table")
    named = calls.submit("ann", csv(0.8, seed=50 + len(text)), text.strip("\u202e"), params={"title": text})
    assert named.headers["content-type"] == "application/json"
    assert named.headers["X-Content-Type-Options"] == "nosniff"
    assert named.json().get("name") == text or named.json()["code"] == "bad_name"


@for_each(
    "params", [{"expected": "nan"}, {"expected": "inf"}, {"expected": "x"}, {"expected": 2}, {"title": "x" * 101}]
)
def test_options_that_cannot_be_used(calls: Calls, params: dict[str, Any]) -> None:
    answer = calls.submit("ann", csv(), params=params)
    assert answer.status_code == 400
    assert "nan" not in answer.text


def test_waiting_is_as_the_client_prefers(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    submit = calls.service.submit

    def slow(*given: Any, **named: Any) -> Any:
        waited.append(named["wait"])
        found = submit(*given, **named | {"wait": None})
        return found if named["wait"] else replace(found, state="running", low=None, high=None, value=None)

    monkeypatch.setattr(calls.service, "submit", slow)
    later = calls.submit("bob", csv(0.71), "later", headers={"Prefer": "wait=0"})
    assert later.status_code == 202
    assert later.json()["state"] == "running"
    assert later.headers["Retry-After"] == "1"
    assert later.headers["Preference-Applied"] == "wait=0"
    assert calls("bob", "GET", later.headers["Location"]).json()["low"] is not None
    assert calls.submit("bob", csv(0.71), "later", headers={"Prefer": "wait=20, handling=strict"}).json()["repeated"]
    for prefer in ("respond-async", "wait=100000", "handling=lenient"):
        calls.submit("bob", csv(0.71), "later", headers={"Prefer": prefer})
    assert waited == [0.0, 20.0, 0.0, 60.0, Limits().wait]


def test_comparisons_with_the_champion(calls: Calls) -> None:
    where = "cells/comparisons"
    assert calls.submit("bob", csv(0.5), "c1", where=where).json()["verdict"] == "first"
    better = calls.submit("bob", csv(0.97), "c2", where=where).json()
    assert (better["kind"], better["verdict"]) == ("comparison", "better")


def test_what_a_leaderboard_and_its_parts_say(calls: Calls) -> None:
    holdout = calls("", "GET", "/v1/holdouts/cells").json()
    assert holdout["records"] == N
    leaderboard = calls("ann", "GET", "/v1/holdouts/cells/leaderboard").json()
    assert leaderboard["mine"] == "ann"
    assert {row["team"] for row in leaderboard["rows"]} <= {"ann", "bob"}
    certificate = calls("", "GET", "/v1/holdouts/cells/certificate").json()
    assert certificate["promise"] == holdout["promise"]
    remaining = calls("", "GET", "/v1/holdouts/cells/remaining").json()
    assert remaining["asked"] == calls("", "GET", "/v1/holdouts/cells/checkpoint").json()["asked"]
    lines = calls("admin", "GET", "/v1/holdouts/cells/export").text.splitlines()
    assert len(lines) >= remaining["asked"]
    assert all(json.loads(line) for line in lines)


def test_a_holdout_is_made_from_a_form_whose_file_names_mean_nothing(calls: Calls, tmp_path: Path) -> None:
    form = settings_form("new-one", "n", title="New")
    form["train"] = ("../../../../etc/passwd", form["train"][1])
    form["holdout"] = ("C:\\evil\\..\\x.parquet", parquet(pd.read_csv(io.StringIO(form["holdout"][1]))))
    made = calls("admin", "POST", "/v1/holdouts", files=form)
    assert made.status_code == 201
    assert made.headers["Location"] == "/v1/holdouts/new-one"
    assert calls("admin", "POST", "/v1/holdouts", files=form).json()["identity"] == made.json()["identity"]
    check_refused(calls("admin", "POST", "/v1/holdouts", files=settings_form("new-one", "m")), "name_taken")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        {"settings": (None, "{")},
        {"settings": (None, '{"name": "../x", "label": "y"}')},
        {"settings": (None, '{"name": "x", "label": "y", "path": "/etc/passwd"}')},
        {"settings": (None, '{"name": "x", "label": "nothing"}')},
        {"train": (None, "id,y\n1,2\n")},
        {"train": ("train.csv", b"\x1f\x8b")},
        {"other": ("x", b"")},
    ],
)
def test_forms_that_make_no_holdout(calls: Calls, change: dict[str, Any]) -> None:
    answer = calls("admin", "POST", "/v1/holdouts", files=settings_form("x", "x") | change)
    assert answer.status_code in (400, 415)
    assert "passwd" not in answer.text
    assert calls("admin", "GET", "/v1/holdouts/x").status_code == 404
    check_refused(calls("admin", "POST", "/v1/holdouts", content=b"{}"), "unsupported")
    bad = {"Content-Type": "multipart/form-data; boundary=x"}
    check_refused(calls("admin", "POST", "/v1/holdouts", content=b"--y\r\n", headers=bad), "bad_request")


def test_keys_are_made_listed_and_revoked(calls: Calls) -> None:
    made = calls("admin", "POST", "/v1/tokens", json={"role": "team", "team": "eve", "note": "laptop"})
    assert made.status_code == 201
    calls.keys["eve"] = made.json()["text"]
    listed = calls("admin", "GET", "/v1/tokens")
    assert made.json()["text"] not in listed.text
    assert made.json()["token"] in listed.json()["tokens"]
    assert calls("eve", "GET", "/v1/holdouts").status_code == 200
    revoked = calls("admin", "DELETE", f"/v1/tokens/{made.json()['token']['id']}")
    assert revoked.json()["revoked"] is not None
    check_refused(calls("eve", "GET", "/v1/holdouts"), "unknown_token")
    check_refused(calls("admin", "DELETE", "/v1/tokens/nobody"), "not_found")
    check_refused(calls("admin", "POST", "/v1/tokens", json={"role": "king"}), "bad_request")


@for_each("sent", ["Basic YTpi", "Bearer", "Bearer ", "Bearer " + "x" * 300, "Bearer nobody", "x"])
def test_a_key_that_is_none(calls: Calls, sent: str) -> None:
    answer = calls("", "GET", "/v1/holdouts", headers={"Authorization": sent})
    check_refused(answer, "unknown_token")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@for_each(
    ("method", "path", "code"),
    [
        ("GET", "/nowhere", "not_found"),
        ("GET", "/v1/holdouts/", "not_found"),
        ("GET", "/docs", "not_found"),
        ("DELETE", "/v1/holdouts", "method"),
        ("GET", "/v1/holdouts/..%2f..%2fetc", "not_found"),
        ("GET", "/v1/holdouts/%00", "bad_request"),
        ("GET", "/v1/holdouts/cells/submissions/%2e%2e", "not_found"),
    ],
)
def test_other_addresses(calls: Calls, method: str, path: str, code: str) -> None:
    answer = calls("ann", method, path)
    check_refused(answer, code)
    if code == "method":
        assert "GET" in answer.headers["Allow"]


@for_each("path", ["/ready", "/v1/holdouts", "/nowhere", "/v1/tokens", "/v1/openapi.json"])
def test_every_answer_has_the_headers_that_browsers_obey(calls: Calls, path: str) -> None:
    headers = calls("", "GET", path).headers
    assert HEADERS.items() <= {name: headers[name] for name in HEADERS}.items()
    assert len(headers["X-Request-Id"]) == 16
    assert "server" not in headers


def test_health_and_metrics(calls: Calls) -> None:
    assert calls("", "GET", "/ready").json() == {"status": "ok"}
    text = calls("viewer", "GET", "/metrics").text
    assert 'thresholdout_requests_total{method="GET",route="/ready",status="200"}' in text
    assert 'thresholdout_refusals_total{code="bad_table"}' in text
    for number in ("answers", "information_released_nats", "error_budget_left", "commit_seconds"):
        assert f"\nthresholdout_{number} " in text
    assert "cells" not in text
    assert "ann" not in text
    check_refused(calls("ann", "GET", "/metrics"), "forbidden")
    check_refused(calls("", "GET", "/metrics"), "no_token")


def test_logs_have_no_secrets(calls: Calls) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("thresholdout.service")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        calls.submit("ann", csv(0.66), "secret-idempotency", params={"title": "secret-title"})
        calls.submit("ann", b"id,prediction\nsecret-id,1\n")
        calls("", "GET", "/v1/holdouts", headers={"Authorization": "Bearer secret-key"})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["status"] for line in lines] == [200, 400, 401]
    assert lines[0]["token"] in calls.keys["ann"]
    assert lines[1]["refused"] == "bad_table"
    for secret in ("secret", calls.keys["ann"], "r400", csv(0.66).decode()):
        assert secret not in stream.getvalue()


def test_errors_are_logged_by_kind_and_place() -> None:
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "Exception\n with labels 0, 1", None, None)
    try:
        raise ValueError("labels 0, 1")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = json.loads(JsonLines().format(record))
    assert (line["event"], line["error"]) == ("Exception", "ValueError")
    assert "labels" not in json.dumps(line)
    assert "uvicorn.error" in LOGGERS


class _Broken(EvaluationService):
    """A service that fails inside with a label in its words."""

    def leaderboard(self, by: Principal, name: str) -> Any:
        raise RuntimeError(f"labels: {LABELS.tolist()}")

    def holdouts(self, by: Principal) -> Any:
        return [f"labels: {LABELS.tolist()}"]


@pytest.mark.slow
def test_an_error_inside_is_unavailable_and_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path / "leaderboard.db", public=True).close()
    with running(make_app(_Broken.open(tmp_path / "leaderboard.db"))) as client, caplog.at_level(logging.INFO):
        for path in ("/v1/holdouts/cells/leaderboard", "/v1/holdouts"):
            check_refused(client.get(path), "unavailable")
            assert (
                HEADERS.items() <= dict(client.get(path).headers).items() or "x-request-id" in client.get(path).headers
            )
    fields = [record.__dict__["fields"] for record in caplog.records if hasattr(record, "fields")]
    assert {one["error"] for one in fields} == {"RuntimeError", "ResponseValidationError"}
    assert "labels" not in str(fields).replace("labels_of", "")


@pytest.mark.slow
def test_quotas_rates_and_exhaustion_say_when_to_come_again(tmp_path: Path) -> None:
    limits = Limits(failures_per_hour=2)
    with opened(tmp_path, quota=1, quota_days=7, limits=limits) as calls:
        assert calls.submit("ann", csv(0.8), "a").status_code == 200
        beyond = calls.submit("ann", csv(0.7), "b")
        assert check_refused(beyond, "quota")["limit"] == 1
        assert 0 < int(beyond.headers["Retry-After"]) <= 7 * 86400
        assert calls.submit("ann", csv(0.8), "c").json()["repeated"]
        check_refused(calls.submit("ann", b"\0"), "bad_table")
        check_refused(calls.submit("ann", b"", headers={"Content-Type": "text/html"}), "unsupported")
        for body in (b"\0", csv(0.8)):
            slow = calls.submit("ann", body)
            check_refused(slow, "rate")
            assert 0 < int(slow.headers["Retry-After"]) <= 3601
        assert calls.submit("bob", csv(0.8)).status_code == 200


@pytest.mark.slow
def test_a_table_beyond_the_limits(tmp_path: Path) -> None:
    with opened(tmp_path, limits=Limits(most_bytes=2000, most_rows=100)) as calls:
        assert check_refused(calls.submit("ann", csv()), "too_large") == {"what": "bytes", "most": 2000}

        def chunks() -> Iterator[bytes]:
            yield from (b"x" * 500 for _ in range(1000))

        answer = calls.submit("ann", chunks())  # type: ignore[arg-type]
        assert check_refused(answer, "too_large") == {"what": "bytes", "most": 2000}
        assert check_refused(calls.submit("ann", csv()[:1500]), "too_large") == {"what": "rows", "most": 100}
        form = settings_form("other", "o")
        check_refused(calls("admin", "POST", "/v1/holdouts", files=form), "too_large")


@pytest.mark.slow
def test_a_blind_phase_shows_nothing_until_it_is_closed(tmp_path: Path) -> None:
    with opened(tmp_path, phase="blind") as calls:
        hidden = calls.submit("ann", csv())
        assert hidden.json()["state"] == "hidden"
        for who in ("ann", "admin"):
            for path in ("", "/remaining", "/head", "/leaderboard", "/submissions"):
                text = calls(who, "GET", f"/v1/holdouts/cells{path}").text
                assert "0.8" not in text
        check_refused(calls("admin", "GET", "/v1/holdouts/cells/export"), "hidden")
        check_refused(calls("admin", "PUT", "/v1/holdouts/cells/phase", json={"phase": "open"}), "bad_request")
        assert calls("admin", "PUT", "/v1/holdouts/cells/phase", json={"phase": "closed"}).status_code == 200
        assert calls("ann", "GET", f"/v1/holdouts/cells/submissions/{hidden.json()['id']}").json()["low"] is not None
        check_refused(calls.submit("ann", csv(0.7), "late"), "closed")


@pytest.mark.slow
def test_contexts_routers_and_routes_of_others(tmp_path: Path) -> None:
    from contextlib import asynccontextmanager

    from fastapi import APIRouter
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    said = []

    @asynccontextmanager
    async def context() -> Any:
        said.append("begun")
        yield
        said.append("ended")

    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("page", headers={"Content-Security-Policy": "default-src 'self'"})

    router = APIRouter()
    router.add_route("/", page)
    app = make_app(made(tmp_path / "b.db"), routers=[router], routes=[Route("/mcp", page)], running=[context])
    with TestClient(app) as client:
        for path in ("/", "/mcp"):
            assert client.get(path).headers["Content-Security-Policy"] == "default-src 'self'"
            assert client.get(path).headers["X-Frame-Options"] == "DENY"
    assert said == ["begun", "ended"]


def test_health_says_when_the_store_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = made(tmp_path / "b.db")
    monkeypatch.setattr(service, "health", lambda *, writes: {"status": "unavailable"})
    with running(make_app(service)) as client:
        found = client.get("/ready")
    assert (found.status_code, found.json()) == (503, {"status": "unavailable"})


def test_other_teams_values_are_not_there(calls: Calls) -> None:
    told = calls.submit("ann", csv(0.9), "mine").json()
    path = f"/v1/holdouts/cells/submissions/{told['id']}"
    check_refused(calls("bob", "GET", path), "not_found")
    check_refused(calls("viewer", "GET", path), "forbidden")
    check_refused(calls("bob", "GET", "/v1/holdouts/cells/submissions", params={"team": "ann"}), "forbidden")
    assert {one["team"] for one in calls("bob", "GET", "/v1/holdouts/cells/submissions").json()["submissions"]} == {
        "bob"
    }
    same = calls.submit("bob", csv(0.9), "mine").json()
    assert not same["repeated"]
    assert same["query"] != told["query"]


def test_the_first_key_is_printed_once(tmp_path: Path) -> None:
    service = EvaluationService.open(tmp_path / "b.db")
    assert service.first_admin_token() is not None
    assert service.first_admin_token() is None
    service.close()
    assert ADMIN.role == "admin"
    assert len(HOLDOUT) == N


@for_each("body", [b"id,prediction\nnobody,1\n", csv(), csv()[:-1] + b"x"])
def test_tables_are_let_go_without_collecting_garbage(
    calls: Calls, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = []

    def reading(*given: Any) -> pd.DataFrame:
        found = read_upload(*given)
        tables.append(weakref.ref(found))
        return found

    monkeypatch.setattr(submission_routes, "read_upload", reading)
    gc.disable()
    try:
        for _ in range(3):
            calls.submit("ann", body)
        assert len(tables) == 3
        wait_until(lambda: [table() for table in tables] == [None] * 3)  # threads may still be on their way out
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_disk_that_takes_nothing_is_not_ready_and_the_process_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk can be read: what is stored now and then fails, and nothing is charged meanwhile."""
    service = made(tmp_path / "b.db")

    def full(*_: Any) -> None:
        raise LedgerUnusable("b.db", "database or disk is full")

    monkeypatch.setattr(SQLLedger, "change_setting", full)
    with running(make_app(service)) as client:
        assert client.get("/live").json() == {"status": "ok"}
        found = client.get("/ready")
        assert (found.status_code, found.json()) == (503, {"status": "unavailable"})
        monkeypatch.undo()
        wait_until(lambda: client.get("/ready").status_code == 200)


def test_a_damaged_holdout_is_said_and_the_others_are_served(tmp_path: Path) -> None:
    service = made(tmp_path / "b.db")
    service._damaged = frozenset({service.holdout(ADMIN, "cells").identity})
    with running(make_app(service)) as client:
        found = client.get("/ready")
    assert (found.status_code, found.json()) == (200, {"status": "damaged", "damaged": ["cells"]})


def test_a_table_of_many_more_rows_than_the_holdout_has_is_refused_unread(calls: Calls) -> None:
    """A Parquet file of 14 kB with two million equal rows took two thirds of a second each."""
    rows = 2 * calls.service.holdout(ADMIN, "cells").rows + 1000  # type: ignore[operator]
    long = pd.DataFrame({"id": ["r1"] * (rows + 1), "prediction": [1] * (rows + 1)})
    for body, kind in ((long.to_csv(index=False).encode(), CSV), (parquet(long), PARQUET)):
        refused = calls.submit("ann", body, f"long {kind}", headers={"Content-Type": kind})
        assert check_refused(refused, "too_large") == {"what": "rows", "most": rows}
