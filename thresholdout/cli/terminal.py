"""What is shown on a terminal, or opened as a spreadsheet: text from others must not steer either of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import click

__all__ = ["for_spreadsheet", "printable", "say", "table"]

_FORMULA: Final = re.compile(r"(^|[;,|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Where a spreadsheet could begin to read a formula: in a cell, or behind what it takes for the end of one."""


def say(text: str, *, err: bool = False) -> None:
    """Print lines, without anything in them that a terminal would take for a command."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def printable(text: str) -> str:
    """Return text whose invisible characters are written as in Python: an escape is ``\\x1b``.

    Examples
    --------
    >>> printable("forest \\x1b[2J")
    'forest \\\\x1b[2J'
    """  # noqa: D301
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def for_spreadsheet(text: str) -> str:
    """Return text that no spreadsheet takes for a formula; an apostrophe marks it as text.

    Examples
    --------
    >>> for_spreadsheet("=1+1"), for_spreadsheet("forest (accuracy)")
    ("'=1+1", 'forest (accuracy)')
    """
    return _FORMULA.sub(r"\1\2'", printable(text))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return lines of columns that end below each other; numbers have six digits, and what is missing is a dash."""
    lines = [tuple(header), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = " ".join(f"{{:>{width}}}" for width in widths).format
    return "\n".join(form(*line) for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else printable(str(value))
