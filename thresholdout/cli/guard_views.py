"""Commands that show the state, the history and the report of a guard."""

from __future__ import annotations

import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from graphs.errors import amount
from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.cli.options import (
    GUARD,
    LEDGER,
    NEW_FILE,
    choose,
    in_folder,
    metric_of,
    metric_options,
)
from thresholdout.cli.running import Command, Misuse, show
from thresholdout.cli.terminal import for_spreadsheet, printable, table
from thresholdout.mechanisms.base import AnswerSource

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.ledger.entry import Entry

__all__ = ["history", "report", "status"]


@click.command(cls=Command)
@LEDGER
def status(ledger: str) -> None:
    """Show the remaining budget, the certificate and the checkpoint of every guard in LEDGER."""
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import DOCUMENT

    with open_ledger(ledger, must_exist=True) as opened:
        location, encrypted, guards = str(opened.location), opened.encrypted, opened.guards()
        described = [
            _guard_status(opened, guard, DOCUMENT in opened.documents(guard), alone=len(guards) == 1)
            for guard in guards
        ]
    lines = [line for _, guard_lines in described for line in guard_lines]
    if not guards:
        lines.append(f"{location}: no guard yet")
    lines.append(
        "secrets encrypted with a key" if encrypted else "secrets in plain text, readable by the owner of the file only"
    )
    show({"ledger": location, "encrypted": encrypted, "guards": [data for data, _ in described]}, *lines)


def _guard_status(ledger: Ledger, guard: str, labelled: bool, alone: bool) -> tuple[dict[str, Any], list[str]]:
    """Return the status of one guard as data and as lines."""
    from thresholdout.service.guarantee_text import corrected
    from thresholdout.service.prediction_guard import PredictionGuard

    asked, closed, checkpoint = ledger.count(guard), ledger.closed(guard), ledger.checkpoint(guard)
    data: dict[str, Any] = {"guard": guard, "queries": asked, "closed": closed, "checkpoint": checkpoint}
    if labelled:
        service = PredictionGuard.open(ledger, guard)
        sentences = corrected(service.corrections, best=service.guard._mechanism.about == "best")
        most = service.queries
        lines = [
            f"{ledger.location}: {'' if alone else f'guard {guard[:12]}, '}{service.guard!r}",
            f"{amount(asked, 'query') if most is None else f'{asked:,} of ' + amount(most, 'query')} so far",
            service.certificate.statement,
            *sentences,
        ]
        data |= {
            "records": service.guard.n,
            "most_queries": most,
            "holdout_answers_left": service.guard.status.answers_left,
            "exhausted": service.guard.status.exhausted,
            "statement": service.certificate.statement,
            "corrections": list(sentences),
        }
    else:
        lines = [f"{ledger.location}: guard {guard[:12]}, {amount(asked, 'entry')}"]
        lines += _approximate(ledger, guard, data)
    if closed is not None:
        lines.append(f"closed: {printable(closed)}")
    return data, [*lines, f"checkpoint {checkpoint}"]


def _approximate(ledger: Ledger, guard: str, data: dict[str, Any]) -> list[str]:
    """Return the line about approximate intervals, if a guard has them, and add it to the data."""
    from thresholdout.planning.declaration import read_declaration

    found = read_declaration(ledger, guard)[1].approximation
    if not found:
        return []
    data["approximation"] = found
    return [f"intervals are approximate, not guaranteed: {found}"]


@click.command(cls=Command)
@LEDGER
@click.option("--plot", type=NEW_FILE, help="File for a picture of the history.")
@click.option("--csv", "csv_path", type=NEW_FILE, help="File for the history as CSV.")
@click.option("--leaderboard", is_flag=True, help="Show the clients with certified ranks instead.")
@metric_options
@GUARD
@click.pass_context
def history(
    ctx: click.Context,
    ledger: str,
    plot: Path | None,
    csv_path: Path | None,
    leaderboard: bool,
    metric: str,
    clip: float | None,
    guard: str | None,
) -> None:
    """Show every query and answer so far, or the leaderboard.

    On the leaderboard ranks come from intervals. Two clients whose intervals overlap are tied. Anticipated scores and
    training scores rank nobody. --metric and --clip choose its submissions.
    """
    from thresholdout.ledger import open_ledger

    if leaderboard:
        if plot is not None or csv_path is not None:
            raise click.UsageError("--leaderboard excludes --plot and --csv.")
        _show_leaderboard(ledger, metric, clip, guard)
        return
    for option in ("metric", "clip"):
        if ctx.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"--{option} needs --leaderboard.")
    with open_ledger(ledger, must_exist=True) as opened:
        identity = choose(opened, guard)
        entries = opened.entries(identity)
        data: dict[str, Any] = {"guard": identity}
        approximate = _approximate(opened, identity, data)
    columns = ["query", "name", "train", "value", "half_width", "source", "remaining"]
    named = any(entry.client for entry in entries)
    if named:
        columns.append("client")
    rows = [(*_shown(entry), entry.client or None) if named else _shown(entry) for entry in entries]
    lines = [table(columns, rows) if entries else "no queries yet", *approximate]
    from thresholdout.ledger.entry import history_frame

    frame = history_frame(entries, data.get("approximation", ""))
    if csv_path is not None:
        texts = {name: frame[name].map(for_spreadsheet) for name in ("key", "name", "source", "candidate", "client")}
        frame.assign(**texts, **{str(name): how for name, how in frame.attrs.items()}).to_csv(
            in_folder(csv_path), index=False, quoting=csv.QUOTE_NONNUMERIC
        )
    if plot is not None:
        from thresholdout.plotting import plot_history

        figure = plot_history(frame).figure
        kinds = figure.canvas.get_supported_filetypes()
        if plot.suffix[1:].lower() not in kinds:
            raise Misuse(f"The name of a picture must end in .png, .svg or .pdf; got {plot}.")
        figure.savefig(in_folder(plot), dpi=150)
        lines.append(f"picture in {plot}")
    show(data | {"answers": [dict(zip(columns, row, strict=True)) for row in rows]}, *lines)


def _show_leaderboard(ledger: str, metric: str, clip: float | None, guard: str | None) -> None:
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        found = service.standings(chosen)
        confidence = service.certificate.confidence
    rows = (
        (one.ranks, one.team or "-", shown_below(one.low, 6), shown_above(one.high, 6), one.submissions, one.best)
        for one in found
    )
    lines = [f"no submissions by {chosen.name} yet"]
    if found:
        lines = [
            table(("rank", "client", "from", "to", "submissions", "best"), rows),
            f"With probability {confidence:g} the true score of each client's best submission is in its interval, for "
            "all clients at once. Overlapping ranks are ties.",
        ]
    data = {"metric": chosen.name, "confidence": confidence, "leaderboard": [asdict(one) for one in found]}
    show(data, *lines)


def _shown(entry: Entry) -> tuple[object, ...]:
    """Return a row of the history; only answers have a value from the guard, and a half-width."""
    name = f"{entry.name}: {entry.candidate}" if entry.candidate else entry.name
    numbers = (entry.value, entry.half_width) if entry.source in get_args(AnswerSource) else (None, None)
    return entry.query, name, entry.train, *numbers, entry.source, entry.remaining


@click.command(cls=Command)
@LEDGER
@click.option("--output", type=NEW_FILE, default=Path("report.html"), show_default=True, help="File of the page.")
@click.option("--title", default="", help="Heading of the page.")
@GUARD
def report(ledger: str, output: Path, title: str, guard: str | None) -> None:
    """Write an HTML page about a guard, with answers, budget and certificate, but no secrets."""
    from thresholdout.ledger import open_ledger
    from thresholdout.report import report_of
    from thresholdout.service.prediction_guard import DOCUMENT, PredictionGuard

    with open_ledger(ledger, must_exist=True) as opened:
        chosen = choose(opened, guard)
        if DOCUMENT in opened.documents(chosen):
            made = PredictionGuard.open(opened, chosen).guard.report(title)
        else:
            made = report_of(opened, chosen, title=title)
    saved = made.save(in_folder(output))
    show({"guard": chosen, "file": saved, "queries": made.queries}, f"{saved}: {amount(made.queries, 'query')}")
