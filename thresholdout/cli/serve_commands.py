"""Commands that run a service, and look after its keys and holdouts where its database is."""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from thresholdout.cli.options import FILE
from thresholdout.cli.terminal import say, table
from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService
    from thresholdout.service.shown import Principal

__all__ = ["holdouts", "keys", "serve"]

_DATABASE = click.option(
    "--database",
    default="board.db",
    show_default=True,
    help="File of the service, or the address of a PostgreSQL server.",
)
_LEDGER_KEY = click.option(
    "--key-file", type=FILE, help="File with the key that encrypts the labels; a server needs one."
)
_FEEDBACK: Final = ("interval", "verdict", "best")
_PHASES: Final = ("open", "blind", "closed")


def _tables(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how a holdout is made."""
    options = (
        click.option("--label", help="Column of the labels."),
        click.option("--id", "id_column", default="id", show_default=True, help="Column that identifies a record."),
        click.option("--groups", help="Column of groups; records of one may depend on each other arbitrarily."),
        click.option("--order", help="Column of the order of all rows, beside --window."),
        click.option("--window", type=int, help="Rows further apart than this are independent."),
        click.option("--title", default="", help="What people call it."),
        click.option("--metric", default="accuracy", show_default=True, help="By what submissions are scored."),
        click.option(
            "--feedback",
            type=click.Choice(_FEEDBACK),
            default="interval",
            show_default=True,
            help="What a submission is told: a certified interval, whether it is better than the team's incumbent, or "
            "the best so far.",
        ),
        click.option("--phase", type=click.Choice(_PHASES), default="open", show_default=True),
        click.option("--public/--private", default=False, help="Whether visitors without a key see the board."),
        click.option("--quota", type=click.IntRange(min=1), help="Submissions of each team."),
        click.option("--quota-days", type=float, help="In so many days; left out, in all."),
        click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold."),
        click.option(
            "--prior-queries", type=click.IntRange(min=1), help="Scores of this holdout that were seen before."
        ),
        click.option("--allow-duplicates", is_flag=True, help="Equal rows of both parts are different records."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _with_extra(command: Callable[..., Any]) -> Callable[..., Any]:
    """Say which packages are missing, if some are."""

    @wraps(command)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return command(*given, **named)
        except ModuleNotFoundError as error:
            if (error.name or "thresholdout").startswith("thresholdout"):
                raise
            raise ThresholdoutError(f"a service needs {error.name}: pip install 'thresholdout[service]'") from None

    return called


@click.command()
@_DATABASE
@_LEDGER_KEY
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 is any that is free.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True,
              help="Processes; several need a PostgreSQL server.")  # fmt: skip
@click.option("--proxies", default="127.0.0.1", show_default=True,
              help="Proxies that are believed about where requests come from, with commas.")  # fmt: skip
@click.option("--receipts/--no-receipts", default=True, show_default=True, help="Whether answers are signed.")
@click.option(
    "--witness", help="File or address that keeps the checkpoints of histories, so that older copies are refused."
)
@click.option("--accept-rollback", metavar="REASON", help="Serve a database that the witness does not confirm.")
@click.option("--most-megabytes", type=click.IntRange(1, 4096), show_default="50", help="Of one table, as it is sent.")
@click.option("--most-rows", type=click.IntRange(min=1), show_default="2000000", help="Of one table.")
@click.option(
    "--wait", type=click.FloatRange(0, 60), show_default="10", help="Seconds that a submission waits for its answer."
)
@click.option(
    "--failures-per-hour",
    type=click.IntRange(min=1),
    show_default="60",
    help="Refused tables of one key that are free.",
)
@click.option("--name", default="holdout", show_default=True, help="Of the holdout that --train and --holdout make.")
@click.option("--train", "train_path", type=FILE, help="CSV of the training part, with labels: makes a holdout first.")
@click.option("--holdout", "holdout_path", type=FILE, help="CSV of the holdout, with labels.")
@_tables
@_with_extra
def serve(
    database: str,
    key_file: Path | None,
    host: str,
    port: int,
    workers: int,
    proxies: str,
    receipts: bool,
    witness: str | None,
    accept_rollback: str | None,
    most_megabytes: int | None,
    most_rows: int | None,
    wait: float | None,
    failures_per_hour: int | None,
    name: str,
    train_path: Path | None,
    holdout_path: Path | None,
    **settings: Any,
) -> None:
    """Serve a leaderboard of certified intervals over HTTP, until Ctrl-C.

    A new DATABASE is made. The key of its first administrator is shown once on a terminal; where standard output is
    none, and may be a log, it is put into a file for its owner alone. With --train, --holdout and --label it has a
    holdout at once; the same command again finds it there.
    """
    from thresholdout.service.http.serving import Serving
    from thresholdout.service.http.serving import serve as run

    if (train_path is None) != (holdout_path is None):
        raise click.UsageError("--train and --holdout go together")
    if train_path is not None and settings["label"] is None:
        raise click.UsageError("--label is needed beside --train and --holdout")
    chosen = {
        "most_bytes": None if most_megabytes is None else most_megabytes * 2**20,
        "most_rows": most_rows,
        "wait": wait,
        "failures_per_hour": failures_per_hour,
    }
    serving = Serving(
        database,
        None if key_file is None else str(key_file),
        host,
        port,
        workers,
        proxies,
        receipts,
        witness,
        accept_rollback,
        _limits(chosen),
    )

    def started(address: str, service: EvaluationService) -> None:
        with warnings.catch_warnings():  # standard error is the log, of JSON objects alone
            warnings.showwarning = lambda message, *_: say(f"note: {message}")
            make(address, service)

    def make(address: str, service: EvaluationService) -> None:
        first = service.first_admin_key()
        if first is not None:
            say(f"key of the first administrator{_handed_over(first, database)}")
        if train_path is not None and holdout_path is not None:
            _create(service, name, train_path, holdout_path, settings)
        say(f"{address}: serving {service.ledger.location}; Ctrl-C ends it")

    run(serving, started)


def _handed_over(key: str, database: str) -> str:
    """Show a key on a terminal; elsewhere put it into a new file that its owner alone can read, and say where."""
    if sys.stdout.isatty():
        return f", shown this once: {key}"
    beside = Path("thresholdout") if "://" in database else Path(database)
    for number in itertools.count():
        path = beside.with_name(f"{beside.name}.admin-key{number or ''}")
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            continue
        with open(handle, "w", encoding="ascii") as file:
            file.write(f"{key}\n")
        return f": in {path}, which its owner alone can read; take it from there and remove the file"
    raise AssertionError


def _limits(chosen: dict[str, Any]) -> Any:
    from thresholdout.service.limits import Limits

    return Limits(**{name: value for name, value in chosen.items() if value is not None})


@contextmanager
def _opened(
    database: str, key_file: Path | None, *, new: bool = False
) -> Iterator[tuple[EvaluationService, Principal]]:
    """Open a service for whoever administers it on its own machine; a file has to be there unless it may be `new`."""
    from thresholdout.errors import InputError
    from thresholdout.service.evaluation import EvaluationService
    from thresholdout.service.refusals import ServiceRefused
    from thresholdout.service.shown import Principal

    if not (new or "://" in database or Path(database).exists()):
        raise InputError(
            "--database", f"{database}, and no such file", "the database that the service was started with"
        )
    service = EvaluationService.open(database, key_file=key_file, answering=False)
    try:
        yield service, Principal("", "admin")
    except ServiceRefused as refused:
        raise click.ClickException(_in_words(refused.code, str(refused), refused.details)) from None
    finally:
        service.close()


def _create(service: EvaluationService, name: str, train: Path, holdout: Path, settings: dict[str, Any]) -> None:
    """Make a holdout, and say what it promises."""
    from thresholdout.data.tables import read_table
    from thresholdout.service.refusals import ServiceRefused
    from thresholdout.service.shown import Principal

    others = {option: value for option, value in settings.items() if option != "id_column"}
    tables = read_table(train), read_table(holdout)
    try:
        found = service.create_holdout(Principal("", "admin"), name, *tables, id=settings["id_column"], **others)
    except ServiceRefused as refused:
        raise click.ClickException(_in_words(refused.code, str(refused), refused.details)) from None
    say(f"holdout {found.name}: {found.records:,} records, {found.feedback} by {found.metric}, {found.phase}")
    say(found.promise)


def _in_words(code: str, text: str, details: dict[str, Any]) -> str:
    """Return a refusal with what is known about it."""
    if code == "not_found":
        return "There is no holdout or key of this name; `list` shows them."
    more = "; ".join(f"{name}: {value}" for name, value in details.items())
    return f"{text}{f' ({more})' if more else ''}" if code != "bad_table" else f"--train or --holdout: {more}"


@click.group()
def keys() -> None:
    """Make, list and revoke the keys of a service, where its database is."""


@keys.command("new")
@_DATABASE
@_LEDGER_KEY
@click.option("--role", type=click.Choice(["admin", "team", "viewer"]), default="team", show_default=True)
@click.option("--team", default="", help="Whose it is: lower-case letters, digits and hyphens.")
@click.option("--note", default="", help="What it is for.")
@_with_extra
def new_key(database: str, key_file: Path | None, role: str, team: str, note: str) -> None:
    """Make a key, and print it: this once."""
    from thresholdout.service.shown import Role

    if role == "team" and not team:
        raise click.UsageError("--team is needed for the key of a team")
    with _opened(database, key_file) as (service, admin):
        text, _ = service.new_key(admin, cast(Role, role), team, note)
    click.echo(text)


@keys.command("list")
@_DATABASE
@_LEDGER_KEY
@_with_extra
def list_keys(database: str, key_file: Path | None) -> None:
    """List keys: whose they are and what they are for."""
    with _opened(database, key_file) as (service, admin):
        found = service.keys(admin)
    rows = ((key.id, key.role, key.team or None, _day(key.made), _day(key.revoked), key.note or None) for key in found)
    say(table(("key", "role", "team", "made", "revoked", "note"), rows))


@keys.command("revoke")
@click.argument("key")
@_DATABASE
@_LEDGER_KEY
@_with_extra
def revoke_key(key: str, database: str, key_file: Path | None) -> None:
    """Refuse a KEY, by what the list calls it, from now on."""
    with _opened(database, key_file) as (service, admin):
        found = service.revoke(admin, key)
    say(f"{found.id}: revoked")


def _day(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


@click.group()
def holdouts() -> None:
    """Make holdouts of a service and begin their phases, where its database is; also while it is served."""


@holdouts.command("new")
@click.argument("name")
@_DATABASE
@_LEDGER_KEY
@click.option("--train", "train_path", type=FILE, required=True, help="CSV of the training part, with labels.")
@click.option("--holdout", "holdout_path", type=FILE, required=True, help="CSV of the holdout, with labels.")
@_tables
@_with_extra
def new_holdout(
    name: str, database: str, key_file: Path | None, train_path: Path, holdout_path: Path, **settings: Any
) -> None:
    """Make a holdout that addresses call NAME."""
    if settings["label"] is None:
        raise click.UsageError("--label is needed")
    with _opened(database, key_file, new=True) as (service, _):
        _create(service, name, train_path, holdout_path, settings)


@holdouts.command("list")
@_DATABASE
@_LEDGER_KEY
@_with_extra
def list_holdouts(database: str, key_file: Path | None) -> None:
    """List holdouts, and how they are used."""
    with _opened(database, key_file) as (service, admin):
        found = service.holdouts(admin)
    rows = (
        (one.name, one.phase, one.feedback, one.metric, one.records, one.asked, one.remaining, one.identity[:12])
        for one in found
    )
    say(table(("name", "phase", "feedback", "metric", "records", "asked", "left", "guard"), rows))


@holdouts.command("phase")
@click.argument("name")
@click.argument("phase", type=click.Choice(_PHASES))
@_DATABASE
@_LEDGER_KEY
@_with_extra
def set_phase(name: str, phase: str, database: str, key_file: Path | None) -> None:
    """Begin another PHASE of the holdout NAME."""
    from thresholdout.service.shown import Phase

    with _opened(database, key_file) as (service, admin):
        found = service.set_phase(admin, name, cast(Phase, phase))
    say(f"{found.name}: {found.phase}")
