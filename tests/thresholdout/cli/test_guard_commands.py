"""Commands that make a guard, ask it, and show what it answered."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.sizes import corners
from tests.thresholdout.cli.running import N, create, run
from thresholdout import Claims, PriorQueries
from thresholdout.guard.guard_state import GuardState
from thresholdout.ledger import open_ledger
from thresholdout.mechanisms.claims import ClaimsState
from thresholdout.service.prediction_guard import PredictionGuard


@pytest.mark.slow
def test_from_create_to_history(folder: Path) -> None:
    assert "1500 independent records" in create().output
    if os.name == "posix":
        assert stat.S_IMODE((folder / "guard.db").stat().st_mode) == 0o600
    first = run("guard", "score", "guard.db", "right.csv").output
    assert "accuracy: 1.0000" in first
    assert "from the train part; query 1; 2 answers from the holdout left" in first
    second = run("guard", "score", "guard.db", "overfitted.csv", "--name", "overfitted").output
    assert "from the holdout part; query 2; 1 answer from the holdout left" in second
    assert "repeated: free of charge" in run("guard", "score", "guard.db", "overfitted.csv").output
    status = run("guard", "status", "guard.db").output
    assert "1 answer from the holdout left" in status
    assert "2 of 100 queries so far" in status
    history = run("guard", "history", "guard.db", "--plot", "history.png", "--csv", "history.csv").output
    assert "overfitted" in history
    assert (folder / "history.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(folder / "history.csv")) == 2


@pytest.mark.slow
def test_a_column_of_owners_without_groups_is_noted(folder: Path) -> None:
    note = (
        "note: The column 'patient' has 300 different values in 1,500 training records, and no groups are declared. "
        "Intervals are too narrow if records with the same value are alike; then pass --groups patient.\n"
    )
    assert create().stderr == note
    for number, declared in enumerate((("--groups", "patient"), ("--window", "3"))):
        parts = ("--train", "train.csv", "--holdout", "holdout.csv", "--label", "y")
        assert "no groups" not in run("guard", "create", f"{number}.db", *parts, *declared).stderr
    for part in ("train", "holdout"):  # a column that identifies records is none of owners
        table = pd.read_csv(f"{part}.csv").drop(columns="patient").rename(columns={"id": "patient"})
        table.to_csv(f"{part}.csv", index=False)
    assert run("guard", "create", "last.db", *parts, "--id", "patient").stderr == ""


@pytest.mark.slow
def test_answers_as_json_and_other_metrics(folder: Path) -> None:
    create("--holdout-answers", "9")
    answer = json.loads(run("guard", "score", "guard.db", "overfitted.csv", "--json").output)
    assert abs(answer["value"] - 0.5) <= answer["half_width"]
    assert answer["source"] == "holdout"
    brier = json.loads(run("guard", "score", "guard.db", "right.csv", "--metric", "brier_score", "--json").output)
    assert abs(brier["value"] - 0.0) <= brier["half_width"] < 0.1
    loss = json.loads(
        run("guard", "score", "guard.db", "right.csv", "--metric", "log_loss", "--clip", "2", "--json").output
    )
    assert abs(loss["value"] - 0.0) <= loss["half_width"] < 0.3  # of a range of 2
    assert loss["name"] == "log_loss(clip=2.0)"
    error = json.loads(
        run("guard", "score", "guard.db", "right.csv", "--metric", "squared_error", "--clip", "1", "--json").output
    )
    assert abs(error["value"] - 0.0) <= error["half_width"] < 0.1
    assert "history" not in error


@pytest.mark.slow
def test_nothing_secret_is_printed(folder: Path) -> None:
    outputs = [create().output]
    holdout, predictions = pd.read_csv("holdout.csv"), pd.read_csv("overfitted.csv")
    both = holdout.merge(predictions, on="id")
    mean = float((both["y"] == both["prediction"]).mean())
    outputs += [run("guard", "score", "guard.db", "overfitted.csv").output for _ in range(2)]
    outputs += [run("guard", "status", "guard.db").output, run("guard", "history", "guard.db").output]
    outputs.append(run("guard", "score", "guard.db", "train.csv", code=4).output)
    with open_ledger("guard.db") as ledger:
        state = GuardState.from_text(ledger.state(ledger.guards()[0]), ClaimsState.from_text)
    noise = abs(state.mechanism.edge)
    assert noise > 999  # but for a probability below 1e-5: of 2**-10 of the range or more, in units of 2**-40
    for output in outputs:
        assert repr(mean) not in output
        assert str(noise) not in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    corners(
        [
            (("--groups", "patient"), "group"),
            (("--window", "3"), "3"),
            (("--order", "day", "--window", "3"), "3"),
            (("--order", "day", "--transition", "law.csv"), "Markov"),
            (("--graph", "edges.csv"), "group"),
        ],
        0,
        3,
    ),
)
def test_kinds_of_dependence(folder: Path, options: tuple[str, ...], words: str) -> None:
    pairs = pd.DataFrame({"a": [f"r{k}" for k in range(N, 2 * N, 2)], "b": [f"r{k + 1}" for k in range(N, 2 * N, 2)]})
    pairs.to_csv("edges.csv", index=False)
    for name, start in (("train.csv", 0), ("holdout.csv", N)):
        pd.read_csv(name).assign(day=range(start, start + N)).to_csv(name, index=False)
    pd.DataFrame({"from": [0, 1], "0": [0.8, 0.2], "1": [0.2, 0.8]}).to_csv("law.csv", index=False)
    assert words in create(*options).output
    answer = json.loads(run("guard", "score", "guard.db", "overfitted.csv", "--json").output)
    (folder / "guard.db").unlink()
    create()
    independent = json.loads(run("guard", "score", "guard.db", "overfitted.csv", "--json").output)
    assert answer["half_width"] > independent["half_width"]


def test_groups_in_both_parts_are_pointed_out(folder: Path) -> None:
    table = pd.read_csv("train.csv")
    table["patient"] += 299
    table.to_csv("train.csv", index=False)
    output = create("--groups", "patient").output
    assert "groups occur in both parts" in output


@pytest.mark.slow
def test_exhausted_guards_end_with_status_3(folder: Path) -> None:
    create()
    table = pd.read_csv("overfitted.csv")
    for k in range(2):
        table["prediction"] = np.roll(table["prediction"], k)
        table[:N].assign(prediction=pd.read_csv("train.csv")["y"])
        fitted = pd.concat([table[:N].assign(prediction=pd.read_csv("train.csv")["y"]), table[N:]])
        fitted.to_csv("next.csv", index=False)
        run("guard", "score", "guard.db", "next.csv")
    fitted.assign(prediction=1).to_csv("next.csv", index=False)
    assert "All 2 answers from the holdout" in run("guard", "score", "guard.db", "next.csv", code=5).output


def spoil(path: str, **columns: Any) -> None:
    table = pd.read_csv(path).astype(object)
    for column, value in columns.items():
        table.loc[3, column] = value
    table.to_csv(path, index=False)


@pytest.mark.slow
def test_bad_predictions_leave_the_ledger_as_it_was(folder: Path) -> None:
    create()
    run("guard", "score", "guard.db", "right.csv")
    before = run("guard", "history", "guard.db").output
    good = pd.read_csv("right.csv")

    def refused(table: pd.DataFrame, *options: str, code: int = 4) -> str:
        table.to_csv("bad.csv", index=False)
        return run("guard", "score", "guard.db", "bad.csv", *options, code=code).output

    assert f"1 records missing, first {good['id'][0]!r}" in refused(good.sort_index()[1:])
    assert f"id {good['id'][0]!r} occurs twice" in refused(pd.concat([good, good[:1]]))
    assert "1 ids of no record, first 'new'" in refused(pd.concat([good, good[:1].assign(id="new")]))
    assert "a table with a column 'id'" in refused(good.drop(columns="id"))
    assert "a table with a column 'prediction'" in refused(good.drop(columns="prediction"))
    assert "is empty in row 1" in refused(good.assign(prediction=[np.nan, *good["prediction"][1:]]))
    assert "text in column 'prediction', row 1" in refused(good.assign(prediction="cat"))
    assert "inf in column 'prediction', row 1" in refused(good.assign(prediction=[np.inf, *good["prediction"][1:]]))
    assert "got a column 'prediction' without any of these labels" in refused(good.assign(prediction=7))
    assert "got column 'p_2', which is for no such class" in refused(good.assign(p_2=0.0), "--metric", "log_loss")
    assert "do not sum to 1" in refused(good.assign(p_0=0.9), "--metric", "brier_score")
    assert "; got 'roc_auc'" in refused(good, "--metric", "roc_auc", code=2)
    assert "--metric squared_error needs --clip" in refused(good, "--metric", "squared_error", code=2)
    Path("bad.csv").write_text('id,prediction\n"unclosed,1\n')
    run("guard", "score", "guard.db", "bad.csv", code=4)
    Path("bad.csv").write_text("")
    run("guard", "score", "guard.db", "bad.csv", code=4)
    assert "--clip needs --metric" in run("guard", "score", "guard.db", "right.csv", "--clip", "2", code=2).output
    assert run("guard", "history", "guard.db").output == before


@pytest.mark.slow
def test_bad_tables_make_no_ledger(folder: Path) -> None:
    def refused(*options: str, code: int = 4) -> str:
        output = create(*options, code=code).output
        assert not Path("guard.db").exists()
        return output

    assert "a table with a column 'nobody'" in refused("--groups", "nobody")
    assert "a table with a column 'row'" in refused("--id", "row")
    assert "left out beside" in refused("--groups", "patient", "--window", "2", code=2)
    assert "; got -1" in refused("--window", "-1", code=2)
    assert "--holdout-answers must be an integer of at least 1; got 0." in refused("--holdout-answers", "0", code=2)
    assert "--order must be" in refused("--order", "day", code=2)
    Path("law.csv").write_text("from,0,1\n0,0.8,0.2\n1,0.2,0.8\n")
    assert "holdout rows before the end of the training part" in refused(
        "--order", "day", "--transition", "law.csv", code=2
    )
    spoil("holdout.csv", id="r0")
    assert "got 'r0' twice" in refused(code=2)
    spoil("holdout.csv", id="r1503", y=None)
    assert "column 'y' is empty in row 4" in refused()
    pd.read_csv("train.csv").assign(id=lambda t: "h" + t["id"]).to_csv("holdout.csv", index=False)
    assert "got 1500 of 1500 holdout records" in refused()
    assert "1500 independent records" in create("--allow-duplicates").output


@pytest.mark.slow
def test_a_ledger_for_other_data_is_refused(folder: Path) -> None:
    create()
    pd.read_csv("holdout.csv").assign(y=lambda t: 1 - t["y"]).to_csv("holdout.csv", index=False)
    assert "another holdout" in create(code=4).output


@pytest.mark.slow
def test_mechanisms_are_chosen_and_found_again(folder: Path) -> None:
    few = ("--train", "train.csv", "--holdout", "holdout.csv", "--label", "y", "--queries", "3")
    claims = (*few, "--mechanism", "claims", "--holdout-answers", "1")
    run("guard", "create", "guard.db", *claims)
    assert "from the train part; query 1" in run("guard", "score", "guard.db", "right.csv").output
    assert "1 of 3 queries so far" in run("guard", "status", "guard.db").output
    run("guard", "create", "guard.db", *claims)
    assert "mechanism" in run("guard", "create", "guard.db", *few, code=4).output


def test_a_part_of_the_records_answers_nothing_that_comes_in_by_id(folder: Path) -> None:
    assert (
        "'splitting' is not one of 'claims', 'leaderboard', 'ladder'"
        in create("--mechanism", "splitting", code=2).output
    )
    assert "The truth is the average over all records of the holdout" in create().output


def test_a_ladder_tells_the_best_score_so_far(folder: Path) -> None:
    create("--mechanism", "ladder")
    assert run("guard", "score", "guard.db", "right.csv").output.startswith("best so far (accuracy): ")
    assert "less is better" in run("guard", "score", "guard.db", "right.csv", "--metric", "brier_score", code=2).output


@pytest.mark.slow
def test_names_leave_the_metric_in_the_history(folder: Path) -> None:
    create()
    run("guard", "score", "guard.db", "right.csv", "--name", "forest")
    assert "repeated" in run("guard", "score", "guard.db", "right.csv", "--name", "another name").output
    run("guard", "score", "guard.db", "right.csv", "--name", "forest", "--metric", "zero_one_loss")
    run("guard", "history", "guard.db", "--csv", "history.csv")
    assert pd.read_csv("history.csv")["name"].tolist() == ["forest (accuracy)", "forest (zero_one_loss)"]


@pytest.mark.slow
def test_another_training_part_is_refused(folder: Path) -> None:
    create()
    before = Path("guard.db").read_bytes()
    create()
    pd.read_csv("train.csv").assign(y=lambda t: 1 - t["y"]).to_csv("train.csv", index=False)
    assert "another training part" in create(code=4).output
    assert Path("guard.db").read_bytes() == before


@pytest.mark.slow
def test_other_settings_are_refused(folder: Path) -> None:
    create("--groups", "patient")
    assert "dependence" in create(code=4).output
    assert "confidence" in create("--groups", "patient", "--confidence", "0.9", code=4).output


@pytest.mark.slow
def test_ids_and_edges_are_text(folder: Path) -> None:
    for name in ("train.csv", "holdout.csv", "right.csv"):
        table = pd.read_csv(name)
        table.assign(id=[f"{int(i[1:]):07}" for i in table["id"]]).to_csv(name, index=False)

    def pairs(*rows: str) -> None:
        Path("edges.csv").write_text("\n".join(["a,b", *rows]) + "\n")

    pairs("0001500,0001501", "0000001,0001502")
    output = create("--graph", "edges.csv").output
    assert "1499 independent groups" in output or "1499 groups" in output
    assert "1 edges touch both parts" in output
    run("guard", "score", "guard.db", "right.csv")
    (folder / "guard.db").unlink()
    pairs("0001500,1501")
    assert "unknown id '1501' in row 1" in create("--graph", "edges.csv", code=4).output
    pairs("0001500,0001501", "0001500,")
    assert "column 'b' is empty in row 2" in create("--graph", "edges.csv", code=4).output
    Path("edges.csv").write_text("0001500,0001501\n0001502,0001503\n")
    assert "ids in the header" in create("--graph", "edges.csv", code=4).output
    Path("edges.csv").write_text("a\n0001500\n")
    assert "two columns of ids" in create("--graph", "edges.csv", code=4).output
    assert not Path("guard.db").exists()


def test_what_cannot_be_read_or_written_is_told_in_one_line(folder: Path) -> None:
    create()
    run("guard", "score", "guard.db", "right.csv")
    for option, path, words in (
        ("--plot", "none/x.png", "no folder none"),
        ("--csv", "none/x.csv", "no folder none"),
        ("--plot", "x.foo", "must end in .png, .svg or .pdf"),
        ("--csv", ".", "directory"),
    ):
        assert (
            words in run("guard", "history", "guard.db", option, path, code=2 if path in (".", "x.foo") else 4).output
        )
    assert "no folder none" in run("demo", "--picture", "none/x.png", code=4).output
    Path("binary.csv").write_bytes(bytes(range(256)))
    Path("twice.csv").write_text("id,prediction,prediction\n1,2,3\n")
    Path("unnamed.csv").write_text("id,,prediction\n1,2,3\n")
    for path, words in (("binary.csv", "a CSV file"), ("twice.csv", "two columns"), ("unnamed.csv", "no name")):
        output = run("guard", "score", "guard.db", path, code=4).output
        assert words in output
        assert output.count("\n") == 1


def test_what_is_no_ledger_is_refused(folder: Path) -> None:
    for command in (("score", "missing.db", "right.csv"), ("status", "missing.db"), ("history", "missing.db")):
        assert "missing.db" in run("guard", *command, code=4).output
    assert not Path("missing.db").exists()
    before = Path("train.csv").read_bytes()
    os.chmod("train.csv", 0o600)
    assert "train.csv" in run("guard", "status", "train.csv", code=4).output
    assert Path("train.csv").read_bytes() == before


def test_one_of_several_guards_is_named(folder: Path) -> None:
    """As on a server, which holds the guards of many services; here one ledger that is open stands for it."""
    create()
    train, other = pd.read_csv("train.csv"), pd.read_csv("holdout.csv").iloc[:-1]
    with open_ledger("guard.db") as ledger:
        (first,) = ledger.guards()
        second = PredictionGuard.create(
            ledger, train, other, label="y", queries=50, mechanism=Claims(holdout_answers=1)
        ).identity
    refused = run("guard", "score", "guard.db", "right.csv", code=2).output
    assert "2 guards with labels" in refused
    assert first[:12] in refused
    assert second[:12] in refused
    answer = json.loads(run("guard", "score", "guard.db", "right.csv", "--guard", first[:12], "--json").output)
    assert answer["value"] == 1.0
    status = run("guard", "status", "guard.db").output
    assert "1 of 100 queries so far" in status
    assert "0 of 50 queries so far" in status
    assert f"guard {second[:12]}, <Thresholdout" in status
    assert f"Select this one by --guard {first[:12]}" in create().output


@pytest.mark.slow
def test_looks_before_the_guard_are_declared(folder: Path) -> None:
    said = create("--prior-queries", "2").output
    assert "at most 2 scores of these records had been seen, of 10,001 possible values each" in said
    assert PredictionGuard.open("guard.db").certificate.prior_queries == PriorQueries(2).counted(1500)
    wide = json.loads(run("guard", "score", "guard.db", "right.csv", "--json").output)["half_width"]
    os.remove("guard.db")
    create()
    assert json.loads(run("guard", "score", "guard.db", "right.csv", "--json").output)["half_width"] < wide


def test_answers_that_will_say_nothing_are_a_note(folder: Path) -> None:
    assert "The intervals of this guard will be useless" in create("--prior-queries", "200").output
