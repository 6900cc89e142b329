"""Intervals that Gaussian and posterior guards state with their answers, and what they keep for it."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphs import Independent
from thresholdout import SparseVector, Thresholdout
from thresholdout.certificates import certify_gaussian
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.guard.answer import Answer
from thresholdout.guard.answering import failure_share
from thresholdout.guard.guard_state import GuardState
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.sharing import shared_objects as sharing
from thresholdout.ledger import SQLLedger
from thresholdout.mechanisms import GaussianParameters
from thresholdout.mechanisms.gaussian import GaussianState
from thresholdout.privacy.accounting import BlackBox
from thresholdout.service.prediction_guard import PredictionGuard

N = 4000
RECORDS = np.arange(float(N))
DECLARED = GaussianParameters(0.02, queries=40)
UNLIMITED = GaussianParameters(0.02, threshold=0.03)


def guard_of(mechanism: object = DECLARED, **more: object) -> Thresholdout:
    return Thresholdout(RECORDS, mechanism=mechanism, **more)  # type: ignore[arg-type]


def ask(guard: Thresholdout, right: int, train: float = 0.5, key: str | None = None) -> Answer:
    return guard.ask(train, right > RECORDS, key=key)


def play(guard: Thresholdout, answers: int = 12) -> list[Answer]:
    return [ask(guard, 3900 - 40 * k, 0.9 if k % 2 else 0.97, key=str(k)) for k in range(answers)]


@pytest.mark.parametrize("mechanism", [DECLARED, UNLIMITED], ids=["declared", "any number"])
def test_intervals_follow_from_the_history_alone(mechanism: GaussianParameters) -> None:
    """The certificate, asked again with all earlier values and sources, in place of the sums that a guard keeps."""
    guard = guard_of(mechanism)
    told = play(guard)
    assert {answer.source for answer in told} == ({"holdout"} if mechanism is DECLARED else {"train", "holdout"})
    history = [(answer.value, answer.source) for answer in told]
    hits = 0
    for k, answer in enumerate(told):
        found = guard.certificate.interval(k + 1, hits, answer.source, answer.value, earlier=history[:k])
        assert answer.interval == found
        assert answer.half_width < 0.97 * guard.certificate.half_width(k + 1, hits, answer.source)
        hits += answer.source == "holdout"
    rows = guard.history
    assert list(zip(rows["low"], rows["high"], strict=True)) == [answer.interval for answer in told]


def test_what_was_promised_stays_and_goes_on(tmp_path: Path) -> None:
    """Opened again after every answer: the same intervals as the history says, and repeated ones as they were."""
    file = tmp_path / "guard.db"
    told = []
    for k in range(6):
        guard = guard_of(ledger=file)
        told.append(ask(guard, 3900 - 40 * k, key=str(k)))
    history = [(answer.value, answer.source) for answer in told]
    for k, answer in enumerate(told):
        again = ask(guard_of(ledger=file), 3900 - 40 * k, key=str(k))
        assert again.repeated
        assert (again.value, again.interval) == (answer.value, answer.interval)
        assert answer.interval == guard.certificate.interval(k + 1, k, "holdout", answer.value, earlier=history[:k])


def test_the_events_are_kept_with_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that would look for other shares of beta keeps to those with which a guard began."""
    ledger = SQLLedger(tmp_path / "guard.db")
    kept = guard_of(ledger=ledger).parameters
    assert isinstance(kept, GaussianParameters)
    found = certify_gaussian(Independent(N), DECLARED)
    assert found.chosen is not None
    assert kept.shares == found.chosen.widths.shares  # type: ignore[union-attr]
    monkeypatch.setattr("thresholdout.certificates.gaussian_certificate.scheduled_widths", None)
    again = guard_of(ledger=ledger)
    assert again.parameters == kept
    assert again.certificate.tolerance == pytest.approx(found.tolerance, rel=1e-6)


def test_units_of_the_range() -> None:
    """The same question in other units: the interval is stretched with the range, and cut to it."""
    unit, wide = guard_of(), guard_of()
    plain = ask(unit, 3900)
    values = 20.0 * (RECORDS < 3900) - 5.0
    answer = wide.ask(10.0, values, bounds=(-5.0, 15.0))
    low, high = wide.certificate.interval(1, 0, "holdout", (answer.value + 5.0) / 20.0, earlier=[])
    assert answer.interval == pytest.approx((20.0 * low - 5.0, min(15.0, 20.0 * high - 5.0)), abs=1e-9)
    assert answer.half_width < 20.0 * 1.3 * plain.half_width


def test_a_failure_leaves_intervals_for_a_smaller_share() -> None:
    """Nothing is taken for known of the answers before it: they were chosen for other events."""
    guard = Thresholdout((RECORDS, RECORDS), train=(RECORDS[:10] - 100, RECORDS[:10]), mechanism=DECLARED, queries=None)
    before = [guard.ask(0.9, RECORDS < 3900) for _ in range(3)]

    def breaks(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if len(X) == N:
            raise RuntimeError
        return np.ones(len(X))

    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask(breaks)
    assert tuple(guard.history[["low", "high"]].iloc[3]) == (0.0, 1.0)
    after = guard.ask(0.9, RECORDS < 3900)
    beta = (1 - 0.95) * failure_share(1, 8, 40)
    certificate = certify_parameters(Independent(N), guard.parameters, 1.0 - beta)
    assert after.interval == certificate.interval(5, 4, "holdout", after.value)
    assert 1.0 > after.half_width > before[0].half_width


def posterior_guard() -> Thresholdout:
    return Thresholdout(np.arange(20_000.0), mechanism=SparseVector(0.1, 0.003, budget=4), queries=50)


def test_posterior_answers_have_intervals_too() -> None:
    guard = posterior_guard()
    assert guard.certificate.route == "posterior"
    records = np.arange(20_000)
    answers = [guard.ask(0.97, records < 19_400), guard.ask(0.5, records < 19_400), guard.ask(0.5, records < 10_000)]
    assert [answer.source for answer in answers] == ["train", "holdout", "train"]
    for k, answer in enumerate(answers):
        assert answer.interval == guard.certificate.interval(k + 1, int(k > 1), answer.source, answer.value)
    assert answers[0].half_width < 0.95 * answers[2].half_width <= 0.95 * guard.certificate.tolerance


def test_posterior_intervals_after_a_look_count_what_it_leaked() -> None:
    """By hand: log-odds within the leakage of guard and look together, of a number within the noise of the answer."""
    guard = posterior_guard()
    records = np.arange(20_000)
    before = guard.ask(0.97, records < 19_400)
    guard.releases.record(BlackBox(0.05))
    after = guard.ask(0.97, records < 19_400)
    assert after.value == before.value
    setting_low = math.log(before.interval[0] / (1 - before.interval[0]))
    moved = math.log(after.interval[0] / (1 - after.interval[0]))
    assert setting_low - moved == pytest.approx(0.05, rel=1e-6)
    assert guard.history["low"].tolist() == [before.interval[0], after.interval[0]]


def test_elsewhere_and_behind_predictions(tmp_path: Path) -> None:
    guard = guard_of()
    told = play(guard, 2)
    elsewhere = RemoteGuard(sharing.handle_of(guard))
    answer = elsewhere.ask(0.97, RECORDS < 3820, key="2")
    earlier = [(known.value, known.source) for known in told]
    assert answer.interval == guard.certificate.interval(3, 2, "holdout", answer.value, earlier=earlier)

    table = pd.DataFrame({"id": range(2 * N), "y": np.arange(2 * N) % 2})
    service = PredictionGuard.create(
        tmp_path / "guard.db", table[:N], table[N:], label="y", queries=20, mechanism="gaussian"
    )
    wrong = (np.arange(2 * N) % 50 == 0).astype(int)
    score = service.ask(pd.DataFrame({"id": table["id"], "prediction": (table["y"] + wrong) % 2}), "accuracy")
    assert score.interval == service.guard.certificate.interval(1, 0, "holdout", score.value, earlier=[])
    assert score.half_width < service.guard.certificate.tolerance


def test_sums_that_were_changed_are_found(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"
    guard = guard_of(ledger=file)
    play(guard, 2)
    with SQLLedger(file) as ledger:
        state = ledger.state(*ledger.guards())
    assert GuardState.from_text(state, GaussianState.from_text).past.startswith("2 ")

    def put(text: str) -> None:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("UPDATE guards SET state = ?", (text,))
            connection.commit()

    put(state.replace("past 2 ", "past 1 "))
    with pytest.raises(LedgerDamaged, match="does not fit its history"):
        guard_of(ledger=file)
    put(state.replace("past 2 ", "past 2 -"))
    with pytest.raises(LedgerDamaged, match="can't be read"):
        ask(guard_of(ledger=file), 3000)
    put(state.partition("\n")[2])  # lost: as if earlier answers could vary most
    answer = ask(guard_of(ledger=file), 3900)
    assert answer.interval == guard.certificate.interval(3, 2, "holdout", answer.value)
