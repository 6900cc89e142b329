"""Readers that are wrong in one place, each of which a kept log tells from the right one."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.cases import for_each
from tests.thresholdout.evaluations.test_readers import KEPT, PASSAGES, expected
from thresholdout.errors import EvaluationFileError, InputError
from thresholdout.evaluations import Scores, read

Right = Callable[[Scores], bool]


def values(seed: int, epochs: int = 1, failing: bool = False) -> Right:
    return lambda scores: bool(np.array_equal(scores.values, expected(seed, epochs, failing), equal_nan=True))


def clusters(scores: Scores) -> bool:
    return scores.clusters == PASSAGES


EPOCHS = ("inspect_epochs.eval", {"metric": "match"}, values(3, 2))
FAILED = ("inspect_errors.eval", {"metric": "match"}, values(1, failing=True))
PLAIN = ("inspect_main.eval", {"metric": "match", "cluster": "metadata.passage_id"}, clusters)
STRICT = ("lm_eval_main.jsonl", {"only": {"filter": "strict-match"}}, values(1))
HARNESS = ("lm_eval_main.jsonl", {"only": {"filter": "strict-match"}, "cluster": "doc.passage_id"}, clusters)
REPEAT = ("promptfoo_repeat.json", {"metric": "correct"}, values(1, 2, failing=True))
EVALS = ("openai_evals.jsonl", {"metric": "match"}, values(1, failing=True))
TRACES = ("mlflow_traces.json", {"cluster": "tags.passage_id"}, lambda s: sorted(s.values) == sorted(expected(1)))

MUTANTS = {
    "inspect: epochs are items": (
        "inspect_logs",
        'item = str(sample["id"] if',
        "item = str(f\"{sample['id']} {sample['epoch']}\" if",
        EPOCHS,
    ),
    "inspect: an error is 0": (
        "inspect_logs",
        'value = None if score is None or sample.get("error") else score["value"]',
        'value = 0 if score is None or sample.get("error") else score["value"]',
        FAILED,
    ),
    "inspect: clusters ignored": (
        "inspect_logs",
        "None if cluster is None else _name(cluster)",
        "None",
        PLAIN,
    ),
    "lm-eval: both filters": ("json_logs", "if wanted is not None and name != wanted:", "if False:", STRICT),
    "lm-eval: the other filter": ("json_logs", "name != wanted:", "name == wanted:", STRICT),
    "lm-eval: clusters ignored": ("json_logs", "_named(row, fields.cluster, where)", "None", HARNESS),
    "promptfoo: repeats are items": (
        "json_logs",
        "content if fields.item is None",
        "str(each['testIdx']) if fields.item is None",
        REPEAT,
    ),
    "promptfoo: an error is 0": ("json_logs", "None if failed else value", "0 if failed else value", REPEAT),
    "evals: an error is 0": (
        "json_logs",
        "value = None if sample in failed and metric not in scores else scores.get(metric)",
        "value = scores.get(metric, 0)",
        EVALS,
    ),
    "mlflow: traces are items": ("tables", '("request" if traces', '("trace_id" if traces', TRACES),
    "mlflow: expectations are scores": (
        "tables",
        "if name.endswith(_SCORE_COLUMNS) and name not in expected",
        "if name.endswith(_SCORE_COLUMNS)",
        TRACES,
    ),
    "letters are text": ("scores", '"C": 1.0,', '"C": 0.0,', EPOCHS),
}


def mutated(module: str, old: str, new: str) -> types.ModuleType:
    """Return a module whose text is changed in each place where it has the old one."""
    name = f"thresholdout.evaluations.{module}"
    path = import_module(name).__file__
    assert path is not None
    text = Path(path).read_text()
    assert old in text
    found = types.ModuleType(name)
    found.__dict__["__file__"] = path
    kept = sys.modules[name]
    sys.modules[name] = found  # where dataclasses look for their module
    try:
        exec(compile(text.replace(old, new), path, "exec"), found.__dict__)
    finally:
        sys.modules[name] = kept
    return found


@for_each("mutant", MUTANTS)
def test_a_wrong_reader_is_told(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, old, new, (file, arguments, right) = MUTANTS[mutant]
    assert right(read(KEPT / file, **arguments))  # type: ignore[arg-type]
    wrong = mutated(module, old, new)
    for user in ("reading", "inspect_logs", "json_logs", "tables"):
        home = import_module(f"thresholdout.evaluations.{user}")
        for name in set(vars(home)) & set(getattr(wrong, "__all__", ())):
            monkeypatch.setattr(home, name, getattr(wrong, name))
    try:
        found = read(KEPT / file, **arguments)  # type: ignore[arg-type]
    except (EvaluationFileError, InputError):
        return  # refused, which is told too
    if mutant == "mlflow: traces are items":
        assert any(item.startswith("tr-") for item in found.items)
        return
    assert not right(found)
