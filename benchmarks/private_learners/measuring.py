"""Cells of the comparison: a task, a number of records, an epsilon, a learner; each is measured once and kept."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.private_learners.tasks import EPSILONS, TASKS, Split, Task, splits

__all__ = ["COLUMNS", "FOLDER", "kept", "measure"]

FOLDER = Path(__file__).parent / "results"
COLUMNS = ["task", "records", "epsilon", "learner", "score", "error", "library"]

Make = Callable[[Task, int, float, int], Any]
Cell = tuple[str, int, float, str]


def kept(file: Path) -> dict[Cell, dict[str, str]]:
    """Return the rows of a results file by task, records, epsilon and learner."""
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {(row["task"], int(row["records"]), float(row["epsilon"]), row["learner"]): row for row in rows}


def _score(model: Any, task: Task, split: Split) -> float:
    if task.kind == "clusters":
        return float(adjusted_rand_score(split.y_test, model.fit(split.X).predict(split.X_test)))
    return float(model.fit(split.X, split.y).score(split.X_test, split.y_test))


def _scores(make: Make, task: Task, records: int, epsilon: float) -> Iterator[float]:
    for split in splits(task, records):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _score(make(task, records, epsilon, split.seed), task, split)


def measure(
    makers: Mapping[str, Mapping[str, Make]],
    file: Path,
    library: str,
    *,
    epsilons: tuple[float, ...] = EPSILONS,
    serves: Callable[[str, Task], bool] = lambda learner, task: True,
) -> None:
    """Measure all cells that a file lacks, and add them to it one by one.

    Parameters
    ----------
    makers
        For each kind of task, how each learner is made.
    file : path
    library : str
        Name and version of what is measured.
    epsilons : tuple of float
    serves : callable
        Whether a learner can be used for a task.
    """
    done = kept(file)
    sizes = sorted((records, name) for name, task in TASKS.items() for records in task.sizes)
    for records, name in sizes:
        task = TASKS[name]
        for learner, make in makers.get(task.kind, {}).items():
            for epsilon in epsilons:
                if (name, records, epsilon, learner) in done or not serves(learner, task):
                    continue
                scores = list(_scores(make, task, records, epsilon))
                error = float(np.std(scores, ddof=1)) / math.sqrt(len(scores))
                row = [name, records, epsilon, learner, f"{np.mean(scores):.4g}", f"{error:.2g}", library]
                _add(file, row)
                print(*row, flush=True)


def _add(file: Path, row: list[Any]) -> None:
    fresh = not file.exists()
    file.parent.mkdir(exist_ok=True)
    with file.open("a", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerow(row)
