"""The service without HTTP: who may do what, what is charged once, and what is shown when."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from tests.patience import PATIENCE, wait_until
from tests.thresholdout.service.evaluations import ADMIN, HOLDOUT, LABELS, TRAIN, N, made, right_in, team
from thresholdout.errors import InputError
from thresholdout.service.authority import PERMITTED
from thresholdout.service.corrections import Basis
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.receipts.errors import WitnessUnusable
from thresholdout.service.receipts.receipt import read_receipt
from thresholdout.service.receipts.signing_keys import public_keys, published_keys
from thresholdout.service.receipts.witness import FileWitness
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Principal, Submission
from thresholdout.service.standings import served_metric
from thresholdout.service.store.submissions import SubmissionRow
from thresholdout.service.submissions import Desk

VISITOR = Principal("", "viewer")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[EvaluationService]:
    service = made(tmp_path / "leaderboard.db")
    yield service
    service.close()


def test_an_administrator_sees_what_is_coming(service: EvaluationService) -> None:
    """Wrong guesses cost, the leaderboard shows widths; teams and blind phases are told nothing."""
    assert service.outlook(ADMIN, "cells") is None
    for name, expected in (("ann", 0.8), ("bob", 0.3), ("cleo", 0.99)):
        by = team(service, name)
        service.submit(by, "cells", right_in(0.8), idempotency_key="k", expected=expected)
    found = service.outlook(ADMIN, "cells")
    assert found is not None
    told = service.holdout(ADMIN, "cells").information_released
    assert told is not None
    assert found.answers == 3
    assert found.nats == pytest.approx(told / 3)
    assert found.half_width < found.exact < found.later
    assert code(lambda: service.outlook(by, "cells")) == "forbidden"
    service.set_phase(ADMIN, "cells", "blind")
    assert service.outlook(ADMIN, "cells") is None


def test_numbers_say_which_error_budget_is_left(service: EvaluationService) -> None:
    service.submit(team(service, "ann"), "cells", right_in(0.8), idempotency_key="k", expected=0.3)
    told, found = service.holdout(ADMIN, "cells").information_released, service.health(writes=True)
    assert told is not None
    assert told > 1.0
    assert found["answers"] == 1
    assert found["information_released"] == pytest.approx(told)
    assert found["error_budget_left"] == pytest.approx(0.05 * math.exp(-told))
    service.set_phase(ADMIN, "cells", "blind")
    hidden = service.health(writes=True)
    assert (hidden["information_released"], hidden["error_budget_left"]) == (0.0, 1.0)


def code(call: Callable[..., object], *given: object) -> str:
    """Return why a call is refused; "" where it is not."""
    try:
        call(*given)
    except ServiceRefused as refused:
        return refused.code
    return ""


LABEL = pd.DataFrame({"id": HOLDOUT["id"][:1], "label": [1]})

CALLS: dict[str, Callable[[EvaluationService, Principal, str], object]] = {
    "new_token": lambda service, by, name: service.new_token(by, "viewer"),
    "tokens": lambda service, by, name: service.tokens(by),
    "revoke": lambda service, by, name: service.revoke(by, service.new_token(ADMIN, "viewer")[1].id),
    "create_holdout": lambda service, by, name: service.create_holdout(by, name, TRAIN, HOLDOUT, label="y"),
    "set_phase": lambda service, by, name: service.set_phase(by, name, "open"),
    "correct": lambda service, by, name: service.correct(by, name, LABEL, "a plate was turned"),
    "outlook": lambda service, by, name: service.outlook(by, name),
    "export": lambda service, by, name: list(service.export(by, name)),
    "submit": lambda service, by, name: service.submit(by, name, right_in(0.7, 7), idempotency_key=f"s{by.team}"),
    "admit": lambda service, by, name: service.admit(by, name),
    "failed": lambda service, by, name: service.failed(by, name),
    "submission": lambda service, by, name: service.submission(by, name, annes(service)),
    "history": lambda service, by, name: service.history(by, name),
    "holdout": lambda service, by, name: service.holdout(by, name),
    "leaderboard": lambda service, by, name: service.leaderboard(by, name),
}


def annes(service: EvaluationService) -> str:
    return service.history(ADMIN, "cells", team="ann")[0].id


EXPECTED = {  # by method: what an administrator, the owner, another team, a viewer with a key and a visitor are told
    "new_token": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "tokens": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "revoke": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "create_holdout": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "set_phase": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "correct": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "export": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "outlook": ("", "forbidden", "forbidden", "forbidden", "no_token"),
    "submit": ("forbidden", "", "", "forbidden", "no_token"),
    "admit": ("forbidden", "", "", "forbidden", "no_token"),
    "failed": ("", "", "", "forbidden", "no_token"),
    "submission": ("", "", "not_found", "forbidden", "no_token"),
    "history": ("", "", "", "forbidden", "no_token"),
    "holdout": ("", "", "", "", "not_found"),
    "leaderboard": ("", "", "", "", "not_found"),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", CALLS)
def test_who_may_do_what(service: EvaluationService, method: str) -> None:
    ann, bob = team(service, "ann"), team(service, "bob")
    service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    viewer = service.authenticate(service.new_token(ADMIN, "viewer")[0])
    told = [code(CALLS[method], service, by, "cells") for by in (ADMIN, ann, bob, viewer, VISITOR)]
    assert tuple(told) == EXPECTED[method]


def test_the_table_names_every_method() -> None:
    assert set(CALLS) | {"compare", "holdouts"} == set(PERMITTED)


def test_the_same_request_is_charged_once(service: EvaluationService) -> None:
    ann = team(service, "ann")
    first = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, title="forest")
    again = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, title="forest")
    assert (first.state, first.repeated, again.repeated) == ("answered", False, True)
    assert (again.id, again.query, again.value, again.low, again.high) == (
        first.id, first.query, first.value, first.low, first.high,
    )  # fmt: skip
    other = service.submit(
        ann, "cells", right_in(0.8).sample(frac=1, random_state=1), idempotency_key="2", expected=0.8
    )
    assert (other.repeated, other.query, other.value) == (True, first.query, first.value)
    assert code(lambda: service.submit(ann, "cells", right_in(0.7), idempotency_key="1", expected=0.8)) == "key_used"
    assert service.holdout(ann, "cells").asked == 1
    assert [found.name for found in service.history(ann, "cells")] == ["forest", ""]


def test_a_key_is_known_by_its_holder_only_and_can_be_revoked(service: EvaluationService) -> None:
    text, key = service.new_token(ADMIN, "team", "ann", "laptop")
    assert service.authenticate(text) == Principal(key.id, "team", "ann")
    assert text.startswith(key.id)
    assert len(text) - len(key.id) - 1 == 43  # 43 digits of 6 bits hold 256
    for wrong in ("", "x", text[:-1], text[:-1] + ("A" if text[-1] != "A" else "B"), text + "A"):
        assert code(service.authenticate, wrong) == "unknown_token"
    assert service.revoke(ADMIN, key.id).revoked is not None
    assert code(service.authenticate, text) == "unknown_token"
    assert service.authenticate(None) == VISITOR


def test_the_first_key_is_made_once(tmp_path: Path) -> None:
    with_key = EvaluationService.open(tmp_path / "leaderboard.db")
    team(with_key, "ann")  # by who has the database, before anybody is an administrator
    text = with_key.first_admin_token()
    assert text is not None
    admin = with_key.authenticate(text)
    assert admin.role == "admin"
    assert with_key.first_admin_token() is None
    with_key.revoke(ADMIN, admin.token)
    assert with_key.first_admin_token() is None  # who revokes it makes another one where the database is
    with_key.close()


def test_nothing_that_depends_on_answers_is_shown_while_a_phase_is_blind(service: EvaluationService) -> None:
    ann = team(service, "ann")
    early = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    before = service.leaderboard(ann, "cells")
    blind = service.set_phase(ADMIN, "cells", "blind")
    assert (blind.asked, blind.remaining, blind.information_released, blind.checkpoint) == (1, None, None, "")
    told = service.submit(ann, "cells", right_in(0.9), idempotency_key="2", expected=0.9)
    assert (told.state, told.value, told.low, told.high, told.query, told.verdict) == ("hidden", *[None] * 5)
    assert service.ledger.count(blind.identity) == 2
    for by in (ann, ADMIN):
        assert service.leaderboard(by, "cells").rows == before.rows
        assert service.holdout(by, "cells") == blind
        shown = service.history(by, "cells")
        assert (shown[0].value, shown[1].state, shown[1].value) == (early.value, "hidden", None)
        assert service.submission(by, "cells", told.id).value is None
    assert code(lambda: service.export(ADMIN, "cells")) == "hidden"
    assert code(lambda: service.set_phase(ADMIN, "cells", "open")) == "bad_request"
    service.set_phase(ADMIN, "cells", "closed")
    assert service.submission(ann, "cells", told.id).state == "answered"
    assert service.leaderboard(ann, "cells").rows[0].submissions == 2
    assert code(lambda: service.submit(ann, "cells", right_in(0.6), idempotency_key="3")) == "closed"
    again = service.submit(ann, "cells", right_in(0.9), idempotency_key="4", expected=0.9)
    assert (again.state, again.repeated) == ("answered", True)


def test_each_answer_has_a_receipt_and_its_checkpoint_at_the_witness(tmp_path: Path) -> None:
    made(tmp_path / "leaderboard.db").close()
    witness = FileWitness(tmp_path / "checkpoints.jsonl")
    service = EvaluationService.open(tmp_path / "leaderboard.db", receipts=True, witness=witness)
    ann = team(service, "ann")
    told = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert told.receipt is not None
    keys = public_keys(published_keys(service.ledger))
    receipt, _ = read_receipt(told.receipt, keys)
    assert (receipt.holdout, receipt.team, receipt.query) == ("cells", "ann", 1)
    assert (receipt.value, receipt.low, receipt.high) == (told.value, told.low, told.high)
    checkpoint = service.holdout(ann, "cells").checkpoint
    assert receipt.checkpoint == checkpoint
    assert service.submission(ann, "cells", told.id).receipt == told.receipt
    service.set_phase(ADMIN, "cells", "blind")
    hidden = service.submit(ann, "cells", right_in(0.9), idempotency_key="2", expected=0.9)
    assert hidden.receipt is None
    service.close()
    assert any(checkpoint.encode() in line for line in witness.lines(""))
    with pytest.raises(WitnessUnusable):
        EvaluationService.open(tmp_path / "leaderboard.db")


def test_a_verdict_is_one_bit_and_a_better_submission_replaces_the_champion(tmp_path: Path) -> None:
    """Right in 60, 95, 95 and 60 per cent: the second is certified to be better, and then nothing is."""
    service = made(tmp_path / "leaderboard.db", feedback="verdict")
    ann, bob = team(service, "ann"), team(service, "bob")
    tables = [right_in(0.6), right_in(0.95), right_in(0.95, 2), right_in(0.6)]
    told = [service.submit(ann, "cells", table, idempotency_key=f"{k}") for k, table in enumerate(tables)]
    assert [found.verdict for found in told] == ["first", "better", "not settled", "not settled"]
    assert {(found.value, found.low, found.high, found.kind) for found in told} == {(None, None, None, "comparison")}
    assert [found.query for found in told] == [None, 1, 2, 3]
    again = [service.submit(ann, "cells", table, idempotency_key=f"{k}") for k, table in enumerate(tables)]
    assert [replace(found, repeated=False) for found in again] == told
    itself = service.submit(ann, "cells", tables[1], idempotency_key="itself")
    assert (itself.verdict, itself.query) == ("not settled", None)
    assert service.submit(bob, "cells", right_in(0.6), idempotency_key="0").verdict == "first"
    assert service.holdout(ann, "cells").asked == 3
    service.close()


def test_a_comparison_that_was_cut_off_is_finished_with_the_champion_it_was_begun_with(tmp_path: Path) -> None:
    service = made(tmp_path / "leaderboard.db", feedback="verdict")
    ann = team(service, "ann")
    service.submit(ann, "cells", right_in(0.6), idempotency_key="0")
    told = service.submit(ann, "cells", right_in(0.8), idempotency_key="1")
    service._submissions._store.write(  # as a process leaves it that is killed after the ledger's commit
        "UPDATE service_submissions SET state = 'running', query = NULL, verdict = NULL, until = 0.0 WHERE id = ?",
        (told.id,),
    )
    service._submissions._store.write("DELETE FROM service_champions WHERE submission = ?", (told.id,))
    assert service.submission(ann, "cells", told.id).state == "interrupted"
    assert service.submit(ann, "cells", right_in(0.99), idempotency_key="2").verdict == "better"
    again = service.submit(ann, "cells", right_in(0.8), idempotency_key="1")
    assert (again.query, again.verdict) == (told.query, told.verdict)
    assert service.holdout(ann, "cells").asked == 2
    last = service.submit(ann, "cells", right_in(0.8), idempotency_key="3")
    assert last.verdict == "not settled"  # the champion is the one that is right in 99 per cent
    service.close()


def test_a_quota_of_some_days_says_when_there_is_room_again(tmp_path: Path) -> None:
    service = made(tmp_path / "leaderboard.db", quota=1, quota_days=7.0)
    ann = team(service, "ann")
    told = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    with pytest.raises(ServiceRefused) as refused:
        service.submit(ann, "cells", right_in(0.7), idempotency_key="2", expected=0.8)
    assert refused.value.code == "quota"
    wait = refused.value.retry_after
    assert wait is not None
    assert 7 * 86400 - 600 < wait <= 7 * 86400
    assert refused.value.details == {"limit": 1, "days": 7.0}
    assert service.submit(ann, "cells", right_in(0.8), idempotency_key="3", expected=0.8).query == told.query
    service.close()


@pytest.mark.slow
@for_each(
    ("metric", "output"),
    [("squared_error(clip=1)", "prediction"), ("log_loss", "probabilities"), ("brier_score", "probabilities")],
)
def test_losses_are_served_and_less_is_better(tmp_path: Path, metric: str, output: str) -> None:
    """Losses of 0.2 and 0.4 of the records, each of 1 or, for probabilities of 0.9, from the formulas."""
    service = made(tmp_path / "leaderboard.db", metric=metric)
    teams = [team(service, "ann"), team(service, "bob")]
    lost = {"squared_error(clip=1)": (0.0, 1.0), "log_loss": (-math.log(0.9), -math.log(0.1))}.get(metric, (0.01, 0.81))
    for by, share in zip(teams, (0.8, 0.6), strict=True):
        table = right_in(share)
        if output == "probabilities":
            of_1 = np.where(table["prediction"] == 1, 0.9, 0.1)
            table = pd.DataFrame({"id": table["id"], "p_0": 1.0 - of_1, "p_1": of_1})
        truth = share * lost[0] + (1.0 - share) * lost[1]
        told = service.submit(by, "cells", table, idempotency_key="1", expected=truth, title="forest")
        again = service.submit(by, "cells", table, idempotency_key="2", expected=truth, title="tree")
        assert told.low is not None
        assert told.high is not None
        assert told.low <= truth <= told.high
        assert (again.repeated, again.query) == (True, told.query)
    rows = service.leaderboard(teams[0], "cells").rows
    assert [(row.team, row.submissions) for row in rows] == [("ann", 1), ("bob", 1)]
    service.close()


@pytest.mark.slow
@for_each(("metric", "best"), [("accuracy", (0.6, 0.9, 0.9)), ("zero_one_loss", (0.4, 0.1, 0.1))])
def test_the_best_so_far_is_told(tmp_path: Path, metric: str, best: tuple[float, ...]) -> None:
    service = made(tmp_path / "leaderboard.db", feedback="best", metric=metric)
    ann = team(service, "ann")
    told = [service.submit(ann, "cells", right_in(share), idempotency_key=f"{share}") for share in (0.6, 0.9, 0.5)]
    for found, truth in zip(told, best, strict=True):
        assert found.low is not None
        assert found.high is not None
        assert found.low <= truth <= found.high
    assert code(lambda: service.compare(ann, "cells", right_in(0.7), idempotency_key="c")) == "no_comparison"
    service.close()


def test_labels_are_corrected_and_the_page_says_what_that_means(tmp_path: Path) -> None:
    service = made(tmp_path / "leaderboard.db")
    ann = team(service, "ann")
    before = service.submit(ann, "cells", right_in(0.5), idempotency_key="1", expected=0.5)
    new = pd.DataFrame({"id": HOLDOUT["id"], "label": right_in(0.5)["prediction"]})
    found = service.correct(ADMIN, "cells", new, "a second look at all of them", basis="public")
    assert found.notes == ("labels checked: a second look at all of them",)
    assert "the guarantee holds for all of them" in found.promise
    again = service.submit(ann, "cells", right_in(0.5), idempotency_key="1", expected=0.5)
    assert (again.query, again.value, again.repeated) == (before.query, before.value, True)
    anew = service.submit(ann, "cells", right_in(0.5), idempotency_key="2", expected=1.0)
    assert anew.low is not None
    assert anew.low > 0.9
    assert service.holdout(ann, "cells").asked == 3
    assert code(lambda: service.correct(ADMIN, "cells", new, "why", basis="guess")) == "bad_request"  # type: ignore[arg-type]
    assert code(lambda: service.correct(ADMIN, "cells", new.assign(id="x"), "why")) == "bad_table"
    assert code(lambda: service.correct(ADMIN, "cells", new, "why\n")) == "bad_name"
    last = service.correct(ADMIN, "cells", new[:1], "somebody saw one")
    assert "nothing is proved" in last.promise
    service.close()


@pytest.mark.slow
@pytest.mark.parametrize("basis", ["public", "labels"])
def test_a_correction_is_noted_and_what_was_told_carries_over(service: EvaluationService, basis: Basis) -> None:
    ann = team(service, "ann")
    early = service.submit(ann, "cells", right_in(1.0), idempotency_key="1", expected=1.0)
    labels = LABELS[N:]
    new = pd.DataFrame({"id": HOLDOUT["id"][:80], "label": 1 - labels[:80]})
    shown = service.correct(ADMIN, "cells", new, "a plate was turned", basis=basis)
    assert service.holdout(ann, "cells") == shown
    assert len(shown.notes) == 1
    assert "a plate was turned" in shown.notes[0]
    assert ("nothing is proved about those after it" in shown.promise) == (basis == "labels")
    assert service.submission(ann, "cells", early.id) == early
    again = service.submit(ann, "cells", right_in(1.0), idempotency_key="1", expected=1.0)
    assert replace(again, repeated=False) == early
    late = service.submit(ann, "cells", right_in(1.0), idempotency_key="2", expected=0.8)
    assert late.high is not None
    assert late.high < 1.0  # 80 of 400 labels are others now
    assert service.set_phase(ADMIN, "cells", "closed").promise == shown.promise
    assert code(lambda: service.submit(ann, "cells", right_in(1.0), idempotency_key="3", expected=1.0)) == "closed"
    unknown = pd.DataFrame({"id": ["nobody"], "label": [1]})
    assert code(service.correct, ADMIN, "cells", unknown, "none") == "bad_table"
    assert len(service.holdout(ADMIN, "cells").notes) == 1


SETTINGS: list[dict[str, Any]] = [
    {"metric": "roc_auc"},
    {"metric": "squared_error"},
    {"metric": "squared_error(clip=-1)"},
    {"metric": 3},
    {"feedback": "everything"},
    {"phase": "over"},
    {"quota": 0},
    {"quota": True},
    {"quota_days": 7.0},
    {"quota": 3, "quota_days": -1.0},
    {"quota": 3, "quota_days": float("nan")},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_that_no_holdout_has_are_refused_before_anything_is_made(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    service = EvaluationService.open(tmp_path / "leaderboard.db")
    assert code(lambda: service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, label="y", **settings)) == "bad_request"
    assert service.ledger.guards() == []
    service.close()


def test_a_comparison_tells_the_difference_to_the_champion(service: EvaluationService) -> None:
    ann = team(service, "ann")
    shares = (0.6, 0.95, 0.6)
    told = [service.compare(ann, "cells", right_in(share, k), idempotency_key=f"{k}") for k, share in enumerate(shares)]
    assert [found.verdict for found in told] == ["first", "better", "worse"]
    for found, difference in zip(told[1:], (0.35, -0.35), strict=True):
        assert found.low is not None
        assert found.high is not None
        assert found.low <= difference <= found.high
    assert service.leaderboard(ann, "cells").rows == ()  # differences rank nobody
    score = service.submit(ann, "cells", right_in(0.6, 0), idempotency_key="score", expected=0.6)
    assert (score.kind, score.verdict, score.repeated) == ("score", None, False)
    assert code(lambda: service.compare(ann, "cells", right_in(0.6, 0), idempotency_key="score")) == "key_used"


def test_a_comparison_that_was_cut_off_is_charged_once_though_the_champion_changed(
    service: EvaluationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said to be running when it had its champion already, and ended behind its entry, without an answer."""
    ann = team(service, "ann")
    service.compare(ann, "cells", right_in(0.5, 1), idempotency_key="1")
    compare, later = PredictionGuard.compare, Desk._later
    begun, told = threading.Event(), threading.Event()

    def cut_off(*given: Any, **named: Any) -> None:
        begun.set()
        assert told.wait(PATIENCE)
        compare(*given, **named)
        raise SystemExit

    def is_running(*given: Any) -> Submission:
        assert begun.wait(PATIENCE)
        return later(*given)

    monkeypatch.setattr(PredictionGuard, "compare", cut_off)
    monkeypatch.setattr(Desk, "_later", is_running)
    late = service.compare(ann, "cells", right_in(0.5, 2), idempotency_key="2", wait=0.0)
    assert late.state == "running"
    told.set()
    identity = service.holdout(ADMIN, "cells").identity
    wait_until(lambda: service.ledger.count(identity, "ann") == 1)
    monkeypatch.undo()
    assert service.compare(ann, "cells", right_in(0.99, 3), idempotency_key="3").verdict == "better"
    again = service.compare(ann, "cells", right_in(0.5, 2), idempotency_key="2")
    assert (again.id, again.repeated, again.query) == (late.id, True, 1)
    assert service.ledger.count(identity, "ann") == 2


def test_a_comparison_keeps_its_first_champion(service: EvaluationService) -> None:
    """Two processes answer the same request, or one says that it is running when the other has begun."""
    kept = SubmissionRow("a", 1, "ann", "", "comparison", "content", "running", 0.0, 0.0, against=3)
    stored = service._submissions
    for against, found in ((None, None), (0, 0), (3, 3), (4, 3), (None, 3)):
        assert stored.put(replace(kept, against=against)).against == found
    row = stored.find(kept.id)
    assert row is not None
    assert row.against == 3


def test_equal_predictions_of_others_leave_no_trace(service: EvaluationService) -> None:
    ann, bob = team(service, "ann"), team(service, "bob")
    first = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8, title="forest")
    found = service.submit(bob, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert (found.repeated, found.name, found.query) == (False, "", 2)
    assert found.id != first.id
    assert code(lambda: service.submission(bob, "cells", first.id)) == "not_found"
    assert code(lambda: service.submission(bob, "cells", "0" * 32)) == "not_found"
    assert code(lambda: service.history(bob, "cells", team="ann")) == "forbidden"
    assert [row.team for row in service.history(bob, "cells")] == ["bob"]


def test_a_guard_that_answers_no_more_is_exhausted_and_earlier_answers_stay(service: EvaluationService) -> None:
    ann = team(service, "ann")
    told = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    service.ledger.close_guard(service.holdout(ADMIN, "cells").identity, "it was moved")
    for ask in (service.submit, service.compare):
        with pytest.raises(ServiceRefused) as refused:
            ask(ann, "cells", right_in(0.7), idempotency_key="2")
        assert (refused.value.code, refused.value.retry_after) == ("exhausted", 86400)
        assert refused.value.details == {"permanent": True}
    again = service.submit(ann, "cells", right_in(0.8), idempotency_key="1", expected=0.8)
    assert again == replace(told, repeated=True)
    assert service.leaderboard(ann, "cells").rows[0].team == "ann"
    assert [found.id for found in service.history(ann, "cells")] == [told.id]


def test_refusals_that_depend_on_answers_are_hidden_while_a_phase_is_blind(tmp_path: Path) -> None:
    """The guard answers no more after the first of two: neither the state nor the refusal shows it before the end."""
    service = made(tmp_path / "leaderboard.db", phase="blind")
    ann = team(service, "ann")
    told = [service.submit(ann, "cells", right_in(0.7), idempotency_key="1", expected=0.7)]
    service.ledger.close_guard(service.holdout(ADMIN, "cells").identity, "it was moved")
    told += [service.submit(ann, "cells", right_in(0.8), idempotency_key=key, expected=0.8) for key in ("2", "2", "3")]
    for found in told:
        assert (found.state, found.refusal, found.query, found.repeated) == ("hidden", None, None, False)
    assert [found.state for found in service.history(ADMIN, "cells")] == ["hidden"] * 3
    service.set_phase(ADMIN, "cells", "closed")
    states = [(found.state, found.refusal) for found in service.history(ann, "cells")]
    assert states == [("answered", None), ("refused", "exhausted"), ("refused", "exhausted")]
    service.close()


def test_equal_rows_of_a_table_of_categories_can_be_served(service: EvaluationService) -> None:
    """Two columns of few values: equal rows in both parts are different records."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"id": [f"c{k}" for k in range(800)], "a": rng.integers(0, 3, 800), "y": rng.integers(0, 2, 800)}
    )
    with pytest.raises(ServiceRefused) as refused:
        service.create_holdout(ADMIN, "votes", table[:400], table[400:], label="y")
    assert "allow_duplicates=True" in str(refused.value.details["advice"])
    made = service.create_holdout(ADMIN, "votes", table[:400], table[400:], label="y", allow_duplicates=True)
    assert made.records == 400


def test_a_holdout_may_be_a_chain_of_a_known_law(service: EvaluationService) -> None:
    """Labels of rows in the order of x."""
    table = pd.DataFrame({"id": [f"c{k}" for k in range(800)], "x": range(800, 1600), "y": [0, 1, 1, 0] * 200})
    parts = (table[:400], table[400:])
    law = pd.DataFrame({"from": [0, 1], "0": [0.75, 0.25], "1": [0.25, 0.75]})
    with pytest.raises(ServiceRefused) as refused:
        service.create_holdout(ADMIN, "chain", *parts, label="y", order="x")
    assert "transition=" in refused.value.details["advice"]
    made = service.create_holdout(ADMIN, "chain", *parts, label="y", order="x", transition=law)
    assert made.records == 400
    assert "chain" in made.promise


@for_each("name", ["r2", "squared_error", "log_loss(clip=e)", "squared_error(clip=--)", 3])
def test_a_metric_that_is_not_served_is_refused_with_the_ones_that_are(name: object) -> None:
    with pytest.raises(InputError) as refused:
        served_metric(name)
    listed = re.findall(
        r"\w+\(clip=\d\)|accuracy|brier_score|zero_one_loss", f"{refused.value.expected} {refused.value.advice}"
    )
    assert [served_metric(one).name.partition("(")[0] for one in listed] == [
        "accuracy",
        "zero_one_loss",
        "brier_score",
        "log_loss",
        "squared_error",
        "absolute_error",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("records", [1, 19])
def test_a_holdout_of_next_to_nothing_is_refused(service: EvaluationService, records: int) -> None:
    few = pd.DataFrame({"id": [f"f{k}" for k in range(60)], "x": range(60), "y": [0, 1] * 30})
    with pytest.raises(ServiceRefused) as refused:
        service.create_holdout(ADMIN, "few", few[:40], few[40 : 40 + records], label="y")
    assert refused.value.details["seen"].startswith(f"{records} record")
    assert service.create_holdout(ADMIN, "few", few[:40], few[40:], label="y").records == 20
