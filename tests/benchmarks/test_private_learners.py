"""The comparison of private learners: what is measured, going on after a stop, and the tables of the pages."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.private_learners import tables
from benchmarks.private_learners.measuring import kept, measure
from benchmarks.private_learners.tasks import EPSILONS, TASKS, splits
from tests.cases import for_each
from thresholdout.privacy import learning

LEARNERS = [name for name in learning.__all__ if name.endswith(("Classifier", "Regressor", "Regression", "Mixture"))]


@for_each("page", tables.PAGES, ids=lambda page: page.stem)
def test_tables_of_pages_are_those_of_the_results(page: Path) -> None:
    assert tables.filled(page.read_text()) == page.read_text()


def test_a_changed_table_is_seen() -> None:
    (text,) = (page.read_text() for page in tables.PAGES)
    score = text.index("| 0.", text.index("| records | learner |"))
    changed = text[:score] + "| 9." + text[score + 4 :]
    assert tables.filled(changed) == text != changed


@for_each("learner", LEARNERS)
def test_each_learner_has_a_section_with_a_table_beside_others(learner: str) -> None:
    (page,) = (page.read_text() for page in tables.PAGES)
    (section,) = (part for part in page.split("\n## ") if f"`{learner}`" in part.splitlines()[0])
    shown = [rows for rows in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE) if f"| `{learner}`" in rows]
    assert any("| diffprivlib |" in rows for rows in shown)


def test_a_page_with_another_number_of_tables_is_an_error() -> None:
    (text,) = (page.read_text() for page in tables.PAGES)
    with pytest.raises(ValueError, match="number of tables"):
        tables.filled(text.replace("| records | learner |", "| records | learners |", 1))


def test_a_table_has_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {("diabetes", 400, epsilon, "here"): -0.25 * i for i, epsilon in enumerate(EPSILONS)}
    scores |= {
        ("diabetes", 400, epsilon, name): v
        for epsilon in EPSILONS
        for name, v in (("diffprivlib A", -2e7), ("diffprivlib B", -12.0))
    }
    scores |= {("diabetes", 400, math.inf, "one"): 0.3, ("diabetes", 400, math.inf, "two"): 0.4}
    monkeypatch.setattr(tables, "_scores", lambda: scores)
    assert tables.table("diabetes", ["here", "diffprivlib"]).splitlines() == [
        "| records | learner | epsilon 0.5 | epsilon 1 | epsilon 3 | epsilon 8 |",
        "|---|---|---|---|---|---|",
        "| 400 | `here` | 0.00 | -0.25 | -0.50 | -0.75 |",
        "|  | diffprivlib | < -10 | < -10 | < -10 | < -10 |",
        "|  | no privacy | 0.40 | 0.40 | 0.40 | 0.40 |",
    ]


def test_parts_of_a_split_share_no_record() -> None:
    found = list(splits(TASKS["linear"], 500))
    assert len(found) == 4
    for each in found:
        assert each.X.shape == (500, 5)
        assert each.X_test.shape == (2000, 5)
        assert not set(each.y) & set(each.y_test)
    assert len({float(each.y[0]) for each in found}) == 4


def test_measuring_goes_on_after_a_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its score is the number of test records, 442 - 400."""
    file, fits = tmp_path / "results" / "some.csv", 0

    class Constant:
        def fit(self, X: Any, y: Any) -> Constant:
            nonlocal fits
            fits += 1
            if fits == 6:
                raise KeyboardInterrupt
            return self

        def score(self, X: Any, y: Any) -> float:
            return float(len(y))

    def run() -> None:
        makers = {"number": {"constant": lambda *public: Constant()}}
        only = TASKS["diabetes"]
        measure(makers, file, "some 1.0", epsilons=(1.0, 2.0), serves=lambda learner, task: task == only)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert list(kept(file)) == [("diabetes", 400, 1.0, "constant")]
    run()
    found = kept(file)
    assert [cell[2] for cell in found] == [1.0, 2.0]
    assert fits == 6 + 4
    assert {row["score"] for row in found.values()} == {"42"}
    assert {float(row["error"]) for row in found.values()} == {0.0}
    assert np.unique([row["library"] for row in found.values()]).tolist() == ["some 1.0"]
    capsys.readouterr()
