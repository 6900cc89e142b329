"""Commands that need no ledger: planning, and the demonstration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from thresholdout.cli.options import in_folder
from thresholdout.cli.terminal import say
from thresholdout.planning.description import within

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.planning import Plan

__all__ = ["demo", "plan"]


@click.command()
@click.option(
    "--records", type=click.IntRange(min=1), help="Records in the holdout; left out, the number that --width needs."
)
@click.option(
    "--group-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Records that may depend on each other.",
)
@click.option("--window", type=click.IntRange(min=0), help="Records further apart than this are independent.")
@click.option("--queries", type=click.IntRange(min=1), help="Questions in all; any number by default.")
@click.option("--expected", type=float, default=0.9, show_default=True, help="The score that is likely.")
@click.option(
    "--train-records",
    type=click.IntRange(min=1),
    help="Independent records (or groups) from which training values come; as many as in the holdout by default.",
)
@click.option("--width", type=float, help="Half-width to reach: solve for --records, or with these for --queries.")
@click.option("--fixed", is_flag=True, help="All questions are fixed before the first answer.")
@click.option("--budget", type=click.IntRange(min=1), help="Questions that may disagree with train, for Algorithm 1.")
@click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold.")
@click.option("--prior-queries", type=click.IntRange(min=1), help="Scores of this holdout that were seen before.")
@click.option("--teams", type=click.IntRange(min=1), help="Teams of a leaderboard, one answer each.")
@click.option(
    "--guess-error", type=float, default=0.0, show_default=True, help="By how much they guess their scores too high."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
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
    guess_error: float,
    as_json: bool,
) -> None:
    """Say which way to ask, how wide answers will be, and how many records or questions a width takes."""
    from thresholdout.planning import plan as make_plan

    dependent = window is not None or group_size > 1
    if dependent and records is None:
        raise click.UsageError("--group-size and --window need --records")
    if records is None and width is None:
        raise click.UsageError("give --records, or --width, or both")
    if window is not None and group_size > 1:
        raise click.UsageError("give --group-size or --window, not both")
    chosen = make_plan(
        _model(records, group_size, window) if records is not None and dependent else records,
        queries=queries,
        expected=expected,
        train_records=train_records,
        width=width,
        fixed=fixed,
        budget=budget,
        confidence=confidence,
        prior_queries=prior_queries,
        teams=teams,
        guess_error=guess_error,
    )
    say(json.dumps(chosen.to_json(), indent=2) if as_json else _in_words(chosen))


def _model(records: int, group_size: int, window: int | None) -> DependenceModel:
    """Return the dependence that the options of `plan` describe."""
    from graphs import Groups, MovingWindow

    if window is not None:
        return MovingWindow(records, window)
    return Groups([k // group_size for k in range(records)])


def _in_words(chosen: Plan) -> str:
    """Say what is recommended, what stands in the way, and what every way of asking is worth."""
    recommended = chosen.recommended
    lines = [chosen.recommendation, *chosen.warnings, f"Ask: {recommended.call}"]
    lines += [] if chosen.leaderboard is None else [str(chosen.leaderboard)]
    lines.append("")
    for way in chosen.ways:
        mark = "*" if way is recommended else " "
        takes = [
            _counted(number, noun) for number, noun in ((way.records, "record"), (way.queries, "question")) if number
        ]
        reached = f" (± {chosen.width:g}: {' or '.join(takes)})" if takes else ""
        lines.append(f"{mark} {within(way.half_width):<10} {way.name}{reached}; needs {way.needs}")
    return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@click.command()
@click.option("--seed", default=1, show_default=True, help="Seed of the analysts; the guards' noise is real.")
@click.option(
    "--picture",
    default="thresholdout-demo.png",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to draw.",
)
def demo(seed: int, picture: Path) -> None:
    """Show on real data what reusing a holdout does, and what a guard does about it."""
    from thresholdout.simulation.demonstration import demonstrate

    demonstrate(seed=seed, picture=in_folder(picture), echo=say)
