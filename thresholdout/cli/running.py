"""Execution of commands: exit codes, errors in terms of options, and text or JSON."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, TextIO

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

__all__ = [
    "EXIT_CODES",
    "Command",
    "Commands",
    "ExitCode",
    "Failure",
    "MainCommands",
    "Misuse",
    "as_note",
    "show",
    "wants_json",
]


class ExitCode(IntEnum):
    """Exit code of a command."""

    DONE = 0
    NO = 1
    USAGE = 2
    UNCLEAR = 3
    FAILED = 4
    EXHAUSTED = 5
    UNEXPECTED = 70
    INTERRUPTED = 130
    UNREAD = 141


# The one table of exit codes; the page about commands repeats it.
EXIT_CODES: Final[Mapping[ExitCode, str]] = {
    ExitCode.DONE: "Done. A verdict is better, not worse or genuine.",
    ExitCode.NO: "The verdict is no: worse, invalid or contradicted.",
    ExitCode.USAGE: "An option or an argument cannot be used.",
    ExitCode.UNCLEAR: "The records do not decide: not settled, not certified or unclear.",
    ExitCode.FAILED: (
        "A file, a table, a ledger or a server cannot be used. Or no plan reaches the target, or an evaluation set "
        "needs new items."
    ),
    ExitCode.EXHAUSTED: "The budget of a guard or the quota of a client is exhausted.",
    ExitCode.UNEXPECTED: "An unexpected error. Its traceback is on standard error.",
    ExitCode.INTERRUPTED: "The command was interrupted, for example by Ctrl-C.",
    ExitCode.UNREAD: "The program that reads the output ended early, as `head` does.",
}

# Warnings that are printed as notes.
_NOTES: Final = (
    IndexColumnWarning,
    LedgerPlaceWarning,
    LikelyMistakeWarning,
    MechanismWarning,
    UnencryptedLedgerWarning,
    WideAnswersWarning,
)

# The end of a warning that is for programs in Python.
_SILENCED: Final = re.compile(r" warnings\.filterwarnings\(.*\) silences this warning\.$")

_JSON: Final = "thresholdout.cli.json"


class Failure(click.ClickException):
    """An error in one line."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Misuse(Failure):
    """An option or an argument that cannot be used."""

    exit_code = ExitCode.USAGE


class Exhausted(Failure):
    """A budget or a quota that is exhausted."""

    exit_code = ExitCode.EXHAUSTED


class Command(click.Command):
    """A command with ``--json`` whose errors and notes name its own options.

    `library_names` maps arguments of the library to options with another name.
    """

    def __init__(
        self, *given: Any, prints_json: bool = True, library_names: Mapping[str, str] | None = None, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self.library_names = dict(library_names or {})
        if prints_json:
            self.params.append(
                click.Option(["--json"], is_flag=True, expose_value=False, callback=_keep, help="Print JSON.")
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end it with the exit code of a library error."""
        names = _options(self) | self.library_names

        def note(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            say(_in_options(as_note(message), names), err=True)

        try:
            with warnings.catch_warnings():
                for category in _NOTES:
                    warnings.simplefilter("once", category)
                warnings.showwarning = note
                return super().invoke(ctx)
        except BudgetExhausted as error:
            raise Exhausted(_in_options(str(error), names)) from None
        except ArgumentError as error:
            option = names.get(error.argument) or self._positional(error.argument)
            text = _in_options(str(error), names)
            if option is None:
                raise Failure(text) from None
            in_file = any(
                isinstance(one.type, click.Path) and (option in one.opts or error.argument in one.opts)
                for one in self.params
            )
            kind = Failure if in_file else Misuse
            # The message begins with the library's name of the argument.
            raise kind(option + text[len(error.argument) :]) from None
        except ThresholdoutError as error:
            raise Failure(_in_options(str(error), names)) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise Failure(f"{where}{error.strerror or error}") from None

    def _positional(self, name: str) -> str | None:
        """Return a positional argument as in the usage line."""
        there = any(isinstance(one, click.Argument) and one.name == name for one in self.params)
        return name.upper() if there else None


class Commands(click.Group):
    """A group that lists its commands in the order of their definition."""

    def __init__(self, *given: Any, members: Iterable[click.Command] = (), **named: Any) -> None:
        super().__init__(*given, **named)
        for member in members:
            self.add_command(member)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in their order."""
        return list(self.commands)


class MainCommands(Commands):
    """The group of all commands, which reserves the exit codes of verdicts for verdicts.

    Click itself exits with 1, the code of "no", on an unexpected error, an interrupt and a closed pipe.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, EOFError, click.Abort):
            click.echo("Interrupted.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
        except BrokenPipeError:
            # Python flushes standard output once more at exit, and would complain then.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(ExitCode.UNREAD)
        except Exception as error:
            traceback.print_exc()
            say(f"Error: an unexpected {type(error).__name__}. Please report it with the lines above.", err=True)
            ctx.exit(ExitCode.UNEXPECTED)


def as_note(message: Warning | str) -> str:
    """Return a warning of the library as a line of text."""
    return f"note: {_SILENCED.sub('', str(message))}"


def wants_json() -> bool:
    """Return whether the running command has ``--json``."""
    return bool(click.get_current_context().meta.get(_JSON))


def show(data: object, *lines: str) -> None:
    """Print data as JSON under ``--json``, and lines of text otherwise."""
    if wants_json():
        click.echo(json.dumps(_plain(data)))
    else:
        for line in lines:
            say(line)


def _keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


def _plain(data: Any) -> Any:
    """Return data in JSON's own types; infinite numbers become null."""
    if isinstance(data, Mapping):
        return {str(name): _plain(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    if isinstance(data, Path):
        return str(data)
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def _options(command: Command) -> dict[str, str]:
    """Return a command's options by the library's names of the same arguments."""
    found = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            option = parameter.opts[0]
            found[option.removeprefix("--").replace("-", "_")] = option
            if parameter.name is not None:
                found.setdefault(parameter.name, option)
    return found


def _in_options(text: str, names: Mapping[str, str]) -> str:
    """Return a text of the library with each ``argument=value`` as an option."""

    def option(found: re.Match[str]) -> str:
        name, quoted, plain = found.groups()
        value = quoted or plain
        return names[name] if value in (None, "True") else f"{names[name]} {value}"

    if not names:
        return text
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<![\w.-])({pattern}) ?= ?(?![=(\[{{])(?:'([\w-]+)'|([\w.-]*\w))?", option, text)
