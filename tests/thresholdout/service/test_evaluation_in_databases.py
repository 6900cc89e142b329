"""What the service keeps, in both databases: threads, restarts, other processes' views, and formats."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from tests.patience import PATIENCE
from tests.thresholdout.ledger.postgres_server import Server
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, made, right_in, team
from thresholdout.errors import LedgerUnusable
from thresholdout.service import limits
from thresholdout.service.evaluation import MOST_NUMBER, EvaluationService
from thresholdout.service.limits import Limits
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Phase
from thresholdout.service.store.submissions import SubmissionRow

THREADS = 6


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    if request.param == "sqlite":
        return tmp_path / "leaderboard.db"
    server: Server = request.getfixturevalue("server")
    request.getfixturevalue("server_key")
    return server.emptied_database()


@pytest.fixture
def _in_one_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let refused tables be counted in the middle of an hour, whenever the test runs."""
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: 500_000 * 3600.0 + 1800.0))


def code(call: Callable[..., object], *given: object) -> str:
    try:
        call(*given)
    except ServiceRefused as refused:
        return refused.code
    return ""


@pytest.mark.slow
def test_threads_and_two_services_charge_each_content_once(where: str | Path) -> None:
    """Twelve requests of three contents, each under its own Idempotency-Key in two services: three are charged."""
    one = made(where)
    two = EvaluationService.open(where)
    by = [team(one, "ann"), team(one, "bob")]

    def send(job: int) -> tuple[str, int, int | None, float | None, bool]:
        service, client, content = (one, two)[job % 2], by[job // 2 % 2], job % 3
        told = service.submit(client, "cells", right_in(0.6 + 0.1 * content), idempotency_key=f"{job}", expected=0.7)
        return client.team, content, told.query, told.value, told.repeated

    with ThreadPoolExecutor(THREADS) as threads:
        told = list(threads.map(send, range(24)))
    entries = one.ledger.entries(one.holdout(ADMIN, "cells").identity)
    assert sorted({(found[0], found[1]) for found in told}) == [(name, k) for name in ("ann", "bob") for k in range(3)]
    assert len(entries) == 6
    assert len({found[:4] for found in told}) == 6
    assert sum(not found[4] for found in told) == 6
    for name in ("ann", "bob"):
        rows = two.history(ADMIN, "cells", team=name)
        assert [row.number for row in rows] == list(range(1, 13))
    places = [row.number for row in one.history(ADMIN, "cells")]
    assert places == list(range(1, 25))
    assert [row.number for row in one.history(ADMIN, "cells", after=20, count=2)] == [21, 22]
    for service in (one, two):
        service.close()


@pytest.mark.slow
def test_what_was_stored_is_there_after_a_restart(where: str | Path) -> None:
    before = made(where, title="Cells of a plate", public=True)
    assert before.first_admin_token() is not None
    ann = team(before, "ann")
    told = before.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, title="forest")
    leaderboard, shown, tokens = before.leaderboard(ann, "cells"), before.holdout(ann, "cells"), before.tokens(ADMIN)
    before.close()
    after = EvaluationService.open(where)
    assert after.first_admin_token() is None
    assert after.tokens(ADMIN) == tokens
    assert after.holdout(ann, "cells") == shown
    assert after.leaderboard(ann, "cells") == leaderboard
    assert after.history(ann, "cells") == [told]
    again = after.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, title="forest")
    assert again == replace(told, repeated=True)
    after.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y", title="Cells of a plate", public=True)
    for name, title in (("cells", "Other cells"), ("others", "Cells of a plate")):
        create = lambda: after.create_holdout(ADMIN, name, TRAIN, HOLDOUT, label="y", title=title, public=True)  # noqa: B023, E731
        assert code(create) == "name_taken"
    after.close()


@pytest.mark.slow
def test_a_submission_that_takes_long_is_running_and_one_that_nobody_works_on_was_interrupted(
    where: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = made(where)
    ann = team(service, "ann")
    told = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    asked = service.ledger.count(service.holdout(ADMIN, "cells").identity)
    running = service._submissions.find(told.id)
    assert running is not None
    service._submissions._store.write(  # as a process leaves it that is killed after the ledger's commit
        "UPDATE service_submissions SET state = 'running', until = ?, query = NULL, value = NULL, low = NULL, "
        "high = NULL WHERE id = ?",
        (time.time() + 1e6, told.id),
    )
    assert service.submission(ann, "cells", told.id).state == "running"
    service._submissions.put_off([told.id], time.time() - 1.0)
    cut = service.submission(ann, "cells", told.id)
    assert (cut.state, cut.value, cut.query) == ("interrupted", None, None)
    assert code(lambda: service.submit(ann, "cells", right_in(0.7), idempotency_key="1", expected=0.8)) == "key_used"
    again = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert replace(again, repeated=False) == told
    assert service.submission(ann, "cells", told.id) == told
    assert service.ledger.count(service.holdout(ADMIN, "cells").identity) == asked == 1
    service.close()


@pytest.mark.slow
def test_who_does_not_wait_fetches_the_answer_later(where: str | Path) -> None:
    service = made(where)
    ann = team(service, "ann")
    first = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, wait=0.0)
    assert first.state in ("running", "answered")
    assert service.submission(ann, "cells", first.id).id == first.id
    service.close()  # finishes what was begun
    after = EvaluationService.open(where)
    found = after.submission(ann, "cells", first.id)
    assert (found.state, found.query) == ("answered", 1)
    after.close()


@pytest.mark.slow
def test_a_blind_phase_counts_what_was_sent_and_not_what_was_answered(where: str | Path) -> None:
    service = made(where, phase="blind", quota=2)
    ann, bob = team(service, "ann"), team(service, "bob")

    def send(job: int) -> str:
        return code(lambda: service.submit(ann, "cells", right_in(0.6, job), idempotency_key=f"{job}", expected=0.6))

    with ThreadPoolExecutor(THREADS) as threads:
        assert sorted(threads.map(send, range(6))) == ["", "", *["quota"] * 4]
    assert service.submit(bob, "cells", right_in(0.6), idempotency_key="1", expected=0.6).state == "hidden"
    kept = service.history(ann, "cells")
    assert [row.state for row in kept] == ["hidden", "hidden"]
    service.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["submit", "compare"])
@pytest.mark.parametrize("phase", ["open", "blind"])
def test_one_key_for_two_contents_at_once_is_one_submission(
    where: str | Path, phase: Phase, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of two requests that look for their key before the other has stored it gets what the other one asked."""
    service = made(where, phase=phase)
    ann = team(service, "ann")
    if kind == "compare":
        service.compare(ann, "cells", right_in(0.5), idempotency_key="first")
    shares, find, both = {0: 0.95, 1: 0.05}, service._submissions.find, threading.Barrier(2)
    waited: set[int] = set()

    def together(id: str) -> SubmissionRow | None:
        found, thread = find(id), threading.get_ident()
        if thread not in waited:
            waited.add(thread)
            both.wait(PATIENCE)
        return found

    def send(job: int) -> str:
        call = service.submit if kind == "submit" else service.compare
        return code(lambda: call(ann, "cells", right_in(shares[job]), idempotency_key="same"))

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as threads:
        patched.setattr(service._submissions, "find", together)
        codes = list(threads.map(send, range(2)))
    assert sorted(codes) == ["", "key_used"]
    if phase == "blind":
        service.set_phase(ADMIN, "cells", "closed")
    told = service.history(ann, "cells")[-1]
    truth = shares[codes.index("")] - (0.5 if kind == "compare" else 0.0)
    assert told.low is not None
    assert told.high is not None
    assert told.low <= truth <= told.high <= told.low + 0.4
    service.close()


@pytest.mark.slow
@pytest.mark.usefixtures("_in_one_hour")
def test_refused_tables_are_counted_for_each_key_in_all_processes(where: str | Path) -> None:
    one = made(where, limits=Limits(failures_per_hour=3))
    two = EvaluationService.open(where, limits=Limits(failures_per_hour=3))
    ann, bob = team(one, "ann"), team(one, "bob")
    broken = right_in(0.8).drop(columns="prediction")
    for service in (one, two):
        assert code(lambda: service.submit(ann, "cells", broken, idempotency_key="1")) == "bad_table"  # noqa: B023
    one.failed(ann, "cells")
    for service in (one, two):
        assert code(service.failed, ann, "cells") == "rate"
        assert code(lambda: service.submit(ann, "cells", right_in(0.8), idempotency_key="2")) == "rate"  # noqa: B023
        assert code(service.admit, ann, "cells") == "rate"
    two.submit(bob, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert one.holdout(ADMIN, "cells").asked == 1
    one.close()
    two.close()


@pytest.mark.slow
def test_tables_of_a_later_format_are_refused(where: str | Path) -> None:
    service = made(where)
    service._submissions._store.write("UPDATE settings SET value = '99' WHERE name = ?", ("service_format",))
    service.close()
    with pytest.raises(LedgerUnusable, match="format 99"):
        EvaluationService.open(where)


@pytest.mark.slow
@pytest.mark.usefixtures("_in_one_hour")
def test_threads_that_fail_at_once_are_refused_beyond_the_rate(where: str | Path) -> None:
    service = made(where, limits=Limits(failures_per_hour=4))
    ann = team(service, "ann")
    broken = right_in(0.8)[1:]
    with ThreadPoolExecutor(THREADS) as threads:
        jobs = [
            threads.submit(code, lambda k=k: service.submit(ann, "cells", broken, idempotency_key=f"{k}"))
            for k in range(12)
        ]
    assert sorted(job.result() for job in jobs) == [*["bad_table"] * 4, *["rate"] * 8]
    service.close()


def test_every_entry_is_about_the_labels_that_stand_before_it(where: str | Path) -> None:
    """Labels are corrected by one service while another one answers; keys say with which labels."""
    one = made(where)
    two = EvaluationService.open(where)
    by, corrected = [team(one, "ann"), team(one, "bob")], 4

    def send(job: int) -> None:
        service = (one, two)[job % 2]
        if job % 3 == 0:
            table = pd.DataFrame({"id": HOLDOUT["id"][job : job + 1], "label": [job % 2]})
            service.correct(ADMIN, "cells", table, f"complaint {job}", basis="public")
        else:
            service.submit(by[job % 2], "cells", right_in(0.7, job), idempotency_key=f"{job}", expected=0.7)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(send, range(3 * corrected)))
    notes = 0
    entries = one.ledger.entries(one.holdout(ADMIN, "cells").identity)
    for entry in entries:
        if entry.source == "note":
            notes += 1
        else:
            assert int(entry.key.partition("labels ")[2].partition(":")[0] or 0) == notes
    assert (len(entries), notes) == (3 * corrected, corrected)
    assert len(two.holdout(ADMIN, "cells").notes) == corrected
    one.close()
    two.close()


@pytest.mark.slow
def test_histories_are_read_from_the_newest_on(where: str | Path) -> None:
    service = made(where)
    ann, bob = team(service, "ann"), team(service, "bob")
    sent: dict[str, list[str]] = {"ann": [], "bob": []}
    for job, by in enumerate([ann, bob, ann, ann, bob]):
        told = service.submit(by, "cells", right_in(0.7, job), idempotency_key=f"{job}", expected=0.7)
        sent[by.team].append(told.id)
    all_of_them = [one.id for one in service.history(ADMIN, "cells")]
    assert [one.id for one in service.history(ann, "cells", before=MOST_NUMBER)] == sent["ann"][::-1]
    assert [one.id for one in service.history(ADMIN, "cells", before=MOST_NUMBER, team="bob")] == sent["bob"][::-1]
    assert [one.id for one in service.history(ADMIN, "cells", before=MOST_NUMBER)] == all_of_them[::-1]
    for by, count in ((ann, 3), (ADMIN, 5)):
        found = service.history(by, "cells", before=MOST_NUMBER, count=2)
        assert [one.number for one in found] == [count, count - 1]
        assert [one.number for one in service.history(by, "cells", before=found[-1].number, count=1)] == [count - 2]
    assert service.history(ann, "cells", before=1) == []
    assert code(lambda: service.history(ann, "cells", before=-1)) == "bad_request"
    service.close()
