"""The command that compares: its words, its exit codes, and guards without declared limits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.thresholdout.cli.running import run
from thresholdout.ledger import open_ledger
from thresholdout.service.prediction_guard import PredictionGuard

TABLES = ("--train", "train.csv", "--holdout", "holdout.csv", "--label", "y")


@pytest.fixture
def guard(folder: Path) -> Path:
    """Make a guard that declares no limits, and tables that are right on 90, 80 and 80.1 % of the records."""
    run("guard", "create", "guard.db", *TABLES)
    right = pd.read_csv("right.csv")[["id", "prediction"]]
    rng = np.random.default_rng(4)
    u = rng.random(len(right))
    for name, wrong in (("new", u < 0.1), ("old", (u < 0.05) | (u > 0.85)), ("like", (u < 0.052) | (u > 0.853))):
        right.assign(prediction=(right["prediction"] != 0) ^ wrong).astype({"prediction": int}).to_csv(
            f"{name}.csv", index=False
        )
    return folder


@pytest.mark.slow
def test_the_exit_code_is_the_verdict(guard: Path) -> None:
    better = run("guard", "compare", "guard.db", "new.csv", "old.csv", "--name", "trees").output
    assert better.startswith("trees (accuracy, difference): better  (truth in +0.0")
    assert "(truth in +0.0" in better
    assert "query 1" in better
    worse = run("guard", "compare", "guard.db", "old.csv", "new.csv", code=1).output
    assert "difference: worse  (truth in -0." in worse
    equal = run("guard", "compare", "guard.db", "old.csv", "like.csv", code=3).output
    assert "difference: not settled  (truth in -0.0" in equal
    run("guard", "compare", "guard.db", "new.csv", "old.csv", "--metric", "zero_one_loss")
    text = " ".join(run("guard", "compare", "--help").output.split())
    assert "0 for better, 1 for worse, 3 for not settled" in text


@pytest.mark.slow
def test_errors_have_codes_of_their_own(guard: Path) -> None:
    run("guard", "compare", "guard.db", "new.csv", code=2)
    missing = run("guard", "compare", "nowhere.db", "new.csv", "old.csv", code=4).output
    assert "nowhere.db" in missing
    pd.read_csv("new.csv")[:-1].to_csv("short.csv", index=False)
    for which, tables in (("a", ("new.csv", "short.csv")), ("b", ("short.csv", "new.csv"))):
        said = run("guard", "compare", "guard.db", *tables, code=4).output
        assert said.startswith(f"Error: predictions of {which} must be a table with one row for each of the 3000")
        assert "got a table with 1 records missing" in said
    assert "no queries yet" in run("guard", "history", "guard.db").output
    run("guard", "create", "once.db", *TABLES, "--queries", "1")
    run("guard", "compare", "once.db", "new.csv", "old.csv")
    run("guard", "compare", "once.db", "old.csv", "new.csv", code=5)


@pytest.mark.slow
def test_json_says_the_same_and_the_same_tables_cost_nothing(guard: Path) -> None:
    first = json.loads(
        run("guard", "compare", "guard.db", "old.csv", "like.csv", "--json", "--name", "first", code=3).output
    )
    again = json.loads(run("guard", "compare", "guard.db", "old.csv", "like.csv", "--json", code=3).output)
    assert first["verdict"] == "not settled"
    assert first["interval"][0] <= first["value"] <= first["interval"][1]
    assert first.pop("repeated") is False
    assert again.pop("repeated") is True
    assert again == first
    assert "repeated: free of charge" in run("guard", "compare", "guard.db", "old.csv", "like.csv", code=3).output
    asked = json.loads(run("guard", "score", "guard.db", "old.csv", "--json").output)
    assert asked["query"] == 2  # a score is another query than a comparison


@pytest.mark.slow
def test_limits_and_what_truths_are_given_are_declared_or_not(guard: Path) -> None:
    status = run("guard", "status", "guard.db").output
    assert "any number of answers from the holdout left" in status
    assert "0 queries so far" in status
    assert "given the features" in status  # of a leaderboard, by default
    plain = run("guard", "create", "plain.db", *TABLES, "--mechanism", "claims", "--sampling", "independent").output
    assert "given the features" not in plain
    created = run(
        "guard",
        "create",
        "given.db",
        *TABLES,
        "--sampling",
        "fixed_features",
        "--queries",
        "30",
        "--holdout-answers",
        "4",
    ).output
    assert "given the features of all of them" in created
    assert "0 of 30 queries so far" in run("guard", "status", "given.db").output
    run("guard", "compare", "given.db", "new.csv", "old.csv")
    narrow = json.loads(run("guard", "compare", "given.db", "new.csv", "old.csv", "--json").output)
    wide = json.loads(run("guard", "compare", "plain.db", "new.csv", "old.csv", "--json").output)
    assert np.diff(narrow["interval"]) < np.diff(wide["interval"])
    run("guard", "create", "other.db", *TABLES, "--sampling", "labels", code=2)


def test_what_fails_with_labels_of_the_holdout_is_charged_in_fixed_words(guard: Path) -> None:
    with open_ledger("guard.db") as ledger:
        service = PredictionGuard.open(ledger)
        metric = service.guard._models.compared("accuracy", "difference")
        secret = service.guard._records.holdout[1]

        def values(y: np.ndarray, output: np.ndarray, classes: object) -> np.ndarray:
            if np.array_equal(y[-len(secret) :], secret):
                raise ValueError(f"labels: {y}")
            right: np.ndarray = output == y
            return right

        broken = type(metric)("broken", "predict", values, (0.0, 1.0), True)
        with pytest.raises(Exception, match="failed on the holdout") as caught:
            service.compare(pd.read_csv("new.csv"), pd.read_csv("old.csv"), broken)
        assert "labels:" not in str(caught.value)
        assert caught.value.argument == "metric"  # type: ignore[attr-defined]
        assert service.guard.history["source"].tolist() == ["failed"]
