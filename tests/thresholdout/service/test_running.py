"""Submissions on which somebody works are said to be running again and again, and no longer than that."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from tests.patience import PATIENCE
from thresholdout.errors import LedgerUnusable
from thresholdout.service import submissions
from thresholdout.service.store.submissions import Submissions
from thresholdout.service.submissions import LEASE, Running


class Told:
    """Stands in for what is stored: remembers what it was told, and fails the first time."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], float]] = []
        self.third = threading.Event()

    def put_off(self, ids: Sequence[str], until: float) -> None:
        self.calls.append((list(ids), until))
        if len(self.calls) >= 3:
            self.third.set()
        if len(self.calls) == 1:
            raise LedgerUnusable("nowhere", "it is gone for a moment")


def test_it_is_said_again_until_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "_AGAIN", 0.005)
    told, before = Told(), time.time()
    work: Future[Any] = Future()
    says = Running(cast(Submissions, told))
    says.add("one", work)
    thread = says._thread
    assert thread is not None
    assert told.third.wait(PATIENCE)
    work.set_result(None)
    thread.join(PATIENCE)
    assert says._thread is None
    assert {tuple(ids) for ids, _ in told.calls} == {("one",)}
    assert all(before + LEASE <= until <= time.time() + LEASE for _, until in told.calls)
    says.add("two", Future())  # begins anew, and ends with the service
    says.stop()
    assert all(ids == ["one"] or ids == ["two"] for ids, _ in told.calls)
