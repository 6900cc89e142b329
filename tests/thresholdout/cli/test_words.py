"""What help and documents say about labels and about ledgers that are put back, and that it is so."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cases import for_each
from tests.documents import PAGES
from tests.thresholdout.cli.running import create, run
from thresholdout.ledger import Ledger
from thresholdout.ledger.postgres import PostgresServer
from thresholdout.service import prediction_guard as service


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_labels_of_the_training_part_can_be_read_off(folder: Path) -> None:
    """Why no document may say that labels never come out: two predictions that differ in one record tell its label."""
    create()
    ids = pd.concat([pd.read_csv(folder / part)["id"] for part in ("train.csv", "holdout.csv")])
    guess = pd.DataFrame({"id": ids, "prediction": 0})
    labels = pd.read_csv(folder / "train.csv")["y"].to_numpy()
    for k in range(-1, 12):
        predictions = guess.assign(prediction=np.arange(len(guess)) == k).astype({"prediction": int})
        predictions.to_csv(folder / "one.csv", index=False)
        run("guard", "score", "guard.db", "one.csv")
    run("guard", "history", "guard.db", "--csv", "history.csv")
    told = pd.read_csv(folder / "history.csv")["train"].to_numpy()
    assert ((told[1:] > told[0]) == labels[:12]).all()


@for_each("words", [run("guard", "create", "--help").output, service.__doc__, PAGES[0].read_text()])
def test_the_words_say_so(words: str) -> None:
    said = flat(words).lower()
    assert "never come out" not in said
    assert "training part are not protected" in said or "labels of the training part: every answer" in said


@for_each("words", [inspect.getdoc(Ledger), inspect.getdoc(PostgresServer), PAGES[0].read_text()])
def test_what_puts_a_budget_back_is_named(words: str) -> None:
    said = flat(words).lower()
    assert "asynchronous replica" in said
    assert "to a point in time" in said
