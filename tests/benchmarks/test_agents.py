"""Rules for what an agent keeps, on predictions that are made up, and what climbs by them are counted as."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from benchmarks.agents import climbs
from benchmarks.agents.keeping_rules import RULES, Highest, Record
from benchmarks.agents.pipeline_edits import Choices, Fitted, Proposer, fit, repertoire
from benchmarks.agents.small_tasks import Task, draw
from benchmarks.experiments.agents import SHORT, stratified
from benchmarks.experiments.search_choices import lower_limit
from tests.cases import for_each

TRAIN, SLICE = 400, 200
PIPELINES = repertoire(np.random.default_rng(0), 12, 2)


def record(*right: tuple[float, float, float]) -> Record:
    """Return members with their shares right: of the training part refitted, out of fold, and of the slice."""
    y = np.zeros(TRAIN + SLICE, dtype=np.int64)

    def wrong(share: float, size: int) -> np.ndarray:
        return (np.arange(size) >= round(share * size)).astype(np.int8)

    members = [
        Fitted(choices, wrong(fitted, TRAIN), np.concatenate([wrong(folds, TRAIN), wrong(held, SLICE)]))
        for choices, (fitted, folds, held) in zip(PIPELINES, right, strict=False)
    ]
    task = Task(np.zeros((TRAIN + SLICE, 1)), y, TRAIN)
    return Record(task, members, np.arange(TRAIN, TRAIN + SLICE), len(members) - 1, 0)


def kept(name: str, *right: tuple[float, float, float]) -> list[bool]:
    rule = RULES[name](record(*right))
    return [rule.keep(member) for member in range(1, len(right))]


OVERFITTED = ((0.8, 0.8, 0.7), (1.0, 0.6, 0.705), (1.0, 0.6, 0.75))
"""Two pipelines that look perfect where they were fitted; on the slice, 0.7 has a standard error of 0.0324."""


@for_each(
    ("name", "expected"),
    [
        ("none", [True, True]),
        ("one sigma", [False, True]),
        ("the test's variant", [True, True]),  # all differ by more than 0.04, so it tells the slice's scores
        ("cross-validation", [False, False]),
        ("guard, gate", [False, False]),
        ("guard, milestones", [False, False]),
    ],
)
def test_what_rules_keep_of_overfitted_pipelines(name: str, expected: list[bool]) -> None:
    assert kept(name, *OVERFITTED) == expected


def test_the_variant_tells_training_scores_that_are_near() -> None:
    """They differ by 0 and by 0.02, and 0.04 is twenty scales of noise in 100 away from neither: by far within 0.04."""
    rule = RULES["the test's variant"](record((0.9, 0.5, 0.9), (0.95, 0.5, 0.95)))
    assert rule.keep(1)
    assert rule.report().score == 0.95


@for_each("name", ["guard, gate", "guard, milestones"])
def test_gates_keep_and_certify_what_is_better_everywhere(name: str) -> None:
    """All of 80 records that differ speak for the candidate: 2**-80."""
    rule = RULES[name](record((0.6, 0.6, 0.6), (1.0, 1.0, 1.0)))
    assert rule.keep(1)
    report = rule.report()
    assert report.certified == ((0, 1),)
    assert report.score == 1.0
    assert 1.0 - 0.025 ** (1 / SLICE) < 2 * report.half_width < 0.1  # no narrower than a single exact interval


def test_a_final_check_tells_the_slice_and_others_what_they_chose_by() -> None:
    right = ((0.8, 0.8, 0.6), (0.9, 0.9, 0.7))
    reports = {}
    for name in RULES:
        rule = RULES[name](record(*right))
        assert rule.keep(1)
        reports[name] = rule.report()
    assert reports["none"].score == reports["one sigma"].score == 0.7
    assert reports["cross-validation"].score == 0.9
    for name in ("cross-validation, final check", "guard, scores", "guard, gate", "guard, milestones"):
        assert reports[name].score == pytest.approx(0.7)
        assert reports[name].half_width > 0.0


def test_margins_are_those_of_the_champion() -> None:
    scores = [0.5, 0.59, 0.61, 0.65, 0.72]
    rule = Highest(scores.__getitem__, lambda score: 0.1 if score < 0.6 else 0.05)
    assert [rule.keep(member) for member in range(1, 5)] == [False, True, False, True]
    assert rule.report().score == 0.72


def test_climbs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """In cross-validation 2 is better than 0 (0.7, 0.5), 1 is not (0.6), and 3 is (0.8); 2 is worse in truth."""

    class Scripted:
        def __init__(self, members: list[Choices], rng: np.random.Generator) -> None:
            self.order = iter([(0, 2), (2, 1), (2, 3)])

        def next(self, champion: int) -> int:
            expected, proposal = next(self.order)
            assert champion == expected
            return proposal

    monkeypatch.setattr(climbs, "Proposer", Scripted)
    made = record((0.5, 0.5, 0.5), (0.6, 0.6, 0.5), (0.7, 0.7, 0.5), (0.8, 0.8, 0.5))
    found = climbs.climb("cross-validation", made, np.array([0.55, 0.75, 0.5, 0.7]), 0)
    assert found["gap"] == pytest.approx(0.8 - 0.7)
    assert (found["kept"], found["wrong"], found["certified"]) == (2, 1, 0)
    assert (found["missed"], found["gain"]) == pytest.approx((0.05, 0.15))


def test_a_repertoire_is_one_family_and_no_proposal_comes_twice() -> None:
    for place, member in enumerate(PIPELINES[1:], 1):
        assert min(member.edits(earlier) for earlier in PIPELINES[:place]) == 1
    proposer = Proposer(PIPELINES, np.random.default_rng(1))
    assert sorted(proposer.next(0) for _ in range(11)) == list(range(1, 12))


def test_edits_are_counted() -> None:
    assert Choices().edits(Choices()) == 0
    assert Choices().edits(Choices(kind="tree", scaled=True)) == 2


def test_a_pipeline_is_judged_out_of_fold_where_it_was_fitted() -> None:
    """A nearest neighbour is right on all records that it knows, and not on others."""
    task = draw("diabetes", 0)
    assert (len(task.y), task.train) == (442, 150)
    found = fit(Choices(kind="neighbours", level=4), task)
    assert (found.refitted == task.y[:150]).all()
    assert 0.5 < np.mean(found.predictions[:150] == task.y[:150]) < 0.9


def test_standard_errors_are_over_seeds_for_these_tasks() -> None:
    """Task a: 1 and 3 after means over places, variance 2; task b: 4 and 4. sqrt(2/2 + 0/2) / 2 = 0.5."""
    rows = [("a", 0, 0.0), ("a", 0, 2.0), ("a", 1, 3.0), ("b", 0, 4.0), ("b", 1, 4.0)]
    assert stratified(pd.DataFrame(rows, columns=["task", "seed", "gap"]), "gap") == (3.0, 0.5)


def test_names_and_limits() -> None:
    assert list(SHORT) == list(RULES)
    assert climbs.PROPOSALS == 25
    values = [0.01, -0.02, 0.0, 0.005]
    expected = ttest_1samp(values, 0.0, alternative="greater").confidence_interval(0.95).low
    assert math.isclose(lower_limit(values), expected)
