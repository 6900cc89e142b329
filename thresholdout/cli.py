"""The command line; the same words as the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from graphs.errors import ArgumentError
from thresholdout.errors import BudgetExhausted, ThresholdoutError
from thresholdout.planning.choice import MechanismName

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.answer import Answer
    from thresholdout.metrics import Metric
    from thresholdout.planning import Plan

__all__ = ["main"]


class _Exhausted(click.ClickException):
    """A budget is used up."""

    exit_code = 3


class _Commands(click.Group):
    """Commands that show errors in one line, and end with status 3 when the guard answers no more."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn the library's errors into one line."""
        try:
            return super().invoke(ctx)
        except (ThresholdoutError, ArgumentError) as error:
            raise (_Exhausted if isinstance(error, BudgetExhausted) else click.ClickException)(str(error)) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from None


def _declared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that declare how a guard will be used."""
    for option in (
        click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold."),
        click.option("--budget", default=10, show_default=True, help="Questions that may disagree with train."),
        click.option("--queries", default=1000, show_default=True, help="Questions in all."),
    ):
        command = option(command)
    return command


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_LEDGER = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=_Commands)
@click.version_option(package_name="thresholdout")
def main() -> None:
    """Ask a holdout many adaptive questions and know what every answer is worth."""


@main.command()
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
@click.option("--all", "answer_all", is_flag=True, help="Answer every question from the holdout.")
@_declared
@click.pass_context
def plan(
    ctx: click.Context,
    records: int | None,
    group_size: int,
    window: int | None,
    tolerance: float | None,
    answer_all: bool,
    queries: int,
    budget: int,
    confidence: float,
) -> None:
    """Choose a guard's parameters, or the records, budget or questions that a tolerance needs."""
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
    )
    click.echo(f"{chosen.records:,} records, {chosen.queries:,} questions: {chosen.recommendation}")
    click.echo(f"{_parameters_in_words(chosen)}\n")
    columns = ["mechanism", "route", "tolerance", "offered", "note"]
    click.echo(chosen.alternatives[columns].to_string(index=False))


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


@main.command()
@click.argument("ledger", type=_LEDGER)
@click.option("--train", "train_path", type=_FILE, required=True, help="CSV of the training part, with labels.")
@click.option("--holdout", "holdout_path", type=_FILE, required=True, help="CSV of the holdout, with labels.")
@click.option("--label", required=True, help="Column of the labels.")
@click.option("--id", "id_column", default="id", show_default=True, help="Column that identifies a record.")
@click.option("--groups", help="Column of groups; records of one group may depend on each other arbitrarily.")
@click.option("--window", type=int, help="Rows of the holdout more than this far apart are independent.")
@click.option("--chain", help="Column of the order in which the labels form a Markov chain.")
@click.option("--edges", "edges_path", type=_FILE, help="CSV of pairs of ids that may depend on each other.")
@click.option(
    "--mechanism", type=click.Choice(get_args(MechanismName)), help="How questions are answered; left out, the plan's."
)
@click.option("--allow-equal-rows", is_flag=True, help="Equal rows in both parts are different records.")
@_declared
def create(
    ledger: Path,
    train_path: Path,
    holdout_path: Path,
    label: str,
    id_column: str,
    groups: str | None,
    window: int | None,
    chain: str | None,
    edges_path: Path | None,
    mechanism: str | None,
    allow_equal_rows: bool,
    queries: int,
    budget: int,
    confidence: float,
) -> None:
    """Make a guard in the file LEDGER; labels go there, and never come out."""
    from thresholdout.service import PredictionGuard, read_table

    service = PredictionGuard.create(
        ledger,
        read_table(train_path),
        read_table(holdout_path),
        label=label,
        id=id_column,
        groups=groups,
        window=window,
        chain=chain,
        edges=None if edges_path is None else read_table(edges_path),
        queries=queries,
        budget=budget,
        confidence=confidence,
        mechanism=cast(MechanismName | None, mechanism),
        allow_equal_rows=allow_equal_rows,
    )
    click.echo(f"{ledger}: {service.guard!r}")
    click.echo(f"labels {service.labels}")
    click.echo(service.certificate.statement)
    if service.note:
        click.echo(f"note: {service.note}")


@main.command()
@click.argument("ledger", type=_LEDGER)
@click.argument("predictions", type=_FILE)
@click.option("--metric", default="accuracy", show_default=True, help="What to score.")
@click.option("--clip", type=float, help="Largest loss of one record, for losses without a bound.")
@click.option("--name", default="", help="What the history calls the question.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def ask(ledger: Path, predictions: Path, metric: str, clip: float | None, name: str, as_json: bool) -> None:
    """Score PREDICTIONS, a CSV with a row for each record of both parts, through the guard in LEDGER.

    The same predictions again give the same answer, and cost nothing.
    """
    from thresholdout.service import PredictionGuard, read_table

    chosen = _metric(metric, clip)
    service = PredictionGuard.open(ledger)
    answer = service.ask(read_table(predictions), chosen, name=name)
    if as_json:
        shown = ("query", "name", "value", "half_width", "source", "remaining", "repeated")
        click.echo(json.dumps({field: getattr(answer, field) for field in shown}))
        return
    click.echo(_in_words(answer))


def _metric(name: str, clip: float | None) -> Metric:
    """Return the metric that the options of `ask` name."""
    from thresholdout import metrics

    plain = {f.__name__: f for f in (metrics.accuracy, metrics.zero_one_loss, metrics.brier_score)}
    clipped = {f.__name__: f for f in (metrics.squared_error, metrics.absolute_error)}
    if clip is not None:
        if name == "log_loss":
            return metrics.log_loss(clip)
        if name not in clipped:
            raise click.UsageError(f"--clip goes with --metric {', '.join(('log_loss', *clipped))}")
        return clipped[name](clip)
    if name in clipped:
        raise click.ClickException(f"--metric {name} needs --clip, the largest loss of one record; such as --clip 10")
    if name == "log_loss":
        return metrics.log_loss()
    if name not in plain:
        expected = ", ".join([*plain, "log_loss", *(f"{n} with --clip" for n in clipped)])
        raise click.ClickException(f"--metric: {name!r}; expected: {expected}")
    return plain[name]()


def _in_words(answer: Answer) -> str:
    lower, upper = answer.interval
    name = f"best so far ({answer.name})" if answer.about == "best" else answer.name
    left = "" if answer.remaining is None else f"; {answer.remaining} answers from the holdout left"
    again = ", asked before: nothing spent" if answer.repeated else ""
    return (
        f"{name}: {answer.value:.4f} ± {answer.half_width:.4f}  (truth in {lower:.4f} to {upper:.4f})\n"
        f"from the {answer.source} part; question {answer.query}{left}{again}"
    )


@main.command()
@click.argument("ledger", type=_LEDGER)
def status(ledger: Path) -> None:
    """Say what is left, and what the answers are worth."""
    from thresholdout.service import PredictionGuard

    service = PredictionGuard.open(ledger)
    click.echo(f"{ledger}: {service.guard!r}")
    click.echo(f"{len(service.guard.history)} of {service.queries} questions asked")
    click.echo(service.certificate.statement)


@main.command()
@click.argument("ledger", type=_LEDGER)
@click.option("--plot", "plot_path", type=click.Path(dir_okay=False, path_type=Path), help="Draw it to this file.")
@click.option("--csv", "csv_path", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
def history(ledger: Path, plot_path: Path | None, csv_path: Path | None) -> None:
    """Show every question and answer so far."""
    from thresholdout.service import PredictionGuard

    guard = PredictionGuard.open(ledger).guard
    frame = guard.history
    columns = ["query", "name", "train", "value", "half_width", "source", "remaining"]
    click.echo(frame[columns].to_string(index=False) if len(frame) else "no questions yet")
    if csv_path is not None:
        frame.to_csv(_in_folder(csv_path), index=False)
    if plot_path is not None:
        figure = guard.plot().figure
        kinds = figure.canvas.get_supported_filetypes()
        if plot_path.suffix[1:].lower() not in kinds:
            raise click.ClickException(
                f"{plot_path}: no kind of picture; expected: a name ending in .png, .svg or .pdf"
            )
        figure.savefig(_in_folder(plot_path), dpi=150)
        click.echo(f"drawn to {plot_path}")


def _in_folder(path: Path) -> Path:
    """Refuse a file whose folder does not exist."""
    if not path.parent.is_dir():
        raise click.ClickException(f"{path}: there is no folder {path.parent}")
    return path


@main.command()
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

    demonstrate(seed=seed, picture=_in_folder(picture), echo=click.echo)
