"""The configuration file of a service: options of `serve`, and declarations of holdouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.thresholdout.cli.running import N, run
from thresholdout.service import serving
from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.serving import Serving

CONFIGURATION = """
database = "kept/leaderboard.db"
port = 0
most-megabytes = 3
receipts = false

[[holdout]]
name = "churn"
train = "train.csv"
holdout = "holdout.csv"
label = "y"
allow-duplicates = true
quota = 7
feedback = "verdict"
"""


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Serving]:
    """Run what begins a service, and end there."""
    begun: list[Serving] = []

    def serve(serving: Serving, started: Callable[[str, EvaluationService], None]) -> None:
        begun.append(serving)
        service = serving.opened()
        try:
            started("http://127.0.0.1:1", service)
        finally:
            service.close()

    monkeypatch.setattr(serving, "serve", serve)
    return begun


def written(text: str = CONFIGURATION) -> tuple[str, str]:
    Path("etc/kept").mkdir(parents=True, exist_ok=True)
    for name in ("train.csv", "holdout.csv"):
        Path("etc", name).write_bytes(Path(name).read_bytes())
    Path("etc/leaderboard.toml").write_text(text)
    return "--config", "etc/leaderboard.toml"


@pytest.mark.slow
def test_a_file_declares_a_service(served: list[Serving]) -> None:
    said = run("serve", *written()).output
    assert (
        "The column 'patient' has 300 different values in 1,500 training records, and no groups are declared." in said
    )
    assert f"holdout churn: {N:,} records, verdict by accuracy, open" in said
    assert "API token of the first administrator: in etc/kept/leaderboard.db.admin-token" in said
    (one,) = served
    assert (one.database, one.port, one.receipts) == ("etc/kept/leaderboard.db", 0, False)
    assert one.limits.most_bytes == 3 * 2**20
    again: dict[str, Any] = json.loads(run("serve", *written(), "--port", "8123", "--json").stdout)
    assert again == {
        "address": "http://127.0.0.1:1",
        "database": "etc/kept/leaderboard.db",
        "holdouts": ["churn"],
    }
    assert served[1].port == 8123  # an option beats the file
    (holdout,) = json.loads(run("admin", "holdout", "list", "--database", "etc/kept/leaderboard.db", "--json").output)[
        "holdouts"
    ]
    assert (holdout["name"], holdout["quota"], holdout["feedback"]) == ("churn", 7, "verdict")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("port = 0", "prt = 0", "the file has no setting 'prt'; it has accept-rollback, database,"),
        ("port = 0", "port = 'a'", "'a' is not a valid integer"),
        ("port = 0", "port = [1]", "port must be one value"),
        ("quota = 7", "quotas = 7", "holdout 1 has no setting 'quotas'"),
        ("quota = 7", "quota = 0", "holdout 1: Invalid value for '--quota': 0 is not in the range x>=1"),
        ("quota = 7", "database = 'x.db'", "holdout 1: database belongs above all tables"),
        ('label = "y"', "", "holdout 1: Missing option '--label'"),
        ('name = "churn"', "", "holdout 1: Missing argument 'NAME'"),
        ('train = "train.csv"', 'train = "none.csv"', "none.csv' does not exist"),
        ("[[holdout]]", "[holdout]", "must declare each holdout in a table [[holdout]]"),
        ("port = 0", "port =", "is no TOML file"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_made(
    served: list[Serving], before: str, after: str, words: str
) -> None:
    assert before in CONFIGURATION
    said = " ".join(run("serve", *written(CONFIGURATION.replace(before, after)), code=2).output.split())
    assert words in said
    assert served == []
    assert not Path("etc/kept/leaderboard.db").exists()


def test_a_token_is_not_lost_where_a_holdout_cannot_be_made(served: list[Serving]) -> None:
    said = run("serve", *written(CONFIGURATION.replace('label = "y"', 'label = "z"')), code=4).output
    assert "train must be a table with a column" in said
    assert "token" not in said
    assert not Path("etc/kept/leaderboard.db.admin-token").exists()
    assert "API token of the first administrator" in run("serve", *written()).output
