"""The commands on the pages about receipts and operation exist, with the options that they have there."""

from __future__ import annotations

import re

import click
import pytest

from tests.documents import ROOT
from thresholdout.cli import main

TEXT = "\n".join((ROOT / "docs" / page).read_text() for page in ("receipts.md", "operation.md"))
FENCED = [line for block in re.findall(r"^```\n(.*?)^```", TEXT, re.M | re.S) for line in block.splitlines()]
INLINE = [" ".join(words.split()) for words in re.findall(r"(?<!`)`([^`]+)`(?!`)", TEXT)]
COMMANDS = sorted({line.partition(" #")[0] for line in [*FENCED, *INLINE] if line.startswith("thresholdout ")})


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_is_there(line: str) -> None:
    _, name, *words = line.split()
    command = main.commands[name]
    known = {option for one in command.params if isinstance(one, click.Option) for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_pages_name_commands() -> None:
    names = {line.split()[1] for line in COMMANDS}
    assert names >= {"verify-receipt", "receipt-key", "audit-report", "close", "witness", "backup", "verify", "serve"}
