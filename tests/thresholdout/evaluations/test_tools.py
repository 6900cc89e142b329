"""Readers, on logs that the tools write in the test; `make test-evaluations` makes an environment with all of them."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.thresholdout.evaluations.test_readers import PASSAGES, expected, same
from tests.thresholdout.evaluations.tool_logs import inspect_log, lm_eval_log, mlflow_logs, promptfoo_log
from thresholdout.evaluations import read

pytestmark = pytest.mark.slow


def importable(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


@importable("inspect_ai")
@pytest.mark.parametrize("form", ["eval", "json"])
@pytest.mark.parametrize(("epochs", "errors", "pad"), [(1, False, 0), (2, False, 0), (1, True, 0), (1, False, 6000)])
def test_inspect(tmp_path: Path, form: str, epochs: int, errors: bool, pad: int) -> None:
    path = inspect_log(tmp_path, 4, epochs=epochs, errors=errors, pad=pad, form=form)
    scores = read(path, "match", cluster="metadata.passage_id")
    same(scores, expected(4, epochs, failing=errors))
    assert scores.clusters == PASSAGES
    assert (scores.samples + scores.missing).tolist() == [epochs] * 12


@importable("lm_eval")
def test_lm_eval(tmp_path: Path) -> None:
    scores = read(lm_eval_log(tmp_path, 4), only={"filter": "strict-match"}, cluster="doc.passage_id")
    same(scores, expected(4))
    assert scores.clusters == PASSAGES


@pytest.mark.skipif(shutil.which("promptfoo") is None, reason="promptfoo is not installed")
@pytest.mark.parametrize(("repeat", "errors"), [(1, False), (2, True)])
def test_promptfoo(tmp_path: Path, repeat: int, errors: bool) -> None:
    scores = read(promptfoo_log(tmp_path, 4, "promptfoo", repeat=repeat, errors=errors), cluster="metadata.passage_id")
    same(scores, expected(4, repeat, failing=errors))
    assert scores.clusters == PASSAGES


@pytest.mark.skipif(
    importlib.util.find_spec("mlflow") is None or importlib.util.find_spec("mlflow.models") is None,
    reason="mlflow is not installed",
)
def test_mlflow(tmp_path: Path) -> None:
    table, traces = mlflow_logs(tmp_path, 4)
    same(read(table, item="question"), expected(4))
    assert sorted(read(traces, cluster="tags.passage_id").values) == sorted(expected(4))
