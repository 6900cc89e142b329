"""The page: a report as one HTML document, by the templates in ``thresholdout/report/templates``."""

from __future__ import annotations

import math
from functools import cache, partial
from html import escape
from typing import TYPE_CHECKING, Any, get_args

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.plotting import drawable, kinds, plot_history
from thresholdout.report import sentences as words
from thresholdout.report.report_pictures import MOST_DRAWN, plot_against_train, plot_budget, svg_image, thinned

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

    from thresholdout.report.contents import GuardReport

__all__ = ["embedded", "facts", "render"]

MOST_ROWS = 500
_MOST_RANGES = 3


def render(report: GuardReport) -> str:
    """Return the page of a report; no script, no address, nothing that is loaded."""
    return (
        _templates()
        .get_template("page.html")
        .render(
            report=report,
            summary=words.summary(report),
            facts=facts(report),
            pictures=_pictures(report),
            routes=_routes(report),
            limits=words.limits(report),
            mechanism=words.mechanism(report),
            parameters=words.parameters(report),
            queries=_queries(report.history),
        )
    )


def embedded(report: GuardReport) -> str:
    """Return the page in a frame of its own, for a notebook, whose style it leaves alone."""
    return _templates().get_template("frame.html").render(report=report, page=render(report))


@cache
def _templates() -> Environment:
    """Return the templates; all that they are given is escaped, but for pictures."""
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
    """Return the numbers at the top, each with its name."""
    most = report.declared.queries
    found = [
        ("queries", f"{report.queries:,}" + ("" if most is None else f" of {most:,}")),
        ("from the holdout", f"{report.from_holdout:,}"),
        ("confidence", f"{report.declared.confidence:g}"),
    ]
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
    return found


def _pictures(report: GuardReport) -> dict[str, Any] | None:
    """Return pictures of the answers and of the budget, and how many ranges have none; ``None`` without answers."""
    answers = drawable(report.answers)
    if not len(answers):
        return None
    few = ""
    if len(answers) > MOST_DRAWN:
        few = f" Drawn are {len(thinned(answers)):,} of {len(answers):,} answers, those from the holdout first."
    found = []
    ranges = list(answers.assign(kind=kinds(answers)).groupby(["lower", "upper", "kind"], sort=True))
    beside = "what was expected" if report.parameters.guesses else "training value"
    for (low, high, kind), rows in ranges[:_MOST_RANGES]:
        about = f" by {kind}" if kind else f" with a range of {low:g} to {high:g}" if len(ranges) > 1 else ""
        caption = f"Answers{about}, query by query. Bars are certified intervals: all hold at once.{few}"
        found.append(_picture(partial(plot_history, thinned(rows), names=False, beside=beside), caption))
        off = "it was wrong" if report.parameters.guesses else "the training part was wrong"
        caption = f"Answers{about} against the {beside}. Off the diagonal, {off}.{few}".replace("the what", "what")
        found.append(_picture(partial(plot_against_train, thinned(rows), beside=beside), caption, 4.2))
    budget = _picture(partial(plot_budget, answers, report.budget), "Where the holdout was used.", 2.6)
    return {"answers": found, "left_out": len(ranges) - len(ranges[:_MOST_RANGES]), "budget": budget}


def _picture(draw: Any, caption: str, *height: float) -> dict[str, str]:
    from markupsafe import Markup

    return {"image": Markup(svg_image(draw, escape(caption), *height)), "caption": caption}


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
    """Return what the table shows of the queries: the last ones, where they are too many for all."""
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
