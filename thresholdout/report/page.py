"""A report as one HTML document, by the templates in ``thresholdout/report/templates``."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

from graphs.numerics.rounding import shown_above
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.report import sentences as words
from thresholdout.report.answers import decided, gates, number, tables

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment
    from markupsafe import Markup

    from thresholdout.certificates import Certificate
    from thresholdout.report.contents import GuardReport

__all__ = ["MOST_DRAWN", "embedded", "facts", "render", "templates", "thinned"]

# Queries that a drawing shows; more would overlap.
MOST_DRAWN = 2000


def thinned(history: pd.DataFrame, most: int = MOST_DRAWN) -> pd.DataFrame:
    """Return a history of at most about so many queries: those answered from the holdout first, and others evenly."""
    if len(history) <= most:
        return history
    holdout = history["source"] == "holdout"
    kept = [_even(history[holdout], most // 2 if (~holdout).any() else most)]
    kept.append(_even(history[~holdout], most - len(kept[0])))
    import pandas as pd

    return pd.concat(kept).sort_values("query")


def _even(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    if len(rows) <= most:
        return rows
    return rows.iloc[[k * len(rows) // most for k in range(most)]]


# Rows in the page's table of queries.
MOST_ROWS = 500


def render(report: GuardReport) -> str:
    """Return the page of a report; no script, no address, nothing that is loaded."""
    return (
        templates()
        .get_template("page.html")
        .render(
            report=report,
            summary=words.summary(report),
            facts=facts(report),
            decided=decided(report),
            tables=tables(report),
            gates=gates(report),
            budget=_budget(report),
            sentences=words.certificate(report),
            beside="expected value" if report.parameters.anticipates else "training value",
            routes=_routes(report),
            limits=words.limits(report),
            mechanism=words.mechanism(report),
            parameters=words.parameters(report),
            queries=_queries(report.history, words.certified(report)),
            left=bool(report.history["remaining"].notna().any()),
        )
    )


def embedded(report: GuardReport) -> str:
    """Return the page in a frame for a notebook, so that neither's style affects the other."""
    return templates().get_template("frame.html").render(report=report, page=render(report))


@cache
def templates() -> Environment:
    """Return the templates; all values are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("thresholdout.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["breaks"] = _breaks
    return made


# Places in a long name between two words: after punctuation, and at a capital letter inside of a class's name.
_BREAK: Final = re.compile(r"(?<=[(,/:])(?=[^\s)])|(?<=[a-z])(?=[A-Z])")


def _breaks(name: str) -> Markup:
    """Return a name in which lines may break between words, and only there."""
    from markupsafe import Markup

    return Markup("<wbr>").join(_BREAK.split(name))


def facts(report: GuardReport) -> list[tuple[str, str]]:
    """Return the numbers at the top with their names."""
    most = report.declared.queries
    found = [
        ("queries", f"{report.queries:,}" + ("" if most is None else f" of {most:,}")),
        ("from the holdout", f"{report.from_holdout:,}"),
        ("confidence", f"{report.declared.confidence:g}"),
    ]
    if report.parameters.approximation:
        found[-1] = "confidence", f"about {report.declared.confidence:g}: approximate"
    if report.budget is not None:
        found.insert(2, ("answers from the holdout left", f"{report.remaining:,} of {report.budget:,}"))
    if report.information_released == math.inf:
        found.append(("information released", "all: the guard answers no more"))
    elif report.information_released is not None:
        found.append(("information released", f"{shown_above(report.information_released)} nats"))
    elif report.certificate is not None:
        tolerance = report.certificate.tolerance
        shown = "grows" if tolerance == math.inf else "no bound"
        shown = f"{shown_above(tolerance)} of the range" if tolerance < 1.0 else shown
        found.append(("largest half-width from now on", shown))
    if report.certificate is not None and report.certificate.epsilon is not None:
        found += _privacy(report.certificate.epsilon, report.certificate.bayesian_epsilon)
    return found


def _privacy(epsilon: float, bayesian: float | None) -> list[tuple[str, str]]:
    """Return both privacy losses of all answers with their names."""
    losses = {"epsilon per record": epsilon, "epsilon with dependants": bayesian}
    known = ((name, loss) for name, loss in losses.items() if loss is not None)
    return [(name, "unbounded" if loss == math.inf else shown_above(loss)) for name, loss in known]


def _budget(report: GuardReport) -> dict[str, Any] | None:
    """Return the answers from the holdout over the queries, or else the information released; None if little was spent.

    Intervals of claims depend on the nats, whereas one budget of answers ends the guard.
    """
    answers = report.answers
    if not len(answers):
        return None
    spent = (answers["source"] == "holdout").cumsum().astype(float)
    nats, unit = report.nats_spent, "answers from the holdout"
    most = float(report.budget or spent.iloc[-1])
    if report.budget is None and nats is not None:
        spent, unit = (
            nats.reindex(answers.index).replace(math.inf, math.nan).ffill().fillna(0.0).clip(lower=0.0),
            "nats",
        )
        most = float(spent.iloc[-1])
    if spent.iloc[-1] < (2 if unit != "nats" else 1):
        return None
    first, last = float(answers["query"].iloc[0]), float(answers["query"].iloc[-1])
    rows = thinned(answers.assign(spent=spent))
    points, height = ["0,100"], 100.0
    for query, count in zip(rows["query"].astype(float), rows["spent"], strict=True):
        across = 100 * (query - first) / ((last - first) or 1.0)
        points += [f"{across:.2f},{height:.2f}"]
        height = 100 * (1 - count / most)
        points += [f"{across:.2f},{height:.2f}"]
    points.append(f"100,{height:.2f}")
    return {
        "points": " ".join(points),
        "top": f"{most:,.0f}" if unit != "nats" else shown_above(most),
        "unit": unit,
        "sentence": words.spent(report, float(spent.iloc[-1]), unit),
        "first": f"{first:,.0f}",
        "last": f"{last:,.0f}",
    }


def _routes(report: GuardReport) -> list[dict[str, Any]]:
    """Return the certificate's routes, the best one first."""
    if report.certificate is None:
        return []
    routes = report.certificate.routes
    return [
        {
            "name": str(name),
            "chosen": bool(route["chosen"]),
            "width": _width(report.certificate, bool(route["chosen"]), float(route["tolerance"])),
            "why": route["why_not"] or route["assumes"],
        }
        for name, route in routes.sort_values("tolerance", kind="stable").iterrows()
    ]


def _width(certificate: Certificate, chosen: bool, tolerance: float) -> str:
    """Return the largest half-width of a route; one of the whole range bounds nothing."""
    if chosen and certificate.states_intervals:
        return "each answer has its own"
    return shown_above(tolerance, 3) if tolerance < 1.0 else "no bound"


def _queries(history: pd.DataFrame, certified: str) -> list[dict[str, str]]:
    """Return the table's rows of queries; the last ones, where they are too many."""
    shown = _last(history) if len(history) > MOST_ROWS else history
    return [_query(row, certified) for row in shown.itertuples()]


def _last(history: pd.DataFrame, most: int = MOST_ROWS) -> pd.DataFrame:
    """Return the last queries, and before them as many that the holdout answered, at most `most` in all."""
    last = history.iloc[-most // 2 :]
    earlier = history.iloc[: len(history) - len(last)]
    earlier = earlier[earlier["source"] == "holdout"].iloc[-(most - len(last)) :]
    import pandas as pd

    return pd.concat([earlier, last])


def _query(row: Any, certified: str) -> dict[str, str]:
    import pandas as pd

    answered = row.source in get_args(AnswerSource)
    answer = number(row) if answered else None
    tolerance, last = row.low < 0.0, str(row.name).endswith("last evaluation")
    outcome = words.outcome(row.source, tolerance=tolerance, last=last, certified=certified)
    return {
        "number": f"{row.query:,}",
        "name": f"{row.name}: {row.candidate}" if row.candidate else str(row.name),
        "train": answer.near(row.train) if answer else f"{row.train:.4g}",
        "answer": answer.value if answer else "",
        "interval": answer.interval if answer else "",
        "source": str(row.source),
        "words": {"train": "confirmed", "holdout": "holdout"}.get(row.source, outcome),
        "left": "" if pd.isna(row.remaining) else f"{row.remaining:,}",
    }
