"""Guards that know of other private looks at their holdout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from thresholdout import Thresholdout
from thresholdout.accounting import BlackBox, Composed, GaussianAnswer, LaplaceAnswer
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.ledger import MemoryLedger
from thresholdout.mechanisms import GuessAndCheckParameters, LadderParameters

HOLDOUT = np.arange(10_000.0)


def make(**settings: object) -> Thresholdout:
    given: dict[str, object] = {"queries": 100, "budget": 2, "mechanism": "thresholdout"}
    return Thresholdout(HOLDOUT, **{**given, **settings})  # type: ignore[arg-type]


def test_without_looks_nothing_changes() -> None:
    guard = make()
    assert guard.looks == Composed([])
    assert guard.certificate is guard.certificate
    assert guard.certificate_with(BlackBox(0.0)).tolerance == guard.certificate.tolerance


def test_answers_after_a_look_are_wider_and_earlier_ones_stay() -> None:
    guard = make()
    first = guard.ask(0.25, HOLDOUT < 2500)
    hypothetical = guard.certificate_with([BlackBox(0.02)])
    assert guard.looks == Composed([])
    after = guard.record_look(BlackBox(0.02))
    assert after.tolerance == hypothetical.tolerance == guard.certificate.tolerance
    second = guard.ask(0.25, HOLDOUT < 2501)
    assert second.half_width > first.half_width * 1.05
    assert guard.history["half_width"].tolist() == [first.half_width, second.half_width]
    guard.record_look(LaplaceAnswer(1.0, 0.02))
    assert guard.looks == Composed([BlackBox(0.02), LaplaceAnswer(1.0, 0.02)])
    assert guard.ask(0.25, HOLDOUT < 2502).half_width > second.half_width


def test_looks_last_and_reach_every_process(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    one, two = make(ledger=path), make(ledger=path)
    plain = one.certificate.tolerance
    two.record_look(BlackBox(0.02))
    two.record_look(BlackBox(0.02))
    assert one.looks == two.looks == Composed([BlackBox(0.02), BlackBox(0.02)])
    assert one.certificate.tolerance == two.certificate.tolerance > plain
    assert one.ask(0.25, HOLDOUT < 2500).half_width > plain / 2
    assert make(ledger=path).certificate.tolerance == one.certificate.tolerance


def seen_elsewhere(guard: Any) -> tuple[int, float, Composed, float, Composed]:
    """Use what a guard says about looks, and say in which process."""
    planned = guard.certificate_with([BlackBox(0.02)]).tolerance
    before = guard.looks
    recorded = guard.record_look(BlackBox(0.02)).tolerance
    return os.getpid(), planned, before, recorded, guard.looks


def test_looks_from_another_process() -> None:
    guard = make()
    plain = guard.certificate.tolerance
    with joblib.parallel_config("loky", n_jobs=2):
        process, planned, before, recorded, after = joblib.Parallel()([joblib.delayed(seen_elsewhere)(guard)])[0]
    assert process != os.getpid()
    assert planned == recorded == guard.certificate.tolerance > plain
    assert (before, after) == (Composed([]), Composed([BlackBox(0.02)]))
    assert guard.looks == after


def test_two_processes_that_record_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both want the same number; neither look is lost, even when they are equal."""
    ledger = MemoryLedger()
    one, two = make(ledger=ledger), make(ledger=ledger)
    put, others = ledger.put_document, [BlackBox(0.01)]

    def late(guard: str, name: str, text: str) -> None:
        if others:
            two.record_look(others.pop())
        put(guard, name, text)

    monkeypatch.setattr(ledger, "put_document", late)
    one.record_look(BlackBox(0.01))
    assert one.looks == Composed([BlackBox(0.01), BlackBox(0.01)])


def test_a_ledger_that_refuses_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    guard = make(ledger=ledger)

    def refuse(guard: str, name: str, text: str) -> None:
        raise LedgerMismatch("here", "no such guard")

    monkeypatch.setattr(ledger, "put_document", refuse)
    with pytest.raises(LedgerMismatch):
        guard.record_look(BlackBox(0.01))


def test_looks_that_no_certificate_covers() -> None:
    guard = make()
    with pytest.raises(InputError, match="with a delta"):
        guard.record_look(GaussianAnswer(10.0))
    assert guard.looks == Composed([])
    after = guard.record_look(GaussianAnswer(10.0), void=True)
    assert after.route == "none"
    assert guard.ask(0.25, HOLDOUT < 2500).interval == (0.0, 1.0)


def test_mechanisms_that_no_look_is_proved_for() -> None:
    guard = make(mechanism="gaussian")
    with pytest.raises(InputError, match="'gaussian'"):
        guard.record_look(BlackBox(0.01))
    guard.record_look(BlackBox(0.01), void=True)
    assert guard.ask(0.25, HOLDOUT < 2500).interval == (0.0, 1.0)


@pytest.mark.parametrize("parameters", [GuessAndCheckParameters(tolerance=0.1), LadderParameters(0.01)])
def test_half_widths_that_mechanisms_state_are_not_believed_after_a_look(parameters: object) -> None:
    guard = make(mechanism=parameters)
    low, high = guard.ask(0.25, HOLDOUT < 2500).interval
    guard.record_look(BlackBox(0.01), void=True)
    assert guard.ask(0.25, HOLDOUT < 2600).interval == (0.0, 1.0)
    assert high - low < 1.0


def test_no_event() -> None:
    with pytest.raises(InputError):
        make().record_look("training")  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [False, True])
def test_looks_before_the_first_question_come_first_and_together(first: bool) -> None:
    """How private a second one is could depend on what the first released, and then no single change of measure is."""
    guard = make()
    guard.record_look(BlackBox(0.01), first=first)
    with pytest.raises(InputError, match="earlier look"):
        guard.record_look(GaussianAnswer(500.0), first=True)
    with pytest.raises(InputError, match="earlier look"):
        guard.certificate_with(GaussianAnswer(500.0), first=True)
    assert len(guard.looks.events) == 1
    together = make()
    certificate = together.record_look(Composed([BlackBox(0.01), GaussianAnswer(500.0)]), first=True)
    assert certificate.chosen is not None
    assert "decided on together" in certificate.chosen.assumes


def test_a_question_while_a_first_look_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not widened, so that the look counts as a later one."""
    ledger = MemoryLedger()
    one, two = make(ledger=ledger), make(ledger=ledger)
    put, others = ledger.put_document, [lambda: two.ask(0.25, HOLDOUT < 2500)]

    def late(guard: str, name: str, text: str) -> None:
        if others:
            others.pop()()
        put(guard, name, text)

    monkeypatch.setattr(ledger, "put_document", late)
    assert one.record_look(GaussianAnswer(500.0), first=True).chosen is None
    assert two.ask(0.25, HOLDOUT < 2600).interval == (0.0, 1.0)


def test_two_first_looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    one, two = make(ledger=ledger), make(ledger=ledger)
    put, others = ledger.put_document, [BlackBox(0.01)]

    def late(guard: str, name: str, text: str) -> None:
        if others:
            two.record_look(others.pop(), first=True)
        put(guard, name, text)

    monkeypatch.setattr(ledger, "put_document", late)
    with pytest.raises(InputError, match="earlier look"):
        one.record_look(BlackBox(0.02), first=True)
    assert one.looks == Composed([BlackBox(0.01)])


def test_a_look_after_which_nothing_is_said_is_refused() -> None:
    guard = make()
    before = guard.certificate.tolerance
    with pytest.raises(InputError, match=r"half-widths could be .* which says nothing"):
        guard.record_look(BlackBox(10.0))
    assert guard.certificate.tolerance == before < 1.0
    assert guard.record_look(BlackBox(10.0), void=True).tolerance >= 1.0
