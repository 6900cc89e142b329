import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.patience import PATIENCE
from thresholdout import InputError, Thresholdout
from thresholdout.errors import GuardExhaustedWarning
from thresholdout.integrations import GuardedPrograms
from thresholdout.scoring.metrics import Metric

SECRET = "wombat"
PREDICT = """
import sys
program, features, predictions = (open(name, mode) for name, mode in zip(sys.argv[1:], "rrw"))
text, rows = program.read(), [line.split(",") for line in features.read().splitlines()]
holdout = int(rows[1][0]) >= 1000
if f"fail {'holdout' if holdout else 'train'}" in text:
    sys.exit(f"row 3 is {rows[3]} of {rows[0]}")
said = [int(row[0]) % 2 ^ (int(row[0]) // 2 % 10 >= text.count("a")) for row in rows[1:]]
predictions.write("n,prediction\\n" + "".join(f"{k},{one}\\n" for k, one in enumerate(said)))
"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., GuardedPrograms]:
    script = tmp_path / "predict.py"
    script.write_text(PREDICT)

    def made(labels: Callable[[Any], Any] = np.asarray, **settings: Any) -> GuardedPrograms:
        declared = {name: settings.pop(name) for name in ("queries", "mechanism") if name in settings}
        number = {"holdout": np.arange(1000, 2000), "train": np.arange(400)}
        holdout, train = (
            (pd.DataFrame({"id": each, "note": SECRET if part == "holdout" else "none"}), labels(each % 2))
            for part, each in number.items()
        )
        guard = Thresholdout(holdout, train=train, sampling="iid", **declared)
        command = f"{sys.executable} -I -S {script} {{candidate}} {{features}} {{predictions}}"
        return GuardedPrograms(guard, settings.pop("command", command), **settings)

    return made


Make = Callable[..., GuardedPrograms]


@pytest.mark.slow
def test_programs_are_run_without_labels_and_kept_or_rejected(make: Make) -> None:
    programs = make()
    told = [programs.evaluate(text) for text in ("aa", "aaaaa", "aaa", "aaaaa")]
    assert [status for status, _ in told] == [200] * 4
    assert [answer["info"]["outcome"] for _, answer in told] == ["first", "kept", "rejected", "kept"]
    assert [answer["score"] for _, answer in told] == [1 / 2, 2 / 3, 0.0, 2 / 3]
    assert [answer["info"]["repeated"] for _, answer in told] == [False, False, False, True]
    _, answer = programs.evaluate("aaaa fail train")
    assert "['id', 'note']" in answer["info"]["stderr"]  # and no y


@pytest.mark.slow
def test_text_labels_are_compared_as_texts(make: Make) -> None:
    programs = make(labels=lambda y: np.array(["0", "1"])[y])
    assert [programs.evaluate(text)[1]["info"]["outcome"] for text in ("aa", "aaaaa")] == ["first", "kept"]


@pytest.mark.slow
def test_a_program_that_fails_on_the_training_part_is_told_why_for_nothing(make: Make) -> None:
    programs = make()
    programs.evaluate("aa")
    for _ in range(4):
        status, answer = programs.evaluate("aaaa fail train")
        assert (status, answer["score"], answer["info"]["outcome"]) == (422, 0.0, "failed")
        assert answer["info"]["stderr"] == "row 3 is ['2', 'none'] of ['id', 'note']\n"
    assert len(programs.candidates.guard.history) == 0


def test_a_program_that_fails_on_the_holdout_is_charged_once_and_told_nothing(make: Make) -> None:
    programs = make()
    told = [programs.evaluate(text) for text in ("aa", "aaaaa fail holdout", "aaaaa fail holdout")]
    assert [answer["info"]["outcome"] for _, answer in told] == ["first", "failed", "failed"]
    assert list(programs.candidates.guard.history["source"]) == ["failed"]
    assert SECRET not in json.dumps(told)


@pytest.mark.slow
def test_an_exhausted_guard_runs_nothing(make: Make, tmp_path: Path) -> None:
    programs = make(queries=1)
    programs.evaluate("aa")
    programs.evaluate("aaaaa")
    with pytest.warns(GuardExhaustedWarning):
        status, answer = programs.evaluate("fail train")
    assert (status, answer["score"], answer["info"]["outcome"]) == (429, 0.0, "exhausted")
    assert answer["budget"] == {"exhausted": True, "remaining": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("prediction\n1\n", "1 predictions for 400 records"),
        ("prediction\n" + "one\n" * 400, "predictions that are no numbers"),
        ("prediction\n" + "\n" * 400, "0 predictions for 400 records"),
        ("", "the predictions are no CSV"),
        ("prediction\n" + "7\n" * 400, "none is one of the labels"),
    ],
)
def test_predictions_that_cannot_be_read_are_a_failure(make: Make, tmp_path: Path, written: str, why: str) -> None:
    (tmp_path / "written.csv").write_text(written)
    programs = make(command=f"sh -c 'cp {tmp_path}/written.csv $1' sh {{predictions}} {{features}} {{candidate}}")
    status, answer = programs.evaluate("any")
    assert status == 422
    assert why in answer["error"]


def test_what_cannot_be_asked_is_refused(make: Make) -> None:
    for settings, match in (
        ({"metric": "log_loss"}, "a metric of predictions"),
        ({"command": "run {candidate} {predictions}"}, "{features}"),
        ({"at_once": 0}, "at_once"),
    ):
        with pytest.raises(InputError, match=match):
            make(**settings)


def asked(url: str, sent: bytes) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, sent), timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_the_file_asks_the_server_and_only_its_owner_reads_it(make: Make, tmp_path: Path) -> None:
    file, results = tmp_path / "evaluator.py", tmp_path / "results"

    def evaluated(text: str) -> tuple[int, Any, Any]:
        (tmp_path / "program.py").write_text(text)
        for name in ("metrics", "correct"):
            (results / f"{name}.json").unlink(missing_ok=True)
        command = [sys.executable, "-I", "-S", str(file), "--program_path", str(tmp_path / "program.py")]
        ran = subprocess.run(
            [*command, "--results_dir", str(results)],
            timeout=PATIENCE,
            check=False,
            capture_output=True,
            env=os.environ,
        )
        if ran.returncode:
            return ran.returncode, ran.stderr.decode(), None
        return 0, *(json.loads((results / f"{name}.json").read_text()) for name in ("metrics", "correct"))

    with make(queries=1).serving(file) as url:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert evaluated("aa")[1:] == (
            {
                "combined_score": 0.5,
                "public": {"kept": True},
                "private": {},
                "text_feedback": "The first candidate. It was not judged: the next one is compared with it.",
            },
            {"correct": True, "error": None},
        )
        _, metrics, correct = evaluated("fail train")
        assert metrics["combined_score"] == 0.0
        assert "row 3 is" in metrics["text_feedback"]
        assert correct["correct"] is False
        assert evaluated("aaaaa")[1]["combined_score"] == 2 / 3
        with pytest.warns(GuardExhaustedWarning):
            assert asked(url + "/evaluate", b'{"candidate": "a"}')[0] == 429
        assert evaluated("a")[1]["combined_score"] == 0.0
        assert asked(url + "/evaluate", b"[]")[0] == 400
        assert asked(url + "x/evaluate", b'{"candidate": "a"}')[0] == 404
        with urllib.request.urlopen(url + "/status", timeout=PATIENCE) as answer:
            assert json.load(answer) == {"budget": {"exhausted": True, "remaining": None}}
    status, error, _ = evaluated("aa")
    assert status == 1  # nobody serves: an error, and no score
    assert "URLError" in error


def test_a_text_that_no_file_can_have_is_a_failure_for_nothing(make: Make) -> None:
    programs = make()
    status, told = programs.evaluate("\ud800")
    assert (status, told["info"]["outcome"], told["score"]) == (422, "failed", 0.0)
    assert len(programs.candidates.guard.history) == 0


def test_a_name_stays_with_its_metric(make: Make) -> None:
    programs = make()
    metric = Metric("mine", "predict", lambda y, output, classes: output == y, (0.0, 1.0), True, False)
    with pytest.raises(InputError, match="a name in use with metric='accuracy'"):
        GuardedPrograms(programs.candidates.guard, "run {candidate} {features} {predictions}", metric)
