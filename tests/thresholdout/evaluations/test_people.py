"""Where people meet evaluation sets: the pytest fixture, the action, the plan."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from tests.cases import for_each
from tests.documents import ROOT
from thresholdout.cli import main
from thresholdout.errors import InputError
from thresholdout.evaluations import EvaluationGuard, agreement, read
from thresholdout.evaluations.pytest_plugin import EvalGate
from thresholdout.evaluations.sizing import drop_seen, variability


@pytest.fixture
def gate(tmp_path: Path) -> EvalGate:
    for name, right in (("main", 300), ("pr", 299), ("bad", 200), ("odd", 290)):
        frame = pd.DataFrame({"id": range(400), "score": [int(i < right) for i in range(400)]})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return EvalGate(tmp_path)


class TestFixture:
    def test_not_worse(self, gate: EvalGate) -> None:
        assert gate.not_worse("pr.csv", than="main.csv").verdict == "not worse"

    def test_worse_fails_with_the_line(self, gate: EvalGate) -> None:
        with pytest.raises(pytest.fail.Exception, match=r"-25\.0 points .* worse"):
            gate.not_worse("bad.csv", than="main.csv")

    def test_a_file_that_is_not_there_is_skipped_and_said_so(self, gate: EvalGate) -> None:
        with pytest.raises(pytest.skip.Exception, match=r"none\.csv does not exist"):
            gate.not_worse("none.csv", than="main.csv")

    def test_a_guarded_set(self, gate: EvalGate, tmp_path: Path) -> None:
        EvaluationGuard.create(tmp_path / "evals.db", read(tmp_path / "main.csv"), dev=0.0)
        assert gate.check("pr.csv", "evals.db").outcome == "nothing"
        with pytest.raises(pytest.fail.Exception, match="worse"):
            gate.check("bad.csv", "evals.db")

    @pytest.mark.slow
    def test_the_installed_plugin_brings_it(self, gate: EvalGate, tmp_path: Path) -> None:
        (tmp_path / "test_model.py").write_text(
            "def test_good(eval_gate):\n    eval_gate.not_worse('pr.csv', than='main.csv')\n"
            "def test_bad(eval_gate):\n    eval_gate.not_worse('bad.csv', than='main.csv')\n"
            "def test_missing(eval_gate):\n    eval_gate.not_worse('none.csv', than='main.csv')\n"
        )
        quiet = ["-q", "-rs", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *quiet, "--rootdir", str(tmp_path), str(tmp_path)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
        assert "none.csv does not exist" in done.stdout


class TestJudges:
    FRAME = pd.DataFrame(
        {"id": range(50), "a": [1, 0] * 25, "b": [1, 0] * 20 + [1] * 10, "c": [i // 10 for i in range(50)]}
    )

    def test_the_interval_is_clopper_pearsons(self) -> None:
        found = agreement(read(self.FRAME, "a"), read(self.FRAME, "b"))
        interval = stats.binomtest(45, 50).proportion_ci(0.95, method="exact")
        assert (found.share, found.exact) == (0.9, True)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-7)
        assert found.difference == pytest.approx(0.1)

    def test_clusters_widen_it(self) -> None:
        found = agreement(read(self.FRAME, "a", cluster="c"), read(self.FRAME, "b", cluster="c"))
        assert not found.exact
        assert found.low < 0.782 < 0.967 < found.high

    def test_scales_have_to_be_alike(self) -> None:
        with pytest.raises(InputError, match="range"):
            agreement(read(self.FRAME, "a"), read(self.FRAME, "b", range=(0, 5)))

    def test_the_command(self, tmp_path: Path) -> None:
        self.FRAME.to_csv(tmp_path / "run.csv", index=False)
        done = CliRunner().invoke(main, ["eval", "agree", str(tmp_path / "run.csv"), "a", "b"])
        assert done.output.splitlines()[0] == "a and b agree on 90.0 % of 50 items [78.2, 96.7], exact 95 % interval"
        assert done.exit_code == 0
        data = CliRunner().invoke(main, ["eval", "agree", str(tmp_path / "run.csv"), "a", "b", "--json"])
        found = json.loads(data.output)
        assert (found["schema"], found["judges"], found["share"]) == ("thresholdout.eval.agree/1", ["a", "b"], 0.9)


class TestPlan:
    @pytest.mark.slow
    @for_each(("items", "samples"), [(1000, 1), (300, 5)])
    def test_a_drop_is_seen_with_its_power(self, items: int, samples: int) -> None:
        """Two runs of a Beta(.75, .25) benchmark, simulated; t at .05; 600 pairs, 4 standard errors and the drop's own
        part of the variance."""
        rng = np.random.default_rng(0)
        drop, seen = drop_seen(items, samples), 0
        for _ in range(600):
            share = rng.beta(0.75, 0.25, size=items)
            base, candidate = rng.binomial(samples, share), rng.binomial(samples, share * (1 - drop / 0.75))
            z = (candidate - base) / samples
            seen += z.mean() < -1.645 * z.std(ddof=1) / np.sqrt(items)
        assert abs(seen / 600 - 0.8) < 0.08

    def test_checks_and_alarms_cost(self) -> None:
        drops = [drop_seen(1000, checks=c, alarms=a) for c, a in ((1, 0), (300, 0), (300, 1), (300, 3))]
        assert drops == sorted(drops)
        # 300 checks, two baselines: z of .05/600 and of power .8, by tables 3.765 and .842, over 1.645 and .842
        assert drops[1] / drops[0] == pytest.approx((3.765 + 0.842) / (1.645 + 0.842), rel=1e-3)

    def test_samples_that_are_alike_tell_nothing(self) -> None:
        frame = pd.DataFrame({"id": [i // 2 for i in range(20)], "score": [i // 2 % 2 for i in range(20)]})
        assert not variability(read(frame)).samples_differ
        varied = frame.assign(score=[i % 2 for i in range(20)])
        assert variability(read(varied)).within == pytest.approx(0.5)  # of 0 and 1, with n - 1

    def test_the_command(self, tmp_path: Path) -> None:
        done = CliRunner().invoke(main, ["eval", "plan", "--items", "3000"])
        assert done.exit_code == 0, done.output
        assert re.search(r"3000\s+1\s+2\.0\s+3\.6", done.output)
        found = json.loads(CliRunner().invoke(main, ["eval", "plan", "--items", "3000", "--json"]).output)
        first = found["drops"][0]
        assert (first["items"], first["samples"], round(first["one_diff"], 3)) == (3000, 1, 0.02)
        frame = pd.DataFrame({"id": [i // 2 for i in range(20)], "score": [i // 2 % 2 for i in range(20)]})
        frame.to_csv(tmp_path / "run.csv", index=False)
        assert (
            "more samples do not help" in CliRunner().invoke(main, ["eval", "plan", str(tmp_path / "run.csv")]).output
        )


def test_the_action_is_whole() -> None:
    """Every input that a step takes is declared; text of others reaches the shell by the environment alone."""
    text = (ROOT / "action.yml").read_text()
    declared = set(re.findall(r"^  (\w+):\n    description", text, re.MULTILINE))
    assert set(re.findall(r"inputs\.(\w+)", text)) <= declared
    for script in re.findall(r"run: (.*(?:\n {8,}.*)*)", text):
        assert "${{" not in script


def test_the_action_keeps_no_guarded_set_in_a_cache(tmp_path: Path) -> None:
    """A cache of one pull request is seen by no other one: the guard would forget every outcome."""
    text = (ROOT / "action.yml").read_text()
    assert "actions/cache" not in text
    script = textwrap.dedent(re.findall(r"id: compare\n.*?run: \|\n(.*?)\n    - name", text, re.DOTALL)[0])
    written = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    inputs = {"BASE": "", "CANDIDATE": "pr.eval", "DATABASE": "evals.db", "ARGUMENTS": ""}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env={**os.environ, **written, **inputs}, check=True)
    assert (tmp_path / "output").read_text() == "exit=2\n"
    assert "evals.db is a file" in (tmp_path / "summary").read_text()
