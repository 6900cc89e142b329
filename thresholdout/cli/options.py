"""Options and arguments shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from thresholdout.cli.running import Failure, Misuse

if TYPE_CHECKING:
    from thresholdout.ledger import Ledger
    from thresholdout.scoring.metrics import Metric

__all__ = [
    "CLIENT",
    "FILE",
    "GUARD",
    "KEY_FILE",
    "LEDGER",
    "NEW_FILE",
    "QUOTA",
    "choose",
    "holdout_tables",
    "in_folder",
    "metric_of",
    "metric_options",
]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

NEW_FILE = click.Path(dir_okay=False, path_type=Path)


def _files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


# The name of a file or an address, as `thresholdout.ledger.open_ledger` takes it.
LEDGER = click.argument("ledger", shell_complete=_files)

KEY_FILE = click.option(
    "--key-file", type=FILE, help="File with the key of the ledger. Default: THRESHOLDOUT_KEY or THRESHOLDOUT_KEY_FILE."
)

GUARD = click.option("--guard", help="First characters of a guard's identity, if the ledger has several.")

CLIENT = click.option("--client", default="", help="Name of the client in the history and on the leaderboard.")

QUOTA = click.option("--quota", type=click.IntRange(min=0), help="Maximum number of queries of this client.")


def metric_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a metric."""
    command = click.option(
        "--clip", type=float, help="Largest loss of one record, for metrics without an upper bound."
    )(command)
    return click.option("--metric", default="accuracy", show_default=True, help="Metric of the score.")(command)


def holdout_tables(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that declare a holdout: its tables, columns and dependence."""
    options = (
        click.option("--train", type=FILE, required=True, help="CSV file of the training part, with labels."),
        click.option("--holdout", type=FILE, required=True, help="CSV file of the holdout, with labels."),
        click.option("--label", required=True, help="Column of the labels."),
        click.option("--id", default="id", show_default=True, help="Column that identifies a record."),
        click.option("--groups", help="Column of groups. Records of one group may depend on each other arbitrarily."),
        click.option("--order", help="Column that orders all rows in time."),
        click.option("--window", type=int, help="Rows of the holdout further apart than this are independent."),
        click.option(
            "--transition",
            type=FILE,
            help="CSV file of transition probabilities, if labels in the order of --order form a Markov chain. A "
            "column of labels, then a column for each label with the probability that it comes next.",
        ),
        click.option("--graph", type=FILE, help="CSV file of pairs of ids of records that may depend on each other."),
        click.option(
            "--confidence", default=0.95, show_default=True, help="Probability that all intervals hold at once."
        ),
        click.option(
            "--prior-queries",
            type=click.IntRange(min=1),
            help="Number of scores of this holdout that were seen before: shares of records, or read to four decimals.",
        ),
        click.option(
            "--allow-duplicates",
            is_flag=True,
            help="Accept equal rows in both parts, where they are different records.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def in_folder(path: Path) -> Path:
    """Refuse a file whose folder does not exist."""
    if not path.parent.is_dir():
        raise Failure(f"{path} cannot be written: there is no folder {path.parent}.")
    return path


def choose(ledger: Ledger, start: str | None) -> str:
    """Return the one guard of a ledger whose identity begins with `start`."""
    found = [identity for identity in ledger.guards() if identity.startswith(start or "")]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(f"{ledger.location} holds no {'such ' if start else ''}guard.")
    listed = ", ".join(identity[:12] for identity in found[:5])
    more = ", ..." if len(found) > 5 else ""
    raise Misuse(f"{ledger.location} holds {len(found)} guards. Choose one with --guard: {listed}{more}.")


def metric_of(name: str, clip: float | None) -> Metric:
    """Return the metric that the options name."""
    from thresholdout.scoring import metrics

    plain = {f.__name__: f for f in (metrics.accuracy, metrics.zero_one_loss, metrics.brier_score)}
    clipped = {f.__name__: f for f in (metrics.squared_error, metrics.absolute_error)}
    if clip is not None:
        if name == "log_loss":
            return metrics.log_loss(clip)
        if name not in clipped:
            raise click.UsageError(f"--clip needs --metric {', '.join(('log_loss', *clipped))}.")
        return clipped[name](clip)
    if name in clipped:
        raise Misuse(f"--metric {name} needs --clip, the largest loss of one record, such as --clip 10.")
    if name == "log_loss":
        return metrics.log_loss()
    if name not in plain:
        expected = ", ".join([*plain, "log_loss", *(f"{n} with --clip" for n in clipped)])
        raise Misuse(f"--metric must be one of {expected}; got {name!r}.")
    return plain[name]()
