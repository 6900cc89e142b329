"""The shape of the command line: names, help, exit codes, JSON, completion, and errors that name options."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cases import for_each
from tests.documents import ROOT
from tests.thresholdout.cli.running import create, run
from tests.thresholdout.cli.test_commands_in_texts import COMMANDS, GROUPS
from thresholdout.cli import main
from thresholdout.cli.running import EXIT_CODES, Command, ExitCode, MainCommands
from thresholdout.errors import BudgetExhausted, InputError, LedgerUnusable

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").split("\n## Commands\n")[1]
NAMES = ["demo", "plan", "eval", "guard", "serve", "admin", "ledger", "agent", "privacy"]
WITHOUT_JSON = {("agent", "mcp"), ("ledger", "witness")}
"""Commands that print nothing of their own: one speaks a protocol, one waits for requests."""


def test_there_are_nine_names() -> None:
    assert list(main.commands) == NAMES


def test_the_page_lists_every_command() -> None:
    listed = re.findall(r"^\| `([a-z -]+)` \|", PAGE, re.M)
    assert [tuple(line.split()) for line in listed] == list(COMMANDS)


def test_one_table_of_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.M)
    assert rows == [(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()]
    assert set(EXIT_CODES) == set(ExitCode)
    text = run("--help").output
    assert all(f"  {code:d}  {meaning}" in text for code, meaning in EXIT_CODES.items())


@for_each("path", sorted(GROUPS), ids=" ".join)
def test_the_help_of_a_group_begins_with_its_common_call(path: tuple[str, ...]) -> None:
    text = run(*path, "--help").output.splitlines()
    assert text[4].startswith(f"  thresholdout {' '.join(path)}".rstrip())
    assert run(*path, code=2).output.splitlines()[:5] == text[:5]


@for_each("path", sorted(COMMANDS), ids=" ".join)
def test_help_is_in_short_sentences(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    text = " ".join(re.sub(r"\x08\n(.+\n)+", "", f"{command.help}\n").split())
    texts = [text, *(one.help or "" for one in command.params if isinstance(one, click.Option))]
    for sentence in re.split(r"(?<=[.:;])\s", " ".join(texts)):
        assert len(sentence.split()) <= 30, sentence
    for former in ("asker", "asks", "leaderboard of", "whoever", "risk"):
        assert former not in " ".join(texts).lower()


@for_each("path", sorted(COMMANDS), ids=" ".join)
def test_every_command_prints_json(path: tuple[str, ...]) -> None:
    has = any("--json" in one.opts for one in COMMANDS[path].params)
    assert has == (path not in WITHOUT_JSON)


@pytest.mark.slow
def test_json_of_a_guard_and_its_ledger(folder: Path) -> None:
    def said(*arguments: str) -> Any:
        found = json.loads(run(*arguments, "--json").output)
        assert isinstance(found, dict)
        return found

    made = json.loads(create("--json").stdout)
    identity = made["guard"]
    assert (made["records"], made["ledger"]) == (1500, "guard.db")
    answer = said("guard", "score", "guard.db", "right.csv", "--client", "ann")
    status = said("guard", "status", "guard.db")
    (guard,) = status["guards"]
    assert (guard["guard"], guard["queries"], guard["holdout_answers_left"]) == (identity, 1, 2)
    (row,) = said("guard", "history", "guard.db")["answers"]
    assert (row["value"], row["client"]) == (answer["value"], "ann")
    (first,) = said("guard", "history", "guard.db", "--leaderboard")["leaderboard"]
    assert (first["team"], first["submissions"]) == ("ann", 1)
    assert said("guard", "report", "guard.db") == {"guard": identity, "file": "report.html", "queries": 1}
    verified = said("ledger", "verify", "guard.db")["guards"]
    assert verified == [{"guard": identity, "entries": 1, "checkpoint": guard["checkpoint"]}]
    assert said("ledger", "export", "guard.db", "h.jsonl")["checkpoint"] == guard["checkpoint"]
    assert said("ledger", "import", "other.db", "h.jsonl")["entries"] == 1
    assert said("ledger", "backup", "guard.db", "copy.db")["guards"] == verified
    assert said("ledger", "new-key", "guard.key") == {"file": "guard.key"}
    assert said("ledger", "encrypt", "guard.db", "--key-file", "guard.key") == {"ledger": "guard.db"}
    assert json.loads(run("guard", "status", "copy.db", "--json").output)["encrypted"] is False
    assert said("guard", "close", "copy.db", "--reason", "done")["closed"] == "done"


@pytest.mark.slow
def test_json_of_the_commands_about_privacy() -> None:
    learner = ("--batch-size", "120", "--records", "50000", "--steps", "100")
    found = json.loads(run("privacy", "account", "--noise", "6", *learner, "--json").output)
    shown = run("privacy", "account", "--noise", "6", *learner).output
    assert f"{found['epsilon']:.4f}"[:5] in shown
    assert {one["accountant"] for one in found["accountants"]} >= {"renyi", "distribution"}


@for_each("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    called = CliRunner().invoke(main, [], prog_name="thresholdout", env={"_THRESHOLDOUT_COMPLETE": f"{shell}_source"})
    assert called.exit_code == 0
    assert "thresholdout" in called.output
    assert f"_THRESHOLDOUT_COMPLETE={shell}_source thresholdout" in PAGE


@for_each(
    ("words", "expected"),
    [
        (["thresholdout", "gu"], ["guard"]),
        (["thresholdout", "ledger", "receipt", "v"], ["verify"]),
        (["thresholdout", "guard", "create", "x.db", "--mechanism", "cl"], ["claims"]),
    ],
)
def test_completion_knows_commands_and_choices(words: list[str], expected: list[str]) -> None:
    environment = {
        "_THRESHOLDOUT_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    called = CliRunner().invoke(main, [], prog_name="thresholdout", env=environment)
    assert [line.partition(",")[2] for line in called.output.splitlines()] == expected


def raising(error: BaseException) -> Command:
    def callback(**given: object) -> None:
        raise error

    parameters: list[click.Parameter] = [
        click.Option(["--max-half-width"], type=float),
        click.Option(["--allow-duplicates"], is_flag=True),
        click.Option(["--anticipated-score", "expected"], type=float),
        click.Option(["--train"], type=click.Path()),
        click.Argument(["name"], required=False),
        click.Argument(["events"], type=click.Path(), required=False),
    ]
    return Command("it", callback=callback, params=parameters, library_names={"dataset_size": "--records"})


@for_each(
    ("error", "code", "text"),
    [
        (InputError("max_half_width", -1, "a number"), 2, "--max-half-width must be a number; got -1"),
        (InputError("train", "no rows", "a table"), 4, "--train must be a table; got no rows."),
        (InputError("expected", 3, "max_half_width=0.1"), 2, "--anticipated-score must be --max-half-width 0.1; got 3"),
        (InputError("predictions", "x", "allow_duplicates=True"), 4, "predictions must be --allow-duplicates; got x"),
        (InputError("dataset_size", 3, "max_half_width = 4"), 2, "--records must be --max-half-width 4; got 3"),
        (InputError("x", 3, "train='y'"), 4, "x must be --train y; got 3"),
        (InputError("x", 3, "train=(X, y), train == 3"), 4, "x must be train=(X, y), train == 3; got 3."),
        (InputError("name", "A b", "letters"), 2, "NAME must be letters; got A b"),
        (InputError("events", "text", "TOML"), 4, "EVENTS must be TOML; got text"),
        (LedgerUnusable("guard.db", "it is no ledger"), 4, "guard.db"),
        (OSError(2, "No such file or directory", "x.csv"), 4, "x.csv: No such file or directory"),
        (BudgetExhausted("queries", 3, 3), 5, "All 3 "),
    ],
)
def test_errors_are_in_terms_of_options(error: Exception, code: int, text: str) -> None:
    ended = CliRunner().invoke(raising(error), [])
    assert ended.exit_code == code
    assert text in ended.output
    assert ended.output.startswith("Error: ")
    assert ended.output.count("\n") == 1


@for_each(
    ("error", "code", "text"),
    [
        (KeyError("column"), ExitCode.UNEXPECTED, "Error: an unexpected KeyError. Please report it"),
        (AssertionError(), ExitCode.UNEXPECTED, "Error: an unexpected AssertionError."),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "Interrupted."),
        (click.Abort(), ExitCode.INTERRUPTED, "Interrupted."),
        (InputError("max_half_width", -1, "a number"), ExitCode.USAGE, "Error: --max-half-width"),
    ],
)
def test_no_accident_ends_like_a_verdict(error: BaseException, code: ExitCode, text: str) -> None:
    ended = CliRunner().invoke(MainCommands("thresholdout", members=[raising(error)]), ["it"])
    assert ended.exit_code == code
    assert ended.stderr.splitlines()[-1].startswith(text)
    assert ("Traceback" in ended.stderr) == (code == ExitCode.UNEXPECTED)
    assert ended.stdout == ""


@pytest.mark.slow
@for_each("ending", ["broken", "interrupted", "unread"])
def test_accidents_reach_the_shell(ending: str) -> None:
    """A process of its own: a callback that fails, one that gets the signal of Ctrl-C, and output that nobody reads."""
    bodies = {
        "broken": "raise KeyError('column')",
        "interrupted": "signal.raise_signal(signal.SIGINT)",
        "unread": "[click.echo('line') for _ in range(100_000)]",
    }
    text = (
        "import signal, click\nfrom thresholdout.cli.running import Command, MainCommands\n"
        f"def callback():\n    {bodies[ending]}\n"
        "MainCommands('thresholdout', members=[Command('it', callback=callback)])(['it'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    expected = {"broken": ExitCode.UNEXPECTED, "interrupted": ExitCode.INTERRUPTED, "unread": ExitCode.UNREAD}
    assert process.returncode == expected[ending], said
    assert ("Traceback" in said) == (ending == "broken")
    assert (said == "") == (ending == "unread")


@pytest.mark.slow
def test_the_exit_code_reaches_the_shell(folder: Path) -> None:
    ended = subprocess.run([sys.executable, "-m", "thresholdout", "guard", "status", "missing.db"], capture_output=True)
    assert ended.returncode == ExitCode.FAILED
