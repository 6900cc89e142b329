"""The guard of an evaluation set, in a file and in memory."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from tests.cases import for_each
from tests.thresholdout.ledger.postgres_server import Server
from thresholdout.cli import main
from thresholdout.errors import EvaluationFileError, EvaluationSetUsed, InputError, LedgerClosed, LedgerMismatch
from thresholdout.evaluations import EvaluationGuard, Scores, read
from thresholdout.evaluations.pytest_plugin import EvalGate
from thresholdout.evaluations.scores import Row, collect
from thresholdout.ledger import open_ledger


def run(right: int, items: int = 400, start: int = 0, seed: int | None = None, clusters: int | None = None) -> Scores:
    scores = np.arange(items) < right
    if seed is not None:
        scores = np.random.default_rng(seed).permutation(scores)
    frame = pd.DataFrame({"id": range(start, start + items), "score": scores})
    if clusters is not None:
        frame["passage"] = [f"p{start + i // clusters}" for i in range(items)]
    return read(frame, cluster=None if clusters is None else "passage")


def guard(**settings: object) -> EvaluationGuard:
    return EvaluationGuard.create(open_ledger(None), run(300), **{"dev": 0.0, **settings})  # type: ignore[arg-type]


def prompts(contents: list[int]) -> Scores:
    """A run whose items have contents that may repeat."""
    return collect((Row(str(i), True, None, f"{content:032x}") for i, content in enumerate(contents)), "run", "match")


class TestChecks:
    def test_items_of_one_content_may_lie_in_both_parts(self) -> None:
        """Which items share a content is asked of the whole run; the gate part alone has some of them once."""
        base = prompts([i // 2 for i in range(200)])
        g = EvaluationGuard.create(open_ledger(None), base, dev=0.5)
        assert g.check(base, allow_missing=0.0).outcome == "nothing"
        assert len(g.dev_items(base)) + g.status().gate_items == 200

    def test_an_alarm_at_the_exact_level(self) -> None:
        """k losses alone have the p-value 2^-k; the first level of 300 checks is .05/300, between 2^-12 and 2^-13."""
        assert guard().check(run(288)).outcome == "nothing"
        assert guard().check(run(287)).outcome == "worse"

    def test_a_run_with_other_scores_chooses_no_test(self) -> None:
        """Halves of a 0/1 set are rounded against the claim: 100 of them are no losses; sign flips would see 100."""
        frame = pd.DataFrame({"id": range(400), "score": [0.5] * 100 + [1.0] * 200 + [0.0] * 100})
        assert guard().check(read(frame)).outcome == "nothing"
        proofs = guard(mode="proof", margin=0.2, expect="nothing")
        assert proofs.check(run(299)).outcome == "not worse"
        assert proofs.check(read(frame)).outcome == "nothing"

    def test_an_alarm_costs_a_surprise_and_nothing_does_not(self) -> None:
        g = guard()
        assert (g.check(run(299)).surprises_left, g.check(run(200)).surprises_left) == (5, 4)
        assert g.status().done == 2
        assert g.status().level == pytest.approx(0.05 / 300 / 298, rel=1e-9)

    def test_the_history_has_the_drop_that_each_check_could_see(self) -> None:
        """z of .05/300, of .05/300/299 after an alarm, of half of that with two baselines; plus z of .8."""
        g = guard()
        g.check(run(200))
        g.check(run(299))
        g.promote(run(299))
        g.check(run(298))
        first, second, _, last = (each.smallest_drop for each in g.status().history)
        z = [-stats.norm.ppf(level) + stats.norm.ppf(0.8) for level in (0.05 / 300, 0.05 / 300 / 299, 0.05 / 600 / 299)]
        assert first is not None
        assert second is not None
        assert last is not None
        assert second / first == pytest.approx(z[1] / z[0], rel=1e-6)
        assert last / first == pytest.approx(z[2] / z[0], rel=1e-6)

    def test_the_same_scores_are_free_under_any_name(self) -> None:
        g = guard()
        first = g.check(run(200), "one")
        again = g.check(run(200), "other")
        assert (first.outcome, again.outcome, again.repeated, again.number) == ("worse", "worse", True, 1)
        assert (g.status().done, g.status().surprised) == (1, 1)

    def test_it_is_never_blind_in_silence(self) -> None:
        g = guard(surprises=1)
        g.check(run(200))
        with pytest.raises(EvaluationSetUsed, match="1 of 1 planned surprises are used up"):
            g.check(run(199))
        assert g.check(run(200)).repeated

    def test_planned_checks_end(self) -> None:
        g = guard(checks=2, surprises=1)
        g.check(run(299))
        g.check(run(298))
        with pytest.raises(EvaluationSetUsed, match="2 of 2 planned checks"):
            g.check(run(297))

    def test_two_anchors(self) -> None:
        """Small steps down: main moves with them, the release does not."""
        g = guard()
        outcomes = []
        for right in range(295, 240, -5):
            found = g.check(run(right)).outcome
            outcomes.append(found)
            if found == "worse":
                break
            g.promote(run(right))
        assert outcomes == ["nothing", "nothing", "worse"]  # 15 losses against the release, 5 against main

    def test_main_is_an_anchor_too(self) -> None:
        g = guard()
        g.promote(run(400))
        assert g.check(run(320)).outcome == "worse"  # better than the release
        assert guard().check(run(320)).outcome == "nothing"

    def test_a_proof(self) -> None:
        g = guard(mode="proof", margin=0.1)
        assert g.status().tests[1] == "exact trinomial"
        # .1 over the deviation sqrt(.1 / 400), less the quantile of .05 300/301: 6.32 - 1.65
        assert g.status().proof_power == pytest.approx(1.0, abs=1e-5)
        found = g.check(run(300))
        assert (found.outcome, found.surprises_left, found.passes("proof")) == ("not worse", 5, True)
        lost = g.check(run(240))
        assert (lost.outcome, lost.surprises_left, lost.passes("proof")) == ("nothing", 4, False)

    def test_errors_prove_nothing(self) -> None:
        """28 losses of 400 are proved; with eight items that have no score, 36 at worst are not: 40 is the margin."""
        assert guard(mode="proof", margin=0.1).check(run(272)).outcome == "not worse"
        g = guard(mode="proof", margin=0.1)
        scores = [float(i < 272) for i in range(400)]
        scores[:8] = [float("nan")] * 8
        assert g.check(read(pd.DataFrame({"id": range(400), "score": scores})), allow_missing=2).outcome == "nothing"

    def test_a_proof_that_is_not_expected_is_a_surprise(self) -> None:
        g = guard(mode="proof", margin=0.1, expect="nothing")
        assert g.check(run(300)).surprises_left == 4

    def test_planned_levels_pay_nothing(self) -> None:
        g = guard(promise="each")
        g.check(run(200))
        assert g.status().level == pytest.approx(0.05 / 300, rel=1e-9)


class TestParts:
    def test_dev_items_are_never_compared(self) -> None:
        """Nothing but dev items change, as far as they may."""
        base = run(300)
        g = EvaluationGuard.create(open_ledger(None), base, dev=0.5)
        dev = set(g.dev_items(base))
        assert 150 < len(dev) < 250
        frame = pd.DataFrame({"id": range(400), "score": [i < 300 and str(i) not in dev for i in range(400)]})
        assert g.check(read(frame)).outcome == "nothing"
        assert g.status().gate_items == 400 - len(dev)

    def test_the_history_has_differences_of_dev_items_alone(self) -> None:
        base = run(300)
        g = EvaluationGuard.create(open_ledger(None), base, dev=0.5)
        dev = set(g.dev_items(base))
        lost = set(list(dev & {str(i) for i in range(300)})[:10])
        frame = pd.DataFrame({"id": range(400), "score": [i < 300 and str(i) not in lost for i in range(400)]})
        g.check(read(frame))
        assert g.status().history[0].dev_difference == pytest.approx(-10 / len(dev), abs=1e-8)

    def test_clusters_are_not_divided(self) -> None:
        base = run(300, clusters=5)
        g = EvaluationGuard.create(open_ledger(None), base, dev=0.5)
        dev = set(g.dev_items(base))
        assert base.clusters is not None
        sides = {cluster: set() for cluster in base.clusters}  # type: dict[str, set[bool]]
        for item, cluster in zip(base.items, base.clusters, strict=True):
            sides[cluster].add(item in dev)
        assert all(len(side) == 1 for side in sides.values())
        assert g.status().clusters * 5 == g.status().gate_items


class TestBudget:
    def test_a_set_has_one_budget_under_any_name(self, tmp_path: Path) -> None:
        where = tmp_path / "evals.db"
        EvaluationGuard.create(where, run(300))
        with pytest.raises(LedgerMismatch, match="are in a guarded set already"):
            EvaluationGuard.create(where, run(250))

    def test_it_is_found_again_in_its_file(self, tmp_path: Path) -> None:
        where = tmp_path / "evals.db"
        EvaluationGuard.create(where, run(300), dev=0.0).check(run(200))
        again = EvaluationGuard(where)
        assert (again.status().done, again.status().surprised) == (1, 1)
        assert again.check(run(200)).repeated

    def test_refresh_takes_new_items_alone(self) -> None:
        g = guard()
        g.check(run(200))
        new = g.refresh(run(500, items=600))
        status = new.status()
        assert (status.gate_items, status.done, status.surprised) == (200, 0, 0)
        with pytest.raises(LedgerClosed):
            g.check(run(100))

    def test_refresh_leaves_out_what_was_readable(self) -> None:
        base = run(300)
        g = EvaluationGuard.create(open_ledger(None), base, dev=0.5)
        assert g.refresh(run(500, items=600)).status().gate_items + 0 <= 200

    def test_refresh_leaves_out_clusters_that_were_used(self) -> None:
        """Item 400 and on, in passages of ten of which one began before."""
        ledger = open_ledger(None)
        base = pd.DataFrame({"id": range(395), "score": 1.0, "passage": [f"p{i // 10}" for i in range(395)]})
        more = pd.DataFrame({"id": range(600), "score": 1.0, "passage": [f"p{i // 10}" for i in range(600)]})
        g = EvaluationGuard.create(ledger, read(base, cluster="passage"), dev=0.0)
        assert g.refresh(read(more, cluster="passage")).status().gate_items == 200

    def test_refresh_takes_the_metric_and_the_clusters_of_the_set(self) -> None:
        """Without clusters, items of a passage that was compared would be new ones."""
        g = EvaluationGuard.create(open_ledger(None), run(300, clusters=5), dev=0.0)
        with pytest.raises(InputError, match="with no clusters"):
            g.refresh(run(500, items=600))
        with pytest.raises(InputError, match="metric"):
            g.refresh(read(pd.DataFrame({"id": range(600), "other": 1.0}), "other"))
        assert g.check(run(300, clusters=5)).number == 1

    def test_refresh_without_new_items(self) -> None:
        g = guard()
        with pytest.raises(InputError, match=r"got .* with 0 of them to compare"):
            g.refresh(run(300))
        assert g.check(run(299)).number == 1

    def test_refresh_knows_items_whose_content_one_run_repeats(self) -> None:
        """A second copy of each prompt makes no item new, and neither does leaving it out."""
        once, twice = prompts([*range(100)]), prompts([*range(100), *range(100)])
        for first, second in ((once, twice), (twice, once), (twice, twice)):
            g = EvaluationGuard.create(open_ledger(None), first, dev=0.0)
            with pytest.raises(InputError, match=r"got .* with 0 of them to compare"):
                g.refresh(second)
            assert g.refresh(prompts([*range(150)])).status().gate_items == 50

    def test_new_items_may_share_a_content_that_tells_no_items_apart(self) -> None:
        g = EvaluationGuard.create(open_ledger(None), prompts([0] * 100), dev=0.0)
        assert g.refresh(prompts([0] * 300)).status().gate_items == 200


class TestRefusals:
    def test_nothing_is_paid_for_a_run_that_cannot_be_compared(self) -> None:
        g = guard()
        with pytest.raises(EvaluationFileError):
            g.check(run(100, items=200))
        with pytest.raises(InputError):
            g.check(run(10, start=5000))
        assert g.status().done == 0

    def test_another_metric(self) -> None:
        frame = pd.DataFrame({"id": range(400), "other": 1.0})
        with pytest.raises(InputError, match="metric"):
            guard().check(read(frame, "other"))

    @for_each(
        "settings",
        [
            {"checks": 0},
            {"surprises": 0},
            {"checks": 3, "surprises": 4},
            {"mode": "all"},
            {"margin": 0.0},
            {"dev": 1.0},
            {"promise": "none"},
            {"expect": "claim"},
        ],
    )
    def test_plans(self, settings: dict[str, object]) -> None:
        with pytest.raises(InputError, match=next(reversed(settings))):
            guard(**settings)

    def test_a_file_of_something_else(self, tmp_path: Path) -> None:
        open_ledger(tmp_path / "other.db").close()
        with pytest.raises(LedgerMismatch, match="no evaluation set"):
            EvaluationGuard(tmp_path / "other.db")


class TestCommandLine:
    @staticmethod
    def command(*arguments: str | Path) -> Result:
        return CliRunner().invoke(main, ["eval", "guard", *map(str, arguments)])

    @pytest.fixture
    def files(self, tmp_path: Path) -> Path:
        for name, right in (("main", 300), ("same", 298), ("bad", 200), ("worst", 100)):
            frame = pd.DataFrame({"id": range(400), "right": [i < right for i in range(400)]})
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        return tmp_path

    @pytest.mark.slow
    def test_a_year_in_short(self, files: Path) -> None:
        db = files / "evals.db"
        begun = self.command("init", db, "--baseline", files / "main.csv", "--metric", "right", "--surprises", "1")
        assert begun.exit_code == 0, begun.output
        assert "nobody who makes changes reads gate items" in begun.output
        assert self.command("check", db, files / "same.csv").exit_code == 0
        assert self.command("promote", db, files / "same.csv").exit_code == 0
        bad = self.command("check", db, files / "bad.csv", "--name", "pull request 7")
        assert (bad.exit_code, bad.output) == (1, "worse (check 2); 298 checks and 0 surprises left\n")
        done = self.command("check", db, files / "worst.csv")
        assert done.exit_code == 4
        assert "1 of 1 planned surprises are used up" in done.output
        shown = self.command("status", db)
        assert "pull request 7: worse" in shown.output
        assert self.command("check", db, files / "bad.csv").exit_code == 1
        assert self.command("close", db).exit_code == 0
        said = "".join(each.output for each in (begun, bad, done, shown))
        assert not re.search(r"\b(holdouts?|labels?|ledgers?|nats|claims?)\b", said, re.IGNORECASE)

    @pytest.mark.slow
    def test_json(self, files: Path) -> None:
        db = files / "evals.db"
        self.command("init", db, "--baseline", files / "main.csv", "--metric", "right", "--dev", "0")
        bad = self.command("check", db, files / "bad.csv", "--json")
        assert json.loads(bad.output) == {
            "schema": "thresholdout.eval.check/1",
            "outcome": "worse",
            "repeated": False,
            "number": 1,
            "checks_left": 299,
            "surprises_left": 4,
            "exit": 1,
        }
        status = json.loads(self.command("status", db, "--json").output)
        assert (status["schema"], status["done"], status["surprised"]) == ("thresholdout.eval.status/1", 1, 1)
        assert status["history"][0]["outcome"] == "worse"
        done: list[Any] = [
            json.loads(self.command(*arguments, "--json").output)
            for arguments in (
                ("promote", db, files / "same.csv"),
                ("report", db, "--output", files / "year.html"),
                ("close", db),
                ("init", files / "other.db", "--baseline", files / "main.csv", "--metric", "right"),
            )
        ]
        assert [one.get("main", one.get("file", one.get("closed"))) for one in done] == [
            str(files / "same.csv"),
            str(files / "year.html"),
            True,
            None,
        ]
        assert (done[3]["schema"], done[3]["checks"], done[3]["history"]) == ("thresholdout.eval.status/1", 300, [])

    def test_the_page_of_a_year(self, files: Path) -> None:
        """Names are text; main's line is drawn on dev items."""
        db, page = files / "evals.db", files / "year.html"
        self.command("init", db, "--baseline", files / "main.csv", "--metric", "right", "--dev", "0.5")
        self.command("check", db, files / "bad.csv", "--name", "<b>pull request 7")
        self.command("promote", db, files / "same.csv")
        done = self.command("report", db, "--output", page)
        assert done.exit_code == 0, done.output
        text = page.read_text()
        assert "&lt;b&gt;pull request 7" in text
        assert "<b>" not in text
        assert text.count("&times;") == 1
        assert text.count('class="range"') == 2
        assert re.search(r"<dt>surprises</dt><dd>1 of 5</dd>", text)
        read = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        assert not re.search(
            r"\b(holdouts?|labels?|ledgers?|nats|claims?)\b", read.replace("aria-label", ""), re.IGNORECASE
        )

    def test_errors(self, files: Path) -> None:
        db = files / "evals.db"
        assert self.command("check", db, files / "same.csv").exit_code == 4
        assert self.command("init", db, "--baseline", files / "none.csv").exit_code == 4
        assert self.command("init", db, "--baseline", files / "main.csv").exit_code == 2
        self.command("init", db, "--baseline", files / "main.csv", "--metric", "right")
        again = self.command("init", db, "--baseline", files / "main.csv", "--metric", "right")
        assert (again.exit_code, again.output.count("\n")) == (4, 1)
        absent = self.command("status", files / "absent.db")
        for done in (again, absent):
            assert not re.search(r"\b(holdouts?|labels?|ledgers?|nats|claims?)\b", done.output, re.IGNORECASE), (
                done.output
            )


class TestPostgres:
    """The same guard on a server, where runs of several machines meet."""

    def test_a_year_in_short(self, server: Server, tmp_path: Path) -> None:
        address = server.emptied_database()
        for name, right in (("main", 300), ("same", 298), ("bad", 200)):
            frame = pd.DataFrame({"id": range(400), "right": [i < right for i in range(400)]})
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        command = TestCommandLine.command
        begun = command("init", address, "--baseline", tmp_path / "main.csv", "--metric", "right")
        assert begun.exit_code == 0, begun.output
        assert command("init", address, "--baseline", tmp_path / "main.csv", "--metric", "right").exit_code == 4
        assert command("check", address, tmp_path / "same.csv").exit_code == 0
        assert command("promote", address, tmp_path / "same.csv").exit_code == 0
        bad = command("check", address, tmp_path / "bad.csv", "--name", "pull request 7")
        assert (bad.exit_code, bad.output) == (1, "worse (check 2); 298 checks and 4 surprises left\n")
        assert "pull request 7: worse" in command("status", address).output
        assert EvalGate(tmp_path).check("same.csv", address).outcome == "nothing"

    @pytest.mark.slow
    def test_checks_at_once_are_each_paid_once(self, server: Server) -> None:
        """Four connections check eight runs each, four of which are the others' too."""
        address = server.emptied_database()
        EvaluationGuard.create(address, run(300), dev=0.0)

        def checks(worker: int) -> list[int]:
            own = EvaluationGuard(address)
            return [own.check(run(299 - k - (k > 3) * 4 * worker)).number for k in range(8)]

        with ThreadPoolExecutor(4) as pool:
            numbers = list(pool.map(checks, range(4)))
        status = EvaluationGuard(address).status()
        assert status.done == 4 + 4 * 4
        assert all(each[:4] == numbers[0][:4] for each in numbers)
        assert len({number for each in numbers for number in each}) == 20
