"""Comparing the runs of an evaluation set, and guarding it for a year."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from thresholdout.cli.terminal import printable, say
from thresholdout.errors import EvaluationFileError, InputError, LedgerError

if TYPE_CHECKING:
    from thresholdout.evaluations import Scores

__all__ = ["evaluation"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Usage(click.ClickException):
    """An option that cannot be used."""

    exit_code = 2


class _File(click.ClickException):
    """A file that cannot be used."""

    exit_code = 4


class _EvalCommands(click.Group):
    """Commands whose errors are one line: exit 2 for an option, 4 for a file."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise _Usage(printable(str(error))) from None
        except (EvaluationFileError, LedgerError) as error:
            raise _File(printable(str(error))) from None
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise _File(printable(f"{where}{error.strerror or error}")) from None


def _pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, chosen = value.partition("=")
        if not equals or not name or not chosen:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE")
        found[name] = chosen
    return found


def _reading(command: _Command) -> _Command:
    """Add the options that say what a log's fields mean."""
    for option in reversed(
        (
            click.option("--metric", help="Name of the metric; may be left out where a log has one."),
            click.option("--cluster", help="Field that items of one cluster share, such as metadata.passage_id."),
            click.option("--item", help="Field that tells items apart, where the tool's own is not meant."),
            click.option("--sample", help="Field that tells samples of one item apart."),
            click.option(
                "--only",
                multiple=True,
                callback=_pairs,
                metavar="NAME=VALUE",
                help="Part of a file with several: filter=, prompt=, provider=, or a column's value.",
            ),
            click.option(
                "--range", "scale", nargs=2, type=float, default=(0.0, 1.0), help="Smallest and largest score."
            ),
            click.option(
                "--allow-missing",
                type=click.FloatRange(0.0, 100.0),
                default=1.0,
                show_default=True,
                help="Percent of items that may have no score.",
            ),
        )
    ):
        command = option(command)
    return command


def _read(path: str, options: dict[str, Any], by: str | None = None) -> Scores:
    from thresholdout.evaluations import read

    return read(
        Path(path),
        options["metric"],
        cluster=options["cluster"],
        item=options["item"],
        sample=options["sample"],
        by=by,
        only=options["only"],
        range=options["scale"],
    )


@click.group("eval", cls=_EvalCommands)
def evaluation() -> None:
    """Compare runs of an evaluation set, once or for a year."""


@evaluation.command("diff")
@click.argument("base")
@click.argument("candidates", nargs=-1, required=True)
@_reading
@click.option("--by", help="Field that divides items into slices, such as metadata.tag.")
@click.option(
    "--margin", type=float, default=2.0, show_default=True, help="Points of drop that are accepted as not worse."
)
@click.option("--any-laws", is_flag=True, help="Use bets on cluster totals, which hold for any laws.")
@click.option("--allow-unclear", is_flag=True, help="End with 0 where the runs cannot tell.")
@click.option(
    "--format", "form", type=click.Choice(["text", "markdown", "json", "junit"]), default="text", show_default=True
)
@click.pass_context
def diff_command(
    ctx: click.Context,
    /,
    base: str,
    candidates: tuple[str, ...],
    by: str | None,
    margin: float,
    any_laws: bool,
    allow_unclear: bool,
    form: str,
    **options: Any,
) -> None:
    """Compare CANDIDATES with BASE.

    Exit codes: 0 passes, 1 worse, 3 cannot tell, 2 usage, 4 a file that cannot be used.
    """
    from thresholdout.evaluations import diff, formats, rank

    if len(candidates) > 1 and by is not None:
        raise click.UsageError("--by takes one candidate")
    first = _read(base, options, by)
    others = [_read(path, options, by) for path in candidates]
    arguments = {"margin": margin / 100.0, "any_laws": any_laws, "allow_missing": options["allow_missing"]}
    found = diff(first, others[0], **arguments) if len(others) == 1 else rank(first, others, **arguments)
    if form == "text":
        say(formats.as_text(found))
    elif form == "markdown":
        say(formats.as_markdown(found))
    elif form == "json":
        click.echo(formats.as_json(found, allow_unclear))
    else:
        click.echo(formats.as_junit(found, allow_unclear))
    ctx.exit(found.exit(allow_unclear))
