"""Texts name commands, and options, that the command line has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest

from tests.documents import PAGES, ROOT
from thresholdout.cli import main

OTHERS = {
    "--force-reinstall": "pip",
    "--log-format": "inspect",
    "--no-deps": "pip",
    "--program": "the evaluator file that is written for evolved programs",
    "--results": "the evaluator file that is written for evolved programs",
}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something, with its words."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from commands(below, (*path, name))
    else:
        yield path, command


def options(command: click.Command) -> set[str]:
    found = {"--help"}
    for parameter in command.params:
        found.update(parameter.opts, parameter.secondary_opts)
    return found


COMMANDS = dict(commands(main))
GROUPS = {path[:k] for path in COMMANDS for k in range(len(path))}
KNOWN = {"--version"}.union(*(options(command) for command in COMMANDS.values()))


def strings() -> Iterator[tuple[str, str]]:
    """Yield each text in the package, with its file."""
    for path in sorted((ROOT / "thresholdout").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield str(path.relative_to(ROOT)), node.value
    for path in sorted((ROOT / "thresholdout").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        yield str(path.relative_to(ROOT)), re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def calls(text: str) -> Iterator[str]:
    """Yield what a text calls: words between backticks or code tags, and lines of their own."""
    text = text.replace("\\\n", " ")
    for pattern in (r"`(thresholdout [^`]+)`", r"<code>(thresholdout [^<]+)</code>"):
        for found in re.finditer(pattern, text):
            yield " ".join(found[1].split())
    for found in re.finditer(
        r"^ *(?:\$ )?(thresholdout [a-z]+ [a-z-]+ [^`\n]+|thresholdout (?:plan|demo|serve)[^`\n]*)$", text, re.M
    ):
        yield found[1]
    for found in re.finditer(r"\((thresholdout [a-z]+ [^`\n)]+)", text):
        yield found[1]


def wrong(call: str) -> str | None:
    """Return what a call names that does not exist."""
    words = call.partition(" #")[0].split()[1:]
    path: tuple[str, ...] = ()
    while words and path in GROUPS and re.fullmatch(r"[a-z|-]+", words[0]) and not words[0].startswith("-"):
        path = (*path, words.pop(0).split("|")[0])
    if path in GROUPS:
        unknown = {word for word in words if OPTION.fullmatch(word)} - {"--help", "--version"}
    elif path in COMMANDS or path[:-1] in COMMANDS:
        command = COMMANDS.get(path, COMMANDS.get(path[:-1]))
        assert command is not None
        unknown = set(OPTION.findall(" ".join(words))) - options(command)
    else:
        return f"{call}: no command {' '.join(path)}"
    return f"{call}: no option {', '.join(sorted(unknown))}" if unknown else None


def test_a_wrong_call_is_found() -> None:
    assert wrong("thresholdout guard score guard.db predictions.csv --client ann") is None
    assert wrong("thresholdout ledger verify") is None
    assert wrong("thresholdout admin token new|list|revoke --database leaderboard.db") is None
    assert wrong("thresholdout ask guard.db") == "thresholdout ask guard.db: no command ask"
    assert wrong("thresholdout guard ask x") == "thresholdout guard ask x: no command guard ask"
    assert wrong("thresholdout plan --looks 3") == "thresholdout plan --looks 3: no option --looks"
    assert list(calls("see `thresholdout plan\n--records 3`, or\n    $ thresholdout demo\n")) == [
        "thresholdout plan --records 3",
        "thresholdout demo",
    ]


@pytest.mark.slow
def test_every_command_that_a_text_of_the_package_names_exists() -> None:
    found = [(file, call) for file, text in strings() for call in calls(text)]
    assert {call.split()[1] for _, call in found} >= {"guard", "ledger", "admin"}
    assert [(file, wrong(call)) for file, call in found if wrong(call)] == []


def test_every_command_that_a_page_names_exists() -> None:
    pages = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
    found = [(name, call) for name, text in pages.items() for call in calls(text)]
    named = {" ".join(call.split()[1:3]) for _, call in found}
    assert named >= {"guard score", "guard close", "ledger receipt", "ledger witness", "ledger backup", "admin phase"}
    assert [(name, wrong(call)) for name, call in found if wrong(call)] == []


@pytest.mark.slow
def test_every_option_that_a_text_names_exists() -> None:
    named = {option for _, text in strings() for option in OPTION.findall(text)}
    assert "--allow-duplicates" in named & KNOWN
    assert named - KNOWN == {*OTHERS}
