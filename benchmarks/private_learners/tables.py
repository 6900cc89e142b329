"""Tables of scores in ``docs/learners.md``, made from the results that are kept.

Each line of ``results/tables.txt`` is a task and its learners, in the order of the page's tables.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

from benchmarks.private_learners.measuring import FOLDER, kept
from benchmarks.private_learners.tasks import EPSILONS, TASKS

__all__ = ["PAGES", "filled", "table"]

PAGES = [Path(__file__).parents[2] / "docs" / "learners.md"]
_TABLE = re.compile(r"^\| records \| learner \|.*\n(?:\|.*\n)*", re.MULTILINE)
_PEERS = "diffprivlib"
_NONE = "no privacy"


@cache
def _scores() -> dict[tuple[str, int, float, str], float]:
    files = ("thresholdout", "diffprivlib", "no_privacy")
    return {cell: float(row["score"]) for name in files for cell, row in kept(FOLDER / f"{name}.csv").items()}


def _best(task: str, records: int, epsilon: float, learner: str) -> float:
    """Return the score of a learner; of diffprivlib the best one of its learners, in hindsight."""
    cells = {name: score for (*of, name), score in _scores().items() if of == [task, records, epsilon]}
    if learner == _NONE:
        return max(cells.values())
    if learner == _PEERS:
        return max(score for name, score in cells.items() if name.startswith(_PEERS))
    return cells[learner]


def _shown(score: float) -> str:
    return f"{score:.2f}".replace("-0.00", "0.00") if score > -10 else "< -10"


def table(task: str, learners: list[str]) -> str:
    """Return a table: a row for each number of records and learner, a column for each epsilon.

    Parameters
    ----------
    task : str
        One of `TASKS`.
    learners : list of str
        As in the results; "diffprivlib" is the best of its learners there.
    """
    lines = ["| records | learner | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |"]
    lines.append("|---|---|" + "---|" * len(EPSILONS))
    for records in TASKS[task].sizes:
        rows = {learner: [_best(task, records, epsilon, learner) for epsilon in EPSILONS] for learner in learners}
        rows[_NONE] = [_best(task, records, math.inf, _NONE)] * len(EPSILONS)
        for place, (learner, scores) in enumerate(rows.items()):
            name = learner if learner in (_PEERS, _NONE) else re.sub(r"^\w+", r"`\g<0>`", learner)
            cells = " | ".join(_shown(score) for score in scores)
            lines.append(f"| {f'{records:,}' if not place else ''} | {name} | {cells} |")
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """Return the text of a page with all its tables as the results are."""
    lines = (FOLDER / "tables.txt").read_text(encoding="utf-8").splitlines()
    tables = (table(task, learners) for task, *learners in (line.split("; ") for line in lines))
    if len(_TABLE.findall(page)) != len(lines):
        raise ValueError(f"the page has another number of tables than the {len(lines)} of results/tables.txt")
    return _TABLE.sub(lambda _: next(tables), page)
