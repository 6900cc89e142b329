"""The runner: the same numbers however it was run, interruptions, failures, refusals."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from tests.patience import wait_until
from thresholdout.errors import InputError, InputTypeError
from thresholdout.simulation import run_experiment
from thresholdout.simulation.experiment import ExperimentError

GRID: dict[str, list[Any]] = {"n": [5, 50], "shift": [0.0, 0.5]}
SINGLE: dict[str, list[Any]] = {"n": [5], "shift": [0.0]}


def cell() -> Callable[..., dict[str, Any]]:
    """Return a function that other processes get by value."""

    def mean(rng: np.random.Generator, n: int, shift: float) -> dict[str, Any]:
        return {"mean": float(rng.normal(size=n).mean() + shift), "note": None}

    return mean


@pytest.mark.slow
def test_the_same_numbers_from_one_worker_and_from_two(tmp_path: Path) -> None:
    one = run_experiment(cell(), GRID, 3, n_jobs=1)
    two = run_experiment(cell(), GRID, 3, n_jobs=2, folder=tmp_path, progress=False)
    pd.testing.assert_frame_equal(one, two)
    assert one[["n", "shift", "seed"]].to_numpy().tolist()[:4] == [[5, 0, 0], [5, 0, 1], [5, 0, 2], [5, 0.5, 0]]
    with (tmp_path / "results.csv").open(newline="") as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == one["mean"].tolist()


def test_numbers_depend_on_seed_and_setting_alone() -> None:
    alone = run_experiment(cell(), [{"shift": 0.5, "n": 50}], [2])
    among = run_experiment(cell(), GRID, 3)
    row = among[(among["n"] == 50) & (among["shift"] == 0.5) & (among["seed"] == 2)]
    assert alone["mean"].tolist() == row["mean"].tolist()
    assert among["mean"].nunique() == len(among)


SCRIPT = """
import sys, time
from pathlib import Path
from thresholdout.simulation import run_experiment

def slow(rng, n):
    if len(list(Path(sys.argv[1], "cells").glob("*.json"))) == 2:
        time.sleep(float(sys.argv[2]))
    return {"mean": float(rng.normal(size=n).mean())}

if __name__ == "__main__":
    run_experiment(slow, {"n": [3, 30]}, 6, folder=sys.argv[1], progress=False)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(SCRIPT)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, str(script), str(killed)]
    process = subprocess.Popen([*command, "600"])
    wait_until(lambda: len(list((killed / "cells").glob("*.json"))) >= 2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path: (path.stat().st_mtime_ns, path.read_text()) for path in (killed / "cells").glob("*.json")}
    assert len(kept) == 2
    assert not (killed / "results.csv").exists()
    subprocess.run([*command, "0"], check=True)
    subprocess.run([sys.executable, str(script), str(whole), "0"], check=True)
    assert (killed / "results.csv").read_bytes() == (whole / "results.csv").read_bytes()
    assert {path: (path.stat().st_mtime_ns, path.read_text()) for path in kept} == kept


def test_failing_cells_are_named_and_only_they_run_again(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def fragile(rng: np.random.Generator, n: int, broken: tuple[int, ...] = (2,)) -> list[dict[str, Any]]:
        seed = int(rng.bit_generator.seed_seq.entropy)  # type: ignore[attr-defined]
        asked.append((n, seed))
        if n in state:
            raise ZeroDivisionError("no such thing")
        return [{"part": part, "value": float(rng.random())} for part in range(2)]

    state = {2}
    with pytest.raises(ExperimentError, match=r"2 cells failed.*\n  n=2, seed=0: ZeroDivisionError: no such") as caught:
        run_experiment(fragile, {"n": [1, 2, 3]}, 2, folder=tmp_path)
    assert len(caught.value.failures) == 2
    assert "fragile" in caught.value.failures[0].traceback
    assert caught.value.results["n"].tolist() == [1] * 4 + [3] * 4
    asked.clear()
    state.clear()
    resumed = run_experiment(fragile, {"n": [1, 2, 3]}, 2, folder=tmp_path)
    assert asked == [(2, 0), (2, 1)]
    pd.testing.assert_frame_equal(resumed, run_experiment(fragile, {"n": [1, 2, 3]}, 2))


def test_a_folder_of_another_experiment_is_refused(tmp_path: Path) -> None:
    run_experiment(cell(), GRID, 1, folder=tmp_path, version="1")
    with pytest.raises(InputError, match="folder must be a new folder, or one with results of"):
        run_experiment(cell(), GRID, 1, folder=tmp_path, version="2")

    def other(rng: np.random.Generator, n: int, shift: float) -> dict[str, Any]:
        return {}

    with pytest.raises(InputError, match="folder"):
        run_experiment(other, GRID, 1, folder=tmp_path, version="1")


def test_a_grid_can_grow_in_its_folder(tmp_path: Path) -> None:
    run_experiment(cell(), SINGLE, 1, folder=tmp_path)
    grown = run_experiment(cell(), GRID, 3, folder=tmp_path)
    pd.testing.assert_frame_equal(grown, run_experiment(cell(), GRID, 3))


def test_files_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_experiment(cell(), SINGLE, 2, folder=tmp_path)
    before = (tmp_path / "results.csv").read_bytes()
    assert all(json.loads(path.read_text())["rows"] for path in (tmp_path / "cells").iterdir())

    def full_disk(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        run_experiment(cell(), SINGLE, 4, folder=tmp_path)
    monkeypatch.undo()
    assert (tmp_path / "results.csv").read_bytes() == before
    assert len(list((tmp_path / "cells").glob("*.json"))) == 2
    resumed = run_experiment(cell(), SINGLE, 4, folder=tmp_path)
    pd.testing.assert_frame_equal(resumed, run_experiment(cell(), SINGLE, 4))


@for_each(
    ("grid", "seeds", "argument"),
    [
        ({"n": []}, 1, "grid"),
        ([], 1, "grid"),
        ([{"n": 1}, {"n": 1}], 1, "grid"),
        ({"n": [1, 1]}, 1, "grid"),
        ({"seed": [1]}, 1, "grid"),
        ({"n": [1]}, 0, "seeds"),
        ({"n": [1]}, [0, 0], "grid"),
        ({"n": [1]}, [-1], "seeds"),
        ({"n": [1]}, [0.5], "seeds"),
        ({"n": [1]}, "3", "seeds"),
    ],
)
def test_settings_and_seeds_are_checked_first(grid: Any, seeds: Any, argument: str) -> None:
    ran = []
    with pytest.raises(InputError, match=f"^{argument}"):
        run_experiment(lambda rng, **setting: ran.append(1) or {}, grid, seeds)  # type: ignore[func-returns-value]
    assert not ran


@for_each(
    ("function", "grid", "seeds"),
    [
        ("no function", {"n": [1]}, 1),
        (dict, {"n": 1}, 1),
        (dict, {"n": "ab"}, 1),
        (dict, {"n": [{}]}, 1),
    ],
)
def test_types_are_checked(function: Any, grid: Any, seeds: Any) -> None:
    with pytest.raises(InputTypeError):
        run_experiment(function, grid, seeds)


def test_rows_do_not_overwrite_their_setting() -> None:
    with pytest.raises(ExperimentError, match="a column 'n'"):
        run_experiment(lambda rng, n: {"n": 2}, {"n": [1]}, 1)


def test_values_of_numpy_and_missing_ones_survive(tmp_path: Path) -> None:
    def values(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"count": np.int64(n), "flag": np.bool_(True), "nothing": float("nan"), "text": "a,b"}

    first = run_experiment(values, {"n": [np.int64(3)]}, 1, folder=tmp_path)
    pd.testing.assert_frame_equal(first, run_experiment(values, {"n": [3]}, 1, folder=tmp_path))
    assert first.loc[0, "count"] == 3
    assert first["nothing"].isna().all()
