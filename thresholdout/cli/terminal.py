"""Output to terminals and spreadsheets, which text from others must not control."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import click

__all__ = ["for_spreadsheet", "printable", "say", "table"]

# Where a spreadsheet could begin to read a formula: in a cell, or behind a character that could end one.
_FORMULA: Final = re.compile(r"(^|[;,|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")


def say(text: str, *, err: bool = False) -> None:
    """Print lines without characters that control a terminal."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def printable(text: str) -> str:
    """Return text with invisible characters escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def for_spreadsheet(text: str) -> str:
    """Return text that no spreadsheet takes for a formula; an apostrophe marks it as text."""
    return _FORMULA.sub(r"\1\2'", printable(text))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of right-aligned columns; numbers have six digits, and missing values are a dash."""
    lines = [tuple(header), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    form = " ".join(f"{{:>{width}}}" for width in widths).format
    return "\n".join(form(*line) for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else printable(str(value))
