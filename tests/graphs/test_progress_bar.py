"""One bar for all long work: after two seconds, on standard error, and not where nobody looks."""

import io
import multiprocessing
import re
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import tqdm.std

from graphs.progress_bar import progress_bar
from tests.documents import ROOT
from tests.terminal import Terminal


class Clock:
    """A clock that tests put forward."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def waiting(self, seconds: float) -> Callable[[int], int]:
        def step(number: int) -> int:
            self.now += seconds
            return number

        return step


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tqdm.std, "time", clock)
    monkeypatch.setattr(tqdm.std.tqdm, "monitor_interval", 0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return clock


def work(stream: io.StringIO, clock: Clock, seconds: float, **more: bool) -> str:
    """Take ten steps that last so long together, and return what was written meanwhile."""
    before, sys.stderr = sys.stderr, stream
    try:
        step = clock.waiting(seconds / 10)
        bar = progress_bar(range(10), doing="counting", unit="numbers", **more)
        assert [step(number) for number in bar] == list(range(10))
    finally:
        sys.stderr = before
    return stream.getvalue()


def test_nothing_is_shown_within_two_seconds(clock: Clock) -> None:
    assert work(Terminal(), clock, 1.9) == ""


def test_after_two_seconds_it_says_what_is_done_and_how_far_it_is(clock: Clock) -> None:
    shown = work(Terminal(), clock, 10.0)
    assert re.search(r"counting: +70%\|.*\| 7/10 \[00:07<00:03, +1\.00s? numbers", shown)
    assert " 1/10" not in shown  # one second


def test_it_goes_when_the_work_is_done(clock: Clock) -> None:
    assert work(Terminal(), clock, 10.0).split("\r")[-2].strip() == ""


def test_it_can_be_turned_off_also_after_tqdm_was_imported(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert work(Terminal(), clock, 10.0, show=False) == ""
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert work(Terminal(), clock, 10.0) == ""


def test_files_stay_free_of_it(clock: Clock) -> None:
    assert work(io.StringIO(), clock, 10.0) == ""


def test_notebooks_show_it_though_they_are_no_terminals(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", ModuleType("ipykernel.zmqshell"))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "counting" in work(io.StringIO(), clock, 10.0)


def test_workers_show_none(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_name", "LokyProcess-1")
    assert work(Terminal(), clock, 10.0) == ""


def test_nothing_else_makes_bars() -> None:
    for package in ("graphs", "thresholdout"):
        for path in (ROOT / package).rglob("*.py"):
            assert path.name == "progress_bar.py" or "tqdm" not in path.read_text(encoding="utf-8"), path
