"""Logs that the tools themselves write, without a network, of scores that are known here.

``python -m tests.thresholdout.evaluations.tool_logs inspect FOLDER`` writes one tool's; ``kept`` holds a small copy of
each. Item i is a sum in passage ``i // 3``; item `FAILING` fails where a log has errors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

FAILING = 3


def right(item: int, seed: int, epoch: int = 1) -> bool:
    """Whether the model of a run answers an item correctly; what every log is compared with."""
    return (item * 7 + seed * 5 + epoch * 3) % 10 < 6


def question(item: int, pad: int = 0) -> str:
    return f"item {item} of passage {item // 3}: what is {item}+1?{' x' * (pad // 2)}"


def inspect_log(
    folder: Path, seed: int, *, items: int = 12, epochs: int = 1, errors: bool = False, pad: int = 0, form: str = "eval"
) -> Path:
    """Run Inspect with its mock model."""
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, match, mean, scorer
    from inspect_ai.solver import generate

    asked: dict[int, int] = {}

    def answer(messages, tools, choice, config):  # type: ignore[no-untyped-def]
        found = re.match(r"item (\d+) ", str(messages[-1].text))
        assert found is not None
        item = int(found.group(1))
        asked[item] = asked.get(item, 0) + 1
        if errors and item == FAILING:
            raise RuntimeError("the request timed out")
        output = ModelOutput.from_content("mockllm", str(item + 1) if right(item, seed, asked[item]) else "none")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer is downloaded
        return output

    @scorer(metrics=[mean()])
    def characters():  # type: ignore[no-untyped-def]
        async def score(state, target):  # type: ignore[no-untyped-def]
            return Score(value=len(state.output.completion))

        return score

    samples = [
        Sample(
            id=item,
            input=question(item, pad),
            target=str(item + 1),
            metadata={"passage_id": f"p{item // 3}", "tag": ("hard", "easy")[item % 2]},
        )
        for item in range(items)
    ]
    task = Task(MemoryDataset(samples), solver=generate(), scorer=[match(), characters()], name="sums")
    folder.mkdir(parents=True, exist_ok=True)
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = run(
        task,
        model=model,
        epochs=epochs,
        fail_on_error=not errors,
        log_dir=str(folder),
        log_format=form,
        display="none",
        max_samples=1,
    )
    return Path(log.location.removeprefix("file://"))


def lm_eval_log(folder: Path, seed: int) -> Path:
    """Run lm-eval on a task of two filters with a model that answers from a table."""
    os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("HF_HOME", str(folder / "cache"))
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Table(LM):  # type: ignore[misc]
        def generate_until(self, requests, disable_tqdm=False):  # type: ignore[no-untyped-def]
            answers = []
            for request in requests:
                item = int(re.findall(r"item (\d+) ", request.arguments[0])[0])
                answers.append(f"The answer is {item + 1}." if right(item, seed) else f"{item + 1} or so")
            return answers

        def loglikelihood(self, requests, disable_tqdm=False):  # type: ignore[no-untyped-def]
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"question": question(i), "answer": str(i + 1), "passage_id": f"p{i // 3}"} for i in range(12)]
    data = folder / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))

    def extract(pattern: str) -> list[dict[str, object]]:
        return [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}]

    task = {
        "task": "sums",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"]},
        "filter_list": [
            {"name": "strict-match", "filter": extract(r"The answer is (\-?\d+)\.")},
            {"name": "flexible-extract", "filter": extract(r"(\-?\d+)")},
        ],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1.0},
    }
    tracker = EvaluationTracker(output_path=str(folder))
    found = lm_eval.simple_evaluate(
        Table(),
        tasks=[task],
        log_samples=True,
        evaluation_tracker=tracker,
        task_manager=TaskManager(),
        bootstrap_iters=0,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for name in found["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return next(folder.rglob("samples_*.jsonl"))


PROVIDER = """
const SEED = %d, FAIL = %s, times = {};
module.exports = class {
  id() { return 'table-' + SEED; }
  async callApi(prompt, context) {
    const item = Number(context.vars.item);
    times[item] = (times[item] || 0) + 1;
    if (FAIL && item === 3) return { error: 'the request timed out' };
    return { output: (item * 7 + SEED * 5 + times[item] * 3) %% 10 < 6 ? String(item + 1) : 'no' };
  }
};
"""


def promptfoo_log(folder: Path, seed: int, program: str, *, repeat: int = 1, errors: bool = False) -> Path:
    """Run promptfoo with a provider that is a file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "provider.js").write_text(PROVIDER % (seed, "true" if errors else "false"))
    tests = [
        {
            "vars": {"item": str(item), "question": question(item)},
            "metadata": {"passage_id": f"p{item // 3}"},
            "assert": [{"type": "equals", "value": str(item + 1), "metric": "correct"}],
        }
        for item in range(12)
    ]
    config = {"prompts": [f"Version {seed}: {{{{question}}}}"], "providers": ["file://provider.js"], "tests": tests}
    (folder / "promptfooconfig.json").write_text(json.dumps(config))
    offline = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    command = [program, "eval", "-c", "promptfooconfig.json", "-o", "out.json", "--no-cache", "-j", "1"]
    subprocess.run(
        [*command, "--repeat", str(repeat), "--no-progress-bar", "--no-table"],
        cwd=folder,
        env={**os.environ, **offline, "PROMPTFOO_CONFIG_DIR": str(folder / "config")},
        capture_output=True,
        timeout=300,
        check=False,  # it ends with 100 where an assertion fails
    )
    return folder / "out.json"


def mlflow_logs(folder: Path, seed: int) -> tuple[Path, Path]:
    """Run both evaluations of MLflow; return the table of the older one and the traces' of the newer one."""
    os.environ.update(
        MLFLOW_GENAI_EVAL_MAX_WORKERS="1",
        MLFLOW_GENAI_EVAL_MAX_SCORER_WORKERS="1",
        MLFLOW_ENABLE_ASYNC_TRACE_LOGGING="false",
    )
    import mlflow
    import pandas as pd
    from mlflow.genai.scorers import scorer

    folder.mkdir(parents=True, exist_ok=True)
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.create_experiment("sums", artifact_location=str(folder / "artifacts"))
    mlflow.set_experiment("sums")
    answers = [str(i + 1) if right(i, seed) else "no" for i in range(12)]
    table = pd.DataFrame(
        {"question": [question(i) for i in range(12)], "answer": [str(i + 1) for i in range(12)], "said": answers}
    )
    with mlflow.start_run():
        match = mlflow.metrics.make_metric(
            eval_fn=lambda predictions, targets, metrics: mlflow.metrics.MetricValue(
                scores=[float(a == b) for a, b in zip(predictions, targets, strict=True)]
            ),
            greater_is_better=True,
            name="right",
        )
        mlflow.models.evaluate(
            data=table, predictions="said", targets="answer", extra_metrics=[match], evaluators="default"
        )
    older = next((folder / "artifacts").rglob("eval_results_table.json"))

    @scorer
    def correct(outputs, expectations):  # type: ignore[no-untyped-def]
        return "yes" if outputs == expectations["expected_response"] else "no"

    data = [
        {
            "inputs": {"question": question(i)},
            "outputs": answers[i],
            "expectations": {"expected_response": str(i + 1)},
            "tags": {"passage_id": f"p{i // 3}"},
        }
        for i in range(12)
    ]
    found = mlflow.genai.evaluate(data=data, scorers=[correct])
    newer = folder / "result.json"
    found.result_df.to_json(newer, orient="records", default_handler=str)
    return older, newer


def main(tool: str, folder: Path) -> None:
    if tool == "inspect":
        for name, seed in (("main", 1), ("pr", 2)):
            print(inspect_log(folder / name, seed))
        print(inspect_log(folder / "epochs", 3, epochs=2))
        print(inspect_log(folder / "errors", 1, errors=True))
        print(inspect_log(folder / "long", 1, pad=6000))
        print(inspect_log(folder / "json", 1, form="json"))
    elif tool == "lm_eval":
        print(lm_eval_log(folder / "main", 1), lm_eval_log(folder / "pr", 2))
    elif tool == "promptfoo":
        for name, seed, repeat, errors in (("main", 1, 1, False), ("pr", 2, 1, False), ("repeat", 1, 2, True)):
            print(promptfoo_log(folder / name, seed, "promptfoo", repeat=repeat, errors=errors))
    elif tool == "mlflow":
        print(*mlflow_logs(folder, 1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
