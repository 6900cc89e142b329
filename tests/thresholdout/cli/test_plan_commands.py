"""Commands that need no ledger."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from graphs import Groups, MarkovChain, MarkovField
from graphs.numerics.rounding import shown_above, shown_below
from tests.thresholdout.cli.running import run
from thresholdout import plan


def test_a_leaderboard_is_planned_with_the_error_of_guesses() -> None:
    said = run("plan", "--records", "10000", "--teams", "200", "--anticipation-error", "0.02").output
    assert "200 teams that guess their scores 0.02 too high; with exact guesses" in said


def test_limits_and_correlation_are_those_of_the_library() -> None:
    words = ("--queries", "1", "--batch", "--correlation", "0.1", "--limits", "normal", "--json")
    shown = json.loads(run("plan", "--records", "1500", "--group-size", "5", *words).output)
    model = Groups([k // 5 for k in range(1500)])
    same = plan(model, queries=1, adaptive=False, correlation=0.1, limits="normal")
    assert shown == json.loads(json.dumps(same.to_json()))
    assert "approximate, not guaranteed" in shown["warnings"][0]


@pytest.mark.slow
def test_plan_says_what_the_library_says() -> None:
    planned = plan(2000, queries=100, anticipated_score=0.95, n_train=500)
    said = run(
        "plan", "--records", "2000", "--queries", "100", "--anticipated-score", "0.95", "--n-train", "500"
    ).output
    assert said.startswith(planned.recommendation + "\n" + planned.warnings[0] + "\nAsk: guard.score(model)")
    assert "single; needs" in said
    assert f"\n{planned.division}\n" in said
    (final,) = (way.half_width for way in planned.ways if way.name == "single")  # the same number wherever it is said
    assert said.count(f"± {shown_above(final, 2)}") == 2
    assert f"one final evaluation has ± {shown_above(final, 2)}" in planned.recommendation
    assert f"* ± {shown_above(planned.half_width, 2):<8} adaptive; needs nothing" in said
    words = ("plan", "--records", "1000", "--group-size", "5", "--batch", "--queries", "20", "--confidence", "0.9")
    shown = json.loads(run(*words, "--json").output)
    same = plan(Groups([k // 5 for k in range(1000)]), queries=20, adaptive=False, confidence=0.9)
    assert shown == json.loads(json.dumps(same.to_json()))
    assert shown["recommended"] == "batch"
    after = run("plan", "--records", "2000", "--queries", "20", "--prior-queries", "3").output
    assert after.startswith(plan(2000, queries=20, prior_queries=3).recommendation)


@pytest.mark.slow
def test_plan_solves_for_what_is_left_out() -> None:
    records = run("plan", "--width", "0.03", "--queries", "100").output
    assert records.startswith(f"{plan(width=0.03, queries=100).records:,} records: ask a guard")
    assert "(± 0.03: 3," in records
    queries = run("plan", "--records", "2000", "--width", "0.02", "--batch").output
    assert f"{plan(2000, width=0.02, adaptive=False).queries:,} queries at a score near 0.9" in queries
    assert "do not put even one answer" in run("plan", "--records", "100", "--width", "0.0001", code=4).output


@pytest.mark.slow
def test_plan_by_dependence() -> None:
    assert "Algorithm 1; needs" in run("plan", "--records", "10000", "--window", "3", "--budget", "1").output
    run("plan", code=2)
    windows = run("plan", "--width", "0.1", "--window", "3", "--batch", "--queries", "20").output
    assert windows.startswith(
        f"{plan(order=True, window=3, width=0.1, queries=20, adaptive=False).records:,} records: "
    )
    groups = json.loads(run("plan", "--width", "0.1", "--group-size", "4", "--batch", "--json").output)
    assert groups["records"] == plan(lambda n: Groups([k // 4 for k in range(n)]), width=0.1, adaptive=False).records
    run("plan", "--records", "100", "--group-size", "2", "--window", "3", code=2)
    assert "--group-size" in run("plan", "--records", "100", "--group-size", "0", code=2).output
    run("plan", "--records", "0", code=2)
    run("plan", "--records", "100", "--mechanism", "ladder", code=2)


def test_version_and_help() -> None:
    assert "0." in run("--version").output
    assert "guard" in run("--help").output


@pytest.mark.slow
def test_plan_for_an_epsilon_from_a_chain_and_from_edges(tmp_path: Path) -> None:
    (tmp_path / "chain.csv").write_text("next,b,a\na,0.4,0.6\nb,0.7,0.3\n")
    (tmp_path / "edges.csv").write_text("from,to\n" + "".join(f"n{k},n{k // 2}\n" for k in range(2, 1500)))
    chain, edges = str(tmp_path / "chain.csv"), str(tmp_path / "edges.csv")
    common = ("--epsilon", "2", "--queries", "20", "--budget", "2")
    shown = json.loads(run("plan", "--chain", chain, "--records", "1500", *common, "--json").output)
    model = MarkovChain([[0.7, 0.3], [0.4, 0.6]], n=1500)
    assert shown == json.loads(json.dumps(plan(model, epsilon=2.0, queries=20, budget=2).to_json()))
    said = run("plan", "--edges", edges, "--coupling", "0.1", *common).output
    tree = MarkovField.ising(nx.Graph([(f"n{k}", f"n{k // 2}") for k in range(2, 1500)]), 0.1)
    assert f"Epsilon of one record: {shown_below(tree.budget(2.0), 3)} by the best route" in said
    assert "- " + " " * 9 + "single: noise that protects records" in said
    assert "Algorithm 1; needs at most 20 queries" in said
    run("plan", "--edges", edges, code=2)
    run("plan", "--edges", edges, "--coupling", "0.1", "--records", "1500", code=2)
    run("plan", "--chain", chain, "--records", "100", "--window", "3", code=2)
    (tmp_path / "chain.csv").write_text("next,a\na,0.4\nb,0.6\n")
    assert "a first column of labels" in run("plan", "--chain", chain, "--records", "100", code=2).output
