"""A report as one HTML document, by the templates in ``thresholdout/report/templates``."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from graphs.numerics.rounding import shown_above, shown_around, shown_below
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.plotting import drawable, kinds, row_names, short_names
from thresholdout.report import sentences as words

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

    from thresholdout.report.contents import GuardReport

__all__ = ["MOST_DRAWN", "embedded", "facts", "render", "thinned"]

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


# Rows in the page's table of queries, and bars in one table of answers.
MOST_ROWS = 500
_MOST_BARS = 60
_ROOM = 0.04  # margin beyond the outermost ends, as a part of the axis


def render(report: GuardReport) -> str:
    """Return the page of a report; no script, no address, nothing that is loaded."""
    return (
        _templates()
        .get_template("page.html")
        .render(
            report=report,
            summary=words.summary(report),
            facts=facts(report),
            tables=_tables(report),
            budget=_budget(report),
            sentences=words.certificate(report),
            beside="expected value" if report.parameters.anticipates else "training value",
            routes=_routes(report),
            limits=words.limits(report),
            mechanism=words.mechanism(report),
            parameters=words.parameters(report),
            queries=_queries(report.history),
            left=bool(report.history["remaining"].notna().any()),
        )
    )


def embedded(report: GuardReport) -> str:
    """Return the page in a frame for a notebook, so that neither's style affects the other."""
    return _templates().get_template("frame.html").render(report=report, page=render(report))


@cache
def _templates() -> Environment:
    """Return the templates; all values are escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("thresholdout.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


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
        shown = f"{shown_above(tolerance)} of the range" if math.isfinite(tolerance) else "grows"
        found.append(("largest half-width from now on", shown))
    if report.certificate is not None and report.certificate.epsilon is not None:
        found += _privacy(report.certificate.epsilon, report.certificate.bayesian_epsilon)
    return found


def _privacy(epsilon: float, bayesian: float | None) -> list[tuple[str, str]]:
    """Return both privacy losses of all answers with their names."""
    losses = {"epsilon per record": epsilon, "epsilon with dependants": bayesian}
    known = ((name, loss) for name, loss in losses.items() if loss is not None)
    return [(name, "unbounded" if loss == math.inf else shown_above(loss)) for name, loss in known]


def _tables(report: GuardReport) -> list[dict[str, Any]]:
    """Return a table of answers for each metric and range: bars on one axis, the best answer first."""
    answers = drawable(report.answers)
    if not len(answers):
        return []
    groups = answers.assign(kind=kinds(answers)).groupby(["kind", "lower", "upper"], sort=False)
    return [_table(str(kind), rows, report.lowest_is_best(rows)) for (kind, _, _), rows in groups]


def _table(kind: str, rows: pd.DataFrame, lowest_is_best: bool) -> dict[str, Any]:
    """Return one table: short names, bars in percent of the axis, and the answers that tie with the best."""
    around_zero = float(rows["lower"].iloc[0]) < 0.0 < float(rows["upper"].iloc[0])
    shown = thinned(rows, _MOST_BARS)
    names = short_names(row_names(shown))
    shown = shown.assign(label=names).sort_values(["value", "query"], ascending=[lowest_is_best, True], kind="stable")
    zero = [0.0] if around_zero else []
    low, high = min([*shown["low"], *zero]), max([*shown["high"], *zero])
    room = _ROOM * (high - low) or 0.5
    low, high = max(low - room, float(rows["lower"].iloc[0])), min(high + room, float(rows["upper"].iloc[0]))

    def place(value: float) -> float:
        return round(100 * float(min(max((value - low) / (high - low), 0.0), 1.0)), 2)

    best: Any = shown.iloc[0]

    def bar(row: Any) -> dict[str, Any]:
        return {
            "name": row.label,
            "full": f"{row.name}: {row.candidate}" if row.candidate else str(row.name),
            "left": place(row.low),
            "width": round(place(row.high) - place(row.low), 2),
            "dot": place(row.value),
            "train": place(row.train) if low <= row.train <= high else None,
            "value": shown_around(row.value, row.low, row.high),
            "source": row.source,
            "tied": not around_zero and row.low <= best.high and row.high >= best.low,
        }

    return {
        "title": kind or ("Differences" if around_zero else "Other queries"),
        "left_out": len(rows) - len(shown),
        "count": len(rows),
        "ends": (low, high),
        "zero": place(0.0) if around_zero else None,
        "rows": [bar(row) for row in shown.itertuples()],
    }


def _budget(report: GuardReport) -> dict[str, Any] | None:
    """Return the answers from the holdout over the queries as the points of a line; ``None`` for fewer than two."""
    answers = report.answers
    used = (answers["source"] == "holdout").cumsum()
    if not len(used) or used.iloc[-1] < 2:
        return None
    most = report.budget or int(used.iloc[-1])
    first, last = float(answers["query"].iloc[0]), float(answers["query"].iloc[-1])
    rows = thinned(answers.assign(used=used))
    points, height = ["0,100"], 100.0
    for query, count in zip(rows["query"].astype(float), rows["used"], strict=True):
        across = 100 * (query - first) / ((last - first) or 1.0)
        points += [f"{across:.2f},{height:.2f}"]
        height = 100 * (1 - count / most)
        points += [f"{across:.2f},{height:.2f}"]
    points.append(f"100,{height:.2f}")
    return {"points": " ".join(points), "used": int(used.iloc[-1]), "most": most, "last": f"{last:,.0f}"}


def _routes(report: GuardReport) -> list[dict[str, Any]]:
    """Return the certificate's routes, the best one first."""
    if report.certificate is None:
        return []
    routes = report.certificate.routes
    return [
        {
            "name": str(name),
            "chosen": bool(route["chosen"]),
            "width": shown_above(route["tolerance"], 4) if math.isfinite(route["tolerance"]) else "none",
            "why": route["why_not"] or route["assumes"],
        }
        for name, route in routes.sort_values("tolerance", kind="stable").iterrows()
    ]


def _queries(history: pd.DataFrame) -> list[dict[str, str]]:
    """Return the table's rows of queries; the last ones, where they are too many."""
    shown = _last(history) if len(history) > MOST_ROWS else history
    return [_query(row) for row in shown.itertuples()]


def _last(history: pd.DataFrame, most: int = MOST_ROWS) -> pd.DataFrame:
    """Return the last queries, and before them as many that the holdout answered, at most `most` in all."""
    last = history.iloc[-most // 2 :]
    earlier = history.iloc[: len(history) - len(last)]
    earlier = earlier[earlier["source"] == "holdout"].iloc[-(most - len(last)) :]
    import pandas as pd

    return pd.concat([earlier, last])


def _query(row: Any) -> dict[str, str]:
    import pandas as pd

    answered = row.source in get_args(AnswerSource)
    return {
        "number": f"{row.query:,}",
        "name": f"{row.name}: {row.candidate}" if row.candidate else str(row.name),
        "train": f"{row.train:.4f}",
        "answer": f"{row.value:.4f}" if answered else "",
        "interval": f"{shown_below(row.low, 4, 'f')} to {shown_above(row.high, 4, 'f')}" if answered else "",
        "source": str(row.source),
        "left": "" if pd.isna(row.remaining) else f"{row.remaining:,}",
    }
