"""Commands that make a guard, query it, and correct its labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import click

from graphs.errors import amount
from graphs.numerics.rounding import shown_answer, shown_interval
from thresholdout.cli.options import (
    CLIENT,
    FILE,
    GUARD,
    LEDGER,
    QUOTA,
    choose,
    holdout_tables,
    metric_of,
    metric_options,
)
from thresholdout.cli.running import Command, ExitCode, show
from thresholdout.cli.terminal import printable
from thresholdout.errors import InputError
from thresholdout.planning.declaration import Claims, MechanismName

if TYPE_CHECKING:
    from thresholdout.guard.answer import Answer
    from thresholdout.planning.declaration import Sampling

__all__ = ["close", "compare", "correct", "create", "propose", "score"]

_VERDICTS = {"better": ExitCode.DONE, "worse": ExitCode.NO, "not settled": ExitCode.UNCLEAR}


def _query(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every query."""
    for option in (GUARD, QUOTA, CLIENT, click.option("--name", default="", help="Name of the query in the history.")):
        command = option(command)
    return metric_options(command)


@click.command(cls=Command)
@LEDGER
@holdout_tables
@click.option(
    "--mechanism",
    type=click.Choice(get_args(MechanismName)),
    help="Default: leaderboard, where clients send the scores that they anticipate. With --holdout-answers: claims "
    "near training values.",
)
@click.option("--queries", type=int, help="Number of queries that the guard must answer. Default: no limit.")
@click.option(
    "--holdout-answers", type=int, help="Number of answers from the holdout, for --mechanism claims. Default: no limit."
)
@click.option(
    "--sampling",
    type=click.Choice(["fixed_features", "independent"]),
    help="With fixed_features everybody knows the features of the holdout, and comparisons are sharper. This is the "
    "default for independent records and groups.",
)
def create(
    ledger: str,
    train: Path,
    holdout: Path,
    graph: Path | None,
    transition: Path | None,
    mechanism: str | None,
    holdout_answers: int | None,
    sampling: str | None,
    prior_queries: int | None,
    **columns: Any,
) -> None:
    """Create a guard in LEDGER, and store the labels there.

    The guard's answers protect the labels of the holdout. Labels of the training part are not protected: on a guard
    other than a leaderboard each answer shows the exact value on that part, so clients can read these labels off.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    service = PredictionGuard.create(
        ledger,
        read_table(train),
        read_table(holdout),
        transition=None if transition is None else read_table(transition),
        graph=None if graph is None else read_table(graph),
        mechanism=_mechanism(mechanism, holdout_answers),
        sampling=cast("Sampling | None", sampling),
        prior_queries=prior_queries or 0,
        **columns,
    )
    with open_ledger(ledger, must_exist=True) as opened:
        location, several = opened.location, len(opened.guards()) > 1
    lines = [f"{location}: {service.guard!r}"]
    if several:
        lines.append(f"The ledger has several guards. Select this one by --guard {service.identity[:12]}.")
    lines += [f"labels {service.labels}", service.certificate.statement]
    if service.note:
        lines.append(f"note: {service.note}")
    data = {
        "ledger": str(location),
        "guard": service.identity,
        "records": service.guard.n,
        "labels": service.labels,
        "statement": service.certificate.statement,
        "note": service.note or None,
    }
    show(data, *lines)


def _mechanism(name: str | None, holdout_answers: int | None) -> MechanismName | Claims:
    """Return the mechanism of both options."""
    if holdout_answers is None:
        return cast(MechanismName, name or "leaderboard")
    if name not in (None, "claims"):
        raise InputError("mechanism", repr(name), "claims beside --holdout-answers")
    return Claims(holdout_answers=holdout_answers)


@click.command(cls=Command)
@LEDGER
@click.argument("predictions", type=FILE)
@click.option(
    "--anticipated-score", "expected", type=float, help="Score that you anticipate, for example from cross-validation."
)
@_query
def score(
    ledger: str,
    predictions: Path,
    metric: str,
    clip: float | None,
    expected: float | None,
    name: str,
    client: str,
    quota: int | None,
    guard: str | None,
) -> None:
    """Score PREDICTIONS through the guard in LEDGER.

    PREDICTIONS is a CSV with a row for each record of the holdout. The same predictions from the same client give the
    same answer again, free of charge.

    On a leaderboard the interval is built around the anticipated score. The better it is, the narrower are all later
    intervals. Other guards need rows for both parts, or --anticipated-score.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    low, high = chosen.bounds
    if expected is not None and not low <= expected <= high:
        raise InputError("expected", f"{expected:g}", f"a score between {low:g} and {high:g}")
    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        answer = service.ask(read_table(predictions), chosen, expected=expected, name=name, client=client, quota=quota)
    anticipates = service.guard.parameters.anticipates
    unsaid = anticipates and expected is None and answer.source != "train" and not answer.repeated
    hint = "; a good --anticipated-score narrows the interval" if unsaid else ""
    fields = ("query", "name", "value", "interval", "half_width", "source", "remaining", "repeated")
    show({field: getattr(answer, field) for field in fields}, _in_words(answer, anticipates) + hint)


@click.command(cls=Command)
@LEDGER
@click.argument("new", type=FILE)
@click.argument("old", type=FILE)
@click.option("--anticipated-difference", "expected", type=float, help="Anticipated score of NEW minus that of OLD.")
@_query
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
    guard: str | None,
) -> None:
    """Compare the predictions NEW with OLD through the guard in LEDGER.

    Both are CSV files with a row for each record of the holdout. Without --anticipated-difference the difference on
    rows of the training part takes its place; a leaderboard needs neither. The same predictions give the same answer
    again, free of charge.

    The exit code is the verdict: 0 for better, 1 for worse, 3 for not settled.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        tables = read_table(new), read_table(old)
        service = PredictionGuard.open(opened, guard)
        found = service.compare(*tables, chosen, expected=expected, name=name, client=client, quota=quota)
    answer = found.answer
    value, low, high = shown_interval(found.value, *found.interval, signed=True, apart=0.0)
    settling = "" if found.settling is None else f"; about {found.settling:,} holdout records would settle it"
    anticipates = service.guard.parameters.anticipates
    value = "" if anticipates and answer.source == "train" else f", {value}"
    data = {"verdict": found.verdict, "value": found.value, "interval": found.interval, "settling": found.settling}
    show(
        data | {field: getattr(answer, field) for field in ("query", "name", "source", "remaining", "repeated")},
        f"{printable(answer.name)}: {found.verdict}{value}  (truth in {low} to {high}){settling}",
        _where(answer, anticipates),
    )
    ctx.exit(_VERDICTS[found.verdict])


def _in_words(answer: Answer, anticipates: bool) -> str:
    lower, upper = answer.interval
    asked = printable(answer.name)
    name = f"best so far ({asked})" if answer.about == "best" else asked
    ends = " to ".join(shown_interval(answer.value, lower, upper)[1:])
    said = f"{shown_answer(answer.value, lower, upper)}  (truth in {ends})"
    if anticipates and answer.source == "train":  # its value is the guess alone
        said = f"truth in {ends}"
    return f"{name}: {said}\n{_where(answer, anticipates)}"


def _where(answer: Answer, anticipates: bool) -> str:
    left = "" if answer.remaining is None else f"; {amount(answer.remaining, 'answer')} from the holdout left"
    again = ", repeated: free of charge" if answer.repeated else ""
    where = f"from the {answer.source} part"
    if anticipates:
        where = "about as anticipated" if answer.source == "train" else "not as anticipated"
    return f"{where}; query {answer.query}{left}{again}"


@click.command(cls=Command)
@LEDGER
@click.argument("new", type=FILE)
@click.argument("old", type=FILE)
@_query
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
    guard: str | None,
) -> None:
    """Decide whether the predictions NEW are certified to be better than OLD.

    Both are CSV files with a row for each record of the holdout. Only the decision is released, which is less than a
    difference, so the holdout lasts longer.

    The exit code is 0 for better, and 3 for not certified.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    chosen = metric_of(metric, clip)
    with open_ledger(ledger, must_exist=True) as opened:
        tables = read_table(new), read_table(old)
        found = PredictionGuard.open(opened, guard).propose(*tables, chosen, name=name, client=client, quota=quota)
    called = f"{name} ({chosen.name}, proposal)" if name else f"{chosen.name}, proposal"
    again = ", repeated: free of charge" if found.repeated else ""
    verdict = f"better, certified by {found.test}" if found else "not certified to be better"
    show(
        {field: getattr(found, field) for field in ("outcome", "query", "name", "repeated")},
        f"{printable(called)}: {verdict}",
        f"query {found.query}{again}",
    )
    ctx.exit(ExitCode.DONE if found else ExitCode.UNCLEAR)


@click.command(cls=Command)
@LEDGER
@click.argument("corrections", type=FILE)
@click.option("--reason", required=True, help="Reason, which everybody can read. It must not depend on labels.")
@click.option(
    "--basis",
    type=click.Choice(["public", "labels"]),
    default="labels",
    show_default=True,
    help="Whether records and labels were chosen by public facts alone.",
)
@GUARD
def correct(ledger: str, corrections: Path, reason: str, basis: str, guard: str | None) -> None:
    """Correct labels of the holdout behind the guard in LEDGER.

    CORRECTIONS is a CSV file with the id column and the column "label". A record without a label is withdrawn. The
    error budget is not renewed.

    With --basis public all guarantees still hold. It declares that the time and the choice of these records do not
    depend on their labels, so the file also has records whose label was right. It also declares that each label was
    judged by itself. With --basis labels nothing is guaranteed about later answers.
    """
    from thresholdout.ledger import open_ledger
    from thresholdout.service.guarantee_text import corrected
    from thresholdout.service.prediction_guard import PredictionGuard, read_table

    with open_ledger(ledger, must_exist=True) as opened:
        service = PredictionGuard.open(opened, guard)
        chosen = cast(Literal["public", "labels"], basis)
        entry = service.correct(read_table(corrections), reason, basis=chosen)
        sentences = corrected(service.corrections, best=service.guard._mechanism.about == "best")
    show(
        {"query": entry.query, "name": entry.name, "basis": basis, "guarantee": list(sentences)},
        f"{printable(entry.name)}; query {entry.query}",
        *sentences,
    )


@click.command(cls=Command)
@LEDGER
@GUARD
@click.option("--reason", required=True, help="Reason, which every client can read.")
def close(ledger: str, guard: str | None, reason: str) -> None:
    """Close a guard in LEDGER permanently. Its history remains readable."""
    from thresholdout.ledger import open_ledger

    with open_ledger(ledger, must_exist=True) as opened:
        identity = choose(opened, guard)
        opened.close_guard(identity, reason)
        location = str(opened.location)
    show(
        {"ledger": location, "guard": identity, "closed": reason},
        f"{location}: guard {identity[:12]} is closed: {reason}",
    )
