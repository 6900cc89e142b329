"""How the tests run commands."""

from __future__ import annotations

from click.testing import CliRunner, Result

from thresholdout.cli import main

N = 1500
"""Records in each part."""


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def create(*more: str, code: int = 0) -> Result:
    parts = ("--train", "train.csv", "--holdout", "holdout.csv", "--label", "y")
    limits = () if "--mechanism" in more else ("--holdout-answers", "2")
    return run("guard", "create", "guard.db", *parts, "--queries", "100", *limits, *more, code=code)
