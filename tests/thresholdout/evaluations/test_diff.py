"""Comparisons of two runs and of several."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from tests.cases import for_each
from thresholdout.cli import main
from thresholdout.errors import EvaluationFileError, InputError, LikelyMistakeWarning
from thresholdout.evaluations import Scores, diff, formats, rank, read
from thresholdout.evaluations.pairing import Pairs, pair
from thresholdout.limits.sign_flips import log_flip_tail

KEPT = Path(__file__).parent / "kept"


def run(values: list[float], clusters: list[str] | None = None, repeats: int = 1, start: int = 0) -> Scores:
    frame = pd.DataFrame({"id": range(start, start + len(values)), "score": values})
    if clusters is not None:
        frame["cluster"] = clusters
    return read(pd.concat([frame] * repeats), cluster=None if clusters is None else "cluster")


def two(wins: int, losses: int, ties: int) -> tuple[Scores, Scores]:
    base = [0.0] * wins + [1.0] * losses + [1.0] * ties
    candidate = [1.0] * wins + [0.0] * losses + [1.0] * ties
    return run(base), run(candidate)


def trinomials(differences: np.ndarray) -> Pairs:
    return Pairs((), differences, np.arange(differences.size), False, True, False, None, 0)


class TestVerdicts:
    @for_each(("wins", "losses"), [(10, 20), (10, 21), (10, 25), (0, 4), (0, 5), (40, 40)])
    def test_worse_is_the_sign_test(self, wins: int, losses: int) -> None:
        found = diff(*two(wins, losses, 100))
        p = stats.binomtest(losses, wins + losses, alternative="greater").pvalue
        assert (found.verdict == "worse") == (p <= 0.05)

    def test_not_worse_is_the_trinomial(self) -> None:
        found = diff(*two(30, 30, 940))
        assert (found.verdict, found.test) == ("not worse", "exact trinomial")

    def test_rounding_keeps_the_level_of_worse_for_scores_that_are_not_0_or_1(self) -> None:
        """All laws on -1, -.5, 0, .5, 1 in eighths, six items, outcomes enumerated; half a loss as one fails."""
        items, level, steps = 6, 0.05, np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        counts = np.array([c for c in itertools.product(range(items + 1), repeat=5) if sum(c) == items])
        ways = np.array([math.factorial(items) / math.prod(map(math.factorial, c)) for c in counts.tolist()])
        found = [np.repeat(steps, c) for c in counts]
        right, wrong = (
            [trinomials(d).log_p_worse(False) <= math.log(level) for d in each] for each in (found, map(np.sign, found))
        )
        worst = [0.0, 0.0]
        for eighths in itertools.product(range(9), repeat=5):
            law = np.array(eighths) / 8
            if sum(eighths) == 8 and float(law @ steps) >= 0.0:
                chances = ways * np.prod(law**counts, axis=1)
                worst = [max(w, float(chances[p].sum())) for w, p in zip(worst, (right, wrong), strict=True)]
        assert worst[0] <= level < worst[1]

    @for_each("margin", [0.25, 0.4])
    def test_rounding_keeps_the_level_of_not_worse(self, margin: float) -> None:
        """Half a point is won with the chance at which the mean is the margin; counting it as a point fails."""
        items, level, chance = 30, 0.05, (1.0 - margin) / 1.5
        chances = stats.binom.pmf(np.arange(items + 1), items, chance)
        for won, fails in ((0.5, False), (1.0, True)):
            outcomes = [np.repeat([won, -1.0], [k, items - k]) for k in range(items + 1)]
            passing = [trinomials(each).not_worse(margin, math.log(level), False) for each in outcomes]
            assert (chances[passing].sum() > level) == fails

    def test_numbers_are_taken_for_0_1_and_that_is_said(self) -> None:
        assert diff(*two(5, 6, 50)).assumption.startswith("scores are treated as 0/1")
        truths = [replace(each, two_valued=True) for each in two(5, 6, 50)]
        assert diff(*truths).assumption == ""
        assert diff(*two(5, 6, 50), any_laws=True).assumption == ""

    @pytest.mark.slow
    def test_a_small_drop_of_many_is_worse_first(self) -> None:
        assert diff(*two(10, 60, 10_000)).verdict == "worse"

    def test_unclear(self) -> None:
        found = diff(*two(5, 6, 50))
        assert (found.verdict, found.exit(), found.exit(allow_unclear=True)) == ("unclear", 3, 0)
        assert found.test == "sign test; exact trinomial"

    def test_clusters_use_their_totals(self) -> None:
        """20 passages of 5, two of whose answers are lost in ten: the signs of ten totals, 1 in 1,024."""
        base, candidate = [1.0] * 100, ([0.0, 0.0, 1.0, 1.0, 1.0] + [1.0] * 5) * 10
        clusters = [f"c{i // 5}" for i in range(100)]
        found = diff(run(base, clusters), run(candidate, clusters))
        assert found.verdict == "worse"
        assert found.test == "sign flips of cluster totals (exact where nothing changed)"
        assert (found.clusters, found.clustered) == (20, True)

    def test_a_cluster_is_one_observation(self) -> None:
        """Four clusters that lost everything: 1 in 16, whatever is in them."""
        clusters = [f"c{i // 25}" for i in range(100)]
        assert diff(run([1.0] * 100, clusters), run([0.0] * 100, clusters)).verdict == "unclear"
        assert diff(run([1.0] * 100), run([0.0] * 100)).verdict == "worse"

    def test_repeats_are_no_items(self) -> None:
        """Four items, 25 samples each."""
        found = diff(run([1.0] * 4, repeats=25), run([0.0] * 4, repeats=25))
        assert (found.verdict, found.items, found.samples) == ("unclear", 4, (25, 25))

    def test_any_laws_are_bets(self) -> None:
        base, candidate = two(5, 60, 300)
        found = diff(base, candidate, any_laws=True)
        assert (found.verdict, found.test) == ("worse", "bets on cluster totals")
        assert diff(*two(5, 12, 300), any_laws=True).verdict == "unclear"

    def test_identical_files_are_never_red(self) -> None:
        one = read(KEPT / "inspect_main.eval", "match")
        assert diff(one, one).verdict == "not worse"
        assert diff(one, replace(one, file_digest="")).verdict == "unclear"

    def test_parts_of_one_file_are_two_runs(self, tmp_path: Path) -> None:
        frame = pd.DataFrame(
            {"id": list(range(50)) * 2, "model": ["a"] * 50 + ["b"] * 50, "score": [1] * 50 + [0] * 50}
        )
        frame.to_csv(tmp_path / "both.csv", index=False)
        first, second = (read(tmp_path / "both.csv", only={"model": name}) for name in "ab")
        assert diff(first, second).verdict == "worse"
        assert diff(first, read(tmp_path / "both.csv", only={"model": "a"})).test == "identical files"

    @pytest.mark.slow
    @for_each("n", [20, 60, 100, 300])
    @for_each("margin", [0.02, 0.05])
    def test_repeats_that_lose_seldom_are_proved_at_the_level(self, n: int, margin: float) -> None:
        """Two samples that are alike; a law that loses the margin's share, by all numbers of losses.

        Sign flips of totals that are shifted by the margin pass without a loss: with probability .98^20 = .67.
        """
        base, wrong, flipped = run([1.0] * n, repeats=2), 0.0, 0.0
        for losses in range(n):
            mass = float(stats.binom.pmf(losses, n, margin))
            found = diff(base, run([0.0] * losses + [1.0] * (n - losses), repeats=2), margin=margin)
            assert found.verdict != "not worse" or found.test == "bets on cluster totals"
            if found.verdict == "not worse":
                wrong += mass
            totals = np.full(n, margin) - (np.arange(n) < losses)
            flipped += mass * (log_flip_tail(totals) <= math.log(0.05))
            if losses > n * margin:
                break
        assert wrong <= 0.05
        assert flipped > 0.055

    def test_the_interval_is_the_clustered_t(self) -> None:
        rng = np.random.default_rng(0)
        clusters = [f"c{i // 4}" for i in range(60)]
        base, candidate = rng.random(60), rng.random(60)
        found = diff(run(list(base), clusters), run(list(candidate), clusters))
        totals = (candidate - base).reshape(15, 4).sum(axis=1)
        half = stats.t.ppf(0.975, 14) * totals.std(ddof=1) * math.sqrt(15) / 60  # equal sizes: t of the totals
        assert found.difference == pytest.approx((candidate - base).mean())
        assert (found.low, found.high) == pytest.approx((found.difference - half, found.difference + half))

    def test_the_smallest_drop_is_shown_with_power_80(self) -> None:
        """A sign test by simulation: discordance .2, the drop that was said; 4 standard errors of 2,000 runs."""
        rng = np.random.default_rng(1)
        base, candidate = two(100, 100, 800)
        drop = diff(base, candidate).smallest_drop
        assert drop is not None
        losses = rng.multinomial(1000, [0.1 + drop / 2, 0.1 - drop / 2, 0.8], size=2000)
        seen = stats.binom.sf(losses[:, 0] - 1, losses[:, 0] + losses[:, 1], 0.5) <= 0.05
        assert abs(np.mean(seen) - 0.8) < 0.06

    def test_no_drop_of_four_items(self) -> None:
        assert diff(*two(0, 0, 4)).smallest_drop is None


class TestSlicesAndRanks:
    def test_slices_are_corrected(self) -> None:
        frame = pd.DataFrame({"id": range(200), "score": 1.0, "tag": ["a", "b"] * 100})
        after = frame.assign(score=[0.0 if i % 2 == 0 and i < 20 else 1.0 for i in range(200)])
        found = diff(read(frame, by="tag"), read(after, by="tag"))
        assert [(each.name, each.worse, each.items) for each in found.slices] == [("a", True, 100), ("b", False, 100)]

    def test_a_slice_at_the_uncorrected_level_is_not_worse(self) -> None:
        """Five losses: 1 in 32, above .05 / 2."""
        frame = pd.DataFrame({"id": range(200), "score": 1.0, "tag": ["a", "b"] * 100})
        after = frame.assign(score=[0.0 if i % 2 == 0 and i < 10 else 1.0 for i in range(200)])
        assert not any(each.worse for each in diff(read(frame, by="tag"), read(after, by="tag")).slices)

    def test_ranks(self) -> None:
        base = run([1.0] * 100 + [0.0] * 100)
        good, bad = run([1.0] * 150 + [0.0] * 50), run([1.0] * 50 + [0.0] * 150)
        found = rank(base, [bad, good])
        assert [(best, worst) for _, best, worst in found.ranks] == [(2, 2), (3, 3), (1, 1)]
        assert [each.verdict for each in found.differences] == ["not worse", "worse"]
        assert found.differences[0].level == 0.025
        assert found.exit() == 0

    def test_equal_runs_share_all_ranks(self) -> None:
        base = run([1.0, 0.0] * 20)
        assert {ranks[1:] for ranks in rank(base, [base, base]).ranks} == {(1, 3)}


class TestRefusals:
    def test_nothing_in_common(self) -> None:
        with pytest.raises(EvaluationFileError, match="the candidate: None of its items is in the base"):
            diff(run([1.0] * 5), run([1.0] * 5, start=10))

    def test_a_table_that_lost_rows(self) -> None:
        with pytest.raises(EvaluationFileError) as failed:
            diff(run([1.0] * 100), run([1.0] * 34))
        assert str(failed.value) == (
            "the candidate: 66 of 100 items have no score in both runs (the base has 100 items, the candidate 34). "
            "Run the missing ones, such as '34'."
        )
        with pytest.raises(
            EvaluationFileError, match=r"Run the missing ones, such as '92', or pass allow_missing=8\.$"
        ):
            diff(run([1.0] * 100), run([1.0] * 92))
        assert diff(run([1.0] * 100), run([1.0] * 34), allow_missing=66).items == 34

    def test_runs_of_different_items(self) -> None:
        """93 of 100 is no percentage to allow; an item of each run shows the mistake."""
        with pytest.raises(EvaluationFileError) as failed:
            diff(run([1.0] * 60), replace(run([1.0] * 47, start=53), name="pr.csv"))
        assert str(failed.value) == (
            "pr.csv: 93 of 100 items have no score in both runs (the frame has 60 items, pr.csv 47). Only the frame "
            "has '0', and only pr.csv has '60'. Pass runs of the same items, or name the field that identifies items "
            "by item=."
        )
        guarded = replace(run([1.0] * 60), known_as=tuple(map(str, range(60))))
        with pytest.raises(EvaluationFileError, match=r"candidate 47\)\. Only the candidate has '60'\. Pass"):
            diff(guarded, run([1.0] * 47, start=53))

    def test_errors_are_missing_and_refused(self) -> None:
        base, candidate = run([1.0] * 100), run([1.0] * 97 + [math.nan] * 3)
        with pytest.raises(EvaluationFileError, match=r"3 of 100 samples have no score, at items '97', '98', '99'"):
            diff(base, candidate)
        with pytest.raises(EvaluationFileError, match=r"3 of 100 samples have no score\. Run"):
            diff(candidate, base)  # the base may be a guard's secret
        found = diff(base, candidate, allow_missing=3)
        assert (found.items, found.errors, found.difference) == (97, (0, 3), 0.0)

    def test_a_failed_sample_does_not_count_as_zero(self) -> None:
        base = run([1.0] * 100)
        assert diff(base, run([1.0] * 99 + [math.nan])).difference == 0.0

    def test_errors_prove_nothing(self) -> None:
        """10 items of 1,000 without a score, and 4 losses: 14 losses at worst, which a drop of 2 points has in 10 %."""
        assert stats.binom.cdf(14, 1000, 0.02) > 0.05
        base, four = [1.0] * 1000, [0.0] * 4
        assert diff(run(base), run(four + [1.0] * 996)).verdict == "not worse"
        assert diff(run(base), run(four + [1.0] * 986 + [math.nan] * 10)).verdict == "unclear"
        lost = run(four + [1.0] * 986 + [0.0] * 10)
        assert diff(run([1.0] * 990 + [math.nan] * 10), lost).verdict == "unclear"

    def test_an_item_that_is_not_there_is_lost_at_worst(self) -> None:
        worst = pair(run([1.0, 0.0, 1.0]), run([1.0, 1.0]), allow_missing=50).worst
        assert worst is not None
        assert worst.differences.tolist() == [0.0, 1.0, -1.0]

    def test_a_sample_without_a_score_is_lost_at_worst(self) -> None:
        """Of two samples each, one has no score: the candidate's counts as 0, the base's as 1."""
        base = run([1.0, 1.0, 0.0, 0.0], repeats=2)
        found = pair(base, replace(base, samples=np.array([2, 1, 2, 2]), missing=np.array([0, 1, 0, 0])), 100).worst
        assert found is not None
        assert found.differences.tolist() == [0.0, -0.5, 0.0, 0.0]
        found = pair(replace(base, samples=np.array([2, 2, 2, 1]), missing=np.array([0, 0, 0, 1])), base, 100).worst
        assert found is not None
        assert found.differences.tolist() == [0.0, 0.0, 0.0, -0.5]

    def test_other_content_under_a_name(self) -> None:
        base = replace(run([1.0] * 3), contents=("a", "b", "b"))
        with pytest.raises(EvaluationFileError, match="Item '1' has other content"):
            diff(base, replace(base, contents=("a", "c", "b")))

    def test_renumbered_items_are_matched_by_content(self) -> None:
        base = replace(run([1.0, 0.0]), contents=("a", "b"))
        assert diff(base, replace(run([0.0, 1.0]), contents=("b", "a"))).difference == 0.0

    def test_clusters_that_differ(self) -> None:
        with pytest.raises(EvaluationFileError, match="is in cluster 'y', but in 'x'"):
            diff(run([1.0], ["x"]), run([1.0], ["y"]))

    def test_another_metric_range_or_judge(self) -> None:
        base = run([1.0, 0.0])
        with pytest.raises(InputError, match="metric"):
            diff(base, replace(base, metric="other"))
        with pytest.raises(InputError, match="range"):
            diff(base, replace(base, scale=(0.0, 5.0)))
        with pytest.raises(EvaluationFileError, match="settings of scorer score"):
            diff(replace(base, judge="a"), replace(base, judge="b"))

    @for_each("margin", [0.0, 1.0, -0.1, math.nan])
    def test_margins(self, margin: float) -> None:
        with pytest.raises(InputError, match="margin"):
            diff(run([1.0]), run([1.0]), margin=margin)

    @for_each(("margin", "said"), [(0.0002, "0.02 points, which is 0.0002"), (0.5, "50 points, which is 0.5")])
    def test_a_margin_in_another_unit_is_likely_a_mistake(self, margin: float, said: str) -> None:
        with pytest.warns(LikelyMistakeWarning, match=f"The margin is {said} of the range of scores. For two points"):
            diff(run([1.0]), run([1.0]), margin=margin)
        with pytest.warns(LikelyMistakeWarning, match=said):
            rank(run([1.0]), [run([1.0])], margin=margin)

    def test_runs_with_equal_names_are_numbered(self) -> None:
        one = run([1.0] * 5)
        assert [name for name, _, _ in rank(one, [one, one]).ranks] == ["the base", "candidate 1", "candidate 2"]
        named = [replace(one, name=name) for name in "abc"]
        assert [name for name, _, _ in rank(named[0], named[1:]).ranks] == ["a", "b", "c"]


class TestCommandLine:
    @staticmethod
    def command(*arguments: str | float | Path) -> Result:
        return CliRunner().invoke(main, ["eval", "diff", *map(str, arguments)])

    def test_one_line(self) -> None:
        done = self.command(
            KEPT / "inspect_main.eval",
            KEPT / "inspect_pr.eval",
            "--metric",
            "match",
            "--cluster",
            "metadata.passage_id",
        )
        first = done.output.splitlines()[0]
        assert first == "+8.3 points [-18.2, +34.9], 12 items in 4 clusters, 1 sample each: unclear"
        assert done.exit_code == 3

    def test_json(self, tmp_path: Path) -> None:
        for name, right in (("base", 80), ("candidate", 60)):
            frame = pd.DataFrame({"id": range(100), "score": [1] * right + [0] * (100 - right)})
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        done = self.command(tmp_path / "base.csv", tmp_path / "candidate.csv", "--format", "json")
        assert self.command(tmp_path / "base.csv", tmp_path / "candidate.csv", "--json").output == done.output
        twice = self.command(tmp_path / "base.csv", tmp_path / "candidate.csv", "--json", "--format", "junit")
        assert (twice.exit_code, "exclude each other" in twice.output) == (2, True)
        found = json.loads(done.output)
        assert done.exit_code == found["exit"] == 1
        low, high = found["interval"].pop("low"), found["interval"].pop("high")
        assert -0.29 < low < -0.2 < high < -0.11
        assert 0.05 < found.pop("smallest_drop") < 0.15
        assert found == {
            "schema": "thresholdout.eval.diff/1",
            "metric": "score",
            "items": 100,
            "samples": {"base": 1, "candidate": 1},
            "errors": {"base": 0, "candidate": 0},
            "clusters": 100,
            "difference": pytest.approx(-0.2),
            "interval": {"level": 0.95},
            "verdict": "worse",
            "test": "sign test",
            "assumption": "scores are treated as 0/1, since all of them are; with other values the level doubles",
            "margin": 0.02,
            "exit": 1,
        }

    def test_exit_codes(self, tmp_path: Path) -> None:
        main_log, pr_log = KEPT / "inspect_main.eval", KEPT / "inspect_pr.eval"
        assert self.command(main_log, main_log, "--metric", "match").exit_code == 0
        assert self.command(main_log, pr_log, "--metric", "match", "--allow-unclear").exit_code == 0
        assert self.command(main_log, pr_log, "--metric", "nothing").exit_code == 2
        assert self.command(main_log, pr_log, "--only", "x").exit_code == 2
        assert self.command(main_log, tmp_path / "none.eval", "--metric", "match").exit_code == 4
        assert self.command(main_log, KEPT / "inspect_errors.eval", "--metric", "match").exit_code == 4

    def test_an_error_is_one_line(self) -> None:
        done = self.command(KEPT / "inspect_main.eval", KEPT / "inspect_errors.eval", "--metric", "match")
        assert done.output.count("\n") == 1
        assert "1 of 12 samples have no score, at items '3'" in done.output
        assert "pass --allow-missing 9" in done.output, "the command line names its option"

    def test_the_unit_of_a_margin(self, tmp_path: Path) -> None:
        for name in ("base", "candidate"):
            pd.DataFrame({"id": range(300), "score": [1] * 300}).to_csv(tmp_path / f"{name}.csv", index=False)
        pair = tmp_path / "base.csv", tmp_path / "candidate.csv"
        done = self.command(*pair, "--margin", 0.02)
        assert done.stderr == (
            "note: The margin is 0.02 points, which is 0.0002 of the range of scores. For two points pass 0.02 in "
            "Python and 2 on the command line.\n"
        )
        assert "level 0.05, margin 0.02 points\n" in done.stdout
        done = self.command(*pair, "--margin", 1.5, "--any-laws")
        assert (done.stderr, ": not worse by 1.5 points\n" in done.stdout) == ("", True)
        assert self.command(*pair, "--margin", 200).exit_code == 2

    def test_words(self) -> None:
        """None of the words of holdouts stands in what the commands print."""
        done = [
            self.command(KEPT / "promptfoo_main.json", KEPT / "promptfoo_pr.json", "--format", form)
            for form in ("text", "markdown", "json", "junit")
        ]
        said = "".join(each.output for each in [*done, CliRunner().invoke(main, ["eval", "diff", "--help"])])
        assert not re.search(r"\b(holdouts?|labels?|ledgers?|nats|claims?)\b", said, re.IGNORECASE)


def test_junit_is_xml() -> None:
    base, candidate = two(0, 9, 9)
    for found, tests in ((diff(base, candidate), "1"), (rank(base, [candidate, base]), "2")):
        root = ElementTree.fromstring(formats.as_junit(found))
        assert (root.tag, root.attrib["tests"], root.attrib["failures"]) == ("testsuite", tests, tests)


def test_markdown_keeps_its_table() -> None:
    base, candidate = two(0, 9, 9)
    text = formats.as_markdown(diff(base, replace(candidate, name="a|b\nc")))
    assert "| a\\|b c | -50.0 |" in text
