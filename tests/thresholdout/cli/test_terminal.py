"""Names come from whoever asks: they steer neither a terminal nor a spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.sizes import corners
from tests.thresholdout.cli.running import create, run
from thresholdout.cli.terminal import for_spreadsheet, printable, table

COMMANDS = ["\x1b[2J", "\x1b]0;title\x07", "\x9b1m", "\r", "\x08", "\u202e", "\u2066", "\x7f", "\nguard: all is well"]
FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    " =1",
    "\t=1",
    "\r=1",
    "\uff1d1",
    "a;=1",
    "a, =1",
    "x|@y",
    "=cmd|' /C calc'!A0",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(COMMANDS, 0, 8))
def test_a_name_does_not_steer_the_terminal(folder: Path, name: str) -> None:
    create()
    shown = [run("guard", "score", "guard.db", "right.csv", "--name", f"a{name}").output]
    shown += [run("guard", command, "guard.db").output for command in ("history", "status", "report")]
    run("guard", "score", "guard.db", "right.csv", "--name", f"a{name}", "--json")
    for text in shown:
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        assert "\nguard: all is well" not in text
    assert name.encode("unicode_escape").decode() in shown[0]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["a\x1b[2J.csv", "a\n.csv"])
def test_an_error_does_not_steer_the_terminal(folder: Path, path: str) -> None:
    create()
    for arguments in (("guard", "score", "guard.db", path), ("ledger", "verify", path), ("guard", "status", path)):
        output = run(*arguments, code=2 if "score" in arguments else 4).output
        assert "\x1b" not in output
        assert "a\n.csv" not in output


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(FORMULAS, 0, 6, 9))
def test_a_name_in_a_csv_is_no_formula(folder: Path, name: str) -> None:
    create()
    run("guard", "score", "guard.db", "right.csv", "--name", name)
    run("guard", "history", "guard.db", "--csv", "history.csv")
    text = (folder / "history.csv").read_bytes().decode()
    (row,) = csv.DictReader(text.splitlines())
    cell = row["name"]
    assert cell.endswith("(accuracy)")
    for separator in ("\0", ";", ",", "|", "\t"):
        for part in cell.split(separator):
            assert not part.strip().startswith(("=", "+", "-", "@", "\uff1d"))
    assert text.splitlines()[1].split(",")[0].startswith('"')


def test_text_that_is_neither_stays_as_it_is() -> None:
    for text in ("forest (accuracy)", "Müller 森 x=1, y", "a-b", "'quoted'"):
        assert for_spreadsheet(text) == printable(text) == text


def test_columns_end_below_each_other() -> None:
    assert table(("a", "name"), [(1, "x"), (0.25, None)]).split("\n") == ["   a name", "   1    x", "0.25    -"]
