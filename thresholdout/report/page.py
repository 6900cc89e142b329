"""The page: a report as one HTML document, by the templates in ``thresholdout/report/templates``."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from functools import cache, partial
from html import escape
from typing import TYPE_CHECKING, Any, get_args

from graphs.numerics.rounding import shown_above, shown_below
from thresholdout.mechanisms.base import AnswerSource
from thresholdout.plotting import BLUE, GREY, ORANGE, axes, drawable, finish, kinds, plot_history
from thresholdout.report import sentences as words

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

    from thresholdout.report.contents import GuardReport

__all__ = ["MOST_DRAWN", "embedded", "facts", "plot_against_train", "plot_budget", "render", "svg_image", "thinned"]

MOST_DRAWN = 2000


def thinned(history: pd.DataFrame, most: int = MOST_DRAWN) -> pd.DataFrame:
    """Return a history of at most about so many queries: those answered from the holdout first, and others evenly.

    Examples
    --------
    >>> import pandas as pd
    >>> history = pd.DataFrame({"query": range(1, 101), "source": ["holdout", *["train"] * 99]})
    >>> thinned(history, 10)["query"].tolist()
    [1, 2, 13, 24, 35, 46, 57, 68, 79, 90]
    """
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


def plot_against_train(answers: pd.DataFrame, ax: Any = None, *, beside: str = "training value") -> Any:
    """Draw answers against training values: far from the diagonal, the training part was wrong.

    Parameters
    ----------
    answers : DataFrame
        Rows of `Thresholdout.history` that are answers.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    beside : str
        What the training values are called.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    for source, colour, marker in (("train", BLUE, "o"), ("holdout", ORANGE, "D")):
        rows = answers[answers["source"] == source]
        if len(rows):
            ax.errorbar(
                rows["train"],
                rows["value"],
                yerr=((rows["value"] - rows["low"]).clip(lower=0.0), (rows["high"] - rows["value"]).clip(lower=0.0)),
                fmt=marker,
                color=colour,
                ecolor=colour + "40",
                markersize=4,
                label=f"answer, from {source}",
            )
    low = min(answers["train"].min(), answers["value"].min())
    high = max(answers["train"].max(), answers["value"].max())
    ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle="--", label=f"answer = {beside}")
    return finish(ax, beside, "answer")


def plot_budget(answers: pd.DataFrame, budget: int | None, ax: Any = None) -> Any:
    """Draw how many answers have come from the holdout, query by query, and how many there may be.

    Parameters
    ----------
    answers : DataFrame
        Rows of `Thresholdout.history` that are answers.
    budget : int or None
        The most that may come from the holdout; None for any number.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes
    """
    ax = axes(ax)
    used = (answers["source"] == "holdout").cumsum()
    rows = thinned(answers.assign(used=used))
    ax.step(rows["query"].astype(float), rows["used"], where="post", color=ORANGE, label="answers from the holdout")
    if budget is not None:
        ax.axhline(budget, color=GREY, linewidth=1, linestyle="--", label=f"answers from the holdout, {budget}")
    ax.set_ylim(bottom=0)
    ax.yaxis.get_major_locator().set_params(integer=True)
    return finish(ax, "query", "answers from the holdout")


def svg_image(draw: Callable[[Any], Any], words: str, height: float = 3.6) -> str:
    """Return a picture as an ``img`` element that carries its own data.

    Parameters
    ----------
    draw : callable
        Draws on axes that it is given.
    words : str
        What the picture shows, for those who do not see it; escaped already.
    height : float
        In inches, for a width of 8.
    """
    import matplotlib as mpl

    ax = axes()
    ax.figure.set_size_inches(8.0, height)
    draw(ax)
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "thresholdout", "svg.fonttype": "path"}):
        ax.figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(file.getvalue().encode()).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{words}">'


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
    if report.certificate is not None and report.certificate.epsilon is not None:
        found += _privacy(report.certificate.epsilon, report.certificate.bayesian_epsilon)
    return found


def _privacy(epsilon: float, bayesian: float | None) -> list[tuple[str, str]]:
    """Return both privacy losses of all answers, each with its name."""
    losses = {"epsilon per record": epsilon, "epsilon with dependants": bayesian}
    known = ((name, loss) for name, loss in losses.items() if loss is not None)
    return [(name, "unbounded" if loss == math.inf else shown_above(loss)) for name, loss in known]


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
    beside = "what was expected" if report.parameters.anticipates else "training value"
    for (low, high, kind), rows in ranges[:_MOST_RANGES]:
        about = f" by {kind}" if kind else f" with a range of {low:g} to {high:g}" if len(ranges) > 1 else ""
        caption = f"Answers{about}, query by query. Bars are certified intervals: all hold at once.{few}"
        found.append(_picture(partial(plot_history, thinned(rows), names=False, beside=beside), caption))
        off = "it was wrong" if report.parameters.anticipates else "the training part was wrong"
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
