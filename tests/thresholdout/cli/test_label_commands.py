"""The commands that decide in one bit, and that correct labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.thresholdout.cli.running import run


@pytest.fixture
def guard(folder: Path) -> Path:
    """Make a guard, and tables that are right on all of the holdout's records, and on 80 % of them."""
    run("guard", "create", "guard.db", "--train", "train.csv", "--holdout", "holdout.csv", "--label", "y")
    right = pd.read_csv("right.csv")[["id", "prediction"]]
    wrong = np.random.default_rng(4).random(len(right)) < 0.2
    right.to_csv("new.csv", index=False)
    worse = (right["prediction"] != 0) ^ wrong
    right.assign(prediction=worse).astype({"prediction": int}).to_csv("old.csv", index=False)
    return folder


@pytest.mark.slow
def test_the_exit_code_is_the_bit(guard: Path) -> None:
    kept = run("guard", "propose", "guard.db", "new.csv", "old.csv", "--name", "trees", "--client", "ann").output
    assert kept == "trees (accuracy, proposal): better, certified by sign test\nquery 1\n"
    assert "not certified to be better" in run("guard", "propose", "guard.db", "old.csv", "new.csv", code=3).output
    again = run("guard", "propose", "guard.db", "new.csv", "old.csv", "--client", "ann").output
    assert "query 1, repeated: free of charge" in again
    said = json.loads(run("guard", "propose", "guard.db", "new.csv", "old.csv", "--client", "ann", "--json").output)
    assert (said["outcome"], said["query"], said["repeated"]) == ("keep", 1, True)
    run("guard", "propose", "guard.db", "new.csv", code=2)
    run("guard", "propose", "nowhere.db", "new.csv", "old.csv", code=4)
    run("guard", "propose", "guard.db", "new.csv", "old.csv", "--client", "bob", "--quota", "0", code=5)


@pytest.mark.slow
def test_labels_are_corrected_and_status_says_what_is_promised(guard: Path) -> None:
    holdout = pd.read_csv("holdout.csv")[:3]
    holdout[["id"]].assign(label=holdout["y"]).to_csv("looked.csv", index=False)
    said = run("guard", "correct", "guard.db", "looked.csv", "--reason", "a complaint", "--basis", "public").output
    assert said.startswith("labels checked: a complaint; query 1\n")
    assert "the guarantee holds for all of them" in said
    assert "the guarantee holds for all of them" in run("guard", "status", "guard.db").output
    last = run("guard", "correct", "guard.db", "looked.csv", "--reason", "somebody saw them").output
    assert "nothing is proved about those after it" in last
    assert "note" in run("guard", "history", "guard.db").output
    assert "--reason" in run("guard", "correct", "guard.db", "looked.csv", code=2).output
    holdout[["id"]].to_csv("without.csv", index=False)
    assert (
        "got a table without column 'label'"
        in run("guard", "correct", "guard.db", "without.csv", "--reason", "why", code=4).output
    )
