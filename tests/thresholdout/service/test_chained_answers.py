"""Rows of the service are changed behind its back: what is shown is what the chained entries say, or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cases import for_each
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, TRAIN, made, right_in, team
from thresholdout.data.client_states import client_key
from thresholdout.service import chained_answers
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Submission


def _change(path: Path, statement: str) -> None:
    """Change one row, as somebody does who has the file: what forbids it is left out first."""
    with sqlite3.connect(path) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        assert connection.execute(statement).rowcount == 1
    connection.close()


def _code(call: Callable[[], Any]) -> str:
    with pytest.raises(ServiceRefused) as refused:
        call()
    return refused.value.code


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A service with two holdouts; ann has two submissions to the first, bob one."""
    path = tmp_path / "leaderboard.db"
    service = made(path)
    service.create_holdout(ADMIN, "others", TRAIN.assign(id="t" + TRAIN["id"]), _other(HOLDOUT), label="y")
    ann, bob = team(service, "ann"), team(service, "bob")
    for who, share in ((ann, 0.7), (ann, 0.8), (bob, 0.9)):
        service.submit(who, "cells", right_in(share), idempotency_key=f"{share}", expected=share)
    service.close()
    return path


def _other(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(id="o" + table["id"], x=table["x"] + 10_000)


def _history(service: EvaluationService) -> list[Submission]:
    return service.history(ADMIN, "cells")


@pytest.mark.slow
def test_a_team_whose_row_was_removed_gets_no_second_allowance(path: Path) -> None:
    _change(path, f"DELETE FROM clients WHERE name = '{client_key('ann')}'")
    service = EvaluationService.open(path)
    who = team(service, "ann")
    assert _code(lambda: service.submit(who, "cells", right_in(0.6), idempotency_key="new")) == "damaged"
    service.close()


def test_a_changed_row_shows_what_the_ledger_says(path: Path) -> None:
    before = EvaluationService.open(path)
    told = _history(before)
    _change(
        path, "UPDATE service_submissions SET value = 0.99, low = 0.98, high = 1.0, verdict = 'better' WHERE place = 2"
    )
    assert _history(before) == told
    ann = team(before, "ann")
    assert before.submission(ann, "cells", told[1].id).low == told[1].low
    assert before.history(ann, "cells")[1].value == told[1].value
    again = before.submit(ann, "cells", right_in(0.8), idempotency_key="0.8", expected=0.8)
    assert (again.value, again.low, again.high, again.repeated) == (told[1].value, told[1].low, told[1].high, True)
    before.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE service_submissions SET query = 3 WHERE place = 2",
        "UPDATE service_submissions SET query = 1 WHERE place = 2",
        "UPDATE service_submissions SET query = 7 WHERE place = 2",
        "UPDATE service_submissions SET query = NULL WHERE place = 2",
        "UPDATE service_submissions SET team = 'bob', turn = 2 WHERE place = 2",
        "UPDATE service_submissions SET content = 'f00' WHERE place = 2",
        "UPDATE service_submissions SET query = NULL, kind = 'comparison', verdict = 'better' WHERE place = 2",
    ],
)
def test_a_row_that_claims_another_entry_is_not_shown(path: Path, change: str) -> None:
    service = EvaluationService.open(path)
    id = _history(service)[1].id
    _change(path, change)
    assert _code(lambda: _history(service)) == "damaged"
    assert _code(lambda: service.submission(ADMIN, "cells", id)) == "damaged"
    service.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE service_submissions SET low = 0.0 WHERE place = 2",
        "UPDATE service_submissions SET query = 3 WHERE place = 2",
        "UPDATE entries SET high = high + 1e-9 WHERE query = 2",
        "DELETE FROM entries WHERE query = 3",
    ],
)
def test_a_holdout_that_fails_its_check_answers_nothing_new(path: Path, change: str) -> None:
    _change(path, change)
    service = EvaluationService.open(path)
    cat, new = team(service, "cat"), right_in(0.6)
    assert _code(lambda: service.submit(cat, "cells", new, idempotency_key="new", expected=0.6)) == "damaged"
    assert _code(lambda: service.compare(cat, "cells", new, idempotency_key="new")) == "damaged"
    assert "failed its check" in service.holdout(cat, "cells").promise
    assert service.health()["status"] == "damaged"
    assert service.health()["damaged"] == ["cells"]
    others = new.assign(id="o" + new["id"])
    assert service.submit(cat, "others", others, idempotency_key="new", expected=0.6).state == "answered"
    assert "failed its check" not in service.holdout(cat, "others").promise
    service.close()


@pytest.mark.slow
def test_a_deleted_row_comes_back_when_the_service_starts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = EvaluationService.open(path)
    told = {row.query: row for row in _history(before)}
    before.close()
    _change(path, "DELETE FROM service_submissions WHERE place = 2")
    waiting = EvaluationService.open(path)  # a process may be about to store the row of so young an entry
    assert {row.query for row in _history(waiting)} == {1, 3}
    waiting.close()
    monkeypatch.setattr(chained_answers, "_SETTLED", 0.0)
    for _ in range(2):  # once, and not again
        service = EvaluationService.open(path)
        assert service.health()["status"] == "ok"
        shown = {row.query: row for row in _history(service)}
        assert shown.keys() == {1, 2, 3}
        assert len(_history(service)) == 3
        assert (shown[2].team, shown[2].value, shown[2].low, shown[2].high) == (
            "ann", told[2].value, told[2].low, told[2].high
        )  # fmt: skip
        assert [row.query for row in service.history(team(service, "ann"), "cells")] == [1, 2]
        service.close()


@pytest.mark.slow
@for_each("feedback", ["interval", "verdict", "best"])
@for_each("phase", ["open", "blind"])
def test_what_the_service_does_passes_its_own_check(
    tmp_path: Path, feedback: str, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores, comparisons, repeats, the same predictions again, corrected labels, restored rows of each."""
    monkeypatch.setattr(chained_answers, "_SETTLED", 0.0)
    path = tmp_path / "leaderboard.db"
    service = made(path, feedback=feedback, phase=phase)
    ann, bob = team(service, "ann"), team(service, "bob")
    for k, share in enumerate((0.6, 0.9, 0.9, 0.5)):
        if feedback != "best":
            service.compare(ann, "cells", right_in(share), idempotency_key=f"c{k}", expected=None)
        if feedback != "verdict":
            service.submit(bob, "cells", right_in(share), idempotency_key=f"s{k}", expected=share)
            service.submit(ann, "cells", right_in(share, 2), idempotency_key=f"s{k}", expected=share)
        if k == 1 and feedback == "interval":
            service.correct(ADMIN, "cells", pd.DataFrame({"id": HOLDOUT["id"][:1], "label": [1]}), "a plate was turned")
    if phase == "blind":
        service.set_phase(ADMIN, "cells", "closed")
    told = [(row.query, row.value, row.low, row.high, row.verdict) for row in _history(service)]
    service.close()
    again = EvaluationService.open(path)
    assert again.health()["status"] == "ok"
    assert [(row.query, row.value, row.low, row.high, row.verdict) for row in _history(again)] == told
    again.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM service_submissions")
    connection.close()
    restored = EvaluationService.open(path)
    assert restored.health()["status"] == "ok"
    shown = {(row.query, row.value, row.low, row.high, row.verdict) for row in _history(restored)}
    assert shown == {row for row in told if row[0] is not None}
    restored.close()
