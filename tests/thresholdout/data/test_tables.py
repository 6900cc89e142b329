"""Tables from files: CSV, and JSON lines, which say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from thresholdout.data.tables import numbers, read_table
from thresholdout.errors import InputError
from thresholdout.ledger import open_ledger
from thresholdout.service import PredictionGuard

ROWS = [
    {"id": "007", "y": 1, "p": 0.25, "ok": True, "note": None},
    {"id": "8", "y": 0, "p": 1.0, "ok": False, "note": ""},
]


@for_each("name", ["table.jsonl", "table.NDJSON"])
def test_json_lines_are_the_table_that_a_csv_is(tmp_path: Path, name: str) -> None:
    lines, table = tmp_path / name, tmp_path / "table.csv"
    lines.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    pd.DataFrame(ROWS).to_csv(table, index=False)
    pd.testing.assert_frame_equal(read_table(lines), read_table(table), check_dtype=False)
    assert read_table(lines)["id"].tolist() == ["007", "8"]


@for_each(
    ("text", "seen"),
    [
        ("id,y\n1,2\n", "no JSON in its first line"),
        ('{"id": 1}\nnonsense\n', "a line 2 that is not JSON"),
        ('{"id": [1]}\n', "line 1"),
        ("[1, 2]\n", "line 1"),
        ("\n\n", "no lines"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(tmp_path: Path, text: str, seen: str) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=seen):
        read_table(path)
    with pytest.raises(InputError, match="No such file"):
        read_table(tmp_path / "none.jsonl")


def test_predictions_in_json_lines_are_scored(tmp_path: Path) -> None:
    table = pd.DataFrame({"id": [f"r{k}" for k in range(800)], "y": ["a", "b"] * 400})
    service = PredictionGuard.create(open_ledger(None), table[:400], table[400:], label="y")
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps({"id": f"r{k}", "prediction": "ab"[k % 2]}) + "\n" for k in range(400, 800)))
    assert service.ask(read_table(path), expected=0.9, client="ann").interval[1] == 1.0


def test_numbers_in_a_column_of_text_are_those_of_its_objects() -> None:
    texts = ["1", "0.1", "1", "-2e-3", " 7 ", "1e308", "0.1", "٣"]
    for kind in ("str", object):
        found = numbers(pd.Series(texts, dtype=kind), "predictions", "prediction")
        np.testing.assert_array_equal(found, [1.0, 0.1, 1.0, -0.002, 7.0, 1e308, 0.1, 3.0])
    for refused, seen in (
        ("1_0", "text in"),
        ("one", "text in"),
        ("1e999", "text in"),
        ("-inf", "-inf in"),
        (None, "text in|nan in"),
    ):
        for kind in ("str", object):
            with pytest.raises(InputError, match=rf"({seen}) column 'prediction', row 2"):
                numbers(pd.Series(["1", refused, "1"], dtype=kind), "predictions", "prediction")
