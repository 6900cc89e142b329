"""Gates in a ledger: restarts, keys, crashes, other processes, and what reports show of them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from tests.cases import for_each
from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.guard.gating import (
    STEPS,
    N,
    Told,
    climbed,
    columns,
    gains,
    guarded,
    misleading,
    public,
    sources,
)
from thresholdout import InputError, LedgerDamaged, Thresholdout
from thresholdout.cli import main
from thresholdout.guard.decision import Decision
from thresholdout.guard.gates import Gate
from thresholdout.mechanisms.claims.gate_states import remembered_by


@pytest.mark.parametrize("certify", corners(["each", "milestones"], 1))
def test_a_program_that_starts_anew_is_where_it_was(tmp_path: Path, certify: Any) -> None:
    right = columns(gains(certify))
    models = [Told(k) for k in range(1, STEPS + 1)]
    straight = guarded(right)
    gate = straight.gate(Told(0), certify=certify)
    expected = climbed(gate, models)
    assert {"each": {"keep", "skip"}, "milestones": {"skip", "step", "milestone"}}[certify] <= set(sources(straight))
    for broken in (1, 4, 7, 10):
        file = tmp_path / f"{broken}.db"
        climbed(guarded(right, ledger=file).gate(Told(0), certify=certify), models[:broken])
        again = guarded(right, ledger=file)
        risk = again.status.error_budget_left
        found = again.gate(Told(0), certify=certify)
        repeated = climbed(found, models[:broken])
        assert all(decision.repeated and decision.cost == 0.0 for decision in repeated)
        assert again.status.error_budget_left == risk
        later = climbed(found, models, broken)
        assert [public(decision) for decision in repeated + later] == [public(decision) for decision in expected]
        assert found.champion.column == gate.champion.column
        assert found.certified.column == gate.certified.column
        assert found.on_the_way == gate.on_the_way
        assert sources(again) == sources(straight)


def test_what_cross_validation_said_survives_without_proposing_again(tmp_path: Path) -> None:
    right = columns(gains("each"))
    models = [Told(k) for k in range(1, STEPS + 1)]
    straight = guarded(right)
    expected = climbed(straight.gate(Told(0)), models)
    first = guarded(right, ledger=tmp_path / "guard.db").gate(Told(0))
    climbed(first, models[:7])
    again = guarded(right, ledger=tmp_path / "guard.db")
    known = remembered_by(again._engine.state(), "gate: accuracy").history
    assert known.count == 7
    later = climbed(again.gate(first.champion), models, 7)
    assert [public(decision) for decision in later] == [public(decision) for decision in expected[7:]]


def test_a_gate_of_another_metric_has_a_history_of_its_own() -> None:
    right = columns([0.06, 0.0])
    guard = guarded(right)
    guard.gate(Told(0)).propose(Told(1), cv="training")
    guard.gate(Told(0), "brier_score").propose(Told(1), cv="training")
    state = guard._engine.state()
    assert len(state.climbs) == 2
    assert remembered_by(state, "gate: brier_score").history.count == 1
    assert remembered_by(state, "gate: log_loss").history.count == 0


def test_a_lead_belongs_to_its_climb() -> None:
    """A new gate starts from what it is given: what an earlier one had reached is not added to its first step."""
    right = columns([0.02, 0.02], changed=0.05)
    guard = guarded(right)
    guard.gate(Told(0), certify="milestones").propose(Told(1), cv="training")
    assert remembered_by(guard._engine.state(), "milestones: accuracy").ahead > 0.0
    guard.gate(Told(2), certify="milestones").propose(Told(1), cv="training")
    assert remembered_by(guard._engine.state(), "milestones: accuracy").ahead == 0.0


def test_the_same_key_in_the_same_climb() -> None:
    right = columns([0.06, 0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    kept = gate.propose(Told(1), key="a", cv="training")
    gate.propose(Told(2), key="b", cv="training")
    again = gate.propose(Told(1), key="a", cv="training")
    assert public(again) == public(kept)
    assert (again.repeated, again.cost) == (True, 0.0)
    assert gate.champion.column == 2
    assert len(guard.history) == 2
    with pytest.raises(InputError, match="A key names one candidate"):
        gate.propose(Told(0), key="a", cv="training")


def test_a_key_is_of_a_candidate_or_of_a_query() -> None:
    right = columns([0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    guard.score(Told(1), key="score", cv="training")
    with pytest.raises(InputError, match="key"):
        gate.propose(Told(1), key="score", cv="training")
    made = gate.propose(Told(1), key="candidate", cv="training")
    name, gain = "gate: accuracy", made.gain
    with pytest.raises(InputError, match="the key of a candidate"):
        guard.ask(gain, np.zeros(N), bounds=(-1.0, 1.0), name=name, key="candidate")
    with pytest.raises(InputError, match="key"):  # a gate with another delta claims something else
        guard.gate(Told(0), delta=0.01).propose(Told(1), key="candidate", cv="training")
    assert sources(guard) == ["train", "keep"]


def test_a_state_that_forgets_a_candidate_is_noticed(tmp_path: Path) -> None:
    right = columns([0.06, -0.06])
    file = tmp_path / "guard.db"
    gate = guarded(right, ledger=file).gate(Told(0))
    gate.propose(Told(1), cv="training")
    before = guarded(right, ledger=file)._engine.state()
    gate.propose(Told(2), cv="training")
    guard = guarded(right, ledger=file)
    state = guard._engine.state()
    assert (state.asked, state.free, state.hits) == (2, 1, 0)
    import sqlite3
    from dataclasses import replace

    for wrong in (replace(state, free=0), replace(state, hits=1, outcomes=1), before):
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE guards SET state = ?", (wrong.to_text(),))
        connection.close()
        with pytest.raises(LedgerDamaged):
            guarded(right, ledger=file)


def dies(file: Path, right: NDArray[np.float64], where: str) -> None:
    guard = guarded(right, ledger=file)
    gate = guard.gate(Told(0))
    if where == "before":

        class Dies(Told):
            def predict(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
                if len(X) == N:
                    os._exit(3)
                return super().predict(X)

        gate.propose(Dies(1), key="a", cv="training")
    gate._told = lambda *args, **kwargs: os._exit(3)  # type: ignore[method-assign]
    gate.propose(Told(1), key="a", cv="training")


@for_each("where", ["before", "after"])
def test_a_crash_before_or_after_the_decision_is_stored(tmp_path: Path, where: str) -> None:
    right = columns([0.06])
    file = tmp_path / "guard.db"
    child = multiprocessing.get_context("fork").Process(target=dies, args=(file, right, where), daemon=True)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 3
    guard = guarded(right, ledger=file)
    assert sources(guard) == ([] if where == "before" else ["keep"])
    made = guard.gate(Told(0)).propose(Told(1), key="a", cv="training")
    assert made.certified
    assert made.repeated == (where == "after")
    assert sources(guard) == ["keep"]
    assert public(made) == public(guarded(right).gate(Told(0)).propose(Told(1), key="a", cv="training"))


def answer_through(sending: Any, function: Any, given: tuple[Any, ...]) -> None:
    sending.send(function(*given))


def in_children(function: Any, *args: tuple[Any, ...]) -> list[Any]:
    """Run a function in child processes, one after another, and return its results.

    They are started afresh: a child that is forked while another thread serves a guard can inherit its locks.
    """
    spawn = multiprocessing.get_context("spawn")
    found = []
    for given in args:
        receiving, sending = spawn.Pipe(duplex=False)
        child = spawn.Process(target=answer_through, args=(sending, function, given), daemon=True)
        child.start()
        assert receiving.poll(PATIENCE)
        found.append(receiving.recv())
        child.join(PATIENCE)
    return found


def proposes(gate: Gate, column: int) -> tuple[int, Decision, bool, str]:
    made = gate.propose(Told(column), key=f"column {column}", cv="training")
    return os.getpid(), made, gate.on_the_way, repr(gate)


@pytest.mark.slow
def test_a_gate_is_used_from_other_processes() -> None:
    right = columns([0.06, -0.06])
    guard = guarded(right)
    gate = guard.gate(Told(0))
    assert pickle.loads(pickle.dumps(gate)) is gate
    found = in_children(proposes, (gate, 1), (gate, 1), (gate, 1))
    assert os.getpid() not in {process for process, _, _, _ in found}
    assert sorted(decision.repeated for _, decision, _, _ in found) == [False, True, True]
    assert all(decision.certified and not on_the_way for _, decision, on_the_way, _ in found)
    assert gate.champion.column == 1
    assert sources(guard) == ["keep"]
    assert found[0][3].startswith("<Gate: accuracy, each certified by sign test; the champion is certified")


def makes(guard: Thresholdout) -> tuple[Decision | None, int, str, float]:
    gate = guard.gate(Told(0), certify="milestones")
    gate.propose(Told(1), cv="training")
    return gate.last_evaluation(), gate.certified.column, gate.test, gate.delta


@pytest.mark.slow
def test_a_gate_is_made_in_another_process() -> None:
    guard = guarded(columns([0.02], changed=0.05))
    ((last, certified, test, delta),) = in_children(makes, (guard,))
    assert last.certified
    assert (certified, test, delta) == (1, "sign test", 0.0)
    assert sources(guard) == ["step", "milestone"]


@pytest.mark.slow
def test_a_report_shows_candidates(tmp_path: Path) -> None:
    right = misleading()
    right[:N, 1:3] = columns([0.06, 0.06])[:N, 1:3]
    right[:N, 0] = columns([0.06, 0.06])[:N, 0]
    guard = guarded(right, ledger=tmp_path / "guard.db")
    gate = guard.gate(Told(0))
    for column in range(1, 7):
        gate.propose(Told(column), name=f"column {column}", cv="training")
    guard.score(gate.certified, cv="training")
    found = sources(guard)
    report = guard.report()
    assert len(report.answers) == 1
    assert report.queries == sum(source != "skip" for source in found)
    assert report.candidates == 6
    assert report.certified == found.count("keep") > 0
    assert "6 candidates were proposed" in report.html
    assert "Gate by accuracy" in report.html
    outcome = "failed in cross-validation, at no cost"
    assert report.html.split("<h2>History")[0].count(outcome) == found.count("skip")
    last = guard.history.loc[guard.history["source"] == "keep", "candidate"].iloc[-1]
    assert f"The last one that passed is {last}." in report.html
    assert "column 1" in report.html
    assert guard.report().plot() is not None
    told = CliRunner().invoke(main, ["guard", "history", str(tmp_path / "guard.db")])
    lines = told.output.splitlines()[1:]
    assert lines[0].split() == [
        "1",
        "gate:",
        "accuracy:",
        "column",
        "1",
        f"{report.history['train'][0]:.6g}",
        "-",
        "-",
        "keep",
        "-",
    ]
    assert [line.split()[-2] for line in lines] == found
    assert "7 entries, unchanged" in CliRunner().invoke(main, ["ledger", "verify", str(tmp_path / "guard.db")]).output
