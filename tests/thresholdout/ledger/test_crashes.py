"""Kill a process at any moment: no answer that left is lost, and no charge stands without its answer."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism, assert_consistent
from thresholdout.ledger import SQLLedger
from thresholdout.ledger.entry import Entry

ROOT = Path(__file__).parents[3]


def start(command: str, *arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.ledger.child", command, *map(str, arguments)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], code: int = 0) -> list[str]:
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors
    return out.splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
    return file


def lines(entries: Iterable[Entry]) -> list[str]:
    return [f"{entry.key} {entry.value!r}" for entry in entries]


@pytest.mark.slow
@pytest.mark.parametrize("command", corners(["killed_while_computing", "killed_at_commit"], 1))
def test_killed_before_the_commit_nothing_was_charged(file: Path, command: str) -> None:
    answers = finish(start(command, file), -signal.SIGKILL)
    with SQLLedger(file, must_exist=True) as ledger:
        assert lines(ledger.entries(GUARD)) == answers
        assert len(answers) == 3
        assert_consistent(ledger)
        entry, repeated = ledger.ask(GUARD, "d", 0.5, "accuracy", Mechanism())
        assert (entry.query, repeated) == (4, False)
        assert_consistent(ledger)


@pytest.mark.slow
def test_killed_after_the_commit_the_lost_answer_can_be_fetched(file: Path) -> None:
    answers = finish(start("killed_after_commit", file), -signal.SIGKILL)
    with SQLLedger(file, must_exist=True) as ledger:
        entries = ledger.entries(GUARD)
        assert lines(entries)[:3] == answers
        mechanism = Mechanism()
        assert ledger.ask(GUARD, "d", 0.5, "accuracy", mechanism) == (entries[3], True)
        assert mechanism.states == []
        assert_consistent(ledger)


@pytest.mark.slow
def test_killed_at_every_line_of_a_query(file: Path) -> None:
    (said,) = finish(start("killed_at_every_line", file, 1))
    kills, before = map(int, said.split())
    assert kills > 50
    assert 0 < before < kills


@pytest.mark.slow
def test_killed_at_random(file: Path) -> None:
    (said,) = finish(start("killed_at_random", file, 400))
    assert int(said.split()[0]) >= 100  # one at least each time


@pytest.mark.slow
def test_processes_share_one_budget(tmp_path: Path) -> None:
    file = tmp_path / "guard.db"  # made by whichever process comes first
    processes = [start("asks", file, 40) for _ in range(3)]
    answers = [line for process in processes for line in finish(process)]
    with SQLLedger(file, must_exist=True) as ledger:
        entries = ledger.entries(GUARD)
        assert sorted(lines(entry for entry in entries if entry.key != "shared")) == sorted(answers)
        assert len(entries) == 121
        assert_consistent(ledger)
    assert [child.name for child in tmp_path.iterdir()] == ["guard.db"]


@pytest.mark.slow
def test_forked_processes_share_one_budget(tmp_path: Path) -> None:
    assert finish(start("forks", tmp_path / "guard.db")) == ["[0, 0, 0] 122"]


@pytest.mark.slow
def test_a_fork_in_the_middle_of_a_query_is_refused(tmp_path: Path) -> None:
    refusal, count = finish(start("forks_inside", tmp_path / "guard.db"))
    assert refusal.startswith("LedgerUnusable: ")
    assert "forked during a query" in refusal
    assert count == "2"
