"""What the commands share: how they end, and the arguments that several of them have."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from graphs.errors import ArgumentError
from thresholdout.cli.terminal import printable, say
from thresholdout.errors import (
    BudgetExhausted,
    IndexColumnWarning,
    LedgerPlaceWarning,
    LikelyMistakeWarning,
    MechanismWarning,
    ThresholdoutError,
    UnencryptedLedgerWarning,
    WideAnswersWarning,
)

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger

__all__ = [
    "CLIENT",
    "FILE",
    "GUARD",
    "KEY_FILE",
    "LEDGER",
    "QUOTA",
    "Commands",
    "choose",
    "entries_in_words",
    "in_folder",
]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

LEDGER = click.argument("ledger")
"""A file's name or an address, as `thresholdout.ledger.open_ledger` takes it."""

KEY_FILE = click.option(
    "--key-file", type=FILE, help="The ledger's key; left out, THRESHOLDOUT_KEY or THRESHOLDOUT_KEY_FILE say it."
)

GUARD = click.option("--guard", help="First characters of what a guard is called, when there are several.")

_NOTES = (
    IndexColumnWarning,
    LedgerPlaceWarning,
    LikelyMistakeWarning,
    MechanismWarning,
    UnencryptedLedgerWarning,
    WideAnswersWarning,
)
"""Warnings that are said in a line."""


CLIENT = click.option("--client", default="", help="Who asks; the history says so, and a board ranks clients.")

QUOTA = click.option("--quota", type=click.IntRange(min=0), help="Questions that this client may have, with this one.")


class _Exhausted(click.ClickException):
    """The guard answers no more."""

    exit_code = 3


class Commands(click.Group):
    """Commands that show errors in one line, and end with status 3 when the guard answers no more."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn the library's errors and warnings into one line each."""
        try:
            with warnings.catch_warnings():
                for note in _NOTES:
                    warnings.simplefilter("once", note)
                warnings.showwarning = _note
                return super().invoke(ctx)
        except (ThresholdoutError, ArgumentError) as error:
            kind = _Exhausted if isinstance(error, BudgetExhausted) else click.ClickException
            raise kind(printable(str(error))) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(printable(f"{where}{error.strerror or error}")) from None


def in_folder(path: Path) -> Path:
    """Refuse a file whose folder does not exist."""
    if not path.parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.parent}")
    return path


def choose(ledger: Ledger, start: str | None) -> str:
    """Return the one guard of a ledger whose name starts so."""
    found = [identity for identity in ledger.guards() if identity.startswith(start or "")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(f"{ledger.location} holds no {'such ' if start else ''}guard")
    listed = ", ".join(identity[:12] for identity in found[:5])
    more = ", ..." if len(found) > 5 else ""
    raise click.ClickException(f"{ledger.location} holds {len(found)} guards; choose by --guard: {listed}{more}")


def entries_in_words(count: int) -> str:
    """Return a number of entries as people write it."""
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


def _note(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning in one line."""
    say(f"note: {message}", err=True)
