import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.thresholdout.integrations.contract import CANARY, HOLDOUT, TRAIN, HookContract, Told, act, part_of, right
from thresholdout import InputError
from thresholdout.integrations import GEPAHoldout

gepa = pytest.importorskip("gepa", reason="GEPA is not installed")


class Adapter:
    """Runs texts on examples as GEPA's adapters do."""

    def __init__(self) -> None:
        self.evaluated: list[tuple[str, Any]] = []
        self.shown: list[str] = []

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        from gepa.core.adapter import EvaluationBatch

        text = candidate["text"]
        parts = {part_of(example) for example in batch}
        assert len(parts) <= 1
        if len(batch) in (len(TRAIN), len(HOLDOUT)):
            self.evaluated.extend((text, part) for part in parts)
        for part in parts:
            act(text, part)
        scores = [float(right(text, example)) for example in batch]
        return EvaluationBatch(
            outputs=[f"said of {example['note']}" for example in batch], scores=scores, trajectories=list(batch)
        )

    def make_reflective_dataset(self, candidate: Any, batch: Any, components: list[str]) -> Any:
        data = {name: [{"Inputs": str(one), "Feedback": ""} for one in batch.trajectories] for name in components}
        self.shown.append(json.dumps(data))
        return data


class Always:
    """Lets each proposal reach the validation set."""

    def should_accept(self, proposal: Any, state: Any) -> bool:
        return True


class TestGEPA(HookContract):
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        adapter, script = Adapter(), iter(texts[1:])
        hook = GEPAHoldout(adapter, TRAIN, HOLDOUT, name="candidates", **declared)
        rounds = iter(range(len(texts) - 1))

        def propose(candidate: Any, dataset: Any, components: list[str]) -> dict[str, str]:
            adapter.shown.append(json.dumps([candidate, dataset]))
            return {"text": next(script)}

        arguments = hook.arguments
        arguments["stop_callbacks"].append(lambda state: next(rounds, None) is None)
        result = gepa.optimize(
            {"text": texts[0]},
            custom_candidate_proposer=propose,
            acceptance_criterion=Always(),
            raise_on_exception=False,
            skip_perfect_score=False,
            candidate_selection_strategy="current_best",
            run_dir=str(folder / "run"),
            display_progress_bar=False,
            **arguments,
        )
        shown = json.dumps(result.to_dict(), default=str) + "".join(adapter.shown)
        best = result.best_candidate["text"]
        assert hook.candidates.champion == {"text": best}
        return Told(hook.candidates, best, shown, adapter.evaluated)


def test_a_part_of_the_holdout_is_refused_and_all_of_it_has_one_number() -> None:
    hook = GEPAHoldout(Adapter(), TRAIN, HOLDOUT)
    with pytest.raises(
        InputError, match=r"batch must be all of them, or none; got 3 of the 600 examples of the holdout"
    ):
        hook.evaluate([*TRAIN[:2], *HOLDOUT[:3]], {"text": "aa"})
    whole = hook.evaluate([*HOLDOUT[300:], *HOLDOUT[:300]], {"text": "aa"})
    assert len(set(whole.scores)) == 1
    assert set(whole.trajectories) == {None}
    assert hook.evaluate(TRAIN[:10], {"text": "aa"}).scores == [1.0, 1.0] + [0.0] * 8
    with pytest.raises(InputError, match="599 of the 600"):
        hook.evaluate(HOLDOUT[1:], {"text": "aaa"})
    with pytest.raises(InputError, match="601 of the 600"):
        hook.evaluate([*HOLDOUT, HOLDOUT[0]], {"text": "aaa"})


def test_an_adapter_that_evaluates_batches_is_called_once_for_all() -> None:
    class Batches(Adapter):
        def batch_evaluate(self, items: Any) -> Any:
            self.evaluated.append(("batches", len(items)))
            return [self.evaluate(batch, candidate, True) for candidate, batch in items]

    plain, batches = GEPAHoldout(Adapter(), TRAIN, HOLDOUT), GEPAHoldout(Batches(), TRAIN, HOLDOUT)
    assert not hasattr(plain, "batch_evaluate")
    items = [({"text": text}, plain.valset) for text in ("aa", "aaaa")]
    found = batches.batch_evaluate(items)
    assert [one.scores for one in found] == [plain.evaluate(batch, candidate).scores for candidate, batch in items]
    assert [text for text, _ in batches._adapter.evaluated].count("batches") == 1


def test_without_the_hook_a_model_is_shown_the_holdout(tmp_path: Path) -> None:
    """The contract's word would be found, were it shown."""
    adapter, texts = Adapter(), iter(["aaaa"])
    result = gepa.optimize(
        {"text": "aa"},
        trainset=HOLDOUT[:30],
        valset=HOLDOUT,
        adapter=adapter,
        custom_candidate_proposer=lambda candidate, dataset, components: {"text": next(texts)},
        max_metric_calls=700,
        run_dir=str(tmp_path),
        raise_on_exception=False,
    )
    assert CANARY in json.dumps(result.to_dict(), default=str)
    assert CANARY in "".join(adapter.shown)
