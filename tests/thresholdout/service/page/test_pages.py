"""The pages without a browser: who may do what with them, cookies and tokens, and that nothing given becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from starlette.testclient import TestClient

from tests.thresholdout.service.page.fake import HOLDOUT, MADE, PEOPLE, FakeService, application, ranked
from thresholdout.service.page.render import STATIC
from thresholdout.service.refusals import REFUSALS, ServiceRefused
from thresholdout.service.schemas import Outlook, Submission, Token

LEADERBOARD = "/holdouts/spring"
OWN = f"{LEADERBOARD}/submissions"
TABLE = b"id,prediction\nr1,1\nr2,0\n"
ONE = Submission("s1", "spring", "ann", "n", "score", "answered", MADE, number=1, query=3, value=0.5, low=0.4, high=0.6)
EVIL = "</td><script>alert(7)</script>\"'&<img src=x>"


Part = tuple[str | None, str | bytes]
"""Of a form: the name of a file, if it is one, and what it has."""


class Markup(HTMLParser):
    """What a page consists of."""

    VOID = frozenset({"meta", "link", "img", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> in {self.open[-3:]}")
        else:
            self.open.pop()


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def client(service: FakeService) -> Iterator[TestClient]:
    with TestClient(application(service), base_url="http://127.0.0.1", follow_redirects=False) as found:
        yield found


def token_in(text: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]{64})"', text)
    assert found is not None
    return found[1]


def form(client: TestClient, path: str, **fields: str) -> dict[str, Part]:
    """Return a form as a browser sends it, with the token that this service gave."""
    return {"token": (None, token_in(client.get(path).text)), **{name: (None, text) for name, text in fields.items()}}


def sign_in(client: TestClient, key: str, back: str = "/") -> None:
    client.cookies.clear()
    answer = client.post("/sign-in", files=form(client, "/sign-in", api_token=key, next=back))
    assert (answer.status_code, answer.headers["location"]) == (303, back)


def check(text: str) -> None:
    """Refuse markup that is not nested, scripts, styles in place, handlers and addresses of others."""
    page = Markup(text)
    assert page.wrong == []
    assert page.open == []
    names = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(names) == len(set(names))
    for tag, attrs in page.tags:
        assert tag not in ("script", "style", "iframe", "object", "embed", "base")
        for name, value in attrs.items():
            assert name != "style"
            assert not name.startswith("on")
            if name in ("href", "src", "action"):
                assert value is not None
                assert re.match(r"/(?!/)|[?#]", value), value


@pytest.mark.slow
def test_every_page_is_markup_without_scripts_whatever_it_is_given(service: FakeService, client: TestClient) -> None:
    service.shown = [
        replace(HOLDOUT, title=EVIL, metric=EVIL, promise=EVIL, estimand=EVIL, mechanism=EVIL, notes=(EVIL,))
    ]
    service.rows = ranked([(EVIL, 0.5, 0.6, 1), ("ann", 0.55, 0.7, 2)])
    own = replace(ONE, team=EVIL, name=EVIL, receipt=EVIL)
    service.sent = [own, replace(own, id="s2", kind="comparison", verdict="better"), replace(own, id="s3", low=None)]
    service.listed = [Token("tho_1", "team", EVIL, EVIL, MADE, None)]
    seen = 0
    for key in (None, *PEOPLE):
        if key is not None:
            sign_in(client, key)
        for path in (
            "/",
            LEADERBOARD,
            f"{LEADERBOARD}?look=close",
            f"{LEADERBOARD}/certificate",
            OWN,
            f"{OWN}/s1",
            f"{OWN}/s2",
            "/tokens",
        ):
            answer = client.get(path)
            if answer.status_code != 303:
                check(answer.text)
                assert "<script" not in answer.text
                seen += EVIL not in answer.text and "&lt;script&gt;alert(7)" in answer.text
            assert "script-src" not in answer.headers["content-security-policy"]
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
    assert seen >= 20


def test_a_session_is_a_cookie_that_says_nothing(client: TestClient) -> None:
    answer = client.post("/sign-in", files=form(client, "/sign-in", api_token="ann-key", next=LEADERBOARD))
    cookie = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("thresholdout-session="))
    assert {part.strip().lower() for part in cookie.split(";")[1:]} >= {"httponly", "samesite=strict", "path=/"}
    assert "ann-key" not in cookie
    assert "secure" not in cookie.lower()
    assert "Team <b>ann</b>" in client.get(LEADERBOARD).text


def test_over_https_cookies_are_of_this_host_alone(service: FakeService) -> None:
    with TestClient(application(service), base_url="https://leaderboard.example", follow_redirects=False) as client:
        answer = client.post("/sign-in", files=form(client, "/sign-in", api_token="ann-key", next=LEADERBOARD))
        cookies = answer.headers.get_list("set-cookie")
        assert any(one.startswith("__Host-thresholdout-session=") for one in cookies)
        assert all("; secure" in one.lower() and "domain" not in one.lower() for one in cookies)


def test_sign_out_ends_the_session_for_those_who_copied_it(service: FakeService, client: TestClient) -> None:
    sign_in(client, "ann-key")
    copied = client.cookies["thresholdout-session"]
    answer = client.post("/sign-out", files=form(client, LEADERBOARD))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "thresholdout-session" not in client.cookies
    client.cookies.set("thresholdout-session", copied)
    assert "Sign in" in client.get(LEADERBOARD).text
    assert service.sessions.kept == {}


def test_a_wrong_key_is_told_so_and_not_shown_again(client: TestClient) -> None:
    answer = client.post("/sign-in", files=form(client, "/sign-in", api_token="tho_wrong", next="/"))
    assert answer.status_code == 401
    assert REFUSALS["unknown_token"].text in answer.text
    assert "tho_wrong" not in answer.text
    assert "thresholdout-session" not in client.cookies


@pytest.mark.slow
@pytest.mark.parametrize(
    "there", ["//evil.example", "https://evil.example", "/\\evil.example", "/v1/tokens", "javascript:1"]
)
def test_after_signing_in_nobody_is_sent_elsewhere(client: TestClient, there: str) -> None:
    answer = client.post("/sign-in", files=form(client, "/sign-in", api_token="ann-key", next=there))
    assert answer.headers["location"] == "/"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "path", "fields"),
    [
        ("ann-key", OWN, {}),
        ("ann-key", "/sign-out", {}),
        ("admin-key", f"{LEADERBOARD}/phase", {"phase": "closed"}),
        ("admin-key", "/tokens", {"role": "viewer"}),
        ("admin-key", "/tokens/tho_1/revoke", {}),
    ],
)
def test_no_form_is_taken_without_its_token(
    service: FakeService, client: TestClient, key: str, path: str, fields: dict[str, str]
) -> None:
    service.listed = [Token("tho_1", "team", "ann", "", MADE, None)]
    sent: dict[str, Part] = {"table": ("t.csv", TABLE), **{name: (None, text) for name, text in fields.items()}}
    if path != OWN:
        del sent["table"]
        sent["filler"] = (None, "1")
    answer = client.post(path, files=sent)
    assert (answer.status_code, "API token is needed" in answer.text) == (401, True)  # a visitor
    sign_in(client, key)
    other = token_in(client.get(LEADERBOARD).text)
    for token in ("", "0" * 64, other[:-1] + ("0" if other[-1] != "0" else "1")):
        assert client.post(path, files={**sent, "token": (None, token)}).status_code == 403
    assert service.calls == []
    assert service.shown == [HOLDOUT]
    assert [one.revoked for one in service.listed] == [None]
    assert len(service.sessions.kept) == 1


def test_the_sign_in_form_of_another_site_signs_nobody_in(client: TestClient) -> None:
    strange = TestClient(client.app, base_url="http://127.0.0.1", follow_redirects=False)
    token = token_in(strange.get("/sign-in").text)
    answer = client.post(
        "/sign-in", files={"token": (None, token), "api_token": (None, "ann-key"), "next": (None, "/")}
    )
    assert answer.status_code == 403
    assert "thresholdout-session" not in client.cookies


def test_predictions_are_sent_once_and_looked_at_elsewhere(service: FakeService, client: TestClient) -> None:
    sign_in(client, "ann-key")
    sent: dict[str, Part] = {
        **form(client, OWN, title=" forest ", expected="0.87", kind="score"),
        "table": ("a/../b.csv", TABLE),
    }
    answers = [client.post(OWN, files=sent) for _ in range(2)]
    assert [answer.headers["location"] for answer in answers] == [f"{OWN}/s1", f"{OWN}/s2"]
    (what, by, name, rows, options), (_, _, _, _, again) = service.calls
    assert (what, by, name, rows) == ("submit", PEOPLE["ann-key"], "spring", 2)
    assert (options["expected"], options["title"]) == (0.87, "forest")
    assert options["idempotency_key"] == again["idempotency_key"]
    assert 'http-equiv="refresh"' in client.get(f"{OWN}/s1").text
    other: dict[str, Part] = {**sent, "table": ("b.csv", TABLE.replace(b"r1,1", b"r1,0"))}
    client.post(OWN, files=other)
    assert service.calls[2][4]["idempotency_key"] != options["idempotency_key"]


def test_a_comparison_expects_no_score(service: FakeService, client: TestClient) -> None:
    sign_in(client, "ann-key")
    fields = {"expected": "0.87", "kind": "comparison"}
    client.post(OWN, files={**form(client, OWN, **fields), "table": ("b.csv", TABLE)})
    service.shown = [replace(HOLDOUT, feedback="verdict")]
    client.post(OWN, files={**form(client, OWN, expected="0.01", kind="score"), "table": ("b.csv", TABLE)})
    assert [(call[0], call[4]["expected"]) for call in service.calls] == [("compare", None), ("compare", 0.01)]


def test_a_refused_table_is_said_beside_the_form_and_counted(service: FakeService, client: TestClient) -> None:
    sign_in(client, "ann-key")
    wrong: dict[str, Part] = {
        **form(client, OWN, title="kept", kind="score"),
        "table": ("t.csv", b"id,prediction\nr1,1,9\n"),
    }
    answer = client.post(OWN, files=wrong)
    assert answer.status_code == 400
    assert REFUSALS["bad_table"].text in answer.text
    assert "row: 1" in answer.text
    assert 'value="kept"' in answer.text
    assert [call[0] for call in service.calls] == ["failed"]
    check(answer.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "retry", "said"), [("quota", 7200, "2 hours"), ("exhausted", 86400, None), ("busy", 1, "1 second")]
)
def test_what_the_service_refuses_is_said_with_the_time(
    service: FakeService, client: TestClient, code: str, retry: int, said: str | None
) -> None:
    service.refusal = ServiceRefused(code, retry_after=retry, permanent=code == "exhausted")
    sign_in(client, "ann-key")
    answer = client.post(OWN, files={**form(client, OWN, kind="score"), "table": ("t.csv", TABLE)})
    assert answer.status_code == REFUSALS[code].status
    assert REFUSALS[code].text in answer.text
    assert ("may be sent again in" in answer.text) == (said is not None)
    assert said is None or f"again in {said}" in answer.text
    assert "failed" not in [call[0] for call in service.calls]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "fields", "status", "code"),
    [
        (b"x" * 300_000, {}, 413, "too_large"),
        (TABLE, {"expected": "nan"}, 400, "bad_request"),
        (TABLE, {"expected": "a lot"}, 400, "bad_request"),
        (b"", {}, 400, "bad_table"),
        (b"PK\x03\x04" + b"0" * 100, {}, 415, "unsupported"),
        (b"PAR1" + b"0" * 100, {}, 400, "bad_table"),
    ],
)
def test_forms_that_cannot_be_used(
    service: FakeService, client: TestClient, content: bytes, fields: dict[str, str], status: int, code: str
) -> None:
    sign_in(client, "ann-key")
    answer = client.post(OWN, files={**form(client, OWN, kind="score", **fields), "table": ("t.csv", content)})
    assert (answer.status_code, REFUSALS[code].text in answer.text) == (status, True)
    assert "submit" not in [call[0] for call in service.calls]


def test_what_only_some_may_see(service: FakeService, client: TestClient) -> None:
    service.shown = [HOLDOUT, replace(HOLDOUT, name="secret", title="Secret", public=False)]
    assert "Secret" not in client.get("/").text
    assert client.get("/holdouts/secret").status_code == 404
    for path in ("/tokens", OWN):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/sign-in?next={path.replace('/', '%2F')}")
    sign_in(client, "ann-key")
    assert "Secret" in client.get("/").text
    assert client.get("/tokens").status_code == 403
    answer = client.post(f"{LEADERBOARD}/phase", files=form(client, LEADERBOARD, phase="closed"))
    assert (answer.status_code, service.shown[0].phase) == (403, "open")
    sign_in(client, "viewer-key")
    answer = client.post(OWN, files={**form(client, LEADERBOARD, kind="score"), "table": ("t.csv", TABLE)})
    assert answer.status_code == 403


@pytest.mark.slow
def test_an_administrator_makes_and_revokes_keys_and_changes_the_phase(
    service: FakeService, client: TestClient
) -> None:
    sign_in(client, "admin-key")
    answer = client.post("/tokens", files=form(client, "/tokens", role="team", team="bob", note="laptop"))
    assert answer.status_code == 200
    assert f"tho_000000000000_{'x' * 43}" in answer.text
    assert "x" * 43 not in client.get("/tokens").text
    assert client.post("/tokens", files=form(client, "/tokens", role="team")).status_code == 400
    assert client.post("/tokens", files=form(client, "/tokens", role="root")).status_code == 400
    answer = client.post("/tokens/tho_000000000000/revoke", files=form(client, "/tokens"))
    assert (answer.status_code, service.listed[0].revoked) == (303, MADE)
    answer = client.post(f"{LEADERBOARD}/phase", files=form(client, LEADERBOARD, phase="blind"))
    assert (answer.status_code, service.shown[0].phase) == (303, "blind")
    assert client.post(f"{LEADERBOARD}/phase", files=form(client, LEADERBOARD, phase="ajar")).status_code == 400


def test_an_administrator_reads_what_is_coming(service: FakeService, client: TestClient) -> None:
    service.coming = Outlook(50, 0.8, 0.03, 200, 0.0811, 0.034)
    assert "Forecast" not in client.get(LEADERBOARD).text
    sign_in(client, "admin-key")
    text = client.get(LEADERBOARD).text
    assert "After 200 further answers it gets ± 0.082" in text
    check(text)


@pytest.mark.parametrize("before", [(), (("ann", 0.5, 0.6, 1),)])
def test_a_blind_phase_shows_what_was_shown_before(
    service: FakeService, client: TestClient, before: tuple[tuple[str, float, float, int], ...]
) -> None:
    service.shown = [replace(HOLDOUT, phase="blind", asked=77_001, information_released=12.34, remaining=55_002)]
    service.rows = ranked(before)
    for path in ("/", LEADERBOARD, f"{LEADERBOARD}/certificate"):
        assert not re.search("77,?001|12[.][34]|55,?002", client.get(path).text)
    text = client.get(LEADERBOARD).text
    assert ("as it was when this phase began" in text) == ("0.50" in text) == bool(before)
    check(text)


def test_pages_lead_below_the_address_of_a_proxy(service: FakeService) -> None:
    with TestClient(application(service), root_path="/leaderboards", follow_redirects=False) as client:
        for tag, attrs in Markup(client.get(LEADERBOARD).text).tags:
            for name in ("href", "src", "action"):
                assert not attrs.get(name) or str(attrs[name]).startswith(("/leaderboards/", "#", "?")), (tag, attrs)
        assert client.get("/tokens").headers["location"] == "/leaderboards/sign-in?next=%2Ftokens"


def test_pages_load_only_files_that_are_there(client: TestClient) -> None:
    for name, kind in STATIC.items():
        answer = client.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert "immutable" in answer.headers["cache-control"]
        assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)|@import", answer.content)
    assert {one.name for one in files("thresholdout.service.page").joinpath("static").iterdir()} == set(STATIC)
    for name in ("..%2f..%2fpages.py", "%2e%2e/pages.py", "none.css"):
        assert client.get(f"/static/{name}").status_code == 404


def test_a_long_history_is_read_page_by_page(service: FakeService, client: TestClient) -> None:
    service.sent = [replace(ONE, id=f"s{number}", number=number) for number in range(120, 0, -1)]
    sign_in(client, "ann-key")
    found, path = [], OWN
    while path:
        text = client.get(path).text
        found += re.findall(r"submissions/s(\d+)\"", text)
        older = re.search(r'href="(\?before=\d+)"', text)
        path = f"{OWN}{older[1]}" if older else ""
    assert found == [str(number) for number in range(120, 0, -1)]
