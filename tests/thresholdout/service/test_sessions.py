"""Sessions: whose they are, when they end, and what of them is written down; in both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.service.evaluations import ADMIN
from thresholdout.errors import LedgerUnusable
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.tokens import MOST_OF_A_TOKEN, SESSION_SECONDS


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    if request.param == "sqlite":
        return tmp_path / "leaderboard.db"
    server: Server = request.getfixturevalue("server")
    request.getfixturevalue("server_key")
    return server.emptied_database()


@pytest.fixture
def service(where: str | Path) -> Iterator[EvaluationService]:
    found = EvaluationService.open(where)
    yield found
    found.close()


def rows(service: EvaluationService) -> list[Any]:
    return service.ledger.database.read("SELECT digest, token, until FROM service_sessions")


def refused(service: EvaluationService, text: str) -> bool:
    try:
        service.sessions.holder(text)
    except ServiceRefused as error:
        return error.code == "unknown_token"
    return False


@pytest.mark.slow
def test_a_session_is_its_tokens(service: EvaluationService) -> None:
    text, key = service.new_token(ADMIN, "team", "ann")
    one, other = service.sessions.begin(text), service.sessions.begin(text)
    assert one != other
    assert service.sessions.holder(one) == service.authenticate(text)
    written = str(rows(service))
    assert one not in written
    assert other not in written
    assert text not in written
    service.sessions.end(one)
    assert refused(service, one)
    assert service.sessions.holder(other).team == "ann"
    service.revoke(ADMIN, key.id)
    assert refused(service, other)
    with pytest.raises(ServiceRefused, match="unknown, or was revoked"):
        service.sessions.begin(text)


def _at(monkeypatch: pytest.MonkeyPatch, moment: float) -> None:
    monkeypatch.setattr("thresholdout.service.tokens.time.time", lambda: moment)


@pytest.mark.slow
def test_a_session_ends_by_itself(service: EvaluationService, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = service.new_token(ADMIN, "viewer")
    session = service.sessions.begin(text)
    now = time.time()
    _at(monkeypatch, now + SESSION_SECONDS - 60)
    assert service.sessions.holder(session).role == "viewer"
    _at(monkeypatch, now + SESSION_SECONDS + 60)
    assert refused(service, session)
    service.sessions.begin(text)
    assert len(rows(service)) == 1


@pytest.mark.slow
def test_a_token_has_so_many_sessions(service: EvaluationService, monkeypatch: pytest.MonkeyPatch) -> None:
    text, other = (service.new_token(ADMIN, "viewer")[0] for _ in range(2))
    now = time.time()
    kept = service.sessions.begin(other)
    begun = []
    for second in range(MOST_OF_A_TOKEN + 2):
        _at(monkeypatch, now + second)
        begun.append(service.sessions.begin(text))
    assert [refused(service, one) for one in begun[:3]] == [True, True, False]
    assert service.sessions.holder(begun[-1]) == service.authenticate(text)
    assert service.sessions.holder(kept) == service.authenticate(other)


@pytest.mark.slow
def test_what_is_no_session_is_nobodys(service: EvaluationService) -> None:
    for text in ("", "x", "\0" * 43, "é" * 43, "\udcff" * 43, "a" * 42 + "'", "a" * 43):
        assert refused(service, text)
        service.sessions.end(text)


@pytest.mark.slow
def test_a_store_that_fails_says_nothing_of_itself(service: EvaluationService, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise LedgerUnusable("secret-place", "secret-reason")

    monkeypatch.setattr(service.sessions._store, "read", broken)
    with pytest.raises(ServiceRefused) as error:
        service.sessions.holder("a" * 43)
    assert (error.value.code, "secret" in str(error.value)) == ("unavailable", False)
