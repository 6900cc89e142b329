"""What the commands share: how they end, and the arguments that several of them have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from graphs.errors import ArgumentError
from thresholdout.errors import BudgetExhausted, ThresholdoutError

__all__ = ["FILE", "LEDGER", "Commands", "declared", "in_folder", "shown"]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

LEDGER = click.argument("ledger")
"""A file's name or an address, as `thresholdout.ledger.open_ledger` takes it."""


class _Exhausted(click.ClickException):
    """A budget is used up."""

    exit_code = 3


class Commands(click.Group):
    """Commands that show errors in one line, and end with status 3 when the guard answers no more."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn the library's errors into one line."""
        try:
            return super().invoke(ctx)
        except (ThresholdoutError, ArgumentError) as error:
            raise (_Exhausted if isinstance(error, BudgetExhausted) else click.ClickException)(str(error)) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from None


def declared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that declare how a guard will be used."""
    for option in (
        click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold."),
        click.option("--budget", default=10, show_default=True, help="Questions that may disagree with train."),
        click.option("--queries", default=1000, show_default=True, help="Questions in all."),
    ):
        command = option(command)
    return command


def in_folder(path: Path) -> Path:
    """Refuse a file whose folder does not exist."""
    if not path.parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.parent}")
    return path


def shown(ledger: str) -> str:
    """Return a ledger's name for messages, without a password."""
    if "://" not in ledger:
        return ledger
    from sqlalchemy.engine import make_url

    return make_url(ledger).render_as_string(hide_password=True)
