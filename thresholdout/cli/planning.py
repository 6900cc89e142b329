"""Commands that need no ledger: planning, and the demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from thresholdout.cli.arguments import declared, in_folder
from thresholdout.cli.terminal import say

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.planning import Plan

__all__ = ["demo", "plan"]


@click.command()
@click.option(
    "--records", type=click.IntRange(min=1), help="Records in the holdout; left out, the number that --tolerance needs."
)
@click.option(
    "--group-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Records that may depend on each other.",
)
@click.option("--window", type=click.IntRange(min=0), help="Records further apart than this are independent.")
@click.option(
    "--tolerance", type=float, help="Solve for --records; when these are given, for --budget, or with --all --queries."
)
@click.option(
    "--expected", type=float, help="The score that is likely: say how wide answers are there, for each way of asking."
)
@click.option("--all", "answer_all", is_flag=True, help="Answer every question from the holdout.")
@click.option(
    "--identically-distributed",
    is_flag=True,
    help="All records have one law, and each question is the same function of every record, whatever its number or id; "
    "then parts of the records may answer. Not so for predictions that are submitted by id.",
)
@declared
@click.pass_context
def plan(
    ctx: click.Context,
    records: int | None,
    group_size: int,
    window: int | None,
    tolerance: float | None,
    expected: float | None,
    answer_all: bool,
    identically_distributed: bool,
    queries: int,
    budget: int,
    confidence: float,
) -> None:
    """Choose a guard's parameters, or the records, budget or questions that a tolerance needs."""
    from thresholdout.planning import outlook
    from thresholdout.planning import plan as make_plan

    def given(option: str) -> bool:
        return ctx.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT

    dependent = window is not None or group_size > 1
    if dependent and records is None:
        raise click.UsageError("--group-size and --window need --records")
    if records is None and tolerance is None:
        raise click.UsageError("give --records, or --tolerance, or both")
    if window is not None and group_size > 1:
        raise click.UsageError("give --group-size or --window, not both")
    if answer_all and given("budget"):
        raise click.UsageError("give --budget or --all, not both")
    if expected is not None:
        if records is None or dependent:
            raise click.UsageError("--expected is for independent --records")
        say(f"{outlook(n=records, queries=queries, expected=expected, confidence=confidence).recommendation}")
        return
    model = _model(records, group_size, window) if records is not None and dependent else None
    solving = records is not None and tolerance is not None
    solved_budget = None if solving and not given("budget") else budget
    chosen = make_plan(
        model,
        n=None if model is not None else records,
        queries=None if solving and answer_all and not given("queries") else queries,
        budget="all" if answer_all else solved_budget,
        confidence=confidence,
        tolerance=tolerance,
        identically_distributed=identically_distributed,
    )
    say(f"{chosen.records:,} records, {chosen.queries:,} questions: {chosen.recommendation}")
    say(f"{_parameters_in_words(chosen)}\n")
    columns = ["mechanism", "route", "tolerance", "offered", "note"]
    say(chosen.alternatives[columns].to_string(index=False))


def _model(records: int, group_size: int, window: int | None) -> DependenceModel:
    """Return the dependence that the options of `plan` describe."""
    from graphs import Groups, MovingWindow

    if window is not None:
        return MovingWindow(records, window)
    return Groups([k // group_size for k in range(records)])


def _parameters_in_words(chosen: Plan) -> str:
    """Say what the recommended mechanism works with."""
    grid = "none" if chosen.grid is None else f"{chosen.grid:g}"
    if chosen.mechanism == "thresholdout":
        return (
            f"thresholdout: threshold {chosen.threshold:.6g}, noise scale {chosen.noise_scale:.6g}, answer grid {grid}"
        )
    if chosen.mechanism == "gaussian":
        return f"gaussian: standard deviation of the last answer {chosen.noise_scale:.6g}, answer grid {grid}"
    return f"splitting: {chosen.records // chosen.queries:,} records for each question"


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
