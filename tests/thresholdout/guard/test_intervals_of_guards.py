"""Intervals that Gaussian and posterior guards state with their answers, and what they keep for it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphs import Independent
from thresholdout import SparseVector, Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.errors import InputError
from thresholdout.guard.answer import Answer
from thresholdout.guard.query_engine import failure_share
from thresholdout.guard.remote_guard import RemoteGuard
from thresholdout.guard.sharing import shared_objects as sharing
from thresholdout.mechanisms import SparseVectorParameters
from thresholdout.privacy.accounting import BlackBox
from thresholdout.service.prediction_guard import PredictionGuard

N = 4000
RECORDS = np.arange(float(N))
DECLARED = SparseVectorParameters(0.1, 0.01, budget=12, queries=40)


def guard_of(mechanism: object = DECLARED, **more: object) -> Thresholdout:
    return Thresholdout(RECORDS, mechanism=mechanism, **more)  # type: ignore[arg-type]


def ask(guard: Thresholdout, right: int, train: float = 0.5, key: str | None = None) -> Answer:
    return guard.ask(train, right > RECORDS, key=key)


def play(guard: Thresholdout, answers: int = 12) -> list[Answer]:
    return [ask(guard, 3900 - 40 * k, 0.9 if k % 2 else 0.97, key=str(k)) for k in range(answers)]


@pytest.mark.slow
def test_what_was_promised_stays_and_goes_on(tmp_path: Path) -> None:
    """Opened again after every answer: the same intervals as the history says, and repeated ones as they were."""
    file = tmp_path / "guard.db"
    told = []
    for k in range(6):
        guard = guard_of(ledger=file)
        told.append(ask(guard, 3900 - 40 * k, key=str(k)))
    for k, answer in enumerate(told):
        again = ask(guard_of(ledger=file), 3900 - 40 * k, key=str(k))
        assert again.repeated
        assert (again.value, again.interval) == (answer.value, answer.interval)
        assert answer.interval == guard.certificate.interval(k + 1, k, "holdout", answer.value)


def test_units_of_the_range() -> None:
    """The same query in other units: the interval is stretched with the range, and cut to it."""
    unit, wide = guard_of(), guard_of()
    plain = ask(unit, 3900)
    values = 20.0 * (RECORDS < 3900) - 5.0
    answer = wide.ask(10.0, values, bounds=(-5.0, 15.0))
    low, high = wide.certificate.interval(1, 0, "holdout", (answer.value + 5.0) / 20.0)
    assert answer.interval == pytest.approx((20.0 * low - 5.0, min(15.0, 20.0 * high - 5.0)), abs=1e-9)
    assert answer.half_width < 20.0 * 1.3 * plain.half_width


@pytest.mark.slow
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


@pytest.mark.slow
def test_elsewhere_and_behind_predictions(tmp_path: Path) -> None:
    guard = guard_of()
    play(guard, 2)
    elsewhere = RemoteGuard(sharing.reference_of(guard))
    answer = elsewhere.ask(0.97, RECORDS < 3820, key="2")
    assert answer.interval == guard.certificate.interval(3, 2, "holdout", answer.value)

    table = pd.DataFrame({"id": range(2 * N), "y": np.arange(2 * N) % 2})
    service = PredictionGuard.create(tmp_path / "guard.db", table[:N], table[N:], label="y", mechanism=DECLARED)
    wrong = (np.arange(2 * N) % 50 == 0).astype(int)
    score = service.ask(pd.DataFrame({"id": table["id"], "prediction": (table["y"] + wrong) % 2}), "accuracy")
    assert score.interval == service.guard.certificate.interval(1, 0, "holdout", score.value)
    assert score.half_width < service.guard.certificate.tolerance
