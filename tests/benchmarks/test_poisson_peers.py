"""Epsilons beside those of peers: what was measured is what the pages say, and what is found today."""

import json
from pathlib import Path

import pytest

from benchmarks.poisson_peers import DONE, SETTINGS, here, measured, table
from tests.cases import for_each
from tests.sizes import corners

ROOT = Path(__file__).parents[2]
FOUND = json.loads(DONE.read_text())


@for_each("page", ["docs/private_learners.md", "benchmarks/README.md"])
def test_pages_have_the_table_of_the_file(page: str) -> None:
    assert table(FOUND) in (ROOT / page).read_text()


PEERS = {
    "here": ("dp-accounting", "Opacus, PRV", "Opacus, Rényi", "autodp"),
    "replaced: here": ("dp-accounting, replaced",),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", corners(list(range(len(SETTINGS))), 2, 3))
def test_what_is_found_today_is_what_was_kept_and_no_looser_than_a_peer(place: int) -> None:
    sigma, size, records, steps = SETTINGS[place]
    row = FOUND["rows"][place]
    for name, peers in PEERS.items():
        found = here(sigma, size / records, steps, "add_remove" if name == "here" else "replace_one")
        assert found == pytest.approx(row[name][0], rel=1e-5)
        assert found <= min(row[peer][0] for peer in peers) * (1 + 1e-5)


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(sigma: float, q: float, steps: int) -> float:
        raise ImportError("no such peer")

    monkeypatch.setattr("benchmarks.poisson_peers.COLUMNS", {"here": lambda *given: 1.0, "there": absent})
    assert table(measured()).splitlines()[2] == "| 1.1, 256 of 60,000, 14,062 | 1.0000 | - |"
