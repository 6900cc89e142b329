"""Commands that make a guard, ask it, and show what it answered."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import click

from graphs.numerics.rounding import shown_above, shown_around, shown_below
from thresholdout.cli.options import CLIENT, FILE, GUARD, LEDGER, QUOTA, choose, entries_in_words, in_folder
from thresholdout.cli.terminal import for_spreadsheet, printable, say, table
from thresholdout.errors import InputError
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.planning.declaration import Claims, MechanismName

if TYPE_CHECKING:
    from thresholdout.guard.answer import Answer
    from thresholdout.ledger import Ledger
    from thresholdout.ledger.entry import Entry
    from thresholdout.planning.declaration import Sampling
    from thresholdout.scoring.metrics import Metric

__all__ = ["ask", "board", "compare", "create", "history", "report", "status"]


@click.command()
@LEDGER
@click.option("--train", "train_path", type=FILE, required=True, help="CSV of the training part, with labels.")
@click.option("--holdout", "holdout_path", type=FILE, required=True, help="CSV of the holdout, with labels.")
@click.option("--label", required=True, help="Column of the labels.")
@click.option("--id", "id_column", default="id", show_default=True, help="Column that identifies a record.")
@click.option("--groups", help="Column of groups; records of one group may depend on each other arbitrarily.")
@click.option("--order", help="Column of the order in time of all rows, beside --window or --transition.")
@click.option("--window", type=int, help="Rows of the holdout more than this far apart are independent.")
@click.option(
    "--transition",
    "transition_path",
    type=FILE,
    help="Labels in the order of --order are a Markov chain; CSV of its law: a column of labels, then one for each "
    "label with the probability of it next.",
)
@click.option("--graph", "graph_path", type=FILE, help="CSV of pairs of ids that may depend on each other.")
@click.option(
    "--mechanism",
    type=click.Choice(get_args(MechanismName)),
    help="How queries are answered: as on a leaderboard, where the score that is expected of a submission is a guess "
    "(the default), or with --holdout-answers by claims near training values.",
)
@click.option("--allow-duplicates", is_flag=True, help="Equal rows in both parts are different records.")
@click.option("--queries", type=int, help="Queries in all; left out, any number.")
@click.option("--holdout-answers", type=int, help="Answers of claims from the holdout; left out, any number.")
@click.option("--confidence", default=0.95, show_default=True, help="Probability that all intervals hold.")
@click.option(
    "--sampling",
    type=click.Choice(["fixed_features", "independent"]),
    help="With fixed features everybody knows the features of the holdout, and comparisons are sharper: the default "
    "for independent records or groups.",
)
@click.option(
    "--prior-queries",
    type=click.IntRange(min=1),
    help="Scores of this holdout that were seen before, each a share of the records or read to four decimals.",
)
def create(
    ledger: str,
    train_path: Path,
    holdout_path: Path,
    label: str,
    id_column: str,
    groups: str | None,
    order: str | None,
    window: int | None,
    transition_path: Path | None,
    graph_path: Path | None,
    mechanism: str | None,
    allow_duplicates: bool,
    queries: int | None,
    holdout_answers: int | None,
    confidence: float,
    sampling: str | None,
    prior_queries: int | None,
) -> None:
    """Make a guard in LEDGER, and put the labels there.

    Labels of the holdout come out through the guard's answers only. Labels of the training part are not protected:
    but for a competition, each answer comes with the exact value on that part, so whoever may ask can read them off.
    Whoever knows them can make that value what they like: it is a claim, not evidence. A competition takes none for it.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    service = PredictionGuard.create(
        ledger,
        read_table(train_path),
        read_table(holdout_path),
        label=label,
        id=id_column,
        groups=groups,
        order=order,
        window=window,
        transition=None if transition_path is None else read_table(transition_path),
        graph=None if graph_path is None else read_table(graph_path),
        queries=queries,
        confidence=confidence,
        mechanism=_mechanism(mechanism, holdout_answers),
        sampling=cast("Sampling | None", sampling),
        prior_queries=prior_queries or 0,
        allow_duplicates=allow_duplicates,
    )
    with open_ledger(ledger, must_exist=True) as opened:
        say(f"{opened.location}: {service.guard!r}")
        if len(opened.guards()) > 1:
            say(f"one of several guards there: ask it with --guard {service.identity[:12]}")
    say(f"labels {service.labels}")
    say(service.certificate.statement)
    if service.note:
        say(f"note: {service.note}")


def _mechanism(name: str | None, holdout_answers: int | None) -> MechanismName | Claims:
    """Return the mechanism of both options."""
    if holdout_answers is None:
        return cast(MechanismName, name or "leaderboard")
    if name not in (None, "claims"):
        raise InputError("mechanism", f"{name!r} beside --holdout-answers", "--mechanism claims, or one of both")
    return Claims(holdout_answers=holdout_answers)


@click.command()
@LEDGER
@click.argument("predictions", type=FILE)
@click.option("--metric", default="accuracy", show_default=True, help="What to score.")
@click.option("--clip", type=float, help="Largest loss of one record, for losses without a bound.")
@click.option("--expected", type=float, help="The score that is expected, such as a cross-validated one.")
@click.option("--name", default="", help="What the history calls the question.")
@CLIENT
@QUOTA
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@GUARD
def ask(
    ledger: str,
    predictions: Path,
    metric: str,
    clip: float | None,
    expected: float | None,
    name: str,
    client: str,
    quota: int | None,
    as_json: bool,
    guard: str | None,
) -> None:
    """Score PREDICTIONS, a CSV with a row for each record of the holdout, through the guard in LEDGER.

    The same predictions from the same client again give the same answer, and cost nothing.

    In a competition the value is where it is expected, or in another part of the range, at the price of one letter.
    What is expected is a guess: the better it is, the narrower are all later answers. A score on training records is a
    claim, since everybody has their labels. Other guards need rows for both parts, or --expected.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    low, high = chosen.bounds
    if expected is not None and not low <= expected <= high:
        raise click.ClickException(f"--expected: {expected:g}; expected: a score between {low:g} and {high:g}")
    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        answer = service.ask(read_table(predictions), chosen, expected=expected, name=name, client=client, quota=quota)
    if as_json:
        shown = ("query", "name", "value", "interval", "half_width", "source", "remaining", "repeated")
        click.echo(json.dumps({field: getattr(answer, field) for field in shown}))
        return
    guesses = service.guard.parameters.guesses
    unsaid = guesses and expected is None and answer.source != "train" and not answer.repeated
    say(_in_words(answer, guesses) + ("; a good guess by --expected makes answers narrower" if unsaid else ""))


_CODES = {"better": 0, "not settled": 4, "worse": 5}


@click.command()
@LEDGER
@click.argument("new", type=FILE)
@click.argument("old", type=FILE)
@click.option("--metric", default="accuracy", show_default=True, help="What to compare by.")
@click.option("--clip", type=float, help="Largest loss of one record, for losses without a bound.")
@click.option("--expected", type=float, help="The difference that is expected, NEW less OLD.")
@click.option("--name", default="", help="What the history calls the question.")
@CLIENT
@QUOTA
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@GUARD
@click.pass_context
def compare(
    ctx: click.Context,
    ledger: str,
    new: Path,
    old: Path,
    metric: str,
    clip: float | None,
    expected: float | None,
    name: str,
    client: str,
    quota: int | None,
    as_json: bool,
    guard: str | None,
) -> None:
    """Say whether the predictions NEW are better than OLD, through the guard in LEDGER.

    Both are CSV files with a row for each record of the holdout. Where nothing is --expected of the difference, rows
    for the training part say it; in a competition they may be missing. The same predictions again give the same answer,
    and cost nothing.

    The exit code is the verdict: 0 for better, 4 for not settled, 5 for worse. Errors have 1, wrong use of the command
    2, and a guard that answers no more 3, as everywhere.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        tables = read_table(new), read_table(old)
        service = PredictionGuard.open(opened, guard)
        found = service.compare(*tables, chosen, expected=expected, name=name, client=client, quota=quota)
    answer = found.answer
    if as_json:
        shown = {field: getattr(answer, field) for field in ("query", "name", "source", "remaining", "repeated")}
        said = {"verdict": found.verdict, "value": found.value, "interval": found.interval, "settling": found.settling}
        click.echo(json.dumps({**said, **shown}))
    else:
        low, high = found.interval
        settling = "" if found.settling is None else f"; about {found.settling:,} holdout records would settle it"
        guesses = service.guard.parameters.guesses
        value = "" if guesses and answer.source == "train" else f", {found.value:+.4f}"
        say(
            f"{printable(answer.name)}: {found.verdict}{value}  "
            f"(truth in {shown_below(low, 4, '+f')} to {shown_above(high, 4, '+f')}){settling}\n"
            f"{_asked(answer, guesses)}"
        )
    ctx.exit(_CODES[found.verdict])


def metric_of(name: str, clip: float | None) -> Metric:
    """Return the metric that the options name."""
    from thresholdout.scoring import metrics

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


def _in_words(answer: Answer, guesses: bool) -> str:
    lower, upper = answer.interval
    asked = printable(answer.name)
    name = f"best so far ({asked})" if answer.about == "best" else asked
    ends = f"{shown_below(lower, 4, 'f')} to {shown_above(upper, 4, 'f')}"
    said = f"{shown_around(answer.value, lower, upper, 4, 4, 'f')}  (truth in {ends})"
    if guesses and answer.source == "train":  # its value is the guess, and says nothing of the records
        said = f"truth in {ends}"
    return f"{name}: {said}\n{_asked(answer, guesses)}"


def _asked(answer: Answer, guesses: bool) -> str:
    left = "" if answer.remaining is None else f"; {answer.remaining} answers from the holdout left"
    again = ", asked before: nothing spent" if answer.repeated else ""
    where = f"from the {answer.source} part"
    if guesses:
        where = "about as expected" if answer.source == "train" else "not as expected"
    return f"{where}; question {answer.query}{left}{again}"


@click.command()
@LEDGER
@click.option("--metric", default="accuracy", show_default=True, help="Which submissions count.")
@click.option("--clip", type=float, help="As the submissions had it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each client.")
@GUARD
def board(ledger: str, metric: str, clip: float | None, as_json: bool, guard: str | None) -> None:
    """Show who leads, as far as it is certified: ranks come from intervals, and ties are called so.

    Of two teams whose intervals do not overlap one is better. A value inside an interval depends on what its team
    expected, and a score on training records on what its team sent for them, so neither of them ranks anybody.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        found = service.standings(chosen)
        confidence = service.certificate.confidence
    if as_json:
        for one in found:
            click.echo(json.dumps(asdict(one)))
        return
    if not found:
        say(f"no submissions by {chosen.name} yet")
        return
    rows = (
        (one.ranks, one.team or "-", shown_below(one.low, 6), shown_above(one.high, 6), one.submissions, one.best)
        for one in found
    )
    say(table(("rank", "client", "from", "to", "submissions", "best"), rows))
    say(
        f"With probability {confidence:g} each client's best truth is in its interval, for all of them at once. "
        "Ranks that overlap are ties: nothing certified separates them."
    )


@click.command()
@LEDGER
def status(ledger: str) -> None:
    """Say what is left, what the answers are worth, and where the history stands."""
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import DOCUMENT

    with open_ledger(ledger, must_exist=True) as opened:
        guards = opened.guards()
        for guard in guards:
            _show_guard(opened, guard, DOCUMENT in opened.documents(guard), alone=len(guards) == 1)
        if not guards:
            say(f"{opened.location}: no guard yet")
        say("secrets encrypted with a key" if opened.encrypted else "secrets in plain text, for the owner only")


def _show_guard(ledger: Ledger, guard: str, labelled: bool, alone: bool) -> None:
    """Say what there is to say about one guard of a ledger."""
    from thresholdout.service.prediction_guard import PredictionGuard
    from thresholdout.service.promises import corrected

    if labelled:
        service = PredictionGuard.open(ledger, guard)
        say(f"{ledger.location}: {'' if alone else f'guard {guard[:12]}, '}{service.guard!r}")
        asked, queries = ledger.count(guard), service.queries
        say(f"{asked} {'questions' if queries is None else f'of {queries} questions'} asked")
        say(service.certificate.statement)
        for sentence in corrected(service.corrections, best=service.guard._mechanism.about == "best"):
            say(sentence)
    else:
        say(f"{ledger.location}: guard {guard[:12]}, {entries_in_words(ledger.count(guard))}")
    closed = ledger.closed(guard)
    if closed is not None:
        say(f"closed: {printable(closed)}")
    say(f"checkpoint {ledger.checkpoint(guard)}")


@click.command()
@LEDGER
@click.option("--plot", "plot_path", type=click.Path(dir_okay=False, path_type=Path), help="Draw it to this file.")
@click.option("--csv", "csv_path", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@GUARD
def history(ledger: str, plot_path: Path | None, csv_path: Path | None, guard: str | None) -> None:
    """Show every question and answer so far."""
    from thresholdout.ledger import open_ledger
    from thresholdout.ledger.entry_table import history_frame
    from thresholdout.plotting import plot_history

    with open_ledger(ledger, must_exist=True) as opened:
        entries = opened.entries(choose(opened, guard))
    columns: tuple[str, ...] = ("query", "name", "train", "value", "half_width", "source", "remaining")
    rows: Iterable[tuple[object, ...]] = map(_shown, entries)
    if any(entry.client for entry in entries):
        columns = (*columns, "client")
        rows = ((*_shown(entry), entry.client or None) for entry in entries)
    say(table(columns, rows) if entries else "no questions yet")
    frame = history_frame(entries)
    if csv_path is not None:
        texts = {name: frame[name].map(for_spreadsheet) for name in ("key", "name", "source", "candidate", "client")}
        frame.assign(**texts).to_csv(in_folder(csv_path), index=False, quoting=csv.QUOTE_NONNUMERIC)
    if plot_path is not None:
        figure = plot_history(frame).figure
        kinds = figure.canvas.get_supported_filetypes()
        if plot_path.suffix[1:].lower() not in kinds:
            raise click.ClickException(
                f"{plot_path}: no kind of picture; expected: a name ending in .png, .svg or .pdf"
            )
        figure.savefig(in_folder(plot_path), dpi=150)
        say(f"drawn to {plot_path}")


def _shown(entry: Entry) -> tuple[object, ...]:
    """Return a row of the history; only answers have a value from the guard, and a half-width."""
    name = f"{entry.name}: {entry.candidate}" if entry.candidate else entry.name
    told = (entry.value, entry.half_width) if entry.source in get_args(AnswerSource) else (None, None)
    return entry.query, name, entry.train, *told, entry.source, entry.remaining


@click.command()
@LEDGER
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Write the page to this file.",
)
@click.option("--title", default="", help="Heading of the page.")
@GUARD
def report(ledger: str, output: Path, title: str, guard: str | None) -> None:
    """Write one HTML page about a guard: answers, budget, and what they are worth; nothing secret is on it."""
    from thresholdout.ledger import open_ledger
    from thresholdout.report import report_of
    from thresholdout.service.prediction_guard import DOCUMENT, PredictionGuard

    with open_ledger(ledger, must_exist=True) as opened:
        chosen = choose(opened, guard)
        if DOCUMENT in opened.documents(chosen):
            made = PredictionGuard.open(opened, chosen).guard.report(title)
        else:
            made = report_of(opened, chosen, title=title)
    say(f"{made.save(in_folder(output))}: {made.questions} questions")
