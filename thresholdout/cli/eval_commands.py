"""Commands that compare runs of an evaluation set, and guard it for a year."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphs.errors import amount
from thresholdout.cli.running import Command, Commands, ExitCode, Failure, show, wants_json
from thresholdout.cli.terminal import say, table

if TYPE_CHECKING:
    from thresholdout.evaluations import EvaluationGuard, Scores
    from thresholdout.evaluations.check_results import Status

__all__ = ["evaluation"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_POINTS = click.FloatRange(0.0, 100.0, min_open=True, max_open=True)


class _SetCommand(Command):
    """A command about a guarded set, whose errors speak of its database."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and replace "ledger" by "database" in its errors."""
        try:
            return super().invoke(ctx)
        except Failure as failure:
            text = failure.message.replace("ledger", "database").replace("Ledger", "Database")
            raise type(failure)(text) from failure


def _pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, chosen = value.partition("=")
        if not equals or not name or not chosen:
            raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
        found[name] = chosen
    return found


def _reading(command: _Command) -> _Command:
    """Add the options that select the fields of a log."""
    for option in reversed(
        (
            click.option("--metric", help="Name of the metric. Default: the only metric of the log."),
            click.option(
                "--cluster", help="Field that is equal for the items of a cluster, such as metadata.passage_id."
            ),
            click.option("--item", help="Field that identifies an item. Default: that of the tool that wrote the log."),
            click.option("--sample", help="Field that identifies a sample of an item."),
            click.option(
                "--only",
                multiple=True,
                callback=_pairs,
                metavar="NAME=VALUE",
                help="Read only a part of the file: filter=, prompt=, provider=, or COLUMN=VALUE.",
            ),
            click.option(
                "--range",
                "scale",
                nargs=2,
                type=float,
                default=(0.0, 1.0),
                help="Smallest and largest possible score. Default: 0 1.",
            ),
            click.option(
                "--error",
                help="Column of a table that marks failed samples. Default: the column error, if there is one.",
            ),
            click.option(
                "--allow-missing",
                type=click.FloatRange(0.0, 100.0),
                default=1.0,
                show_default=True,
                help="Maximum percentage of items without a score.",
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
        error=options["error"],
    )


@click.group("eval", cls=Commands, no_args_is_help=True)
def evaluation() -> None:
    """Compare runs of an evaluation set, once or over a year.

    \b
    thresholdout eval diff main.eval pr.eval --metric match
    thresholdout eval guard check evals.db pr.eval
    """  # noqa: D301


@evaluation.command("diff", cls=Command)
@click.argument("base")
@click.argument("candidates", nargs=-1, required=True)
@_reading
@click.option("--by", help="Field whose values divide the items into slices, such as metadata.tag.")
@click.option(
    "--margin",
    type=_POINTS,
    default=2.0,
    show_default=True,
    help="Largest drop that still counts as not worse, in percentage points.",
)
@click.option("--any-laws", is_flag=True, help="Use tests that assume nothing but independent items or clusters.")
@click.option("--allow-unclear", is_flag=True, help="Exit with 0 if the outcome is unclear.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json", "junit"]),
    default="text",
    show_default=True,
    help="Format of the output.",
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
    """Compare each of the CANDIDATES with BASE.

    Exit codes: 0 passes, 1 worse, 3 unclear, 2 usage, 4 a file that cannot be used.
    """
    from thresholdout.evaluations import diff, formats, rank

    if len(candidates) > 1 and by is not None:
        raise click.UsageError("--by needs a single candidate.")
    if wants_json():
        if form not in ("text", "json"):
            raise click.UsageError(f"--json and --format {form} exclude each other.")
        form = "json"
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


@evaluation.command("agree", cls=Command)
@click.argument("run")
@click.argument("judges", nargs=2, metavar="JUDGE JUDGE")
@_reading
def agree_command(run: str, judges: tuple[str, str], **options: Any) -> None:
    """Compute how often two judges agree, which are metrics of RUN."""
    from thresholdout.evaluations import agreement
    from thresholdout.evaluations.formats import points

    if options["metric"] is not None:
        raise click.UsageError("--metric cannot be used here, because the two judges are the metrics.")
    first, second = (_read(run, {**options, "metric": judge}) for judge in judges)
    found = agreement(first, second, allow_missing=options["allow_missing"])
    kind = "exact" if found.exact else "normal"
    show(
        {"schema": "thresholdout.eval.agree/1", "judges": judges, **asdict(found)},
        f"{judges[0]} and {judges[1]} agree on {100.0 * found.share:.1f} % of {found.items} items "
        f"[{100.0 * found.low:.1f}, {100.0 * found.high:.1f}], {kind} 95 % interval",
        f"{judges[1]} is {points(found.difference)} points from {judges[0]} "
        f"[{points(found.difference_low)}, {points(found.difference_high)}]. A verdict is only as good as its judge.",
    )


@evaluation.command("plan", cls=Command)
@click.argument("run", required=False)
@_reading
@click.option(
    "--items",
    multiple=True,
    type=click.IntRange(2),
    default=(200, 1000, 5000),
    help="Numbers of items to plan for. May be repeated.",
)
@click.option(
    "--samples",
    multiple=True,
    type=click.IntRange(1),
    default=(1, 5),
    help="Numbers of samples of each item. May be repeated.",
)
@click.option("--checks", type=click.IntRange(2), default=300, show_default=True, help="Planned number of checks.")
def plan_command(
    run: str | None, items: tuple[int, ...], samples: tuple[int, ...], checks: int, **options: Any
) -> None:
    """Compute the smallest drop that can be detected. A RUN with repeats shows how samples of an item vary."""
    from thresholdout.evaluations.sizing import drop_seen, variability

    found = variability(None if run is None else _read(run, options))
    if not found.samples_differ:
        of_samples = "Samples of an item are all equal, as at temperature 0, so more samples do not help."
    elif found.measured:
        of_samples = f"Samples of an item differ, with variance {found.within:.3f}, so more samples help."
    else:
        of_samples = "Without a run with repeats, difficulties are assumed as in a usual benchmark: Beta(0.75, 0.25)."
    columns = {
        "one_diff": ("one diff", 1, 0),
        "one_check": (f"check {checks}", checks, 0),
        "after_1_alarm": ("after 1 alarm", checks, 1),
        "after_3_alarms": ("after 3 alarms", checks, 3),
    }
    drops: list[dict[str, Any]] = [
        {"items": n, "samples": k}
        | {name: drop_seen(n, k, checks=c, alarms=a, within=found.within) for name, (_, c, a) in columns.items()}
        for n in items
        for k in (samples if found.samples_differ else (1,))
    ]
    rows = [(row["items"], row["samples"], *(f"{100.0 * row[name]:.1f}" for name in columns)) for row in drops]
    show(
        {"schema": "thresholdout.eval.plan/1", "checks": checks, "variability": asdict(found), "drops": drops},
        of_samples,
        "Drop in points that is reported as worse with probability 0.8:",
        table(("items", "samples", *(title for title, _, _ in columns.values())), rows),
    )


@evaluation.group("guard", cls=Commands, no_args_is_help=True)
def guard_group() -> None:
    """Check runs against a guarded evaluation set, with one outcome per check.

    \b
    thresholdout eval guard init evals.db --baseline main.eval --metric match
    thresholdout eval guard check evals.db pr.eval
    """  # noqa: D301


@guard_group.command("init", cls=_SetCommand)
@click.argument("database")
@click.option("--baseline", required=True, help="Run of the released version.")
@_reading
@click.option(
    "--checks", type=click.IntRange(1, 100_000), default=300, show_default=True, help="Planned number of checks."
)
@click.option(
    "--surprises", type=click.IntRange(1), default=5, show_default=True, help="Planned number of unexpected outcomes."
)
@click.option(
    "--mode",
    type=click.Choice(["alarm", "proof"]),
    default="alarm",
    show_default=True,
    help="'alarm' reports a run that is worse, 'proof' one that is not worse by the margin.",
)
@click.option("--margin", type=_POINTS, default=2.0, show_default=True, help="Margin of a proof, in percentage points.")
@click.option(
    "--dev",
    type=click.FloatRange(0.0, 1.0, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of items that everybody may read, and that are never compared.",
)
@click.option(
    "--promise",
    type=click.Choice(["year", "each"]),
    default="year",
    show_default=True,
    help="'year' is valid for all changes, 'each' only for changes that do not depend on earlier outcomes.",
)
@click.option("--any-laws", is_flag=True, help="Use tests that assume nothing but independent items or clusters.")
def init_command(
    database: str,
    baseline: str,
    checks: int,
    surprises: int,
    mode: Any,
    margin: float,
    dev: float,
    promise: Any,
    any_laws: bool,
    **options: Any,
) -> None:
    """Create a guarded evaluation set in DATABASE, a file or the address of a server."""
    from thresholdout.evaluations import EvaluationGuard

    guard = EvaluationGuard.create(
        database,
        _read(baseline, options),
        checks=checks,
        surprises=surprises,
        mode=mode,
        margin=margin / 100.0,
        dev=dev,
        promise=promise,
        any_laws=any_laws,
    )
    _show_status(guard)


@guard_group.command("check", cls=_SetCommand)
@click.argument("database")
@click.argument("run")
@click.option("--name", help="Name of the run in the history. Default: that of the file.")
@click.option("--allow-missing", type=click.FloatRange(0.0, 100.0), default=1.0, show_default=True)
@click.pass_context
def check_command(ctx: click.Context, /, database: str, run: str, name: str | None, allow_missing: float) -> None:
    """Compare RUN with the release and with main. DATABASE may be the address of `eval guard serve`.

    Exit codes: 0 passes, 1 worse, 3 not proved, 2 usage, 4 a file that cannot be used, or nothing left.
    """
    from thresholdout.evaluations.verdict_service import open_guard

    guard = open_guard(database)
    found = guard.check(guard.read(run), name, allow_missing=allow_missing)
    code = ExitCode.UNCLEAR
    if found.passes(guard.mode):
        code = ExitCode.DONE
    elif found.outcome == "worse":
        code = ExitCode.NO
    words = {"worse": "worse", "not worse": "not worse by the margin", "nothing": "nothing to report"}[found.outcome]
    again = ", as before: the same scores are free" if found.repeated else ""
    show(
        {"schema": "thresholdout.eval.check/1", **asdict(found), "exit": int(code)},
        f"{words} (check {found.number}{again}); {amount(found.checks_left, 'check')} and "
        f"{amount(found.surprises_left, 'surprise')} left",
    )
    ctx.exit(code)


@guard_group.command("status", cls=_SetCommand)
@click.argument("database")
def status_command(database: str) -> None:
    """Show the used budget, the drop that can still be detected, and the history."""
    from thresholdout.evaluations import EvaluationGuard

    _show_status(EvaluationGuard(database), history=True)


@guard_group.command("report", cls=_SetCommand)
@click.argument("database")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="File of the page.")
def report_command(database: str, output: Path) -> None:
    """Write an HTML page with the history of the year and the remaining budget."""
    from thresholdout.evaluations import EvaluationGuard
    from thresholdout.evaluations.year_page import year_page

    output.write_text(year_page(EvaluationGuard(database).status()), encoding="utf-8", errors="replace")
    show({"file": output}, f"{output}: the page")


@guard_group.command("promote", cls=_SetCommand)
@click.argument("database")
@click.argument("run")
def promote_command(database: str, run: str) -> None:
    """Make RUN the new main. The release stays the baseline."""
    from thresholdout.evaluations import EvaluationGuard

    guard = EvaluationGuard(database)
    guard.promote(guard.read(run))
    show({"main": run}, f"main is now {run}; checks compare with it and with the release")


@guard_group.command("refresh", cls=_SetCommand)
@click.argument("database")
@click.option("--baseline", required=True, help="Run of the release on new items.")
def refresh_command(database: str, baseline: str) -> None:
    """Continue with new items, which have a new budget."""
    from thresholdout.evaluations import EvaluationGuard

    guard = EvaluationGuard(database)
    _show_status(guard.refresh(guard.read(baseline)))


@guard_group.command("serve", cls=_SetCommand)
@click.argument("database")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Use TLS if other machines can reach it.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on. 0 takes a free port.",
)
@click.option(
    "--secret-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the secret part of the address, which stays the same after a restart. Created if missing.",
)
def serve_command(database: str, host: str, port: int, secret_file: Path | None) -> None:
    """Run an HTTP server that checks runs, and returns verdicts without items or scores."""
    from thresholdout.evaluations.verdict_service import VerdictServer, secret_of

    secret = None if secret_file is None else secret_of(secret_file)
    server = VerdictServer(database, port, host=host, secret=secret)
    show(
        {"url": server.url},
        f"thresholdout eval guard check {server.url} RUN",
        "Keep this address secret. Ctrl-C stops the server.",
    )
    try:
        server.serve()
    finally:
        server.close()


@guard_group.command("close", cls=_SetCommand)
@click.argument("database")
def close_command(database: str) -> None:
    """Close this evaluation set permanently. Its history remains readable."""
    from thresholdout.evaluations import EvaluationGuard

    EvaluationGuard(database).close()
    show({"database": database, "closed": True}, f"{database} is closed")


def _show_status(guard: EvaluationGuard, *, history: bool = False) -> None:
    """Show the use of a guard, its detectable drop and, on request, its history."""
    found = guard.status()
    past = [f"  {event.number} {event.day} {event.name}: {event.outcome}" for event in found.history if history]
    show({"schema": "thresholdout.eval.status/1", **asdict(found)}, *_report(found), *past)


def _report(found: Status) -> list[str]:
    clusters = "" if found.clusters == found.gate_items else f" in {found.clusters} clusters"
    says = "worse" if found.mode == "alarm" else f"not worse by {100.0 * found.margin:g} points"
    drop = (
        f"the next check proves a change without effect with probability {found.proof_power:.2f}, "
        "if a tenth of the items differ"
        if found.proof_power is not None
        else "no drop can be seen any more; add items by refresh"
        if found.smallest_drop is None
        else f"the next check sees a drop of {100.0 * found.smallest_drop:.1f} points with power .8 "
        "if a tenth of the items differ"
    )
    promise = (
        "with probability .95 no outcome of all checks is false, whoever makes the changes from earlier outcomes"
        if found.promise == "year"
        else "each check alone, for changes that were not made from earlier outcomes"
    )
    lines = [
        f"{found.metric}: {found.gate_items} gate items{clusters}, {found.dev_items} dev items that may be read",
        f"a check says '{says}' or nothing; test: {found.tests[0 if found.mode == 'alarm' else 1]}",
        f"{found.done} of {found.checks} checks, {found.surprised} of {found.surprises} surprises used",
        drop,
        f"promise: {promise}",
        "it holds if nobody who makes changes reads gate items or results on them, and the judge stays the same",
    ]
    if found.mode == "alarm" and "sign flips" in found.tests[0]:
        lines.append("sign flips are exact where nothing changed, approximate otherwise; --any-laws holds for any laws")
    if found.assumption:
        lines.append(found.assumption)
    if found.closed is not None:
        lines.append(f"closed: {found.closed}")
    return lines
