"""A state that does not match its history is found: a budget can't be refilled by hand."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cases import for_each
from thresholdout import Thresholdout
from thresholdout.cli import main
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.ledger import SQLLedger, export_history, import_history
from thresholdout.mechanisms import (
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.mechanisms.kind import Parameters

N = 1000
HALF = np.arange(N) % 2
MECHANISMS: list[Parameters] = [
    SparseVectorParameters(threshold=0.1, noise_scale=0.005, budget=3, queries=20),
    LadderParameters(queries=20),
]


def make(file: Path, mechanism: Parameters) -> Thresholdout:
    return Thresholdout((np.arange(N), HALF), mechanism=mechanism, ledger=file)


def used(file: Path, mechanism: Parameters) -> Thresholdout:
    """A guard that gave two answers from the holdout, failed once, and may have agreed once."""
    guard = make(file, mechanism)
    guard.ask(1.0, HALF, key="a")
    guard.ask(0.5, HALF, key="b")
    guard.ask(1.0, np.arange(N) < 600, key="c")
    return guard


def rewrite(file: Path, change: Callable[[str], str]) -> None:
    """Change a guard's state as somebody would who knows the file."""
    with closing(sqlite3.connect(file)) as connection:
        ((state,),) = connection.execute("SELECT state FROM guards").fetchall()
        assert change(state) != state
        connection.execute("UPDATE guards SET state = ?", (change(state),))
        connection.commit()


def numbered(place: int, number: str, line: int = -1) -> Callable[[str], str]:
    """Replace the word at a place of a line of a state; the last line is the mechanism's."""

    def change(state: str) -> str:
        lines = state.split("\n")
        words = lines[line].split(" ")
        words[place] = number
        lines[line] = " ".join(words)
        return "\n".join(lines)

    return change


TAMPERED: list[tuple[Parameters, Callable[[str], str]]] = [
    (MECHANISMS[0], numbered(2, "0")),
    (MECHANISMS[0], numbered(2, "1")),
    (MECHANISMS[0], numbered(3, "2")),
    (MECHANISMS[0], numbered(3, "4")),
    (MECHANISMS[0], lambda state: f"failures 1\n{state}"),
    (MECHANISMS[1], numbered(1, "2")),
    (MECHANISMS[1], numbered(1, "4")),
]


@pytest.mark.slow
@for_each("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_state_that_was_left_alone_fits(tmp_path: Path, mechanism: Parameters) -> None:
    file = tmp_path / "guard.db"
    used(file, mechanism)
    assert len(make(file, mechanism).history) == 3
    assert CliRunner().invoke(main, ["ledger", "verify", str(file)]).exit_code == 0


@pytest.mark.slow
@for_each(("mechanism", "change"), TAMPERED, ids=lambda x: type(x).__name__)
def test_a_state_that_was_changed_is_found(tmp_path: Path, mechanism: Parameters, change: Callable[[str], str]) -> None:
    file = tmp_path / "guard.db"
    used(file, mechanism)
    with SQLLedger(file) as ledger:
        state = ledger.state(*ledger.guards())
    rewrite(file, change)
    with pytest.raises(LedgerDamaged, match=r"state of guard .* does not match its history") as caught:
        make(file, mechanism)
    assert not any(word in str(caught.value) for word in state.split(" ") if len(word) > 4)
    shown = CliRunner().invoke(main, ["ledger", "verify", str(file)])
    assert shown.exit_code == 4
    assert "does not match its history" in shown.output
    rewrite(file, lambda _: state)
    assert len(make(file, mechanism).history) == 3


@pytest.mark.slow
def test_a_first_state_beside_a_history_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    """The plainest refill: the state of a new guard, with the number of queries of the old one."""
    file, fresh = tmp_path / "guard.db", tmp_path / "fresh.db"
    guard = used(file, MECHANISMS[0])
    make(fresh, MECHANISMS[0])
    with SQLLedger(fresh) as ledger:
        first = ledger.state(*ledger.guards())
    rewrite(file, lambda _: re.sub(r" 0$", " 3", first))
    with pytest.raises(LedgerDamaged):
        make(file, MECHANISMS[0])
    assert len(guard.history) == 3


@pytest.mark.slow
def test_failures_are_counted_too(tmp_path: Path) -> None:
    def failing(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if len(y) == N:
            raise RuntimeError
        return np.asarray(y)

    train = (np.arange(N, 2 * N + 1), np.arange(N + 1) % 2)
    settings = {"train": train, "mechanism": MECHANISMS[0], "ledger": tmp_path / "guard.db"}
    guard = Thresholdout((np.arange(N), HALF), **settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="failed on the holdout"):
        guard.ask(failing)
    assert Thresholdout((np.arange(N), HALF), **settings).status.answers_left == 2  # type: ignore[arg-type]
    rewrite(tmp_path / "guard.db", lambda state: state.partition("\n")[2])
    with pytest.raises(LedgerDamaged, match="does not match"):
        Thresholdout((np.arange(N), HALF), **settings)  # type: ignore[arg-type]


def test_an_imported_history_has_no_state_to_compare(tmp_path: Path) -> None:
    used(tmp_path / "guard.db", MECHANISMS[0])
    with SQLLedger(tmp_path / "guard.db") as ledger, SQLLedger(tmp_path / "copy.db") as copy:
        export_history(ledger, ledger.guards()[0], tmp_path / "history.jsonl")
        import_history(copy, tmp_path / "history.jsonl")
    assert CliRunner().invoke(main, ["ledger", "verify", str(tmp_path / "copy.db")]).exit_code == 0
