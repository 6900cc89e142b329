"""Commands that need no ledger."""

from __future__ import annotations

from tests.thresholdout.cli.running import run


def test_plan_in_each_direction() -> None:
    by_records = run("plan", "--records", "10000", "--queries", "1000", "--budget", "10").output
    assert by_records.startswith("10,000 records, 1,000 questions: Guard the holdout")
    assert "splitting" in by_records
    grouped = run("plan", "--records", "10000", "--group-size", "5", "--budget", "1").output
    assert grouped != by_records
    assert "thresholdout: threshold 0." in by_records
    many = run("plan", "--records", "10000", "--queries", "1000", "--budget", "200").output
    assert "gaussian: standard deviation of the last answer 0." in many
    few = ("plan", "--records", "1000", "--queries", "2", "--budget", "2")
    assert "splitting: 500 records for each question" in run(*few, "--identically-distributed").output
    assert "Answer every question from the holdout" in (plain := run(*few).output)
    assert "The truth of a question is the average over all records of the holdout" in plain
    run("plan", "--records", "10000", "--window", "3")
    run("plan", "--tolerance", "0.1", "--budget", "1")
    run("plan", "--records", "100000", "--tolerance", "0.1")
    run("plan", "--records", "100", "--tolerance", "0.0001", code=1)
    run("plan", code=2)
    run("plan", "--tolerance", "0.1", "--window", "3", code=2)
    run("plan", "--records", "100", "--group-size", "2", "--window", "3", code=2)
    assert "--group-size" in run("plan", "--records", "100", "--group-size", "0", code=2).output
    run("plan", "--records", "0", code=2)


def test_plans_that_answer_everything_from_the_holdout() -> None:
    some = run("plan", "--all", "--records", "10000", "--queries", "100").output
    assert some.startswith("10,000 records, 100 questions: ")
    solved = run("plan", "--all", "--records", "100000", "--tolerance", "0.1").output
    assert int(solved.split(" records, ")[1].split()[0].replace(",", "")) > 73_964
    assert ", 100 questions: " in run("plan", "--all", "--queries", "100", "--tolerance", "0.1").output
    assert "not both" in run("plan", "--all", "--records", "100", "--budget", "3", code=2).output


def test_version_and_help() -> None:
    assert "0." in run("--version").output
    assert "create" in run("--help").output
