"""Whole guards in processes that are killed, and in several at once: the budget is spent exactly once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.thresholdout.guard.guard_child import BUDGET, forgetful, history

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "guard.db")
    request.getfixturevalue("server_key")
    return str(request.getfixturevalue("server").new_database())


def start(command: str, *arguments: object) -> subprocess.Popen[str]:
    words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.guard.guard_child", command, *map(str, arguments)]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    out, errors = process.communicate(timeout=PATIENCE)  # for hundreds of kills on a busy disk
    assert process.returncode == 0, errors
    return out.splitlines()


@pytest.mark.slow
def test_processes_share_one_budget(ledger: str) -> None:
    """Four processes, each with a guard of its own on one ledger, get as many surprises as one would."""
    answers = finish(start("ask_to_the_end", ledger))
    guard = forgetful(ledger)
    assert guard.status.answers_left == 0
    assert sorted(history(guard).values()) == sorted(answers)
    holdout = [line for line in answers if line.split()[4] == "holdout"]
    assert len(holdout) == BUDGET
    assert sorted(int(line.split()[5]) for line in holdout) == list(range(BUDGET))


@pytest.mark.slow
@pytest.mark.parametrize("ledger", ["sqlite"], indirect=True)
def test_killed_at_every_line_of_a_query(ledger: str) -> None:
    """At every eighth one; some twenty lines follow the commit."""
    (said,) = finish(start("killed_at_every_line", ledger, 8))
    kills, before = map(int, said.split())
    assert kills > 50
    assert 0 < before < kills


@pytest.mark.slow
@pytest.mark.parametrize(("ledger", "kills"), [("sqlite", 120), ("postgresql", 40)], indirect=["ledger"])
def test_killed_at_random(ledger: str, kills: int) -> None:
    (said,) = finish(start("killed_at_random", ledger, kills))
    answers, surprises = map(int, said.split())
    assert answers >= kills // 4  # one at least each time
    assert surprises <= BUDGET
