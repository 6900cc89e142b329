"""Epsilons beside those of peers: what was measured is what the pages say, and what is found today."""

import json
from pathlib import Path

import pytest

from benchmarks.poisson_peers import DONE, SETTINGS, here, measured, table

ROOT = Path(__file__).parents[2]
FOUND = json.loads(DONE.read_text())


@pytest.mark.parametrize("page", ["README.md", "benchmarks/README.md"])
def test_pages_have_the_table_of_the_file(page: str) -> None:
    assert table(FOUND) in (ROOT / page).read_text()


def test_nothing_is_looser_than_a_peer() -> None:
    for row in FOUND["rows"]:
        for name in ("dp-accounting", "Opacus, PRV", "Opacus, Rényi", "autodp"):
            assert row["here"][0] <= row[name][0] * (1 + 1e-5)
        assert row["replaced: here"][0] <= row["dp-accounting, replaced"][0] * (1 + 1e-5)


def test_the_kept_epsilon_is_found_again() -> None:
    sigma, size, records, steps = SETTINGS[2]
    assert here(sigma, size / records, steps) == pytest.approx(FOUND["rows"][2]["here"][0], rel=1e-5)


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(sigma: float, q: float, steps: int) -> float:
        raise ImportError("no such peer")

    monkeypatch.setattr("benchmarks.poisson_peers.COLUMNS", {"here": lambda *given: 1.0, "there": absent})
    assert table(measured()).splitlines()[2] == "| 1.1, 256 of 60,000, 14,062 | 1.0000 | - |"
