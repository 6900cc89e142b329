"""Commands for administrators: holdouts, API tokens and phases of a service, on the machine of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from thresholdout.cli.options import FILE, holdout_tables, metric_of, metric_options
from thresholdout.cli.running import Command, Failure, show
from thresholdout.cli.terminal import table
from thresholdout.errors import InputError, ThresholdoutError

if TYPE_CHECKING:
    from thresholdout.service.evaluation import EvaluationService
    from thresholdout.service.refusals import ServiceRefused
    from thresholdout.service.schemas import Holdout, Principal

__all__ = [
    "DATABASE",
    "LEDGER_KEY",
    "create_holdout",
    "holdout_lines",
    "list_holdouts",
    "list_tokens",
    "new_holdout",
    "new_token",
    "revoke_token",
    "set_phase",
    "with_extra",
]

DATABASE = click.option(
    "--database",
    default="leaderboard.db",
    show_default=True,
    help="SQLite file of the service, or address of a PostgreSQL database.",
)
LEDGER_KEY = click.option(
    "--key-file", type=FILE, help="File of the key that encrypts the labels. Required for PostgreSQL."
)
_PHASES: Final = ("open", "blind", "closed")
_TABLES: Final = ("train", "holdout", "transition", "graph")


def with_extra(command: Callable[..., Any]) -> Callable[..., Any]:
    """Report missing packages of the extra as an error of the command."""

    @wraps(command)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return command(*given, **named)
        except ModuleNotFoundError as error:
            if (error.name or "thresholdout").startswith("thresholdout"):
                raise
            raise Failure(f"A service needs {error.name}: pip install 'thresholdout[service]'.") from None

    return called


@contextmanager
def _opened(
    database: str, key_file: Path | None, *, new: bool = False
) -> Iterator[tuple[EvaluationService, Principal]]:
    """Open a service for its local administrator; a file must exist unless it may be `new`."""
    from thresholdout.service.evaluation import EvaluationService
    from thresholdout.service.refusals import ServiceRefused
    from thresholdout.service.schemas import Principal

    if not (new or "://" in database or Path(database).exists()):
        raise InputError("database", f"{database}, which does not exist", "the database of a service")
    service = EvaluationService.open(database, key_file=key_file, answering=False)
    try:
        yield service, Principal("", "admin")
    except ServiceRefused as refused:
        raise _error(refused) from None
    finally:
        service.close()


def create_holdout(
    service: EvaluationService, name: str, metric: str, clip: float | None, **declaration: Any
) -> Holdout:
    """Make a holdout from the options of ``admin holdout new``."""
    from thresholdout.data.tables import read_table
    from thresholdout.service.refusals import ServiceRefused
    from thresholdout.service.schemas import Principal

    tables = {part: read_table(declaration[part]) for part in _TABLES if declaration[part]}
    scored = metric_of(metric, clip).name
    try:
        return service.create_holdout(Principal("", "admin"), name, metric=scored, **(declaration | tables))
    except ServiceRefused as refused:
        raise _error(refused) from None


def _error(refused: ServiceRefused) -> ThresholdoutError:
    """Return a refusal as an error about the options at hand."""
    details = refused.details
    if refused.code == "not_found":
        return ThresholdoutError("There is no holdout or API token of this name. The command `list` shows all of them.")
    if "argument" in details and "expected" in details:
        return InputError(
            details["argument"], details.get("seen", "another value"), details["expected"], details.get("advice", "")
        )
    more = "; ".join(f"{name}: {value}" for name, value in details.items())
    return ThresholdoutError(f"{refused}{f' ({more})' if more else ''}")


@click.command("new", cls=Command)
@DATABASE
@LEDGER_KEY
@click.option(
    "--role",
    type=click.Choice(["admin", "team", "viewer"]),
    default="team",
    show_default=True,
    help="Rights of the holder: to administer, to submit, or to read.",
)
@click.option("--team", default="", help="Name of the team: lower-case letters, digits and hyphens.")
@click.option("--note", default="", help="Purpose of the token, shown in the list.")
@with_extra
def new_token(database: str, key_file: Path | None, role: str, team: str, note: str) -> None:
    """Create an API token, and print it. It cannot be shown again."""
    from thresholdout.service.schemas import Role

    if role == "team" and not team:
        raise click.UsageError("A token of a team needs --team.")
    with _opened(database, key_file) as (service, admin):
        text, made = service.new_token(admin, cast(Role, role), team, note)
    show({"token": text, "id": made.id, "role": role, "team": team or None, "note": note or None}, text)


@click.command("list", cls=Command)
@DATABASE
@LEDGER_KEY
@with_extra
def list_tokens(database: str, key_file: Path | None) -> None:
    """List the API tokens with role, team and purpose."""
    with _opened(database, key_file) as (service, admin):
        found = service.tokens(admin)
    columns = ("token", "role", "team", "made", "revoked", "note")
    rows = [
        (token.id, token.role, token.team or None, _day(token.made), _day(token.revoked), token.note or None)
        for token in found
    ]
    show({"tokens": [dict(zip(columns, row, strict=True)) for row in rows]}, table(columns, rows))


@click.command("revoke", cls=Command)
@click.argument("token")
@DATABASE
@LEDGER_KEY
@with_extra
def revoke_token(token: str, database: str, key_file: Path | None) -> None:
    """Revoke TOKEN, the identity that `admin token list` shows."""
    with _opened(database, key_file) as (service, admin):
        found = service.revoke(admin, token)
    show({"token": found.id, "revoked": _day(found.revoked)}, f"{found.id}: revoked")


def _day(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


@click.command("new", cls=Command)
@click.argument("name")
@DATABASE
@LEDGER_KEY
@holdout_tables
@click.option("--title", default="", help="Title on the pages. Default: NAME.")
@metric_options
@click.option(
    "--feedback",
    type=click.Choice(["interval", "verdict", "best"]),
    default="interval",
    show_default=True,
    help="Answer to a submission: a certified interval, a verdict against the team's champion, or the best score.",
)
@click.option(
    "--phase",
    type=click.Choice(_PHASES),
    default="open",
    show_default=True,
    help="Phase at the start: answers shown, answers hidden, or no submissions.",
)
@click.option("--public/--private", default=False, help="Whether visitors without an API token see the leaderboard.")
@click.option(
    "--quota", type=click.IntRange(min=1), help="Maximum number of submissions of each team. Default: no limit."
)
@click.option("--quota-days", type=float, help="Number of days that --quota is counted over. Default: all time.")
@with_extra
def new_holdout(name: str, database: str, key_file: Path | None, **declaration: Any) -> None:
    """Create the holdout NAME, and the database if it does not exist."""
    with _opened(database, key_file, new=True) as (service, _):
        found = create_holdout(service, name, **declaration)
    show(asdict(found), *holdout_lines(found))


def holdout_lines(found: Holdout) -> tuple[str, str]:
    """Return a new holdout in two lines."""
    return (
        f"holdout {found.name}: {found.records:,} records, {found.feedback} by {found.metric}, {found.phase}",
        found.promise,
    )


@click.command("list", cls=Command)
@DATABASE
@LEDGER_KEY
@with_extra
def list_holdouts(database: str, key_file: Path | None) -> None:
    """List the holdouts, with the numbers of queries so far and of answers left."""
    with _opened(database, key_file) as (service, admin):
        found = service.holdouts(admin)
    rows = (
        (one.name, one.phase, one.feedback, one.metric, one.records, one.asked, one.remaining, one.identity[:12])
        for one in found
    )
    header = ("name", "phase", "feedback", "metric", "records", "queries", "left", "guard")
    show({"holdouts": [asdict(one) for one in found]}, table(header, rows))


@click.command("phase", cls=Command)
@click.argument("name")
@click.argument("phase", type=click.Choice(_PHASES))
@DATABASE
@LEDGER_KEY
@with_extra
def set_phase(name: str, phase: str, database: str, key_file: Path | None) -> None:
    """Change the phase of the holdout NAME."""
    from thresholdout.service.schemas import Phase

    with _opened(database, key_file) as (service, admin):
        found = service.set_phase(admin, name, cast(Phase, phase))
    show({"name": found.name, "phase": found.phase}, f"{found.name}: {found.phase}")
