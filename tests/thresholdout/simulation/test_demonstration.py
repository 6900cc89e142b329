"""The demonstration ends well with and without matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from thresholdout.simulation import demonstration
from thresholdout.simulation.demonstration import Aggregation, Dependence, Search, demonstrate


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put small results in place of the three scenes, which take seconds."""
    scores = np.array([0.8, 0.9])
    search = Search(scores, np.array([0.03, 0.04]), scores, 0.91, 0.9, 0.92)
    reported = {"plain holdout": Aggregation(0.83, 0.0, 0.71), "guard": Aggregation(0.72, 0.05, 0.71)}
    rows = [Dependence("independent", 0.01, np.array([0.02]), 1), Dependence("patients", 0.1, np.array([0.02]), 0)]
    monkeypatch.setattr(demonstration, "ordinary_search", lambda seed: search)
    monkeypatch.setattr(demonstration, "reuse", lambda seed: reported)
    monkeypatch.setattr(demonstration, "dependent_records", lambda seed: rows)


@pytest.mark.usefixtures("results")
def test_without_matplotlib_the_tables_stand_and_it_says_what_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    demonstrate(picture=tmp_path / "demo.png", echo=lines.append)
    assert not (tmp_path / "demo.png").exists()
    assert sum(line.startswith(("(a)", "(b)", "(c)")) for line in lines) == 3
    assert lines[-1].strip() == "No picture: pictures need matplotlib: pip install 'thresholdout[plot]'"


@pytest.mark.slow
@pytest.mark.usefixtures("results")
def test_with_matplotlib_there_is_a_picture(tmp_path: Path) -> None:
    lines: list[str] = []
    demonstrate(picture=tmp_path / "demo.png", echo=lines.append)
    assert (tmp_path / "demo.png").stat().st_size > 1000
    assert "demo.png" in lines[-1]
