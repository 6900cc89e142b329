"""Tables that `DataFrame.to_csv` wrote with an index, and long lists of columns in messages."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from thresholdout.data.tables import check_table, read_table, shortened, without_index
from thresholdout.errors import IndexColumnWarning, InputError, OverlapError
from thresholdout.service.prediction_guard import PredictionGuard

TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(400)], "x": np.arange(400) % 97, "y": np.arange(400) % 2})


def written(folder: Path, table: pd.DataFrame) -> pd.DataFrame:
    table.to_csv(folder / "table.csv")
    return read_table(folder / "table.csv")


def test_it_is_called_as_pandas_calls_it(tmp_path: Path) -> None:
    found = written(tmp_path, TABLE)
    assert list(found.columns) == list(pd.read_csv(tmp_path / "table.csv").columns)


def test_it_is_left_out_and_said(tmp_path: Path) -> None:
    parts = [written(tmp_path, part) for part in (TABLE[:200], TABLE[200:])]
    with pytest.warns(IndexColumnWarning) as caught:
        PredictionGuard.create(tmp_path / "guard.db", *parts, label="y", allow_duplicates=True)
    said = [one for one in caught if one.category is IndexColumnWarning]
    assert [str(one.message).partition(" has no name")[0] for one in said] == [
        "The first column of train",
        "The first column of holdout",
    ]


def test_equal_records_are_found_though_their_numbers_differ(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=100), "y": np.arange(100) % 2})
    both = pd.concat([rows, rows], ignore_index=True)
    both.insert(0, "id", [f"r{k}" for k in range(200)])
    parts = [written(tmp_path, part) for part in (both[:100], both[100:])]
    with pytest.warns(IndexColumnWarning), pytest.raises(OverlapError):
        PredictionGuard.create(tmp_path / "guard.db", *parts, label="y")
    assert not (tmp_path / "guard.db").exists()


def test_an_index_that_is_the_column_of_ids_is_named(tmp_path: Path) -> None:
    found = written(tmp_path, TABLE.set_index("id").rename_axis(None))
    with pytest.raises(InputError, match=r"a table with a column 'id'; .*to_csv\(index_label="):
        check_table(found, "train", ["id"])


def test_other_columns_without_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id,,y\n1,2,3\n")
    with pytest.raises(InputError, match="column 2 has no name"):
        read_table(tmp_path / "table.csv")
    (tmp_path / "table.csv").write_text('""\n1\n')
    with pytest.raises(InputError, match="column 1 has no name"):
        read_table(tmp_path / "table.csv")


def test_a_column_that_is_asked_for_is_no_index() -> None:
    table = pd.DataFrame({"Unnamed: 0": [1, 2], "y": [0, 1]})
    assert list(without_index(table, "train", ["Unnamed: 0", "y"]).columns) == ["Unnamed: 0", "y"]


def test_edges_that_were_written_with_an_index_are_read(tmp_path: Path) -> None:
    edges = written(tmp_path, pd.DataFrame({"a": ["r201", "r203"], "b": ["r202", "r204"]}))
    with pytest.warns(IndexColumnWarning, match="^The first column of edges has no name"):
        made = PredictionGuard.create(
            tmp_path / "guard.db", TABLE[:200], TABLE[200:], label="y", graph=edges, allow_duplicates=True
        )
    assert made.guard.dependence.variance_inflation() > 1.0


def test_long_lists_of_columns_are_shortened() -> None:
    wide = pd.DataFrame(np.zeros((1, 300)), columns=[f"column {k}" for k in range(300)])
    with pytest.raises(InputError) as caught:
        check_table(wide, "train", ["label"])
    assert "column 5, ... (300 in all)" in str(caught.value)
    assert len(str(caught.value)) < 200
    assert shortened("abcdefg") == "a, b, c, d, e, f, g"


@pytest.mark.slow
def test_python_m_is_the_command_line() -> None:
    ran = subprocess.run([sys.executable, "-m", "thresholdout", "--help"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Usage: python -m thresholdout [OPTIONS] COMMAND")
