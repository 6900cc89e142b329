"""Texts name options that the command line has."""

from __future__ import annotations

import ast
import re

import click

from tests.documents import ROOT
from thresholdout.cli import main

OTHERS = {
    "--force-reinstall": "pip",
    "--no-deps": "pip",
    "--program": "the evaluator file that is written for evolved programs",
    "--results": "the evaluator file that is written for evolved programs",
}


def options(command: click.Command, found: set[str]) -> set[str]:
    """Return the options of a command and of all commands below."""
    context = click.Context(command)
    for parameter in command.get_params(context):
        found.update(parameter.opts, parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            options(below, found)
    return found


def test_every_option_that_a_text_names_exists() -> None:
    known = options(main, set())
    assert "--allow-equal-rows" in known
    named = set()
    for path in sorted((ROOT / "thresholdout").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.update(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", node.value))
    assert "--allow-equal-rows" in named
    assert named - known == {*OTHERS}
