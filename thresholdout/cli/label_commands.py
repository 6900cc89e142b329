"""Commands for guards that hold labels: one bit about predictions, and labels that are corrected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, cast

import click

from thresholdout.cli.guard_commands import metric_of
from thresholdout.cli.options import CLIENT, FILE, GUARD, LEDGER, QUOTA
from thresholdout.cli.terminal import printable, say

__all__ = ["correct", "propose"]

_NOT_KEPT = 4


@click.command()
@LEDGER
@click.argument("new", type=FILE)
@click.argument("old", type=FILE)
@click.option("--metric", default="accuracy", show_default=True, help="What to decide by.")
@click.option("--clip", type=float, help="Largest loss of one record, for losses without a bound.")
@click.option("--name", default="", help="What the history calls the question.")
@CLIENT
@QUOTA
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@GUARD
@click.pass_context
def propose(
    ctx: click.Context,
    ledger: str,
    new: Path,
    old: Path,
    metric: str,
    clip: float | None,
    name: str,
    client: str,
    quota: int | None,
    as_json: bool,
    guard: str | None,
) -> None:
    """Say whether the predictions NEW are certified to be better than OLD, and nothing else.

    One bit is told, so the holdout lasts longer than with differences. Both are CSV files with a row for each record of
    the holdout. The exit code is 0 for better and 4 for anything else; errors have 1, wrong use of the command 2, and a
    guard that answers no more 3.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        tables = read_table(new), read_table(old)
        found = PredictionGuard.open(opened, guard).propose(*tables, chosen, name=name, client=client, quota=quota)
    if as_json:
        click.echo(json.dumps({field: getattr(found, field) for field in ("letter", "query", "name", "repeated")}))
    else:
        called = f"{name} ({chosen.name}, proposal)" if name else f"{chosen.name}, proposal"
        again = ", asked before: nothing spent" if found.repeated else ""
        verdict = f"better, certified by {found.test}" if found else "not certified to be better"
        say(f"{printable(called)}: {verdict}\nquestion {found.query}{again}")
    ctx.exit(0 if found else _NOT_KEPT)


@click.command()
@LEDGER
@click.argument("corrections", type=FILE)
@click.option("--reason", required=True, help="Why; everybody may read it, and it must tell no label.")
@click.option(
    "--basis",
    type=click.Choice(["public", "labels"]),
    default="labels",
    show_default=True,
    help="What the corrections rest on.",
)
@GUARD
def correct(ledger: str, corrections: Path, reason: str, basis: str, guard: str | None) -> None:
    """Put the labels in CORRECTIONS in place of others behind the guard in LEDGER; what was told carries over.

    CORRECTIONS is a CSV with the id column and "label"; a record without a label is withdrawn. With --basis public the
    whole promise holds afterwards. It says that these records were looked at, and now, whatever their labels turned out
    to be (those that were right are in the file, too), and each was judged by itself. With --basis labels nothing is
    proved about later answers.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table
    from thresholdout.service.promises import corrected

    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        chosen = cast(Literal["public", "labels"], basis)
        entry = service.correct(read_table(corrections), reason, basis=chosen)
        say(f"{printable(entry.name)}; question {entry.query}")
        for sentence in corrected(service.corrections, best=service.guard._mechanism.about == "best"):
            say(sentence)
