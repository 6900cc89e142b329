"""Runs of an evaluation set as models that a guard compares."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from thresholdout.errors import EvaluationFileError, InputError, InputTypeError
from thresholdout.evaluations import Scores, guard_of_items, read
from thresholdout.integrations import GEPAHoldout, GuardedCandidates

FRAME = pd.DataFrame({"id": range(1500), "score": [i % 10 < 7 for i in range(1500)]})
MAIN = read(FRAME)
BETTER = read(FRAME.assign(score=[i % 10 < 8 for i in range(1500)]))


class TestComparisons:
    def test_a_single_comparison_is_about_the_gate_items(self) -> None:
        guard, score = guard_of_items(MAIN, sampling="iid", queries=1)
        found = guard.compare(BETTER, MAIN, score)
        gate = {int(item) for item in MAIN.items} - set(map(int, _dev_names(score)))
        wins = sum(i % 10 == 7 for i in gate)
        assert guard.n == len(gate) == 1500 - len(score.dev_items)
        low, high = found.interval
        assert low < wins / len(gate) < high
        assert found.verdict == "better"

    def test_the_same_run_in_another_order_is_matched_by_content(self) -> None:
        guard, score = guard_of_items(MAIN, sampling="iid", queries=1)
        found = guard.compare(read(FRAME.assign(score=BETTER.values)[::-1]), MAIN, score)
        other, same = guard_of_items(read(FRAME[::-1]), sampling="iid", queries=1)
        assert found.value == pytest.approx(other.compare(BETTER, MAIN, same).value, abs=1e-9)
        assert sorted(score.dev_items) == sorted(same.dev_items)

    def test_a_gate_keeps_and_rejects(self) -> None:
        guard, score = guard_of_items(MAIN, sampling="iid")
        gate = guard.gate(MAIN, score)
        worse = read(FRAME.assign(score=[i % 10 < 6 for i in range(1500)]))
        assert [gate.propose(run).outcome for run in (worse, BETTER)] == ["reject", "keep"]

    def test_clusters_are_groups(self) -> None:
        frame = FRAME.assign(passage=[f"p{i // 5}" for i in range(1500)])
        with pytest.warns(UserWarning, match="independent groups of 5"):
            guard, _ = guard_of_items(read(frame, cluster="passage"))
        assert guard.n % 5 == 0

    def test_a_set_has_one_budget_in_a_file(self, tmp_path: Path) -> None:
        for name, baseline in (("one", MAIN), ("two", read(FRAME[::-1]))):
            guard, score = guard_of_items(baseline, sampling="iid", ledger=tmp_path / "items.db")
            guard.compare(BETTER, MAIN, score, name=name)
        assert len(guard.history) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("run", "error", "reason"),
        [
            (read(FRAME[:100]), EvaluationFileError, "1400 of the 1500 guarded items have no score there"),
            (read(FRAME.assign(id=FRAME["id"] + 5000)), EvaluationFileError, "1500 of the 1500 guarded items"),
            (
                read(FRAME.astype({"score": object}).assign(score=lambda f: f["score"].where(f["id"] > 0))),
                EvaluationFileError,
                "1 of the 1500 guarded items",
            ),
            (read(FRAME.assign(other=1), "other"), InputError, "the frame with other from 0 to 1"),
            (read(FRAME.assign(score=1), range=(0, 5)), InputError, "score from 0 to 5"),
            ("pr.eval", InputTypeError, "text"),
            (object(), InputTypeError, "a run"),
        ],
    )
    def test_other_runs_cost_nothing(self, run: Any, error: type[Exception], reason: str) -> None:
        guard, score = guard_of_items(MAIN, sampling="iid")
        with pytest.raises(error, match=reason):
            guard.compare(run, MAIN, score)
        with pytest.raises(error):
            guard.gate(MAIN, score).propose(run)
        assert guard.history.empty if hasattr(guard.history, "empty") else not guard.history

    def test_a_part_without_items(self) -> None:
        with pytest.raises(InputError, match="leaves one part without items"):
            guard_of_items(read(FRAME[:2]), dev=0.001)
        with pytest.raises(InputError, match="between 0 and 1"):
            guard_of_items(MAIN, dev=0.0)


class TestHooks:
    """Optimisers take the guard that runs are compared with."""

    class Adapter:
        def evaluate(self, batch: list[int], candidate: dict[str, str], capture_traces: bool = False) -> Any:
            scores = [float(k % 10 < len(candidate["prompt"])) for k in batch]
            return SimpleNamespace(outputs=batch, scores=scores, trajectories=batch, objective_scores=None)

    def test_gepa(self) -> None:
        guard, score = guard_of_items(MAIN, sampling="iid")
        names = _names(MAIN)
        dev, gate = ([int(names[each]) for each in part] for part in (score.dev_items, score.gate_items))
        hook = GEPAHoldout(self.Adapter(), dev, gate, guard=guard)
        assert hook.candidates.guard is guard
        for prompt in ("Add.", "Add both."):
            hook.evaluate(hook.valset, {"prompt": prompt})
        assert hook.candidates.champion == {"prompt": "Add both."}
        guard.compare(BETTER, MAIN, score)
        assert len(guard.history) == 2  # one budget

    def test_a_guard_of_other_records_is_refused(self) -> None:
        guard, _ = guard_of_items(MAIN, sampling="iid")
        with pytest.raises(InputError, match="in the order of the examples"):
            GEPAHoldout(self.Adapter(), range(10), range(10, 30), guard=guard)
        with pytest.raises(InputError, match="must be None beside"):
            GEPAHoldout(self.Adapter(), range(10), range(10, 30), guard=guard, sampling="iid")

    def test_candidates(self) -> None:
        guard, _ = guard_of_items(MAIN, sampling="iid")
        candidates = GuardedCandidates(guard)
        values = [[float(i % 10 < k) for i in range(n)] for k in (5, 9) for n in (len(guard._open[1]), guard.n)]
        first = candidates.propose("a", train_values=values[0], holdout_values=values[1])
        second = candidates.propose("b", train_values=values[2], holdout_values=values[3])
        assert (first.outcome, second.outcome) == ("first", "kept")


def _names(scores: Scores) -> dict[str, str]:
    return dict(zip(scores.identities, scores.items, strict=True))


def _dev_names(score: Any) -> list[str]:
    return [_names(MAIN)[each] for each in score.dev_items]
