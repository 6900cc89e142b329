"""What a query, a status or a report costs when a guard has answered many queries already.

No test asserts a time: what is counted is rows of the ledger and calls of functions, of a short and of a long history.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from thresholdout import Claims, KFoldGuard, Thresholdout
from thresholdout.cli import main
from thresholdout.ledger import MemoryLedger, SQLLedger
from thresholdout.model_selection.optuna_study import GuardedObjective
from thresholdout.service.prediction_guard import PredictionGuard

SHORT, LONG = 2500, 3500  # more than a report draws and lists
N = 60
TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(2 * N)], "x": np.arange(2 * N) / 7, "y": np.arange(2 * N) % 2})


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Ledgers of one guard with a short and a long history, and predictions that were not asked about."""
    folder = tmp_path_factory.mktemp("ledgers")
    memory, made = MemoryLedger(), {}
    service = PredictionGuard.create(memory, TABLE[:N], TABLE[N:], label="y", queries=9000, mechanism="ladder")
    for asked in range(1, LONG + 1):
        service.guard.ask(0.5, np.full(N, 0.5), name=f"query {asked} (accuracy)", key=f"key {asked}")
        if asked in (SHORT, LONG):
            made[asked] = folder / f"{asked}.db"
            guard = service.identity
            documents = {name: memory.document(guard, name) or "" for name in memory.documents(guard)}
            with SQLLedger(made[asked]) as ledger:
                state, entries = memory.state(guard), memory.entries(guard)
                ledger.restore(guard, memory.parameters(guard), state, documents, entries)
    predictions = pd.DataFrame({"id": TABLE["id"], "prediction": TABLE["y"]})
    predictions.to_csv(folder / "new.csv", index=False)
    return made


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that statements read, of ledgers in files and in memory."""
    read: list[int] = []

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any) -> Any:
            found = method(*arguments)
            read.append(len(found))
            return found

        return counting

    monkeypatch.setattr(SQLLedger, "_read", counted(SQLLedger._read))
    monkeypatch.setattr(MemoryLedger, "entries", counted(MemoryLedger.entries))
    return read


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
@pytest.mark.parametrize("command", ["score", "status"])
def test_a_query_and_a_status_read_as_much_of_a_long_history_as_of_a_short_one(
    files: dict[int, Path], rows: list[int], command: str
) -> None:
    read = {}
    for asked, file in files.items():
        rows.clear()
        run("guard", command, file, *([file.parent / "new.csv"] if command == "score" else []))
        read[asked] = sum(rows)
    assert read[SHORT] == read[LONG] < 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "most"),
    [
        pytest.param(("history",), 60, id="history"),
        pytest.param(("history", "--csv", "history.csv"), 90, id="csv", marks=pytest.mark.slow),
        pytest.param(("report", "--output", "page.html"), 40, id="report", marks=pytest.mark.slow),
    ],
)
def test_a_history_is_read_once_with_few_calls_for_each_entry(
    files: dict[int, Path],
    rows: list[int],
    command: tuple[str, ...],
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    run("guard", *command[:1], files[SHORT], *command[1:])  # what is loaded once is loaded
    calls = dict.fromkeys(files, 0)
    for asked, file in files.items():
        rows.clear()

        def count(frame: Any, event: str, argument: Any, asked: int = asked) -> None:
            calls[asked] += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            run("guard", *command[:1], file, *command[1:])
        finally:
            sys.setprofile(None)
        assert asked <= sum(rows) < asked + 100
    assert (calls[LONG] - calls[SHORT]) / (LONG - SHORT) < most


@pytest.mark.slow
def test_a_k_fold_query_reads_as_much_of_a_long_history_as_of_a_short_one(rows: list[int]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 2)), rng.integers(0, 2, size=6000)
    guard = KFoldGuard((X, y), cv=3, queries=100, mechanism=Claims(holdout_answers=2))
    read = []
    for asked in range(21):
        rows.clear()
        guard.score(GaussianNB(), "accuracy", key=f"key {asked}")
        read.append(sum(rows))
    assert read[20] == read[1] < 10
    rows.clear()
    assert guard.score(GaussianNB(), "accuracy", key="key 3").repeated
    assert sum(rows) == 0
    assert guard.score(GaussianNB(), "brier_score").query == 22
    assert guard.history["train"].iloc[-1] == 0.5


def test_a_study_whose_guard_is_exhausted_does_not_read_its_history(rows: list[int]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2 * N, 2)), rng.integers(0, 2, size=2 * N)
    guard = Thresholdout((X[:N], y[:N]), train=(X[N:], y[N:]), queries=3, mechanism=Claims(holdout_answers=1))

    def build(trial: Any) -> Any:
        return DecisionTreeClassifier(max_depth=trial.suggest_int("depth", 1, 30), random_state=0)

    objective = GuardedObjective(guard, build, "accuracy", exhausted="nan", cv="training")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    with pytest.warns(UserWarning, match="used"):
        study.optimize(objective, n_trials=8)
    assert study.user_attrs["guard_state"]["asked"] == len(guard.history)
    rows.clear()
    study.optimize(objective, n_trials=1)
    assert sum(rows) == 0
