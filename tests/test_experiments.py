"""Experiments run; their committed results hold what is claimed, and agree with the numbers in the documents."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import benchmarks.experiments.__main__ as driver
from benchmarks.experiments.__main__ import EXPERIMENTS, main, run
from benchmarks.experiments.documents import disagreements, quoted
from benchmarks.experiments.outcome import RESULTS, Number, markdown, mean_number, share_limits, share_number, summary
from benchmarks.experiments.scaling import sorting
from benchmarks.experiments.side_by_side import published_gaussian
from benchmarks.prices.summary import known
from tests.cases import for_each
from tests.documents import PAGES
from tests.sizes import corners
from thresholdout.simulation import run_experiment

KNOWN = summary()


def value(key: str) -> float:
    return float(KNOWN[key]["value"])


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(EXPERIMENTS, 2))
def test_every_experiment_runs_and_has_the_numbers_of_its_results(name: str, tmp_path: Path) -> None:
    outcome = run(name, "tiny")
    outcome.write(tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert len(pd.read_csv(tmp_path / f"{name}.csv")) >= 1
    committed = {key for key in KNOWN if key.startswith(f"{name}.")}
    written = json.loads((tmp_path / "summary.json").read_text())
    assert set(written) == committed == {f"{name}.{quantity}" for quantity in outcome.numbers}
    for suffix in (".png", ".csv", ".md"):
        assert (RESULTS / f"{name}{suffix}").exists()


def test_feature_selection_keeps_its_promises() -> None:
    assert 0.12 <= value("feature_selection.optimism_naive") <= 0.145
    assert value("feature_selection.optimism_guard") <= 0.015
    assert abs(value("feature_selection.optimism_planned")) <= value("feature_selection.planned_width")
    assert value("feature_selection.reported_guard_signal") >= value("feature_selection.fresh_naive_signal") - 0.01
    assert (
        abs(value("feature_selection.optimism_planned_signal"))
        <= 0.02
        < value("feature_selection.optimism_naive_signal")
    )
    assert value("feature_selection.seconds") <= 8.0  # 2.7 of them for 10,051 claims


@for_each("kind", ["groups", "chain", "social_tree"])
def test_ignored_dependence_breaks_promises_and_known_dependence_keeps_them(kind: str) -> None:
    assert value(f"dependent.at_least_ignoring_{kind}") > 0.25  # beta is 0.05
    assert value(f"dependent.at_most_knowing_{kind}") <= 0.05


def test_declared_networks_keep_their_promises_and_labels_show_some_that_are_too_weak() -> None:
    assert value("networks.at_most_declared") <= 0.06  # beta is 0.05; no broken session of 80
    assert value("networks.broken_declared") == value("networks.warned_declared") == 0.0
    assert value("networks.warned_independent") == 0.0 < value("networks.broken_independent")
    assert value("networks.unseen_too_weak") < value("networks.broken_too_weak") / 2


def test_promises_hold_under_attack_and_sharper_routes_are_no_worse() -> None:
    assert value("coverage.at_most") <= 0.1  # beta of benchmarks.attacks
    assert value("sharper.budget_ratio_least") >= 1.0 - 1e-6
    assert value("sharper.tolerance_ratio_least") > 1.0
    honest = "side_by_side.{}_honest_search_claims"
    assert value(honest.format("answered")) == 21.0
    assert value(honest.format("error")) <= value(honest.format("width"))


@for_each("way", ["scorer", "list"])
def test_guarded_searches_choose_as_well_as_cross_validation(way: str) -> None:
    assert value(f"search_choices.lower_{way}_all") > -0.003


def test_agents_behind_a_gate_keep_what_is_better() -> None:
    """The page says: one false certificate of more than 500, and intervals that hold; at most 0.05 may be broken."""
    assert value("agents.false") / value("agents.certificates") <= 0.05
    assert value("agents.outside") <= 0.05
    for size in (75, 200, 650, 2_000, 20_000):
        assert value(f"agents.wrong_gate_{size}") <= 0.05 < value(f"agents.wrong_none_{size}")
        assert value(f"agents.gap_published_{size}") > value(f"agents.gap_variant_{size}")
        assert value(f"agents.gap_variant_{size}") > value(f"agents.gap_none_{size}") + 0.01


QUOTED = {path.stem.removeprefix("quoted_"): path.read_text(encoding="utf-8") for path in RESULTS.glob("quoted_*.txt")}
"""The passages of each page that quote results, by the page's name."""


@for_each("name", sorted(QUOTED))
def test_the_pages_agree_with_the_results(name: str) -> None:
    (page,) = (page for page in PAGES if page.stem == name)
    assert disagreements(page.read_text(encoding="utf-8"), QUOTED[name], KNOWN | known()) == []


@for_each(("name", "least"), [("measurements", 240), ("start", 40)])
def test_pages_of_numbers_say_where_they_come_from(name: str, least: int) -> None:
    (page,) = (page for page in PAGES if page.stem == name)
    assert len(list(quoted(page.read_text(encoding="utf-8"), QUOTED[name]))) > least


RESULT = {
    "a.b": {"value": 0.132, "se": 0.003},
    "c.d": {"value": 12_345.0, "se": 0.0},
    "e.f": {"value": 0.05, "se": math.inf},
}


@for_each(
    ("text", "passages", "wrong"),
    [
        ("nothing is quoted", "", 0),
        ("optimism 0.13 here", "optimism {a.b} here", 0),
        ("| **0.14** | 12,345 |", "| {a.b}** | {c.d} |", 0),
        ("in 13 % of all", "in {a.b} of", 0),
        ("one 0.15, two 0.13", "two {a.b}", 0),
        ("optimism 0.15", "optimism {a.b}", 1),
        ("in 15 % of all", "in {a.b} of", 1),
        ("optimism -0.132", "optimism {a.b}", 1),
        ("12,346 records", "{c.d} records", 1),
        ("12,345 and 0.2", "{c.d} and {a.b}", 1),
        ("a 0.13, b 0.2; a 0.2, b 0.13", "a {a.b}, b\na {a.b}, b", 1),
        ("none 0.1", "none {a.none}", 1),
        ("none 0.05", "none {e.f}", 1),
    ],
)
def test_a_wrong_number_in_a_text_is_found(text: str, passages: str, wrong: int) -> None:
    assert len(disagreements(text, passages, RESULT)) == wrong


@for_each(
    ("text", "passages"),
    [
        ("a 0.1", "a 0.1"),
        ("a 0.1", "b {a.b}"),
        ("a 0.13 b", "a {a.b} c"),
        ("a 0.135", "a {a.b}5"),
        ("b 1, a 1", "a {a.b}\nb {a.b}"),
    ],
)
def test_passages_that_a_text_does_not_have_are_errors(text: str, passages: str) -> None:
    with pytest.raises(ValueError, match="behind the passage before"):
        list(quoted(text, passages))


def test_limits_of_shares_are_exact() -> None:
    """At a limit, as many events or more (or as few or fewer) have probability 0.01: sums of binomial terms."""
    low, high = share_limits(3, 20)
    above = sum(math.comb(20, k) * low**k * (1 - low) ** (20 - k) for k in range(3, 21))
    below = sum(math.comb(20, k) * high**k * (1 - high) ** (20 - k) for k in range(4))
    assert (above, below) == pytest.approx((0.01, 0.01))
    assert share_limits(0, 200) == pytest.approx((0.0, 1 - 0.01 ** (1 / 200)))
    assert share_limits(5, 5)[1] == 1.0


def test_standard_errors() -> None:
    assert mean_number([1.0, 2.0, 6.0]) == pytest.approx(Number(3.0, math.sqrt(7 / 3)))
    assert mean_number([1.0]).se == math.inf
    assert share_number([False] * 10).se > 0.0


def test_the_published_gaussian_beats_none_of_its_own_settings() -> None:
    """[R20, Theorem 2.1] at arbitrary x and lambda is never below what is reported as its best."""
    width, std = published_gaussian(2000, 420, 0.05)
    for x in (0.05, 0.2, 1.0, 5.0):
        for rate in (0.1, 0.5, 0.9):
            spread = math.sqrt(420 / (8 * 2000 * x)) * math.sqrt(2 * math.log(4 * 420 / 0.05))
            assert width <= math.sqrt((2 * x - math.log(1 - rate)) / (2 * 2000 * rate * 0.05)) + spread
    assert 0.0 < std < width


@pytest.mark.slow
def test_the_driver_writes_what_it_is_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    monkeypatch.setattr(driver, "run", lambda name, size, jobs, folder: run(name, "tiny", jobs, folder))
    arguments = ["--only", "sharper", "--jobs", "1", "--folder", str(tmp_path / "cells"), "--results", str(tmp_path)]
    main(arguments)
    first = (tmp_path / "summary.json").read_text()
    capsys.readouterr()
    main(arguments)  # from the kept cells
    assert (tmp_path / "summary.json").read_text() == first
    assert "### Budget for a leakage target" in capsys.readouterr().out


@pytest.mark.slow
def test_numbers_without_chance_are_what_the_code_says_now() -> None:
    for quantity, number in run("sharper", "quick").numbers.items():
        assert number.value == pytest.approx(value(f"sharper.{quantity}"), rel=1e-4)


def test_tables_are_markdown() -> None:
    table = pd.DataFrame({"a": ["x", "y"], "b": [np.nan, 1e-5], "c": [True, False], "d": [1_000_000, 2]})
    assert markdown(table).splitlines()[2:] == ["| x |  | yes | 1,000,000 |", "| y | 1e-05 | no | 2 |"]


@pytest.mark.slow
def test_the_sweep_that_is_timed_is_the_same_with_two_workers() -> None:
    one, two = (run_experiment(sorting, {"rounds": [2]}, 4, n_jobs=jobs, progress=False) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one, two)
