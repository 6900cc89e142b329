"""The threads that work on submissions."""

from __future__ import annotations

import threading

import pytest

from tests.patience import PATIENCE
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.submissions import WorkerPool


def test_more_than_are_at_work_and_wait_are_refused() -> None:
    """Two at work, one waiting: the fourth is refused, and one more is taken when these are done."""
    pool, go = WorkerPool(at_once=2, most_waiting=1), threading.Event()
    begun = [pool.start(lambda: go.wait(PATIENCE)) for _ in range(3)]
    with pytest.raises(ServiceRefused) as refused:
        pool.start(lambda: True)
    assert (refused.value.code, refused.value.retry_after) == ("busy", 1)
    go.set()
    assert all(job.result(60.0) for job in begun)
    assert pool.start(lambda: 7).result(60.0) == 7
    pool.stop()
    with pytest.raises(ServiceRefused) as refused:
        pool.start(lambda: True)
    assert refused.value.code == "stopping"


def test_a_stop_waits_for_what_was_begun_and_drops_what_was_not() -> None:
    pool, begun, go = WorkerPool(at_once=1, most_waiting=1), threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return go.wait(PATIENCE)

    first = pool.start(wait)
    second = pool.start(lambda: True)
    assert begun.wait(PATIENCE)
    stopping = threading.Thread(target=pool.stop)
    stopping.start()
    while not second.cancelled():
        assert stopping.is_alive()
    go.set()
    stopping.join(PATIENCE)
    assert first.result(0.0)
