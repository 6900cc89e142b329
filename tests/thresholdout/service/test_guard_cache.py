"""Open guards are kept up to a size, opened once, and answer as those that are opened anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from thresholdout.errors import InputError
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.service.guard_cache import GuardCache
from thresholdout.service.prediction_guard import PredictionGuard

N = 50


def table(number: int) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"{number} {k}" for k in range(2 * N)], "y": [0, 1] * N})


def predicted(number: int) -> pd.DataFrame:
    return table(number).rename(columns={"y": "prediction"})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "guard.db") as ledger:
        yield ledger


@pytest.fixture
def identities(ledger: Ledger) -> list[str]:
    made = (PredictionGuard.create(ledger, table(k)[:N], table(k)[N:], label="y") for k in range(4))
    return [one.identity for one in made]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which guards were opened."""
    before, found = PredictionGuard.open, []

    def opening(ledger: Any, guard: str | None = None) -> PredictionGuard:
        found.append(str(guard))
        return before(ledger, guard)

    monkeypatch.setattr(PredictionGuard, "open", opening)
    return found


def test_each_is_opened_once(ledger: Ledger, identities: list[str], opened: list[str]) -> None:
    cache = GuardCache(ledger)
    first = [cache.get(identity) for identity in identities]
    assert [cache.get(identity) for identity in identities] == first
    assert opened == identities == [one.identity for one in first]
    assert cache.nbytes == sum(one.nbytes for one in first) > 0


def test_those_that_were_used_last_stay(ledger: Ledger, identities: list[str], opened: list[str]) -> None:
    a, b, c, _ = identities
    size = PredictionGuard.open(ledger, a).nbytes
    cache = GuardCache(ledger, most_bytes=2 * size)
    opened.clear()
    for identity in (a, b, a, c, a, b):
        cache.get(identity)
        assert cache.nbytes <= 2 * size
    assert opened == [a, b, c, b]


def test_the_last_one_stays_however_large(ledger: Ledger, identities: list[str], opened: list[str]) -> None:
    cache = GuardCache(ledger, most_bytes=0)
    for identity in (identities[0], identities[0], identities[1], identities[0]):
        cache.get(identity)
    assert opened == [identities[0], identities[1], identities[0]]


def test_what_others_asked_meanwhile_is_seen(ledger: Ledger, identities: list[str]) -> None:
    """No answer depends on what was kept: another process's look at the same guard counts."""
    cache = GuardCache(ledger)
    kept = cache.get(identities[0])
    first = kept.ask(predicted(0), expected=1.0, client="ann")
    elsewhere = PredictionGuard.open(ledger, identities[0])
    assert elsewhere.ask(predicted(0), expected=1.0, client="ann").repeated
    elsewhere.ask(predicted(0), expected=0.9, client="bob")
    assert kept.ask(predicted(0), expected=0.8, client="ann").query == first.query + 2
    assert kept.guard.status.error_budget_left == elsewhere.guard.status.error_budget_left


def test_it_is_opened_anew_after_it_was_forgotten(ledger: Ledger, identities: list[str], opened: list[str]) -> None:
    cache = GuardCache(ledger)
    first = cache.get(identities[0])
    cache.forget(identities[0])
    cache.forget("nobody")
    assert cache.get(identities[0]) is not first
    assert len(opened) == 2


def test_threads_that_want_one_at_once_open_it_once(ledger: Ledger, identities: list[str], opened: list[str]) -> None:
    cache, together, found = GuardCache(ledger), threading.Barrier(6), []

    def run() -> None:
        together.wait()
        found.append(cache.get(identities[0]))

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert opened == [identities[0]]


def test_a_guard_that_cannot_be_opened_is_tried_again(
    ledger: Ledger, identities: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = GuardCache(ledger)
    with pytest.raises(InputError, match="with which no such identities begin"):
        cache.get("nobody")
    with monkeypatch.context() as patch:
        patch.setattr(PredictionGuard, "open", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            cache.get(identities[0])
    assert cache.get(identities[0]).identity == identities[0]
    with pytest.raises(InputError, match=r"^most_bytes must be"):
        GuardCache(ledger, -1)
