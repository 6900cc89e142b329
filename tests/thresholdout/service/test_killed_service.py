"""Kill the service at any moment, under load, in both databases: the same requests again are charged once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.thresholdout.ledger.postgres_server import Server

ROOT = Path(__file__).parents[3]
KILLS = 14


def killed(database: str, kills: int) -> None:
    """Run the program, which checks everything itself; see it for what is checked."""
    words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.service.killed_service", database, str(kills)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    counted, entries, repeats, _ = map(int, done.stdout.split())
    assert counted == kills
    assert entries >= kills  # it was killed under load
    assert repeats >= kills


@pytest.mark.slow
def test_no_kill_loses_changes_or_doubles_an_answer(tmp_path: Path) -> None:
    killed(str(tmp_path / "leaderboard.db"), KILLS)


@pytest.mark.slow
def test_nor_does_it_on_a_server(server: Server) -> None:
    killed(server.new_database(), KILLS)
