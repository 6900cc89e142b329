"""Commands that need no ledger: planning, and the demonstration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from graphs.numerics.rounding import shown_below
from thresholdout.cli.options import FILE, NEW_FILE, in_folder
from thresholdout.cli.running import Command, Misuse, show, wants_json
from thresholdout.cli.terminal import say
from thresholdout.planning.planner import within

if TYPE_CHECKING:
    from graphs import DependenceModel
    from thresholdout.planning.plan import Plan
    from thresholdout.planning.request import Family

__all__ = ["demo", "plan"]


@click.command(cls=Command)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    help="Number of records of the holdout. Default: the number that --width needs.",
)
@click.option(
    "--group-size",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of records in a group, which may depend on each other.",
)
@click.option("--window", type=click.IntRange(min=0), help="Distance beyond which records of a series are independent.")
@click.option("--queries", type=click.IntRange(min=1), help="Number of queries. Default: no limit.")
@click.option(
    "--anticipated-score", "expected", type=float, default=0.9, show_default=True, help="Score that you anticipate."
)
@click.option(
    "--n-train",
    "train_records",
    type=click.IntRange(min=1),
    help="Number of independent records (or groups) behind the training values. Default: as in the holdout.",
)
@click.option(
    "--similarity",
    type=float,
    default=0.5,
    show_default=True,
    help="Correlation of the values of two queries on a record. 0 for unrelated queries.",
)
@click.option(
    "--correlation",
    type=float,
    help="Correlation of right and wrong predictions in a group (default 0.5), or within --window.",
)
@click.option(
    "--limits",
    type=click.Choice(["exact", "normal"]),
    default="exact",
    show_default=True,
    help="Kind of limits for means over groups. 'normal' is approximate.",
)
@click.option(
    "--width", type=float, help="Half-width to reach. Solves for --records or, if they are given, for --queries."
)
@click.option("--batch", "fixed", is_flag=True, help="Plan for queries that are all fixed before the first answer.")
@click.option("--budget", type=click.IntRange(min=1), help="Number of answers from the holdout, for Algorithm 1.")
@click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold at once.")
@click.option(
    "--prior-queries", type=click.IntRange(min=1), help="Number of scores of this holdout that were seen before."
)
@click.option("--teams", type=click.IntRange(min=1), help="Number of teams on a leaderboard, with one answer each.")
@click.option(
    "--anticipation-error",
    type=float,
    default=0.0,
    show_default=True,
    help="Amount by which the teams overestimate their scores.",
)
@click.option(
    "--epsilon",
    type=float,
    help="Largest privacy loss of a record by all answers together, in nats, under the dependence.",
)
@click.option("--edges", type=FILE, help="CSV file of the edges of an Ising model: pairs of records. Needs --coupling.")
@click.option("--coupling", type=float, help="Coupling of the labels at the two ends of an edge in the Ising model.")
@click.option(
    "--chain",
    type=FILE,
    help="CSV file of a Markov chain: a column of labels, then for each label a column of its probabilities.",
)
def plan(
    records: int | None,
    group_size: int,
    window: int | None,
    queries: int | None,
    expected: float,
    train_records: int | None,
    similarity: float,
    correlation: float | None,
    limits: Literal["exact", "normal"],
    width: float | None,
    fixed: bool,
    budget: int | None,
    confidence: float,
    prior_queries: int | None,
    teams: int | None,
    anticipation_error: float,
    epsilon: float | None,
    edges: Path | None,
    coupling: float | None,
    chain: Path | None,
) -> None:
    """Compute the half-width of intervals, or the records and queries that a half-width needs.

    \b
    thresholdout plan --records 2000 --queries 100
    thresholdout plan --width 0.02 --queries 100
    thresholdout plan --width 0.02 --queries 100 --window 7
    thresholdout plan --edges edges.csv --coupling 0.2 --epsilon 0.5
    thresholdout plan --chain transition.csv --records 10000 --epsilon 0.5
    """  # noqa: D301
    from thresholdout.planning.planner import plan as make_plan

    if records is None and width is None and edges is None:
        raise click.UsageError("Pass --records, --width, or both.")
    kinds = {"--group-size": group_size > 1, "--window": window is not None, "--edges": edges, "--chain": chain}
    named = [name for name, given in kinds.items() if given]
    if len(named) > 1:
        raise click.UsageError(f"Pass one of {', '.join(named)}.")
    if (edges is None) != (coupling is None) or (edges is not None and records is not None):
        raise click.UsageError("--edges needs --coupling, and excludes --records: the edges name the records.")
    declared: int | DependenceModel | Family | None = records
    if edges is not None and coupling is not None:
        declared = _field(edges, coupling)
    elif chain is not None:
        declared = _chain(chain, records)
    elif named:
        declared = _dependent(records, group_size, window)
    chosen = make_plan(
        declared,
        queries=queries,
        anticipated_score=expected,
        n_train=train_records,
        similarity=similarity,
        correlation=correlation,
        limits=limits,
        width=width,
        adaptive=not fixed,
        budget=budget,
        confidence=confidence,
        prior_queries=prior_queries,
        teams=teams,
        anticipation_error=anticipation_error,
        epsilon=epsilon,
    )
    show(chosen.to_json(), _in_words(chosen))


def _dependent(records: int | None, group_size: int, window: int | None) -> DependenceModel | Family:
    """Return the model in the options of `plan`, or without a number of records its family."""
    from graphs import Groups, MovingWindow

    def family(n: int) -> DependenceModel:
        return Groups([k // group_size for k in range(n)]) if window is None else MovingWindow(n, window)

    return family if records is None else family(records)


def _field(edges: Path, coupling: float) -> DependenceModel:
    """Return the Ising model on the edges of a file."""
    import networkx as nx

    from graphs import MarkovField
    from thresholdout.service.prediction_guard import read_table

    table = read_table(edges)
    if table.shape[1] < 2:
        raise Misuse(f"{edges} must have two columns, the names of both ends of an edge; got one column.")
    ends = [table.iloc[:, place].astype(str) for place in (0, 1)]
    return MarkovField.ising(nx.Graph(list(zip(*ends, strict=True))), coupling)


def _chain(transition: Path, records: int | None) -> DependenceModel | Family:
    """Return the Markov chain of a file, or without a number of records its family."""
    from graphs import MarkovChain
    from thresholdout.service.prediction_guard import read_table

    table = read_table(transition)
    states = [str(column) for column in table.columns[1:]]
    rows = table.iloc[:, 0].astype(str).tolist()
    if sorted(rows) != sorted(states) or len(set(rows)) < len(rows):
        expected = "a first column of labels, and for each label a column with its probability to be next"
        raise Misuse(
            f"{transition} must have {expected}; got rows for {', '.join(rows)} and columns for {', '.join(states)}."
        )
    matrix = table.iloc[[rows.index(state) for state in states], 1:].to_numpy(dtype=float)

    def family(n: int) -> DependenceModel:
        return MarkovChain(matrix, n=n)

    return family if records is None else family(records)


def _in_words(chosen: Plan) -> str:
    """Return the recommendation, the warnings and the half-width of each way."""
    recommended = chosen.recommended
    lines = [chosen.recommendation, *chosen.warnings, f"Ask: {recommended.call}"]
    lines += [chosen.division] if chosen.division else []
    if chosen.epsilon is not None:
        applied = chosen.budgets["budget"]
        lines += [
            f"Epsilon of one record: {shown_below(applied[~chosen.budgets['published']].max(), 3)} by the best route"
        ]
        lines += [f"  {name}: {_budget(row)}" for name, row in chosen.budgets.iterrows()]
    lines += [] if chosen.leaderboard is None else [str(chosen.leaderboard)]
    lines.append("")
    for way in chosen.ways:
        if not way.applies:
            lines.append(f"  {'-':<10} {way.name}: {way.why_not}")
            continue
        mark = "*" if way is recommended else " "
        takes = []
        if way.records:
            takes.append(f"{way.records:,} {'record' if way.records == 1 else 'records'}")
        if way.queries:
            takes.append(f"{way.queries:,} {'query' if way.queries == 1 else 'queries'}")
        reached = f" (± {chosen.width:g}: {' or '.join(takes)})" if takes else ""
        lines.append(f"{mark} {within(way.half_width):<10} {way.name}{reached}; needs {way.needs}")
    return "\n".join(lines)


def _budget(row: Any) -> str:
    """Return a route's budget in words, or why it does not apply."""
    if row["reason"]:
        return str(row["reason"])
    return f"{shown_below(row['budget'], 3)} ({row['source']}{'; for comparison' if row['published'] else ''})"


@click.command(cls=Command)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the simulated analysts. The noise of the guards is not seeded.",
)
@click.option(
    "--picture",
    default="thresholdout-demo.png",
    show_default=True,
    type=NEW_FILE,
    help="File for the picture.",
)
def demo(seed: int, picture: Path) -> None:
    """Show how a reused holdout overfits on real data, and how a guard prevents it."""
    from thresholdout.simulation.demonstration import demonstrate

    echo: Callable[[str], None] = (lambda line: None) if wants_json() else say
    found = demonstrate(seed=seed, picture=in_folder(picture), echo=echo)
    if wants_json():
        show(found)
