"""inspect_ai's own evaluations, with its mock model and without counting tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from thresholdout import Thresholdout
from thresholdout.errors import GuardExhaustedWarning, InputError
from thresholdout.integrations import GuardedModels
from thresholdout.integrations.inspect_hooks import graded, guarded_samples, guarded_scorer

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")

QUESTIONS = [f"is {k} even?" for k in range(100)]
TARGETS = ["yes" if k % 2 == 0 else "no" for k in range(100)]
TRAIN, HOLDOUT = slice(0, 20), slice(20, 100)


def made(**declared: Any) -> GuardedModels:
    parts = [(np.array(QUESTIONS[part]), np.array(TARGETS[part])) for part in (HOLDOUT, TRAIN)]
    return GuardedModels(Thresholdout(parts[0], train=parts[1], sampling="iid", **declared), graded())


def model(wrong: int, fails: int | None = None) -> Any:
    """Return a model that is wrong about one number of so many, and perhaps fails at one."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        k = int(messages[-1].text.split()[1])
        if k == fails:
            raise RuntimeError("no connection")
        output = ModelOutput.from_content("mockllm", " yes\n" if (k % 2 == 0) != (k % wrong == 0) else "no")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer is downloaded
        return output

    return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def evaluated(models: GuardedModels, folder: Path, llm: Any, **settings: Any) -> Any:
    samples = guarded_samples(QUESTIONS[TRAIN], QUESTIONS[HOLDOUT])
    task = inspect_ai.Task(dataset=samples, scorer=guarded_scorer(models))
    return inspect_ai.eval(task, model=llm, display="none", log_dir=str(folder), **settings)[0]


def metrics(log: Any) -> dict[str, float]:
    assert log.status == "success", log.error
    return {name: found.value for name, found in log.results.scores[0].metrics.items()}


def test_answers_are_judged_as_a_whole_when_the_evaluation_ends(tmp_path: Path) -> None:
    models = made()
    found = []
    for wrong in (2, 10, 4, 10):
        log = evaluated(models, tmp_path, model(wrong))
        found.append(metrics(log))
        values: dict[str, set[float]] = {"train": set(), "holdout": set()}
        for sample in log.samples:
            values[sample.id.split()[0]].add(sample.scores["guarded"].value)
            assert sample.target == ""
        assert values == {"train": {0.0, 1.0}, "holdout": {0.0}}
    assert [one["kept"] for one in found] == [1, 1, 0, 1]
    assert [one["certified"] for one in found] == [0, 1, 0, 1]
    assert [one["score"] for one in found] == [1 / 2, 2 / 3, 0, 2 / 3]
    assert [one["train"] for one in found] == pytest.approx([1 / 2, 9 / 10, 3 / 4, 9 / 10])
    assert len(models.guard.history) == 2


def test_a_part_of_the_samples_is_not_asked_about(tmp_path: Path) -> None:
    models = made()
    models.propose_outputs(TARGETS[TRAIN], TARGETS[HOLDOUT])
    for settings in ({"limit": 60}, {"fail_on_error": False}):
        log = evaluated(models, tmp_path, model(10, fails=50 if "fail_on_error" in settings else None), **settings)
        assert metrics(log)["asked"] == 0.0
    assert len(models.guard.history) == 0


def test_more_than_one_epoch_is_refused(tmp_path: Path) -> None:
    models = made()
    log = evaluated(models, tmp_path, model(10), epochs=2)
    assert log.status == "error"
    assert "epochs" in log.error.message
    assert models.candidates.champion is None


def test_targets_and_other_samples_are_refused(tmp_path: Path) -> None:
    from inspect_ai.dataset import Sample

    with pytest.raises(InputError, match="fields"):
        guarded_samples(QUESTIONS[TRAIN], QUESTIONS[HOLDOUT], target="yes")
    for sample in (Sample(input="is 1 even?", target="no", id="holdout 0"), Sample(input="is 1 even?", id=3)):
        task = inspect_ai.Task(dataset=[sample], scorer=guarded_scorer(made()))
        log = inspect_ai.eval(task, model=model(10), display="none", log_dir=str(tmp_path))[0]
        assert log.status == "error"


def test_an_evaluation_that_is_scored_again_costs_nothing(tmp_path: Path) -> None:
    models = made()
    models.propose_outputs(["no"] * 20, ["no"] * 80)
    log = evaluated(models, tmp_path, model(10))
    left = models.guard.status.error_budget_left
    again = inspect_ai.score(log, guarded_scorer(models), action="overwrite", display="none")
    assert metrics(again) == metrics(log)
    assert models.guard.status.error_budget_left == left
    assert len(models.guard.history) == 1


def test_an_exhausted_guard_is_a_number(tmp_path: Path) -> None:
    models = made(queries=1)
    models.propose_outputs(["no"] * 20, ["no"] * 80)
    assert metrics(evaluated(models, tmp_path, model(10)))["certified"] == 1.0
    with pytest.warns(GuardExhaustedWarning):
        log = evaluated(models, tmp_path, model(20))
    assert metrics(log)["asked"] == 0.0


def test_grades_are_a_function_s() -> None:
    metric = graded(lambda answer, target: 1.0 - abs(len(answer) - len(target)) / 4)
    assert metric.values(np.array(["abcd", "ab"]), np.array(["abc", "abcd"]), None).tolist() == [0.75, 0.5]
