"""Commands that need no ledger: planning, and the demonstration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thresholdout.cli.options import NEW_FILE, in_folder
from thresholdout.cli.running import Command, show, wants_json
from thresholdout.cli.terminal import say
from thresholdout.planning.planner import within

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.planning import Plan
    from thresholdout.planning.request import Family

__all__ = ["demo", "plan"]


@click.command(cls=Command)
@click.option(
    "--records", type=click.IntRange(min=1), help="Records in the holdout. Default: the number that --width needs."
)
@click.option(
    "--group-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Records that may depend on each other.",
)
@click.option("--window", type=click.IntRange(min=0), help="Records further apart than this are independent.")
@click.option("--queries", type=click.IntRange(min=1), help="Number of queries. Default: no limit.")
@click.option("--anticipated-score", "expected", type=float, default=0.9, show_default=True, help="Anticipated score.")
@click.option(
    "--n-train",
    "train_records",
    type=click.IntRange(min=1),
    help="Independent records (or groups) of the training values. Default: as many as in the holdout.",
)
@click.option("--width", type=float, help="Target half-width. Solves for --records, or with these for --queries.")
@click.option("--batch", "fixed", is_flag=True, help="All queries are fixed before the first answer.")
@click.option("--budget", type=click.IntRange(min=1), help="Answers from the holdout, for Algorithm 1.")
@click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold at once.")
@click.option("--prior-queries", type=click.IntRange(min=1), help="Scores of this holdout that were seen before.")
@click.option("--teams", type=click.IntRange(min=1), help="Teams of a leaderboard, one answer each.")
@click.option(
    "--anticipation-error", type=float, default=0.0, show_default=True, help="Excess of their anticipated scores."
)
def plan(
    records: int | None,
    group_size: int,
    window: int | None,
    queries: int | None,
    expected: float,
    train_records: int | None,
    width: float | None,
    fixed: bool,
    budget: int | None,
    confidence: float,
    prior_queries: int | None,
    teams: int | None,
    anticipation_error: float,
) -> None:
    """Plan the half-widths of answers, or the records and queries for a half-width.

    \b
    thresholdout plan --records 2000 --queries 100
    thresholdout plan --width 0.02 --queries 100
    thresholdout plan --width 0.02 --queries 100 --window 7
    """  # noqa: D301
    from thresholdout.planning import plan as make_plan

    dependent = window is not None or group_size > 1
    if records is None and width is None:
        raise click.UsageError("give --records, or --width, or both")
    if window is not None and group_size > 1:
        raise click.UsageError("give --group-size or --window, not both")
    chosen = make_plan(
        _dependent(records, group_size, window) if dependent else records,
        queries=queries,
        anticipated_score=expected,
        n_train=train_records,
        width=width,
        adaptive=not fixed,
        budget=budget,
        confidence=confidence,
        prior_queries=prior_queries,
        teams=teams,
        anticipation_error=anticipation_error,
    )
    show(chosen.to_json(), _in_words(chosen))


def _dependent(records: int | None, group_size: int, window: int | None) -> DependenceModel | Family:
    """Return the model that the options of `plan` describe, or without a number of records its family."""
    from graphs import Groups, MovingWindow

    def family(n: int) -> DependenceModel:
        return Groups([k // group_size for k in range(n)]) if window is None else MovingWindow(n, window)

    return family if records is None else family(records)


def _in_words(chosen: Plan) -> str:
    """Return the recommendation, the warnings and the half-width of each way."""
    recommended = chosen.recommended
    lines = [chosen.recommendation, *chosen.warnings, f"Ask: {recommended.call}"]
    lines += [] if chosen.leaderboard is None else [str(chosen.leaderboard)]
    lines.append("")
    for way in chosen.ways:
        mark = "*" if way is recommended else " "
        takes = []
        if way.records:
            takes.append(f"{way.records:,} {'record' if way.records == 1 else 'records'}")
        if way.queries:
            takes.append(f"{way.queries:,} {'query' if way.queries == 1 else 'queries'}")
        reached = f" (± {chosen.width:g}: {' or '.join(takes)})" if takes else ""
        lines.append(f"{mark} {within(way.half_width):<10} {way.name}{reached}; needs {way.needs}")
    return "\n".join(lines)


@click.command(cls=Command)
@click.option("--seed", default=1, show_default=True, help="Seed of the analysts. The noise of the guards has none.")
@click.option(
    "--picture",
    default="thresholdout-demo.png",
    show_default=True,
    type=NEW_FILE,
    help="File of the picture.",
)
def demo(seed: int, picture: Path) -> None:
    """Show on real data the effect of a reused holdout, and of a guard."""
    from thresholdout.simulation.demonstration import demonstrate

    echo: Callable[[str], None] = (lambda line: None) if wants_json() else say
    found = demonstrate(seed=seed, picture=in_folder(picture), echo=echo)
    if wants_json():
        show(found)
