import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from thresholdout.cli import main
from thresholdout.ledger import open_ledger

N = 1500


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"r{k}" for k in range(2 * N)],
            "x": rng.normal(size=2 * N),
            "patient": np.arange(2 * N) // 5,
            "day": rng.permutation(2 * N),
            "y": rng.integers(0, 2, size=2 * N),
        }
    )
    table[:N].to_csv(tmp_path / "train.csv", index=False)
    table[N:].to_csv(tmp_path / "holdout.csv", index=False)
    right = pd.DataFrame(
        {"id": table["id"], "prediction": table["y"], "p_0": 1.0 - table["y"], "p_1": 1.0 * table["y"]}
    )
    right.sample(frac=1, random_state=1).to_csv(tmp_path / "right.csv", index=False)
    overfitted = right.assign(prediction=np.where(np.arange(2 * N) < N, table["y"], rng.integers(0, 2, size=2 * N)))
    overfitted.to_csv(tmp_path / "overfitted.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def create(*more: str, code: int = 0) -> Result:
    parts = ("--train", "train.csv", "--holdout", "holdout.csv", "--label", "y")
    return run("create", "guard.db", *parts, "--queries", "100", "--budget", "2", *more, code=code)


def test_from_create_to_history(folder: Path) -> None:
    assert "1500 records" in create().output
    if os.name == "posix":
        assert stat.S_IMODE((folder / "guard.db").stat().st_mode) == 0o600
    first = run("ask", "guard.db", "right.csv").output
    assert "accuracy: 1.0000" in first
    assert "from the train part; question 1; 2 answers from the holdout left" in first
    second = run("ask", "guard.db", "overfitted.csv", "--name", "overfitted").output
    assert "from the holdout part; question 2; 1 answers from the holdout left" in second
    assert "asked before: nothing spent" in run("ask", "guard.db", "overfitted.csv").output
    status = run("status", "guard.db").output
    assert "1 answers from the holdout left" in status
    assert "2 of 100 questions asked" in status
    history = run("history", "guard.db", "--plot", "history.png", "--csv", "history.csv").output
    assert "overfitted" in history
    assert (folder / "history.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(folder / "history.csv")) == 2


def test_answers_as_json_and_other_metrics(folder: Path) -> None:
    create()
    answer = json.loads(run("ask", "guard.db", "overfitted.csv", "--json").output)
    assert abs(answer["value"] - 0.5) <= answer["half_width"]
    assert answer["source"] == "holdout"
    brier = json.loads(run("ask", "guard.db", "right.csv", "--metric", "brier_score", "--json").output)
    assert brier["value"] == 0.0
    loss = json.loads(run("ask", "guard.db", "right.csv", "--metric", "log_loss", "--clip", "2", "--json").output)
    assert (loss["value"], loss["name"]) == (0.0, "log_loss(clip=2)")
    error = json.loads(run("ask", "guard.db", "right.csv", "--metric", "squared_error", "--clip", "1", "--json").output)
    assert error["value"] == 0.0
    assert "history" not in error


def test_nothing_secret_is_printed(folder: Path) -> None:
    outputs = [create().output]
    holdout, predictions = pd.read_csv("holdout.csv"), pd.read_csv("overfitted.csv")
    both = holdout.merge(predictions, on="id")
    mean = float((both["y"] == both["prediction"]).mean())
    outputs += [run("ask", "guard.db", "overfitted.csv").output for _ in range(2)]
    outputs += [run("status", "guard.db").output, run("history", "guard.db").output]
    outputs.append(run("ask", "guard.db", "train.csv", code=1).output)
    with open_ledger("guard.db") as ledger:
        threshold = ledger.state(ledger.guards()[0]).split()[1]
    assert len(threshold) > 6
    for output in outputs:
        assert repr(mean) not in output
        assert threshold not in output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--groups", "patient"), "group"),
        (("--window", "3"), "3"),
        (("--chain", "day"), "Markov"),
        (("--edges", "edges.csv"), "group"),
    ],
)
def test_kinds_of_dependence(folder: Path, options: tuple[str, ...], words: str) -> None:
    pairs = pd.DataFrame({"a": [f"r{k}" for k in range(N, 2 * N, 2)], "b": [f"r{k + 1}" for k in range(N, 2 * N, 2)]})
    pairs.to_csv("edges.csv", index=False)
    assert words in create(*options).output
    answer = json.loads(run("ask", "guard.db", "overfitted.csv", "--json").output)
    (folder / "guard.db").unlink()
    create()
    independent = json.loads(run("ask", "guard.db", "overfitted.csv", "--json").output)
    assert answer["half_width"] > independent["half_width"]


def test_groups_in_both_parts_are_pointed_out(folder: Path) -> None:
    table = pd.read_csv("train.csv")
    table["patient"] += 299
    table.to_csv("train.csv", index=False)
    output = create("--groups", "patient").output
    assert "groups occur in both parts" in output


def test_exhausted_guards_end_with_status_3(folder: Path) -> None:
    create()
    table = pd.read_csv("overfitted.csv")
    for k in range(2):
        table["prediction"] = np.roll(table["prediction"], k)
        table[:N].assign(prediction=pd.read_csv("train.csv")["y"])
        fitted = pd.concat([table[:N].assign(prediction=pd.read_csv("train.csv")["y"]), table[N:]])
        fitted.to_csv("next.csv", index=False)
        run("ask", "guard.db", "next.csv")
    fitted.assign(prediction=1).to_csv("next.csv", index=False)
    assert "all 2 answers from the holdout" in run("ask", "guard.db", "next.csv", code=3).output


def spoil(path: str, **columns: Any) -> None:
    table = pd.read_csv(path).astype(object)
    for column, value in columns.items():
        table.loc[3, column] = value
    table.to_csv(path, index=False)


def test_bad_predictions_leave_the_ledger_as_it_was(folder: Path) -> None:
    create()
    run("ask", "guard.db", "right.csv")
    before = run("history", "guard.db").output
    good = pd.read_csv("right.csv")

    def refused(table: pd.DataFrame, *options: str) -> str:
        table.to_csv("bad.csv", index=False)
        return run("ask", "guard.db", "bad.csv", *options, code=1).output

    assert "1 records missing" in refused(good[1:])
    assert "ids twice" in refused(pd.concat([good, good[:1]]))
    assert "records of other data" in refused(pd.concat([good, good[:1].assign(id="new")]))
    assert "a column 'id' among them" in refused(good.drop(columns="id"))
    assert "a column 'prediction' among them" in refused(good.drop(columns="prediction"))
    assert "is empty in row 1" in refused(good.assign(prediction=[np.nan, *good["prediction"][1:]]))
    assert "text in column 'prediction'" in refused(good.assign(prediction="cat"))
    assert "do not sum to 1" in refused(good.assign(p_0=0.9), "--metric", "brier_score")
    assert "'roc_auc'; expected" in refused(good, "--metric", "roc_auc")
    assert "clip" in refused(good, "--metric", "squared_error")
    Path("bad.csv").write_text('id,prediction\n"unclosed,1\n')
    run("ask", "guard.db", "bad.csv", code=1)
    Path("bad.csv").write_text("")
    run("ask", "guard.db", "bad.csv", code=1)
    assert "--clip goes with" in run("ask", "guard.db", "right.csv", "--clip", "2", code=2).output
    assert run("history", "guard.db").output == before


def test_bad_tables_make_no_ledger(folder: Path) -> None:
    def refused(*options: str) -> str:
        output = create(*options, code=1).output
        assert not Path("guard.db").exists()
        return output

    assert "a column 'nobody' among them" in refused("--groups", "nobody")
    assert "a column 'row' among them" in refused("--id", "row")
    assert "given beside" in refused("--groups", "patient", "--window", "2")
    assert "budget" in refused("--budget", "0")
    assert "labels of at most 100 kinds" in refused("--chain", "day", "--label", "x")
    spoil("holdout.csv", id="r0")
    assert "'r0' occurs twice" in refused()
    spoil("holdout.csv", id="r1503", y=None)
    assert "column 'y' is empty in row 4" in refused()
    pd.read_csv("train.csv").assign(id=lambda t: "h" + t["id"]).to_csv("holdout.csv", index=False)
    assert "1500 of 1500 holdout records occur" in refused()
    assert "1500 records" in create("--allow-equal-rows").output


def test_a_ledger_for_other_data_is_refused(folder: Path) -> None:
    create()
    pd.read_csv("holdout.csv").assign(y=lambda t: 1 - t["y"]).to_csv("holdout.csv", index=False)
    assert "another holdout" in create(code=1).output


def test_what_is_no_ledger_is_refused(folder: Path) -> None:
    for command in (("ask", "missing.db", "right.csv"), ("status", "missing.db"), ("history", "missing.db")):
        assert "missing.db" in run(*command, code=1).output
    assert not Path("missing.db").exists()
    before = Path("train.csv").read_bytes()
    os.chmod("train.csv", 0o600)
    assert "train.csv" in run("status", "train.csv", code=1).output
    assert Path("train.csv").read_bytes() == before


def test_plan_in_each_direction() -> None:
    by_records = run("plan", "--records", "10000", "--queries", "1000", "--budget", "10").output
    assert by_records.startswith("10,000 records: Guard the holdout")
    assert "splitting" in by_records
    grouped = run("plan", "--records", "10000", "--group-size", "5", "--budget", "1").output
    assert grouped != by_records
    run("plan", "--records", "10000", "--window", "3")
    run("plan", "--tolerance", "0.1", "--budget", "1")
    run("plan", "--records", "100000", "--tolerance", "0.1")
    run("plan", "--records", "100", "--tolerance", "0.0001", code=1)
    run("plan", code=2)
    run("plan", "--tolerance", "0.1", "--window", "3", code=2)
    run("plan", "--records", "100", "--group-size", "2", "--window", "3", code=2)


def test_version_and_help() -> None:
    assert "0." in run("--version").output
    assert "create" in run("--help").output
