"""The pictures of a report, drawn without a screen and put into the page as SVG."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thresholdout.plotting import BLUE, GREY, ORANGE, axes, finish

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_DRAWN", "plot_against_train", "plot_budget", "svg_image", "thinned"]

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
