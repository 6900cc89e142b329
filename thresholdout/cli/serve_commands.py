"""The command that runs a service, and its configuration file."""

from __future__ import annotations

import itertools
import os
import sys
import tomllib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thresholdout.cli.admin_commands import (
    DATABASE,
    LEDGER_KEY,
    create_holdout,
    holdout_lines,
    new_holdout,
    with_extra,
)
from thresholdout.cli.options import FILE
from thresholdout.cli.running import Command, as_note, show, wants_json
from thresholdout.cli.terminal import say

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService

__all__ = ["serve"]

# Tables of a configuration that declare holdouts.
_HOLDOUTS = "holdout"

_DECLARED = "thresholdout.cli.holdouts"

# Options with a file or an address.
_ADDRESSES = ("database", "witness")


def _configure(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take the defaults of `serve`, and declarations of holdouts, from a TOML file."""
    if path is None:
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is no TOML file: {error}.") from None
    tables = found.pop(_HOLDOUTS, [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise click.BadParameter(f"{path} must declare each holdout in a table [[{_HOLDOUTS}]].")
    ctx.default_map = _arguments(ctx.command, found, path, "the file")
    ctx.meta[_DECLARED] = [_declaration(ctx, one, path, number) for number, one in enumerate(tables, start=1)]


def _declaration(ctx: click.Context, given: dict[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Return the checked options of ``admin holdout new`` in a table."""
    where = f"holdout {number}"
    chosen = _arguments(new_holdout, given, path, where)
    for own in ("database", "key_file"):
        if own in chosen:
            raise click.BadParameter(f"{path}, {where}: {own.replace('_', '-')} belongs above all tables.")
    try:
        with new_holdout.make_context("holdout", [], parent=ctx, default_map=chosen) as below:
            return {name: value for name, value in below.params.items() if name not in ("database", "key_file")}
    except click.UsageError as error:
        raise click.BadParameter(f"{path}, {where}: {error.format_message()}") from None


def _arguments(command: click.Command, given: dict[str, Any], path: Path, where: str) -> dict[str, Any]:
    """Return options of a TOML table by the names of their parameters; paths are relative to the file."""
    known = {
        option.removeprefix("--"): parameter
        for parameter in command.params
        for option in parameter.opts
        if parameter.expose_value
    }
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise click.BadParameter(f"{path}: {where} has no setting {name!r}; it has {', '.join(sorted(known))}.")
        parameter = known[name]
        if isinstance(value, (dict, list)):
            raise click.BadParameter(f"{path}: {name} must be one value, not a table or a list.")
        own = isinstance(parameter.type, click.Path) or (parameter.name in _ADDRESSES and "://" not in str(value))
        chosen[str(parameter.name)] = path.parent / value if own and isinstance(value, str) else value
    return {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}


@click.command(cls=Command)
@click.option(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=_configure,
    help="TOML file with these options, and a table [[holdout]] with name and options of each holdout.",
)
@DATABASE
@LEDGER_KEY
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on. 0 takes a free port.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of processes. More than one needs PostgreSQL.",
)
@click.option(
    "--proxies", default="127.0.0.1", show_default=True, help="Addresses of trusted proxies, separated by commas."
)
@click.option(
    "--receipts/--no-receipts", default=True, show_default=True, help="Whether each answer comes with a signed receipt."
)
@click.option(
    "--witness",
    help="File or address of a witness, which keeps checkpoints and so detects an older copy of the database.",
)
@click.option(
    "--accept-rollback",
    metavar="REASON",
    help="Serve a database that the witness does not confirm. Every leaderboard shows the reason.",
)
@click.option(
    "--most-megabytes",
    type=click.IntRange(1, 4096),
    show_default="50",
    help="Maximum size of an uploaded table, in megabytes.",
)
@click.option(
    "--most-rows",
    type=click.IntRange(min=1),
    show_default="2000000",
    help="Maximum number of rows of an uploaded table.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, 60),
    show_default="10",
    help="Number of seconds that a request waits for its answer.",
)
@click.option(
    "--failures-per-hour",
    type=click.IntRange(min=1),
    show_default="60",
    help="Number of refused tables of one API token that are free.",
)
@with_extra
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    database: str,
    key_file: Path | None,
    most_megabytes: int | None,
    most_rows: int | None,
    wait: float | None,
    failures_per_hour: int | None,
    **where: Any,
) -> None:
    """Serve leaderboards with certified intervals over HTTP.

    \b
    thresholdout admin holdout new churn --train train.csv --holdout holdout.csv --label y
    thresholdout serve

    The server runs until Ctrl-C. A missing database is created, and the API token of its first administrator is
    printed once. If standard output is not a terminal, the token is written to a file that only its owner can read.
    """  # noqa: D301
    from thresholdout.service.limits import Limits
    from thresholdout.service.serving import Serving
    from thresholdout.service.serving import serve as run

    chosen: dict[str, Any] = {
        "most_bytes": None if most_megabytes is None else most_megabytes * 2**20,
        "most_rows": most_rows,
        "wait": wait,
        "failures_per_hour": failures_per_hour,
    }
    limits = Limits(**{name: value for name, value in chosen.items() if value is not None})
    serving = Serving(database, None if key_file is None else str(key_file), limits=limits, **where)
    declared: list[dict[str, Any]] = ctx.meta.get(_DECLARED, [])

    def started(address: str, service: EvaluationService) -> None:
        with warnings.catch_warnings():  # standard error is the log, of JSON objects alone
            if not wants_json():
                warnings.showwarning = lambda message, *_: say(as_note(message))
            made = [create_holdout(service, **one) for one in declared]  # first: a token is printed only once
            lines = [line for one in made for line in holdout_lines(one)]
            data: dict[str, Any] = {"address": address, "database": str(service.ledger.location)}
            data["holdouts"] = [one.name for one in made]
            first = service.first_admin_token()
            if first is not None:
                kind, value = _handed_over(first, database)
                data[kind] = value
                lines.append(f"API token of the first administrator{_TOKEN[kind].format(value)}")
            show(data, *lines, f"{address}: serving {service.ledger.location}; Ctrl-C ends it")

    run(serving, started)


_TOKEN = {
    "admin_token": ", shown this once: {}",
    "admin_token_file": ": in {}, which its owner alone can read; take it from there and remove the file",
}


def _handed_over(token: str, database: str) -> tuple[str, str]:
    """Return a token for a terminal, or else a new file with it that only its owner can read."""
    if sys.stdout.isatty():
        return "admin_token", token
    beside = Path("thresholdout") if "://" in database else Path(database)
    for number in itertools.count():
        path = beside.with_name(f"{beside.name}.admin-token{number or ''}")
        try:
            # An existing file is never overwritten: it may hold an unread token.
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            continue
        with open(handle, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        return "admin_token_file", str(path)
    raise AssertionError
